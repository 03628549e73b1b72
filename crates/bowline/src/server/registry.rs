//! The tools, prompts and resources of a server, which can change while it runs.
//!
//! Readers take a snapshot and never wait for a writer. Every change creates a new snapshot and
//! notifies the listeners. Each page of a list is encoded once per revision and snapshot, however
//! many clients ask for it.

mod page;
mod table;

use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use bowline_proto::session::Topic;

pub(crate) use self::page::{CacheHints, IsThere, ListKind};
use self::table::Offered;
pub(crate) use self::table::Tables;
use super::bus::Bus;
use super::error::BuildError;
use super::nest::Nest;
use super::part::{Entries, Part, Parts};
use super::tool;

/// The tools, prompts and resources of a server, which can change while it runs. Cheap to clone.
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
    bus: Bus,
}

impl Registry {
    pub(crate) fn new() -> Self {
        let tables = RwLock::new(Arc::new(Tables::default()));
        Self { inner: Arc::new(Inner { tables, bus: Bus::default() }), nest: Nest::default() }
    }

    /// The same, as seen from within a nested server.
    pub(crate) fn within(&self, nest: Nest) -> Self {
        Self { inner: Arc::clone(&self.inner), nest }
    }

    fn parts(&self, part: impl Part) -> Parts {
        let mut parts = Parts::default();
        parts.add(part);
        for prefix in self.nest.prefixes() {
            parts.prefix(prefix);
        }
        parts
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
        let parts = self.parts(part);
        let mut guard = self.write();
        // In place, so that a server built part by part does not copy everything each time.
        let Some(tables) = Arc::get_mut(&mut guard) else {
            drop(guard);
            return self.change(|tables| tables.add(parts));
        };
        let topics = tables.add_in_place(parts)?;
        drop(guard);
        self.publish(topics);
        Ok(())
    }

    /// Adds tools, prompts and resources, replacing those with the same names.
    ///
    /// # Errors
    /// When one of them is invalid.
    pub fn replace(&self, part: impl Part) -> Result<(), BuildError> {
        let parts = self.parts(part);
        self.change(|tables| {
            for tool in &parts.tools {
                tables.tools.remove(&tool.definition.name);
            }
            for prompt in &parts.prompts {
                tables.prompts.remove(&prompt.definition.name);
            }
            for resource in &parts.resources {
                tables.remove_resource(&resource.definition.uri);
            }
            tables.add(parts)
        })
    }

    /// Sets the number of entries of a kind and the length of a page.
    pub(crate) fn set_limits(&self, registry: usize, page: usize) {
        self.update(|tables| {
            tables.limit = registry;
            tables.page = page;
        });
    }

    /// Checks the number of entries against the limit.
    pub(crate) fn check_size(&self) -> Result<(), BuildError> {
        self.tables().check_size()
    }

    /// Declares all capabilities, although there may be no entries yet.
    pub(crate) fn offer_all(&self) {
        self.update(|tables| {
            tables.offered = Offered { tools: true, prompts: true, resources: true };
        });
    }

    pub(crate) fn set_cache(&self, hints: CacheHints) {
        self.update(|tables| tables.cache = hints);
    }

    /// Removes a tool. Returns whether it existed.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.update(|tables| tables.tools.remove(&self.nest.name(name)))
    }

    /// Removes a prompt. Returns whether it existed.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.update(|tables| tables.prompts.remove(&self.nest.name(name)))
    }

    /// Removes a resource or template by its URI. Returns whether it existed.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.update(|tables| tables.remove_resource(uri))
    }

    /// Enables a tool. Returns whether it exists.
    pub fn enable_tool(&self, name: &str) -> bool {
        let name = self.nest.name(name);
        self.update(|tables| tables.tools.modify(&name, |tool| tool.is_enabled = true))
    }

    /// Disables a tool: it is neither listed nor callable. Returns whether it exists.
    pub fn disable_tool(&self, name: &str) -> bool {
        let name = self.nest.name(name);
        self.update(|tables| tables.tools.modify(&name, |tool| tool.is_enabled = false))
    }

    /// Enables a prompt. Returns whether it exists.
    pub fn enable_prompt(&self, name: &str) -> bool {
        let name = self.nest.name(name);
        self.update(|tables| tables.prompts.modify(&name, |prompt| prompt.is_enabled = true))
    }

    /// Disables a prompt. Returns whether it exists.
    pub fn disable_prompt(&self, name: &str) -> bool {
        let name = self.nest.name(name);
        self.update(|tables| tables.prompts.modify(&name, |prompt| prompt.is_enabled = false))
    }

    /// Enables a resource or template. Returns whether it exists.
    pub fn enable_resource(&self, uri: &str) -> bool {
        self.update(|tables| tables.modify_resource(uri, |resource| resource.is_enabled = true))
    }

    /// Disables a resource or template. Returns whether it exists.
    pub fn disable_resource(&self, uri: &str) -> bool {
        self.update(|tables| tables.modify_resource(uri, |resource| resource.is_enabled = false))
    }

    /// Notifies the subscribers of a resource that it changed.
    pub fn resource_updated(&self, uri: &str) {
        self.bus().publish(&Topic::Resource(uri.into()));
    }

    /// The names of the enabled tools, in order, with their prefixes.
    pub fn tool_names(&self) -> Vec<String> {
        let tables = self.tables();
        let enabled = tables.tools.iter().filter(|tool| tool.is_enabled);
        enabled.map(|tool| tool.definition.name.clone()).collect()
    }

    /// Changes the tables, completely or not at all.
    fn change<E>(&self, change: impl FnOnce(&mut Tables) -> Result<(), E>) -> Result<(), E> {
        let mut guard = self.write();
        let mut next = guard.next();
        change(&mut next)?;
        let topics = guard.differences(&next);
        if topics.is_empty() && guard.has_same_settings(&next) {
            return Ok(());
        }
        *guard = Arc::new(next);
        drop(guard);
        self.publish(topics);
        Ok(())
    }

    fn write(&self) -> RwLockWriteGuard<'_, Arc<Tables>> {
        self.inner.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, topics: Vec<Topic>) {
        for topic in topics {
            self.bus().publish(&topic);
        }
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
