//! Incoming messages: from frames to handlers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Context as TaskContext;

use bowline_proto::error::ErrorObject;
use bowline_proto::line::LineTooLong;
use bowline_proto::method::{Method, Ping, SubscriptionsListen};
use bowline_proto::revision::Revision;
use bowline_proto::session::{Admission, BeginError, Lifecycle, Reaction, Subscription};
use bowline_proto::wire::{self, BatchError, Id, Message, ParseError, parse_batch};

use tokio::sync::watch;

use super::parked::ParkedRequest;
use super::{Connection, InFlight, Intake, Reply, Working};
use crate::server::answer::Outcome;
use crate::server::audit::Why;
use crate::server::caller::{Asker, Opening, Profile};
use crate::server::dispatch::{self, Listening, Started};
use crate::server::extension::TopicReader;
use crate::server::failure::Failure;
use crate::server::legacy::{self, SessionParts};
use crate::server::listen::{self, Listener};
use crate::server::peer::{Peer, Sender};
use crate::server::running::{Handling, Running, until_deadline};

impl Connection {
    /// Handles one frame.
    pub(super) fn handle_frame(&mut self, cx: &mut TaskContext<'_>, frame: &[u8]) {
        if frame.trim_ascii_start().first() == Some(&b'[') {
            return self.handle_batch(cx, frame);
        }
        // By reference, because it is large.
        match &Message::parse(frame) {
            Ok(message) => self.handle_message(cx, message, None),
            Err(error) => self.refuse_frame(error),
        }
    }

    pub(super) fn handle_too_long(&mut self, error: &LineTooLong) {
        self.refuse_frame(&ParseError::too_long(error.limit, &error.prefix));
    }

    /// Handles a request that was queued.
    pub(super) fn handle_parked(&mut self, cx: &mut TaskContext<'_>, parked: &ParkedRequest) {
        if let Ok(Message::Request(request)) = Message::parse(&parked.frame) {
            self.handle_request(cx, &request, parked.batch);
        }
    }

    fn handle_message(
        &mut self,
        cx: &mut TaskContext<'_>,
        message: &Message<'_>,
        batch: Option<u64>,
    ) {
        match message {
            Message::Request(request) => self.admit_request(cx, request, batch),
            Message::Notification(notification) => self.handle_notification(notification),
            Message::Response(response) => self.session.handle_response(response),
            Message::Fault(error) => tracing::warn!(%error, "the client could not read a message"),
        }
    }

    fn handle_batch(&mut self, cx: &mut TaskContext<'_>, frame: &[u8]) {
        if let Err(error) = self.lifecycle.handle_batch() {
            self.report_refused(Why::Message, None, None);
            return self.fault(&error);
        }
        match parse_batch(frame, self.core.limits.batch) {
            Ok(messages) => {
                let asks = |message: &&Message<'_>| matches!(message, Message::Request(_));
                let batch = self.batches.open(messages.iter().filter(asks).count());
                for message in &messages {
                    self.handle_message(cx, message, Some(batch));
                }
            }
            Err(BatchError::Whole(error)) => self.refuse_frame(&error),
            Err(BatchError::Parts(errors)) => self.refuse_parts(&errors),
        }
    }

    /// Serves a new request, rejects it or queues it.
    fn admit_request(
        &mut self,
        cx: &mut TaskContext<'_>,
        request: &wire::Request<'_>,
        batch: Option<u64>,
    ) {
        let method: &str = &request.method;
        let (why, refusal) = if self.inbound.contains(&request.id)
            || self.parked.contains(&request.id)
        {
            let id = &request.id;
            let message = format!("{method}: id {id} is already in use by a request in progress");
            (Why::Message, ErrorObject::invalid_request(message))
        } else if self.intake == Intake::Closed {
            let message = format!("{method}: the server is shutting down");
            (Why::Stopping, ErrorObject::internal(message))
        } else if self.is_full() && method != Ping::NAME {
            match self.parked.push(request, batch) {
                Ok(()) => return,
                Err(spent) => (Why::Limit, ErrorObject::internal(format!("{method}: {spent}"))),
            }
        } else {
            return self.handle_request(cx, request, batch);
        };
        self.report_refused(why, Some(method), Some(&refusal.message));
        let revision = self.lifecycle.revision().unwrap_or(Revision::LATEST_LEGACY);
        self.answer(&request.id, Reply::new(revision, batch), &mut Err(Failure::rejected(refusal)));
    }

