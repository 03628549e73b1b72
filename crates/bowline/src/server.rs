//! Servers: the builder that authors use, and the parts that run it.

pub(crate) mod account;
mod answer;
mod ask;
pub(crate) mod audit;
mod bus;
mod call;
mod caller;
mod complete;
mod connection;
mod context;
mod core;
pub(crate) mod dispatch;
mod error;
mod extension;
mod failure;
mod form;
pub(crate) mod handler;
#[cfg(feature = "http")]
mod head;
pub(crate) mod legacy;
mod limits;
pub(crate) mod listen;
mod logger;
mod middleware;
mod nest;
mod output;
mod part;
mod peer;
mod portable;
mod principal;
mod prompt;
mod registry;
mod resource;
mod rounds;
mod running;
mod schema;
mod scopes;
mod serve;
mod session;
mod session_state;
mod state;
mod step;
mod strings;
mod tool;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bowline_proto::json::Extra;
use bowline_proto::model::{CacheScope, Icon, Implementation, Settings};
use bowline_proto::revision::{Offer, Revisions};

pub use self::answer::{Answer, Outcome};
#[cfg(feature = "client")]
pub(crate) use self::ask::check_capability;
pub use self::ask::{Ask, AskError, Elicited, MissingCapability};
#[cfg(feature = "http")]
pub(crate) use self::bus::Sink;
#[cfg(feature = "http")]
pub(crate) use self::call::Call;
#[cfg(feature = "http")]
pub(crate) use self::caller::Asker;
pub use self::caller::{Caller, Profile};
pub use self::complete::Completing;
#[cfg(feature = "client")]
pub(crate) use self::complete::{Complete as CompleteSource, CompleteOutcome};
#[cfg(feature = "http")]
pub(crate) use self::connection::Connection;
pub use self::context::Context;
pub(crate) use self::core::Core;
#[cfg(feature = "http")]
pub(crate) use self::dispatch::Started;
pub use self::error::{BuildError, HandlerError};
pub use self::extension::Extension;
use self::extension::Extensions;
pub use self::failure::{Failure, FailureKind};
#[cfg(any(feature = "client", feature = "http"))]
pub(crate) use self::handler::BoxFuture;
pub use self::handler::{Handler, blocking};
#[cfg(feature = "http")]
pub(crate) use self::head::{Credentials, HttpHead};
pub use self::limits::Limits;
pub use self::logger::Logger;
pub use self::middleware::{Incoming, Middleware, Next};
use self::nest::Home;
#[cfg(feature = "client")]
pub(crate) use self::nest::Nest;
#[cfg(not(feature = "client"))]
use self::nest::Nest;
pub use self::output::{Described, Structured, ToolOutcome, ToolOutput};
#[cfg(feature = "client")]
pub(crate) use self::part::{Entries, Live, LivePart};
pub use self::part::{Part, Parts};
pub use self::peer::Transport;
#[cfg(feature = "http")]
pub(crate) use self::peer::{LastPeer, Peer, Sender, Via};
pub use self::principal::Principal;
pub use self::prompt::{Prompt, PromptOutcome, PromptOutput};
use self::registry::CacheHints;
#[cfg(feature = "client")]
pub(crate) use self::registry::Place;
pub use self::registry::Registry;
#[cfg(feature = "client")]
pub(crate) use self::resource::Entry as ResourceEntry;
pub use self::resource::{Resource, ResourceOutcome, ResourceOutput};
#[cfg(feature = "http")]
pub(crate) use self::running::{Handling, Running, until_deadline};
pub use self::schema::schema_for;
#[cfg(feature = "http")]
pub(crate) use self::scopes::{Rights, Scopes};
#[cfg(feature = "http")]
pub(crate) use self::serve::is_watching_signals;
#[cfg(feature = "client")]
pub(crate) use self::serve::serve_core;
pub use self::serve::{ServeError, stop_signal};
#[cfg(feature = "http")]
pub(crate) use self::session::Session;
use self::session_state::Principals;
use self::state::States;
pub use self::state::{MissingState, State};
pub use self::step::{InputRequired, Step, Verbatim};
pub use self::tool::Tool;
#[cfg(feature = "http")]
pub(crate) use crate::outbox::Outbox;
use crate::seal::KeyRing;

/// An MCP server.
///
/// Build it from [parts](Part), then serve it: on stdio, on any byte stream, over HTTP or in
/// memory. A server speaks all revisions of the protocol at once; there is nothing to choose.
#[must_use = "a server does nothing until it is served"]
pub struct Server {
    info: Implementation,
    instructions: Option<String>,
    /// Those of nested servers.
    nested_instructions: Vec<String>,
    registry: Registry,
    /// The first mistake that was made; reported when the server is served.
    problem: Option<BuildError>,
    limits: Limits,
    /// Whether the limits are those of the author.
    has_own_limits: bool,
    keys: Option<KeyRing>,
    offer: Offer,
    states: States,
    middleware: Vec<Arc<dyn Middleware>>,
    extensions: Vec<Extension>,
    experimental: Settings,
}

