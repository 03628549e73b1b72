//! Arrays of messages, which 2025-03-26 has and no other revision.

use std::future::poll_fn;
use std::sync::Arc;

use bowline_proto::error::ErrorObject;
use bowline_proto::method::{Method, Ping};
use bowline_proto::revision::Revision;
use bowline_proto::session::{Claim, Class, Facts, Kind, Transport, classify};
use bowline_proto::wire::{BatchError, Message, ParseError, Request, parse_batch};
use http::StatusCode;

use super::admit::Head;
use super::reply::{self, Reply};
use super::service::HttpService;
use super::sessions::HttpSession;
use super::stream;
use crate::server::{Outbox, Peer, Started, dispatch, legacy, scopes};
use crate::{Caller, Outcome};

impl HttpService {
    /// Takes in an array of messages, which only 2025-03-26 has. The answers come back as an array;
    /// handlers cannot ask the client anything meanwhile.
    pub(super) async fn post_batch(&self, head: &Head<'_>, frame: &[u8]) -> Reply {
        let bad = |error: &ErrorObject| reply::error(StatusCode::BAD_REQUEST, None, error);
        let session = match head.fields.session_id() {
            Err(refusal) => return reply::refusal(&refusal),
            Ok(None) => None,
            Ok(Some(id)) => match self.session(head, Some(&id)) {
                Ok(session) => Some(session),
                Err(refusal) => return reply::refusal(&refusal),
            },
        };
        let allowed = match &session {
            Some(session) => session.lock().lifecycle.handle_batch(),
            None => self.allow_batched(head, None),
        };
        if let Err(error) = allowed {
            return bad(&error);
        }
        let messages = match parse_batch(frame) {
            Ok(messages) => messages,
            Err(BatchError::Whole(error)) => return bad(&error.to_error_object()),
            Err(BatchError::Parts(errors)) => {
                let first = errors.first().map(ParseError::to_error_object);
                return bad(&first.unwrap_or_else(|| ErrorObject::invalid_request("a bad batch")));
            }
        };
        for message in &messages {
            if let Err(error) = self.allow_batched(head, Some(message)) {
                return bad(&error);
            }
        }
        let caller = match &session {
            Some(session) => session.peer.now(head.principal.as_ref()).caller.clone(),
            None => head.stranger(Revision::BATCHING),
        };
        // Handlers cannot ask: the answers are sent all at once.
        let peer = self.outsider(caller);
        match self.turn_away_any(&messages, &peer.caller) {
            Some(reply) => reply,
            None => self.serve_batch(session.as_ref(), &peer, &messages).await,
        }
    }

    /// The answer to messages whose caller may not do everything they ask for: 403, with all that
    /// all of them need. Then none of it is done.
    pub(super) fn turn_away_any(&self, messages: &[Message<'_>], caller: &Caller) -> Option<Reply> {
        let mut needed: Vec<String> = Vec::new();
        for message in messages {
            let Message::Request(request) = message else { continue };
            let core = &self.inner.core;
            let missing = scopes::missing(core, &request.method, request.params.raw(), caller);
            needed.extend(missing.into_iter().flatten());
        }
        needed.sort();
        needed.dedup();
        (!needed.is_empty()).then(|| self.insufficient(None, &needed))
    }

    /// Whether a message may come in an array; without one, whether any may.
    fn allow_batched(
        &self,
        head: &Head<'_>,
        message: Option<&Message<'_>>,
    ) -> Result<(), ErrorObject> {
        let (kind, claim) = match message {
            None => (Kind::Request(Ping::NAME), Claim::default()),
            Some(Message::Request(request)) => {
                (Kind::Request(&request.method), request.params.claim())
            }
            Some(Message::Notification(told)) => {
                (Kind::Notification(&told.method), Claim::read(told.params))
            }
            Some(Message::Response(_) | Message::Fault(_)) => (Kind::Answer, Claim::default()),
        };
        let header = head.fields.revision().map(|value| value.to_str());
        let facts = Facts {
            transport: Transport::Http,
            kind,
            claim,
            in_batch: true,
            header: header.map(|text| text.unwrap_or("?")),
            has_session_id: head.fields.has_session_id(),
        };
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

    async fn serve_batch(
        &self,
        session: Option<&Arc<HttpSession>>,
        peer: &Arc<Peer>,
        messages: &[Message<'_>],
    ) -> Reply {
        let revision = peer.caller.revision;
        let mut answers = Vec::new();
        for message in messages {
            match (message, session) {
                (Message::Request(request), session) => {
                    let mut outcome = self.serve_batched(session, peer, request).await;
                    if !answers.is_empty() {
                        answers.push(b',');
                    }
                    self.inner.core.signature.encode(
                        &mut answers,
                        &request.id,
                        revision,
                        &mut outcome,
                    );
                }
                (Message::Notification(told), Some(session)) => {
                    session.handle_notification(&told.method, told.params);
                }
                (Message::Response(response), Some(session)) => {
                    session.session.handle_response(response);
                }
                _ => {}
            }
        }
        if answers.is_empty() {
            return reply::status(StatusCode::ACCEPTED);
        }
        answers.insert(0, b'[');
        answers.push(b']');
        reply::json(StatusCode::OK, answers)
    }

    async fn serve_batched(
        &self,
        session: Option<&Arc<HttpSession>>,
        peer: &Arc<Peer>,
        request: &Request<'_>,
    ) -> Outcome {
        if let Some(session) = session {
            session.lock().lifecycle.handle_legacy_request(&request.method)?;
            let (kept, sink) = (&session.session, &session.sink);
            let core = &self.inner.core;
            let served = legacy::serve(&request.method, request.params.raw(), core, kept, sink);
            if let Some(outcome) = served {
                return outcome;
            }
        }
        let outbox = Arc::new(Outbox::new(self.inner.core.limits.outbox));
        let started = dispatch::start(&dispatch::Request {
            peer,
            asked: request,
            outbox: &outbox,
            headers: None,
        });
        match started {
            Started::Done(outcome) => *outcome,
            Started::Running(running) => {
                let mut work = stream::Work::new(running);
                poll_fn(|cx| work.poll(cx)).await
            }
        }
    }
}
