//! Why a command failed: what happened, what to do about it, and the exit code.

use std::fmt::Display;
use std::path::Path;

use bowline::client::{CallError, ClientLimit, CloseReason, ConnectError, OpenError};
use bowline::proxy::ProxyError;
use bowline::{ErrorCode, ErrorObject, Json};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answers;
use crate::render::json::indented;
use crate::render::wire::time;
use crate::screen::Paint;
use crate::text::{json_line, plain};

/// Exit codes, and the kinds of failures in JSON. 0 means success; 2 is left to the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Code {
    /// The command line, a file or a value is wrong. Nothing was sent to the server.
    Usage = 1,
    /// The server requires a login.
    Unauthorized = 3,
    /// The server cannot be connected to, or the connection was lost.
    Unreachable = 4,
    /// The tool reported that it failed.
    ToolFailed = 5,
    /// A schema that some clients cannot use.
    NotPortable = 6,
    /// The server answered with an error.
    Refused = 7,
    /// No answer in time.
    TimedOut = 8,
    /// The server violates the specification.
    Broken = 9,
    /// The answer exceeds a limit of this program.
    TooLarge = 10,
    /// Two recordings, or a server and its baseline, differ.
    Differs = 11,
    /// The server's program cannot be run, as shells report it.
    NotStarted = 126,
    /// The server's program is not there, as shells report it.
    NotFound = 127,
    /// The terminal was closed. This and the next two: 128 and the number of the signal, as shells
    /// do.
    #[cfg_attr(not(unix), expect(dead_code, reason = "Windows has no such signal"))]
    HungUp = 129,
    /// The user interrupted the command.
    Interrupted = 130,
    /// Something else ended the program.
    #[cfg_attr(not(unix), expect(dead_code, reason = "Windows has no such signal"))]
    Terminated = 143,
}

impl Code {
    /// The code for a tool's result, if it reports that the tool failed.
    pub(crate) fn of_result(result: &Json) -> Option<Self> {
        #[derive(Deserialize)]
        struct ToolOutcome {
            #[serde(rename = "isError", default)]
            is_error: bool,
        }
        let outcome = result.parse::<ToolOutcome>().ok()?;
        outcome.is_error.then_some(Self::ToolFailed)
    }
}

/// Why a command failed.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    /// What failed and why: "cannot connect: unreachable: connection refused". Empty if the output
    /// already says it.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) remedy: Option<String>,
    /// The server's error, if it answered with one.
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

    /// A file that an option names cannot be used.
    pub(crate) fn file(option: &str, file: &Path, problem: impl Display) -> Self {
        Self::usage(format!("{option} {}: {problem}", file.display()))
    }

    /// A failure that the output already explains.
    pub(crate) fn silent(code: Code) -> Self {
        Self::new(code, "")
    }

    /// Adds a remedy, unless it is empty or there is one already.
    pub(crate) fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        let remedy = Some(remedy.into()).filter(|remedy: &String| !remedy.is_empty());
        self.remedy = self.remedy.or(remedy);
        self
    }

    /// For people: a line or two, safe for a terminal.
    pub(crate) fn for_people(&self) -> String {
        let mut text = format!("bowline: {}\n", plain(&self.what).trim_end());
        if let Some(data) = self.error.as_ref().and_then(|error| error.data.as_ref()) {
            text += &format!("  data: {}\n", detail(&data.to_value()));
        }
        if let Some(remedy) = &self.remedy {
            text += &format!("  {}\n", plain(remedy).trim_end());
        }
        text
    }

    /// For agents: what a model can act on.
    pub(crate) fn for_agents(&self) -> String {
        let remedy = self.remedy.as_ref().map(|it| format!("\nhelp: {it}")).unwrap_or_default();
        format!("{}{remedy}", self.what)
    }

    pub(crate) fn for_programs(&self) -> String {
        let mut error = json!({
            "exit": self.code as u8,
            "kind": self.code,
            "message": self.what,
        });
        if let Some(remedy) = &self.remedy {
            error["remedy"] = json!(remedy);
        }
        if let Some(object) = &self.error {
            error["error"] = json!(object);
        }
        let text = json!({ "error": error }).to_string();
        format!("{}\n", json_line(&text, true))
    }
}

/// What a server adds to an error: text as it is, everything else as JSON.
fn detail(data: &Value) -> String {
    /// Of a trace, the beginning says enough.
    const MOST: usize = 4000;
    /// JSON that fits on a line stays there.
    const SHORT: usize = 80;
    let text = match (data, data.to_string()) {
        (Value::String(text), _) => plain(text).trim_end().replace('\n', "\n    "),
        (_, json) if json.len() <= SHORT => json_line(&json, true).into_owned(),
        (_, json) => indented(&json, Paint(false), 2),
    };
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}… (--output json prints all of it)", &text[..end]),
        None => text,
    }
}

/// Reads a result as its type.
///
/// # Errors
/// When the server's answer does not have that type.
pub(crate) fn parse<T: DeserializeOwned>(result: &Json) -> Result<T, Failure> {
    result.parse().map_err(|error| malformed(&format!("cannot read the server's answer: {error}")))
}

