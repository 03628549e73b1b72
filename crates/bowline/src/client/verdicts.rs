//! What servers spoke last time, so that an old one is not asked what it does not know again.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bowline_proto::revision::Revision;
use tokio::time::Instant;

use super::shared::lock;
use crate::clock;

/// What servers spoke, by command line or URL. Cheap to clone; clones share what they know.
///
/// Clients of one process share one unless told otherwise. A verdict of the legacy era is
/// forgotten after a day, since a server that has learnt the modern era never shows it to a client
/// that does not ask.
#[derive(Debug, Clone, Default)]
pub struct Verdicts(Arc<Mutex<HashMap<String, Verdict>>>);

#[derive(Debug, Clone, Copy)]
struct Verdict {
    revision: Revision,
    found: Instant,
}

/// How long a verdict holds.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How many verdicts are kept.
const MOST: usize = 1024;

impl Verdicts {
    /// Knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The one that all clients of this process share.
    pub fn of_process() -> Self {
        static OF_PROCESS: LazyLock<Verdicts> = LazyLock::new(Verdicts::new);
        OF_PROCESS.clone()
    }

    /// What a server spoke last time.
    pub fn find(&self, target: &str) -> Option<Revision> {
        let verdict = *lock(&self.0).get(target)?;
        (verdict.found.elapsed() < DAY).then_some(verdict.revision)
    }

    /// Remembers what a server speaks.
    pub fn remember(&self, target: &str, revision: Revision) {
        let mut known = lock(&self.0);
        if known.len() >= MOST {
            known.retain(|_, verdict| verdict.found.elapsed() < DAY);
        }
        if known.len() < MOST || known.contains_key(target) {
            known.insert(target.to_owned(), Verdict { revision, found: clock::now() });
        }
    }

    /// Forgets what a server spoke.
    pub fn forget(&self, target: &str) {
        lock(&self.0).remove(target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_verdict_holds_for_a_day() {
        let verdicts = Verdicts::new();
        verdicts.remember("a", Revision::V2025_11_25);
        tokio::time::advance(DAY - Duration::from_secs(1)).await;
        assert_eq!(verdicts.find("a"), Some(Revision::V2025_11_25));
        assert_eq!(verdicts.find("b"), None);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(verdicts.find("a"), None);
    }
}
