//! What a client makes the server hold, where it shares the server with many others: over
//! HTTP+SSE. The only client of standard input and output is limited by its queues alone.

use std::sync::Arc;

use bowline_proto::wire::Request;

use crate::outbox::Outbox;
use crate::server::account::places::{Most, Place};
use crate::server::account::{Account, Reservation, Spent, UNCOUNTED};
use crate::server::failure::Failure;

/// The capacity that an idle buffer keeps where there are many.
const KEPT: usize = 16 << 10;

/// Counts what one client costs.
pub(super) struct Costs {
    /// How many calls may wait. `None`: nothing counts.
    calls: Option<Most>,
    /// Holds what waits to be written.
    output: Reservation,
    /// Whether there was no memory left for it. What is not written then is dropped at once.
    is_spent: bool,
}

impl Costs {
    /// Nothing counts.
    pub(super) fn none(account: Arc<Account>) -> Self {
        Self { calls: None, output: Reservation::new(account), is_spent: false }
    }

    /// From now on, calls and their answers count.
    #[cfg(feature = "http")]
    pub(super) fn count(&mut self, calls: Most) {
        self.calls = Some(calls);
    }

    /// The capacity that idle buffers may keep, if that is limited.
    pub(super) fn kept(&self) -> Option<usize> {
        self.calls.map(|_| KEPT)
    }

    /// Checks whether a request may start, and holds its parameters until they are dropped.
    ///
    /// # Errors
    /// When too many calls wait already, or there is no memory left for it.
    pub(super) fn admit(&self, request: &Request<'_>) -> Result<Option<Reservation>, Failure> {
        let Some(calls) = self.calls else { return Ok(None) };
        let account = self.output.account();
        Place::check_call(account, calls, &request.method)?;
        let length = request.params.raw().map_or(0, |params| params.get().len());
        if length <= UNCOUNTED {
            return Ok(None);
        }
        let mut held = Reservation::new(Arc::clone(account));
        held.resize(length).map_err(|spent| Failure::busy(&request.method, spent))?;
        Ok(Some(held))
    }

    /// Counts a call that waits, until it is dropped.
    pub(super) fn claim(&self) -> Option<Place> {
        self.calls.map(|most| Place::claim(self.output.account(), most.kind))
    }

    /// Holds what is queued, and what is being written.
    ///
    /// # Errors
    /// When there is no memory left for it.
    pub(super) fn hold_output(&mut self, queue: &Outbox, writing: usize) -> Result<(), Spent> {
        if self.calls.is_none() {
            return Ok(());
        }
        let (held, length) = (self.output.bytes(), queue.length() + writing);
        // A little more is let through, also behind an answer that is longer than the share.
        let resized = match length {
            _ if length > held + UNCOUNTED => self.output.resize_answers(length),
            _ if length < held => self.output.resize(length),
            _ => Ok(()),
        };
        self.is_spent = resized.is_err();
        resized
    }

    /// Whether there was no memory left for what it has to write.
    pub(super) fn is_spent(&self) -> bool {
        self.is_spent
    }
}
