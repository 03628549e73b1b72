//! Legacy requests, from 2025-03-26 to 2025-11-25: sessions, and streams that can be resumed.
//!
//! A client that disconnects does not cancel its requests: a handler that is not ready at once
//! becomes a task of the service, and its messages are kept in the session's replay buffer until
//! the client reconnects.

use std::sync::{Arc, OnceLock};
use std::task::Poll;

use bowline_proto::error::ErrorObject;
use bowline_proto::http::{MCP_SESSION_ID, Refusal, SessionId, legacy_revision};
use bowline_proto::method::{Method, SetLevel, Subscribe, Unsubscribe};
use bowline_proto::model::ResourcesCapability;
use bowline_proto::revision::Revision;
use bowline_proto::session::{BeginError, Lifecycle, Reaction, Sessions};
use bowline_proto::wire::{Id, Message, Notification, Request};
use http::StatusCode;

use super::admit::Head;
use super::live::Pump;
use super::reply::{self, Reply};
use super::service::HttpService;
use super::sessions::{HttpSession, InFlight};
use super::stream::{Execution, poll_once};
use crate::fleet::Node;
use crate::server::account::places::{Full, Kind, Most, Place};
use crate::server::account::{Account, Reservation};
use crate::server::legacy::{self, SessionChange, SessionParts};
use crate::server::{Call, Outbox, Started, dispatch, listen, until_deadline};
use crate::{Answer, Failure, FailureKind, Outcome, Transport};

impl HttpService {
    /// Opens a session.
    pub(super) async fn initialize(&self, head: &Head<'_>, request: &Request<'_>) -> Reply {
        let mut lifecycle = Lifecycle::new(self.inner.core.offer);
        let account = self.account(head);
        let sink = self.inner.core.registry.bus().attach(Arc::clone(&account));
        let initialized = legacy::initialize(
            &self.inner.core,
            &mut lifecycle,
            &sink,
            request.params.raw(),
            (Transport::Http, head.principal.clone()),
        );
        let has_session = self.rules().sessions == Sessions::Required;
        let (profile, outcome) = match initialized {
            Ok((profile, mut answer)) => {
                if !has_session {
                    promise_no_changes(&mut answer);
                }
                (profile, Ok(answer))
            }
            Err(error) => (head.stranger(Revision::LATEST_LEGACY), Err(Failure::rejected(error))),
        };
        let peer = self.outsider(profile.clone());
        let asked = dispatch::Request { asker: head.asker(&peer), asked: request, headers: None };
        let mut reply = match self.surround(&asked, outcome).await {
            // There is no session, whatever the error, and the status says so.
            Err(Failure { kind, error, .. }) if kind != FailureKind::Forbidden => {
                return reply::error(StatusCode::BAD_REQUEST, Some(&request.id), &error);
            }
            outcome => self.reply(&request.id, profile.revision, outcome),
        };
        if let Some(joined) = self.inner.core.fleet.as_ref().filter(|_| has_session) {
            match Box::pin(self.seal_session(head, joined, &profile)).await {
                Ok(id) => reply.headers_mut().insert(MCP_SESSION_ID, id.as_value().clone()),
                Err(reply) => return reply,
            };
        } else if has_session {
            let revision = profile.revision;
            let place = match self.session_place(&account) {
                Ok(place) => place,
                Err(full) => return reply::busy(&format!("initialize: {full}")),
            };
            let identity = request.params.raw().map_or(0, |params| params.get().len());
            let reserved = Reservation::new(account);
            let session = HttpSession::new(&self.inner.core, profile, (lifecycle, sink), reserved);
            session.hold(place);
            let opened = Arc::clone(&session.session);
            let Some(id) = self.inner.sessions.open(session, identity) else {
                return reply::busy("initialize: too many sessions at a time");
            };
            opened.begin(head.origin(), revision);
            reply.headers_mut().insert(MCP_SESSION_ID, id.as_value().clone());
        }
        reply
    }

    /// A place for one more session. Idle ones give theirs back first.
    pub(super) fn session_place(&self, account: &Arc<Account>) -> Result<Place, Full> {
        // The table counts all of them.
        let most = Most { all: usize::MAX, ..self.inner.limits.most(Kind::Sessions) };
        Place::take(account, most)
            .or_else(|_| {
                self.inner.sessions.make_room();
                Place::take(account, most)
            })
            .or_else(|full| {
                let is_shared = self.inner.core.fleet.is_some();
                match is_shared && self.inner.sessions.make_room_of(account) {
                    true => Place::take(account, most),
                    false => Err(full),
                }
            })
    }

    /// Runs the middleware around an outcome that is already known. What it sends meanwhile is
    /// dropped.
    pub(super) async fn surround(
        &self,
        asked: &dispatch::Request<'_>,
        outcome: Outcome,
    ) -> Outcome {
        if self.inner.core.middleware().is_empty() {
            return outcome;
        }
        let outbox = Arc::new(Outbox::new(self.inner.core.limits.outbox));
        match dispatch::surround(asked, &outbox, outcome) {
            Started::Done(outcome) => *outcome,
            Started::Running(running) | Started::Settled(running) => {
                Box::pin(until_deadline(running)).await
            }
            Started::Listening(_) => Err(ErrorObject::method_not_found(&asked.asked.method).into()),
        }
    }

