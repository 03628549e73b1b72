//! A conversation with a server over any transport, one request at a time: what each request came
//! to, and why it has no result.

use std::time::Duration;

use bowline::proto::error::ErrorObject;
use bowline::proto::revision::Revision;
use bowline::proto::session::{Event, Question, Rejection, Transport};
use bowline::with_causes;
use bowline_check::frames::{Http, Lost, Process, Recipe};
use bowline_check::{Connection, Received, Reply, Target};
use bowline_web::WebError;
use http::HeaderMap;
use serde_json::Value;
use tokio::time::Instant;

use super::ending::{Evidence, runner};
use super::output::Output;
use super::report::{Diagnosis, broken, refused, unreachable};
use super::seen::{plain, seconds};
use super::status::HttpReply;
use crate::target::tap;

/// How long an exiting program may take.
const GRACE: Duration = Duration::from_secs(3);

pub(crate) struct Conversation {
    pub(crate) target: Target,
    pub(crate) connection: Connection,
    started: Instant,
    answered: u64,
    /// The first request other than `ping` that the server sent.
    pub(crate) request: Option<String>,
    /// Outcomes of requests that the search will make again.
    kept: Vec<(String, Asked)>,
    /// The headers of the last response.
    pub(crate) headers: HeaderMap,
    /// The longest time from the head of a response to its first event.
    pub(crate) first_event: Option<Duration>,
}

