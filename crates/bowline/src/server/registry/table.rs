//! A snapshot of everything that a server has.

use std::collections::HashMap;
use std::sync::Arc;

use bowline_proto::session::Topic;
use foldhash::fast::RandomState;

use super::offered::Offered;
use super::page::{CacheHints, Pages};
use crate::server::app;
use crate::server::error::BuildError;
use crate::server::extension::Decorators;
use crate::server::nest::Nest;
use crate::server::part::{Entries, Parts};
use crate::server::state::{Need, States};
use crate::server::{prompt, resource, tool};

/// Entries in the order they were added, found by name.
pub(crate) struct Table<E> {
    entries: Vec<Arc<E>>,
    /// Every call looks up a name. The names come from the author, so a fast hash is safe.
    places: HashMap<String, usize, RandomState>,
}

impl<E> Default for Table<E> {
    fn default() -> Self {
        Self { entries: Vec::new(), places: HashMap::default() }
    }
}

impl<E> Clone for Table<E> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), places: self.places.clone() }
    }
}

impl<E: Clone> Table<E> {
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<E>> {
        self.places.get(name).map(|place| &self.entries[*place])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<E>> {
        self.entries.iter()
    }

    fn insert(
        &mut self,
        kind: &'static str,
        name: &str,
        limit: usize,
        entry: E,
    ) -> Result<(), BuildError> {
        if self.places.contains_key(name) {
            return Err(BuildError::Duplicate { kind, name: name.to_owned() });
        }
        if self.entries.len() >= limit {
            return Err(BuildError::TooMany { kind, limit });
        }
        self.places.insert(name.to_owned(), self.entries.len());
        self.entries.push(Arc::new(entry));
        Ok(())
    }

    /// Keeps only the first entries.
    fn truncate(&mut self, length: usize) {
        self.entries.truncate(length);
        self.places.retain(|_, place| *place < length);
    }

    pub(super) fn remove(&mut self, name: &str) -> bool {
        let Some(removed) = self.places.remove(name) else { return false };
        self.entries.remove(removed);
        for place in self.places.values_mut().filter(|place| **place > removed) {
            *place -= 1;
        }
        true
    }

    /// Removes an entry if it is the caller's own.
    #[cfg(feature = "client")]
    fn remove_own(&mut self, name: &str, is_own: impl FnOnce(&E) -> bool) {
        if self.get(name).is_some_and(|entry| is_own(entry)) {
            self.remove(name);
        }
    }

    pub(super) fn modify(&mut self, name: &str, change: impl FnOnce(&mut E)) -> bool {
        let Some(place) = self.places.get(name) else { return false };
        change(Arc::make_mut(&mut self.entries[*place]));
        true
    }

    /// Whether both hold the identical entries in the same order.
    fn is_same(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self.entries.iter().zip(&other.entries).all(|(one, two)| Arc::ptr_eq(one, two))
    }
}

/// Everything that a server has at one moment.
#[derive(Default)]
pub(crate) struct Tables {
    pub(crate) tools: Table<tool::Entry>,
    pub(crate) prompts: Table<prompt::Entry>,
    pub(crate) resources: Table<resource::Entry>,
    pub(crate) templates: Table<resource::Entry>,
    pub(crate) pages: Pages,
    pub(crate) cache: CacheHints,
    pub(crate) limit: usize,
    pub(crate) page: usize,
    /// The kinds that have an entry, or once had one. A capability that was declared to a client
    /// must not disappear because a list is empty for a while.
    pub(crate) offered: Offered,
    /// Counts changes, so that outdated cursors are recognized.
    pub(crate) generation: u64,
    /// Whether any entry needs scopes.
    pub(crate) has_scopes: bool,
    /// Whether clients that do not show apps find none.
    pub(crate) hides_apps: bool,
    /// What handlers share. `None` until the server is built.
    pub(super) states: Option<Arc<States>>,
    /// What extensions do with definitions before they are listed.
    pub(super) decorators: Arc<Decorators>,
}

impl Tables {
    /// The kind and name of an entry that needs scopes.
    #[cfg(feature = "http")]
    pub(crate) fn first_with_scopes(&self) -> Option<(&'static str, String)> {
        let tool = self.tools.iter().find(|it| !it.scopes.is_empty());
        let prompt = self.prompts.iter().find(|it| !it.scopes.is_empty());
        let mut resources = self.resources.iter().chain(self.templates.iter());
        let resource = resources.find(|it| !it.scopes.is_empty());
        tool.map(|it| ("tool", it.definition.name.clone()))
            .or_else(|| prompt.map(|it| ("prompt", it.definition.name.clone())))
            .or_else(|| resource.map(|it| ("resource", it.definition.uri.clone())))
    }

