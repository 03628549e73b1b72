//! The HTTP exchanges of a login, for people to read. **Invariant:** nothing confidential is in
//! them.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bowline_proto::causes::with_causes;
use bowline_web::{Url, WebError};
use bytes::Bytes;
use http::header::HeaderMap;
use http::{Request, Response};
use serde_json::Value;

use super::error::Step;
use super::form::{self, encode, is_confidential};

/// One HTTP exchange of a login, with its secrets masked as `…`. See
/// [`OAuthBuilder::on_exchange`](super::OAuthBuilder::on_exchange).
///
/// `Display` writes all of it on several lines. Texts of peers are as they came: escape control
/// characters before they reach a terminal.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Exchange {
    /// The step of the login that it belongs to.
    pub step: Step,
    /// The method of the request.
    pub method: String,
    /// The URL of the request.
    pub url: String,
    /// The headers of the request, by name.
    pub headers: Vec<(String, String)>,
    /// The body of the request: a form, JSON, or empty.
    pub body: String,
    /// The response, or why there is none.
    pub answer: Result<ExchangeAnswer, String>,
    /// What was sent in confidence, which the response may repeat.
    sent: Vec<(String, String)>,
}

/// The response of an [`Exchange`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExchangeAnswer {
    /// The status.
    pub status: u16,
    /// The headers, by name.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

const MASK: &str = "…";

impl Exchange {
    /// What is about to be sent.
    pub(super) fn asked(step: Step, url: &Url, request: &Request<Bytes>) -> Self {
        let body = String::from_utf8_lossy(request.body());
        let is_form = request.headers().get(http::header::CONTENT_TYPE).is_some_and(|media| {
            media.as_bytes().starts_with(b"application/x-www-form-urlencoded")
        });
        let sent = if is_form { form::decode(&body).unwrap_or_default() } else { Vec::new() };
        let body = if is_form { masked_form(&sent) } else { masked(step, &body, &[]) };
        Self {
            step,
            method: request.method().to_string(),
            url: url.to_string(),
            headers: shown(request.headers(), &[]),
            body,
            answer: Err("no response yet".to_owned()),
            sent,
        }
    }

    /// The same with what came back.
    pub(super) fn answered(mut self, response: &Result<Response<Bytes>, WebError>) -> Self {
        let sent = std::mem::take(&mut self.sent);
        self.answer = match response {
            Ok(response) => Ok(ExchangeAnswer {
                status: response.status().as_u16(),
                headers: shown(response.headers(), &sent),
                body: masked(self.step, &String::from_utf8_lossy(response.body()), &sent),
            }),
            Err(error) => Err(with_causes(error)),
        };
        self
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} {}", self.step, self.method, self.url)?;
        write_part(f, &self.headers, &self.body)?;
        match &self.answer {
            Ok(answer) => {
                writeln!(f, "status {}", answer.status)?;
                write_part(f, &answer.headers, &answer.body)
            }
            Err(problem) => writeln!(f, "no response: {problem}"),
        }
    }
}

fn write_part(f: &mut fmt::Formatter<'_>, headers: &[(String, String)], body: &str) -> fmt::Result {
    for (name, value) in headers {
        writeln!(f, "  {name}: {value}")?;
    }
    if body.is_empty() { Ok(()) } else { writeln!(f, "  {body}") }
}

fn shown(headers: &HeaderMap, sent: &[(String, String)]) -> Vec<(String, String)> {
    const SECRET: [&str; 5] =
        ["authorization", "proxy-authorization", "cookie", "set-cookie", "dpop"];
    let shown = headers.iter().map(|(name, value)| {
        let is_secret = value.is_sensitive() || SECRET.contains(&name.as_str());
        let text = String::from_utf8_lossy(value.as_bytes());
        let text = if is_secret { MASK.to_owned() } else { redact(sent, &text) };
        (name.as_str().to_owned(), text)
    });
    shown.collect()
}

fn masked_form(pairs: &[(String, String)]) -> String {
    let shown = pairs.iter().map(|(name, value)| match is_confidential(name) {
        true => format!("{}={MASK}", encode(name)),
        false => format!("{}={}", encode(name), encode(value)),
    });
    shown.collect::<Vec<_>>().join("&")
}

