//! What became of the leases of tasks in this process, as numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use super::super::fleet::TaskCounts;
use super::shared::Shared;

/// How often leases were renewed, lost and taken over.
#[derive(Default)]
pub(super) struct Leases {
    renewed: AtomicU64,
    lost: AtomicU64,
    adopted: AtomicU64,
}

impl Shared {
    pub(super) fn counts(&self) -> TaskCounts {
        let Leases { renewed, lost, adopted } = &self.leases;
        TaskCounts {
            held: self.running().len() as u64,
            renewed: renewed.load(Ordering::Relaxed),
            lost: lost.load(Ordering::Relaxed),
            adopted: adopted.load(Ordering::Relaxed),
        }
    }

    pub(super) fn renewed_until(&self, until: u64) -> u64 {
        self.leases.renewed.fetch_add(1, Ordering::Relaxed);
        until
    }

    pub(super) fn lose(&self) {
        self.leases.lost.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn take_over(&self) {
        self.leases.adopted.fetch_add(1, Ordering::Relaxed);
    }
}
