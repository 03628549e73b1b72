//! Outgoing messages: answers, errors, notifications.

use std::task::{Context, Poll};

use bowline_proto::error::ErrorObject;
use bowline_proto::revision::Revision;
use bowline_proto::wire::{Id, ParseError, encode_error, encode_fault};
use tokio::task::{self, JoinError};

use super::{Connection, InFlight, Reply, Working};
use crate::server::answer::Outcome;
use crate::server::audit::{self, Origin, Why};
use crate::server::listen::{self, Told};
use crate::server::running::panicked;

impl Connection {
    /// Answers a request, or adds the answer to those of its batch.
    pub(super) fn answer(&mut self, id: &Id, reply: Reply, outcome: &mut Outcome) {
        let Reply { revision, batch, _held } = reply;
        let signature = &self.core.signature;
        let write = |out: &mut Vec<u8>| signature.encode(out, id, revision, outcome);
        match batch {
            Some(batch) => self.batches.add(batch, &self.outbox, Some(id), write),
            // A closed outbox means that the client has disconnected.
            None => drop(self.outbox.push(write)),
        }
    }

    /// Answers a frame that is not a message, under its id if that is readable.
    pub(super) fn refuse_frame(&self, error: &ParseError) {
        let answer = error.to_error_object();
        self.report_refused(Why::Message, None, None);
        match &error.id {
            Some(id) if error.has_method => {
                let _ = self.outbox.push(|out| encode_error(out, id, &answer));
            }
            // A malformed answer to a question: the handler keeps waiting until its deadline.
            Some(id) => tracing::warn!(%id, %error, "malformed answer"),
            None => self.fault(&answer),
        }
    }

    /// Rejects a batch as a whole, with one answer for each message.
    pub(super) fn refuse_parts(&mut self, errors: &[ParseError]) {
        let batch = self.batches.open(errors.len());
        self.report_refused(Why::Message, None, None);
        for error in errors {
            let answer = error.to_error_object();
            self.batches.add(batch, &self.outbox, error.id.as_ref(), |out| match &error.id {
                Some(id) if error.has_method => encode_error(out, id, &answer),
                Some(_) => {}
                None => encode_fault(out, &answer),
            });
        }
    }

    /// Reports an error that belongs to no request. Skipped when the client does not keep up:
    /// endless garbage must not cause endless errors.
    pub(super) fn fault(&self, error: &ErrorObject) {
        self.outbox.try_push(|out| encode_fault(out, error));
    }

    /// Reports to the audit what never becomes a request.
    pub(super) fn report_refused(&self, why: Why, method: Option<&str>, reason: Option<&str>) {
        if audit::is_on() {
            audit::refused(self.origin(), why, method, reason);
        }
    }

    /// Where its messages come from, for the audit.
    pub(super) fn origin(&self) -> Origin<'_> {
        #[cfg(feature = "http")]
        let address = self.opening.as_ref().and_then(|head| head.peer_addr);
        #[cfg(not(feature = "http"))]
        let address = None;
        Origin { principal: self.principal.as_ref(), address, transport: self.via.transport }
    }

    /// Handles the end of a handler's task.
    pub(super) fn finish_task(&mut self, joined: Result<(task::Id, Outcome), JoinError>) {
        let (task, mut outcome) = match joined {
            Ok((task, outcome)) => (task, outcome),
            Err(error) => {
                let task = error.id();
                let outcome = match error.try_into_panic() {
                    Ok(panic) => panicked("request", panic.as_ref()),
                    Err(_) => ErrorObject::internal("the request was aborted").into(),
                };
                (task, Err(outcome))
            }
        };
        let Some(Working { ticket, reply, _place }) = self.working.remove(&task) else { return };
        let id = ticket.id().clone();
        self.settle_handshake(&id, &outcome);
        if self.inbound.finish(ticket) {
            self.answer(&id, reply, &mut outcome);
        } else if let Some(batch) = reply.batch {
            self.batches.add(batch, &self.outbox, None, |_| {});
        }
    }

    /// Aborts the requests that are still running or queued, and answers them with an error.
    pub(super) fn abort_tasks(&mut self) {
        for request in self.inbound.drain() {
            if let InFlight::Task { abort, call } = request {
                call.disconnect();
                abort.abort();
            }
        }
        let error = || Err(ErrorObject::internal("the server is shutting down").into());
        for (_, Working { ticket, reply, _place }) in std::mem::take(&mut self.working) {
            self.answer(ticket.id(), reply, &mut error());
        }
        while let Some(parked) = self.parked.pop() {
            self.report_refused(Why::Stopping, None, None);
            let revision = self.lifecycle.revision().unwrap_or(Revision::LATEST_LEGACY);
            self.answer(&parked.id, Reply::new(revision, parked.batch), &mut error());
        }
    }

    /// Reports changes to the client, as far as there is room; the rest stays in the sink. Returns
    /// whether there was something to report.
    pub(super) fn poll_changes(&mut self, cx: &Context<'_>) -> bool {
        if !self.news.was_rung(cx) {
            return false;
        }
        let mut has_told = false;
        while self.outbox.has_room() {
            let Poll::Ready(change) = self.sink.poll_next(&mut self.news.context()) else {
                return has_told;
            };
            let session = self.core.tasks.as_ref().map(|tasks| (tasks, &*self.sink));
            self.notify(&listen::change(&change, session));
            has_told = true;
        }
        self.news.stay_rung();
        has_told
    }

    pub(super) fn notify(&self, told: &Told) {
        let _ = self.outbox.push(|out| told.encode(out));
    }

    /// Ends all listen requests with an answer.
    pub(super) fn end_listens(&mut self) {
        if let Some(ending) = &self.ending {
            ending.send_replace(true);
        }
        for id in self.sink.drain() {
            self.inbound.cancel(&id);
            let _ = self.outbox.push(|out| self.core.signature.encode_listen_end(out, &id));
        }
    }
}
