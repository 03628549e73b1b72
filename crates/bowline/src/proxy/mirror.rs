//! What the upstream server has, kept up to date wherever it was added.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::entries;
use super::losses::Loss;
use super::subscribed::{MOST, Subscribed, follow as follow_resource};
use super::upstream::{Upstream, lock};
use crate::client::{CallError, Changes, Client, Peer, Phase, StateWatch, Wanted};
use crate::server::{Entries, LivePart, Place, ResourceEntry};
use crate::uri_template::Match;

/// What an upstream server has. The servers that it was added to keep it alive; handlers do not.
pub(super) struct Mirror {
    pub(super) upstream: Arc<Upstream>,
    state: Mutex<State>,
    /// Counts how often the lists were read again.
    pub(super) version: watch::Sender<u64>,
    /// Whether every URI is one of the server's.
    takes_any_uri: AtomicBool,
    /// Somebody wants the lists to be read again.
    refresh: Arc<Notify>,
}

#[derive(Default)]
struct State {
    entries: Arc<Entries>,
    left_out: entries::LeftOut,
    places: Vec<Place>,
    /// Where changes of resources are announced, and nothing else.
    watching: Vec<Place>,
    /// Resources that the proxy is subscribed to.
    subscribed: Subscribed,
    /// What follows the lists.
    task: Option<AbortHandle>,
}

impl State {
    /// Whether anybody listens for changes of a resource, as far as this process knows.
    fn hears(&self, uri: &str) -> bool {
        self.places.iter().chain(&self.watching).any(|place| place.hears(uri))
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        lock(&self.state).task.iter().for_each(AbortHandle::abort);
    }
}

impl Mirror {
    /// Lists what the server has, and follows its changes from here on.
    pub(super) async fn open(upstream: Arc<Upstream>) -> Result<Arc<Self>, CallError> {
        // Subscribed first, so that no change is missed. Not every server reports changes.
        let changes = upstream.client.changes(Wanted::all_lists()).await;
        let changes = changes.inspect_err(|error| {
            tracing::debug!(%error, "the upstream server reports no changes of its lists");
        });
        let news = News::new(changes.ok(), &upstream.client);
        let mut left_out = entries::LeftOut::default();
        let from = (&Entries::default(), &mut left_out);
        let listed = entries::list(&upstream, from, entries::Lists::ALL).await?;
        let state = State { entries: Arc::new(listed), left_out, ..State::default() };
        let mirror = Arc::new(Self {
            upstream,
            state: Mutex::new(state),
            version: watch::Sender::new(0),
            takes_any_uri: AtomicBool::new(false),
            refresh: Arc::clone(&news.refresh),
        });
        let task = tokio::spawn(follow(Arc::downgrade(&mirror), news));
        lock(&mirror.state).task = Some(task.abort_handle());
        Ok(mirror)
    }

    /// What the server has.
    pub(super) fn entries(&self) -> Arc<Entries> {
        Arc::clone(&lock(&self.state).entries)
    }

    /// What it lists and nobody can be served, and why.
    pub(super) fn left_out(&self) -> Vec<String> {
        lock(&self.state).left_out.all().cloned().collect()
    }

    pub(super) fn refresh(&self) {
        self.refresh.notify_one();
    }

    /// Lists again, and updates every place. Returns whether that worked.
    async fn update(&self, lists: entries::Lists) -> bool {
        let old = self.entries();
        let mut left_out = lock(&self.state).left_out.clone();
        match entries::list(&self.upstream, (&old, &mut left_out), lists).await {
            Ok(new) => {
                let new = Arc::new(new);
                let mut state = lock(&self.state);
                state.left_out = left_out;
                state.entries = Arc::clone(&new);
                state.places.retain(|place| !place.is_gone());
                let places = state.places.clone();
                drop(state);
                places.iter().for_each(|place| self.renew(place, &old, &new));
                self.version.send_modify(|version| *version += 1);
                true
            }
            Err(error) => {
                tracing::warn!(upstream = self.upstream.name, %error, "lists are not up to date");
                false
            }
        }
    }

    fn renew(&self, place: &Place, old: &Entries, new: &Entries) {
        for problem in place.renew(old, new) {
            tracing::warn!(upstream = self.upstream.name, %problem, "left out");
        }
    }

    /// Subscribes to every URI that somebody wants, because the server is the only one.
    pub(super) fn take_any_uri(&self) {
        self.takes_any_uri.store(true, Ordering::Relaxed);
    }

    fn has_resource(&self, uri: &str) -> bool {
        let is_it = |it: &ResourceEntry| match &it.template {
            Some(template) => template.matches(uri) != Match::Different,
            None => it.definition.uri == uri,
        };
        self.takes_any_uri.load(Ordering::Relaxed) || self.entries().resources.iter().any(is_it)
    }

    fn subscribe_to(self: &Arc<Self>, uri: &str) {
        if !self.has_resource(uri) {
            return;
        }
        let mut state = lock(&self.state);
        if state.subscribed.has(uri) {
            return;
        }
        if state.subscribed.is_full() {
            let mut subscribed = std::mem::take(&mut state.subscribed);
            subscribed.retain(|uri| state.hears(uri));
            state.subscribed = subscribed;
        }
        if state.subscribed.is_full() {
            drop(state);
            self.upstream.pool.losses().add(Loss::Subscription);
            let upstream = &self.upstream.name;
            return tracing::warn!(upstream, uri, "more than {MOST} resources are subscribed to");
        }
        let task = tokio::spawn(follow_resource(Arc::downgrade(self), uri.to_owned()));
        state.subscribed.add(uri, task.abort_handle());
    }

