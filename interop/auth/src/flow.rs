//! Logging in, calling, stepping up, and declining.

use bowline::client::{CallError, OpenError};
use serde_json::json;

use crate::person::Person;
use crate::{Check, Outcome, World, check, holds, same};

pub(crate) const CHECKS: &[Check] = &[
    check!("login", login),
    check!("stranger", stranger),
    check!("call", call),
    check!("decline", decline),
    check!("step-up", step_up),
    check!("step-up-declined", step_up_declined),
    check!("forget", forget),
];

/// The client discovers everything, and asks the user once.
async fn login(world: World) -> Outcome {
    let before = world.issuer.counts().await?;
    let site = world.site().await?;
    let guest = site.guest().await?;
    same("revision", guest.client.peer().map(|peer| peer.revision), Some(world.revision))?;
    same("who", guest.who().await?, "alice: notes:read")?;
    same("visits", guest.person.visits(), 1)?;
    let after = world.issuer.counts().await?;
    same("registrations", after.registrations, before.registrations + 1)?;
    same("codes", after.codes, before.codes + 1)?;
    guest.client.close().await;
    Ok(())
}

/// A caller without a token is told where to log in.
async fn stranger(world: World) -> Outcome {
    let site = world.site().await?;
    let (status, challenge) = site.knock("Basic bm86bmU=").await?;
    same("status", status.as_u16(), 401)?;
    holds(challenge.clone(), challenge.contains(r#"scope="notes:read""#))?;
    holds(challenge.clone(), !challenge.contains("error="))?;
    match site.open(site.endpoint()).await {
        Err(OpenError::Unauthorized { status: 401, .. }) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Err("accepted without a token".into()),
    }
}

/// One login suffices for many calls, also concurrent ones.
async fn call(world: World) -> Outcome {
    let site = world.site().await?;
    let guest = site.guest().await?;
    let calls = (0..16).map(|_| {
        let client = guest.client.clone();
        tokio::spawn(async move { client.call_tool("who", json!({})).text().await })
    });
    for call in calls.collect::<Vec<_>>() {
        same("who", call.await??, "alice: notes:read")?;
    }
    same("tools", guest.client.list_tools().await?.len(), 3)?;
    same("visits", guest.person.visits(), 1)
}

/// The user may decline, which is reported as such.
async fn decline(world: World) -> Outcome {
    let site = world.site().await?;
    let person = Person::new(&world.issuer.web);
    let oauth = site.oauth(&person).build()?;
    world.issuer.tell("set", json!({ "account": null })).await?;
    let opened = site.connect(oauth.clone()).await;
    world.issuer.tell("set", json!({ "account": "alice" })).await?;
    match opened {
        Err(OpenError::Unauthorized { problem, .. }) => {
            holds(problem.clone(), problem.contains("access_denied"))?;
        }
        Err(error) => return Err(error.into()),
        Ok(_) => return Err("accepted although the user declined".into()),
    }
    same("visits", person.visits(), 1)?;
    // They may change their mind.
    site.connect(oauth).await?.close().await;
    same("visits", person.visits(), 2)
}

/// Further scopes are requested when they are needed, in addition to the existing ones.
async fn step_up(world: World) -> Outcome {
    let site = world.site().await?;
    let guest = site.guest().await?;
    same("who", guest.who().await?, "alice: notes:read")?;
    same("said", guest.write().await?, "written")?;
    same("done", site.written(), 1)?;
    same("visits", guest.person.visits(), 2)?;
    same("who", guest.who().await?, "alice: notes:read notes:write")?;
    same("said", guest.write().await?, "written")?;
    same("visits", guest.person.visits(), 2)
}

/// A user who declines further scopes continues with the existing ones, and is not asked again and
/// again.
async fn step_up_declined(world: World) -> Outcome {
    let site = world.site().await?;
    let guest = site.guest().await?;
    world.issuer.tell("set", json!({ "account": null })).await?;
    let first = guest.write().await;
    let second = guest.write().await;
    world.issuer.tell("set", json!({ "account": "alice" })).await?;
    for outcome in [first, second] {
        match outcome {
            Err(CallError::Unauthorized { .. }) => {}
            other => return Err(format!("writing without a scope: {other:?}").into()),
        }
    }
    same("done", site.written(), 0)?;
    same("visits", guest.person.visits(), 2)?;
    same("who", guest.who().await?, "alice: notes:read")
}

/// After its tokens are forgotten, a client logs in again with the existing registration.
async fn forget(world: World) -> Outcome {
    let site = world.site().await?;
    let guest = site.guest().await?;
    let before = world.issuer.counts().await?;
    guest.oauth.forget().await?;
    same("who", guest.who().await?, "alice: notes:read")?;
    same("visits", guest.person.visits(), 2)?;
    let after = world.issuer.counts().await?;
    same("registrations", after.registrations, before.registrations)
}
