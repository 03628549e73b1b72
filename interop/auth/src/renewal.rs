//! Tokens that end by expiry, rejection or revocation, and clients that share them.

use std::path::PathBuf;

use bowline::client::auth::FileStore;
use serde_json::json;
use tokio::time::sleep;

use crate::person::Person;
use crate::site::{Guest, PAUSE, Site};
use crate::{BoxError, Check, Format, Outcome, World, check, holds, same, visitor};

pub(crate) const CHECKS: &[Check] = &[
    check!("expiry", expiry),
    check!("refresh", refresh),
    check!("refused-refresh", refused),
    check!("replayed-refresh", replayed),
    check!("revocation", revocation),
    check!("lost-memory", lost_memory),
    check!("shared-store", shared),
];

/// A token is refreshed before it expires.
async fn expiry(world: World) -> Outcome {
    let site = world.site_with(2, |guard| guard).await?;
    let before = world.issuer.counts().await?;
    let guest = site.guest().await?;
    let first = world.issuer.state().await?.issued;
    // The calls do not notice.
    while world.issuer.counts().await?.refreshes == before.refreshes {
        same("who", guest.who().await?, "alice: notes:read")?;
        sleep(PAUSE).await;
    }
    let last = world.issuer.state().await?.issued;
    holds("the access token is the same", first.access_token != last.access_token)?;
    holds("the refresh token is the same", first.refresh_token != last.refresh_token)?;
    same("visits", guest.person.visits(), 1)?;
    // The server also knows when a token has expired.
    site.waits_for_the_end_of(&first.access_token).await
}

/// A token that is rejected early is refreshed without the user.
async fn refresh(world: World) -> Outcome {
    let site = world.site().await?;
    let guest = site.guest().await?;
    let before = world.issuer.state().await?;
    spoil(&world, &site, &before.issued.access_token).await?;
    same("who", guest.who().await?, "alice: notes:read")?;
    let after = world.issuer.state().await?;
    same("refreshes", after.counts.refreshes, before.counts.refreshes + 1)?;
    same("visits", guest.person.visits(), 1)?;
    site.rejects("the previous token", &before.issued.access_token).await
}

/// Invalidates an access token without its client's knowledge.
async fn spoil(world: &World, site: &Site, token: &str) -> Outcome {
    match world.format {
        Format::Jwt => {
            world.issuer.tell("rotate", json!({})).await?;
            // The server fetches new keys when it sees one.
            site.admits(&site.mint(&json!({})).await?).await
        }
        Format::Opaque => world.issuer.tell("destroy", json!({ "token": token })).await,
    }
}

/// When a refresh is no longer possible, the user is asked.
async fn refused(world: World) -> Outcome {
    let site = world.site().await?;
    let guest = site.guest().await?;
    let before = world.issuer.state().await?;
    revoke(&world, &guest, &before.issued.refresh_token, "refresh_token").await?;
    spoil_if_alive(&world, &site, &before.issued.access_token).await?;
    same("who", guest.who().await?, "alice: notes:read")?;
    same("visits", guest.person.visits(), 2)?;
    let after = world.issuer.counts().await?;
    same("refreshes", after.refreshes, before.counts.refreshes)?;
    same("refusals", after.refusals, before.counts.refusals + 1)
}

/// Without its grant, an opaque token is invalid; a signed one is valid until it or its key
/// expires.
async fn spoil_if_alive(world: &World, site: &Site, token: &str) -> Outcome {
    match world.format {
        Format::Jwt => {
            site.admits(token).await?;
            spoil(world, site, token).await
        }
        Format::Opaque => site.rejects("a token without its grant", token).await,
    }
}

