//! Delivers changes to the clients that listen for them.
//!
//! A sink holds what is pending for one connection and coalesces it: a list that changed twice is
//! reported once, and nothing is ever dropped. Publishing never waits.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use bowline_proto::error::ErrorObject;
use bowline_proto::method::{Method, Subscribe, SubscriptionsListen};
use bowline_proto::session::{Subscription, Topic};
use bowline_proto::wire::Id;

use super::account::{Account, Reservation, Spent};
use super::fleet::{Change as Announced, Fleet};

/// Where changes are published.
#[derive(Default)]
pub(crate) struct Bus {
    sinks: Mutex<Vec<Weak<Sink>>>,
    /// The other processes of the server, if there are any.
    fleet: OnceLock<Arc<dyn Fleet>>,
}

impl Bus {
    pub(crate) fn attach(&self, account: Arc<Account>) -> Arc<Sink> {
        let sink = Arc::new(Sink::new(account));
        let mut sinks = lock(&self.sinks);
        if sinks.len() == sinks.capacity() {
            sinks.retain(|sink| sink.strong_count() > 0);
            // Doubling the capacity keeps the cleanup rare.
            let more = sinks.len();
            sinks.reserve(more);
        }
        sinks.push(Arc::downgrade(&sink));
        sink
    }

    /// Removes sinks whose connection has closed.
    #[cfg(feature = "http")]
    pub(crate) fn prune(&self) {
        let mut sinks = lock(&self.sinks);
        sinks.retain(|sink| sink.strong_count() > 0);
        sinks.shrink_to_fit();
    }

    /// Whether anybody listens for this.
    #[cfg(feature = "client")]
    pub(crate) fn is_heard(&self, topic: &Topic) -> bool {
        let sinks: Vec<_> = lock(&self.sinks).iter().filter_map(Weak::upgrade).collect();
        sinks.iter().any(|sink| sink.listens_for(topic))
    }

    /// Publishes the changes of this process to a fleet, too.
    pub(crate) fn join(&self, fleet: Arc<dyn Fleet>) {
        // There is only one.
        let _ = self.fleet.set(fleet);
    }

    /// Whether changes are published to a fleet, too.
    #[cfg(feature = "client")]
    pub(crate) fn is_shared(&self) -> bool {
        self.fleet.get().is_some()
    }

    /// The topics that somebody listens for, of those that are asked for, each once.
    pub(crate) fn listened(&self, is_wanted: impl Fn(&Topic) -> bool) -> HashSet<Topic> {
        let sinks: Vec<_> = lock(&self.sinks).iter().filter_map(Weak::upgrade).collect();
        let mut topics = HashSet::new();
        for sink in sinks {
            for listener in &*lock(&sink.listeners) {
                let granted = listener.subscription.granted();
                topics.extend(granted.filter(|topic| is_wanted(topic)).cloned());
            }
        }
        topics
    }

    /// Publishes a change to everybody who listens.
    pub(crate) fn publish(&self, topic: &Topic) {
        self.publish_here(topic);
        if let Some(fleet) = self.fleet.get() {
            fleet.announce(Announced::from(topic.clone()));
        }
    }

    /// Publishes a change to those who listen in this process.
    pub(crate) fn publish_here(&self, topic: &Topic) {
        let sinks: Vec<_> = lock(&self.sinks).iter().filter_map(Weak::upgrade).collect();
        for sink in sinks {
            sink.handle_change(topic);
        }
    }
}

/// What is pending for one connection.
pub(crate) struct Sink {
    listeners: Mutex<Vec<Listener>>,
    /// What the listeners hold; locked after them.
    reserved: Mutex<Reservation>,
    /// The task that polls for changes.
    reader: Mutex<Option<Waker>>,
}

struct Listener {
    /// The listen request; `None` is the legacy session itself.
    id: Option<Id>,
    subscription: Subscription,
}

impl Listener {
    fn bytes(&self) -> usize {
        let id = self.id.as_ref().and_then(Id::as_str).map_or(0, str::len);
        size_of::<Self>() + id + self.subscription.bytes()
    }
}

/// A change to report, to a listen request or to the session.
pub(crate) struct Change {
    pub(crate) listen: Option<Id>,
    pub(crate) topic: Topic,
}

impl Sink {
    fn new(account: Arc<Account>) -> Self {
        let reserved = Mutex::new(Reservation::new(account));
        Self { listeners: Mutex::default(), reserved, reader: Mutex::default() }
    }

