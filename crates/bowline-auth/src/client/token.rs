//! Responses of a token endpoint, and tokens as they are stored.

use std::fmt;

use http::header::HeaderValue;
use serde::{Deserialize, Deserializer, Serialize};

use super::error::{AuthError, Reason, Step, quote};
use super::form::Form;
use super::registration::Registered;
use super::scope::Scopes;
use super::secret::{self, Secret};

/// How a token is sent to the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TokenType {
    Bearer,
    #[serde(rename = "DPoP")]
    Dpop,
}

impl TokenType {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Dpop => "DPoP",
        }
    }
}

/// A successful response of a token endpoint.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: Secret,
    token_type: String,
    #[serde(default, deserialize_with = "seconds")]
    expires_in: Option<u64>,
    refresh_token: Option<Secret>,
    scope: Option<String>,
    issued_token_type: Option<String>,
}

/// A token and its properties.
#[derive(Clone)]
pub(super) struct Grant {
    pub(super) access_token: Secret,
    pub(super) kind: Option<TokenType>,
    pub(super) expires_in: Option<u64>,
    pub(super) refresh_token: Option<Secret>,
    pub(super) scope: Option<String>,
    pub(super) issued_token_type: Option<String>,
}

#[derive(Deserialize)]
struct ErrorResponse {
    error: String,
    error_description: Option<String>,
}

impl Grant {
    /// Parses a successful response.
    pub(super) fn parse(step: Step, body: &[u8]) -> Result<Self, AuthError> {
        let response: TokenResponse = serde_json::from_slice(body).map_err(|error| {
            // serde's message may quote a value; the position is enough.
            let received = format!("a response that is not valid, at column {}", error.column());
            let expected = "a JSON object with access_token and token_type";
            AuthError::new(step, Reason::Broken, received, expected)
        })?;
        let is_sendable = HeaderValue::from_str(response.access_token.expose()).is_ok();
        if response.access_token.expose().is_empty() || !is_sendable {
            let received = "an access_token that cannot be sent in a header";
            return Err(AuthError::new(step, Reason::Broken, received, "a token of visible ASCII"));
        }
        let kinds = [TokenType::Bearer, TokenType::Dpop];
        let is_named = |kind: &TokenType| kind.name().eq_ignore_ascii_case(&response.token_type);
        let kind = kinds.into_iter().find(is_named);
        // RFC 8693: an exchanged assertion is not an access token, and says so.
        if kind.is_none() && !response.token_type.eq_ignore_ascii_case("N_A") {
            let received = format!("token_type {}", quote(&response.token_type));
            return Err(AuthError::new(step, Reason::Broken, received, "Bearer or DPoP"));
        }
        let TokenResponse {
            access_token, expires_in, refresh_token, scope, issued_token_type, ..
        } = response;
        Ok(Self { access_token, kind, expires_in, refresh_token, scope, issued_token_type })
    }
}

/// The error in a token endpoint's response; secrets in `sent` are redacted.
pub(super) fn refusal(step: Step, status: u16, body: &[u8], sent: &Form) -> AuthError {
    let expected = "a token";
    let Ok(refusal) = serde_json::from_slice::<ErrorResponse>(body) else {
        let reason = if status >= 500 { Reason::Unavailable } else { Reason::Refused };
        return AuthError::new(step, reason, format!("status {status}"), expected);
    };
    let text = refusal.error_description.map(|text| format!(", {}", quote(&sent.redact(&text))));
    let error = quote(&sent.redact(&refusal.error));
    let received = format!("status {status} with error {error}{}", text.unwrap_or_default());
    let is_temporary = status >= 500 || status == 429 || refusal.error == "temporarily_unavailable";
    let reason = if is_temporary { Reason::Unavailable } else { Reason::Refused };
    AuthError::new(step, reason, received, expected).with_code(&refusal.error)
}

/// Some servers write the number as text.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Lenient {
        Number(u64),
        Text(String),
        Other(serde::de::IgnoredAny),
    }
    Ok(match Option::<Lenient>::deserialize(deserializer)? {
        Some(Lenient::Number(number)) => Some(number),
        Some(Lenient::Text(text)) => text.parse().ok(),
        Some(Lenient::Other(_)) | None => None,
    })
}

/// Tokens for one MCP server, with everything needed to refresh them. Their origin is not looked up
/// again, because anyone who can block a lookup could then redirect it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Tokens {
    /// The name of the grant that issued them.
    pub(super) grant: String,
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    pub(super) client: Registered,
    /// The resource's own name; `None` in 2025-03-26.
    pub(super) resource: Option<String>,
    pub(super) kind: TokenType,
    #[serde(serialize_with = "secret::write")]
    pub(super) access_token: Secret,
    /// Seconds since 1970.
    pub(super) expires_at: Option<u64>,
    #[serde(serialize_with = "secret::write_some")]
    pub(super) refresh_token: Option<Secret>,
    /// What was requested, which may be more than was granted.
    pub(super) requested: Scopes,
    pub(super) granted: Scopes,
}

