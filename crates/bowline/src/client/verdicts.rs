//! Which revision each server spoke last time, so that legacy servers are not probed every time.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bowline_proto::revision::Revision;
use tokio::time::Instant;

use super::shared::lock;
use crate::clock;

/// Which revision each server spoke, by command line or URL. Cheap to clone; clones share their
/// data.
///
/// All clients of a process share one by default. A verdict expires after a day, because a server
/// that has been upgraded to the modern era does not show it unless asked.
#[derive(Debug, Clone, Default)]
pub struct Verdicts(Arc<Mutex<HashMap<String, Verdict>>>);

#[derive(Debug, Clone, Copy)]
struct Verdict {
    revision: Revision,
    found: Instant,
}

/// How long a verdict is valid.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How many verdicts are kept.
const MOST: usize = 1024;

impl Verdicts {
    /// No verdicts yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The one that all clients of this process share.
    pub fn of_process() -> Self {
        static OF_PROCESS: LazyLock<Verdicts> = LazyLock::new(Verdicts::new);
        OF_PROCESS.clone()
    }

    /// The revision that a server spoke last time.
    pub fn find(&self, target: &str) -> Option<Revision> {
        let verdict = *lock(&self.0).get(target)?;
        (verdict.found.elapsed() < DAY).then_some(verdict.revision)
    }

    /// Remembers which revision a server speaks.
    pub fn remember(&self, target: &str, revision: Revision) {
        let mut known = lock(&self.0);
        if known.len() >= MOST {
            known.retain(|_, verdict| verdict.found.elapsed() < DAY);
        }
        if known.len() < MOST || known.contains_key(target) {
            known.insert(target.to_owned(), Verdict { revision, found: clock::now() });
        }
    }

    /// Forgets which revision a server spoke.
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
