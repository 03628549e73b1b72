//! What has happened, for pages to read: the present state of things by name, and the most recent
//! of what has no name.
//!
//! A page that opens or reloads reads it from the beginning. A page that is slow has no queue here:
//! it continues where it was, and what has been dropped meanwhile is counted.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::json;
use tokio::sync::Notify;

/// How long something stays in a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep<'a> {
    /// Until something else is published under this name, or the name is forgotten.
    As(&'a str),
    /// The same, but the first to go when there is no more room: the oldest results make room for
    /// the state of things.
    Result(&'a str),
    /// Until there is no more room for it.
    Recent,
}

/// How much a feed holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedLimits {
    /// Events without a name. 200,000 unless set.
    pub recent: usize,
    /// Bytes of events without a name. 128 MiB unless set.
    pub recent_bytes: usize,
    /// Bytes of events with a name; the oldest results make room first. 128 MiB unless set.
    pub kept_bytes: usize,
}

impl Default for FeedLimits {
    fn default() -> Self {
        Self { recent: 200_000, recent_bytes: 128 << 20, kept_bytes: 128 << 20 }
    }
}

/// What has happened. Clones share it.
#[derive(Clone, Default)]
pub struct Feed {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    limits: FeedLimits,
    /// The number of the latest event.
    last: u64,
    recent: VecDeque<(u64, Arc<str>)>,
    recent_bytes: usize,
    /// The latest event that was dropped for want of room.
    dropped: u64,
    kept: BTreeMap<u64, (String, Arc<str>)>,
    kept_bytes: usize,
    /// Those of the kept that are results.
    results: BTreeSet<u64>,
    names: HashMap<String, u64>,
}

impl Feed {
    /// A feed with limits of its own.
    #[must_use]
    pub fn new(limits: FeedLimits) -> Self {
        let feed = Self::default();
        feed.lock().limits = limits;
        feed
    }

    /// Publishes an event: JSON with a member `event` that says what it is.
    pub fn publish(&self, keep: Keep<'_>, event: &impl Serialize) {
        // Everything that is published here is plain data, which can be written.
        let Ok(text) = serde_json::to_string(event) else { return };
        let mut state = self.lock();
        state.last += 1;
        let number = state.last;
        match keep {
            Keep::As(name) => state.keep(number, name, text.into(), false),
            Keep::Result(name) => state.keep(number, name, text.into(), true),
            Keep::Recent => state.push(number, text.into()),
        }
        drop(state);
        self.shared.changed.notify_waiters();
    }

    /// Forgets every name that begins like this, and tells pages to do so.
    pub fn forget(&self, prefix: &str) {
        let mut state = self.lock();
        let names: Vec<String> =
            state.names.keys().filter(|name| name.starts_with(prefix)).cloned().collect();
        for name in names {
            state.forget(&name);
        }
        drop(state);
        self.publish(Keep::Recent, &json!({ "event": "forgotten", "prefix": prefix }));
    }