    /// Whether any entry has a completer.
    pub(crate) fn completes(&self) -> bool {
        self.prompts.iter().any(|prompt| !prompt.completers.is_empty())
            || self.templates.iter().any(|template| !template.completers.is_empty())
    }

    /// A copy to change, without encoded pages.
    pub(super) fn next(&self) -> Self {
        Self {
            tools: self.tools.clone(),
            prompts: self.prompts.clone(),
            resources: self.resources.clone(),
            templates: self.templates.clone(),
            pages: Pages::default(),
            cache: self.cache,
            limit: self.limit,
            page: self.page,
            offered: self.offered,
            generation: self.generation + 1,
            has_scopes: self.has_scopes,
            hides_apps: self.hides_apps,
            states: self.states.clone(),
            decorators: Arc::clone(&self.decorators),
        }
    }

    /// Adds all parts or none, in the only snapshot there is. Returns which lists changed.
    pub(super) fn add_in_place(&mut self, parts: Parts) -> Result<Vec<Topic>, BuildError> {
        let (lengths, offered, has_scopes) = (self.lengths(), self.offered, self.has_scopes);
        if let Err(problem) = self.add(parts) {
            self.tools.truncate(lengths[0]);
            self.prompts.truncate(lengths[1]);
            self.resources.truncate(lengths[2]);
            self.templates.truncate(lengths[3]);
            (self.offered, self.has_scopes) = (offered, has_scopes);
            return Err(problem);
        }
        self.pages = Pages::default();
        self.generation += 1;
        let kinds = [Topic::Tools, Topic::Prompts, Topic::Resources, Topic::Resources];
        let grown = kinds.into_iter().zip(lengths.into_iter().zip(self.lengths()));
        let grown = grown.filter(|(_, (before, now))| before != now);
        let mut topics: Vec<_> = grown.map(|(kind, _)| kind).collect();
        topics.dedup();
        Ok(topics)
    }

    /// The numbers of tools, prompts, resources and templates.
    fn lengths(&self) -> [usize; 4] {
        let Self { tools, prompts, resources, templates, .. } = self;
        let [tools, prompts] = [tools.entries.len(), prompts.entries.len()];
        [tools, prompts, resources.entries.len(), templates.entries.len()]
    }

    pub(super) fn add(&mut self, parts: Parts) -> Result<(), BuildError> {
        if let Some(problem) = parts.problem {
            return Err(problem);
        }
        self.offered.extend(parts.offered);
        for tool in parts.tools {
            self.add_tool(tool.build()?)?;
        }
        for prompt in parts.prompts {
            self.add_prompt(prompt.build()?)?;
        }
        for resource in parts.resources {
            self.add_resource(resource.build()?)?;
        }
        parts.entries.tools.into_iter().try_for_each(|tool| self.add_tool(tool))?;
        parts.entries.prompts.into_iter().try_for_each(|prompt| self.add_prompt(prompt))?;
        parts.entries.resources.into_iter().try_for_each(|resource| self.add_resource(resource))?;
        // Before the server is built, the rest may follow.
        if self.states.is_some() { app::check_tools(self) } else { Ok(()) }
    }

