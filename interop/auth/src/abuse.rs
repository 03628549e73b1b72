//! Redirects that are not what the issuer sent, and metadata that belong to somebody else.

use bowline::client::OpenError;

use crate::person::Person;
use crate::{Check, Outcome, World, check, holds, same};

pub(crate) const CHECKS: &[Check] = &[
    check!("mix-up", mix_up),
    check!("forged-state", forged_state),
    check!("foreign-code", foreign_code),
];

/// The issuer names itself in the redirect (RFC 9207); another name, or none, is another issuer.
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

/// Wants the client to stop before it shows the code to anybody.
async fn stopped(world: &World, carry: fn(String) -> String, because_of: &str) -> Outcome {
    let before = world.issuer.counts().await?;
    match forge(world, carry).await? {
        None => return Err(format!("let in in spite of {because_of}").into()),
        Some(problem) => holds(problem.clone(), problem.contains(because_of))?,
    }
    let after = world.issuer.counts().await?;
    same("codes", (after.codes, after.refusals), (before.codes, before.refusals))
}

/// A code that belongs to nobody is refused by the issuer, and that is told.
async fn foreign_code(world: World) -> Outcome {
    let before = world.issuer.counts().await?;
    let problem = forge(&world, |address| address.replace("code=", "code=x")).await?;
    let problem = problem.ok_or("let in with a forged code")?;
    holds(problem.clone(), problem.contains("invalid_grant"))?;
    same("refusals", world.issuer.counts().await?.refusals, before.refusals + 1)
}

/// Has somebody come back with a forged address; gives what the client says to that.
async fn forge(
    world: &World,
    carry: fn(String) -> String,
) -> Result<Option<String>, crate::Trouble> {
    let site = world.site().await?;
    let person = Person::forging(&world.issuer.web, carry);
    let oauth = site.oauth(&person).build()?;
    match site.connect(oauth).await {
        Ok(_) => Ok(None),
        Err(OpenError::Unauthorized { problem, .. }) => Ok(Some(problem)),
        Err(error) => Err(error.into()),
    }
}
