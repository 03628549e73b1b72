//! Letters between the nodes of a fleet: what belongs to another node, sealed with the keys of all.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bowline_proto::http::SessionId;
use bowline_proto::session::EventId;
use bowline_proto::wire::Message;
use bytes::Bytes;
use http::StatusCode;
use http_body::Body as HttpBody;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Sleep;

use super::admit::{Head, Permitted};
use super::body::Source;
use super::options::HttpLimits;
use super::reply::{self, Reply};
use super::request_body::read_body;
use super::service::{HttpService, Inner};
use super::sessions::HttpSession;
use super::stop::Stopped;
use crate::clock;
use crate::fleet::{Delivery, Node, Opened};
use crate::seal::KeyRing;
use crate::server::fleet::Joined;

const LETTER: &str = "fleet letter";
/// After how many keep-alives that did not come the stream of another node is over.
const QUIET: u32 = 3;
/// How long a letter is valid, in milliseconds.
const DELIVERY: u64 = 30_000;

/// What one node sends another.
#[derive(Serialize, Deserialize)]
struct Letter {
    until: u64,
    session: String,
    frame: String,
    /// For a stream of HTTP+SSE: the name of its principal.
    #[serde(default)]
    sse: Option<Option<String>>,
    /// The last event that a client has seen, which resumes its stream.
    #[serde(default)]
    resume: Option<String>,
}

impl Inner {
    fn letters(&self) -> KeyRing {
        self.core.keys.clone().with_max_token(self.longest_letter())
    }

    /// A frame, in base64 after being quoted.
    fn longest_letter(&self) -> usize {
        self.limits.body.saturating_mul(4)
    }
}

impl HttpService {
    /// Passes a message of a session on to the node that it is for. Returns `false` if that node
    /// may still wait for it and cannot be reached.
    pub(super) async fn pass_on(&self, to: Node, session: &str, frame: &[u8]) -> bool {
        let Some(joined) = &self.inner.core.fleet else { return true };
        self.send_letter(joined, to, (session, None), frame).await != Delivery::Failed
    }

    /// Passes a message of a session on to all other nodes at once. It is lost where it does not
    /// arrive.
    pub(super) async fn pass_to_all(&self, session: &str, frame: &[u8]) {
        let Some(joined) = &self.inner.core.fleet else { return };
        let mut letters = JoinSet::new();
        for node in joined.fleet.others() {
            let (service, session, frame) = (self.clone(), session.to_owned(), frame.to_vec());
            letters.spawn(async move { service.pass_on(node, &session, &frame).await });
        }
        letters.join_all().await;
    }

    /// Passes a message for a stream of HTTP+SSE on to its node.
    pub(super) async fn pass_to_stream(
        &self,
        head: &Head<'_>,
        (node, stream): (Node, &str),
        frame: &[u8],
    ) -> bool {
        let Some(joined) = &self.inner.core.fleet else { return false };
        let principal = head.principal.as_ref().map(|it| it.as_str().to_owned());
        let sent = self.send_letter(joined, node, (stream, Some(principal)), frame).await;
        sent == Delivery::Arrived
    }

    async fn send_letter(
        &self,
        joined: &Joined,
        node: Node,
        (session, sse): (&str, Option<Option<String>>),
        frame: &[u8],
    ) -> Delivery {
        let Ok(frame) = String::from_utf8(frame.to_vec()) else { return Delivery::Failed };
        let letter = Letter { until: 0, session: session.to_owned(), frame, sse, resume: None };
        match self.seal_letter(joined, node, letter) {
            Some(sealed) => joined.fleet.send(node, sealed).await,
            None => Delivery::Failed,
        }
    }

    fn seal_letter(&self, joined: &Joined, node: Node, letter: Letter) -> Option<String> {
        let until = joined.now().saturating_add(DELIVERY);
        let text = serde_json::to_vec(&Letter { until, ..letter }).ok()?;
        self.inner.letters().seal(LETTER, &node.number().to_be_bytes(), &text).ok()
    }