/// Using a refresh token twice revokes the whole grant, and the user logs in again.
async fn replayed(world: World) -> Outcome {
    let site = world.site().await?;
    let guest = site.guest().await?;
    let stolen = world.issuer.state().await?.issued;
    spoil(&world, &site, &stolen.access_token).await?;
    same("who", guest.who().await?, "alice: notes:read")?;
    let client = client_id(&guest).await?;
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", &stolen.refresh_token),
        ("client_id", &client),
    ];
    let answer = world.issuer.post("/token", &form).await?;
    same("replay", answer.status().as_u16(), 400)?;
    // The issuer has revoked the grant for everyone, including the honest client.
    let renewed = world.issuer.state().await?.issued;
    spoil_if_alive(&world, &site, &renewed.access_token).await?;
    same("who", guest.who().await?, "alice: notes:read")?;
    same("visits", guest.person.visits(), 2)
}

/// A revoked token is rejected, and its client asks the user again.
async fn revocation(world: World) -> Outcome {
    let site = world.site().await?;
    let guest = site.guest().await?;
    let issued = world.issuer.state().await?.issued;
    if world.format == Format::Jwt {
        // Signed tokens cannot be revoked, and the issuer says so; refresh tokens can.
        let client = client_id(&guest).await?;
        let form = [("token", issued.access_token.as_str()), ("client_id", &client)];
        let answer = world.issuer.post("/token/revocation", &form).await?;
        same("revocation of a JWT", answer.status().as_u16(), 400)?;
        revoke(&world, &guest, &issued.refresh_token, "refresh_token").await?;
        return site.admits(&issued.access_token).await;
    }
    site.admits(&issued.access_token).await?;
    revoke(&world, &guest, &issued.access_token, "access_token").await?;
    site.rejects("a revoked token", &issued.access_token).await?;
    same("who", guest.who().await?, "alice: notes:read")?;
    same("visits", guest.person.visits(), 2)
}

/// An issuer that has lost all its data: clients register and users log in again.
async fn lost_memory(world: World) -> Outcome {
    let site = world.site().await?;
    let guest = site.guest().await?;
    let before = world.issuer.state().await?;
    spoil(&world, &site, &before.issued.access_token).await?;
    world.issuer.tell("lose", json!({})).await?;
    same("who", guest.who().await?, "alice: notes:read")?;
    same("visits", guest.person.visits(), 2)?;
    let after = world.issuer.counts().await?;
    same("registrations", after.registrations, before.counts.registrations + 1)
}

async fn client_id(guest: &Guest) -> Result<String, BoxError> {
    Ok(guest.client.call_tool("client_id", json!({})).text().await?)
}

async fn revoke(world: &World, guest: &Guest, token: &str, kind: &str) -> Outcome {
    let client = client_id(guest).await?;
    let form = [("token", token), ("token_type_hint", kind), ("client_id", &client)];
    let answer = world.issuer.post("/token/revocation", &form).await?;
    same("revocation", answer.status().as_u16(), 200)
}

/// Processes that share a store refresh a shared token once, and none invalidates another's token.
async fn shared(world: World) -> Outcome {
    let folder = Folder::new();
    let site = world.site().await?;
    let person = Person::new(&world.issuer.web);
    let mut clients = Vec::new();
    for _ in 0..3 {
        let oauth = site.oauth(&person).store(FileStore::open(&folder.0)?).build()?;
        clients.push(site.connect(oauth).await?);
    }
    same("visits", person.visits(), 1)?;
    for _ in 0..3 {
        let before = world.issuer.state().await?;
        spoil(&world, &site, &before.issued.access_token).await?;
        let mut work = tokio::task::JoinSet::new();
        for client in clients.clone() {
            work.spawn(async move {
                client.call_tool("who", json!({})).text().await.map_err(BoxError::from)
            });
        }
        for _ in 0..3 {
            let (world, url, store) = (world.clone(), site.url.clone(), folder.0.clone());
            work.spawn(async move { visitor::send(&world, &url, &store).await });
        }
        while let Some(said) = work.join_next().await {
            same("who", said??, "alice: notes:read")?;
        }
        let after = world.issuer.counts().await?;
        same("refreshes", after.refreshes, before.counts.refreshes + 1)?;
        same("refusals", after.refusals, before.counts.refusals)?;
    }
    same("visits", person.visits(), 1)
}

/// A folder that does not exist yet, deleted on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("auth-walk-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
