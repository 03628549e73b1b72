//! What a peer subscribed to, and which changes are pending.
//!
//! A [`Subscription`] is one listener: a `subscriptions/listen` request (2026-07-28), or a legacy
//! session. Changes are coalesced and never dropped: a repeated change is reported once, so there
//! are never more pending changes than topics. Topics are reported in the order in which they
//! changed.
//!
//! A notification says that something changed, not how: the client fetches the new state, and so
//! does a server that must send the state along, such as that of a task.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::ErrorObject;

/// Something that can change. Cheap to clone, so that one change can go to many listeners.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// `notifications/tools/list_changed`.
    Tools,
    /// `notifications/prompts/list_changed`.
    Prompts,
    /// `notifications/resources/list_changed`.
    Resources,
    /// `notifications/resources/updated` of exactly this URI.
    Resource(Arc<str>),
    /// Something that an extension reports: a member of the listen request, and a name in it.
    Extension(Arc<str>, Arc<str>),
}

impl Topic {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Tools | Self::Prompts | Self::Resources => None,
            Self::Resource(name) | Self::Extension(_, name) => Some(name),
        }
    }

    /// Whether both are resources, or both are names that extensions report.
    fn is_named_like(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Resource(_), Self::Resource(_)) | (Self::Extension(..), Self::Extension(..))
        )
    }

    /// What it takes in a listener.
    fn bytes(&self) -> usize {
        self.name().map_or(0, str::len) + size_of::<(Self, State)>()
    }
}

/// The changes that the server's capabilities promise to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Promised {
    /// `tools.listChanged`.
    pub tools: bool,
    /// `prompts.listChanged`.
    pub prompts: bool,
    /// `resources.listChanged`.
    pub resources: bool,
    /// `resources.subscribe`.
    pub resource: bool,
    /// What extensions report.
    pub extension: bool,
}

impl Promised {
    /// Everything.
    pub const ALL: Self =
        Self { tools: true, prompts: true, resources: true, resource: true, extension: true };

    /// Whether it includes this topic.
    pub fn includes(self, topic: &Topic) -> bool {
        match topic {
            Topic::Tools => self.tools,
            Topic::Prompts => self.prompts,
            Topic::Resources => self.resources,
            Topic::Resource(_) => self.resource,
            Topic::Extension(..) => self.extension,
        }
    }
}

/// How much one listener may subscribe to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscriptionLimits {
    /// Resources, and names that extensions report, each. 1024 by default.
    pub names: usize,
    /// Bytes of one URI or name. 8192 by default.
    pub name_length: usize,
}

impl Default for SubscriptionLimits {
    fn default() -> Self {
        Self { names: 1024, name_length: 8192 }
    }
}

/// One listener.
///
/// **Invariant:** a topic is in `queue` once if it is marked as changed, else not at all.
#[derive(Debug, Clone)]
pub struct Subscription {
    phase: Phase,
    promised: Promised,
    limits: SubscriptionLimits,
    /// Sorted. A list, because most listeners have three topics and a tree node has room for
    /// eleven.
    topics: Vec<(Topic, State)>,
    queue: VecDeque<Topic>,
    /// What the topics take, so that following one more of many costs no more than the first.
    bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The acknowledgement of the listen request, or the end of the handshake. Changes accumulate.
    ExpectRelease,
    Open,
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Quiet,
    Changed,
}

impl Subscription {
    /// A listen request for those of the `wanted` topics that are promised.
    ///
    /// Register it with whatever publishes changes, then acknowledge [`Subscription::granted`],
    /// then [`Subscription::release`] it, so that nothing is missed and nothing comes too early.
    ///
    /// # Errors
    /// When it exceeds the limits.
    pub fn listen(
        promised: Promised,
        limits: SubscriptionLimits,
        wanted: impl IntoIterator<Item = Topic>,
    ) -> Result<Self, ErrorObject> {
        let mut subscription = Self {
            phase: Phase::ExpectRelease,
            promised,
            limits,
            topics: Vec::new(),
            queue: VecDeque::new(),
            bytes: 0,
        };
        for topic in wanted {
            subscription.add("subscriptions/listen", topic)?;
        }
        Ok(subscription)
    }

    /// A legacy session, which is subscribed to all promised lists, and later to the resources that
    /// it asks for. [`Subscription::release`] it after `notifications/initialized`.
    pub fn session(promised: Promised, limits: SubscriptionLimits) -> Self {
        let lists = [Topic::Tools, Topic::Prompts, Topic::Resources];
        Self::listen(promised, limits, lists).expect("lists have no names to exceed a limit")
    }

