//! From claims to an identity: required claims, and validity at this time.

use serde_json::{Map, Value};

use super::{Identity, VerifyError};

type Claims = Map<String, Value>;

/// The current time, and how far clocks may differ.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) seconds: u64,
    pub(super) skew: u64,
}

/// Checks the claims of a token (RFC 7519, RFC 9068, RFC 7662).
pub(super) fn read(claims: Claims, now: Now) -> Result<Identity, VerifyError> {
    let expires = check_times(&claims, now)?;
    let client_id = text(&claims, "client_id")?.or(text(&claims, "azp")?);
    // A client that does not act for a user is its own subject.
    let subject = text(&claims, "sub")?.or(client_id).filter(|subject| !subject.is_empty());
    let subject = subject.ok_or(VerifyError::Invalid("the token has no subject"))?;
    let mut identity = Identity::new(subject);
    identity.issuer = text(&claims, "iss")?.map(str::to_owned);
    identity.client_id = client_id.map(str::to_owned);
    identity.scopes = words(&claims, "scope")?.into_iter().collect();
    identity.scopes.extend(words(&claims, "scp")?);
    identity.audiences = Some(audiences(&claims)?);
    identity.expires = expires;
    identity.key_thumbprint = confirmation(&claims)?;
    identity.claims = claims;
    Ok(identity)
}

fn check_times(claims: &Claims, now: Now) -> Result<Option<u64>, VerifyError> {
    let expires = seconds(claims, "exp")?;
    if expires.is_some_and(|end| now.seconds >= end.saturating_add(now.skew)) {
        return Err(VerifyError::Invalid("the token has expired"));
    }
    let soon = now.seconds.saturating_add(now.skew);
    if seconds(claims, "nbf")?.is_some_and(|begin| begin > soon) {
        return Err(VerifyError::Invalid("the token is not valid yet"));
    }
    if seconds(claims, "iat")?.is_some_and(|begin| begin > soon) {
        return Err(VerifyError::Invalid("the token was issued in the future"));
    }
    Ok(expires)
}

/// The whole seconds of a date, which may have a fraction.
pub(super) fn seconds(claims: &Claims, name: &str) -> Result<Option<u64>, VerifyError> {
    let wrong = VerifyError::Invalid("the token contains an invalid date");
    let Some(value) = claims.get(name) else { return Ok(None) };
    if let Some(whole) = value.as_u64() {
        return Ok(Some(whole));
    }
    match value.as_f64() {
        Some(date) if (0.0..MOST_SECONDS).contains(&date) => Ok(Some(floor(date))),
        _ => Err(wrong),
    }
}

/// Above this, a float skips seconds; no honest date is that large.
const MOST_SECONDS: f64 = 9_007_199_254_740_992.0;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked by the caller"
)]
fn floor(date: f64) -> u64 {
    date as u64
}

fn audiences(claims: &Claims) -> Result<Vec<String>, VerifyError> {
    let wrong = VerifyError::Invalid("the token's audience is not a string or a list of strings");
    match claims.get("aud") {
        None => Ok(Vec::new()),
        Some(Value::String(one)) => Ok(vec![one.clone()]),
        Some(Value::Array(many)) => many
            .iter()
            .map(|one| one.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or(wrong),
        Some(_) => Err(wrong),
    }
}

/// Scopes: words in one string, or a list of words.
fn words(claims: &Claims, name: &str) -> Result<Vec<String>, VerifyError> {
    let wrong = VerifyError::Invalid("the token's scopes are not a string or a list of strings");
    let words: Vec<&str> = match claims.get(name) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => text.split(' ').collect(),
        Some(Value::Array(many)) => {
            many.iter().map(Value::as_str).collect::<Option<_>>().ok_or(wrong)?
        }
        Some(_) => return Err(wrong),
    };
    Ok(words.into_iter().filter(|word| !word.is_empty()).map(str::to_owned).collect())
}

/// The key that the token is bound to. A binding of another kind cannot be checked, and ignoring it
/// would make a stolen token usable.
fn confirmation(claims: &Claims) -> Result<Option<String>, VerifyError> {
    let Some(confirmation) = claims.get("cnf") else { return Ok(None) };
    let thumbprint = match confirmation.as_object() {
        Some(members) if members.len() == 1 => members.get("jkt").and_then(Value::as_str),
        _ => None,
    };
    match thumbprint {
        Some(thumbprint) => Ok(Some(thumbprint.to_owned())),
        None => Err(VerifyError::Invalid("the token's binding is not supported")),
    }
}

