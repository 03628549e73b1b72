//! Pages of lists, each encoded once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_proto::error::ErrorObject;
use bowline_proto::method::{ListPrompts, ListResourceTemplates, ListResources, ListTools, Method};
use bowline_proto::model::{
    CacheScope, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult,
};
use bowline_proto::revision::{Adapt, Revision};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::table::{Table, Tables};
use crate::server::caller::Asker;
use crate::server::nest::Nest;
use crate::server::scopes::Scopes;
use crate::server::tool::Visible;
use crate::server::{prompt, resource, tool};

/// How long lists may be cached, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CacheHints {
    pub(crate) ttl: Duration,
    pub(crate) scope: CacheScope,
}

impl CacheHints {
    fn millis(self) -> Option<u64> {
        u64::try_from(self.ttl.as_millis()).ok()
    }
}

/// Which list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl ListKind {
    pub(crate) fn of(method: &str) -> Option<Self> {
        match method {
            ListTools::NAME => Some(Self::Tools),
            ListPrompts::NAME => Some(Self::Prompts),
            ListResources::NAME => Some(Self::Resources),
            ListResourceTemplates::NAME => Some(Self::Templates),
            _ => None,
        }
    }

    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Tools => ListTools::NAME,
            Self::Prompts => ListPrompts::NAME,
            Self::Resources => ListResources::NAME,
            Self::Templates => ListResourceTemplates::NAME,
        }
    }
}

/// Pages that have been encoded.
#[derive(Default)]
pub(crate) struct Pages(Mutex<HashMap<(ListKind, Revision, usize), Arc<RawValue>>>);

/// Which page, in which revision.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    kind: ListKind,
    start: usize,
    asker: Asker<'a>,
}

