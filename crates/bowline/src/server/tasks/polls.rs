//! Clients that poll a task faster than they were told to. The first polls in quick succession are
//! answered at once; further ones are answered a moment later, or when the task changes: correct,
//! and no more often than the store can bear. The extension allows servers to limit the rate.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::shared::lock;
use crate::clock;

/// Polls in quick succession that are answered at once: a client looks when it has created a task,
/// and whenever it has answered a question.
const BURST: f64 = 20.0;
/// After this time without a poll, nothing needs to be known about the earlier ones.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// How often tasks were polled lately.
pub(super) struct Polls {
    /// How soon a task may be polled again that was polled too often.
    floor: Duration,
    paces: Mutex<HashMap<String, Pace>>,
}

/// How often a task was polled lately.
struct Pace {
    /// Others cannot spend its polls, nor find out that there are any.
    owner: Option<String>,
    /// Polls that are answered at once, as of a time: if that is to come, polls wait for it.
    left: f64,
    at: Instant,
}

impl Polls {
    pub(super) fn new(floor: Duration) -> Self {
        Self { floor, paces: Mutex::default() }
    }

    /// How long a poll has to wait for its answer.
    pub(super) fn pause(&self, id: &str, owner: Option<&str>) -> Option<Duration> {
        let mut paces = lock(&self.paces);
        let pace = paces.get_mut(id).filter(|pace| pace.owner.as_deref() == owner)?;
        let now = clock::now();
        if pace.at > now {
            // Polls that wait at the same time are answered at the same time.
            return Some(pace.at - now);
        }
        let earned = (now - pace.at).as_secs_f64() / self.floor.as_secs_f64();
        pace.left = (pace.left + earned).min(BURST);
        pace.at = now;
        if pace.left >= 1.0 {
            pace.left -= 1.0;
            return None;
        }
        let pause = self.floor.mul_f64(1.0 - pace.left);
        (pace.left, pace.at) = (0.0, now + pause);
        Some(pause)
    }

    /// Remembers that a poll was answered.
    pub(super) fn note(&self, id: &str, owner: Option<&str>) {
        let mut paces = lock(&self.paces);
        if self.floor.is_zero() || paces.contains_key(id) {
            return;
        }
        let owner = owner.map(str::to_owned);
        paces.insert(id.to_owned(), Pace { owner, left: BURST - 1.0, at: clock::now() });
    }

    /// Forgets tasks that nobody polls.
    pub(super) fn prune(&self) {
        let now = clock::now();
        lock(&self.paces).retain(|_, pace| now.saturating_duration_since(pace.at) < FORGOTTEN);
    }
}