    fn handle_request(
        &mut self,
        cx: &mut TaskContext<'_>,
        request: &wire::Request<'_>,
        batch: Option<u64>,
    ) {
        let held = match self.costs.admit(request) {
            Ok(held) => held,
            Err(failure) => {
                let revision = self.lifecycle.revision().unwrap_or(Revision::LATEST_LEGACY);
                let started = self.refuse(request, revision, failure);
                return self.carry_on(cx, request, started, Reply::new(revision, batch));
            }
        };
        let admission = match self.lifecycle.handle_request(&request.method, &request.params) {
            Ok(admission) => admission,
            Err(error) => {
                let rejected = Failure::rejected(error);
                let started = self.refuse(request, Revision::LATEST_LEGACY, rejected);
                // Not adapted to a revision: the sender may be probing what we speak.
                let reply = Reply::new(Revision::LATEST, batch);
                return self.carry_on(cx, request, started, reply);
            }
        };
        let (revision, started) = match admission {
            Admission::Initialize => {
                let started = self.initialize(request);
                (self.lifecycle.revision().unwrap_or(Revision::LATEST), started)
            }
            Admission::Legacy(revision) => (revision, self.start_legacy(request, revision)),
            Admission::Modern(revision) if batch.is_some() => {
                let message = format!("{}: {revision} has no batches", request.method);
                let error = ErrorObject::invalid_request(message);
                (revision, self.refuse(request, revision, Failure::rejected(error)))
            }
            Admission::Modern(revision) => (revision, self.start_modern(request, revision)),
        };
        self.carry_on(cx, request, started, Reply { revision, batch, _held: held });
    }

    /// Answers a request that has started, at once or when it is done.
    fn carry_on(
        &mut self,
        cx: &mut TaskContext<'_>,
        request: &wire::Request<'_>,
        started: Started,
        reply: Reply,
    ) {
        match started {
            Started::Done(mut outcome) => self.answer(&request.id, reply, &mut outcome),
            Started::Running(running) | Started::Settled(running) => {
                self.run_handler(cx, running, reply);
            }
            Started::Listening(listening) => match *listening {
                Listening { subscription, around: None } => {
                    if let Err(error) = self.listen(&request.id, subscription) {
                        self.answer(&request.id, reply, &mut Err(Failure::rejected(error)));
                    }
                }
                Listening { subscription, around: Some((around, reader)) } => {
                    let listening = self.listening_within(&request.id, subscription, reader);
                    let running = around.run(listening);
                    self.run_handler(cx, running, reply);
                }
            },
        }
    }

    /// Refuses a request that cannot be dispatched.
    fn refuse(&self, request: &wire::Request<'_>, revision: Revision, failure: Failure) -> Started {
        let stranger = || {
            let principal = self.principal.clone();
            let profile = Profile { principal, ..Profile::unknown(revision) };
            Peer::new(&self.core, profile, self.via)
        };
        let known = self.legacy.as_ref().filter(|_| !revision.is_modern());
        let peer = known.map_or_else(stranger, Arc::clone);
        let asked = on_stream(&peer, &self.opening, request);
        dispatch::surround(&asked, &self.outbox, Err(failure))
    }

    fn start_legacy(&mut self, request: &wire::Request<'_>, revision: Revision) -> Started {
        let peer = self.legacy.get_or_insert_with(|| {
            Peer::in_session(&self.core, Profile::unknown(revision), self.via, &self.session)
        });
        let session = SessionParts { session: &self.session, sink: &self.sink };
        dispatch::start(&on_stream(peer, &self.opening, request), &self.outbox, Some(session))
    }

    fn start_modern(&mut self, request: &wire::Request<'_>, revision: Revision) -> Started {
        let (params, principal) = (&request.params, self.principal.as_ref());
        let sender = Sender { revision, params, principal };
        if let Some(peer) = self.modern.find(&sender) {
            return dispatch::start(&on_stream(peer, &self.opening, request), &self.outbox, None);
        }
        match sender.decode(&self.core, self.via) {
            Ok(peer) => {
                self.modern.keep(&sender, &peer);
                dispatch::start(&on_stream(&peer, &self.opening, request), &self.outbox, None)
            }
            Err(error) => self.refuse(request, revision, Failure::rejected(error)),
        }
    }

    fn initialize(&mut self, request: &wire::Request<'_>) -> Started {
        let (params, from) = (request.params.raw(), (self.via.transport, self.principal.clone()));
        let initialized =
            legacy::initialize(&self.core, &mut self.lifecycle, &self.sink, params, from);
        let (profile, answer) = match initialized {
            Ok(initialized) => initialized,
            Err(error) => {
                let rejected = Failure::rejected(error);
                return self.refuse(request, Revision::LATEST_LEGACY, rejected);
            }
        };
        let peer = Peer::in_session(&self.core, profile, self.via, &self.session);
        let asked = on_stream(&peer, &self.opening, request);
        let started = dispatch::surround(&asked, &self.outbox, Ok(answer));
        self.legacy = Some(peer);
        self.handshake = Some(request.id.clone());
        started
    }

    /// Forgets a handshake that middleware refused, so that the client may try again.
    pub(super) fn settle_handshake(&mut self, id: &Id, outcome: &Outcome) {
        if self.handshake.as_ref() != Some(id) {
            return;
        }
        self.handshake = None;
        if outcome.is_ok() {
            let revision = self.lifecycle.revision().unwrap_or(Revision::LATEST_LEGACY);
            self.session.begin(self.origin(), revision);
        } else {
            self.lifecycle = Lifecycle::new(self.core.offer);
            self.legacy = None;
            self.sink.forget_session();
        }
    }

