//! Tokens with one defect, and keys that change.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::site::Site;
use crate::{BoxError, Check, Outcome, World, check, same};

/// The checks for signed tokens.
pub(crate) const JWT: &[Check] = &[
    check!("wrong-audience", wrong_audience),
    check!("wrong-issuer", wrong_issuer),
    check!("expired", expired),
    check!("not-yet-valid", not_yet_valid),
    check!("alg-none", alg_none),
    check!("confused-alg", confused_alg),
    check!("wrong-kind", wrong_kind),
    check!("key-rotation", key_rotation),
];

/// The checks for opaque tokens.
pub(crate) const OPAQUE: &[Check] = &[
    check!("wrong-audience", wrong_audience_opaque),
    check!("wrong-issuer", wrong_issuer),
    check!("expired", expired),
    check!("not-yet-valid", not_yet_valid),
    check!("alg-none", alg_none),
    check!("confused-alg", confused_alg),
    check!("wrong-kind", wrong_kind_opaque),
];

const ELSEWHERE: &str = "http://127.0.0.1:9/mcp";

#[expect(clippy::disallowed_methods, reason = "some tokens here are not valid yet or have expired")]
fn now() -> Result<u64, BoxError> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}

/// Tokens that the issuer issued for another server, and for this one.
async fn genuine(world: &World, site: &Site) -> Outcome {
    world.promise(ELSEWHERE, 300).await?;
    site.admits(&world.issuer.token_for(&site.url).await?).await?;
    site.rejects("a token for another server", &world.issuer.token_for(ELSEWHERE).await?).await
}

async fn wrong_audience(world: World) -> Outcome {
    let site = world.site().await?;
    genuine(&world, &site).await?;
    let origin = site.url.trim_end_matches("/mcp").to_owned();
    site.rejects_all(&[
        ("another", json!({ "claims": { "aud": ELSEWHERE } })),
        ("a list of others", json!({ "claims": { "aud": [ELSEWHERE, "x"] } })),
        ("none", json!({ "claims": { "aud": null } })),
        ("an empty list", json!({ "claims": { "aud": [] } })),
        ("the issuer", json!({ "claims": { "aud": world.issuer.url } })),
        ("the origin", json!({ "claims": { "aud": origin } })),
        ("below", json!({ "claims": { "aud": format!("{}/more", site.url) } })),
        ("longer", json!({ "claims": { "aud": format!("{}2", site.url) } })),
        ("with a query", json!({ "claims": { "aud": format!("{}?a", site.url) } })),
    ])
    .await
}

async fn wrong_audience_opaque(world: World) -> Outcome {
    let site = world.site().await?;
    genuine(&world, &site).await
}

async fn wrong_issuer(world: World) -> Outcome {
    let site = world.site().await?;
    site.rejects_all(&[
        ("another", json!({ "claims": { "iss": "https://login.example.com" } })),
        ("with a slash", json!({ "claims": { "iss": format!("{}/", world.issuer.url) } })),
        ("none", json!({ "claims": { "iss": null } })),
        ("the server itself", json!({ "claims": { "iss": site.url } })),
        ("of foreign keys", json!({ "key": "foreign" })),
        ("of a foreign key under a known name", json!({ "key": "foreign", "name": "own" })),
    ])
    .await
}

async fn expired(world: World) -> Outcome {
    let site = world.site_with(1, |guard| guard).await?;
    let token = world.issuer.token_for(&site.url).await?;
    site.waits_for_the_end_of(&token).await?;
    site.rejects_all(&[
        ("just now", json!({ "claims": { "exp": now()? - 1 } })),
        ("long ago", json!({ "claims": { "exp": 1 } })),
        ("never", json!({ "claims": { "exp": null } })),
        ("in words", json!({ "claims": { "exp": "tomorrow" } })),
        ("before zero", json!({ "claims": { "exp": -1 } })),
    ])
    .await
}

