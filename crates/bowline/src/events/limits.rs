//! How much events may take, and how long.

use std::time::Duration;

/// How much events may take, and how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventLimits {
    /// How many of the latest events are kept: 1,000.
    pub kept: usize,
    /// The bytes of their data: 16 MiB.
    pub kept_bytes: usize,
    /// The longest data of an event, in bytes: 255 KiB, so that a webhook has at most 256.
    pub payload: usize,
    /// The longest arguments of a subscriber, in bytes: 8 KiB.
    pub arguments: usize,
    /// Events in one answer to `events/poll`: 100.
    pub page: usize,
    /// How soon to poll again: 5 s.
    pub poll: Duration,
    /// Streams at a time: 100.
    pub streams: usize,
    /// Streams of one principal, or of one address where nobody is known: 10.
    pub streams_per_owner: usize,
    /// How often a stream without events gives a sign of life: 20 s.
    pub heartbeat: Duration,
    /// Subscriptions of webhooks: 1,000.
    pub subscriptions: usize,
    /// Subscriptions of one principal: 100.
    pub subscriptions_per_owner: usize,
    /// How long a subscription lasts unless it is renewed: 1 day.
    pub ttl: Duration,
    /// The longest that a client may wish for: 30 days.
    pub longest_ttl: Duration,
    /// Webhooks that are being sent at a time: 32.
    pub deliveries: usize,
    /// How long a receiver may take to answer: 10 s.
    pub answer: Duration,
    /// The pause after the first failure: 1 s. It doubles each time.
    pub first_pause: Duration,
    /// The longest pause: 5 min.
    pub longest_pause: Duration,
    /// A receiver that has failed for this long loses its subscription: 1 day.
    pub patience: Duration,
}

impl Default for EventLimits {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 3_600);
        Self {
            kept: 1_000,
            kept_bytes: 16 << 20,
            payload: 255 << 10,
            arguments: 8 << 10,
            page: 100,
            poll: Duration::from_secs(5),
            streams: 100,
            streams_per_owner: 10,
            heartbeat: Duration::from_secs(20),
            subscriptions: 1_000,
            subscriptions_per_owner: 100,
            ttl: DAY,
            longest_ttl: DAY * 30,
            deliveries: 32,
            answer: Duration::from_secs(10),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(300),
            patience: DAY,
        }
    }
}

impl EventLimits {
    /// How long a subscription lasts whose client has a wish, in milliseconds.
    pub(super) fn ttl(&self, wish: Option<u64>) -> u64 {
        let longest = millis(self.longest_ttl);
        wish.map_or_else(|| millis(self.ttl), |wish| wish.max(MIN_TTL)).min(longest)
    }
}

/// The shortest that a client may wish for, in milliseconds.
const MIN_TTL: u64 = 60_000;

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