/// How long before its expiry a token is refreshed, in seconds.
const LEEWAY: u64 = 30;

impl Tokens {
    /// Whether the access token has expired, or is about to.
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }

    /// When a token that is valid for so many seconds should be refreshed.
    pub(super) fn end(now: u64, expires_in: Option<u64>) -> Option<u64> {
        expires_in.map(|life| now.saturating_add(life - LEEWAY.min(life / 2)))
    }

    /// The same login with refreshed tokens.
    pub(super) fn renewed(&self, grant: Grant, now: u64) -> Self {
        let mut tokens = self.clone();
        tokens.kind = grant.kind.unwrap_or(self.kind);
        tokens.access_token = grant.access_token;
        tokens.expires_at = Self::end(now, grant.expires_in);
        tokens.refresh_token = grant.refresh_token.or(tokens.refresh_token);
        if let Some(scope) = grant.scope {
            tokens.granted = Scopes::parse(&scope);
        }
        tokens
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("issuer", &self.issuer)
            .field("resource", &self.resource)
            .field("kind", &self.kind)
            .field("expires_at", &self.expires_at)
            .field("granted", &self.granted.to_string())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses() {
        fn check(body: &str, expected: Result<(Option<TokenType>, Option<u64>), &str>) {
            match (Grant::parse(Step::Token, body.as_bytes()), expected) {
                (Ok(grant), Ok(seen)) => assert_eq!((grant.kind, grant.expires_in), seen, "{body}"),
                (Err(error), Err(part)) => {
                    assert!(error.to_string().contains(part), "{body}: {error}");
                    assert!(!error.to_string().contains("t0k"), "{body}: {error}");
                }
                (outcome, _) => panic!("{body}: {:?}", outcome.map(|_| ())),
            }
        }
        let bearer = Some(TokenType::Bearer);
        check(r#"{"access_token": "t0k", "token_type": "bearer"}"#, Ok((bearer, None)));
        check(
            r#"{"access_token": "t0k", "token_type": "DPoP", "expires_in": 9}"#,
            Ok((Some(TokenType::Dpop), Some(9))),
        );
        check(
            r#"{"access_token": "t0k", "token_type": "Bearer", "expires_in": "9"}"#,
            Ok((bearer, Some(9))),
        );
        check(
            r#"{"access_token": "t0k", "token_type": "Bearer", "expires_in": -1}"#,
            Ok((bearer, None)),
        );
        check(
            r#"{"access_token": "t0k", "token_type": "Bearer", "expires_in": null}"#,
            Ok((bearer, None)),
        );
        check(r#"{"access_token": "t0k", "token_type": "N_A"}"#, Ok((None, None)));
        check(r#"{"access_token": "t0k", "token_type": "mac"}"#, Err("token_type \"mac\""));
        check(r#"{"access_token": "t0k"}"#, Err("not valid"));
        check(r#"{"access_token": "", "token_type": "Bearer"}"#, Err("in a header"));
        check(r#"{"access_token": "t0k\n", "token_type": "Bearer"}"#, Err("in a header"));
        check("access_token=t0k", Err("not valid"));
    }

    #[test]
    fn errors_redact_what_was_sent() {
        fn check(status: u16, body: &str, reason: Reason, expected: &str) {
            let sent =
                Form::new().with("grant_type", "refresh_token").with("refresh_token", "r3fr3sh");
            let error = refusal(Step::Refresh, status, body.as_bytes(), &sent);
            assert_eq!((error.received(), error.reason()), (expected, reason));
        }
        let body = r#"{"error": "invalid_grant", "error_description": "r3fr3sh is used up"}"#;
        let said = r#"status 400 with error "invalid_grant", "… is used up""#;
        check(400, body, Reason::Refused, said);
        check(400, r#"{"error": "x r3fr3sh"}"#, Reason::Refused, r#"status 400 with error "x …""#);
        check(403, "<html>", Reason::Refused, "status 403");
        check(502, "<html>", Reason::Unavailable, "status 502");
        check(429, r#"{"error": "slow"}"#, Reason::Unavailable, r#"status 429 with error "slow""#);
    }

    #[test]
    fn ends() {
        assert_eq!(Tokens::end(100, None), None);
        assert_eq!(Tokens::end(100, Some(3600)), Some(3670));
        assert_eq!(Tokens::end(100, Some(10)), Some(105));
        assert_eq!(Tokens::end(100, Some(0)), Some(100));
        assert_eq!(Tokens::end(u64::MAX, Some(u64::MAX)), Some(u64::MAX));
    }
}
