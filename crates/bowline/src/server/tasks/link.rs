//! What connects a running handler with its task.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::super::rounds::Rounds;
use super::record::{Lease, TaskRecord};
use super::shared::{Shared, Updated, lock};

/// The task that a call has become, as its handler sees it.
pub(crate) struct Link {
    shared: Arc<Shared>,
    id: String,
    /// Whom it counts against.
    owner: Option<String>,
    /// The run that the handler belongs to.
    pub(super) fence: u64,
    /// How long that one may go on at first.
    pub(super) until: u64,
    /// What it is doing, until that is stored.
    status: Mutex<Option<String>>,
    changed: Notify,
}

/// The longest status message, in bytes. What is longer is cut.
const STATUS: usize = 1_024;

/// Cuts a status message that is too long.
pub(super) fn cut(mut message: String) -> String {
    if message.len() > STATUS {
        let end = (0..=STATUS).rev().find(|at| message.is_char_boundary(*at));
        message.truncate(end.unwrap_or(0));
    }
    message
}

impl Link {
    pub(super) fn new(shared: &Arc<Shared>, record: &TaskRecord) -> Arc<Self> {
        let (status, changed) = (Mutex::default(), Notify::new());
        let Lease { fence, until, .. } = record.lease;
        let (id, owner) = (record.id.clone(), record.owner().map(str::to_owned));
        Arc::new(Self { shared: Arc::clone(shared), id, owner, fence, until, status, changed })
    }

    /// How many rounds of questions it may have.
    pub(crate) fn rounds(&self) -> u32 {
        self.shared.limits.rounds
    }

    pub(super) fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn set_status(&self, message: String) {
        *lock(&self.status) = Some(cut(message));
        self.changed.notify_one();
    }

    /// Ready when there is a new status.
    pub(super) async fn status_changed(&self) {
        self.changed.notified().await;
    }

    /// What the handler has said last, if that is not stored yet.
    pub(super) fn status(&self) -> Option<String> {
        lock(&self.status).clone()
    }

    /// Forgets a status that has been stored, unless it is no longer the last.
    pub(super) fn note_stored(&self, stored: Option<&str>) {
        let mut status = lock(&self.status);
        if status.as_deref() == stored {
            *status = None;
        }
    }

    /// Reports a status again that could not be stored.
    pub(super) fn remind(&self) {
        if lock(&self.status).is_some() {
            self.changed.notify_one();
        }
    }

    /// Stores what the handler wants to keep. If that fails for good, the work may be done again
    /// after a restart. If the task has ended or runs elsewhere, it stops here.
    pub(crate) async fn keep(&self, rounds: &Rounds) {
        let kept = self.shared.insist(|| {
            self.shared.update(&self.id, |record, _| {
                let is_ours = record.is_run_by(self.shared.boot(), self.fence);
                // Whatever is kept by now: the last of several values may be stored first.
                is_ours.then(|| record.past = rounds.past())
            })
        });
        match kept.await {
            Ok(Updated::Changed(..)) => {}
            Ok(_) => {
                tracing::debug!(task = %self.id, "a value of a task that has ended is not kept");
                self.shared.stop_running(&self.id, self.fence);
                std::future::pending::<()>().await;
            }
            Err(error) => tracing::error!(task = %self.id, %error, "a value cannot be kept"),
        }
    }
}
