//! Answers to a batch, which are sent together (2025-03-26 only).

use std::collections::HashMap;

use crate::outbox::Outbox;

/// Batches that are not completely answered yet.
#[derive(Default)]
pub(super) struct Batches {
    next: u64,
    open: HashMap<u64, Batch>,
}

struct Batch {
    /// How many answers are still missing.
    missing: usize,
    /// The answers so far, separated by commas.
    answers: Vec<u8>,
}

impl Batches {
    /// Opens a batch that will have this many answers.
    pub(super) fn open(&mut self, answers: usize) -> u64 {
        self.next += 1;
        if answers > 0 {
            self.open.insert(self.next, Batch { missing: answers, answers: Vec::new() });
        }
        self.next
    }

    /// Adds an answer; the last one sends them all. A cancelled request adds none.
    pub(super) fn add(&mut self, number: u64, outbox: &Outbox, answer: impl FnOnce(&mut Vec<u8>)) {
        let Some(batch) = self.open.get_mut(&number) else { return };
        let start = batch.answers.len();
        if start > 0 {
            batch.answers.push(b',');
        }
        let before = batch.answers.len();
        answer(&mut batch.answers);
        if batch.answers.len() == before {
            batch.answers.truncate(start);
        }
        batch.missing -= 1;
        if batch.missing > 0 {
            return;
        }
        let Some(batch) = self.open.remove(&number) else { return };
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
