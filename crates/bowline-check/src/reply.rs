//! What came back after a frame was sent, and what to say about it.

use std::time::Duration;

use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::observed::envelope_problem;
use crate::probe::{NotPassed, Outcome, broken, ensure};
use crate::text::shorten;

/// Everything that came back.
#[derive(Debug, Clone, Default)]
pub struct Received {
    /// Over HTTP. Over HTTP+SSE only if the POST was rejected: all else comes on the stream.
    pub status: Option<StatusCode>,
    /// The headers of the response.
    pub headers: HeaderMap,
    /// In order; the members of a batch one by one.
    pub messages: Vec<Value>,
    /// The beginning of the body.
    pub body: Vec<u8>,
    /// Whether the body is an event stream.
    pub is_stream: bool,
    /// Whether an event stream was still open at the end.
    pub left_open: bool,
    /// Time from the head to the first byte of the body.
    pub first_byte: Option<Duration>,
}

impl Received {
    /// The answer to a request. Over HTTP, an error without a readable id counts, since the
    /// exchange tells what it answers.
    pub(crate) fn answer(&self, id: &Value) -> Option<&Value> {
        let exact = self.responses().find(|message| message.get("id") == Some(id));
        exact.or_else(|| {
            let has_no_id = |message: &&Value| message.get("id").is_none_or(Value::is_null);
            self.status.and_then(|_| self.responses().find(has_no_id))
        })
    }

    /// All results and errors.
    pub(crate) fn responses(&self) -> impl Iterator<Item = &Value> {
        self.messages.iter().filter(|message| message.get("method").is_none())
    }

    /// Whether any of them is a result.
    pub(crate) fn has_result(&self) -> bool {
        self.responses().any(|answer| answer.get("result").is_some())
    }

    /// The code of the first error.
    pub(crate) fn code(&self) -> Option<i64> {
        self.responses().find_map(|message| message.pointer("/error/code")?.as_i64())
    }

    /// The status, where there is one.
    pub(crate) fn http_status(&self) -> StatusCode {
        self.status.unwrap_or_default()
    }

    /// Passes for one of these statuses.
    pub(crate) fn expect_status(&self, what: &str, wanted: &[u16]) -> Outcome {
        let got = self.http_status();
        ensure(wanted.contains(&got.as_u16()), || {
            format!("{what} got {got}, expected {}", either(wanted))
        })
    }

    /// Passes for any status from 400 to 499.
    pub(crate) fn expect_rejection(&self, what: &str) -> Outcome {
        let got = self.http_status();
        ensure(got.is_client_error(), || format!("{what} got {got}, expected a rejection"))
    }

    /// Passes for an error with one of these codes. Over HTTP, a status is enough.
    pub(crate) fn expect_error(&self, what: &str, wanted: &[i64]) -> Outcome {
        let is_rejected = self.status.is_some_and(|status| status.is_client_error());
        let got = match self.code() {
            Some(code) if wanted.contains(&code) => return Ok(None),
            None if is_rejected => return Ok(None),
            Some(code) => format!("error {code}"),
            None if self.responses().next().is_some() => "a result".to_owned(),
            None => "no response".to_owned(),
        };
        broken(format!("{what} got {got}, expected error {}", either(wanted)))
    }

    /// What was not a message.
    pub(crate) fn other(&self) -> String {
        let is_other = self.messages.is_empty() && !self.is_stream;
        let body: &[u8] = if is_other { &self.body } else { &[] };
        shorten(&String::from_utf8_lossy(body), 400)
    }

    /// Where a redirect leads.
    pub(crate) fn redirect(&self) -> Option<String> {
        let location = self.headers.get(LOCATION)?;
        let is_redirect = self.status.is_some_and(|status| status.is_redirection());
        is_redirect.then(|| shorten(&String::from_utf8_lossy(location.as_bytes()), 160))
    }

    /// What came in place of a response.
    pub(crate) fn describe_silence(&self) -> String {
        let Some(status) = self.status else { return "no response".to_owned() };
        let got = match (self.redirect(), self.other()) {
            (Some(location), _) => format!(", but a redirect to {location}"),
            (None, other) if other.is_empty() => String::new(),
            (None, other) => format!(", but {:?}", shorten(&other, 120)),
        };
        format!("{status} and no message{got}")
    }
}

/// An answer, and the exchange that it came with.
pub struct Reply {
    /// Everything that came.
    pub received: Received,
    /// The answer, as it came.
    pub message: Option<Value>,
    pub(crate) method: String,
}

impl Reply {
    /// The result, or the lack of one as a problem.
    pub(crate) fn into_result(self) -> Result<Value, NotPassed> {
        match self.result() {
            Some(result) => Ok(result.clone()),
            None => broken(format!("{} got {}", self.method, self.describe())),
        }
    }

    /// What is wrong with its envelope.
    pub fn problem(&self) -> Option<&'static str> {
        self.message.as_ref().and_then(envelope_problem)
    }

    pub(crate) fn result(&self) -> Option<&Value> {
        self.message.as_ref()?.get("result")
    }

    pub(crate) fn error(&self) -> Option<&Value> {
        self.message.as_ref()?.get("error")
    }

    pub(crate) fn code(&self) -> Option<i64> {
        self.error()?.get("code")?.as_i64()
    }

    /// Whether it is a result that reports the failure of a tool.
    pub(crate) fn is_tool_error(&self) -> bool {
        self.result().is_some_and(|result| result.get("isError") == Some(&Value::Bool(true)))
    }

    /// Passes for a result.
    pub(crate) fn expect_result(&self, what: &str) -> Outcome {
        ensure(self.result().is_some(), || format!("{what} got {}", self.describe()))
    }

    /// Passes for anything but a result, or for one that reports the failure of a tool.
    pub(crate) fn expect_failure(&self, what: &str) -> Outcome {
        ensure(self.result().is_none() || self.is_tool_error(), || format!("{what} got a result"))
    }

    /// Passes for an error with one of these codes.
    pub(crate) fn expect_code(&self, what: &str, wanted: &[i64]) -> Outcome {
        ensure(self.code().is_some_and(|code| wanted.contains(&code)), || {
            format!("{what} got {}, expected error {}", self.describe(), either(wanted))
        })
    }

    /// Passes for an error with this code and HTTP status.
    pub(crate) fn expect_both(&self, what: &str, code: i64, status: u16) -> Outcome {
        self.expect_code(what, &[code])?;
        let got = self.received.http_status();
        ensure(got.as_u16() == status, || {
            format!("{what} got error {code} with status {got}, expected {status}")
        })
    }

    /// What came, in a few words.
    pub(crate) fn describe(&self) -> String {
        let Some(message) = &self.message else { return self.received.describe_silence() };
        match message.get("error") {
            Some(error) => {
                let text = error.get("message").and_then(Value::as_str).unwrap_or_default();
                let code = error.get("code").unwrap_or(&Value::Null);
                format!("error {code} ({})", shorten(text, 160))
            }
            None if self.is_tool_error() => "a result with isError".to_owned(),
            None => "a result".to_owned(),
        }
    }
}

fn either<T: ToString>(wanted: &[T]) -> String {
    wanted.iter().map(T::to_string).collect::<Vec<_>>().join(" or ")
}