    /// Handles `resources/subscribe`. Repeating it has no effect.
    ///
    /// # Errors
    /// When the server does not promise it, or it exceeds the limits.
    pub fn subscribe(&mut self, uri: &str) -> Result<(), ErrorObject> {
        if !self.promised.resource {
            return Err(ErrorObject::method_not_found("resources/subscribe"));
        }
        self.add("resources/subscribe", Topic::Resource(uri.into()))
    }

    /// Handles `resources/unsubscribe`. A pending change of the resource is dropped.
    pub fn unsubscribe(&mut self, uri: &str) {
        let topic = Topic::Resource(uri.into());
        let Ok(at) = self.find(&topic) else { return };
        let (topic, state) = self.topics.remove(at);
        self.bytes -= topic.bytes();
        if state == State::Changed {
            self.queue.retain(|queued| *queued != topic);
        }
    }

    /// Follows something that a request of this session has started. Without effect if that is not
    /// promised, or exceeds the limits.
    pub fn follow(&mut self, topic: Topic) {
        let _ = self.add("tools/call", topic);
    }

    /// Revokes topics that were granted.
    pub fn revoke(&mut self, is_revoked: impl Fn(&Topic) -> bool) {
        self.topics.retain(|(topic, _)| !is_revoked(topic));
        self.queue.retain(|topic| !is_revoked(topic));
        self.bytes = self.granted().map(Topic::bytes).sum();
    }

    /// The bytes that it takes, roughly.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The topics that are granted, for the acknowledgement.
    pub fn granted(&self) -> impl Iterator<Item = &Topic> {
        self.topics.iter().map(|(topic, _)| topic)
    }

    /// Handles a change. Returns whether there is something new to report.
    pub fn handle_change(&mut self, topic: &Topic) -> bool {
        if self.phase == Phase::Closed {
            return false;
        }
        match self.find(topic) {
            Ok(at) if self.topics[at].1 == State::Quiet => {
                self.topics[at].1 = State::Changed;
                self.queue.push_back(topic.clone());
                self.phase == Phase::Open
            }
            _ => false,
        }
    }

    /// Releases changes, including earlier ones. Returns whether there are any.
    pub fn release(&mut self) -> bool {
        if self.phase == Phase::ExpectRelease {
            self.phase = Phase::Open;
        }
        self.phase == Phase::Open && !self.queue.is_empty()
    }

    /// Returns the next change to report.
    pub fn poll_change(&mut self) -> Option<Topic> {
        if self.phase != Phase::Open {
            return None;
        }
        let topic = self.queue.pop_front()?;
        if let Ok(at) = self.find(&topic) {
            self.topics[at].1 = State::Quiet;
        }
        if self.queue.is_empty() {
            // Listeners are nearly always idle.
            self.queue.shrink_to_fit();
        }
        Some(topic)
    }

    /// Ends the subscription. Nothing more is reported.
    pub fn close(&mut self) {
        self.phase = Phase::Closed;
        self.topics = Vec::new();
        self.queue = VecDeque::new();
        self.bytes = 0;
    }

    fn add(&mut self, method: &str, topic: Topic) -> Result<(), ErrorObject> {
        let Err(at) = self.find(&topic) else { return Ok(()) };
        if !self.promised.includes(&topic) {
            return Ok(());
        }
        if let Some(name) = topic.name() {
            let SubscriptionLimits { names, name_length } = self.limits;
            let taken = || self.granted().filter(|other| other.is_named_like(&topic));
            if name.len() > name_length {
                let message = format!("{method}: a name has more than {name_length} bytes");
                return Err(ErrorObject::invalid_params(message));
            }
            if self.topics.len() >= names && taken().count() >= names {
                let what = if matches!(topic, Topic::Resource(_)) { "resources" } else { "names" };
                let message = format!("{method}: more than {names} {what}");
                return Err(ErrorObject::invalid_params(message));
            }
        }
        self.bytes += topic.bytes();
        self.topics.insert(at, (topic, State::Quiet));
        Ok(())
    }

