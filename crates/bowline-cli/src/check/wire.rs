//! One connection to the server under test, at the level of frames: exactly the bytes of a check
//! are sent, and everything that comes back is kept.
//!
//! The SDK's client is of no use here: it sends nothing wrong and forgives too much.

mod pipe;
mod post;
mod sse;
mod stream;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline::Revision;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

pub(super) use self::pipe::{Ending, Program};
#[cfg(test)]
pub(super) use self::pipe::{Reader, Writer};
#[cfg(test)]
pub(super) use self::post::Fault;
pub(super) use self::post::{Ask, Post, events};
pub(super) use self::sse::{begin, endpoint, look};
use self::stream::{Sending, Stream};
use super::evidence::Evidence;
use super::seen::Seen;

/// Where the server is.
#[derive(Clone)]
pub(super) enum Door {
    /// A program to start.
    Program(Program),
    /// An address to post to.
    Address(Box<Post>),
    /// An address with a stream of events, which says where to post to.
    Events(Box<Post>),
}

impl Door {
    /// The address, if it is one.
    pub(super) fn post(&self) -> Option<&Post> {
        match self {
            Self::Program(_) => None,
            Self::Address(post) | Self::Events(post) => Some(post),
        }
    }
}

/// What comes on a stream: its kind, where it is an event that has one, and its bytes.
pub(super) type Frame = (Option<String>, Vec<u8>);

/// One of the two ways that answers come: on a stream with all else, or each to its request.
enum Carrier {
    Stream(Box<Stream>),
    Post(Box<Post>),
}

/// When an exchange is over.
#[derive(Clone, Copy)]
pub(super) enum Until<'a> {
    /// The answer with this id has come.
    Answer(&'a Value),
    /// Any message has come.
    First,
    /// Nothing more can come: on a stream, a request sent after the frame has been answered.
    Quiet,
}

/// Headers that differ from the usual: another value, or none.
pub(super) type Changes<'a> = &'a [(&'static str, Option<&'a str>)];

/// What came back.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard {
    /// Over HTTP; over HTTP+SSE of a refusal only, since all else comes on the stream.
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
    /// It does not begin a session.
    NoSession(String),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(after) => write!(f, "no answer within {after:?}"),
            Self::Closed(how) => write!(f, "the server is gone: {how}"),
            Self::Unreachable(why) => write!(f, "the server cannot be reached: {why}"),
            Self::NoSession(why) => write!(f, "there is no handshake: {why}"),
        }
    }
}

/// A connection: opened, and after [`Link::shake_hands`] ready for requests.
pub(super) struct Link {
    carrier: Carrier,
    /// Of a program: which one it is.
    number: Option<u64>,
    revision: Revision,
    timeout: Duration,
    asked: u64,
    /// What was sent and heard since it was last taken.
    pub(super) evidence: Vec<Evidence>,
    /// What the server did of its own accord, for the checks that watch.
    pub(super) seen: Seen,
}

impl Link {
    /// Starts the program, opens the stream, or makes ready to post.
    pub(super) async fn open(
        door: &Door,
        revision: Revision,
        timeout: Duration,
    ) -> Result<Self, Lost> {
        static STARTED: AtomicU64 = AtomicU64::new(1);
        let mut number = None;
        let carrier = match door {
            Door::Program(program) => {
                let new = STARTED.fetch_add(1, Ordering::Relaxed);
                number = Some(new);
                Carrier::Stream(Box::new(Stream::start(program, new)?))
            }
            Door::Events(post) => Carrier::Stream(Box::new(Stream::open(post, timeout).await?)),
            Door::Address(post) => Carrier::Post(post.clone()),
        };
        let seen = Seen::new(revision).on(number);
        Ok(Self { carrier, number, revision, timeout, asked: 0, evidence: Vec::new(), seen })
    }

