//! Forged redirects, and metadata of another issuer.

use bowline::client::OpenError;

use crate::person::Person;
use crate::{Check, Outcome, World, check, holds, same};

pub(crate) const CHECKS: &[Check] = &[
    check!("mix-up", mix_up),
    check!("forged-state", forged_state),
    check!("foreign-code", foreign_code),
];

/// The issuer identifies itself in the redirect (RFC 9207); another identifier, or none, means
/// another issuer.
async fn mix_up(world: World) -> Outcome {
    let other = |address: String| match address.split_once("&iss=") {
        Some((before, _)) => format!("{before}&iss=https%3A%2F%2Fevil.example"),
        None => address,
    };
    let none = |address: String| match address.split_once("&iss=") {
        Some((before, _)) => before.to_owned(),
        None => address,
    };
    stopped(&world, other, "iss").await?;
    stopped(&world, none, "iss").await
}

async fn forged_state(world: World) -> Outcome {
    stopped(&world, |address| address.replace("state=", "state=x"), "state").await?;
    stopped(&world, |address| address.replace("state=", "other="), "state").await
}

/// Checks that the client stops before it reveals the code.
async fn stopped(world: &World, carry: fn(String) -> String, because_of: &str) -> Outcome {
    let before = world.issuer.counts().await?;
    match forge(world, carry).await? {
        None => return Err(format!("accepted despite {because_of}").into()),
        Some(problem) => holds(problem.clone(), problem.contains(because_of))?,
    }
    let after = world.issuer.counts().await?;
    same("codes", (after.codes, after.refusals), (before.codes, before.refusals))
}

/// The issuer rejects an unknown code, and the client reports it.
async fn foreign_code(world: World) -> Outcome {
    let before = world.issuer.counts().await?;
    let problem = forge(&world, |address| address.replace("code=", "code=x")).await?;
    let problem = problem.ok_or("accepted with a forged code")?;
    holds(problem.clone(), problem.contains("invalid_grant"))?;
    same("refusals", world.issuer.counts().await?.refusals, before.refusals + 1)
}

/// Returns with a forged address, and returns the client's error.
async fn forge(
    world: &World,
    carry: fn(String) -> String,
) -> Result<Option<String>, crate::BoxError> {
    let site = world.site().await?;
    let person = Person::forging(&world.issuer.web, carry);
    let oauth = site.oauth(&person).build()?;
    match site.connect(oauth).await {
        Ok(_) => Ok(None),
        Err(OpenError::Unauthorized { problem, .. }) => Ok(Some(problem)),
        Err(error) => Err(error.into()),
    }
}