/// An answer that cannot be shown to people.
pub(crate) fn malformed(what: &str) -> Failure {
    Failure::new(Code::Refused, what).with_remedy("--output json prints it unchanged")
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let (code, remedy) = match &error {
            OpenError::Connect { error: reason, .. } => {
                let mut failure = Self { what: error.to_string(), ..of_connect(reason) };
                if let ConnectError::Refused(rejection) | ConnectError::Blocked(rejection) = reason
                {
                    failure.error = rejection.error.clone().map(Box::new);
                }
                return failure;
            }
            OpenError::Spawn { .. } => {
                (Code::Unreachable, "is it installed and on PATH? `bowline doctor` looks closer")
            }
            OpenError::TimedOut(_) => (
                Code::TimedOut,
                "--connect-timeout waits longer; `bowline doctor` shows where it hangs",
            ),
            OpenError::Target(_) => (Code::Usage, ""),
            OpenError::Unauthorized { .. } => (Code::Unauthorized, ""),
            _ => (Code::Unreachable, ""),
        };
        Self::new(code, error.to_string()).with_remedy(remedy)
    }
}

fn of_connect(error: &ConnectError) -> Failure {
    let (code, remedy) = match error {
        ConnectError::NothingEnabled => (Code::Usage, ""),
        ConnectError::Refused(rejection) | ConnectError::Blocked(rejection) => {
            let code = match rejection.status {
                Some(401 | 403) => Code::Unauthorized,
                Some(_) if rejection.error.is_none() => Code::Unreachable,
                _ => Code::Refused,
            };
            let is_elsewhere = matches!(rejection.status, Some(404 | 405));
            let remedy = "is this the server's MCP endpoint, including the path?";
            (code, if is_elsewhere { remedy } else { "" })
        }
        ConnectError::NoCommonRevision(_) => {
            (Code::Refused, "--revision auto lets both sides choose")
        }
        ConnectError::TimedOut => (Code::TimedOut, "`bowline doctor` shows where it hangs"),
        ConnectError::Malformed | ConnectError::Contradicted => {
            (Code::Unreachable, "is it an MCP server? --verbose shows what it sends")
        }
        ConnectError::Unreachable(_) => (
            Code::Unreachable,
            "is it running, and is the address right? `bowline doctor` looks closer",
        ),
        ConnectError::Exited => {
            (Code::Unreachable, "`bowline doctor` looks closer; --verbose shows the messages")
        }
    };
    Failure::new(code, "").with_remedy(remedy)
}

impl From<ProxyError> for Failure {
    fn from(error: ProxyError) -> Self {
        match error {
            ProxyError::Open(error) => error.into(),
            ProxyError::List(error) => error.into(),
            error => Self::new(Code::Unreachable, error.to_string()),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let mut what = error.to_string();
        let mut object = None;
        let (code, remedy) = match error {
            CallError::Refused { error, .. } => {
                let is_unanswered = error.code == ErrorCode::MISSING_CLIENT_CAPABILITY;
                let needed = error.data.as_ref().filter(|_| is_unanswered).map(Json::as_str);
                let remedy = needed.map_or("", answers::remedy);
                object = Some(Box::new(error));
                (Code::Refused, remedy)
            }
            CallError::TimedOut { method, after } => {
                what = format!("{method}: no answer within {}", time(after.as_secs_f64()));
                (Code::TimedOut, "--timeout waits longer")
            }
            CallError::Lacks { .. } | CallError::NoSuchMethod { .. } => {
                (Code::Refused, "`bowline info` shows what the server offers")
            }
            CallError::Malformed(_) | CallError::InvalidOutput { .. } => {
                (Code::Refused, "--output json prints the answer unchanged")
            }
            CallError::CannotAnswer { asked, .. } => (Code::Refused, answers::remedy(&asked)),
            CallError::LimitExceeded { method, limit, most } => {
                what = format!("{method}: {}", limit.explain(most));
                let remedy = match limit {
                    ClientLimit::MessageLength | ClientLimit::ListBytes => {
                        "--max-size SIZE accepts more"
                    }
                    ClientLimit::ListItems | ClientLimit::ListPages => {
                        "--max-items COUNT accepts more"
                    }
                    _ => "",
                };
                (Code::TooLarge, remedy)
            }
            CallError::Unsupported(_) | CallError::Unsendable { .. } => (Code::Usage, ""),
            CallError::Closed(CloseReason::Asked) => (Code::TimedOut, ""),
            CallError::Unauthorized { .. } => (Code::Unauthorized, ""),
            CallError::ToolFailed { .. } => (Code::ToolFailed, ""),
            CallError::TaskCancelled { .. } | CallError::TaskExpired { .. } => (Code::Refused, ""),
            _ => (Code::Unreachable, ""),
        };
        Self { error: object, ..Self::new(code, what) }.with_remedy(remedy)
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
    fn people_see_the_data_of_an_error() {
        let told = |data: Value| {
            let error = ErrorObject::new(ErrorCode(-32602), "no").with_data(Json::from(&data));
            Failure::from(CallError::Refused { method: "x/y".to_owned(), error }).for_people()
        };
        assert!(told(json!("a\nb\u{1b}")).contains("\n  data: a\n    b\\u{1b}\n"));
        assert!(told(json!({ "a": "日" })).contains("\n  data: {\"a\":\"日\"}\n"));
        let long = told(json!({ "a": "日".repeat(90) }));
        assert!(long.contains("\n  data: {\n    \"a\": \"日日"), "{long}");
    }

    #[test]
    fn programs_get_a_line_with_everything() {
        let error = ErrorObject::new(ErrorCode(-32602), "no");
        let failure = Failure::from(CallError::Refused { method: "x/y".to_owned(), error });
        let told: Value = serde_json::from_str(&failure.for_programs()).unwrap();
        assert_eq!(told["error"]["exit"], 7);
        assert_eq!(told["error"]["error"], json!({ "code": -32602, "message": "no" }));
    }
}
