//! The tools, prompts and resources of a server, which can change while it runs.
//!
//! Readers take a snapshot and never wait for a writer. Every change creates a new snapshot and
//! notifies the listeners. Each page of a list is encoded once per revision and snapshot, however
//! many clients ask for it.

mod offered;
mod page;
mod place;
mod set;
mod table;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockWriteGuard};

use bowline_proto::model;
use bowline_proto::session::Topic;

pub(crate) use self::offered::Offered;
pub(crate) use self::page::{CacheHints, IsThere, ListKind};
pub(crate) use self::place::Place;
pub(crate) use self::table::Tables;
use super::bus::Bus;
use super::error::BuildError;
use super::extension::Decorators;
use super::nest::Nest;
use super::part::{Entries, Live, Part, Parts};
use super::state::States;
use super::{resource, tool};

/// The tools, prompts and resources of a server, which can change while it runs. Cheap to clone.
///
/// It stays that of its server when the server becomes part of another one: names lack the prefix,
/// and what it adds gets the middleware and the state of its server.
///
/// ```
/// use bowline::{Server, Tool};
///
/// let server = Server::new("live", "1.0.0");
/// let registry = server.registry();
/// registry.add(Tool::new("late", || async { "better than never" }))?;
/// assert!(registry.remove_tool("late"));
/// # Ok::<(), bowline::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
    /// The prefixes of the names that callers leave out.
    nest: Nest,
}

struct Inner {
    tables: RwLock<Arc<Tables>>,
    /// Held while the tables change. Requests only ever wait for the moment of the exchange.
    changing: Mutex<()>,
    bus: Bus,
    /// Where the parts are now, once the server is nested in another one.
    outer: OnceLock<Registry>,
    /// Parts that change by themselves.
    live: Mutex<Vec<Live>>,
}

/// What must learn where parts were added.
struct Settling {
    nested: Vec<(Registry, Nest)>,
    live: Vec<Live>,
}

impl Settling {
    fn take(parts: &mut Parts) -> Self {
        Self { nested: std::mem::take(&mut parts.nested), live: std::mem::take(&mut parts.live) }
    }
}

impl Registry {
    pub(crate) fn new() -> Self {
        let tables = RwLock::new(Arc::new(Tables::default()));
        let (outer, live) = (OnceLock::new(), Mutex::default());
        let changing = Mutex::default();
        let inner = Inner { tables, changing, bus: Bus::default(), outer, live };
        Self { inner: Arc::new(inner), nest: Nest::default() }
    }

    /// The same, as seen from within a nested server.
    pub(crate) fn within(&self, nest: Nest) -> Self {
        Self { inner: Arc::clone(&self.inner), nest }
    }

    fn parts(&self, part: impl Part) -> Parts {
        let mut parts = Parts::default();
        parts.add(part);
        for step in self.nest.steps() {
            parts.take_out(step);
        }
        if let Some(extension) = parts.extensions.pop() {
            let reason = "a server that runs cannot be extended; help: add it with `Server::with`";
            let late = BuildError::Extension { id: extension.id, reason: reason.to_owned() };
            parts.problem.get_or_insert(late);
        }
        parts
    }

    /// The registry that the parts are in: that of the outermost server.
    fn current(&self) -> Self {
        let Some(outer) = self.inner.outer.get() else { return self.clone() };
        let nest = outer.nest.steps().iter().fold(self.nest.clone(), |nest, it| nest.within(it));
        outer.within(nest).current()
    }

    pub(crate) fn bus(&self) -> &Bus {
        &self.inner.bus
    }