/// A body without secrets: those of its own members, and those that were sent.
fn masked(step: Step, body: &str, sent: &[(String, String)]) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(body) else {
        // Nothing tells which part of such a body is a secret.
        let may_show = !matches!(step, Step::Token | Step::Refresh | Step::Assertion);
        return match (may_show, body.len()) {
            (true, _) => redact(sent, body),
            (false, 0) => String::new(),
            (false, length) => format!("({length} bytes that are not JSON)"),
        };
    };
    let is_token = matches!(step, Step::Token | Step::Refresh | Step::Assertion);
    mask(&mut value, if is_token { is_shown_of_tokens } else { is_shown });
    redact(sent, &value.to_string())
}

/// Masks the members of objects that must not be shown.
fn mask(value: &mut Value, is_shown: fn(&str) -> bool) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                match member {
                    Value::Null | Value::Bool(_) | Value::Number(_) => {}
                    _ if is_shown(name) => mask(member, is_shown),
                    _ => *member = MASK.into(),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, is_shown)),
        _ => {}
    }
}

/// Of a response with tokens, only what is known to be harmless.
fn is_shown_of_tokens(name: &str) -> bool {
    let harmless =
        ["token_type", "issued_token_type", "scope", "error", "error_description", "error_uri"];
    harmless.contains(&name)
}

fn is_shown(name: &str) -> bool {
    let is_secret = name.ends_with("_token") || name.ends_with("secret") || name.ends_with("code");
    !is_secret && !["password", "assertion", "code_verifier"].contains(&name)
}

fn redact(sent: &[(String, String)], text: &str) -> String {
    form::redact(sent.iter().map(|(name, value)| (name.as_str(), value.as_str())), text)
}

/// A function that receives every exchange.
#[derive(Clone)]
pub(super) struct OnExchange(Arc<dyn Fn(&Exchange) + Send + Sync>);

impl OnExchange {
    pub(super) fn new(hook: impl Fn(&Exchange) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }

    /// Calls the function. A panic in it does not end the login.
    pub(super) fn tell(&self, exchange: &Exchange) {
        if catch_unwind(AssertUnwindSafe(|| (self.0)(exchange))).is_err() {
            tracing::error!("a hook of the application panicked");
        }
    }
}

impl fmt::Debug for OnExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnExchange")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_masked() {
        fn check(step: Step, body: &str, expected: &str) {
            let sent = [("code".to_owned(), "c0de".to_owned())];
            assert_eq!(masked(step, body, &sent), expected);
        }
        let token = r#"{"access_token":"t","expires_in":9,"extra":"t","token_type":"Bearer"}"#;
        let shown = r#"{"access_token":"…","expires_in":9,"extra":"…","token_type":"Bearer"}"#;
        check(Step::Token, token, shown);
        let refusal = r#"{"error":"invalid_grant","error_description":"c0de is used up"}"#;
        let shown = r#"{"error":"invalid_grant","error_description":"… is used up"}"#;
        check(Step::Token, refusal, shown);
        check(Step::Refresh, "access_token=t", "(14 bytes that are not JSON)");
        check(Step::Refresh, "", "");
        let registered =
            r#"{"client_id":"a","client_secret":"s","x":[{"registration_access_token":"t"}]}"#;
        let shown =
            r#"{"client_id":"a","client_secret":"…","x":[{"registration_access_token":"…"}]}"#;
        check(Step::Registration, registered, shown);
        check(Step::ServerMetadata, "<html>", "<html>");
        let metadata =
            r#"{"grant_types_supported":["authorization_code"],"token_endpoint":"https://a/"}"#;
        check(Step::ServerMetadata, metadata, metadata);
    }

    #[test]
    fn forms_are_masked() {
        let pairs = form::decode("grant_type=x&code=c&client_id=a%20b&client_secret=s").unwrap();
        let shown = "grant_type=x&code=…&client_id=a%20b&client_secret=…";
        assert_eq!(masked_form(&pairs), shown);
    }
}
