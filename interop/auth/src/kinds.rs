//! Tokens without a login, and tokens bound to a key.

use bowline::client::auth::{Client, Dpop, OAuth, SigningKey};
use serde_json::json;

use crate::site::Guest;
use crate::{Check, Outcome, World, check, holds, same};

pub(crate) const CHECKS: &[Check] = &[
    check!("client-secret", client_secret),
    check!("private-key", private_key),
    check!("dpop", dpop),
    check!("dpop-nonces", dpop_nonces),
    check!("dpop-stolen", dpop_stolen),
];

async fn client_secret(world: World) -> Outcome {
    let secret = world.issuer.credentials().await?.secret;
    unattended(&world, Client::new("machine").secret(secret)).await
}

async fn private_key(world: World) -> Outcome {
    let key = SigningKey::from_pem(&world.issuer.credentials().await?.key)?;
    unattended(&world, Client::new("machine-key").private_key(key)).await
}

/// An application that gets a token without a user.
async fn unattended(world: &World, client: Client) -> Outcome {
    let site = world.site().await?;
    let oauth = OAuth::client_credentials(&site.url, client.issuer(&world.issuer.url));
    let oauth = oauth.web(world.issuer.web.clone()).scopes(["notes:write"]).build()?;
    let client = site.connect(oauth).await?;
    let said = client.call_tool("who", json!({})).text().await?;
    holds(said.clone(), said.ends_with(": notes:read notes:write"))?;
    same("said", client.call_tool("write", json!({})).text().await?, "written")
}

/// If a server requires it, the client gets key-bound tokens without any setting.
async fn dpop(world: World) -> Outcome {
    let site = world.site_with(300, bowline::http::auth::Guard::require_dpop).await?;
    let guest = site.guest().await?;
    bound(&world, &guest).await?;
    same("said", guest.write().await?, "written")?;
    bound(&world, &guest).await
}

async fn bound(world: &World, guest: &Guest) -> Outcome {
    let who = guest.who().await?;
    holds(who.clone(), who.starts_with("alice: notes:read"))?;
    same("token_type", world.issuer.state().await?.issued.token_type, "DPoP")
}

/// Both the issuer and the server require their own nonces.
async fn dpop_nonces(world: World) -> Outcome {
    world.issuer.tell("set", json!({ "wantsNonce": true })).await?;
    let site = world.site_with(2, |guard| guard.require_dpop().dpop_nonces()).await?;
    let before = world.issuer.counts().await?;
    let guest = site.guest().await;
    let mut outcome = Ok(());
    if let Ok(guest) = &guest {
        outcome = bound(&world, guest).await;
        // Bound tokens are refreshed too.
        while outcome.is_ok() && world.issuer.counts().await?.refreshes == before.refreshes {
            outcome = bound(&world, guest).await;
        }
    }
    world.issuer.tell("set", json!({ "wantsNonce": false })).await?;
    same("visits", guest?.person.visits(), 1)?;
    outcome
}

/// A bound token is useless without its key.
async fn dpop_stolen(world: World) -> Outcome {
    let site = world.site().await?;
    let person = crate::person::Person::new(&world.issuer.web);
    let oauth = site.oauth(&person).dpop(Dpop::Always).build()?;
    let client = site.connect(oauth).await?;
    let who = client.call_tool("who", json!({})).text().await?;
    same("who", who, "alice: notes:read")?;
    let issued = world.issuer.state().await?.issued;
    same("token_type", issued.token_type.as_str(), "DPoP")?;
    same("scope", issued.scope.contains("notes:read"), true)?;
    for scheme in ["Bearer", "DPoP"] {
        let (status, challenge) = site.knock(&format!("{scheme} {}", issued.access_token)).await?;
        same(scheme, status.as_u16(), 401)?;
        holds(challenge.clone(), challenge.contains("DPoP"))?;
    }
    Ok(())
}
