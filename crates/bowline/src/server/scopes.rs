//! Scopes: what a client must be allowed to use a tool, prompt or resource.
//!
//! Whoever owns a transport that authenticates asks here before it starts a request, since the
//! answer to a client that lacks something is one of HTTP. On a pipe there are no tokens, and
//! whoever holds the pipe may do everything.

use bowline_proto::scope::is_scope;

use super::error::BuildError;

#[cfg(feature = "http")]
pub(crate) use self::needed::{first_in_need, missing};

/// What one thing needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Scopes(Vec<String>);

impl Scopes {
    pub(crate) fn extend<S: Into<String>>(&mut self, scopes: impl IntoIterator<Item = S>) {
        self.0.extend(scopes.into_iter().map(Into::into));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of them are words that a challenge can carry.
    pub(crate) fn check(&self, kind: &'static str, name: &str) -> Result<(), BuildError> {
        match self.0.iter().find(|scope| !is_scope(scope)) {
            None => Ok(()),
            Some(scope) => {
                Err(BuildError::Scope { kind, name: name.to_owned(), scope: scope.clone() })
            }
        }
    }
}

#[cfg(feature = "http")]
mod needed {
    use bowline_proto::method::{
        CallTool, Complete, GetPrompt, Method, ReadResource, Subscribe, SubscriptionsListen,
    };
    use bowline_proto::model::{CompleteParams, Reference, SubscriptionsListenParams};
    use bowline_proto::raw::Raw;
    use serde::Deserialize;

    use super::Scopes;
    use crate::server::caller::Caller;
    use crate::server::core::Core;
    use crate::server::dispatch::find_resource;
    use crate::server::registry::{IsThere, Tables};

    /// The scopes that a request needs, if its caller lacks one of them.
    ///
    /// What is not there for the caller needs nothing: it is answered as everything unknown is. So
    /// is what cannot be read, by whoever reads it to act on it.
    pub(crate) fn missing(
        core: &Core,
        method: &str,
        params: Option<Raw<'_>>,
        caller: &Caller,
    ) -> Option<Vec<String>> {
        let tables = core.registry.tables();
        if !tables.has_scopes {
            return None;
        }
        let mut needed = Vec::new();
        for scope in needs(&tables, method, params?.get(), caller) {
            if !needed.contains(&scope) {
                needed.push(scope);
            }
        }
        let principal = caller.principal.as_ref();
        let has = |scope: &String| principal.is_some_and(|it| it.has_scope(scope));
        (!needed.iter().all(has)).then_some(needed)
    }

    /// Something that needs scopes: its kind and name.
    pub(crate) fn first_in_need(core: &Core) -> Option<(&'static str, String)> {
        let tables = core.registry.tables();
        let tool = tables.tools.iter().find(|it| !it.scopes.is_empty());
        let prompt = tables.prompts.iter().find(|it| !it.scopes.is_empty());
        let mut resources = tables.resources.iter().chain(tables.templates.iter());
        let resource = resources.find(|it| !it.scopes.is_empty());
        tool.map(|it| ("tool", it.definition.name.clone()))
            .or_else(|| prompt.map(|it| ("prompt", it.definition.name.clone())))
            .or_else(|| resource.map(|it| ("resource", it.definition.uri.clone())))
    }

    #[derive(Deserialize)]
    struct Named {
        name: String,
    }

    #[derive(Deserialize)]
    struct Located {
        uri: String,
    }

    fn needs(tables: &Tables, method: &str, params: &str, caller: &Caller) -> Vec<String> {
        match method {
            CallTool::NAME => read::<Named>(params).map_or_else(Vec::new, |it| {
                there(tables.tools.get(&it.name).map(|it| (&**it, &it.scopes)), caller)
            }),
            GetPrompt::NAME => read::<Named>(params)
                .map_or_else(Vec::new, |it| of_prompt(tables, &it.name, caller)),
            ReadResource::NAME | Subscribe::NAME => read::<Located>(params)
                .map_or_else(Vec::new, |it| of_resource(tables, &it.uri, caller)),
            Complete::NAME => match read::<CompleteParams<'_>>(params).map(|it| it.reference) {
                Some(Reference::Prompt(prompt)) => of_prompt(tables, &prompt.name, caller),
                Some(Reference::ResourceTemplate(family)) => {
                    let entry = tables.templates.get(&family.uri);
                    there(entry.map(|it| (&**it, &it.scopes)), caller)
                }
                None => Vec::new(),
            },
            SubscriptionsListen::NAME => {
                let params = read::<SubscriptionsListenParams<'_>>(params);
                let uris = params.and_then(|it| it.notifications.resource_subscriptions);
                let uris = uris.unwrap_or_default();
                uris.iter().flat_map(|uri| of_resource(tables, uri, caller)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn of_prompt(tables: &Tables, name: &str, caller: &Caller) -> Vec<String> {
        there(tables.prompts.get(name).map(|it| (&**it, &it.scopes)), caller)
    }

    fn of_resource(tables: &Tables, uri: &str, caller: &Caller) -> Vec<String> {
        let found = find_resource(tables, uri, caller);
        found.map_or_else(|_| Vec::new(), |(entry, _)| entry.scopes.0.clone())
    }

    fn there<E: IsThere>(entry: Option<(&E, &Scopes)>, caller: &Caller) -> Vec<String> {
        let entry = entry.filter(|(entry, _)| entry.is_there_for(caller));
        entry.map_or_else(Vec::new, |(_, scopes)| scopes.0.clone())
    }

    fn read<'a, T: Deserialize<'a>>(params: &'a str) -> Option<T> {
        serde_json::from_str(params).ok()
    }
}
