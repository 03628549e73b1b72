//! Requests that are queued because the maximum number is already running.
//!
//! Reading goes on, because the message that ends a running request may follow: the answer that a
//! handler waits for, or a cancellation. Queued requests are kept as bytes, in order.

use std::collections::VecDeque;

use bowline_proto::wire::{Id, Request, encode_request};

/// Queued requests.
pub(super) struct Parked {
    requests: VecDeque<ParkedRequest>,
    bytes: usize,
    limit: usize,
}

/// A queued request.
pub(super) struct ParkedRequest {
    pub(super) id: Id,
    /// The batch that it came in.
    pub(super) batch: Option<u64>,
    pub(super) frame: Vec<u8>,
}

impl Parked {
    pub(super) fn new(limit: usize) -> Self {
        Self { requests: VecDeque::new(), bytes: 0, limit }
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

    pub(super) fn push(&mut self, request: &Request<'_>, batch: Option<u64>) {
        let id = request.id.clone();
        let mut frame = Vec::new();
        // A parsed message can always be written.
        let _ = encode_request(&mut frame, &id, &request.method, request.params.raw().as_ref());
        self.bytes += frame.len();
        self.requests.push_back(ParkedRequest { id, batch, frame });
    }

    pub(super) fn pop(&mut self) -> Option<ParkedRequest> {
        let parked = self.requests.pop_front()?;
        self.bytes -= parked.frame.len();
        Some(parked)
    }

    /// Removes all requests.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.bytes = 0;
    }

    /// Removes a request.
    pub(super) fn remove(&mut self, id: &Id) -> Option<ParkedRequest> {
        let place = self.requests.iter().position(|parked| parked.id == *id)?;
        let parked = self.requests.remove(place)?;
        self.bytes -= parked.frame.len();
        Some(parked)
    }
}
