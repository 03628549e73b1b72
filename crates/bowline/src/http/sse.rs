//! HTTP+SSE, the transport of 2024-11-05: one stream of events down, POSTs up.
//!
//! Behind it runs the same connection as on stdio, over a pipe in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bowline_proto::http::{Refusal, check_content_type};
use bowline_proto::sse::Event;
use bytes::Bytes;
use http::StatusCode;
use http_body::Body as HttpBody;
use tokio::io::{AsyncRead, AsyncWriteExt, DuplexStream, ReadBuf, ReadHalf, WriteHalf};

use super::admit::{Head, Permitted};
use super::body::Source;
use super::modern::After;
use super::reply::{self, Reply};
use super::request_body::read_body;
use super::service::HttpService;
use super::stream::Ticker;
use crate::fleet::Node;
use crate::server::account::places::{Kind, Place};
use crate::server::{Connection, Rights, Via};
use crate::{Principal, random};

/// The open streams, by the name in their endpoint URL.
#[derive(Default)]
pub(super) struct SseTable(Mutex<HashMap<String, Endpoint>>);

/// The endpoint of a stream, and its owner.
#[derive(Clone)]
struct Endpoint {
    principal: Option<Principal>,
    upward: Arc<tokio::sync::Mutex<Upward>>,
}

/// The pipe that POSTs are written to.
struct Upward {
    pipe: WriteHalf<DuplexStream>,
    /// Whether a client that disconnected while its message was written has left half a line.
    is_torn: bool,
}

impl Upward {
    /// Writes a frame as one line. A write that is dropped halfway spoils its own message and no
    /// other.
    async fn write(&mut self, frame: Permitted) -> std::io::Result<()> {
        let (line, held) = frame.into_line();
        if std::mem::replace(&mut self.is_torn, true) {
            self.pipe.write_all(b"\n").await?;
        }
        let (text, end) = line.split_at(line.len() - 1);
        self.pipe.write_all(text).await?;
        // Once it has its end, the connection holds it.
        drop(held);
        self.pipe.write_all(end).await?;
        self.is_torn = false;
        Ok(())
    }
}

/// The most bytes that are sent as one piece. Even if all of them are short events, a piece is so
/// small that it does not count: the connection holds an answer until all of it is in the pipe.
const PIECE: usize = 2 << 10;

/// The capacity of the pipe, in each direction.
const PIPE: usize = 8 << 10;

impl HttpService {
    /// Opens a stream; its first event names the endpoint to POST to.
    pub(super) fn open_sse(&self, head: &Head<'_>) -> Reply {
        let Some(table) = &self.inner.sse else { return reply::status(StatusCode::NOT_FOUND) };
        let place = match Place::take(&self.account(head), self.inner.limits.most(Kind::Streams)) {
            Ok(place) => place,
            Err(full) => return reply::busy(&full.to_string()),
        };
        let principal = head.principal.clone();
        let stopped = match self.listening(principal.as_ref()) {
            Ok(stopped) => stopped,
            Err(reply) => return reply,
        };
        let (ours, theirs) = tokio::io::duplex(PIPE);
        // Scopes are those of the token of each POST; `Permitted` proves that they were checked.
        let via = Via { rights: Rights::Unlimited, ..Via::HTTP };
        let (core, account) = (Arc::clone(&self.inner.core), self.account(head));
        let calls = self.inner.limits.most(Kind::Calls);
        let connection =
            Connection::new(core, account, principal.clone(), via).opened_by(head.shared, calls);
        self.spawn(async move {
            let (read, write) = tokio::io::split(theirs);
            if let Err(error) = connection.run(read, write, stopped).await {
                tracing::debug!(%error, "an HTTP+SSE connection failed");
            }
        });
        let (read, pipe) = tokio::io::split(ours);
        let upward = Arc::new(tokio::sync::Mutex::new(Upward { pipe, is_torn: false }));
        let mut name = random::token();
        if let Some(joined) = &self.inner.core.fleet {
            name = format!("{}-{name}", joined.fleet.node().number());
        }
        let mut sessions = table.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(name.clone(), Endpoint { principal, upward });
        drop(sessions);
        let endpoint = self.messages_reference(&name);
        let mut opening = Vec::new();
        let data = Some(endpoint.as_bytes());
        let _ = Event { event: Some("endpoint"), data, ..Event::default() }.encode(&mut opening);
        let rest = Downward {
            service: self.clone(),
            name,
            read,
            is_within: false,
            keep_alive: Ticker::new(self.inner.limits.keep_alive),
            _place: place,
        };
        reply::stream(After { opening: Some(opening.into()), rest })
    }

