//! What clients are told, to the byte; what a token is worth; what the metadata say.

use bowline_auth::verify::{Guard, Identity, StaticTokens, VerifyError};
use http::Request;
use serde_json::json;

use crate::world::{
    ISSUER, RESOURCE, Signer, challenges, claims, present, request, verifier, with,
};

fn guard(signer: &Signer) -> Guard {
    Guard::new(RESOURCE, verifier(&[signer])).unwrap().scopes(["mcp"]).unwrap()
}

const METADATA: &str = r#"resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", scope="mcp""#;

#[tokio::test]
async fn without_a_token_the_way_to_one_is_told() {
    let signer = Signer::new("k", "ES256");
    let guard = guard(&signer);
    for authorization in [&[][..], &["Basic YTpi"], &["Digest x"]] {
        let denial = guard.check(&request(authorization)).await.unwrap_err();
        assert_eq!(denial.status, 401);
        // No error: nothing was wrong with a token that is not there.
        assert_eq!(challenges(&denial), [format!("Bearer {METADATA}")]);
    }
    let denial = present(&guard, "x.y.z").await.unwrap_err();
    let expected = format!(
        r#"Bearer error="invalid_token", error_description="the token is malformed", {METADATA}"#
    );
    assert_eq!((denial.status.as_u16(), challenges(&denial)), (401, vec![expected.as_str()]));
}

#[tokio::test]
async fn malformed_requests() {
    let signer = Signer::new("k", "ES256");
    let guard = guard(&signer);
    let token = format!("Bearer {}", signer.sign(&claims()));
    let cases: [&[&str]; 7] = [
        &["Bearer"],
        &["Bearer "],
        &["Bearer a b"],
        &["Bearer a,b"],
        &["Bearer \"a\""],
        &["Bearer ="],
        &[&token, &token],
    ];
    for authorization in cases {
        let denial = guard.check(&request(authorization)).await.unwrap_err();
        assert_eq!(denial.status, 400, "{authorization:?}");
        assert!(challenges(&denial)[0].starts_with(r#"Bearer error="invalid_request""#));
    }
    let url = format!("/mcp?access_token={}", signer.sign(&claims()));
    let in_url = Request::post(url).header("authorization", &token).body(()).unwrap();
    assert_eq!(guard.check(&in_url.into_parts().0).await.unwrap_err().status, 400);
    for good in [token.replace("Bearer", "bearer"), token.replace("Bearer ", "BEARER  ")] {
        guard.check(&request(&[&good])).await.unwrap();
    }
}

#[tokio::test]
async fn scopes_that_are_missing_are_told_at_once() {
    let signer = Signer::new("k", "ES256");
    let guard = guard(&signer);
    let denial = present(&guard, &signer.sign(&with(json!({"scope": "read"})))).await.unwrap_err();
    let expected = r#"Bearer error="insufficient_scope", scope="mcp", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", error_description="the token does not allow this""#;
    assert_eq!((denial.status.as_u16(), challenges(&denial)), (403, vec![expected]));
    let more = guard.insufficient_scope(&["write".into(), "mcp".into(), "admin".into()]);
    assert!(challenges(&more)[0].contains(r#"scope="mcp write admin""#));
}

#[tokio::test]
async fn wide_scopes_include_narrow_ones() {
    let signer = Signer::new("k", "ES256");
    let guard = guard(&signer).implies("admin", "write").implies("write", "mcp");
    let identity = present(&guard, &signer.sign(&with(json!({"scope": "admin"})))).await.unwrap();
    let scopes: Vec<_> = identity.scopes.into_iter().collect();
    assert_eq!(scopes, ["admin", "mcp", "write"]);
    present(&guard, &signer.sign(&with(json!({"scope": "wri"})))).await.unwrap_err();
}

#[tokio::test]
async fn another_audience_can_be_allowed() {
    let signer = Signer::new("k", "ES256");
    let token = signer.sign(&with(json!({"aud": "api://mcp"})));
    assert_eq!(present(&guard(&signer), &token).await.unwrap_err().status, 401);
    present(&guard(&signer).audience("api://mcp"), &token).await.unwrap();
}

#[tokio::test]
async fn a_function_verifies() {
    let guard = Guard::new(RESOURCE, |token: String| async move {
        match token.as_str() {
            "good" => Ok(Identity::new("somebody")),
            // Its own word on the audience is checked like that of any other.
            "foreign" => {
                let mut identity = Identity::new("somebody");
                identity.audiences = Some(vec!["https://other.example.com".into()]);
                Ok(identity)
            }
            "later" => Err(VerifyError::unavailable("the database is away")),
            _ => Err(VerifyError::Invalid("no such token")),
        }
    });
    let guard = guard.unwrap();
    assert_eq!(present(&guard, "good").await.unwrap().subject, "somebody");
    let status = async |token: &str| present(&guard, token).await.unwrap_err().status.as_u16();
    assert_eq!(status("foreign").await, 401);
    assert_eq!(status("bad").await, 401);
    assert_eq!(status("later").await, 503);
}

#[test]
fn metadata() {
    let signer = Signer::new("k", "ES256");
    let guard = guard(&signer).offer_scopes(["read", "mcp"]).unwrap().name("Files").require_dpop();
    let told = serde_json::to_value(guard.metadata().unwrap()).unwrap();
    assert_eq!(
        told,
        json!({
            "resource": RESOURCE,
            "authorization_servers": [ISSUER],
            "scopes_supported": ["mcp", "read"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Files",
            "dpop_signing_alg_values_supported":
                ["ES256", "ES384", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"],
            "dpop_bound_access_tokens_required": true,
        })
    );
    let paths =
        ["", "/mcp", "/mcp/"].map(|rest| format!("/.well-known/oauth-protected-resource{rest}"));
    assert!(paths.iter().all(|path| guard.is_metadata_path(path)));
    for other in [
        "/mcp",
        "/.well-known/oauth-protected-resource/x",
        "/.well-known/oauth-protected-resourcemcp",
    ] {
        assert!(!guard.is_metadata_path(other), "{other}");
    }
    let root = Guard::new("https://mcp.example.com/", StaticTokens::new()).unwrap();
    assert!(root.is_metadata_path("/.well-known/oauth-protected-resource"));
    assert_eq!(root.authority(), "mcp.example.com");
}

#[test]
fn settings_that_cannot_be() {
    for url in
        ["mcp.example.com", "ftp://mcp.example.com", "https://mcp.example.com/?x", "https://a@b/"]
    {
        assert!(Guard::new(url, StaticTokens::new()).is_err(), "{url}");
    }
    for scope in ["", "a b", "a\"", "a\\", "é", "a\n"] {
        let guard = Guard::new(RESOURCE, StaticTokens::new()).unwrap();
        assert!(guard.scopes([scope]).is_err(), "{scope}");
    }
    let guard = Guard::new(RESOURCE, StaticTokens::new()).unwrap();
    assert!(guard.authorization_server("http://login.example.com").is_err());
}