    /// What happened after an event, as lines of JSON, the last of which says where they end; and
    /// the number of the last event. Waits while there is nothing. Returns about `most` bytes, so
    /// that a page can start before all is read.
    pub async fn after(&self, number: u64, most: usize) -> (String, u64) {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            // Registered before looking, so that nothing is missed in between.
            changed.as_mut().enable();
            if let Some(found) = self.lock().read(number, most) {
                return found;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, number: u64, text: Arc<str>) {
        self.recent_bytes += text.len();
        self.recent.push_back((number, text));
        while self.recent.len() > self.limits.recent || self.recent_bytes > self.limits.recent_bytes
        {
            let Some((number, text)) = self.recent.pop_front() else { break };
            self.recent_bytes -= text.len();
            self.dropped = self.dropped.max(number);
        }
    }

    fn keep(&mut self, number: u64, name: &str, text: Arc<str>, is_result: bool) {
        self.forget(name);
        if text.len() > self.limits.kept_bytes {
            // Nothing that could go would make room for it.
            self.dropped = number;
            return;
        }
        if is_result {
            self.results.insert(number);
        }
        self.kept_bytes += text.len();
        self.names.insert(name.to_owned(), number);
        self.kept.insert(number, (name.to_owned(), text));
        while self.kept_bytes > self.limits.kept_bytes {
            let first = self.kept.first_key_value().map(|(number, _)| *number);
            let Some(oldest) = self.results.first().copied().or(first) else { break };
            if let Some(name) = self.kept.get(&oldest).map(|(name, _)| name.clone()) {
                self.forget(&name);
            }
            self.dropped = self.dropped.max(oldest);
        }
    }

    fn forget(&mut self, name: &str) {
        let Some(number) = self.names.remove(name) else { return };
        self.results.remove(&number);
        if let Some((_, text)) = self.kept.remove(&number) {
            self.kept_bytes -= text.len();
        }
    }

    /// Both kinds of events in the order in which they happened.
    fn read(&self, after: u64, most: usize) -> Option<(String, u64)> {
        let from = self.recent.partition_point(|(number, _)| *number <= after);
        let mut recent = self.recent.range(from..).peekable();
        let mut kept = self.kept.range(after + 1..).peekable();
        let (mut lines, mut last) = (String::new(), after);
        if self.dropped > after {
            lines += &format!("{}\n", json!({ "event": "dropped" }));
        }
        while lines.len() < most {
            let (next, line) = match (recent.peek(), kept.peek()) {
                (Some((ring, line)), Some((name, _))) if ring < *name => (*ring, line),
                (_, Some((name, (_, line)))) => (**name, line),
                (Some((ring, line)), None) => (*ring, line),
                (None, None) => break,
            };
            lines += line;
            lines.push('\n');
            if recent.peek().is_some_and(|(ring, _)| *ring == next) {
                recent.next();
            } else {
                kept.next();
            }
            last = next;
        }
        if last == after && self.dropped <= after {
            return None;
        }
        let is_current = recent.peek().is_none() && kept.peek().is_none();
        let last = if is_current { self.last } else { last };
        lines +=
            &json!({ "event": "position", "after": last, "isCurrent": is_current }).to_string();
        lines.push('\n');
        Some((lines, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> serde_json::Value {
        json!({ "event": "said", "text": text })
    }

    async fn texts(feed: &Feed, after: u64) -> (Vec<String>, u64) {
        let (lines, last) = feed.after(after, usize::MAX).await;
        let text = |line: &str| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = value["text"].as_str().or_else(|| value["event"].as_str());
            text.unwrap_or_default().to_owned()
        };
        let (position, events) =
            lines.trim_end().rsplit_once('\n').map_or((&*lines, ""), |(a, b)| (b, a));
        let expected = json!({ "event": "position", "after": last, "isCurrent": true });
        assert_eq!(serde_json::from_str::<serde_json::Value>(position).unwrap(), expected);
        (events.lines().map(text).collect(), last)
    }

    #[tokio::test]
    async fn a_page_reads_what_is_there_and_then_what_comes() {
        let feed = Feed::default();
        feed.publish(Keep::As("a"), &said("a1"));
        feed.publish(Keep::Recent, &said("r1"));
        feed.publish(Keep::As("a"), &said("a2"));
        feed.publish(Keep::Recent, &said("r2"));
        let (seen, last) = texts(&feed, 0).await;
        assert_eq!(seen, ["r1", "a2", "r2"], "the first a was replaced");
        let later = feed.clone();
        let (next, ()) = tokio::join!(texts(&feed, last), async {
            tokio::task::yield_now().await;
            later.publish(Keep::As("b"), &said("b1"));
        });
        assert_eq!(next.0, ["b1"]);
        feed.forget("a");
        assert_eq!(texts(&feed, 0).await.0, ["r1", "r2", "b1", "forgotten"]);
    }

    #[tokio::test]
    async fn everything_is_bounded_and_losses_are_told() {
        let feed = Feed::new(FeedLimits { recent: 2, recent_bytes: 1000, kept_bytes: 70 });
        for number in 0..5 {
            feed.publish(Keep::Recent, &said(&number.to_string()));
        }
        assert_eq!(texts(&feed, 0).await.0, ["dropped", "3", "4"]);
        for name in ["a", "b", "c"] {
            feed.publish(Keep::As(name), &said(name));
        }
        assert_eq!(texts(&feed, 7).await.0, ["c"], "two of them fit");
        assert_eq!(texts(&feed, 0).await.0, ["dropped", "3", "4", "b", "c"]);
    }

    #[tokio::test]
    async fn large_results_make_room_for_the_state_of_things() {
        let feed = Feed::new(FeedLimits { kept_bytes: 300, ..FeedLimits::default() });
        feed.publish(Keep::As("c1/state"), &said("state"));
        for name in ["x", "y", "z"] {
            feed.publish(Keep::Result(name), &said(&name.repeat(100)));
        }
        let kept = texts(&feed, 0).await.0;
        assert_eq!(kept[0], "dropped");
        let kept: Vec<_> = kept[1..].iter().map(|text| &text[..1]).collect();
        assert_eq!(kept, ["s", "y", "z"], "the oldest result went, not the connection");
        feed.publish(Keep::Result("z"), &said("again"));
        assert_eq!(texts(&feed, 0).await.0.last().unwrap(), "again");
    }

    #[tokio::test]
    async fn it_is_read_in_pieces() {
        let feed = Feed::default();
        for number in 0..10 {
            feed.publish(Keep::Recent, &said(&number.to_string()));
        }
        let (lines, last) = feed.after(0, 1).await;
        assert_eq!((lines.lines().count(), last), (2, 1));
        assert!(lines.contains("\"isCurrent\":false"), "{lines}");
        assert_eq!(texts(&feed, 1).await.1, 10);
    }

    #[tokio::test]
    async fn what_is_larger_than_everything_leaves_the_rest() {
        let feed = Feed::new(FeedLimits { kept_bytes: 200, ..FeedLimits::default() });
        feed.publish(Keep::As("state"), &said("state"));
        for keep in [Keep::As("list"), Keep::Result("call")] {
            feed.publish(keep, &said(&"x".repeat(300)));
        }
        assert_eq!(texts(&feed, 0).await.0, ["dropped", "state"]);
        assert_eq!(texts(&feed, 1).await, (vec!["dropped".to_owned()], 3));
        feed.publish(Keep::Result("next"), &said("next"));
        assert_eq!(texts(&feed, 3).await.0, ["next"]);
    }
}