    fn add_tool(&mut self, mut entry: tool::Entry) -> Result<(), BuildError> {
        let name = entry.definition.name.clone();
        self.check_needs("tool", &name, &entry.needs, &entry.nest)?;
        self.offered.tools = true;
        self.offered.apps |= entry.definition.ui().is_some_and(|it| it.resource_uri.is_some());
        if self.hides_apps {
            app::restrict_tool(&mut entry);
        }
        self.has_scopes |= !entry.scopes.is_empty();
        self.tools.insert("tool", &name, self.limit, entry)
    }

    fn add_prompt(&mut self, entry: prompt::Entry) -> Result<(), BuildError> {
        let name = entry.definition.name.clone();
        self.check_needs("prompt", &name, &entry.needs, &entry.nest)?;
        self.offered.prompts = true;
        self.has_scopes |= !entry.scopes.is_empty();
        self.prompts.insert("prompt", &name, self.limit, entry)
    }

    fn add_resource(&mut self, mut entry: resource::Entry) -> Result<(), BuildError> {
        let uri = entry.definition.uri.clone();
        self.check_needs("resource", &uri, &entry.needs, &entry.nest)?;
        self.offered.resources = true;
        self.offered.apps |= entry.definition.is_app();
        if self.hides_apps {
            app::restrict_resource(&mut entry);
        }
        self.has_scopes |= !entry.scopes.is_empty();
        match entry.template {
            Some(_) => self.templates.insert("resource template", &uri, self.limit, entry),
            None => self.resources.insert("resource", &uri, self.limit, entry),
        }
    }

    /// Removes entries that are in `old` and not in `new`, adds those that are only in `new`, and
    /// leaves entries of others alone. What cannot be added is left out, with the reason.
    #[cfg(feature = "client")]
    pub(super) fn renew(&mut self, old: &Entries, new: &Entries) -> Vec<BuildError> {
        let gone = old.tools.iter().filter(|it| !new.tools.iter().any(|new| new.is_same(it)));
        gone.for_each(|it| self.tools.remove_own(&it.definition.name, |own| own.is_same(it)));
        let gone = old.prompts.iter().filter(|it| !new.prompts.iter().any(|new| new.is_same(it)));
        gone.for_each(|it| self.prompts.remove_own(&it.definition.name, |own| own.is_same(it)));
        let gone =
            old.resources.iter().filter(|it| !new.resources.iter().any(|new| new.is_same(it)));
        for it in gone {
            self.resources.remove_own(&it.definition.uri, |own| own.is_same(it));
            self.templates.remove_own(&it.definition.uri, |own| own.is_same(it));
        }
        self.add_missing(new)
    }

    #[cfg(feature = "client")]
    fn add_missing(&mut self, new: &Entries) -> Vec<BuildError> {
        let mut problems = Vec::new();
        for it in &new.tools {
            if !self.tools.get(&it.definition.name).is_some_and(|own| own.is_same(it)) {
                problems.extend(self.add_tool(it.clone()).err());
            }
        }
        for it in &new.prompts {
            if !self.prompts.get(&it.definition.name).is_some_and(|own| own.is_same(it)) {
                problems.extend(self.add_prompt(it.clone()).err());
            }
        }
        for it in &new.resources {
            let table = if it.template.is_some() { &self.templates } else { &self.resources };
            if !table.get(&it.definition.uri).is_some_and(|own| own.is_same(it)) {
                problems.extend(self.add_resource(it.clone()).err());
            }
        }
        problems
    }