    fn run_handler(&mut self, cx: &mut TaskContext<'_>, mut running: Running, reply: Reply) {
        let mut outcome = None;
        running.step(cx, &mut outcome);
        if let Some(outcome) = &mut outcome {
            if self.handshake.is_some() {
                self.settle_handshake(&running.call().id, outcome);
            }
            return self.answer(&running.call().id, reply, outcome);
        }
        let call = Arc::clone(running.call());
        let abort = self.tasks.spawn(until_deadline(running));
        let task = abort.id();
        let (id, method) = (call.id.clone(), call.method);
        let in_flight = InFlight::Task { abort: abort.clone(), call };
        match self.inbound.begin(id.clone(), method, in_flight) {
            Ok(ticket) => {
                let working = Working { ticket, reply, _place: self.costs.claim() };
                self.working.insert(task, working);
            }
            // A ping is served although the maximum number of requests runs. It is done at once,
            // unless middleware waits. Nothing may run untracked.
            Err(BeginError::Refused(_) | BeginError::Full) => {
                abort.abort();
                let error = ErrorObject::internal(format!("{method}: too many requests"));
                self.answer(&id, reply, &mut Err(error.into()));
            }
        }
    }

    fn handle_notification(&mut self, notification: &wire::Notification<'_>) {
        self.core.note(&notification.method);
        match self.lifecycle.handle_notification(&notification.method) {
            Reaction::Drop => {}
            Reaction::Ready => self.sink.release(None),
            Reaction::Serve => {
                if let Some(id) = listen::cancelled(notification) {
                    self.cancel(&id);
                }
            }
        }
    }

    fn cancel(&mut self, id: &Id) {
        match self.inbound.cancel(id) {
            Some(InFlight::Task { abort, call }) => {
                call.cancel();
                abort.abort();
            }
            Some(InFlight::Listen) => {
                self.sink.remove(id);
            }
            None => {
                let Some(parked) = self.parked.remove(id) else { return };
                self.report_refused(Why::Cancelled, None, None);
                if let Some(batch) = parked.batch {
                    self.batches.add(batch, &self.outbox, None, |_| {});
                }
            }
        }
    }

    /// The stream of a listen request, as a handler that middleware can run.
    fn listening_within(
        &mut self,
        id: &Id,
        subscription: Subscription,
        reader: Option<TopicReader>,
    ) -> Handling {
        let limit = self.core.limits.listens;
        // One that was cancelled does not count, although its middleware may still be at work.
        let open = self.inbound.count(|request| match request {
            InFlight::Task { call, .. } => call.method == SubscriptionsListen::NAME,
            InFlight::Listen => true,
        });
        self.listening.fetch_add(1, Ordering::Relaxed);
        let listens = Listens(Arc::clone(&self.listening));
        let mut ending = self.ending.get_or_insert_with(|| watch::Sender::new(false)).subscribe();
        let stopped = async move {
            // An error means that the connection has ended.
            let _ = ending.wait_for(|ending| *ending).await;
        };
        let sink = self.core.registry.bus().attach(Arc::clone(&self.account));
        let (id, outbox) = (id.clone(), Arc::clone(&self.outbox));
        let registry = self.core.registry.clone();
        Handling::Other(Box::pin(async move {
            let _listens = listens;
            if open >= limit {
                return Err(Failure::rejected(too_many_listens(limit)));
            }
            let to = Listener { sink: &sink, outbox: &outbox, registry: &registry, reader };
            to.serve(id, subscription, stopped).await
        }))
    }

    fn listen(&mut self, id: &Id, subscription: Subscription) -> Result<(), ErrorObject> {
        let limit = self.core.limits.listens;
        if self.sink.listens() >= limit {
            return Err(too_many_listens(limit));
        }
        let acknowledged = listen::acknowledgement(&subscription, id);
        self.sink.add(Some(id.clone()), subscription)?;
        let begun = self.inbound.begin(id.clone(), SubscriptionsListen::NAME, InFlight::Listen);
        // The ticket is dropped: `end_listens` or a cancellation ends the request.
        drop(begun.map_err(|error| {
            self.sink.remove(id);
            match error {
                BeginError::Refused(error) => error,
                BeginError::Full => {
                    ErrorObject::invalid_request("subscriptions/listen: too many requests")
                }
            }
        })?);
        self.notify(&acknowledged);
        self.sink.release(Some(id));
        Ok(())
    }
}

fn too_many_listens(limit: usize) -> ErrorObject {
    let message = format!("subscriptions/listen: more than {limit} streams at a time");
    ErrorObject::invalid_request(message)
}

/// Counts a listen request within middleware.
struct Listens(Arc<AtomicUsize>);

impl Drop for Listens {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request whose arguments no header repeats.
fn on_stream<'a>(
    peer: &'a Arc<Peer>,
    opening: &'a Opening,
    asked: &'a wire::Request<'a>,
) -> dispatch::Request<'a> {
    dispatch::Request {
        asker: Asker::on_stream(peer, opening),
        asked,
        #[cfg(feature = "http")]
        headers: None,
    }
}
