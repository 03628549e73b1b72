//! A number of bytes that several queues share: what a server sent and nobody has taken yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that may be held. Cheap to clone; clones share them.
#[derive(Debug, Clone)]
pub(super) struct Budget(Arc<AtomicUsize>);

/// A part of a [`Budget`], given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    left: Arc<AtomicUsize>,
    bytes: usize,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Takes a part; `None` if less is left.
    pub(super) fn take(&self, bytes: usize) -> Option<Share> {
        let rest = |left: usize| left.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).ok()?;
        Some(Share { left: Arc::clone(&self.0), bytes })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back() {
        let budget = Budget::new(10);
        let (most, none) = (budget.take(9), budget.take(2));
        assert!(most.is_some() && none.is_none());
        let rest = budget.take(1);
        assert!(rest.is_some() && budget.take(1).is_none());
        drop((most, rest));
        assert!(budget.take(10).is_some());
    }
}