    /// Checks what may have been set after the entries were added.
    pub(super) fn check(&self) -> Result<(), BuildError> {
        let kinds = ["tool", "prompt", "resource", "resource template"];
        if let Some((kind, _)) =
            kinds.into_iter().zip(self.lengths()).find(|(_, size)| *size > self.limit)
        {
            return Err(BuildError::TooMany { kind, limit: self.limit });
        }
        for tool in self.tools.iter() {
            self.check_needs("tool", &tool.definition.name, &tool.needs, &tool.nest)?;
        }
        for prompt in self.prompts.iter() {
            self.check_needs("prompt", &prompt.definition.name, &prompt.needs, &prompt.nest)?;
        }
        for it in self.resources.iter().chain(self.templates.iter()) {
            self.check_needs("resource", &it.definition.uri, &it.needs, &it.nest)?;
        }
        app::check_tools(self)
    }

    /// Hides what only apps can use from clients that do not show any, now and later.
    pub(super) fn hide_apps(&mut self) {
        self.hides_apps = true;
        let tools = self.tools.entries.iter_mut().map(Arc::make_mut);
        tools.for_each(app::restrict_tool);
        let resources = self.resources.entries.iter_mut().chain(&mut self.templates.entries);
        resources.map(Arc::make_mut).for_each(app::restrict_resource);
    }

    /// Checks that there is all the state that an entry needs.
    fn check_needs(
        &self,
        kind: &'static str,
        name: &str,
        needs: &[Need],
        nest: &Nest,
    ) -> Result<(), BuildError> {
        let Some(states) = &self.states else { return Ok(()) };
        let is_met =
            |need: &&Need| states.has(need) || nest.homes().any(|home| home.states.has(need));
        match needs.iter().find(|need| !is_met(need)) {
            None => Ok(()),
            Some(Need { type_name, .. }) => {
                Err(BuildError::State { kind, name: name.to_owned(), type_name })
            }
        }
    }

    /// Removes whatever has the names of these parts.
    pub(super) fn remove_all(&mut self, parts: &Parts) {
        let Entries { tools, prompts, resources } = &parts.entries;
        let built = tools.iter().map(|it| &it.definition.name);
        for name in parts.tools.iter().map(|it| &it.definition.name).chain(built) {
            self.tools.remove(name);
        }
        let built = prompts.iter().map(|it| &it.definition.name);
        for name in parts.prompts.iter().map(|it| &it.definition.name).chain(built) {
            self.prompts.remove(name);
        }
        let built = resources.iter().map(|it| &it.definition.uri);
        for uri in parts.resources.iter().map(|it| &it.definition.uri).chain(built) {
            self.remove_resource(uri);
        }
    }

    /// A copy of all entries, for adding them to another server.
    pub(super) fn entries(&self) -> Entries {
        let resources = self.resources.iter().chain(self.templates.iter());
        Entries {
            tools: self.tools.iter().map(|it| it.as_ref().clone()).collect(),
            prompts: self.prompts.iter().map(|it| it.as_ref().clone()).collect(),
            resources: resources.map(|it| it.as_ref().clone()).collect(),
        }
    }

    pub(super) fn remove_resource(&mut self, uri: &str) -> bool {
        self.resources.remove(uri) || self.templates.remove(uri)
    }

    pub(super) fn modify_resource(
        &mut self,
        uri: &str,
        mut change: impl FnMut(&mut resource::Entry),
    ) -> bool {
        self.resources.modify(uri, &mut change) || self.templates.modify(uri, &mut change)
    }

    /// Which lists differ from those of `next`.
    pub(super) fn differences(&self, next: &Self) -> Vec<Topic> {
        let mut topics = Vec::new();
        if !self.tools.is_same(&next.tools) {
            topics.push(Topic::Tools);
        }
        if !self.prompts.is_same(&next.prompts) {
            topics.push(Topic::Prompts);
        }
        if !self.resources.is_same(&next.resources) || !self.templates.is_same(&next.templates) {
            topics.push(Topic::Resources);
        }
        topics
    }

    pub(super) fn has_same_settings(&self, next: &Self) -> bool {
        let settings = |it: &Self| {
            (it.limit, it.page, it.cache, it.offered, it.hides_apps, it.states.is_some())
        };
        settings(self) == settings(next)
    }
}