    /// The index of a topic, or where it would be inserted.
    fn find(&self, topic: &Topic) -> Result<usize, usize> {
        self.topics.binary_search_by(|(other, _)| other.cmp(topic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    fn resource(uri: &str) -> Topic {
        Topic::Resource(uri.into())
    }

    fn limits() -> SubscriptionLimits {
        SubscriptionLimits::default()
    }

    fn told(subscription: &mut Subscription) -> Vec<Topic> {
        std::iter::from_fn(|| subscription.poll_change()).collect()
    }

    #[test]
    fn only_what_is_wanted_and_promised_is_granted() {
        fn check(promised: Promised, wanted: &[Topic], granted: &[Topic]) {
            let listener = Subscription::listen(promised, limits(), wanted.to_vec()).unwrap();
            let found: Vec<Topic> = listener.granted().cloned().collect();
            assert_eq!(found, granted, "{promised:?}");
        }
        let task = Topic::Extension("taskIds".into(), "t".into());
        let all = [Topic::Tools, Topic::Prompts, Topic::Resources, resource("a:b"), task];
        let nothing = Promised::default();
        check(Promised::ALL, &all, &all);
        check(nothing, &all, &[]);
        check(Promised::ALL, &[], &[]);
        check(Promised { tools: true, ..nothing }, &all, &all[..1]);
        check(Promised { prompts: true, ..nothing }, &all, &all[1..2]);
        check(Promised { resources: true, ..nothing }, &all, &all[2..3]);
        check(Promised { resource: true, ..nothing }, &all, &all[3..4]);
        check(Promised { extension: true, ..nothing }, &all, &all[4..]);
        let twice = [resource("a:b"), Topic::Tools, resource("a:b")];
        check(Promised::ALL, &twice, &[Topic::Tools, resource("a:b")]);
    }

    #[test]
    fn nothing_is_told_before_the_release_and_nothing_is_lost() {
        let wanted = [Topic::Tools, resource("a:b")];
        let mut listener = Subscription::listen(Promised::ALL, limits(), wanted).unwrap();
        assert!(!listener.handle_change(&resource("a:b")));
        assert!(!listener.handle_change(&Topic::Tools));
        assert_eq!(listener.poll_change(), None);
        assert!(listener.release());
        assert_eq!(told(&mut listener), [resource("a:b"), Topic::Tools]);
        assert!(!listener.release());
    }

    #[test]
    fn changes_are_coalesced_and_keep_their_order() {
        let wanted = [Topic::Tools, resource("a:a"), resource("a:b")];
        let mut listener = Subscription::listen(Promised::ALL, limits(), wanted).unwrap();
        listener.release();
        assert!(listener.handle_change(&resource("a:b")));
        assert!(!listener.handle_change(&resource("a:b")));
        assert!(listener.handle_change(&Topic::Tools));
        assert!(!listener.handle_change(&Topic::Prompts));
        assert!(!listener.handle_change(&resource("a:c")));
        assert_eq!(listener.poll_change(), Some(resource("a:b")));
        // What changes without end does not keep the rest waiting.
        assert!(listener.handle_change(&resource("a:b")));
        assert_eq!(told(&mut listener), [Topic::Tools, resource("a:b")]);
    }

    #[test]
    fn a_session_hears_lists_unasked_and_resources_if_asked() {
        let mut session = Subscription::session(Promised::ALL, limits());
        session.release();
        assert!(!session.handle_change(&resource("a:b")));
        session.subscribe("a:b").unwrap();
        session.subscribe("a:b").unwrap();
        assert!(session.handle_change(&resource("a:b")));
        assert!(session.handle_change(&Topic::Prompts));
        session.unsubscribe("a:b");
        session.unsubscribe("a:c");
        assert_eq!(told(&mut session), [Topic::Prompts]);
        session.handle_change(&Topic::Tools);
        session.close();
        assert_eq!(session.poll_change(), None);
        assert!(!session.handle_change(&Topic::Tools) && !session.release());
        let mut silent = Subscription::session(Promised::default(), limits());
        let error = silent.subscribe("a:b").unwrap_err();
        assert_eq!(error.code, ErrorCode::METHOD_NOT_FOUND);
    }

    #[test]
    fn names_are_bounded() {
        let limits = SubscriptionLimits { names: 2, name_length: 3 };
        let mut session = Subscription::session(Promised::ALL, limits);
        session.subscribe("a:1").unwrap();
        session.subscribe("a:2").unwrap();
        session.subscribe("a:2").unwrap();
        let error = session.subscribe("a:3").unwrap_err();
        assert!(error.message.contains("more than 2"), "{error}");
        session.unsubscribe("a:1");
        session.subscribe("a:3").unwrap();
        session.unsubscribe("a:3");
        let error = session.subscribe("a:33").unwrap_err();
        assert!(error.message.contains("more than 3 bytes"), "{error}");
        let wanted = ["1", "2", "3"].map(resource);
        assert!(Subscription::listen(Promised::ALL, limits, wanted).is_err());
        // What a session follows takes nothing from the resources that it may subscribe to.
        let task = |name: &str| Topic::Extension("t".into(), name.into());
        let mut session = Subscription::session(Promised::ALL, limits);
        for name in ["1", "2", "3"] {
            session.follow(task(name));
        }
        session.subscribe("a:1").unwrap();
        session.subscribe("a:2").unwrap();
        let follows = |session: &Subscription, name| session.granted().any(|it| *it == task(name));
        assert_eq!((follows(&session, "2"), follows(&session, "3")), (true, false));
        session.revoke(|topic| *topic == task("1"));
        session.follow(task("3"));
        assert!(follows(&session, "3"));
    }
}