    /// Handles a message for a stream.
    pub(super) async fn post_sse<B: HttpBody>(&self, head: &Head<'_>, body: B) -> Reply {
        if let Err(refusal) = check_content_type(head.fields) {
            return reply::refusal(&refusal);
        }
        let name = head.parts.uri.query().and_then(|query| query.strip_prefix("session="));
        let elsewhere = name.and_then(|name| self.node_of_stream(name).zip(Some(name)));
        let principal = head.principal.as_ref().map(Principal::as_str);
        if elsewhere.is_none() && self.endpoint(name, principal).is_none() {
            return reply::refusal(&Refusal::SessionUnknown);
        }
        let (frame, held) = match read_body(body, &self.inner.limits, self.account(head)).await {
            Ok(read) => read,
            Err(reply) => return reply,
        };
        let frame = match Box::pin(self.permit_frame(head, frame, held)).await {
            Ok(frame) => frame,
            Err(reply) => return reply,
        };
        if let Some(stream) = elsewhere {
            return match Box::pin(self.pass_to_stream(head, stream, frame.as_bytes())).await {
                true => reply::status(StatusCode::ACCEPTED),
                false => reply::refusal(&Refusal::SessionUnknown),
            };
        }
        self.write_sse(name.unwrap_or_default(), principal, frame).await
    }

    /// The node of a fleet that a stream belongs to, if it is another one.
    fn node_of_stream(&self, name: &str) -> Option<Node> {
        let joined = self.inner.core.fleet.as_ref()?;
        super::letters::node_of(name).filter(|node| *node != joined.fleet.node())
    }

    /// The endpoint of a stream, for its owner.
    fn endpoint(&self, name: Option<&str>, principal: Option<&str>) -> Option<Endpoint> {
        let table = self.inner.sse.as_ref()?;
        let found = table.0.lock().unwrap_or_else(PoisonError::into_inner).get(name?).cloned();
        found.filter(|it| it.principal.as_ref().map(Principal::as_str) == principal)
    }

    /// Writes a message for a stream of this process, which its sender had the scopes for.
    pub(super) async fn write_sse(
        &self,
        name: &str,
        principal: Option<&str>,
        frame: Permitted,
    ) -> Reply {
        let Some(Endpoint { upward, .. }) = self.endpoint(Some(name), principal) else {
            return reply::refusal(&Refusal::SessionUnknown);
        };
        let write = async { upward.lock().await.write(frame).await };
        match tokio::time::timeout(self.inner.limits.body_idle, write).await {
            Ok(Ok(())) => reply::status(StatusCode::ACCEPTED),
            Ok(Err(_)) => reply::refusal(&Refusal::SessionUnknown),
            Err(_) => reply::busy("the client does not read the answers to earlier messages"),
        }
    }
}

/// The events of a stream, one for each line of the connection behind it. Lines are passed on piece
/// by piece, however long they are.
struct Downward {
    service: HttpService,
    name: String,
    read: ReadHalf<DuplexStream>,
    /// Whether a part of an event has been sent.
    is_within: bool,
    keep_alive: Ticker,
    _place: Place,
}

impl Downward {
    /// Writes what was read as events.
    fn encode(&mut self, read: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(read.len() + 64);
        for piece in read.split_inclusive(|byte| *byte == b'\n') {
            if !self.is_within {
                out.extend_from_slice(b"event: message\ndata: ");
            }
            out.extend_from_slice(piece);
            self.is_within = !piece.ends_with(b"\n");
            if !self.is_within {
                out.push(b'\n');
            }
        }
        out
    }
}

impl Source for Downward {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut chunk = [0; PIECE];
        let mut buffer = ReadBuf::new(&mut chunk);
        match std::pin::Pin::new(&mut self.read).poll_read(cx, &mut buffer) {
            // The rest of an event follows soon; a comment would be a part of it.
            Poll::Pending if self.is_within => Poll::Pending,
            Poll::Pending => self.keep_alive.poll(cx).map(Some),
            Poll::Ready(Err(_)) => Poll::Ready(None),
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => Poll::Ready(None),
            Poll::Ready(Ok(())) => {
                self.keep_alive.reset();
                Poll::Ready(Some(self.encode(buffer.filled()).into()))
            }
        }
    }
}

/// The endpoint ends with its stream; the connection behind it sees the end of its input.
impl Drop for Downward {
    fn drop(&mut self) {
        if let Some(table) = &self.service.inner.sse {
            table.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
        }
    }
}
