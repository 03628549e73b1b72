//! Servers: the builder that authors use, and the parts that run it.

mod answer;
mod ask;
mod bus;
mod call;
mod caller;
mod complete;
mod connection;
mod context;
mod core;
pub(crate) mod dispatch;
mod error;
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
pub use self::ask::{Ask, AskError, Elicited, MissingCapability};
#[cfg(feature = "http")]
pub(crate) use self::bus::Sink;
#[cfg(feature = "http")]
pub(crate) use self::call::Call;
#[cfg(feature = "http")]
pub(crate) use self::caller::Asker;
pub use self::caller::{Caller, Profile};
pub use self::complete::Completing;
#[cfg(feature = "http")]
pub(crate) use self::connection::Connection;
pub use self::context::Context;
pub(crate) use self::core::Core;
use self::core::States;
#[cfg(feature = "http")]
pub(crate) use self::dispatch::Started;
pub use self::error::{BuildError, HandlerError};
#[cfg(feature = "http")]
pub(crate) use self::handler::BoxFuture;
pub use self::handler::{Handler, blocking};
#[cfg(feature = "http")]
pub(crate) use self::head::{Credentials, HttpHead};
pub use self::limits::Limits;
pub use self::logger::Logger;
pub use self::middleware::{Incoming, Middleware, Next};
pub use self::output::{Described, Structured, ToolOutcome, ToolOutput};
pub use self::part::{Part, Parts};
#[cfg(feature = "http")]
pub(crate) use self::peer::{LastPeer, Peer, Sender};
pub use self::principal::Principal;
pub use self::prompt::{Prompt, PromptOutcome, PromptOutput};
use self::registry::CacheHints;
pub use self::registry::Registry;
pub use self::resource::{Resource, ResourceOutcome, ResourceOutput};
#[cfg(feature = "http")]
pub(crate) use self::running::{Running, until_deadline};
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
    registry: Registry,
    /// The first mistake that was made; reported when the server is served.
    problem: Option<BuildError>,
    limits: Limits,
    keys: Option<KeyRing>,
    offer: Offer,
    states: States,
    middleware: Vec<Arc<dyn Middleware>>,
    extensions: Settings,
    experimental: Settings,
}

impl Server {
    /// Creates an empty server with a name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let server = Self {
            info: Implementation::new(name, version),
            instructions: None,
            registry: Registry::new(),
            problem: None,
            limits: Limits::default(),
            keys: None,
            offer: Offer::default(),
            states: States::default(),
            middleware: Vec::new(),
            extensions: Settings::new(),
            experimental: Settings::new(),
        };
        server.limits(Limits::default())
    }

    /// Adds a tool, a prompt, a resource, or several of them.
    ///
    /// Mistakes in them are reported when the server is served, before the first client connects.
    pub fn with(mut self, part: impl Part) -> Self {
        if let Err(problem) = self.registry.add(part) {
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
        parts.prefix(prefix);
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
    /// [`Context::state`](crate::Context::state).
    pub fn state<T: Any + Send + Sync>(mut self, state: T) -> Self {
        self.states.insert(state);
        self
    }

    /// Adds middleware, which runs around every request. The first one added is the outermost.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Replaces the default limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.registry.set_limits(limits.registry, limits.page.max(1));
        self.limits = limits;
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

    /// Declares an extension of the protocol, with its settings.
    pub fn extension(mut self, id: impl Into<String>, settings: Extra) -> Self {
        self.extensions.insert(id, settings);
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
        // The limit may have been set after the parts were added.
        self.registry.check_size()?;
        let declared = |settings: Settings| (!settings.is_empty()).then_some(settings);
        Ok(Arc::new(Core {
            signature: answer::Signature::new(&self.info),
            info: self.info,
            instructions: self.instructions,
            registry: self.registry,
            keys: keys(self.keys, self.limits.request_state),
            limits: self.limits,
            offer: self.offer,
            states: self.states,
            middleware: self.middleware.into(),
            extensions: declared(self.extensions),
            experimental: declared(self.experimental),
        }))
    }
}

/// Random keys are generated when the first state is sealed: most servers never ask anything.
fn keys(keys: Option<KeyRing>, max_token: usize) -> core::Keys {
    core::Keys::new(Box::new(move || {
        keys.unwrap_or_else(KeyRing::random).with_max_token(max_token)
    }))
}

/// Adds everything that a server has now to another one. Its name, instructions, limits, state and
/// middleware are left behind.
impl Part for Server {
    fn add_to(self, parts: &mut Parts) {
        let entries = self.registry.entries();
        parts.add(Parts { entries, problem: self.problem, ..Parts::default() });
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
