//! Tokens that are wrong in one thing, and keys that change.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::site::Site;
use crate::{Check, Outcome, Trouble, World, check, same};

/// What holds of signed tokens.
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

/// What holds of tokens that their issuer is asked about.
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

#[expect(clippy::disallowed_methods, reason = "tokens are made here that are early or late")]
fn now() -> Result<u64, Trouble> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}

/// A token that the issuer gave for another server, and for this one.
async fn genuine(world: &World, site: &Site) -> Outcome {
    world.promise(ELSEWHERE, 300).await?;
    site.admits(&world.issuer.token_for(&site.url).await?).await?;
    site.refuses("a token for another server", &world.issuer.token_for(ELSEWHERE).await?).await
}

async fn wrong_audience(world: World) -> Outcome {
    let site = world.site().await?;
    genuine(&world, &site).await?;
    let origin = site.url.trim_end_matches("/mcp").to_owned();
    site.refuses_all(&[
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
    site.refuses_all(&[
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
    site.refuses_all(&[
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
    site.refuses_all(&[
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
    site.refuses_all(&odd).await
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
    let place = json!({ "jku": address, "x5u": address });
    odd.push(("keys of its own", json!({ "key": "foreign", "header": place })));
    site.refuses_all(&odd).await
}

/// What the same keys sign for other purposes.
async fn wrong_kind(world: World) -> Outcome {
    let site = world.site().await?;
    let kind = |kind: &str| json!({ "header": { "typ": kind } });
    site.admits(&site.mint(&kind("JWT")).await?).await?;
    site.admits(&site.mint(&kind("application/at+jwt")).await?).await?;
    site.refuses_all(&[
        ("a proof", kind("dpop+jwt")),
        ("a logout", kind("logout+jwt")),
        ("an introspection", kind("token-introspection+jwt")),
        ("a grant", kind("oauth-id-jag+jwt")),
    ])
    .await
}

/// What the same issuer gives out for other purposes.
async fn wrong_kind_opaque(world: World) -> Outcome {
    let site = world.site().await?;
    let guest = site.guest().await?;
    let issued = world.issuer.state().await?.issued;
    site.admits(&issued.access_token).await?;
    site.refuses("a refresh token", &issued.refresh_token).await?;
    site.refuses("half a token", &issued.access_token[..20]).await?;
    same("who", guest.who().await?, "alice: notes:read")
}

/// Keys change while servers and clients go on.
async fn key_rotation(world: World) -> Outcome {
    let site = world.site().await?;
    let guest = site.guest().await?;
    let old = site.mint(&json!({})).await?;
    site.admits(&old).await?;
    let before = world.issuer.counts().await?;
    // New keys beside the old ones: both are good, and the server asks for them once.
    world.issuer.tell("rotate", json!({ "keep": true })).await?;
    for header in [json!({}), json!({ "alg": "ES256" })] {
        site.admits(&site.mint(&json!({ "header": header })).await?).await?;
    }
    site.admits(&old).await?;
    let fetched = world.issuer.counts().await?.key_fetches - before.key_fetches;
    same("key fetches", fetched, 1)?;
    same("who", guest.who().await?, "alice: notes:read")?;
    same("refreshes", world.issuer.counts().await?.refreshes, before.refreshes)?;
    // The old ones go: what they signed is void as soon as the server hears of it.
    world.issuer.tell("rotate", json!({})).await?;
    site.admits(&site.mint(&json!({})).await?).await?;
    site.refuses("a token of an old key", &old).await?;
    same("who", guest.who().await?, "alice: notes:read")?;
    same("refreshes", world.issuer.counts().await?.refreshes, before.refreshes + 1)?;
    same("visits", guest.person.visits(), 1)
}
