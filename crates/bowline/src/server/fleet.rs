//! Many processes of one server.
//!
//! A fleet is what several processes of the same server share, so that a client may talk to any of
//! them with each request: the keys of sealed tokens, the store of tasks, the state of legacy
//! sessions, and the news of changes. [`Server::fleet`](crate::Server::fleet) takes one; the crate
//! `bowline-fleet` has one on Postgres. Without a fleet, nothing here does anything.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};

use bowline_proto::session::Topic;
use tokio::sync::mpsc;

use super::Server;
use super::core::Core;
use super::extension::TASKS;
use super::tasks::{TaskStore, Tasks};
use crate::clock;
use crate::seal::KeyRing;

/// What a fleet returns.
pub type FleetFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What several processes of one server share.
///
/// Each process is a *node*. Its number is its name: it is used once, by one process.
pub trait Fleet: Send + Sync + 'static {
    /// Says which server this is, before anything else. Servers with other names have other tasks,
    /// sessions, keys and news, even where they share a store.
    fn belong_to(&self, server: &str);

    /// The number of this node: from 1 to [`Node::MAX`].
    fn node(&self) -> Node;

    /// The keys of all nodes.
    fn keys(&self) -> KeyRing;

    /// The tasks of all nodes, unless the server has others.
    fn tasks(&self) -> Tasks;

    /// Where the state of legacy sessions is kept.
    fn sessions(&self) -> Arc<dyn TaskStore>;

    /// Begins to report what other nodes do. Called once, when the server is built.
    fn start(&self, inbox: Inbox);

    /// Reports to all other nodes that something has changed here. Never waits.
    fn announce(&self, change: Change);

    /// Says where other nodes reach this one, once it listens: the origin of a URL. `None` if that
    /// is not known, because it listens on all addresses or within another framework.
    fn listens_at(&self, origin: Option<String>);

    /// Sends a letter to another node: a POST to [`PATH`] of its address.
    fn send(&self, to: Node, letter: String) -> FleetFuture<'_, Delivery>;

    /// Sends a letter to another node that is answered with a stream. `None` if it did not arrive.
    fn open(&self, to: Node, letter: String) -> FleetFuture<'_, Option<Opened>>;

    /// The other nodes that run now, as far as is known.
    fn others(&self) -> Vec<Node>;

    /// Whether this node can do its work now. Load balancers ask, at `/ready`.
    fn is_ready(&self) -> bool;

    /// Leaves the fleet.
    fn leave(&self) -> FleetFuture<'_, ()>;
}

/// What became of a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It was taken in.
    Arrived,
    /// The node has left for ever, and whatever waited there with it.
    Gone,
    /// The node cannot be reached now, or has not said where it is.
    Failed,
}

/// The answer of another node: its status, and its body as it comes. Dropping it ends both.
pub struct Opened {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: mpsc::Receiver<Vec<u8>>,
}

/// The path that nodes send letters to.
pub const PATH: &str = "/.well-known/bowline-fleet";

/// The number of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(u32);

impl Node {
    /// The largest number. It leaves room beside it in what JavaScript counts exactly.
    pub const MAX: u32 = (1 << 29) - 1;

    /// How many questions or streams of one session a node can number.
    #[cfg(feature = "http")]
    const SPAN: u64 = 1 << 24;

    /// The node with a number; `None` if it is out of range.
    pub fn new(number: u32) -> Option<Self> {
        (1..=Self::MAX).contains(&number).then_some(Self(number))
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The number before the first one that this node gives to a question or a stream. No other
    /// node gives the same.
    #[cfg(feature = "http")]
    pub(crate) fn base(self) -> u64 {
        u64::from(self.0) * Self::SPAN
    }

    /// The node that has given a number.
    #[cfg(feature = "http")]
    pub(crate) fn of(number: u64) -> Option<Self> {
        u32::try_from(number / Self::SPAN).ok().and_then(Self::new)
    }
}

/// Something that has changed, for all nodes to know: a list, a resource, a task, a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Change(What);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum What {
    Topic(Topic),
    /// The state of a legacy session, by its key.
    Session(String),
}

impl Change {
    /// The task that has changed, if it is one. A task has a version in its store, so news of it
    /// may get lost: see [`Inbox::watched_tasks`].
    pub fn task(&self) -> Option<&str> {
        match &self.0 {
            What::Topic(Topic::Extension(member, id)) if **member == *TASKS => Some(id),
            _ => None,
        }
    }

    /// A task that has changed.
    pub fn of_task(id: &str) -> Self {
        Self(What::Topic(Topic::Extension(TASKS.into(), id.into())))
    }

    pub(crate) fn of_session(key: &str) -> Self {
        Self(What::Session(key.to_owned()))
    }

    /// Reads what [`Display`](fmt::Display) has written.
    pub fn parse(text: &str) -> Option<Self> {
        let topic = match text.split_once(' ').unwrap_or((text, "")) {
            ("tools", _) => Topic::Tools,
            ("prompts", _) => Topic::Prompts,
            ("resources", _) => Topic::Resources,
            ("resource", uri) => Topic::Resource(uri.into()),
            ("extension", rest) => {
                let (member, name) = rest.split_once(' ')?;
                Topic::Extension(member.into(), name.into())
            }
            ("session", key) => return Some(Self::of_session(key)),
            _ => return None,
        };
        Some(Self(What::Topic(topic)))
    }
}

