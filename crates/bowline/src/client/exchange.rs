//! One request and its answer: on a byte stream here, over HTTP in `http::exchange`.

mod error;

use std::sync::Arc;
use std::time::Duration;

use bowline_proto::json::Json;
use bowline_proto::session::Timeout;
use bowline_proto::wire::Id;
use tokio::sync::oneshot;

pub(super) use self::error::ExchangeError;
use super::outgoing::{Beside, Claim, Outgoing, Round, cancelled};
use super::shared::{Hears, Link, Shared, Waiter, lock};
use super::trace::TraceContext;
use crate::clock;
use crate::outbox::Outbox;

/// How one request is sent.
pub(super) struct Sending<'a> {
    pub(super) outgoing: &'a Outgoing<'a>,
    pub(super) round: &'a Round,
    pub(super) claim: &'a Claim,
    pub(super) timeout: Timeout,
    pub(super) hears: Hears,
    pub(super) is_cancellable: bool,
}

impl Shared {
    /// Sends one request and waits for its answer.
    ///
    /// # Cancel safety
    /// Dropping it before anything was sent has no effect. Dropping it later cancels the request.
    pub(super) async fn exchange(
        self: &Arc<Self>,
        link: &Link,
        sending: &Sending<'_>,
    ) -> Result<Json, ExchangeError> {
        let outbox = match link {
            Link::Stream(outbox) => outbox,
            // On the heap, because it is many times as large as an exchange on a stream.
            #[cfg(feature = "client-http")]
            Link::Http(http) => return Box::pin(http.exchange(self, sending)).await,
        };
        if !outbox.has_room() {
            let idle = sending.timeout.idle.or(sending.timeout.total);
            Box::pin(self.room(outbox, idle)).await?;
        }
        let (answer, answered) = oneshot::channel();
        let Sending { is_cancellable, timeout, .. } = *sending;
        let waiter = Waiter { answer, hears: sending.hears.clone(), is_cancellable };
        let method = sending.outgoing.method.clone();
        let id = lock(&self.calls).open(clock::now().into_std(), method, timeout, waiter);
        // From here on the call is registered, and dropping it cancels it.
        let waiting = Waiting { shared: self, outbox, id };
        if !self.push(&waiting.id, outbox, sending) {
            lock(&self.calls).abandon(&waiting.id);
            return Err(ExchangeError::Closed(self.reason()));
        }
        let answer = answered.await;
        // The call has left the table, by its answer or because its waiter was dropped.
        waiting.end();
        answer.unwrap_or_else(|_| Err(ExchangeError::Closed(self.reason())))
    }

    /// Hands a request to the writer. Returns whether there is one.
    fn push(&self, id: &Id, outbox: &Outbox, sending: &Sending<'_>) -> bool {
        let trace = (self.profile.trace)();
        let beside = self.beside(sending, trace.as_ref());
        outbox.push(|out| sending.outgoing.encode(out, id, sending.round, &beside)).is_ok()
    }

    /// What a request carries besides its parameters.
    pub(super) fn beside<'a>(
        &self,
        sending: &Sending<'a>,
        trace: Option<&'a TraceContext>,
    ) -> Beside<'a> {
        Beside {
            claim: sending.claim,
            log_level: self.log_level().filter(|_| sending.claim.is_modern()),
            wants_progress: matches!(sending.hears, Hears::Progress(_)),
            trace,
        }
    }

    /// Waits for room in the outbox. A server that does not read never makes any.
    async fn room(&self, outbox: &Outbox, idle: Option<Duration>) -> Result<(), ExchangeError> {
        let room = match idle {
            Some(idle) => tokio::time::timeout(idle, outbox.room())
                .await
                .map_err(|_| ExchangeError::TimedOut(idle))?,
            None => outbox.room().await,
        };
        room.map_err(|_| ExchangeError::Closed(self.reason()))
    }
}

/// A call that has been sent. Dropping it while it waits cancels it.
struct Waiting<'a> {
    shared: &'a Shared,
    outbox: &'a Outbox,
    id: Id,
}

impl Waiting<'_> {
    /// The call no longer waits. The id is a number, so forgetting it leaks nothing.
    fn end(self) {
        std::mem::forget(self);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(waiter) = lock(&self.shared.calls).abandon(&self.id) else { return };
        if waiter.is_cancellable {
            let write = |out: &mut Vec<u8>| cancelled(out, &self.id, "the caller gave up");
            let _ = self.outbox.push(write);
        }
    }
}
