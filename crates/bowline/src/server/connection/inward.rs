//! What comes in: frames to messages, messages to handlers.

use std::sync::Arc;
use std::task::Context as TaskContext;

use bowline_proto::decode::decode_params;
use bowline_proto::error::ErrorObject;
use bowline_proto::line::LineTooLong;
use bowline_proto::method::{Cancelled, Method, Notice, Ping, SubscriptionsListen};
use bowline_proto::model::{CancelledParams, SubscriptionsListenParams};
use bowline_proto::raw::Raw;
use bowline_proto::revision::Revision;
use bowline_proto::session::{Admission, BeginError, Heard, Subscription};
use bowline_proto::wire::{self, BatchError, Id, Message, ParseError, parse_batch};

use super::parked::ParkedRequest;
use super::{Connection, Intake, Reply, Work, Working};
use crate::server::answer::Outcome;
use crate::server::caller::Caller;
use crate::server::dispatch::{self, Started};
use crate::server::peer::Peer;
use crate::server::running::Running;
use crate::server::{legacy, listen};

impl Connection {
    /// Takes in one frame.
    pub(super) fn handle_frame(&mut self, cx: &mut TaskContext<'_>, frame: &[u8]) {
        if frame.trim_ascii_start().first() == Some(&b'[') {
            return self.handle_batch(cx, frame);
        }
        // Looked at where it is: it is large.
        match &Message::parse(frame) {
            Ok(message) => self.handle_message(cx, message, None),
            Err(error) => self.refuse_frame(error),
        }
    }

    pub(super) fn handle_too_long(&mut self, error: &LineTooLong) {
        self.refuse_frame(&ParseError::too_long(error.limit, &error.prefix));
    }

