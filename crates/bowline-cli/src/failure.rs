//! Why a command failed: a sentence with its cause, what to do about it, and the exit code.

use bowline::client::{CallError, CloseReason, ConnectError, OpenError};
use bowline::{ErrorCode, ErrorObject};
use serde_json::json;

use crate::render::wire::time;
use crate::text::plain;

/// Exit codes. 0 means that all went well; 2 is left to the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// The command line, a file or a value is wrong: nothing was asked of the server.
    Usage = 1,
    /// The server wants to know who asks.
    Unauthorized = 3,
    /// The server cannot be connected to, or was lost.
    Unreachable = 4,
    /// The tool said that it failed.
    ToolFailed = 5,
    /// A schema that some clients cannot use.
    NotPortable = 6,
    /// The server answered with an error.
    Refused = 7,
    /// No answer in time, or the user ended it.
    TimedOut = 8,
    /// The server breaks the specification.
    Broken = 9,
}

impl Code {
    /// The word for programs.
    fn word(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Unauthorized => "unauthorized",
            Self::Unreachable => "unreachable",
            Self::ToolFailed => "tool-failed",
            Self::NotPortable => "not-portable",
            Self::Refused => "refused",
            Self::TimedOut => "timed-out",
            Self::Broken => "broken",
        }
    }
}

/// Why a command failed.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    /// What failed and why: "cannot connect: unreachable: connection refused". Empty when all has
    /// been said already.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) remedy: Option<String>,
    /// What the server said, where it was an error of the protocol.
    pub(crate) error: Option<Box<ErrorObject>>,
}

impl Failure {
    pub(crate) fn new(code: Code, what: impl Into<String>) -> Self {
        Self { code, what: what.into(), remedy: None, error: None }
    }

    /// The command line, a file or a value is wrong.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Code::Usage, what)
    }

    /// A failure of which all has been said already.
    pub(crate) fn silent(code: Code) -> Self {
        Self::new(code, "")
    }

    /// With something to do about it, unless there is something already.
    pub(crate) fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy.get_or_insert_with(|| remedy.into());
        self
    }

    /// For people: a line or two, nothing in them that a terminal could obey.
    pub(crate) fn for_people(&self) -> String {
        let mut text = format!("bowline: {}\n", plain(&self.what).trim_end());
        if let Some(remedy) = &self.remedy {
            text += &format!("  {}\n", plain(remedy).trim_end());
        }
        text
    }

    /// For programs: one line of JSON.
    pub(crate) fn for_programs(&self) -> String {
        let mut error = json!({
            "exit": self.code as u8,
            "kind": self.code.word(),
            "message": self.what,
        });
        if let Some(remedy) = &self.remedy {
            error["remedy"] = json!(remedy);
        }
        if let Some(object) = &self.error {
            error["error"] = serde_json::to_value(object).unwrap_or_default();
        }
        format!("{}\n", json!({ "error": error }))
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let what = error.to_string();
        match &error {
            OpenError::Spawn { .. } => Self::new(Code::Unreachable, what)
                .with_remedy("is it installed and on PATH? `bowline doctor` looks closer"),
            OpenError::Target(_) => Self::usage(what),
            OpenError::Connect { error, .. } => of_connect(error, what),
            OpenError::Unauthorized { .. } => Self::new(Code::Unauthorized, what),
            OpenError::TimedOut(_) => Self::new(Code::TimedOut, what).with_remedy(
                "--connect-timeout waits longer; `bowline doctor` tells where it hangs",
            ),
            _ => Self::new(Code::Unreachable, what),
        }
    }
}

fn of_connect(error: &ConnectError, what: String) -> Failure {
    match error {
        ConnectError::NoCommonRevision(_) => {
            Failure::new(Code::Refused, what).with_remedy("--revision auto lets both sides choose")
        }
        ConnectError::Refused(rejection) | ConnectError::Blocked(rejection) => {
            let code = match rejection.status {
                Some(401 | 403) => Code::Unauthorized,
                Some(_) if rejection.error.is_none() => Code::Unreachable,
                _ => Code::Refused,
            };
            let error = rejection.error.clone().map(Box::new);
            let failure = Failure { error, ..Failure::new(code, what) };
            match rejection.status {
                Some(404 | 405) => {
                    failure.with_remedy("is this the server's MCP endpoint, path included?")
                }
                _ => failure,
            }
        }
        ConnectError::TimedOut => {
            Failure::new(Code::TimedOut, what).with_remedy("`bowline doctor` tells where it hangs")
        }
        ConnectError::NothingEnabled => Failure::usage(what),
        ConnectError::Malformed | ConnectError::Contradicted => {
            Failure::new(Code::Unreachable, what)
                .with_remedy("is it an MCP server? --verbose shows what it says")
        }
        ConnectError::Unreachable(_) => Failure::new(Code::Unreachable, what)
            .with_remedy("is it running, and is the address right? `bowline doctor` looks closer"),
        ConnectError::Exited => Failure::new(Code::Unreachable, what)
            .with_remedy("`bowline doctor` looks closer; --verbose shows what was said"),
    }
}

/// What to do about questions of a server.
const ANSWERS: &str = "--answer FILE answers for you, as do --accept, --decline and --root";

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let what = error.to_string();
        match error {
            CallError::Refused { error, .. } => {
                let is_unanswered = error.code == ErrorCode::MISSING_CLIENT_CAPABILITY;
                let failure =
                    Self { error: Some(Box::new(error)), ..Self::new(Code::Refused, what) };
                match is_unanswered {
                    true => failure.with_remedy(ANSWERS),
                    false => failure,
                }
            }
            CallError::Lacks { .. } | CallError::NoSuchMethod { .. } => {
                Self::new(Code::Refused, what)
                    .with_remedy("`bowline info` shows what the server offers")
            }
            CallError::Unsupported(_) | CallError::Unsendable { .. } => Self::usage(what),
            CallError::TimedOut { method, after } => {
                let what = format!("{method}: no answer within {}", time(after.as_secs_f64()));
                Self::new(Code::TimedOut, what).with_remedy("--timeout waits longer")
            }
            CallError::Closed(CloseReason::Asked) => Self::new(Code::TimedOut, what),
            CallError::CannotAnswer { .. } => Self::new(Code::Refused, what).with_remedy(ANSWERS),
            CallError::Unauthorized { .. } => Self::new(Code::Unauthorized, what),
            CallError::ToolFailed { .. } => Self::new(Code::ToolFailed, what),
            CallError::Malformed(_) | CallError::InvalidOutput { .. } => {
                Self::new(Code::Refused, what)
                    .with_remedy("--output json shows the answer as it came")
            }
            CallError::LimitExceeded { .. } => Self::new(Code::Refused, what),
            _ => Self::new(Code::Unreachable, what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_get_a_sentence_and_a_remedy() {
        let failure = Failure::usage("no such \u{1b}[31mtool").with_remedy("try another");
        assert_eq!(failure.for_people(), "bowline: no such \\u{1b}[31mtool\n  try another\n");
    }

    #[test]
    fn programs_get_a_line_with_everything() {
        let error = ErrorObject::new(ErrorCode(-32602), "no");
        let failure = Failure::from(CallError::Refused { method: "x/y".to_owned(), error });
        let told: serde_json::Value = serde_json::from_str(&failure.for_programs()).unwrap();
        assert_eq!(told["error"]["exit"], 7);
        assert_eq!(told["error"]["error"], json!({ "code": -32602, "message": "no" }));
    }
}