impl From<Topic> for Change {
    fn from(topic: Topic) -> Self {
        Self(What::Topic(topic))
    }
}

/// One line of text, as a key in a store.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            What::Topic(Topic::Tools) => f.write_str("tools"),
            What::Topic(Topic::Prompts) => f.write_str("prompts"),
            What::Topic(Topic::Resources) => f.write_str("resources"),
            What::Topic(Topic::Resource(uri)) => write!(f, "resource {uri}"),
            What::Topic(Topic::Extension(member, name)) => write!(f, "extension {member} {name}"),
            What::Session(key) => write!(f, "session {key}"),
        }
    }
}

/// What became of the leases of tasks in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TaskCounts {
    /// Handlers that run now.
    pub held: u64,
    /// How often a lease was renewed.
    pub renewed: u64,
    /// Handlers that were stopped because their lease was not renewed in time.
    pub lost: u64,
    /// Tasks that were taken over because nobody ran them any more.
    pub adopted: u64,
}

/// Where a fleet reports what other nodes do. Cheap to clone.
#[derive(Clone)]
pub struct Inbox(pub(super) Weak<Core>);

impl Inbox {
    /// Takes in a change of another node.
    pub async fn change(&self, change: &Change) {
        let Some(core) = self.0.upgrade() else { return };
        match &change.0 {
            What::Topic(topic) => match (change.task(), &core.tasks) {
                (Some(id), Some(tasks)) => tasks.handle_change(id).await,
                _ => core.registry.bus().publish_here(topic),
            },
            What::Session(key) => {
                if let Some(changed) = core.fleet.as_ref().and_then(|it| it.sessions.get()) {
                    changed(Some(key.clone())).await;
                }
            }
        }
    }

    /// Takes in that anything may have changed: news may have been missed. Everything that
    /// somebody listens for is reported, tasks and sessions are read again.
    pub async fn change_everything(&self) {
        let watched = self.watched_tasks();
        let Some(core) = self.0.upgrade() else { return };
        if let Some(tasks) = &core.tasks {
            for id in watched {
                tasks.handle_change(&id).await;
            }
        }
        let bus = core.registry.bus();
        for topic in bus
            .listened(|topic| !matches!(topic, Topic::Extension(member, _) if **member == *TASKS))
        {
            bus.publish_here(&topic);
        }
        if let Some(changed) = core.fleet.as_ref().and_then(|it| it.sessions.get()) {
            changed(None).await;
        }
    }

    /// The tasks that somebody waits for on this node. If the version of one of them changes, a
    /// fleet reports that, whether there was news of it or not.
    pub fn watched_tasks(&self) -> Vec<String> {
        let Some(core) = self.0.upgrade() else { return Vec::new() };
        let mut ids = core.tasks.as_ref().map(Tasks::watched).unwrap_or_default();
        let is_extension = |topic: &Topic| matches!(topic, Topic::Extension(..));
        let listened = core.registry.bus().listened(is_extension);
        let id = |topic| Change::from(topic).task().map(str::to_owned);
        ids.extend(listened.into_iter().filter_map(id));
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// What became of the leases of tasks in this process.
    pub fn task_counts(&self) -> TaskCounts {
        let core = self.0.upgrade();
        core.and_then(|core| core.tasks.as_ref().map(Tasks::counts)).unwrap_or_default()
    }

    /// Whether the server still exists.
    pub fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// Called with the key of a legacy session that has changed; `None` if any may have.
type SessionChanged = Box<dyn Fn(Option<String>) -> FleetFuture<'static, ()> + Send + Sync>;

/// The fleet of a server.
pub(crate) struct Joined {
    pub(crate) fleet: Arc<dyn Fleet>,
    /// Where the state of legacy sessions is kept.
    pub(crate) store: Arc<dyn TaskStore>,
    /// Set by the transport that has sessions.
    pub(crate) sessions: OnceLock<SessionChanged>,
}

impl Joined {
    pub(super) fn new(fleet: Arc<dyn Fleet>) -> Self {
        Self { store: fleet.sessions(), fleet, sessions: OnceLock::new() }
    }

    /// Milliseconds since 1970, by the clock of the fleet.
    pub(crate) fn now(&self) -> u64 {
        self.store.now().unwrap_or_else(clock::unix_millis)
    }
}

impl Server {
    /// Makes this process one of several that serve the same, behind any load balancer; see
    /// [`fleet`](crate::fleet). Keys and tasks are those of the fleet, unless they are set.
    pub fn fleet(mut self, fleet: impl Fleet) -> Self {
        self.fleet = Some(Arc::new(fleet));
        self
    }
}

/// Begins to exchange news with the fleet of a server, if it has one.
pub(super) fn join(core: &Arc<Core>) {
    if let Some(joined) = &core.fleet {
        core.registry.bus().join(Arc::clone(&joined.fleet));
        joined.fleet.start(Inbox(Arc::downgrade(core)));
    }
}
