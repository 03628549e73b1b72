//! What is known of a request until it is answered.

use std::sync::Arc;

use bowline_proto::revision::Revision;
use bowline_proto::session::Ticket;
use tokio::task::AbortHandle;

use crate::server::account::Reservation;
use crate::server::account::places::Place;
use crate::server::call::Call;

/// What it takes to stop a request in flight.
pub(super) enum InFlight {
    Task { abort: AbortHandle, call: Arc<Call> },
    Listen,
}

/// A request whose handler runs in a task.
pub(super) struct Working {
    pub(super) ticket: Ticket,
    pub(super) reply: Reply,
    pub(super) _place: Option<Place>,
}

/// How an answer is written, and where it goes.
pub(super) struct Reply {
    pub(super) revision: Revision,
    /// The batch that the request came in.
    pub(super) batch: Option<u64>,
    /// Holds the memory of the request until it is answered.
    pub(super) _held: Option<Reservation>,
}

impl Reply {
    /// Of a request that holds nothing.
    pub(super) fn new(revision: Revision, batch: Option<u64>) -> Self {
        Self { revision, batch, _held: None }
    }
}
