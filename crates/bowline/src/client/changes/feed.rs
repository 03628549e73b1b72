//! Changes that were not taken yet.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, Weak};

use bowline_proto::model::SubscriptionFilter;
use tokio::sync::Notify;

use super::Change;
use super::wanted::{granted_topics, missing};
use crate::client::error::CallError;
use crate::client::shared::lock;

/// Changes that were not taken yet, for one stream.
pub(in crate::client) struct Feed {
    pub(super) wanted: SubscriptionFilter,
    /// The most bytes of URIs that are remembered.
    most_bytes: usize,
    pending: Mutex<Pending>,
    /// Wakes every task that waits for something here.
    pub(super) changed: Arc<Notify>,
}

#[derive(Default)]
struct Pending {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: BTreeSet<String>,
    /// The bytes of `uris`.
    bytes: usize,
    /// Whether the server has reported changes before, so that a gap lies in between.
    was_open: bool,
    /// Whether the server reports changes at the moment.
    is_told: bool,
    granted: Option<SubscriptionFilter>,
    end: Option<Result<(), CallError>>,
}

impl Feed {
    pub(super) fn new(wanted: SubscriptionFilter, most_bytes: usize) -> Self {
        Self { wanted, most_bytes, pending: Mutex::default(), changed: Arc::new(Notify::new()) }
    }

    pub(super) fn uris(&self) -> &[String] {
        self.wanted.resource_subscriptions.as_deref().unwrap_or_default()
    }

    /// Records a change, if it is wanted.
    pub(in crate::client) fn tell(&self, change: &Change) {
        let is_wanted = |flag: Option<bool>| flag == Some(true);
        let mut pending = lock(&self.pending);
        match change {
            Change::Tools => pending.tools |= is_wanted(self.wanted.tools_list_changed),
            Change::Prompts => pending.prompts |= is_wanted(self.wanted.prompts_list_changed),
            Change::Resources => pending.resources |= is_wanted(self.wanted.resources_list_changed),
            Change::Resource(uri) => {
                // A server may name only a part of what was subscribed to.
                let wanted = self.uris().iter().find(|wanted| uri.starts_with(wanted.as_str()));
                if let Some(wanted) = wanted {
                    let fits = pending.bytes + cost(uri) <= self.most_bytes;
                    pending.add(if fits { uri } else { wanted });
                }
            }
        }
        drop(pending);
        self.changed.notify_waiters();
    }

    /// The server reports changes from here on; `granted` is what it will report. Only what was
    /// asked for is remembered of it.
    pub(in crate::client) fn acknowledge(&self, mut granted: SubscriptionFilter) {
        let listed: HashSet<String> =
            granted.resource_subscriptions.take().into_iter().flatten().collect();
        let uris = self.uris().iter().filter(|uri| listed.contains(uri.as_str()));
        let uris: Vec<String> = uris.cloned().collect();
        granted.resource_subscriptions = (!uris.is_empty()).then_some(uris);
        granted.task_ids = None;
        granted.extra = granted_topics(&self.wanted, &granted.extra);
        let is_open = missing(&self.wanted, &granted).is_none();
        let was_open = {
            let mut pending = lock(&self.pending);
            pending.granted = Some(granted);
            pending.is_told = true;
            is_open && std::mem::replace(&mut pending.was_open, true)
        };
        if was_open {
            self.tell(&Change::Tools);
            self.tell(&Change::Prompts);
            self.tell(&Change::Resources);
            for uri in self.uris() {
                self.tell(&Change::Resource(uri.clone()));
            }
        }
        self.changed.notify_waiters();
    }

    /// What the server agreed to report.
    pub(super) fn granted(&self) -> SubscriptionFilter {
        lock(&self.pending).granted.clone().unwrap_or_default()
    }

    /// Waits until the server reports changes, or never will.
    pub(super) async fn settled(&self) -> Result<(), CallError> {
        loop {
            let changed = self.changed.notified();
            {
                let mut pending = lock(&self.pending);
                match pending.end.take() {
                    Some(Err(error)) => return Err(error),
                    end => pending.end = end,
                }
                if pending.was_open || pending.end.is_some() {
                    return Ok(());
                }
            }
            changed.await;
        }
    }

    /// The server is being asked to report changes, perhaps again.
    pub(super) fn ask_anew(&self) {
        lock(&self.pending).is_told = false;
    }

    /// Whether the server reports changes since it was last asked to.
    pub(super) fn is_told(&self) -> bool {
        lock(&self.pending).is_told
    }

    /// Waits until the server reports changes.
    pub(super) async fn told(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_told() {
                return;
            }
            changed.await;
        }
    }

    pub(in crate::client) fn end(&self, outcome: Result<(), CallError>) {
        lock(&self.pending).end.get_or_insert(outcome);
        self.changed.notify_waiters();
    }

    /// Takes what comes next: a change, an error, or the end.
    pub(super) fn take(&self) -> Option<Option<Result<Change, CallError>>> {
        let mut pending = lock(&self.pending);
        if std::mem::take(&mut pending.tools) {
            return Some(Some(Ok(Change::Tools)));
        }
        if std::mem::take(&mut pending.prompts) {
            return Some(Some(Ok(Change::Prompts)));
        }
        if std::mem::take(&mut pending.resources) {
            return Some(Some(Ok(Change::Resources)));
        }
        if let Some(uri) = pending.uris.pop_first() {
            pending.bytes -= cost(&uri);
            return Some(Some(Ok(Change::Resource(uri))));
        }
        match pending.end.replace(Ok(())) {
            Some(Ok(())) => Some(None),
            Some(Err(error)) => Some(Some(Err(error))),
            None => {
                pending.end = None;
                None
            }
        }
    }
}

impl Pending {
    fn add(&mut self, uri: &str) {
        if self.uris.insert(uri.to_owned()) {
            self.bytes += cost(uri);
        }
    }
}

/// What it costs to remember a URI.
fn cost(uri: &str) -> usize {
    uri.len() + 64
}

/// All feeds of one client.
#[derive(Default)]
pub(in crate::client) struct Feeds(Mutex<Vec<Weak<Feed>>>);

impl Feeds {
    /// Records a change in every feed that wants it.
    pub(in crate::client) fn tell(&self, change: &Change) {
        for feed in self.all() {
            feed.tell(change);
        }
    }

    /// Ends all feeds.
    pub(in crate::client) fn end(&self) {
        for feed in self.all() {
            feed.end(Ok(()));
        }
    }

    pub(super) fn add(&self, feed: &Arc<Feed>) {
        let mut feeds = lock(&self.0);
        feeds.retain(|feed| feed.strong_count() > 0);
        feeds.push(Arc::downgrade(feed));
    }

    pub(super) fn all(&self) -> Vec<Arc<Feed>> {
        lock(&self.0).iter().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn wants(&self, uri: &str) -> bool {
        self.all().iter().any(|feed| feed.uris().iter().any(|wanted| wanted == uri))
    }
}
