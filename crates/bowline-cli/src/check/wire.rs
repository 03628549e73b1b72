//! One connection to the server under test, at the level of frames: exactly the bytes of a check
//! are sent, and everything that comes back is kept.
//!
//! The SDK's client is of no use here: it sends nothing wrong and forgives too much.

mod pipe;
mod post;

use std::fmt;
use std::time::Duration;

use bowline::Revision;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use self::pipe::Pipe;
pub(super) use self::pipe::{Ending, Program};
#[cfg(test)]
pub(super) use self::pipe::{Reader, Writer};
#[cfg(test)]
pub(super) use self::post::Fault;
pub(super) use self::post::{Ask, Post, events};
use super::evidence::Evidence;
use super::seen::Seen;

/// Where the server is.
#[derive(Clone)]
pub(super) enum Door {
    /// A program to start.
    Program(Program),
    /// An address to post to.
    Address(Box<Post>),
}

/// One of the two ways that bytes travel.
enum Carrier {
    Pipe(Box<Pipe>),
    Post(Box<Post>),
}

/// When an exchange is over.
#[derive(Clone, Copy)]
pub(super) enum Until<'a> {
    /// The answer with this id has come.
    Answer(&'a Value),
    /// Any message has come.
    First,
    /// Nothing more can come: on a pipe, a request sent after the frame has been answered.
    Quiet,
}

/// Headers that differ from the usual: another value, or none.
pub(super) type Changes<'a> = &'a [(&'static str, Option<&'a str>)];

/// What came back.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard {
    /// Over HTTP.
    pub(super) status: Option<StatusCode>,
    pub(super) headers: HeaderMap,
    /// In the order in which they came; the members of a batch one by one.
    pub(super) messages: Vec<Value>,
    /// What was no message.
    pub(super) other: String,
    /// Whether a stream of events had to be given up.
    pub(super) left_open: bool,
}

impl Heard {
    /// The answer to a request. An error without a readable id counts over HTTP, where the exchange
    /// tells what it answers.
    pub(super) fn answer(&self, id: &Value) -> Option<&Value> {
        let is_response = |message: &&Value| message.get("method").is_none();
        let mut responses = self.messages.iter().filter(is_response);
        let exact = responses.clone().find(|message| message.get("id") == Some(id));
        exact.or_else(|| {
            let nobody = |message: &&Value| message.get("id").is_none_or(Value::is_null);
            self.status.and_then(|_| responses.find(nobody))
        })
    }

    /// Everything that answers something.
    pub(super) fn responses(&self) -> impl Iterator<Item = &Value> {
        self.messages.iter().filter(|message| message.get("method").is_none())
    }

    /// The code of the first error.
    pub(super) fn code(&self) -> Option<i64> {
        self.responses().find_map(|message| message.pointer("/error/code")?.as_i64())
    }
}

/// Why nothing came back.
#[derive(Debug, Clone)]
pub(super) enum Lost {
    /// It said nothing in time.
    Silent(Duration),
    /// It ended or closed the connection.
    Closed(String),
    /// It cannot be reached at all.
    Unreachable(String),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(after) => write!(f, "no answer within {after:?}"),
            Self::Closed(how) => write!(f, "the server is gone: {how}"),
            Self::Unreachable(why) => write!(f, "the server cannot be reached: {why}"),
        }
    }
}

/// A connection: opened, and after [`Link::shake_hands`] ready for requests.
pub(super) struct Link {
    carrier: Carrier,
    revision: Revision,
    timeout: Duration,
    asked: u64,
    /// What was sent and heard since it was last taken.
    pub(super) evidence: Vec<Evidence>,
    /// What the server did of its own accord, for the checks that watch.
    pub(super) seen: Seen,
}

impl Link {
    /// Starts the program, or makes ready to post.
    pub(super) fn open(door: &Door, revision: Revision, timeout: Duration) -> Result<Self, Lost> {
        let carrier = match door {
            Door::Program(program) => Carrier::Pipe(Box::new(Pipe::start(program)?)),
            Door::Address(post) => Carrier::Post(post.clone()),
        };
        let seen = Seen::new(revision);
        Ok(Self { carrier, revision, timeout, asked: 0, evidence: Vec::new(), seen })
    }

    /// The legacy handshake; gives the whole answer to `initialize`. The modern era has none.
    pub(super) async fn shake_hands(&mut self, version: &str) -> Result<Value, Lost> {
        let id = self.next_id();
        let frame = initialize(&id, version).to_string();
        let heard = self.exchange(&frame, Until::Answer(&id), &[]).await?;
        let Some(answer) = heard.answer(&id).cloned() else {
            let status = heard.status.map_or_else(String::new, |status| format!("{status} "));
            return Err(Lost::Closed(format!(
                "initialize got no message, but {status}{:?}",
                heard.other
            )));
        };
        if let Carrier::Post(post) = &mut self.carrier {
            post.session = heard.headers.get("mcp-session-id").cloned();
            post.negotiated = answer
                .pointer("/result/protocolVersion")
                .and_then(Value::as_str)
                .map(ToOwned::to_owned);
        }
        if answer.get("result").is_some() {
            let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            self.tell(&ready.to_string(), &[]).await?;
        }
        Ok(answer)
    }

