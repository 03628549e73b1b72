//! A conversation with a server over either transport, one request at a time.

mod http;
mod stdio;

use std::time::Duration;

use bowline::Json;
use bowline::proto::error::ErrorObject;
use bowline::proto::revision::Revision;
use bowline::proto::session::{Event, Question, Rejection, Transport};
use bowline::proto::wire::Response;
use bowline_check::frames::message::Speaker;
use serde_json::{Value, json};

pub(crate) use self::http::{HttpTalk, is_event_stream, read_start};
pub(crate) use self::stdio::StdioTalk;
use super::report::{Diagnosis, broken, refused, unreachable};
use super::seen::{plain, seconds};
use super::status::HttpReply;

pub(crate) enum Conversation {
    Stdio(Box<StdioTalk>),
    Http(Box<HttpTalk>),
}

/// The result of a request, exactly as it arrived.
pub(crate) type Asked = Result<Json, AskError>;

/// Why a request has no result.
#[derive(Debug)]
pub(crate) enum AskError {
    /// A JSON-RPC error, with the HTTP status if there is one.
    Refused {
        error: ErrorObject,
        status: Option<u16>,
    },
    TimedOut(Duration),
    /// The program exited or closed its output, or the event stream ended.
    Ended,
    /// The response is not valid.
    Malformed(String),
    /// An HTTP response without a message.
    Http(Box<HttpReply>),
    /// No HTTP response.
    Unreachable(Box<Diagnosis>),
}

impl Conversation {
    pub(crate) fn transport(&self) -> Transport {
        match self {
            Self::Stdio(_) => Transport::Stream,
            Self::Http(_) => Transport::Http,
        }
    }

    /// Sends a request and waits for its response.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        params: Value,
        revision: Revision,
        patience: Duration,
    ) -> Asked {
        match self {
            Self::Stdio(talk) => talk.ask(method, params, revision, patience).await,
            Self::Http(talk) => talk.ask(method, params, revision, patience).await,
        }
    }

    /// What was seen and why there is no result, once nothing else is tried.
    pub(crate) async fn explain(&mut self, method: &str, error: &AskError) -> (String, Diagnosis) {
        let diagnosis = match (error, self) {
            (AskError::TimedOut(_) | AskError::Ended, Self::Stdio(talk)) => {
                let evidence = talk.give_up(method, error).await;
                return (evidence.seen(), evidence.diagnose());
            }
            (AskError::TimedOut(_) | AskError::Ended, Self::Http(_)) => silent(method, error),
            (AskError::Refused { error, .. }, _) => rejected(method, error),
            (AskError::Malformed(what), _) => broken(format!(
                "the response to {method} is not valid: {what}"
            ))
            .fix("Correct the server: the specification says what this response must contain."),
            (AskError::Unreachable(diagnosis), _) => (**diagnosis).clone(),
            (AskError::Http(reply), _) => reply.diagnose(),
        };
        (error.seen(), diagnosis)
    }
}

/// Why an HTTP server accepts a request and does not answer it.
pub(crate) fn silent(method: &str, error: &AskError) -> Diagnosis {
    let cause = match error {
        AskError::TimedOut(after) => {
            format!("the server accepted {method} but did not answer within {}", seconds(*after))
        }
        _ => format!("the response to {method} ended before it was complete"),
    };
    unreachable(cause).fix(
        "The handler hangs, or a proxy in between buffers or cuts off responses (nginx: \
         proxy_buffering off). --timeout allows more time.",
    )
}

fn rejected(method: &str, error: &ErrorObject) -> Diagnosis {
    let (code, message) = (error.code.0, plain(&error.message));
    if method == "server/discover" && code == -32601 {
        return refused(format!("the server does not support the modern era: {message}"))
            .fix("Use --revision auto, or a revision that it supports.");
    }
    let fix = match code {
        -32022 => "Ask for a revision that it supports: --revision.",
        -32601 => "Implement the method: the server declares the capability it belongs to.",
        -32602 => "The parameters follow the specification: check how the server reads them.",
        -32603 | -32000 => "The server failed internally: see its log or standard error.",
        _ => "Check the server's log for this request.",
    };
    refused(format!("the server rejects {method}: error {code} ({message})")).fix(fix)
}

impl AskError {
    pub(crate) fn seen(&self) -> String {
        match self {
            Self::Refused { error, status } => {
                let status = status.map(|status| format!("HTTP {status}, ")).unwrap_or_default();
                format!("{status}error {}: {}", error.code.0, plain(&error.message))
            }
            Self::TimedOut(after) => format!("no response in {}", seconds(*after)),
            Self::Ended => "the output ended".to_owned(),
            Self::Malformed(what) => what.clone(),
            Self::Http(reply) => reply.seen(),
            Self::Unreachable(diagnosis) => diagnosis.cause.clone(),
        }
    }

    /// What it means for the search for a revision.
    pub(crate) fn event(&self, question: Question) -> Event<'static> {
        let refused = |status, error| Event::Refused(question, Rejection { status, error });
        match self {
            Self::Refused { error, status } => refused(*status, Some(error.clone())),
            Self::TimedOut(_) => Event::TimedOut(question),
            Self::Ended => Event::Exited,
            Self::Malformed(_) => Event::Malformed(question),
            Self::Http(reply) if (200..300).contains(&reply.status) => Event::Malformed(question),
            Self::Http(reply) => refused(Some(reply.status), None),
            Self::Unreachable(diagnosis) => Event::Unreachable(diagnosis.cause.clone()),
        }
    }
}

/// A request as the revision wants it. `initialize` has fixed parameters.
pub(crate) fn frame(id: u64, method: &str, params: Value, revision: Revision) -> String {
    const CLIENT: Speaker = Speaker("bowline doctor");
    let message = match method {
        "initialize" => CLIENT.initialize(&json!(id), revision.as_str()),
        _ => CLIENT.request(revision, &json!(id), method, params),
    };
    message.to_string()
}

/// The outcome of the request with this id, or the id that the response has instead.
fn outcome(response: Response<'_>, id: u64, status: Option<u16>) -> Result<Asked, Value> {
    let actual = serde_json::to_value(&response.id).unwrap_or_default();
    if actual != id {
        return Err(actual);
    }
    Ok(match response.outcome {
        Ok(result) => Ok(Json::copy_of(result)),
        Err(error) => Err(AskError::Refused { error, status }),
    })
}