    /// Takes in a request that has waited for a place.
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
            Message::Fault(error) => tracing::warn!(%error, "the client could not read something"),
        }
    }

    fn handle_batch(&mut self, cx: &mut TaskContext<'_>, frame: &[u8]) {
        if let Err(error) = self.lifecycle.handle_batch() {
            return self.fault(&error);
        }
        match parse_batch(frame) {
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

    /// Serves a request that just came in, or refuses it, or lets it wait for a place.
    fn admit_request(
        &mut self,
        cx: &mut TaskContext<'_>,
        request: &wire::Request<'_>,
        batch: Option<u64>,
    ) {
        let method: &str = &request.method;
        let refusal = if self.inbound.contains(&request.id) || self.parked.contains(&request.id) {
            let id = &request.id;
            let message = format!("{method}: id {id} is that of a request still being worked on");
            ErrorObject::invalid_request(message)
        } else if self.intake == Intake::Closed {
            ErrorObject::internal(format!("{method}: the server is shutting down"))
        } else if self.is_full() && method != Ping::NAME {
            return self.parked.push(request, batch);
        } else {
            return self.handle_request(cx, request, batch);
        };
        let revision = self.lifecycle.revision().unwrap_or(Revision::LATEST_LEGACY);
        self.answer(&request.id, Reply { revision, batch }, &mut Err(refusal));
    }

    fn handle_request(
        &mut self,
        cx: &mut TaskContext<'_>,
        request: &wire::Request<'_>,
        batch: Option<u64>,
    ) {
        let method: &str = &request.method;
        let reply = |revision| Reply { revision, batch };
        match self.lifecycle.handle_request(method, &request.params) {
            // As it is, whatever the sender seems to speak: it may be finding out what we do.
            Err(error) => self.answer(&request.id, reply(Revision::LATEST), &mut Err(error)),
            Ok(Admission::Initialize) => {
                let mut outcome = self.initialize(request.params.raw());
                let revision = self.lifecycle.revision().unwrap_or(Revision::LATEST);
                self.answer(&request.id, reply(revision), &mut outcome);
            }
            Ok(Admission::Legacy(revision)) => {
                if self.legacy.is_none() {
                    self.open_session(Caller::unknown(revision));
                }
                self.serve(cx, request, reply(revision));
            }
            Ok(Admission::Modern(revision)) if batch.is_some() => {
                let message = format!("{method}: {revision} has no batches");
                let mut refused = Err(ErrorObject::invalid_request(message));
                self.answer(&request.id, reply(revision), &mut refused);
            }
            Ok(Admission::Modern(revision)) => {
                let who = self.principal.as_ref();
                match self.modern.meet(&self.core, revision, &request.params, who) {
                    Ok(_) => self.serve(cx, request, reply(revision)),
                    Err(error) => self.answer(&request.id, reply(revision), &mut Err(error)),
                }
            }
        }
    }

    fn initialize(&mut self, params: Option<Raw<'_>>) -> Outcome {
        let principal = self.principal.clone();
        let (caller, answer) =
            legacy::initialize(&self.core, &mut self.lifecycle, &self.sink, params, principal)?;
        self.open_session(caller);
        Ok(answer)
    }

    fn open_session(&mut self, caller: Caller) {
        let (core, session) = (Arc::clone(&self.core), Some(Arc::clone(&self.session)));
        self.legacy = Some(Arc::new(Peer { core, caller, session }));
    }

    /// Serves a request of a peer that is known by now: in place if its handler is ready at once,
    /// in a task if not.
    fn serve(&mut self, cx: &mut TaskContext<'_>, request: &wire::Request<'_>, reply: Reply) {
        let method: &str = &request.method;
        if !reply.revision.is_modern()
            && let Some(mut outcome) =
                legacy::serve(method, request.params.raw(), &self.core, &self.session, &self.sink)
        {
            return self.answer(&request.id, reply, &mut outcome);
        }
        if method == SubscriptionsListen::NAME && reply.revision.is_modern() {
            if let Err(error) = self.listen(request) {
                self.answer(&request.id, reply, &mut Err(error));
            }
            return;
        }
        let known =
            if reply.revision.is_modern() { self.modern.get() } else { self.legacy.as_ref() };
        let Some(peer) = known else { return };
        let started = dispatch::start(&dispatch::Request {
            peer,
            asked: request,
            outbox: &self.outbox,
            #[cfg(feature = "http")]
            headers: None,
        });
        match started {
            Started::Done(mut outcome) => self.answer(&request.id, reply, &mut outcome),
            Started::Running(running) => self.run_handler(cx, running, reply),
        }
    }

    fn run_handler(&mut self, cx: &mut TaskContext<'_>, mut running: Running, reply: Reply) {
        let mut outcome = None;
        running.step(cx, &mut outcome);
        if let Some(outcome) = &mut outcome {
            return self.answer(&running.call().id, reply, outcome);
        }
        let call = Arc::clone(running.call());
        let (method, deadline) = (call.method, call.deadline());
        let late = Arc::clone(&call);
        let abort = self.tasks.spawn(async move {
            tokio::time::timeout_at(deadline, running).await.unwrap_or_else(|_| {
                late.finish();
                Err(ErrorObject::internal(format!("{method}: took too long")))
            })
        });
        let task = abort.id();
        match self.inbound.begin(call.id.clone(), method, Work::Task { abort: abort.clone(), call })
        {
            Ok(ticket) => {
                self.working.insert(task, Working { ticket, reply });
            }
            // Both are ruled out where requests are let in; if ever, nothing runs unaccounted for.
            Err(BeginError::Refused(_) | BeginError::Full) => abort.abort(),
        }
    }

    fn handle_notification(&mut self, notification: &wire::Notification<'_>) {
        match self.lifecycle.handle_notification(&notification.method) {
            Heard::Drop => {}
            Heard::Ready => self.sink.release(None),
            Heard::Serve if notification.method == Cancelled::NAME => {
                let params = decode_params::<CancelledParams>(Cancelled::NAME, notification.params);
                match params.map(|params| params.request_id) {
                    Ok(Some(id)) => self.cancel(&id),
                    Ok(None) => {}
                    Err(error) => tracing::debug!(%error, "a cancellation that cannot be read"),
                }
            }
            // Progress of nothing we asked for, changed roots, a peer's own: nobody here minds.
            Heard::Serve => {}
        }
    }

    fn cancel(&mut self, id: &Id) {
        match self.inbound.cancel(id) {
            Some(Work::Task { abort, call }) => {
                call.cancel();
                abort.abort();
            }
            Some(Work::Listen) => {
                self.sink.remove(id);
            }
            None => {
                if let Some(batch) = self.parked.remove(id).and_then(|parked| parked.batch) {
                    self.batches.add(batch, &self.outbox, |_| {});
                }
            }
        }
    }

    fn listen(&mut self, request: &wire::Request<'_>) -> Result<(), ErrorObject> {
        let params: SubscriptionsListenParams<'_> =
            decode_params(SubscriptionsListen::NAME, request.params.raw())?;
        let limit = self.core.limits.listens;
        if self.sink.listens() >= limit {
            let message = format!("subscriptions/listen: more than {limit} streams at a time");
            return Err(ErrorObject::invalid_request(message));
        }
        let wanted = listen::wanted(&params.notifications);
        let subscription =
            Subscription::listen(listen::promised(&self.core), legacy::limits(&self.core), wanted)?;
        let id = &request.id;
        let begun = self.inbound.begin(id.clone(), SubscriptionsListen::NAME, Work::Listen);
        // The ticket is not traded in: the end of the stream is told by `end_listens`, or never.
        drop(begun.map_err(|error| match error {
            BeginError::Refused(error) => error,
            BeginError::Full => {
                ErrorObject::invalid_request("subscriptions/listen: too many requests")
            }
        })?);
        let acknowledged = listen::acknowledgement(&subscription, id);
        self.sink.add(Some(id.clone()), subscription);
        self.notify(&acknowledged);
        self.sink.release(Some(id));
        Ok(())
    }
}