impl Tables {
    /// A page of a list, for this caller.
    ///
    /// # Errors
    /// When the cursor does not belong to this list.
    pub(crate) fn list(
        &self,
        kind: ListKind,
        asker: Asker<'_>,
        cursor: Option<&str>,
    ) -> Result<Arc<RawValue>, ErrorObject> {
        let start = match cursor {
            Some(cursor) => self.read_cursor(kind, cursor)?,
            None => 0,
        };
        if self.has_rules(kind) {
            return self.encode(kind, asker, start);
        }
        let key = (kind, asker.peer.profile.revision, start);
        let found = self.pages.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(page) = found {
            return Ok(page);
        }
        let page = self.encode(kind, asker, start)?;
        let mut pages = self.pages.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(pages.entry(key).or_insert(page)))
    }

    /// Whether the list depends on the caller.
    fn has_rules(&self, kind: ListKind) -> bool {
        match kind {
            ListKind::Tools => self.tools.iter().any(|it| it.visible.is_some()),
            ListKind::Prompts => self.prompts.iter().any(|it| it.visible.is_some()),
            ListKind::Resources => self.resources.iter().any(|it| it.visible.is_some()),
            ListKind::Templates => self.templates.iter().any(|it| it.visible.is_some()),
        }
    }

    fn encode(
        &self,
        kind: ListKind,
        asker: Asker<'_>,
        start: usize,
    ) -> Result<Arc<RawValue>, ErrorObject> {
        let ttl_ms = self.cache.millis();
        // A list that differs by caller must not be shared between callers.
        let scope = if self.has_rules(kind) { CacheScope::Private } else { self.cache.scope };
        let cache_scope = Some(scope);
        let to = asker.peer.profile.revision;
        let wanted = Wanted { kind, start, asker };
        let change = &self.decorators;
        match kind {
            ListKind::Tools => {
                let define = |it: &tool::Entry| change.decorate(it.described(), to);
                let (tools, next_cursor) = self.page(wanted, &self.tools, define);
                let rest = ListToolsResult::default();
                written(to, ListToolsResult { tools, next_cursor, ttl_ms, cache_scope, ..rest })
            }
            ListKind::Prompts => {
                let define = |it: &prompt::Entry| change.decorate(it.definition.clone(), to);
                let (prompts, next_cursor) = self.page(wanted, &self.prompts, define);
                let rest = ListPromptsResult::default();
                written(to, ListPromptsResult { prompts, next_cursor, ttl_ms, cache_scope, ..rest })
            }
            ListKind::Resources => {
                let define = |it: &resource::Entry| change.decorate(it.definition.clone(), to);
                let (resources, next_cursor) = self.page(wanted, &self.resources, define);
                let rest = ListResourcesResult { ttl_ms, cache_scope, ..Default::default() };
                written(to, ListResourcesResult { resources, next_cursor, ..rest })
            }
            ListKind::Templates => {
                let define = |it: &resource::Entry| change.decorate(it.template_definition(), to);
                let (resource_templates, next_cursor) = self.page(wanted, &self.templates, define);
                let rest =
                    ListResourceTemplatesResult { ttl_ms, cache_scope, ..Default::default() };
                written(to, ListResourceTemplatesResult { resource_templates, next_cursor, ..rest })
            }
        }
    }

    /// The entries of a page that exist for a caller, and the cursor of the next page.
    fn page<E: IsThere + Clone, T>(
        &self,
        wanted: Wanted<'_>,
        table: &Table<E>,
        define: impl Fn(&E) -> T,
    ) -> (Vec<T>, Option<String>) {
        let Wanted { kind, start, asker } = wanted;
        let mut rest =
            table.iter().filter(|it| it.is_listed() && it.is_there_for(asker)).skip(start);
        let items: Vec<T> = rest.by_ref().take(self.page).map(|entry| define(entry)).collect();
        let next = start + items.len();
        let next_cursor = rest.next().map(|_| self.cursor(kind, next));
        (items, next_cursor)
    }

    /// Encodes the list, its generation and the position. Opaque to clients.
    fn cursor(&self, kind: ListKind, start: usize) -> String {
        format!("{:x}-{:x}-{start:x}", kind as u8, self.generation)
    }

    fn read_cursor(&self, kind: ListKind, cursor: &str) -> Result<usize, ErrorObject> {
        let refused = |why: &str| {
            ErrorObject::invalid_params(format!("{}: params.cursor {why}", kind.method()))
        };
        let mut parts = cursor.splitn(3, '-').map(|part| u64::from_str_radix(part, 16).ok());
        let mut part = || parts.next().flatten();
        let (Some(list), Some(generation), Some(start)) = (part(), part(), part()) else {
            return Err(refused("was not issued by this server"));
        };
        if list != kind as u64 {
            return Err(refused("belongs to another list"));
        }
        if generation != self.generation {
            return Err(refused(
                "is outdated, because the list has changed; help: start again without a cursor",
            ));
        }
        usize::try_from(start).map_err(|_| refused("was not issued by this server"))
    }
}

fn written<R: Adapt + Serialize>(to: Revision, mut list: R) -> Result<Arc<RawValue>, ErrorObject> {
    let internal = |error: &dyn std::fmt::Display| ErrorObject::internal(error.to_string());
    list.adapt(to).map_err(|error| internal(&error))?;
    to_raw_value(&list).map(Arc::from).map_err(|error| internal(&error))
}

/// Whether an entry exists as far as a caller can tell.
pub(crate) trait IsThere {
    fn is_enabled(&self) -> bool;
    fn rule(&self) -> Option<&Visible>;
    fn scopes(&self) -> &Scopes;
    fn nest(&self) -> &Nest;

    /// Whether lists show it to callers for whom it is there.
    fn is_listed(&self) -> bool {
        true
    }

    fn is_there_for(&self, asker: Asker<'_>) -> bool {
        self.is_enabled() && self.rule().is_none_or(|rule| rule(&asker.to_caller()))
    }
}

macro_rules! is_there {
    ($($entry:ty $(, $listed:ident)?);*) => {$(
        impl IsThere for $entry {
            $(fn is_listed(&self) -> bool {
                self.$listed
            })?

            fn is_enabled(&self) -> bool {
                self.is_enabled
            }

            fn rule(&self) -> Option<&Visible> {
                self.visible.as_ref()
            }

            fn scopes(&self) -> &Scopes {
                &self.scopes
            }

            fn nest(&self) -> &Nest {
                &self.nest
            }
        }
    )*};
}
is_there!(tool::Entry, is_listed; prompt::Entry; resource::Entry);
