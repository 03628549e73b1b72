//! The extensions of a server, put together.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bowline_proto::json::Extra;
use bowline_proto::method::{METHODS, Need};
use bowline_proto::model::{Settings, task_extension};
use bowline_proto::revision::Revision;
use tokio::task::JoinSet;

use super::super::caller::Profile;
use super::super::error::BuildError;
use super::super::middleware::Middleware;
use super::{Decorators, Extension, ExtensionMethod, ExtensionTopic, Span, Stop, TASKS};

/// The extensions of a server.
pub(crate) struct Extensions {
    /// What the server says about each of them.
    declared: Vec<Declared>,
    /// Capabilities that have their own names.
    pub(crate) capabilities: Extra,
    methods: Vec<ExtensionMethod>,
    pub(crate) topics: Arc<[ExtensionTopic]>,
    /// By the place of their extension among the declared ones.
    wraps: Vec<(usize, Arc<dyn Middleware>)>,
    pub(crate) decorators: Arc<Decorators>,
    stops: Vec<Stop>,
}

struct Declared {
    id: String,
    settings: Extra,
    revisions: Span,
}

impl Extensions {
    /// Puts them together.
    ///
    /// # Errors
    /// When two of them collide, or one is invalid.
    pub(crate) fn new(extensions: Vec<Extension>) -> Result<Self, BuildError> {
        let mut all = Self {
            declared: Vec::new(),
            capabilities: Extra::new(),
            methods: Vec::new(),
            topics: Arc::default(),
            wraps: Vec::new(),
            decorators: Arc::default(),
            stops: Vec::new(),
        };
        let (mut topics, mut decorators) = (Vec::new(), Decorators::default());
        for mut extension in extensions {
            let id = extension.id.clone();
            if all.declared.iter().any(|other| other.id == id) {
                return Err(BuildError::Duplicate { kind: "extension", name: id });
            }
            for topic in &extension.topics {
                check_topic(&topic.member, &topics, &id)
                    .map_err(|reason| BuildError::Extension { id: id.clone(), reason })?;
            }
            topics.append(&mut extension.topics);
            decorators.append(&mut extension.decorators);
            all.add(extension).map_err(|reason| BuildError::Extension { id, reason })?;
        }
        (all.topics, all.decorators) = (topics.into(), Arc::new(decorators));
        Ok(all)
    }

    /// Adds one that no other has the id of, or says why it cannot be added.
    fn add(&mut self, extension: Extension) -> Result<(), String> {
        let Extension { id, settings, revisions, capabilities, methods, .. } = extension;
        check_id(&id)?;
        self.wraps.extend(extension.wrap.map(|wrap| (self.declared.len(), wrap)));
        self.stops.extend(extension.stop);
        for (name, value) in capabilities {
            check_capability(&name)?;
            if self.capabilities.insert(name.clone(), value).is_some() {
                return Err(format!("another extension declares the capability {name:?}"));
            }
        }
        let mut taken: HashSet<(&str, Revision)> = HashSet::new();
        for method in &self.methods {
            taken.extend(method.all_revisions().map(|revision| (method.name, revision)));
        }
        for method in &methods {
            method.check_name(&id)?;
            let mut revisions = method.all_revisions();
            if let Some(revision) = revisions.find(|it| !taken.insert((method.name, *it))) {
                let name = method.name;
                return Err(format!("another handler has the method {name:?} in {revision}"));
            }
        }
        self.methods.extend(methods);
        self.declared.push(Declared { id, settings, revisions });
        Ok(())
    }

    /// What a server declares in a revision; `None` if there is nothing.
    pub(crate) fn declared(&self, revision: Revision) -> Option<Settings> {
        let mut settings = Settings::new();
        for it in self.declared.iter().filter(|it| it.revisions.contains(revision)) {
            settings.insert(it.id.clone(), it.settings.clone());
        }
        (!settings.is_empty()).then_some(settings)
    }

    pub(crate) fn has_wraps(&self) -> bool {
        !self.wraps.is_empty()
    }

    /// What runs around the calls of a client.
    pub(crate) fn wraps(&self, caller: &Profile) -> Vec<Arc<dyn Middleware>> {
        let wraps = self.wraps.iter().filter(|(place, _)| {
            let Declared { id, revisions, .. } = &self.declared[*place];
            revisions.contains(caller.revision) && caller.capabilities.has_extension(id)
        });
        wraps.map(|(_, wrap)| Arc::clone(wrap)).collect()
    }

    /// Ends what they do in the background.
    pub(crate) async fn stop(&self, grace: Duration) {
        let mut stopping = JoinSet::new();
        for stop in &self.stops {
            stopping.spawn(stop(grace));
        }
        stopping.join_all().await;
    }

    /// The method of this name in a revision.
    pub(crate) fn method(&self, name: &str, revision: Revision) -> Option<&ExtensionMethod> {
        self.methods.iter().find(|it| it.name == name && it.holds_in(revision))
    }
}

impl ExtensionMethod {
    fn all_revisions(&self) -> impl Iterator<Item = Revision> + use<> {
        let revisions = self.revisions;
        Revision::ALL.into_iter().filter(move |it| revisions.contains(*it))
    }

    /// An extension cannot replace what the protocol itself defines.
    fn check_name(&self, id: &str) -> Result<(), String> {
        let is_core = METHODS.iter().any(|row| {
            row.name == self.name
                && !is_part_of(row.needs, id)
                && Revision::ALL.into_iter().any(|it| row.holds_in(it) && self.holds_in(it))
        });
        if is_core {
            return Err(format!("the protocol itself has a method {:?}", self.name));
        }
        Ok(())
    }
}

/// Whether the protocol leaves a method to an extension. Tasks were a part of the protocol itself
/// before they became one.
fn is_part_of(need: Need, id: &str) -> bool {
    match need {
        Need::Extension(owner) => owner == id,
        Need::Tasks | Need::TaskList | Need::TaskCancel => id == task_extension::ID,
        _ => false,
    }
}

/// Whether an extension may have this id.
#[cfg(feature = "client")]
pub(crate) fn is_extension_id(id: &str) -> bool {
    check_id(id).is_ok()
}

/// 2026-07-28, basic/index: a prefix of labels, then a name.
fn check_id(id: &str) -> Result<(), &'static str> {
    let is_word = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it))
    };
    match id.split_once('/') {
        Some((prefix, name)) if is_word(prefix) && is_word(name) => Ok(()),
        _ => Err("an id is a prefix and a name, as in com.example/groups"),
    }
}

/// A member of `subscriptions/listen` belongs to one topic, or to the protocol itself.
fn check_topic(member: &str, others: &[ExtensionTopic], id: &str) -> Result<(), String> {
    let known = [
        "toolsListChanged",
        "promptsListChanged",
        "resourcesListChanged",
        "resourceSubscriptions",
        TASKS,
    ];
    let is_of_tasks = member == TASKS && id == task_extension::ID;
    if known.contains(&member) && !is_of_tasks {
        return Err(format!("the protocol itself has a topic {member:?}"));
    }
    match others.iter().any(|it| *it.member == *member) {
        true => Err(format!("another extension has the topic {member:?}")),
        false => Ok(()),
    }
}

/// Capabilities of the protocol itself are not for extensions.
fn check_capability(name: &str) -> Result<(), String> {
    let known = [
        "experimental",
        "logging",
        "completions",
        "prompts",
        "resources",
        "tools",
        "tasks",
        "extensions",
    ];
    match known.contains(&name) {
        true => Err(format!("the protocol itself has a capability {name:?}")),
        false => Ok(()),
    }
}
