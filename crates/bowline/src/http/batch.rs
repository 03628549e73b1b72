//! Batches of messages, which only 2025-03-26 has.

use std::sync::Arc;
use std::task::{Context, Poll};

use bowline_proto::error::ErrorObject;
use bowline_proto::method::{Method, Ping};
use bowline_proto::revision::Revision;
use bowline_proto::session::{Claim, Class, Facts, Kind, classify};
use bowline_proto::wire::{BatchError, Message, ParseError, Request, parse_batch};
use bytes::Bytes;
use http::StatusCode;
use tokio::task::AbortHandle;

use super::admit::Head;
use super::body::Source;
use super::reply::{self, Reply};
use super::service::{HttpService, facts};
use super::sessions::HttpSession;
use crate::server::audit::Why;
use crate::server::{Asker, HttpHead, Outbox, Peer, Started, dispatch, until_deadline};
use crate::{Failure, Outcome};

/// Bytes of answers that wait to be sent. Beyond it, the next message of the batch waits.
const READY: usize = 64 << 10;

impl HttpService {
    /// Handles a batch of messages. The answers are sent as an array, each when it is ready;
    /// handlers cannot ask the client anything in the meantime.
    pub(super) async fn post_batch(&self, head: &Head<'_>, frame: &Bytes) -> Reply {
        let bad = |error: &ErrorObject| {
            reply::error(StatusCode::BAD_REQUEST, None, error).because(Why::Message)
        };
        let session = match head.fields.session_id() {
            Err(refusal) => return reply::refusal(&refusal),
            Ok(None) => None,
            Ok(Some(id)) => match self.session(head, Some(&id)).await {
                Ok(session) => Some(session),
                Err(reply) => return reply,
            },
        };
        let allowed = match &session {
            Some(session) => session.lock().lifecycle.handle_batch(),
            None => self.allow_batched(head, None),
        };
        if let Err(error) = allowed {
            return bad(&error);
        }
        let messages = match parse_batch(frame, self.inner.core.limits.batch) {
            Ok(messages) => messages,
            Err(BatchError::Whole(error)) => return bad(&error.to_error_object()),
            Err(BatchError::Parts(errors)) => {
                let first = errors.first().map(ParseError::to_error_object);
                return bad(
                    &first.unwrap_or_else(|| ErrorObject::invalid_request("malformed batch"))
                );
            }
        };
        for message in &messages {
            if let Err(error) = self.allow_batched(head, Some(message)) {
                return bad(&error);
            }
        }
        // Handlers cannot ask, because the answers are sent together.
        let peer = match &session {
            Some(session) => session.peer.now(head.principal.as_ref()).silent(),
            None => self.outsider(head.stranger(Revision::BATCHING)),
        };
        if let Err(reply) = self.permit_all(head.asker(&peer), &messages).await {
            return reply;
        }
        let asks = messages.iter().any(|message| matches!(message, Message::Request(_)));
        let (head, frame) = (Arc::clone(head.shared), frame.clone());
        let batch = Batch { service: self.clone(), session, peer, head, frame };
        let ready = Arc::new(Outbox::new(READY));
        if !asks {
            return match batch.serve(ready).await {
                true => reply::status(StatusCode::ACCEPTED),
                false => reply::busy("the node that has asked cannot be reached"),
            };
        }
        let serving = batch.serve(Arc::clone(&ready));
        let task = self.spawn(async move {
            serving.await;
        });
        reply::streamed(Answers { ready, task })
    }