    /// The session that a request names.
    ///
    /// # Errors
    /// When there is none; this is the answer.
    pub(super) async fn session(
        &self,
        head: &Head<'_>,
        id: Option<&SessionId>,
    ) -> Result<Arc<HttpSession>, Reply> {
        let refused = |refusal| reply::refusal(&refusal);
        let id = id.ok_or(Refusal::SessionMissing).map_err(refused)?;
        let session = match &self.inner.core.fleet {
            Some(joined) => Box::pin(self.shared_session(head, joined, id)).await?,
            None => {
                let found = self.inner.sessions.find(id, head.principal.as_ref());
                found.ok_or(Refusal::SessionUnknown).map_err(refused)?
            }
        };
        legacy_revision(head.fields, Some(session.profile().revision)).map_err(refused)?;
        Ok(session)
    }

    /// Handles a message of a session.
    pub(super) async fn post_legacy(
        &self,
        head: &Head<'_>,
        id: Option<SessionId>,
        message: &Message<'_>,
        frame: &[u8],
    ) -> Reply {
        let session = match self.session(head, id.as_ref()).await {
            Ok(session) => session,
            Err(reply) => return reply,
        };
        match message {
            Message::Request(request) => {
                let peer = session.peer.now(head.principal.as_ref());
                let asker = head.asker(&peer);
                let asked = dispatch::Request { asker, asked: request, headers: None };
                match session.key().is_some() && is_session_change(&request.method) {
                    true => Box::pin(self.change_session(head, &session, &asked)).await,
                    false => self.serve_session(head, &session, &asked).await,
                }
            }
            told => match self.hear(&session, told, frame).await {
                true => reply::status(StatusCode::ACCEPTED),
                false => reply::busy("the node that has asked cannot be reached"),
            },
        }
    }

    /// Takes in a message of a session that is not a request. Returns `false` if the node that it
    /// is for cannot be reached.
    pub(super) async fn hear(
        &self,
        session: &HttpSession,
        message: &Message<'_>,
        frame: &[u8],
    ) -> bool {
        let id = session.session.id().unwrap_or("");
        match message {
            Message::Notification(told) => {
                let is_settled = session.handle_notification(told);
                if !is_settled && session.key().is_some() && listen::cancelled(told).is_some() {
                    // The request may run on any other node.
                    Box::pin(self.pass_to_all(id, frame)).await;
                }
            }
            Message::Response(response) => {
                let asker = response.id.as_i64().and_then(|it| u64::try_from(it).ok());
                let asker = asker.and_then(Node::of).filter(|_| session.key().is_some());
                let own = self.inner.core.fleet.as_ref().map(|it| it.fleet.node());
                match asker.filter(|asker| Some(*asker) != own) {
                    None => session.session.handle_response(response),
                    Some(asker) => return Box::pin(self.pass_on(asker, id, frame)).await,
                }
            }
            Message::Request(_) | Message::Fault(_) => {}
        }
        true
    }

    /// Serves a request that changes a session of a fleet. What it has changed is kept before it is
    /// acknowledged, and only if it was not refused, so nothing is streamed meanwhile.
    async fn change_session(
        &self,
        head: &Head<'_>,
        session: &Arc<HttpSession>,
        asked: &dispatch::Request<'_>,
    ) -> Reply {
        let request = asked.asked;
        let outbox = Arc::new(Outbox::new(self.inner.core.limits.outbox));
        let outcome = match self.start_in_session(head, session, asked, &outbox) {
            Started::Done(outcome) => *outcome,
            Started::Running(running) | Started::Settled(running) => {
                Box::pin(until_deadline(running)).await
            }
            Started::Listening(_) => Err(ErrorObject::method_not_found(&request.method).into()),
        };
        match self.keep_changed(session, request, &outcome).await {
            Ok(()) => self.reply(&request.id, session.profile().revision, outcome),
            Err(refused) => refused,
        }
    }

    /// Keeps what a request has changed in its session, if it is such a request and succeeded.
    pub(super) async fn keep_changed(
        &self,
        session: &HttpSession,
        request: &Request<'_>,
        outcome: &Outcome,
    ) -> Result<(), Reply> {
        if outcome.is_ok()
            && is_session_change(&request.method)
            && let Ok(change) = SessionChange::read(&request.method, request.params.raw())
        {
            return self.keep_change(session, change).await;
        }
        Ok(())
    }

    fn start_in_session(
        &self,
        head: &Head<'_>,
        session: &Arc<HttpSession>,
        asked: &dispatch::Request<'_>,
        outbox: &Arc<Outbox>,
    ) -> Started {
        let method = &asked.asked.method;
        let admitted = session.lock().lifecycle.handle_legacy_request(method);
        match admitted {
            Ok(_) => match self.check_calls(head, method) {
                Ok(()) => dispatch::start(asked, outbox, Some(session.parts())),
                Err(failure) => dispatch::surround(asked, outbox, Err(failure)),
            },
            Err(error) => dispatch::surround(asked, outbox, Err(Failure::rejected(error))),
        }
    }