pub(super) fn text<'a>(claims: &'a Claims, name: &str) -> Result<Option<&'a str>, VerifyError> {
    match claims.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(VerifyError::Invalid("the token has a claim of the wrong type")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: Now = Now { seconds: 1_000_000, skew: 60 };

    fn refusal(claims: Value) -> &'static str {
        let Value::Object(claims) = claims else { panic!("not an object") };
        match read(claims, NOW) {
            Err(VerifyError::Invalid(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    fn identity(claims: Value) -> Identity {
        let Value::Object(claims) = claims else { panic!("not an object") };
        read(claims, NOW).unwrap()
    }

    #[test]
    fn rejected_claims() {
        let cases = [
            (json!({"sub": "a", "exp": 999_940}), "the token has expired"),
            (json!({"sub": "a", "exp": 0}), "the token has expired"),
            (json!({"sub": "a", "nbf": 1_000_061}), "the token is not valid yet"),
            (json!({"sub": "a", "iat": 1_000_061}), "the token was issued in the future"),
            (json!({"sub": "a", "exp": "soon"}), "the token contains an invalid date"),
            (json!({"sub": "a", "exp": -1}), "the token contains an invalid date"),
            (json!({"sub": "a", "exp": 1e300}), "the token contains an invalid date"),
            (json!({"sub": "a", "nbf": null}), "the token contains an invalid date"),
            (json!({}), "the token has no subject"),
            (json!({"sub": ""}), "the token has no subject"),
            (json!({"sub": 7}), "the token has a claim of the wrong type"),
            (json!({"sub": "a", "iss": ["x"]}), "the token has a claim of the wrong type"),
            (
                json!({"sub": "a", "aud": 7}),
                "the token's audience is not a string or a list of strings",
            ),
            (
                json!({"sub": "a", "aud": [7]}),
                "the token's audience is not a string or a list of strings",
            ),
            (
                json!({"sub": "a", "scope": 7}),
                "the token's scopes are not a string or a list of strings",
            ),
            (json!({"sub": "a", "cnf": {}}), "the token's binding is not supported"),
            (json!({"sub": "a", "cnf": 7}), "the token's binding is not supported"),
            (json!({"sub": "a", "cnf": {"x5t#S256": "x"}}), "the token's binding is not supported"),
            (
                json!({"sub": "a", "cnf": {"jkt": "x", "x5t#S256": "x"}}),
                "the token's binding is not supported",
            ),
        ];
        for (claims, expected) in cases {
            assert_eq!(refusal(claims.clone()), expected, "{claims}");
        }
    }

    #[test]
    fn accepted_claims() {
        let it = identity(json!({
            "iss": "i", "sub": "s", "azp": "c", "scope": "a  b", "scp": ["d"], "aud": ["x", "y"],
            "exp": 1_000_000.5, "cnf": {"jkt": "t"}
        }));
        let scopes: Vec<_> = it.scopes.iter().map(String::as_str).collect();
        assert_eq!(scopes, ["a", "b", "d"]);
        assert_eq!((it.issuer.as_deref(), it.client_id.as_deref()), (Some("i"), Some("c")));
        assert_eq!(it.audiences, Some(vec!["x".to_owned(), "y".to_owned()]));
        assert_eq!((it.expires, it.key_thumbprint.as_deref()), (Some(1_000_000), Some("t")));
        // Clocks may be apart by the skew, in both directions.
        identity(json!({"sub": "a", "exp": 999_941, "nbf": 1_000_060, "iat": 1_000_060}));
        assert_eq!(identity(json!({"client_id": "robot"})).subject, "robot");
    }

    #[test]
    fn names_are_unique() {
        let mut one = Identity::new(r#"b","c"#);
        one.issuer = Some("a".into());
        let mut two = Identity::new("b").client("c");
        two.issuer = Some("a".into());
        assert_ne!(one.unique_name(), two.unique_name());
        let mut three = Identity::new("b").client("c");
        three.issuer = Some("a".into());
        assert_eq!(two.scopes.len(), 0);
        assert_eq!(two.unique_name(), three.scope("x").unique_name());
    }
}