    /// Checks whether a message may be in a batch; without one, whether batches are allowed.
    fn allow_batched(
        &self,
        head: &Head<'_>,
        message: Option<&Message<'_>>,
    ) -> Result<(), ErrorObject> {
        let (kind, claim) = match message {
            Some(message) => (Kind::of(message), Claim::of_message(message)),
            None => (Kind::Request(Ping::NAME), Claim::default()),
        };
        let facts = Facts { in_batch: true, ..facts(head.fields, kind, claim) };
        match classify(&self.rules(), &facts) {
            Class::LegacySession => Ok(()),
            Class::LegacyStateless(revision) if revision.has_batches() => Ok(()),
            Class::Refused(refusal) => Err(refusal.error),
            // 2025-03-26, basic/lifecycle.
            Class::LegacyInitialize => {
                Err(ErrorObject::invalid_request("initialize: must not be in a batch"))
            }
            Class::Modern(_) | Class::LegacyStateless(_) => {
                let message = format!("batches exist only in {}", Revision::BATCHING);
                Err(ErrorObject::invalid_request(message))
            }
        }
    }
}

/// A batch that may be served. It outlives its request: each answer is sent when it is ready.
struct Batch {
    service: HttpService,
    session: Option<Arc<HttpSession>>,
    peer: Arc<Peer>,
    head: Arc<HttpHead>,
    frame: Bytes,
}

impl Batch {
    /// Serves one message after the other, and lets other tasks run in between. Returns `false` if
    /// an answer was for another node that cannot be reached.
    async fn serve(self, answers: Arc<Outbox>) -> bool {
        let answers = Closing(answers);
        // It was parsed before.
        let Ok(messages) = parse_batch(&self.frame, usize::MAX) else { return true };
        let (signature, revision) =
            (&self.service.inner.core.signature, self.peer.profile.revision);
        let (mut separator, mut has_arrived) = (b'[', true);
        for message in &messages {
            match (message, &self.session) {
                (Message::Request(request), _) => {
                    let mut outcome = self.serve_request(request).await;
                    let write = |out: &mut Vec<u8>| {
                        out.push(separator);
                        signature.encode(out, &request.id, revision, &mut outcome);
                    };
                    if answers.0.send(write).await.is_err() {
                        return has_arrived;
                    }
                    separator = b',';
                }
                (told, Some(session)) => {
                    let mut frame = Vec::new();
                    let _ = told.encode(&mut frame);
                    has_arrived &= Box::pin(self.service.hear(session, told, &frame)).await;
                }
                _ => {}
            }
            tokio::task::yield_now().await;
        }
        let _ = answers.0.push(|out| out.push(b']'));
        has_arrived
    }

    async fn serve_request(&self, request: &Request<'_>) -> Outcome {
        let asker = Asker { peer: &self.peer, head: Some(&self.head) };
        let asked = dispatch::Request { asker, asked: request, headers: None };
        if let Some(session) = &self.session {
            let admitted = session.lock().lifecycle.handle_legacy_request(&request.method);
            if let Err(error) = admitted {
                return self.service.surround(&asked, Err(Failure::rejected(error))).await;
            }
        }
        let outbox = Arc::new(Outbox::new(self.service.inner.core.limits.outbox));
        let parts = self.session.as_ref().map(|session| session.parts());
        let outcome = match dispatch::start(&asked, &outbox, parts) {
            Started::Done(outcome) => *outcome,
            Started::Running(running) | Started::Settled(running) => until_deadline(running).await,
            Started::Listening(_) => {
                Err(Failure::rejected(ErrorObject::method_not_found(&request.method)))
            }
        };
        if let Some(session) = &self.session
            && Box::pin(self.service.keep_changed(session, request, &outcome)).await.is_err()
        {
            let message = format!("{}: the change of the session is not kept", request.method);
            return Err(Failure::rejected(ErrorObject::internal(message)));
        }
        outcome
    }
}

/// Ends the answers, however the batch ends.
struct Closing(Arc<Outbox>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The answers as the body of a response. A client that disconnects cancels the rest.
struct Answers {
    ready: Arc<Outbox>,
    task: AbortHandle,
}

impl Source for Answers {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut bytes = Vec::new();
        self.ready.poll_take(cx, &mut bytes).map(|is_open| is_open.then(|| bytes.into()))
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.task.abort();
    }
}
