//! Sends what is waiting: one task per destination, for as long as it has messages.

use std::io;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use bowline::with_causes;
use tokio::time::{Instant, sleep_until};

use super::queue::Head;
use super::{Lines, Spool};
use crate::destination::Destination;
use crate::logger::SendError;
use crate::plan::PlanError;

/// What became of the first messages of a queue.
enum Step {
    /// They were sent.
    Sent,
    /// They were not; try again then.
    Failed(Instant),
    /// There are none, and the queue is gone.
    Empty,
}

impl Spool {
    /// Starts sending to a destination, unless that is going on.
    pub(super) fn start(self: &Arc<Self>, key: String) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(drain(Arc::downgrade(self), key));
    }

    /// Whether this task is the one that sends to the destination from now on.
    async fn claim(&self, key: &str) -> bool {
        let mut lines = self.lines.lock().await;
        let line = lines.get_mut(key).filter(|line| !line.is_draining);
        line.is_some_and(|line| {
            line.is_draining = true;
            true
        })
    }

    /// Sends the first messages of a queue over one connection, and deletes them once it was closed
    /// without an error.
    async fn step(&self, key: &str) -> Step {
        let (destination, head) = match self.head(key).await {
            Ok(Some(found)) => found,
            Ok(None) => return Step::Empty,
            Err(error) => return self.failed(key, &error).await,
        };
        let sent = self.send(&destination, &head).await;
        if let Err(error) = sent {
            return self.failed(key, &with_causes(&error)).await;
        }
        let name = key.to_owned();
        let removed = self.with(move |lines| {
            let Some(line) = lines.get_mut(&name) else { return Ok(true) };
            (line.failures, line.error, line.retry) = (0, None, None);
            line.queue.remove(&head)?;
            Ok(delete_if_empty(lines, &name))
        });
        let removed = removed.await.and_then(|removed: io::Result<bool>| removed);
        self.announce();
        match removed {
            Ok(true) => Step::Empty,
            Ok(false) => Step::Sent,
            Err(error) => self.failed(key, &error.to_string()).await,
        }
    }

    /// The first messages of a queue and where they go. An empty queue is deleted.
    async fn head(&self, key: &str) -> Result<Option<(Destination, Head)>, String> {
        let name = key.to_owned();
        let read = self.with(move |lines| {
            let Some(line) = lines.get_mut(&name) else { return Ok(None) };
            let found = (line.waypoint.clone(), line.queue.head()?);
            Ok((!delete_if_empty(lines, &name)).then_some(found))
        });
        let read = read.await.and_then(|read: io::Result<_>| read);
        let read = read.map_err(|error| error.to_string())?;
        let Some((waypoint, head)) = read else { return Ok(None) };
        let resolved = waypoint.resolve(&self.config);
        let destination = resolved.map_err(|error: PlanError| with_causes(&error))?;
        Ok(Some((destination, head)))
    }

    async fn send(&self, to: &Destination, head: &Head) -> Result<(), SendError> {
        let _place = self.places.acquire().await;
        let mut link = self.network.open(to).await?;
        for message in &head.messages {
            self.rate.wait(1).await;
            link.send(message).await?;
        }
        Ok(link.finish().await?)
    }

    async fn failed(&self, key: &str, error: &str) -> Step {
        let settings = &self.settings;
        let mut lines = self.lines.lock().await;
        let Some(line) = lines.get_mut(key) else { return Step::Empty };
        let doubled = settings.retry_ms.saturating_mul(1 << line.failures.min(30));
        let retry = Instant::now() + Duration::from_millis(doubled.min(settings.max_retry_ms));
        line.failures = line.failures.saturating_add(1);
        (line.error, line.retry) = (Some(error.to_owned()), Some(retry));
        drop(lines);
        tracing::debug!(error, "the spool could not be sent");
        self.announce();
        Step::Failed(retry)
    }
}

/// Deletes a queue that is empty. **Invariant:** the task that does so ends, because the next
/// message makes another queue, with a task of its own.
fn delete_if_empty(lines: &mut Lines, key: &str) -> bool {
    let is_empty = lines.get(key).is_none_or(|line| line.queue.messages() == 0);
    if is_empty && let Some(line) = lines.remove(key) {
        line.queue.delete();
    }
    is_empty
}

/// Sends until nothing is left. Owns the spool only while it works, so that dropping the spool ends
/// it.
async fn drain(spool: Weak<Spool>, key: String) {
    match spool.upgrade() {
        Some(spool) if spool.claim(&key).await => {}
        _ => return,
    }
    loop {
        let Some(owned) = spool.upgrade() else { return };
        let step = owned.step(&key).await;
        drop(owned);
        match step {
            Step::Sent => {}
            Step::Failed(retry) => sleep_until(retry).await,
            Step::Empty => return,
        }
    }
}
