//! Results that the server allows the client to cache.
//!
//! A modern result may say how long it stays fresh (`ttlMs`). Until then the cache answers the same
//! request, unless the server reports a change or the connection is reopened. A client has one
//! authorization, so private results (`cacheScope: private`) are cached too.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use bowline_proto::json::Json;
use serde::Deserialize;
use tokio::time::Instant;

use super::changes::Change;
use super::limits::ClientLimits;
use super::outgoing::Outgoing;
use super::shared::lock;
use crate::clock;

/// Results, by request.
pub(super) struct Cache {
    is_on: bool,
    most_entries: usize,
    most_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<(String, String), Entry>,
    bytes: usize,
    /// How often something was dropped.
    epoch: Epoch,
}

/// A moment in the life of a cache: results requested before a change are not kept after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Epoch(u64);

struct Entry {
    result: Json,
    /// The bytes of the result and of the request.
    size: usize,
    expires: Instant,
}

/// The methods whose results may say how long they stay fresh.
const CACHEABLE: [&str; 5] =
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"];

/// The longest time to keep a result, whatever the server says.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Cache {
    pub(super) fn new(limits: &ClientLimits, is_on: bool) -> Self {
        let ClientLimits { cache_entries, cache_bytes, .. } = *limits;
        Self { is_on, most_entries: cache_entries, most_bytes: cache_bytes, kept: Mutex::default() }
    }

    /// The result of a call, if it is fresh.
    pub(super) fn find(&self, call: &Outgoing<'_>) -> Option<Json> {
        if !self.may_keep(&call.method) {
            return None;
        }
        let kept = lock(&self.kept);
        let entry = kept.entries.get(&key(call))?;
        (entry.expires > clock::now()).then(|| entry.result.clone())
    }

    /// The current epoch, taken before a call is sent.
    pub(super) fn epoch(&self) -> Epoch {
        lock(&self.kept).epoch
    }

    /// Keeps the result of a call that was sent at `asked`, if the server allows it and has
    /// reported no change since.
    pub(super) fn keep(&self, call: &Outgoing<'_>, result: &Json, asked: Epoch) {
        #[derive(Deserialize)]
        struct Freshness {
            #[serde(rename = "ttlMs", default)]
            ttl_ms: Option<f64>,
        }
        let size = result.as_str().len() + call.method.len() + call.members().len();
        if !self.may_keep(&call.method) || size > self.most_bytes {
            return;
        }
        let fresh: Option<Freshness> = result.parse().ok();
        let millis = fresh.and_then(|fresh| fresh.ttl_ms).filter(|millis| *millis >= 1.0);
        let Some(millis) = millis else { return };
        let fresh = Duration::try_from_secs_f64(millis / 1000.0).unwrap_or(LONGEST).min(LONGEST);
        let now = clock::now();
        let mut kept = lock(&self.kept);
        if kept.epoch != asked {
            return;
        }
        kept.remove(&key(call));
        if kept.entries.len() >= self.most_entries || kept.bytes + size > self.most_bytes {
            kept.retain(|_, entry| entry.expires > now);
        }
        if kept.entries.len() < self.most_entries && kept.bytes + size <= self.most_bytes {
            kept.bytes += size;
            let entry = Entry { result: result.clone(), size, expires: now + fresh };
            kept.entries.insert(key(call), entry);
        }
    }

    /// Drops what a change makes stale.
    pub(super) fn forget(&self, change: &Change) {
        let mut kept = lock(&self.kept);
        kept.epoch.0 += 1;
        kept.retain(|(method, members), _| match change {
            Change::Tools => method != "tools/list",
            Change::Prompts => method != "prompts/list",
            Change::Resources => method != "resources/list" && method != "resources/templates/list",
            // The server may name only a part of what was read.
            Change::Resource(_) => method != "resources/read" || members.is_empty(),
        });
    }

    pub(super) fn clear(&self) {
        let mut kept = lock(&self.kept);
        let epoch = Epoch(kept.epoch.0 + 1);
        *kept = Kept { epoch, ..Kept::default() };
    }

    fn may_keep(&self, method: &str) -> bool {
        self.is_on && CACHEABLE.contains(&method)
    }
}

impl Kept {
    fn remove(&mut self, key: &(String, String)) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.size;
        }
    }

    fn retain(&mut self, keep: impl Fn(&(String, String), &Entry) -> bool) {
        self.entries.retain(|key, entry| keep(key, entry));
        self.bytes = self.entries.values().map(|entry| entry.size).sum();
    }
}

fn key(call: &Outgoing<'_>) -> (String, String) {
    (call.method.clone().into_owned(), call.members().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::outgoing::Repeated;
    use super::*;

    fn call(method: &'static str) -> Outgoing<'static> {
        Outgoing::written(method, "{}", Repeated::default())
    }

    fn result(millis: i64) -> Json {
        Json::from(json!({ "tools": [], "ttlMs": millis }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_is_kept_while_it_is_fresh() {
        let cache = Cache::new(&ClientLimits::default(), true);
        let list = call("tools/list");
        cache.keep(&list, &result(1000), cache.epoch());
        assert_eq!(cache.find(&list), Some(result(1000)));
        tokio::time::advance(Duration::from_millis(1001)).await;
        assert_eq!(cache.find(&list), None);
        for millis in [0, -5] {
            cache.keep(&list, &result(millis), cache.epoch());
            assert_eq!(cache.find(&list), None, "{millis}");
        }
        cache.keep(&call("tools/call"), &result(1000), cache.epoch());
        assert_eq!(cache.find(&call("tools/call")), None);
        let off = Cache::new(&ClientLimits::default(), false);
        off.keep(&list, &result(1000), off.epoch());
        assert_eq!(off.find(&list), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_makes_it_stale() {
        let cache = Cache::new(&ClientLimits::default(), true);
        let (tools, prompts) = (call("tools/list"), call("prompts/list"));
        cache.keep(&tools, &result(1000), cache.epoch());
        cache.keep(&prompts, &result(1000), cache.epoch());
        cache.forget(&Change::Tools);
        assert_eq!(cache.find(&tools), None);
        assert!(cache.find(&prompts).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn it_holds_no_more_than_it_may() {
        let limits = ClientLimits { cache_entries: 2, cache_bytes: 90, ..ClientLimits::default() };
        let cache = Cache::new(&limits, true);
        for method in ["tools/list", "prompts/list", "resources/list"] {
            cache.keep(&call(method), &result(1000), cache.epoch());
        }
        assert!(cache.find(&call("tools/list")).is_some());
        assert!(cache.find(&call("resources/list")).is_none());
        assert!(lock(&cache.kept).bytes <= 90);
    }
}