    /// Ends the subscription to a resource if nobody listens. Returns whether it has ended.
    pub(super) fn forget_unheard(&self, uri: &str) -> bool {
        let mut state = lock(&self.state);
        let is_unheard = !state.hears(uri);
        if is_unheard {
            state.subscribed.forget(uri);
        }
        is_unheard
    }

    /// Whether a fleet serves what the proxy was added to.
    pub(super) fn is_shared(&self) -> bool {
        let state = lock(&self.state);
        state.places.iter().chain(&state.watching).any(Place::is_shared)
    }

    /// A resource changed.
    pub(super) fn resource_updated(&self, uri: &str) {
        let state = lock(&self.state);
        let places: Vec<Place> = state.places.iter().chain(&state.watching).cloned().collect();
        drop(state);
        places.iter().for_each(|place| place.resource_updated(uri));
    }
}

/// A proxy that was added to a server, with what it had then.
pub(super) struct Added {
    pub(super) mirror: Arc<Mirror>,
    pub(super) entries: Arc<Entries>,
}

impl LivePart for Added {
    fn added_to(&self, place: Place) {
        let mut state = lock(&self.mirror.state);
        state.places.push(place.clone());
        let now = Arc::clone(&state.entries);
        drop(state);
        // It may have changed in between, or since it was added to the server that is nested now.
        self.mirror.renew(&place, &self.entries, &now);
    }

    fn subscribed(&self, uri: &str) {
        self.mirror.subscribe_to(uri);
    }
}

/// A proxy whose parts somebody else has put together: only changes of resources pass by
/// themselves.
pub(super) struct Watched(pub(super) Arc<Mirror>);

impl LivePart for Watched {
    fn added_to(&self, place: Place) {
        let mut state = lock(&self.0.state);
        state.watching.retain(|it| !it.is_gone() && !it.is_same(&place));
        state.watching.push(place);
    }

    fn subscribed(&self, uri: &str) {
        self.0.subscribe_to(uri);
    }
}

/// How often the lists of a server are read again that does not report changes.
const LOOK: Duration = Duration::from_secs(300);

/// The gaps between attempts to read lists: they double from the first to the last, as long as
/// changes come or attempts fail in quick succession.
const GAPS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(30)];

/// After how long without an attempt the next one is the first again.
const CALM: Duration = Duration::from_secs(60);

/// What says that the lists must be read again.
struct News {
    changes: Option<Changes>,
    watch: StateWatch,
    generation: u64,
    refresh: Arc<Notify>,
    /// Whether the server reports every change.
    is_told: bool,
}

impl News {
    fn new(changes: Option<Changes>, client: &Client) -> Self {
        let watch = client.watch();
        let generation = watch.state().generation;
        let told = changes.as_ref().zip(client.peer());
        let is_told = told.is_some_and(|(changes, peer)| reports_all(changes, &peer));
        Self { changes, watch, generation, refresh: Arc::default(), is_told }
    }

    /// Waits for the next lists that may have changed; `None` at the end of the connection.
    async fn next(&mut self) -> Option<entries::Lists> {
        loop {
            let next = async {
                match &mut self.changes {
                    Some(changes) => changes.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                change = next => match change {
                    Some(Ok(change)) => return Some(entries::Lists::of(&change)),
                    _ => {
                        self.changes = None;
                        self.is_told = false;
                    }
                },
                state = self.watch.changed() => {
                    let state = state.filter(|state| state.phase != Phase::Closed)?;
                    if state.phase == Phase::Ready && state.generation != self.generation {
                        self.generation = state.generation;
                        return Some(entries::Lists::ALL);
                    }
                }
                () = self.refresh.notified() => return Some(entries::Lists::ALL),
                () = tokio::time::sleep(LOOK), if !self.is_told => {
                    return Some(entries::Lists::ALL);
                }
            }
        }
    }
}

/// Whether a server reports the changes of every list that it has.
fn reports_all(changes: &Changes, peer: &Peer) -> bool {
    let (granted, has) = (changes.granted(), &peer.capabilities);
    (has.tools.is_none() || granted.tools_list_changed == Some(true))
        && (has.prompts.is_none() || granted.prompts_list_changed == Some(true))
        && (has.resources.is_none() || granted.resources_list_changed == Some(true))
}

/// When lists are read again: at once, and less and less often where that never ends.
struct Pace {
    last: Option<Instant>,
    gap: Duration,
}

impl Pace {
    /// When the next attempt may begin.
    fn next(&mut self) -> Instant {
        let now = Instant::now();
        let Some(last) = self.last.filter(|last| now - *last < CALM) else {
            self.gap = Duration::ZERO;
            return now;
        };
        self.gap = (2 * self.gap).clamp(GAPS[0], GAPS[1]);
        now.max(last + self.gap)
    }
}

/// Reads the lists again whenever they may have changed, until it works.
async fn follow(mirror: Weak<Mirror>, mut news: News) {
    let mut pace = Pace { last: None, gap: Duration::ZERO };
    let mut due = entries::Lists::NONE;
    let mut at = Instant::now();
    loop {
        let is_due = !due.is_none();
        tokio::select! {
            more = news.next() => {
                let Some(more) = more else { return };
                if !is_due && !more.is_none() {
                    at = pace.next();
                }
                due = due.and(more);
                continue;
            }
            () = tokio::time::sleep_until(at), if is_due => {}
        }
        let Some(mirror) = mirror.upgrade() else { return };
        let lists = std::mem::replace(&mut due, entries::Lists::NONE);
        let is_done = mirror.update(lists).await;
        pace.last = Some(Instant::now());
        if !is_done {
            due = lists;
            at = pace.next();
        }
    }
}