    /// Adds a listen request, or the session.
    ///
    /// # Errors
    /// When there is no memory left for it.
    pub(crate) fn add(
        &self,
        id: Option<Id>,
        subscription: Subscription,
    ) -> Result<(), ErrorObject> {
        let mut listeners = lock(&self.listeners);
        if listeners.is_empty() {
            // A session never has more than one, and there are many sessions.
            listeners.reserve_exact(1);
        }
        listeners.push(Listener { id, subscription });
        self.recount(&listeners).map_err(|spent| {
            listeners.pop();
            ErrorObject::internal(format!("{}: {spent}", SubscriptionsListen::NAME))
        })
    }

    /// Subscribes the session to a resource. `None` if there is no session.
    ///
    /// # Errors
    /// When it exceeds the limits, or when there is no memory left for it.
    pub(crate) fn subscribe(&self, uri: &str) -> Option<Result<(), ErrorObject>> {
        let mut listeners = lock(&self.listeners);
        let at = listeners.iter().position(|listener| listener.id.is_none())?;
        if let Err(error) = listeners[at].subscription.subscribe(uri) {
            return Some(Err(error));
        }
        Some(self.recount(&listeners).map_err(|spent| {
            listeners[at].subscription.unsubscribe(uri);
            ErrorObject::internal(format!("{}: {spent}", Subscribe::NAME))
        }))
    }

    /// Holds as many bytes as the listeners have.
    fn recount(&self, listeners: &[Listener]) -> Result<(), Spent> {
        lock(&self.reserved).resize(listeners.iter().map(Listener::bytes).sum())
    }

    /// Ends a listen request. Returns whether there was one.
    pub(crate) fn remove(&self, id: &Id) -> bool {
        let mut listeners = lock(&self.listeners);
        let before = listeners.len();
        listeners.retain(|listener| listener.id.as_ref() != Some(id));
        // Less always fits.
        let _ = self.recount(&listeners);
        listeners.len() < before
    }

    /// Ends all listen requests and returns their ids.
    pub(crate) fn drain(&self) -> Vec<Id> {
        let mut listeners = lock(&self.listeners);
        let ids = listeners.iter().filter_map(|listener| listener.id.clone()).collect();
        listeners.clear();
        let _ = self.recount(&listeners);
        ids
    }

    /// Ends the subscription of the session itself.
    pub(crate) fn forget_session(&self) {
        lock(&self.listeners).retain(|listener| listener.id.is_some());
    }

    /// How many listen requests there are.
    pub(crate) fn listens(&self) -> usize {
        lock(&self.listeners).iter().filter(|listener| listener.id.is_some()).count()
    }

    /// Calls a function with the subscription of a listen request or of the session.
    pub(crate) fn with<T>(
        &self,
        id: Option<&Id>,
        work: impl FnOnce(&mut Subscription) -> T,
    ) -> Option<T> {
        let mut listeners = lock(&self.listeners);
        let listener = listeners.iter_mut().find(|listener| listener.id.as_ref() == id)?;
        let done = work(&mut listener.subscription);
        let _ = self.recount(&listeners);
        Some(done)
    }

    /// Releases changes that were held back until now.
    pub(crate) fn release(&self, id: Option<&Id>) {
        self.with(id, |subscription| {
            if subscription.release() {
                self.remind();
            }
        });
    }

    #[cfg(feature = "client")]
    fn listens_for(&self, topic: &Topic) -> bool {
        let listeners = lock(&self.listeners);
        listeners.iter().any(|it| it.subscription.granted().any(|granted| granted == topic))
    }

    fn handle_change(&self, topic: &Topic) {
        let mut listeners = lock(&self.listeners);
        // No short-circuit: every listener must see the change.
        let news = listeners
            .iter_mut()
            .map(|listener| listener.subscription.handle_change(topic))
            .fold(false, |one, two| one | two);
        if news {
            self.remind();
        }
    }

    /// Polls for the next change to report.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Change> {
        // Registered first, so that no change can slip through.
        match &mut *lock(&self.reader) {
            Some(reader) => reader.clone_from(cx.waker()),
            reader => *reader = Some(cx.waker().clone()),
        }
        match self.poll_change() {
            Some(change) => Poll::Ready(change),
            None => Poll::Pending,
        }
    }

    /// Wakes the task that polls for changes.
    fn remind(&self) {
        if let Some(reader) = lock(&self.reader).take() {
            reader.wake();
        }
    }

    /// The next change to report.
    fn poll_change(&self) -> Option<Change> {
        let mut listeners = lock(&self.listeners);
        listeners.iter_mut().find_map(|listener| {
            let topic = listener.subscription.poll_change()?;
            Some(Change { listen: listener.id.clone(), topic })
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