impl Server {
    /// Creates an empty server with a name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let limits = Limits::default();
        let registry = Registry::new();
        registry.set_limits(limits.registry, limits.page);
        Self {
            info: Implementation::new(name, version),
            instructions: None,
            nested_instructions: Vec::new(),
            registry,
            problem: None,
            limits,
            has_own_limits: false,
            keys: None,
            offer: Offer::default(),
            states: States::default(),
            middleware: Vec::new(),
            extensions: Vec::new(),
            experimental: Settings::new(),
        }
    }

    /// Adds a tool, a prompt, a resource, an [extension](Extension), or several of them.
    ///
    /// Mistakes in them are reported when the server is served, before the first client connects.
    pub fn with(mut self, part: impl Part) -> Self {
        let mut parts = Parts::default();
        parts.add(part);
        self.nested_instructions.append(&mut parts.instructions);
        self.extensions.append(&mut parts.extensions);
        if let Err(problem) = self.registry.add(parts) {
            self.problem.get_or_insert(problem);
        }
        self
    }

    /// Adds several parts with a prefix before their names: `search` becomes `files_search`. Names
    /// that already have the prefix stay as they are, and so do URIs.
    ///
    /// Handlers do not notice: through [`Context::registry`](crate::Context::registry) they use the
    /// names without the prefix.
    pub fn nest(self, prefix: &str, part: impl Part) -> Self {
        let mut parts = Parts::default();
        parts.add(part);
        parts.take_out(&nest::Step::Prefix(prefix.to_owned()));
        self.with(parts)
    }

    /// Sets the name that people see.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Describes for people what it does.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Sets the URL of a page with more information.
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.info.website_url = Some(url.into());
        self
    }

    /// Adds an icon, or the URL of one. There can be several.
    pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
        self.info.icons.get_or_insert_default().push(icon.into());
        self
    }

    /// Tells the model how to use the server.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Adds a value that handlers share. They find it by its type with
    /// [`Context::state`](crate::Context::state), and can declare that they need it:
    /// [`Tool::needs_state`](crate::Tool::needs_state).
    pub fn state<T: Any + Send + Sync>(mut self, state: T) -> Self {
        self.states.insert(state);
        self
    }

    /// Adds [middleware](Middleware), which runs around every request. The first one added is the
    /// outermost.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Replaces the default limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.registry.set_limits(limits.registry, limits.page.max(1));
        self.limits = limits;
        self.has_own_limits = true;
        self
    }

    /// Lets clients cache lists for this long. By default they may not.
    ///
    /// `Public` is for lists that are the same for every caller.
    pub fn cache(self, ttl: Duration, scope: CacheScope) -> Self {
        self.registry.set_cache(CacheHints { ttl, scope });
        self
    }

    /// Sets the keys that request states are sealed with. By default they are random, so a request
    /// that asked the client something can only be continued by the same process.
    pub fn keys(mut self, keys: KeyRing) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Restricts the server to these revisions. By default it speaks all of them.
    pub fn revisions(mut self, revisions: Revisions) -> Self {
        self.offer = Offer::new(revisions);
        self
    }

    /// Declares an experimental feature, with its settings.
    pub fn experimental(mut self, name: impl Into<String>, settings: Extra) -> Self {
        self.experimental.insert(name, settings);
        self
    }

    /// Declares the capabilities for tools, prompts and resources from the start, although some may
    /// only be added while the server runs. By default it declares those that it has or once had.
    pub fn declare_all(self) -> Self {
        self.registry.offer_all();
        self
    }

    /// How the server introduces itself: name, version, and optionally title, description and more.
    pub fn info(&self) -> &Implementation {
        &self.info
    }

    /// The tools, prompts and resources of the server, for changing them while it runs.
    pub fn registry(&self) -> Registry {
        self.registry.clone()
    }

    /// Checks the parts and freezes the settings.
    pub(crate) fn build(self) -> Result<Arc<Core>, BuildError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let states = Arc::new(self.states);
        // Limits and state may have been set after the parts were added.
        self.registry.check(&states)?;
        let instructions: Vec<_> =
            self.instructions.into_iter().chain(self.nested_instructions).collect();
        let declared = |settings: Settings| (!settings.is_empty()).then_some(settings);
        Ok(Arc::new(Core {
            signature: answer::Signature::new(&self.info),
            info: self.info,
            instructions: (!instructions.is_empty()).then(|| instructions.join("\n\n")),
            registry: self.registry,
            keys: keys(self.keys, self.limits.request_state),
            accounts: account::Accounts::new(&self.limits),
            limits: self.limits,
            offer: self.offer,
            states,
            audited: audit::around(&self.middleware),
            middleware: self.middleware.into(),
            extensions: Extensions::new(self.extensions)?,
            experimental: declared(self.experimental),
            leftovers: core::Leftovers::default(),
            principals: Principals::default(),
        }))
    }

    /// The first setting that only an outermost server can have.
    fn setting_of_its_own(&self) -> Option<&'static str> {
        let settings = [
            (self.keys.is_some(), "keys"),
            (self.offer != Offer::default(), "revisions"),
            (self.registry.tables().cache != CacheHints::default(), "cache"),
            (!self.experimental.is_empty(), "experimental"),
        ];
        settings.into_iter().find_map(|(is_set, setting)| is_set.then_some(setting))
    }
}

/// Random keys are generated when the first state is sealed: most servers never ask anything.
fn keys(keys: Option<KeyRing>, max_token: usize) -> core::Keys {
    core::Keys::new(Box::new(move || {
        keys.unwrap_or_else(KeyRing::random).with_max_token(max_token)
    }))
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
/// [`cache`](Server::cache), [`experimental`](Server::experimental)) are an error when the outer
/// server is built.
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
            own.take_out(&nest::Step::Home(Arc::new(home)));
        }
        parts.add(own);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("info", &self.info)
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}
