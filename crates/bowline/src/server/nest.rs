//! Nested servers: their names, with a prefix for clients and without it for handlers, and what
//! they bring along for their parts.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::Server;
use super::error::BuildError;
use super::middleware::Middleware;
use super::part::{Part, Parts};
use super::state::States;
#[cfg(doc)]
use crate::{Extension, Limits, Registry};

/// The servers that a part was nested in, innermost first. There is rarely one.
#[derive(Clone, Default)]
pub(crate) struct Nest(Option<Arc<[Step]>>);

/// One step outward.
#[derive(Clone)]
pub(crate) enum Step {
    /// What comes from this server.
    Home(Arc<Home>),
    /// Names get this prefix.
    Prefix(String),
    /// Requests carry this value.
    Label(Arc<dyn Any + Send + Sync>),
}

/// What a nested server brings along for its own parts.
pub(crate) struct Home {
    pub(crate) middleware: Arc<[Arc<dyn Middleware>]>,
    pub(crate) states: States,
    /// How long one request may take, if the server says so.
    pub(crate) deadline: Option<Duration>,
}

impl Home {
    /// Whether it brings nothing along.
    pub(crate) fn is_empty(&self) -> bool {
        self.middleware.is_empty() && self.states.is_empty() && self.deadline.is_none()
    }
}

impl Nest {
    /// The same, one step further out.
    pub(crate) fn within(&self, step: &Step) -> Self {
        Self(Some(self.steps().iter().chain([step]).cloned().collect()))
    }

    pub(crate) fn steps(&self) -> &[Step] {
        self.0.as_deref().unwrap_or_default()
    }

    fn prefixes(&self) -> impl Iterator<Item = &str> {
        self.steps().iter().filter_map(|step| match step {
            Step::Prefix(prefix) => Some(prefix.as_str()),
            Step::Home(_) | Step::Label(_) => None,
        })
    }

    /// The innermost label of a type.
    pub(crate) fn label<T: Any>(&self) -> Option<&T> {
        self.steps().iter().find_map(|step| match step {
            Step::Label(label) => label.downcast_ref(),
            Step::Home(_) | Step::Prefix(_) => None,
        })
    }

    /// The nested servers, innermost first.
    pub(crate) fn homes(&self) -> impl DoubleEndedIterator<Item = &Home> {
        self.steps().iter().filter_map(|step| match step {
            Step::Home(home) => Some(home.as_ref()),
            Step::Prefix(_) | Step::Label(_) => None,
        })
    }

    /// Whether one of the nested servers has middleware.
    pub(crate) fn has_middleware(&self) -> bool {
        self.0.is_some() && self.homes().any(|home| !home.middleware.is_empty())
    }

    /// The middleware of a request: that of the outermost server, and within it that of the others.
    pub(crate) fn middleware(
        &self,
        outermost: &Arc<[Arc<dyn Middleware>]>,
    ) -> Arc<[Arc<dyn Middleware>]> {
        if !self.has_middleware() {
            return Arc::clone(outermost);
        }
        let nested = self.homes().rev().flat_map(|home| home.middleware.iter());
        outermost.iter().chain(nested).cloned().collect()
    }

    /// The servers of both, each once.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let is_ours = |step: &Step| {
            self.steps().iter().any(|own| match (own, step) {
                (Step::Home(own), Step::Home(home)) => Arc::ptr_eq(own, home),
                _ => false,
            })
        };
        let theirs = other.steps().iter().filter(|step| !is_ours(step));
        theirs.fold(self.clone(), |nest, step| nest.within(step))
    }

    /// How long one request may take, if one of the servers says so: the innermost counts.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.homes().find_map(|home| home.deadline)
    }

    /// The name with its prefixes.
    pub(crate) fn name<'a>(&self, own: &'a str) -> Cow<'a, str> {
        let mut name = Cow::Borrowed(own);
        for prefix in self.prefixes() {
            name = prefixed(prefix, name);
        }
        name
    }
}

/// `search` becomes `files_search`, and `files_list` stays as it is.
pub(crate) fn prefixed<'a>(prefix: &str, name: Cow<'a, str>) -> Cow<'a, str> {
    let has_it = name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('_'));
    if has_it { name } else { Cow::Owned(format!("{prefix}_{name}")) }
}

/// A server as part of another one, by [`Server::with`] or [`Server::nest`].
///
/// It stays what it is. Its tools, prompts and resources keep their scopes, its
/// [extensions](Extension) are those of the outer server, and requests for all of these and for
/// their completion:
/// - run its middleware, within that of the outer server;
/// - find its state before that of the outer server;
/// - have the [deadline](Limits::deadline) that it sets with [`Server::limits`], if it sets limits.
///
/// Its instructions follow those of the outer server, unless it is added while that one runs. Its
/// [`Registry`] goes on to work. Everything that concerns connections is up to the outer server:
/// name and version, the other limits, and lists, to which only the outer middleware applies.
/// Settings that would be lost ([`keys`](Server::keys), [`revisions`](Server::revisions),
/// [`cache`](Server::cache), [`experimental`](Server::experimental), [`tasks`](Server::tasks),
/// [`hide_unusable_apps`](Server::hide_unusable_apps)) are an error when the outer server is built.
impl Part for Server {
    fn add_to(self, parts: &mut Parts) {
        let setting = self.setting_of_its_own();
        let nested = |setting| BuildError::Nested { server: self.info.name.clone(), setting };
        let problem = self.problem.or_else(|| setting.map(nested));
        let home = Home {
            middleware: self.middleware.into(),
            states: self.states,
            deadline: self.has_own_limits.then_some(self.limits.deadline),
        };
        let mut own = Parts {
            entries: self.registry.entries(),
            live: self.registry.live(),
            offered: self.registry.tables().offered,
            instructions: self.instructions.into_iter().chain(self.nested_instructions).collect(),
            extensions: self.extensions,
            nested: vec![(self.registry, Nest::default())],
            problem,
            ..Parts::default()
        };
        if !home.is_empty() {
            own.take_out(&Step::Home(Arc::new(home)));
        }
        parts.add(own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gets_each_prefix_once() {
        let within = |nest: &Nest, prefix: &str| nest.within(&Step::Prefix(prefix.to_owned()));
        let files = within(&Nest::default(), "files");
        assert_eq!(Nest::default().name("search"), "search");
        assert_eq!(files.name("search"), "files_search");
        assert_eq!(files.name("files_list"), "files_list");
        assert_eq!(files.name("filesystem"), "files_filesystem");
        assert_eq!(within(&files, "my").name("search"), "my_files_search");
    }
}