async fn not_yet_valid(world: World) -> Outcome {
    let site = world.site().await?;
    site.rejects_all(&[
        ("soon", json!({ "claims": { "nbf": now()? + 30 } })),
        ("far off", json!({ "claims": { "nbf": u32::MAX } })),
        ("in words", json!({ "claims": { "nbf": "tomorrow" } })),
    ])
    .await
}

async fn alg_none(world: World) -> Outcome {
    let site = world.site().await?;
    let mut odd = Vec::new();
    for alg in ["none", "None", "NONE", "nOnE", ""] {
        odd.push(("unsigned", json!({ "header": { "alg": alg }, "seal": "none" })));
        odd.push(("signed nevertheless", json!({ "header": { "alg": alg } })));
    }
    odd.push(("without a name", json!({ "header": { "alg": null }, "seal": "none" })));
    odd.push(("without its signature", json!({ "seal": "none" })));
    site.rejects_all(&odd).await
}

async fn confused_alg(world: World) -> Outcome {
    let site = world.site().await?;
    let mut odd = vec![
        ("a public key as a secret", json!({ "header": { "alg": "HS256" }, "seal": "public" })),
        ("the same under RS256", json!({ "header": { "alg": "RS256" }, "seal": "public" })),
        ("a key of another kind", json!({ "header": { "alg": "PS512" } })),
        ("an extension", json!({ "header": { "crit": ["x"], "x": 1 } })),
        ("a key of its own", json!({ "key": "foreign", "header": { "jwk": {}, "kid": null } })),
    ];
    let address = format!("{}/jwks", world.issuer.url);
    let links = json!({ "jku": address, "x5u": address });
    odd.push(("keys of its own", json!({ "key": "foreign", "header": links })));
    site.rejects_all(&odd).await
}

/// Tokens that the same keys sign for other purposes.
async fn wrong_kind(world: World) -> Outcome {
    let site = world.site().await?;
    let kind = |kind: &str| json!({ "header": { "typ": kind } });
    site.admits(&site.mint(&kind("JWT")).await?).await?;
    site.admits(&site.mint(&kind("application/at+jwt")).await?).await?;
    site.rejects_all(&[
        ("a proof", kind("dpop+jwt")),
        ("a logout", kind("logout+jwt")),
        ("an introspection", kind("token-introspection+jwt")),
        ("a grant", kind("oauth-id-jag+jwt")),
    ])
    .await
}

/// Tokens that the same issuer issues for other purposes.
async fn wrong_kind_opaque(world: World) -> Outcome {
    let site = world.site().await?;
    let guest = site.guest().await?;
    let issued = world.issuer.state().await?.issued;
    site.admits(&issued.access_token).await?;
    site.rejects("a refresh token", &issued.refresh_token).await?;
    site.rejects("half a token", &issued.access_token[..20]).await?;
    same("who", guest.who().await?, "alice: notes:read")
}

/// Keys change while servers and clients keep running.
async fn key_rotation(world: World) -> Outcome {
    let site = world.site().await?;
    let guest = site.guest().await?;
    let old = site.mint(&json!({})).await?;
    site.admits(&old).await?;
    let before = world.issuer.counts().await?;
    // New keys are added: both are valid, and the server fetches them once.
    world.issuer.tell("rotate", json!({ "keep": true })).await?;
    for header in [json!({}), json!({ "alg": "ES256" })] {
        site.admits(&site.mint(&json!({ "header": header })).await?).await?;
    }
    site.admits(&old).await?;
    let fetched = world.issuer.counts().await?.key_fetches - before.key_fetches;
    same("key fetches", fetched, 1)?;
    same("who", guest.who().await?, "alice: notes:read")?;
    same("refreshes", world.issuer.counts().await?.refreshes, before.refreshes)?;
    // The old keys are removed: what they signed is invalid once the server fetches the keys again.
    world.issuer.tell("rotate", json!({})).await?;
    site.admits(&site.mint(&json!({})).await?).await?;
    site.rejects("a token of an old key", &old).await?;
    same("who", guest.who().await?, "alice: notes:read")?;
    same("refreshes", world.issuer.counts().await?.refreshes, before.refreshes + 1)?;
    same("visits", guest.person.visits(), 1)
}
