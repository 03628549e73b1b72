//! Answers to a batch, which are sent together (2025-03-26 only): as one line, so they are held
//! until the last one is there.

use std::collections::HashMap;
use std::sync::Arc;

use bowline_proto::error::ErrorObject;
use bowline_proto::wire::{Id, encode_error};

use crate::outbox::Outbox;
use crate::server::account::{Account, Reservation};

/// Batches that are not completely answered yet.
pub(super) struct Batches {
    next: u64,
    open: HashMap<u64, Batch>,
    /// The length of all answers.
    bytes: usize,
    reserved: Reservation,
}

struct Batch {
    /// How many answers are still missing.
    missing: usize,
    /// The answers so far, separated by commas.
    answers: Vec<u8>,
}

impl Batches {
    pub(super) fn new(account: Arc<Account>) -> Self {
        Self { next: 0, open: HashMap::new(), bytes: 0, reserved: Reservation::new(account) }
    }

    /// Opens a batch that will have this many answers.
    pub(super) fn open(&mut self, answers: usize) -> u64 {
        self.next += 1;
        if answers > 0 {
            self.open.insert(self.next, Batch { missing: answers, answers: Vec::new() });
        }
        self.next
    }

    /// Adds an answer; the last one sends them all. A cancelled request adds none. An answer that
    /// there is no memory for is replaced with an error, under the id of its request.
    pub(super) fn add(
        &mut self,
        number: u64,
        outbox: &Outbox,
        id: Option<&Id>,
        answer: impl FnOnce(&mut Vec<u8>),
    ) {
        let Some(batch) = self.open.get_mut(&number) else { return };
        let start = batch.answers.len();
        if start > 0 {
            batch.answers.push(b',');
        }
        let before = batch.answers.len();
        answer(&mut batch.answers);
        if self.reserved.resize(self.bytes + batch.answers.len() - start).is_err() {
            batch.answers.truncate(before);
            batch.answers.shrink_to_fit();
            if let Some(id) = id {
                encode_error(&mut batch.answers, id, &no_room());
            }
        }
        if batch.answers.len() == before {
            batch.answers.truncate(start);
        }
        self.bytes += batch.answers.len() - start;
        batch.missing -= 1;
        if batch.missing > 0 {
            return;
        }
        let Some(batch) = self.open.remove(&number) else { return };
        self.bytes -= batch.answers.len();
        // Less always fits.
        let _ = self.reserved.resize(self.bytes);
        if !batch.answers.is_empty() {
            // A closed outbox means that the client has disconnected.
            let _ = outbox.push(|out| {
                out.push(b'[');
                out.extend_from_slice(&batch.answers);
                out.push(b']');
            });
        }
    }
}

fn no_room() -> ErrorObject {
    ErrorObject::internal(
        "the answers of the batch are longer than the server's memory allows; send the request alone",
    )
}