/// The result of a request.
pub(crate) type Asked = Result<Value, AskError>;

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
    /// Starts a program.
    pub(crate) fn start(recipe: Recipe) -> std::io::Result<Self> {
        let process = Process::start(&recipe, tap())?;
        let connection = Connection::with_process(process, Revision::LATEST, GRACE);
        Ok(Self::new(Target::Program(recipe), connection))
    }

    /// Prepares to post to a URL.
    pub(crate) async fn open(http: Http) -> Result<Self, AskError> {
        let target = Target::Http(Box::new(http.with_tap(tap())));
        let connection = Connection::open(&target, Revision::LATEST, GRACE, &tap()).await?;
        Ok(Self::new(target, connection))
    }

    fn new(target: Target, connection: Connection) -> Self {
        Self {
            target,
            connection,
            started: Instant::now(),
            answered: 0,
            request: None,
            kept: Vec::new(),
            headers: HeaderMap::new(),
            first_event: None,
        }
    }

    /// Kills the program and starts it again.
    pub(crate) async fn restart(&mut self) -> std::io::Result<()> {
        if let (Target::Program(recipe), Some(process)) = (&self.target, self.connection.process())
        {
            process.kill();
            process.wait(GRACE).await;
            *self = Self::start(recipe.clone())?;
        }
        Ok(())
    }

    /// Opens the stream of HTTP+SSE and waits for its endpoint.
    pub(crate) async fn open_sse(&mut self, patience: Duration) -> Result<String, AskError> {
        if let Target::Http(http) = &self.target {
            let target = Target::HttpSse(http.clone());
            let opened = Connection::open(&target, Revision::LATEST, patience, &tap()).await;
            self.connection =
                opened.map_err(|lost| AskError::Malformed(plain(&lost.to_string())))?;
            self.target = target;
            self.kept.clear();
        }
        let path = self.connection.http().map(|http| plain(http.url.path())).unwrap_or_default();
        Ok(format!("HTTP+SSE of 2024-11-05; messages go to {path}"))
    }

    pub(crate) fn transport(&self) -> Transport {
        if self.target.http().is_some() { Transport::Http } else { Transport::Stream }
    }

    pub(crate) fn is_sse(&self) -> bool {
        matches!(self.target, Target::HttpSse(_))
    }

    /// Keeps an outcome for the next time that the same request is made.
    pub(crate) fn keep(&mut self, method: &str, asked: Asked) {
        self.kept.push((method.to_owned(), asked));
    }

    /// Sends a request and waits for its response.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        params: Value,
        revision: Revision,
        patience: Duration,
    ) -> Asked {
        if let Some(at) = self.kept.iter().position(|(known, _)| known == method) {
            return self.kept.swap_remove(at).1;
        }
        let began = Instant::now();
        self.connection.timeout = patience;
        let reply = match method {
            "initialize" => self.connection.initialize(revision.as_str()).await,
            _ => self.connection.ask(revision, method, params).await,
        };
        // The error says it already.
        let reply = reply.inspect_err(|_| self.connection.unexpected = None)?;
        let is_request = |it: &&Value| it.get("id").is_some() && it["method"] != "ping";
        let request = reply.received.messages.iter().filter(is_request);
        let request = request.filter_map(|it| it["method"].as_str()).map(plain).next();
        self.request = self.request.take().or(request);
        if reply.received.is_stream {
            self.first_event = self.first_event.max(reply.received.first_byte);
        }
        self.headers.clone_from(&reply.received.headers);
        self.answered += 1;
        self.judge(reply, began.elapsed()).await
    }

    /// The result in a reply, or why there is none.
    async fn judge(&self, reply: Reply, took: Duration) -> Asked {
        let problem = reply.problem();
        let Reply { received, message, .. } = reply;
        let Received { status, headers, body, is_stream, left_open, .. } = received;
        let status = status.map(|status| status.as_u16());
        // For a rejected caller the status counts, whatever the body says.
        let is_barred = matches!(status, Some(401 | 403)) && !self.is_sse();
        if let Some(mut message) = message.filter(|_| !is_barred) {
            let malformed = |what: String| AskError::Malformed(what);
            return match (problem, message.get_mut("error").map(Value::take)) {
                (Some(problem), _) => Err(malformed(problem.to_owned())),
                (None, None) => Ok(message["result"].take()),
                (None, Some(error)) => {
                    let error = serde_json::from_value(error);
                    let error = error.map_err(|error| malformed(error.to_string()))?;
                    Err(AskError::Refused { error, status })
                }
            };
        }
        Err(match status {
            Some(_) if left_open => AskError::TimedOut(self.connection.timeout),
            Some(status) if !is_stream => {
                let has_credentials = match self.target.http() {
                    Some(http) => http.has_credentials().await,
                    None => false,
                };
                AskError::Http(Box::new(HttpReply { status, headers, body, took, has_credentials }))
            }
            _ => AskError::Ended,
        })
    }

    /// What was seen and why there is no result, once nothing else is tried.
    pub(crate) async fn explain(&mut self, method: &str, error: &AskError) -> (String, Diagnosis) {
        if let AskError::TimedOut(_) | AskError::Ended = error
            && let Some(evidence) = self.give_up(method, error).await
        {
            return (evidence.seen(), evidence.diagnose());
        }
        let diagnosis = match error {
            AskError::TimedOut(_) | AskError::Ended => silent(method, error),
            AskError::Refused { error, .. } => rejected(method, error),
            AskError::Malformed(what) => broken(format!(
                "the response to {method} is not valid: {what}"
            ))
            .fix("Correct the server: the specification says what this response must contain."),
            AskError::Unreachable(diagnosis) => (**diagnosis).clone(),
            AskError::Http(reply) => reply.diagnose(),
        };
        (error.seen(), diagnosis)
    }

    /// What the program wrote to standard output so far.
    pub(crate) fn output(&mut self) -> Output {
        let head = self.connection.process().map(|it| it.head().to_vec()).unwrap_or_default();
        Output { head, strays: self.connection.strays().clone() }
    }

    /// Finds out what became of a program that did not answer: how it exited, or whether it only
    /// buffers its output. `None` if the server is not a program.
    pub(crate) async fn give_up(&mut self, method: &str, error: &AskError) -> Option<Evidence> {
        let is_mute = self.connection.process()?.head().is_empty();
        let (waited, status) = if let AskError::TimedOut(after) = error {
            if is_mute {
                self.connection.close().await;
            }
            (*after, None)
        } else {
            self.connection.read_rest(Instant::now() + GRACE).await;
            (self.started.elapsed(), self.connection.process()?.exit(GRACE).await.0)
        };
        let Target::Program(recipe) = &self.target else { return None };
        let runner = runner(&recipe.program.to_string_lossy());
        let stderr = self.connection.process()?.stderr();
        let output = self.output();
        let was_buffered = is_mute && status.is_none() && output.strays.messages > 0;
        let (answered, method) = (self.answered, method.to_owned());
        Some(Evidence { output, stderr, status, was_buffered, waited, runner, answered, method })
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

impl From<Lost> for AskError {
    fn from(lost: Lost) -> Self {
        let (cause, fix) = match &lost {
            Lost::Silent(after) => return Self::TimedOut(*after),
            Lost::Closed(_) => return Self::Ended,
            Lost::OtherId(answer) => {
                let id = plain(&answer["id"].to_string());
                let kind = if answer["id"].is_string() { "the string " } else { "" };
                return Self::Malformed(format!("its id is {kind}{id}, which no request had"));
            }
            Lost::Web(error) => (with_causes(&**error), fix(error)),
            other => (other.to_string(), "Check the URL and the network."),
        };
        Self::Unreachable(Box::new(unreachable(plain(&cause)).fix(fix)))
    }
}

fn fix(error: &WebError) -> &'static str {
    match error {
        WebError::Proxy { .. } => "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, or set NO_PROXY.",
        WebError::Closed { .. } => "Check the log of the server, or of a proxy in between.",
        WebError::Protocol { .. } => "Check the port and the scheme: it does not speak HTTP.",
        WebError::TimedOut { .. } => "Check whether the server hangs: it accepts connections.",
        _ => "Check the URL and the network.",
    }
}