    /// The current snapshot.
    pub(crate) fn tables(&self) -> Arc<Tables> {
        Arc::clone(&self.inner.tables.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The tool with this name, and whether tools are offered at all.
    pub(crate) fn tool(&self, name: &str) -> (Option<Arc<tool::Entry>>, bool) {
        let tables = self.inner.tables.read().unwrap_or_else(PoisonError::into_inner);
        (tables.tools.get(name).cloned(), tables.offered.tools)
    }

    /// A copy of all entries, for adding them to another server.
    pub(crate) fn entries(&self) -> Entries {
        self.tables().entries()
    }

    /// Adds tools, prompts and resources: all of them or none.
    ///
    /// # Errors
    /// When one of them is invalid, or its name is taken.
    pub fn add(&self, part: impl Part) -> Result<(), BuildError> {
        let this = self.current();
        let mut parts = this.parts(part);
        let settling = Settling::take(&mut parts);
        this.add_parts(parts)?;
        this.settle(settling);
        Ok(())
    }

    fn add_parts(&self, parts: Parts) -> Result<(), BuildError> {
        let changing = self.changing();
        let mut guard = self.write();
        // In place, so that a server built part by part does not copy everything each time.
        let Some(tables) = Arc::get_mut(&mut guard) else {
            drop((guard, changing));
            return self.change(|tables| tables.add(parts));
        };
        let topics = tables.add_in_place(parts)?;
        drop((guard, changing));
        self.publish(topics);
        Ok(())
    }

    /// Lets the registries of nested servers, and parts that change by themselves, change this one
    /// from now on.
    fn settle(&self, Settling { nested, live }: Settling) {
        for (registry, nest) in nested {
            // A server is consumed when it is nested, so this is the first time.
            let _ = registry.inner.outer.set(self.within(nest));
        }
        self.enliven(live);
    }

    /// Adds tools, prompts and resources, replacing those with the same names.
    ///
    /// # Errors
    /// When one of them is invalid.
    pub fn replace(&self, part: impl Part) -> Result<(), BuildError> {
        let this = self.current();
        let mut parts = this.parts(part);
        let settling = Settling::take(&mut parts);
        this.change(|tables| {
            tables.remove_all(&parts);
            tables.add(parts)
        })?;
        this.settle(settling);
        Ok(())
    }

    /// Sets the number of entries of a kind and the length of a page.
    pub(crate) fn set_limits(&self, registry: usize, page: usize) {
        self.update(|tables| {
            tables.limit = registry;
            tables.page = page;
        });
    }

    /// Checks the number of entries against the limit, and that there is all the state that they
    /// need; later additions are checked, too.
    pub(crate) fn check(
        &self,
        states: &Arc<States>,
        decorators: &Arc<Decorators>,
    ) -> Result<(), BuildError> {
        self.change(|tables| {
            tables.states = Some(Arc::clone(states));
            tables.decorators = Arc::clone(decorators);
            tables.check()
        })
    }

    /// Declares all capabilities, although there may be no entries yet.
    pub(crate) fn offer_all(&self) {
        self.update(|tables| {
            let apps = tables.offered.apps;
            tables.offered = Offered { tools: true, prompts: true, resources: true, apps };
        });
    }

    /// Hides what only apps can use from clients that do not show any.
    pub(crate) fn hide_apps(&self) {
        self.update(Tables::hide_apps);
    }

    pub(crate) fn set_cache(&self, hints: CacheHints) {
        self.update(|tables| tables.cache = hints);
    }

    /// Removes a tool. Returns whether it existed.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.edit(|tables, nest| tables.tools.remove(&nest.name(name)))
    }

    /// Removes a prompt. Returns whether it existed.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.edit(|tables, nest| tables.prompts.remove(&nest.name(name)))
    }

