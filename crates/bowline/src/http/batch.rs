//! Batches of messages, which only 2025-03-26 has.

use std::sync::Arc;

use bowline_proto::error::ErrorObject;
use bowline_proto::method::{Method, Ping};
use bowline_proto::revision::Revision;
use bowline_proto::session::{Claim, Class, Facts, Kind, classify};
use bowline_proto::wire::{BatchError, Message, ParseError, Request, parse_batch};
use http::StatusCode;

use super::admit::Head;
use super::reply::{self, Reply};
use super::service::{HttpService, facts};
use super::sessions::HttpSession;
use crate::server::audit::Why;
use crate::server::{Asker, Outbox, Started, dispatch, until_deadline};
use crate::{Failure, Outcome};

impl HttpService {
    /// Handles a batch of messages. The answers are sent as an array; handlers cannot ask the
    /// client anything in the meantime.
    pub(super) async fn post_batch(&self, head: &Head<'_>, frame: &[u8]) -> Reply {
        let bad = |error: &ErrorObject| {
            reply::error(StatusCode::BAD_REQUEST, None, error).because(Why::Message)
        };
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
        let asker = head.asker(&peer);
        match self.permit_all(asker, &messages).await {
            Ok(()) => self.serve_batch(session.as_ref(), asker, &messages).await,
            Err(reply) => reply,
        }
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

    async fn serve_batch(
        &self,
        session: Option<&Arc<HttpSession>>,
        asker: Asker<'_>,
        messages: &[Message<'_>],
    ) -> Reply {
        let revision = asker.peer.profile.revision;
        let mut answers = Vec::new();
        for message in messages {
            match (message, session) {
                (Message::Request(request), session) => {
                    let mut outcome = self.serve_batched(session, asker, request).await;
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
                    session.handle_notification(told);
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
        asker: Asker<'_>,
        request: &Request<'_>,
    ) -> Outcome {
        let asked = dispatch::Request { asker, asked: request, headers: None };
        if let Some(session) = session {
            let admitted = session.lock().lifecycle.handle_legacy_request(&request.method);
            if let Err(error) = admitted {
                return self.surround(&asked, Err(Failure::rejected(error))).await;
            }
        }
        let outbox = Arc::new(Outbox::new(self.inner.core.limits.outbox));
        let parts = session.map(|session| session.parts());
        match dispatch::start(&asked, &outbox, parts) {
            Started::Done(outcome) => *outcome,
            Started::Running(running) | Started::Settled(running) => until_deadline(running).await,
            Started::Listening(_) => {
                Err(Failure::rejected(ErrorObject::method_not_found(&request.method)))
            }
        }
    }
}
