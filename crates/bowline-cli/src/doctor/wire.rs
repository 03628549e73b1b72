//! One conversation, whatever carries it: questions go out as exact bytes, and what comes back is
//! kept as it came.

use std::time::Duration;

use bowline::Json;
use bowline::proto::error::ErrorObject;
use bowline::proto::model::meta_key;
use bowline::proto::revision::Revision;
use bowline::proto::session::{Event, Question, Rejection, Transport};
use serde_json::{Value, json};

use super::ending::seconds;
use super::http::Talk;
use super::process::Process;
use super::report::Diagnosis;
use super::seen::plain;
use super::status::Answer;

/// What a message travels on.
pub(crate) enum Wire {
    Process(Box<Process>),
    Http(Box<Talk>),
}

/// Why a question has no answer.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// A JSON-RPC error.
    Refused {
        error: ErrorObject,
        status: Option<u16>,
    },
    NoAnswer(Duration),
    /// The process ended or closed its output; the stream ended.
    Ended,
    /// Something came that is no answer to the question.
    Malformed(String),
    /// An HTTP answer without a message.
    Http(Box<Answer>),
    /// No HTTP answer at all.
    Unreachable {
        seen: String,
        diagnosis: Box<Diagnosis>,
    },
}

/// A result, to the letter.
pub(crate) type Answered = Result<Json, Trouble>;

impl Wire {
    pub(crate) fn transport(&self) -> Transport {
        match self {
            Self::Process(_) => Transport::Stream,
            Self::Http(_) => Transport::Http,
        }
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        params: Value,
        revision: Revision,
        patience: Duration,
    ) -> Answered {
        match self {
            Self::Process(process) => process.ask(method, params, revision, patience).await,
            Self::Http(talk) => talk.ask(method, params, revision, patience).await,
        }
    }

    /// Why there was no answer, once nothing more is tried.
    pub(crate) async fn explain(&mut self, method: &str, trouble: &Trouble) -> (String, Diagnosis) {
        let seen = trouble.seen();
        match trouble {
            Trouble::Refused { error, .. } => (seen, refused(method, error)),
            Trouble::Malformed(what) => (
                seen,
                Diagnosis::broken(
                    format!("the answer to {method} is not one: {what}"),
                    "Correct the server: the specification says what this answer must hold.",
                ),
            ),
            Trouble::Unreachable { seen, diagnosis } => (seen.clone(), (**diagnosis).clone()),
            Trouble::Http(answer) => (seen, super::status::diagnose(answer)),
            Trouble::NoAnswer(_) | Trouble::Ended => match self {
                Self::Process(process) => {
                    let mut evidence = process.give_up(trouble).await;
                    evidence.method = method.to_owned();
                    (evidence.seen(), super::ending::diagnose(&evidence))
                }
                Self::Http(_) => (seen, silent(method, trouble)),
            },
        }
    }
}

/// An HTTP server that takes a question and does not answer.
pub(crate) fn silent(method: &str, trouble: &Trouble) -> Diagnosis {
    let cause = match trouble {
        Trouble::NoAnswer(after) => {
            format!("the server took {method} and did not answer within {}", seconds(*after))
        }
        _ => format!("the answer to {method} ended before it was complete"),
    };
    Diagnosis::unreachable(
        cause,
        "The handler hangs, or a proxy in between holds answers back or cuts them off (nginx: \
         proxy_buffering off). More time: --timeout.",
    )
}

fn refused(method: &str, error: &ErrorObject) -> Diagnosis {
    let message = plain(&error.message);
    if method == "server/discover" && error.code.0 == -32601 {
        return Diagnosis::refused(
            format!("the server does not speak the modern era: error -32601 ({message})"),
            "Use --revision auto, or one that it speaks.",
        );
    }
    let cause = format!("the server refuses {method}: error {} ({message})", error.code.0);
    let fix = match error.code.0 {
        -32022 => "Ask for a revision that it speaks: --revision.",
        -32601 => "The server must know the method: it declares what belongs to it.",
        -32602 => {
            "Its parameters are those of the specification: look at how the server reads them."
        }
        -32603 | -32000 => "The server failed inside: its log or standard error says more.",
        _ => "Look at the server's log for this request.",
    };
    Diagnosis::refused(cause, fix)
}

impl Trouble {
    pub(crate) fn seen(&self) -> String {
        match self {
            Self::Refused { error, status } => {
                let status = status.map(|status| format!("HTTP {status}, ")).unwrap_or_default();
                format!("{status}error {}: {}", error.code.0, plain(&error.message))
            }
            Self::NoAnswer(after) => format!("no answer in {}", seconds(*after)),
            Self::Ended => "the output ended".to_owned(),
            Self::Malformed(what) => what.clone(),
            Self::Http(answer) => answer.seen(),
            Self::Unreachable { seen, .. } => seen.clone(),
        }
    }

    /// What it means to the search for a revision.
    pub(crate) fn event(&self, question: Question) -> Event<'static> {
        match self {
            Self::Refused { error, status } => {
                let rejection = Rejection { status: *status, error: Some(error.clone()) };
                Event::Refused(question, rejection)
            }
            Self::NoAnswer(_) => Event::TimedOut(question),
            Self::Ended => Event::Exited,
            Self::Malformed(_) => Event::Malformed(question),
            Self::Http(answer) if (200..300).contains(&answer.status) => Event::Malformed(question),
            Self::Http(answer) => {
                Event::Refused(question, Rejection { status: Some(answer.status), error: None })
            }
            Self::Unreachable { seen, .. } => Event::Unreachable(seen.clone()),
        }
    }
}

/// The bytes of a request; in the modern era it says who asks and in which revision.
pub(crate) fn encode(id: u64, method: &str, mut params: Value, revision: Revision) -> Vec<u8> {
    if revision.is_modern() {
        params["_meta"] = json!({
            meta_key::PROTOCOL_VERSION: revision.as_str(),
            meta_key::CLIENT_INFO: client(),
            meta_key::CLIENT_CAPABILITIES: {},
        });
    }
    let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
    if params.as_object().is_some_and(|params| !params.is_empty()) {
        message["params"] = params;
    }
    message.to_string().into_bytes()
}

/// The parameters of `initialize`.
pub(crate) fn initialize(revision: Revision) -> Value {
    json!({
        "protocolVersion": revision.as_str(),
        "capabilities": {},
        "clientInfo": client(),
    })
}

fn client() -> Value {
    json!({ "name": "bowline doctor", "version": env!("CARGO_PKG_VERSION") })
}
