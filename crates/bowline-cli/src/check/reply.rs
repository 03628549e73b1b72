//! The answer to a request: what it is, and words for what it is not.

use serde_json::Value;

use super::probe::{Outcome, PASS, Trouble, broken};
use super::wire::Heard;

/// An answer, and the exchange that it came with.
pub(super) struct Reply {
    pub(super) heard: Heard,
    message: Option<Value>,
    method: String,
}

impl Reply {
    /// What was heard after this method was asked for, and the answer in it.
    pub(super) fn new(heard: Heard, message: Option<Value>, method: String) -> Self {
        Self { heard, message, method }
    }

    /// Its result.
    pub(super) fn into_result(self) -> Result<Value, Trouble> {
        match self.message.as_ref().and_then(|message| message.get("result")) {
            Some(result) => Ok(result.clone()),
            None => broken(format!("{} was answered with {}", self.method, self.describe())),
        }
    }

    /// Whether it is a result.
    pub(super) fn is_result(&self) -> bool {
        self.message.as_ref().is_some_and(|message| message.get("result").is_some())
    }

    /// The error in it.
    pub(super) fn error(&self) -> Option<&Value> {
        self.message.as_ref()?.get("error")
    }

    pub(super) fn code(&self) -> Option<i64> {
        self.error()?.get("code")?.as_i64()
    }

    /// The whole answer.
    pub(super) fn message(&self) -> Option<&Value> {
        self.message.as_ref()
    }

    /// Passes for an error with one of these codes.
    pub(super) fn expect_code(&self, what: &str, codes: &[i64]) -> Outcome {
        match self.code() {
            Some(code) if codes.contains(&code) => PASS,
            _ => {
                let wanted: Vec<String> = codes.iter().map(i64::to_string).collect();
                let (wanted, got) = (wanted.join(" or "), self.describe());
                broken(format!("{what} was answered with {got}, not with error {wanted}"))
            }
        }
    }

    /// What came, in a few words.
    pub(super) fn describe(&self) -> String {
        match (&self.message, self.heard.status) {
            (Some(message), _) => match message.get("error") {
                Some(error) => {
                    let text = error.get("message").and_then(Value::as_str).unwrap_or_default();
                    let text = super::evidence::shorten(text, 160);
                    format!("error {} ({text})", error.get("code").unwrap_or(&Value::Null))
                }
                None if message.pointer("/result/isError") == Some(&Value::Bool(true)) => {
                    "a result that says isError".to_owned()
                }
                None => "a result".to_owned(),
            },
            (None, Some(status)) => format!("HTTP {status} and no message"),
            (None, None) => "nothing".to_owned(),
        }
    }
}