    /// Removes a resource or template by its URI. Returns whether it existed.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.edit(|tables, _| tables.remove_resource(uri))
    }

    /// Enables a tool. Returns whether it exists.
    pub fn enable_tool(&self, name: &str) -> bool {
        self.edit(|tables, nest| {
            tables.tools.modify(&nest.name(name), |tool| tool.is_enabled = true)
        })
    }

    /// Disables a tool: it is neither listed nor callable. Returns whether it exists.
    pub fn disable_tool(&self, name: &str) -> bool {
        self.edit(|tables, nest| {
            tables.tools.modify(&nest.name(name), |tool| tool.is_enabled = false)
        })
    }

    /// Enables a prompt. Returns whether it exists.
    pub fn enable_prompt(&self, name: &str) -> bool {
        self.edit(|tables, nest| {
            tables.prompts.modify(&nest.name(name), |prompt| prompt.is_enabled = true)
        })
    }

    /// Disables a prompt. Returns whether it exists.
    pub fn disable_prompt(&self, name: &str) -> bool {
        self.edit(|tables, nest| {
            tables.prompts.modify(&nest.name(name), |prompt| prompt.is_enabled = false)
        })
    }

    /// Enables a resource or template. Returns whether it exists.
    pub fn enable_resource(&self, uri: &str) -> bool {
        self.edit(|tables, _| tables.modify_resource(uri, |it| it.is_enabled = true))
    }

    /// Disables a resource or template. Returns whether it exists.
    pub fn disable_resource(&self, uri: &str) -> bool {
        self.edit(|tables, _| tables.modify_resource(uri, |it| it.is_enabled = false))
    }

    /// Notifies the subscribers of a resource that it changed.
    pub fn resource_updated(&self, uri: &str) {
        self.current().bus().publish(&Topic::Resource(uri.into()));
    }

    /// Reports that something has changed that an [extension](crate::Extension::topic) tells
    /// listening clients about.
    pub fn topic_changed(&self, member: &str, name: &str) {
        self.current().bus().publish(&Topic::Extension(member.into(), name.into()));
    }

    /// The names of the enabled tools, in order, with their prefixes.
    pub fn tool_names(&self) -> Vec<String> {
        let tables = self.current().tables();
        let enabled = tables.tools.iter().filter(|tool| tool.is_enabled);
        enabled.map(|tool| tool.definition.name.clone()).collect()
    }

    /// The definitions of the enabled tools, in order, with their prefixes.
    pub fn tools(&self) -> Vec<model::Tool> {
        let tables = self.current().tables();
        tables.tools.iter().filter(|it| it.is_enabled).map(|it| it.described()).collect()
    }

    /// The definitions of the enabled prompts, in order, with their prefixes.
    pub fn prompts(&self) -> Vec<model::Prompt> {
        let tables = self.current().tables();
        let enabled = tables.prompts.iter().filter(|it| it.is_enabled);
        enabled.map(|it| it.definition.clone()).collect()
    }

    /// The definitions of the enabled resources, in order.
    pub fn resources(&self) -> Vec<model::Resource> {
        let tables = self.current().tables();
        let enabled = tables.resources.iter().filter(|it| it.is_enabled);
        enabled.map(|it| it.definition.clone()).collect()
    }

    /// The definitions of the enabled resource templates, in order.
    pub fn resource_templates(&self) -> Vec<model::ResourceTemplate> {
        let tables = self.current().tables();
        let enabled = tables.templates.iter().filter(|it| it.is_enabled);
        enabled.map(|it| resource::Entry::template_definition(it)).collect()
    }

    /// Changes the tables, completely or not at all.
    fn change<E>(&self, change: impl FnOnce(&mut Tables) -> Result<(), E>) -> Result<(), E> {
        let topics = self.exchange(|now| {
            let mut next = now.next();
            change(&mut next)?;
            let topics = now.differences(&next);
            let is_same = topics.is_empty() && now.has_same_settings(&next);
            Ok((!is_same).then_some((next, topics)))
        })?;
        self.publish(topics);
        Ok(())
    }

    /// Replaces the tables with those that `make` makes, if any, and returns what differs.
    fn exchange<E>(
        &self,
        make: impl FnOnce(&Tables) -> Result<Option<(Tables, Vec<Topic>)>, E>,
    ) -> Result<Vec<Topic>, E> {
        let _changing = self.changing();
        let now = self.tables();
        let Some((next, topics)) = make(&now)? else { return Ok(Vec::new()) };
        *self.write() = Arc::new(next);
        Ok(topics)
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.inner.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Arc<Tables>> {
        self.inner.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, topics: Vec<Topic>) {
        for topic in topics {
            self.bus().publish(&topic);
        }
    }

    /// Changes what is there now; the names of callers lack the prefixes.
    fn edit<T>(&self, edit: impl FnOnce(&mut Tables, &Nest) -> T) -> T {
        let this = self.current();
        this.update(|tables| edit(tables, &this.nest))
    }

    fn update<T>(&self, update: impl FnOnce(&mut Tables) -> T) -> T {
        let mut value = None;
        let changed: Result<(), std::convert::Infallible> = self.change(|tables| {
            value = Some(update(tables));
            Ok(())
        });
        match (changed, value) {
            (Ok(()), Some(value)) => value,
            // `change` always runs what it is given.
            (Ok(()), None) => unreachable!("the update has run"),
        }
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("tools", &self.tool_names()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn requests_find_their_tools_while_others_change() {
        let registry = crate::Server::new("busy", "1.0.0").registry();
        registry.add(tool::Tool::new("old", || async { "old" })).unwrap();
        registry.update(|tables| {
            let (found, was_found) = mpsc::channel();
            let reader = registry.clone();
            std::thread::spawn(move || found.send(reader.tool("old").0.is_some()));
            assert_eq!(was_found.recv_timeout(Duration::from_secs(60)), Ok(true));
            tables.tools.modify("old", |tool| tool.is_enabled = false)
        });
        assert_eq!(registry.tool_names(), [] as [&str; 0]);
    }
}
