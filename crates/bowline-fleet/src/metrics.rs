//! What a node has done, as numbers.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a node counts.
#[derive(Default)]
pub(crate) struct Counters {
    failed_beats: AtomicU64,
    announced: AtomicU64,
    announcements: AtomicU64,
    heard: AtomicU64,
    repaired: AtomicU64,
    letters: AtomicU64,
    lost_letters: AtomicU64,
    redis_failures: AtomicU64,
    lag: AtomicU64,
}

impl Counters {
    pub(crate) fn failed_beat(&self) {
        self.failed_beats.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn announced(&self, changes: usize, took: Duration) {
        self.announced.fetch_add(changes as u64, Ordering::Relaxed);
        self.announcements.fetch_add(1, Ordering::Relaxed);
        self.lag.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn heard(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn repaired(&self) {
        self.repaired.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn letter(&self, arrived: bool) {
        let counter = if arrived { &self.letters } else { &self.lost_letters };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn redis_failed(&self) {
        self.redis_failures.fetch_add(1, Ordering::Relaxed);
    }
}

/// How a node is. It is written in the text format of Prometheus.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Heartbeats that failed: the store could not be used.
    pub failed_beats: u64,
    /// Changes of this node that were announced to the others.
    pub announced: u64,
    /// The transactions that took.
    pub announcements: u64,
    /// Changes of other nodes that were heard of.
    pub heard: u64,
    /// Changes of tasks that nothing was heard of, and that were found by looking.
    pub repaired: u64,
    /// Letters to other nodes that arrived.
    pub letters: u64,
    /// Letters that did not.
    pub lost_letters: u64,
    /// Attempts to use Redis that failed; Postgres was used instead.
    pub redis_failures: u64,
    /// How long the last announcement took.
    pub announcement_took: Duration,
    /// Connections to Postgres.
    pub connections: u64,
    /// Those of them that are idle.
    pub idle_connections: u64,
    /// The other nodes that live.
    pub others: u64,
    /// How long ago the store last answered; `None` if it never did.
    pub silence: Option<Duration>,
}

impl Metrics {
    pub(crate) fn new(
        counters: &Counters,
        (connections, idle): (usize, usize),
        others: usize,
        silence: Option<Duration>,
    ) -> Self {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Self {
            failed_beats: read(&counters.failed_beats),
            announced: read(&counters.announced),
            announcements: read(&counters.announcements),
            heard: read(&counters.heard),
            repaired: read(&counters.repaired),
            letters: read(&counters.letters),
            lost_letters: read(&counters.lost_letters),
            redis_failures: read(&counters.redis_failures),
            announcement_took: Duration::from_micros(read(&counters.lag)),
            connections: connections as u64,
            idle_connections: idle as u64,
            others: others as u64,
            silence,
        }
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = [
            ("failed_beats", self.failed_beats),
            ("announced_changes", self.announced),
            ("announcements", self.announcements),
            ("heard_changes", self.heard),
            ("repaired_changes", self.repaired),
            ("letters", self.letters),
            ("lost_letters", self.lost_letters),
            ("redis_failures", self.redis_failures),
        ];
        for (name, value) in counters {
            writeln!(f, "# TYPE bowline_fleet_{name}_total counter")?;
            writeln!(f, "bowline_fleet_{name}_total {value}")?;
        }
        let silence = self.silence.map_or(f64::INFINITY, |it| it.as_secs_f64());
        let silence = if silence.is_finite() { silence.to_string() } else { "+Inf".to_owned() };
        let gauges = [
            ("announcement_seconds", self.announcement_took.as_secs_f64().to_string()),
            ("connections", self.connections.to_string()),
            ("idle_connections", self.idle_connections.to_string()),
            ("other_nodes", self.others.to_string()),
            ("store_silence_seconds", silence),
        ];
        for (name, value) in gauges {
            writeln!(f, "# TYPE bowline_fleet_{name} gauge")?;
            writeln!(f, "bowline_fleet_{name} {value}")?;
        }
        Ok(())
    }
}
