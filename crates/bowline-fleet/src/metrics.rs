//! What a node has done, as numbers.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline::fleet::TaskCounts;

use crate::pool::Usage;

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
    announcing: AtomicU64,
    hints: AtomicU64,
    lag: AtomicU64,
}

impl Counters {
    pub(crate) fn failed_beat(&self) {
        self.failed_beats.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn announced(&self, changes: usize, took: Duration) {
        self.announced.fetch_add(changes as u64, Ordering::Relaxed);
        self.announcements.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.announcing.store(micros, Ordering::Relaxed);
    }

    pub(crate) fn heard(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    /// A hint has arrived, this many milliseconds after the first of its changes.
    pub(crate) fn hinted(&self, lag: u64) {
        self.hints.fetch_add(1, Ordering::Relaxed);
        self.lag.fetch_add(lag, Ordering::Relaxed);
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
    /// Hints of other nodes that arrived.
    pub hints: u64,
    /// How long they took in all, from the first change that they tell of.
    pub hints_took: Duration,
    /// Connections to Postgres.
    pub connections: u64,
    /// Those of them that are idle.
    pub idle_connections: u64,
    /// How often a connection was taken from the pool.
    pub connections_taken: u64,
    /// How long that took in all.
    pub connections_waited: Duration,
    /// The other nodes that live.
    pub others: u64,
    /// How long ago the store last answered; `None` if it never did.
    pub silence: Option<Duration>,
    /// What became of the leases of tasks.
    pub tasks: TaskCounts,
}

impl Metrics {
    pub(crate) fn new(
        counters: &Counters,
        usage: Usage,
        (others, silence): (usize, Option<Duration>),
        tasks: TaskCounts,
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
            announcement_took: Duration::from_micros(read(&counters.announcing)),
            hints: read(&counters.hints),
            hints_took: Duration::from_millis(read(&counters.lag)),
            connections: usage.open,
            idle_connections: usage.idle,
            connections_taken: usage.taken,
            connections_waited: usage.waited,
            others: others as u64,
            silence,
            tasks,
        }
    }

    fn counters(&self) -> [(&'static str, String); 15] {
        let seconds = |time: Duration| time.as_secs_f64().to_string();
        [
            ("failed_beats", self.failed_beats.to_string()),
            ("announced_changes", self.announced.to_string()),
            ("announcements", self.announcements.to_string()),
            ("heard_changes", self.heard.to_string()),
            ("repaired_changes", self.repaired.to_string()),
            ("letters", self.letters.to_string()),
            ("lost_letters", self.lost_letters.to_string()),
            ("redis_failures", self.redis_failures.to_string()),
            ("hints", self.hints.to_string()),
            ("hint_seconds", seconds(self.hints_took)),
            ("connections_taken", self.connections_taken.to_string()),
            ("connection_wait_seconds", seconds(self.connections_waited)),
            ("leases_renewed", self.tasks.renewed.to_string()),
            ("leases_lost", self.tasks.lost.to_string()),
            ("adoptions", self.tasks.adopted.to_string()),
        ]
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.counters() {
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
            ("leases_held", self.tasks.held.to_string()),
        ];
        for (name, value) in gauges {
            writeln!(f, "# TYPE bowline_fleet_{name} gauge")?;
            writeln!(f, "bowline_fleet_{name} {value}")?;
        }
        Ok(())
    }
}
