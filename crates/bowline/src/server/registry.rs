//! The tools, prompts and resources of a server, alive: they can be changed while it runs.
//!
//! Readers take a snapshot and never wait for a writer's work. Every change makes a new snapshot
//! and tells whoever listens. Pages of lists are encoded once per revision and snapshot, however
//! many clients ask for them.

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

/// The tools, prompts and resources of a server, to be changed while it runs. Cheap to clone.
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
    /// What stands before the names that are spoken of.
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

    /// What there is now.
    pub(crate) fn tables(&self) -> Arc<Tables> {
        Arc::clone(&self.inner.tables.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The tool of a name, and whether tools are offered at all.
    pub(crate) fn tool(&self, name: &str) -> (Option<Arc<tool::Entry>>, bool) {
        let tables = self.inner.tables.read().unwrap_or_else(PoisonError::into_inner);
        (tables.tools.get(name).cloned(), tables.offered.tools)
    }

    /// Everything there is, to be added elsewhere.
    pub(crate) fn entries(&self) -> Entries {
        self.tables().entries()
    }

    /// Adds tools, prompts and resources. Either all or none.
    ///
    /// # Errors
    /// When one of them cannot be used, or its name is taken.
    pub fn add(&self, part: impl Part) -> Result<(), BuildError> {
        let parts = self.parts(part);
        let mut guard = self.write();
        // A server that is put together part by part must not copy all that it has each time.
        let Some(tables) = Arc::get_mut(&mut guard) else {
            drop(guard);
            return self.change(|tables| tables.add(parts));
        };
        let topics = tables.add_in_place(parts)?;
        drop(guard);
        self.publish(topics);
        Ok(())
    }

    /// Adds tools, prompts and resources in place of those with the same names.
    ///
    /// # Errors
    /// When one of them cannot be used.
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

    /// Changes the limits that hold for additions and pages.
    pub(crate) fn set_limits(&self, registry: usize, page: usize) {
        self.update(|tables| {
            tables.limit = registry;
            tables.page = page;
        });
    }

    /// Whether everything there is keeps to the limit.
    pub(crate) fn check_size(&self) -> Result<(), BuildError> {
        self.tables().check_size()
    }

    /// Offers all kinds of things, though there may be none yet.
    pub(crate) fn offer_all(&self) {
        self.update(|tables| {
            tables.offered = Offered { tools: true, prompts: true, resources: true };
        });
    }

    pub(crate) fn set_cache(&self, hints: CacheHints) {
        self.update(|tables| tables.cache = hints);
    }

    /// Takes a tool away. Says whether it was there.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.update(|tables| tables.tools.remove(&self.nest.name(name)))
    }

    /// Takes a prompt away. Says whether it was there.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.update(|tables| tables.prompts.remove(&self.nest.name(name)))
    }

    /// Takes a resource or family away, by its URI. Says whether it was there.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.update(|tables| tables.remove_resource(uri))
    }

    /// Shows a tool that was disabled. Says whether it is there.
    pub fn enable_tool(&self, name: &str) -> bool {
        let name = self.nest.name(name);
        self.update(|tables| tables.tools.modify(&name, |tool| tool.is_enabled = true))
    }

    /// Hides a tool: it is neither listed nor called. Says whether it is there.
    pub fn disable_tool(&self, name: &str) -> bool {
        let name = self.nest.name(name);
        self.update(|tables| tables.tools.modify(&name, |tool| tool.is_enabled = false))
    }

    /// Shows a prompt that was disabled. Says whether it is there.
    pub fn enable_prompt(&self, name: &str) -> bool {
        let name = self.nest.name(name);
        self.update(|tables| tables.prompts.modify(&name, |prompt| prompt.is_enabled = true))
    }

    /// Hides a prompt. Says whether it is there.
    pub fn disable_prompt(&self, name: &str) -> bool {
        let name = self.nest.name(name);
        self.update(|tables| tables.prompts.modify(&name, |prompt| prompt.is_enabled = false))
    }

    /// Shows a resource or family that was disabled. Says whether it is there.
    pub fn enable_resource(&self, uri: &str) -> bool {
        self.update(|tables| tables.modify_resource(uri, |resource| resource.is_enabled = true))
    }

    /// Hides a resource or family. Says whether it is there.
    pub fn disable_resource(&self, uri: &str) -> bool {
        self.update(|tables| tables.modify_resource(uri, |resource| resource.is_enabled = false))
    }

    /// Tells those who subscribed to a resource that it changed.
    pub fn resource_updated(&self, uri: &str) {
        self.bus().publish(&Topic::Resource(uri.into()));
    }

    /// The names of the tools that are enabled, in order, as clients know them.
    pub fn tool_names(&self) -> Vec<String> {
        let tables = self.tables();
        let enabled = tables.tools.iter().filter(|tool| tool.is_enabled);
        enabled.map(|tool| tool.definition.name.clone()).collect()
    }

    /// Changes the tables; all of it or nothing.
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