    /// An id that this connection has not used.
    pub(super) fn next_id(&mut self) -> Value {
        self.asked += 1;
        Value::from(self.asked)
    }

    /// Sends a frame and hears what comes.
    pub(super) async fn exchange(
        &mut self,
        frame: &str,
        until: Until<'_>,
        changes: Changes<'_>,
    ) -> Result<Heard, Lost> {
        let timeout = self.timeout;
        let shown = Evidence::sent(frame, changes);
        let barrier = self.barrier(until);
        let heard = match &mut self.carrier {
            Carrier::Post(post) => {
                let ask = Ask::post(frame, changes);
                post.exchange(&ask, until, timeout, &mut self.seen).await
            }
            Carrier::Pipe(pipe) => {
                pipe.exchange(frame, (until, barrier.as_ref()), timeout, &mut self.seen).await
            }
        };
        self.evidence.push(shown.heard(&heard));
        heard
    }

    /// Sends a notification, and over HTTP hears what is said to it.
    pub(super) async fn tell(&mut self, frame: &str, changes: Changes<'_>) -> Result<Heard, Lost> {
        match &mut self.carrier {
            Carrier::Post(_) => self.exchange(frame, Until::Quiet, changes).await,
            Carrier::Pipe(pipe) => {
                self.evidence.push(Evidence::sent(frame, changes));
                pipe.send(frame, self.timeout).await.map(|()| Heard::default())
            }
        }
    }

    /// The HTTP side, for checks of headers, verbs and sessions.
    pub(super) fn post(&self) -> Option<&Post> {
        match &self.carrier {
            Carrier::Post(post) => Some(post),
            Carrier::Pipe(_) => None,
        }
    }

    /// An HTTP exchange that is not a plain message.
    pub(super) async fn http(&mut self, ask: &Ask<'_>) -> Result<Heard, Lost> {
        let Carrier::Post(post) = &self.carrier else {
            return Err(Lost::Closed("this is no HTTP connection".to_owned()));
        };
        let heard = post.exchange(ask, Until::Quiet, self.timeout, &mut self.seen).await;
        self.evidence.push(ask.evidence().heard(&heard));
        heard
    }

    /// Closes standard input and waits for the end; over HTTP the session is ended.
    pub(super) async fn close(self) -> (Option<Ending>, Seen) {
        let mut seen = self.seen;
        match self.carrier {
            Carrier::Pipe(pipe) => {
                let ending = pipe.close(self.timeout, &mut seen).await;
                (Some(ending), seen)
            }
            Carrier::Post(post) => {
                if post.session.is_some() && !self.revision.is_modern() {
                    let ask = Ask::verb(http::Method::DELETE, &[]);
                    // Whether it minds is a check of its own.
                    let _ = post.exchange(&ask, Until::Quiet, self.timeout, &mut seen).await;
                }
                (None, seen)
            }
        }
    }

    /// A request whose answer shows that what was sent before it has been read.
    fn barrier(&mut self, until: Until<'_>) -> Option<(Value, String)> {
        if !matches!((until, &self.carrier), (Until::Quiet, Carrier::Pipe(_))) {
            return None;
        }
        self.asked += 1;
        let id = Value::from(format!("still-there-{}", self.asked));
        let method = if self.revision.is_modern() { "server/discover" } else { "ping" };
        let frame = request(self.revision, &id, method, json!({})).to_string();
        Some((id, frame))
    }
}

/// The request that opens a legacy session.
pub(super) fn initialize(id: &Value, version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": client_info(),
    }})
}

/// A request as the revision wants it.
pub(super) fn request(revision: Revision, id: &Value, method: &str, params: Value) -> Value {
    let mut params = params;
    if revision.is_modern() {
        let meta = &mut params["_meta"];
        for (key, value) in modern_meta(revision.as_str()) {
            if meta.get(&key).is_none() {
                meta[key] = value;
            }
        }
    }
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// What each modern request carries.
pub(super) fn modern_meta(version: &str) -> [(String, Value); 3] {
    use bowline::model::meta_key::{CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION};
    [
        (PROTOCOL_VERSION.to_owned(), json!(version)),
        (CLIENT_INFO.to_owned(), client_info()),
        (CLIENT_CAPABILITIES.to_owned(), json!({})),
    ]
}

fn client_info() -> Value {
    json!({"name": "bowline-check", "version": env!("CARGO_PKG_VERSION")})
}