    /// The legacy handshake; gives the whole answer to `initialize`. The modern era has none.
    pub(super) async fn shake_hands(&mut self, version: &str) -> Result<Value, Lost> {
        let heard = self.initialize(version).await?;
        let Some(answer) = heard.responses().next().cloned() else {
            let status = heard.status.map_or_else(String::new, |status| format!("{status} "));
            return Err(Lost::Closed(format!(
                "initialize got no message, but {status}{:?}",
                heard.other
            )));
        };
        if answer.get("result").is_some() {
            self.agree().await?;
        }
        Ok(answer)
    }

    /// The second half of it.
    pub(super) async fn agree(&mut self) -> Result<(), Lost> {
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.tell(&ready.to_string(), &[]).await.map(drop)
    }

    /// What it has heard since this was last taken.
    pub(super) fn take_seen(&mut self) -> Seen {
        std::mem::replace(&mut self.seen, Seen::new(self.revision).on(self.number))
    }

    /// The first half of it: keeps what the server gives out, whatever else comes.
    pub(super) async fn initialize(&mut self, version: &str) -> Result<Heard, Lost> {
        let id = self.next_id();
        let frame = initialize(&id, version).to_string();
        let mut heard = self.exchange(&frame, Until::Answer(&id), &[]).await?;
        let answer = heard.answer(&id).cloned();
        heard.messages.retain(|message| message.get("method").is_some());
        let post = match &mut self.carrier {
            Carrier::Post(post) => Some(&mut **post),
            Carrier::Stream(stream) => stream.post_mut(),
        };
        if let Some(post) = post {
            post.session = heard.headers.get("mcp-session-id").cloned();
            let agreed = answer.as_ref().and_then(|it| it.pointer("/result/protocolVersion"));
            post.negotiated = agreed.and_then(Value::as_str).map(ToOwned::to_owned);
        }
        // Only one of the answers is to this.
        heard.messages.extend(answer);
        Ok(heard)
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
            Carrier::Stream(stream) => {
                let sending = Sending { frame, changes, until, barrier, patience: timeout };
                stream.exchange(&sending, &mut self.seen).await
            }
        };
        // With other headers it may be refused for other reasons.
        if let (Ok(heard), []) = (&heard, changes) {
            self.seen.refusal(heard);
        }
        self.evidence.push(shown.heard(&heard));
        heard
    }

    /// Sends a notification, and where each message is an exchange hears what is said to it.
    pub(super) async fn tell(&mut self, frame: &str, changes: Changes<'_>) -> Result<Heard, Lost> {
        match &mut self.carrier {
            Carrier::Post(_) => self.exchange(frame, Until::Quiet, changes).await,
            Carrier::Stream(stream) => {
                self.evidence.push(Evidence::sent(frame, changes));
                stream.tell(frame, self.timeout).await.map(|()| Heard::default())
            }
        }
    }

    /// The HTTP side, for checks of headers, verbs and sessions.
    pub(super) fn post(&self) -> Option<&Post> {
        match &self.carrier {
            Carrier::Post(post) => Some(post),
            Carrier::Stream(stream) => stream.post(),
        }
    }

    /// An HTTP exchange that is not a plain message. Of HTTP+SSE, what comes on the stream is not
    /// waited for.
    pub(super) async fn http(&mut self, ask: &Ask<'_>) -> Result<Heard, Lost> {
        let Some(post) = self.post().cloned() else {
            return Err(Lost::Closed("this is no HTTP connection".to_owned()));
        };
        self.http_at(&post, ask).await
    }

    /// The same at another address.
    pub(super) async fn http_at(&mut self, post: &Post, ask: &Ask<'_>) -> Result<Heard, Lost> {
        let heard = post.exchange(ask, Until::Quiet, self.timeout, &mut self.seen).await;
        self.evidence.push(ask.evidence().heard(&heard));
        heard
    }

    /// Closes standard input and waits for the end; over HTTP the session is ended.
    pub(super) async fn close(self) -> (Option<Ending>, Seen) {
        let mut seen = self.seen;
        match self.carrier {
            Carrier::Stream(stream) => {
                let ending = stream.close(self.timeout, &mut seen).await;
                (ending, seen)
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
        if !matches!((until, &self.carrier), (Until::Quiet, Carrier::Stream(_))) {
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