    /// Opens a stream of another node, which keeps its events, for a client that resumes it; `None`
    /// if it is one of this node, or its node does not run any more.
    pub(super) async fn open_elsewhere(&self, session: &HttpSession, last: &str) -> Option<Opened> {
        let joined = self.inner.core.fleet.as_ref().filter(|_| session.key().is_some())?;
        let event: EventId = last.parse().ok()?;
        let node = Node::of(event.stream.number()).filter(|it| *it != joined.fleet.node())?;
        let letter = Letter {
            until: 0,
            session: session.session.id()?.to_owned(),
            frame: String::new(),
            sse: None,
            resume: Some(last.to_owned()),
        };
        let opened = joined.fleet.open(node, self.seal_letter(joined, node, letter)?).await?;
        [StatusCode::OK, StatusCode::NO_CONTENT]
            .iter()
            .any(|status| status.as_u16() == opened.status)
            .then_some(opened)
    }

    /// Passes on what another node has opened.
    pub(super) fn pipe(&self, opened: Opened, stopped: Stopped) -> Reply {
        if opened.status != StatusCode::OK.as_u16() {
            return reply::status(StatusCode::NO_CONTENT);
        }
        let quiet = self.inner.limits.keep_alive.saturating_mul(QUIET);
        let silence = Box::pin(tokio::time::sleep(quiet));
        reply::stream(Piped { body: opened.body, stopped, quiet, silence })
    }

    /// Takes in a letter of another node.
    pub(super) async fn handle_letter<B: HttpBody>(
        &self,
        head: &Head<'_>,
        joined: &Joined,
        body: B,
    ) -> Reply {
        let limits = HttpLimits { body: self.inner.longest_letter(), ..self.inner.limits };
        let (sealed, _reserved) = match read_body(body, &limits, self.account(head)).await {
            Ok(read) => read,
            Err(reply) => return reply,
        };
        let to = joined.fleet.node().number().to_be_bytes();
        let opened = std::str::from_utf8(&sealed)
            .ok()
            .and_then(|sealed| self.inner.letters().open(LETTER, &to, sealed).ok());
        let letter: Option<Letter> = opened.and_then(|text| serde_json::from_slice(&text).ok());
        let now = joined.now();
        let is_new = |letter: &Letter| {
            letter.until >= now && self.inner.taken.take(&sealed, letter.until, now)
        };
        let letter = letter.filter(is_new);
        let Some(letter) = letter else { return reply::status(StatusCode::FORBIDDEN) };
        if let Some(principal) = &letter.sse {
            let principal = principal.as_deref();
            let frame = Permitted::by_another_node(letter.frame.into());
            return self.write_sse(&letter.session, principal, frame).await;
        }
        let id = SessionId::parse(&letter.session);
        let session = id.and_then(|id| self.inner.sessions.peek(&id));
        if let Some(last) = &letter.resume {
            return match session {
                Some(session) => self.resume(&session, last, self.stopped()),
                None => reply::status(StatusCode::NOT_FOUND),
            };
        }
        // Without a session here, nothing waits for it.
        let Some(session) = session else { return reply::status(StatusCode::ACCEPTED) };
        match Message::parse(letter.frame.as_bytes()) {
            Ok(Message::Response(response)) => session.session.handle_response(&response),
            Ok(Message::Notification(told)) => {
                session.handle_notification(&told);
            }
            _ => {}
        }
        reply::status(StatusCode::ACCEPTED)
    }
}

/// A stream of another node, as it comes: until it ends or falls silent, or must end here.
struct Piped {
    body: mpsc::Receiver<Vec<u8>>,
    stopped: Stopped,
    quiet: Duration,
    silence: Pin<Box<Sleep>>,
}

impl Source for Piped {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.stopped.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        let polled = self.body.poll_recv(cx).map(|chunk| chunk.map(Bytes::from));
        if polled.is_ready() {
            self.silence.as_mut().reset(clock::now() + self.quiet);
            return polled;
        }
        self.silence.as_mut().poll(cx).map(|()| None)
    }
}

/// For the names of streams of HTTP+SSE: the node is in front.
pub(super) fn node_of(stream: &str) -> Option<Node> {
    stream.split_once('-').and_then(|(number, _)| number.parse().ok()).and_then(Node::new)
}
