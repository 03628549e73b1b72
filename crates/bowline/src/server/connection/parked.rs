//! Requests that are queued because the maximum number is already running.
//!
//! Reading goes on, because the message that ends a running request may follow: the answer that a
//! handler waits for, or a cancellation. Queued requests are kept as bytes, in order.

use std::collections::VecDeque;
use std::sync::Arc;

use bowline_proto::wire::{Id, Request, encode_request};

use crate::server::account::{Account, Reservation, Spent};

/// Queued requests.
pub(super) struct Parked {
    requests: VecDeque<ParkedRequest>,
    bytes: usize,
    limit: usize,
    reserved: Reservation,
}

/// A queued request.
pub(super) struct ParkedRequest {
    pub(super) id: Id,
    /// The batch that it came in.
    pub(super) batch: Option<u64>,
    pub(super) frame: Vec<u8>,
}

impl Parked {
    pub(super) fn new(limit: usize, account: Arc<Account>) -> Self {
        Self { requests: VecDeque::new(), bytes: 0, limit, reserved: Reservation::new(account) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether more may be read.
    pub(super) fn has_room(&self) -> bool {
        self.bytes < self.limit.max(1)
    }

    pub(super) fn contains(&self, id: &Id) -> bool {
        self.requests.iter().any(|parked| parked.id == *id)
    }

    /// Queues a request.
    ///
    /// # Errors
    /// When there is no memory left for it.
    pub(super) fn push(&mut self, request: &Request<'_>, batch: Option<u64>) -> Result<(), Spent> {
        let id = request.id.clone();
        let mut frame = Vec::new();
        // A parsed message can always be written.
        let _ = encode_request(&mut frame, &id, &request.method, request.params.raw().as_ref());
        self.reserved.resize(self.bytes + frame.len())?;
        self.bytes += frame.len();
        self.requests.push_back(ParkedRequest { id, batch, frame });
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Option<ParkedRequest> {
        let parked = self.requests.pop_front()?;
        self.forget(parked.frame.len());
        Some(parked)
    }

    /// Removes all requests.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.forget(self.bytes);
    }

    /// Removes a request.
    pub(super) fn remove(&mut self, id: &Id) -> Option<ParkedRequest> {
        let place = self.requests.iter().position(|parked| parked.id == *id)?;
        let parked = self.requests.remove(place)?;
        self.forget(parked.frame.len());
        Some(parked)
    }

    fn forget(&mut self, bytes: usize) {
        self.bytes -= bytes;
        // Less always fits.
        let _ = self.reserved.resize(self.bytes);
    }
}