    async fn serve_session(
        &self,
        head: &Head<'_>,
        session: &Arc<HttpSession>,
        asked: &dispatch::Request<'_>,
    ) -> Reply {
        let request = asked.asked;
        let revision = session.profile().revision;
        let done = |outcome: Outcome| self.reply(&request.id, revision, outcome);
        let outbox = Arc::new(Outbox::new(self.inner.core.limits.outbox));
        let mut running = match self.start_in_session(head, session, asked, &outbox) {
            Started::Running(running) => running,
            Started::Done(outcome) => return done(*outcome),
            // A stream would hide its status.
            Started::Settled(running) => return done(Box::pin(until_deadline(running)).await),
            Started::Listening(_) => {
                let error = ErrorObject::method_not_found(&request.method);
                return done(Err(Failure::rejected(error)));
            }
        };
        let call = Arc::clone(running.call());
        let execution = match poll_once(&mut running).await {
            Poll::Ready(outcome) if outbox.is_empty() => return done(outcome),
            Poll::Ready(outcome) => Execution::Done(Some(outcome)),
            Poll::Pending => Execution::new(running),
        };
        let place = Place::claim(&self.account(head), Kind::Calls);
        match self.stream_session(session, &call, execution, place) {
            Ok(reply) => reply,
            Err(error) => done(Err(Failure::rejected(error))),
        }
    }

    /// Continues a handler in a task, and streams its messages to the client.
    fn stream_session(
        &self,
        session: &Arc<HttpSession>,
        call: &Arc<Call>,
        execution: Execution,
        place: Place,
    ) -> Result<Reply, ErrorObject> {
        let (stream, live) = session.open_stream(self.inner.core.limits.outbox);
        let abort = Arc::new(OnceLock::new());
        let request =
            InFlight { abort: Arc::clone(&abort), call: Arc::clone(call), stream, abandoned: None };
        let begun = session.lock().inbound.begin(call.id.clone(), call.method, request);
        let ticket = begun.map_err(|error| {
            session.end_stream(stream);
            match error {
                BeginError::Refused(error) => error,
                BeginError::Full => ErrorObject::invalid_request("too many requests at a time"),
            }
        })?;
        let is_running = matches!(execution, Execution::Running(_));
        let (owner, call_of) = (Arc::clone(session), Arc::clone(call));
        let pump = Pump { session: owner, call: call_of, stream, ticket, _place: place };
        let task = self.spawn(pump.run(Arc::clone(&self.inner.core), execution));
        // It was created empty above.
        let _ = abort.set(task.clone());
        // The request may have been cancelled before there was a task to abort. A call whose
        // handler is done looks cancelled, too, but its answer must still be sent.
        if is_running && call.is_cancelled() {
            task.abort();
        }
        Ok(reply::stream(self.live(session, stream, live)))
    }

    /// Serves a legacy request without a session.
    pub(super) async fn serve_stateless(
        &self,
        head: &Head<'_>,
        request: &Request<'_>,
        revision: Revision,
    ) -> Reply {
        // Rejects a repeated header: a proxy might have read the other one.
        if let Err(refusal) = legacy_revision(head.fields, None) {
            return reply::refusal(&refusal);
        }
        let peer = self.outsider(head.stranger(revision));
        let asker = head.asker(&peer);
        let asked = dispatch::Request { asker, asked: request, headers: None };
        self.answer_alone(head, &asked).await
    }
}

fn is_session_change(method: &str) -> bool {
    [Subscribe::NAME, Unsubscribe::NAME, SetLevel::NAME].contains(&method)
}

/// Without a session, changes cannot be reported.
fn promise_no_changes(answer: &mut Answer) {
    let Answer::Initialize(result) = answer else { return };
    let offered = &mut result.capabilities;
    for list in [&mut offered.tools, &mut offered.prompts].into_iter().flatten() {
        list.list_changed = None;
    }
    if let Some(resources) = &mut offered.resources {
        *resources = ResourcesCapability::default();
    }
}

impl HttpSession {
    pub(super) fn parts(&self) -> SessionParts<'_> {
        SessionParts { session: &self.session, sink: &self.sink }
    }

    /// Returns whether it was about a request that ran here.
    pub(super) fn handle_notification(&self, notification: &Notification<'_>) -> bool {
        self.peer.core.note(&notification.method);
        let reaction = self.lock().lifecycle.handle_notification(&notification.method);
        match reaction {
            Reaction::Ready => self.sink.release(None),
            Reaction::Serve => {
                return listen::cancelled(notification).is_some_and(|id| self.cancel(&id));
            }
            Reaction::Drop => {}
        }
        false
    }

    fn cancel(&self, id: &Id) -> bool {
        let Some(request) = self.lock().inbound.cancel(id) else { return false };
        request.stop();
        self.end_stream(request.stream);
        true
    }
}
