//! Servers: what an author puts together, and what runs it.

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
mod handler;
pub(crate) mod legacy;
mod limits;
pub(crate) mod listen;
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
pub use self::ask::{Ask, AskError, Elicited};
#[cfg(feature = "http")]
pub(crate) use self::bus::Sink;
#[cfg(feature = "http")]
pub(crate) use self::call::Call;
pub use self::caller::Caller;
pub use self::complete::Completing;
#[cfg(feature = "http")]
pub(crate) use self::connection::Connection;
pub use self::context::Context;
pub(crate) use self::core::Core;
use self::core::States;
#[cfg(feature = "http")]
pub(crate) use self::dispatch::Started;
pub use self::error::{BuildError, HandlerError};
pub use self::handler::{Bare, Contextual, Handler, Nothing, Plain, blocking};
pub use self::limits::Limits;
pub use self::middleware::{Incoming, Middleware, Next};
pub use self::output::{Structured, ToolOutcome, ToolOutput};
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
/// Put together from [parts](Part), then served: on stdio, on any byte stream, or in memory. One
/// server speaks all revisions of the protocol at once; nothing needs to be chosen.
#[must_use = "a server does nothing until it is served"]
pub struct Server {
    info: Implementation,
    instructions: Option<String>,
    registry: Registry,
    /// The first thing that was wrong; told when the server is to be served.
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
    /// A server with a name and a version, and nothing in it yet.
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

    /// Adds a tool, a prompt, a resource, or many of them.
    ///
    /// What is wrong with them is told when the server is served, before the first client connects.
    pub fn with(mut self, part: impl Part) -> Self {
        if let Err(problem) = self.registry.add(part) {
            self.problem.get_or_insert(problem);
        }
        self
    }

    /// Adds many things, their names prefixed: `search` becomes `files_search`. A name that begins
    /// so already stays, and so do URIs.
    ///
    /// Their handlers need not know: with [`Context::registry`](crate::Context::registry) they
    /// change what they came with by the names they gave it.
    pub fn nest(self, prefix: &str, part: impl Part) -> Self {
        let mut parts = Parts::default();
        parts.add(part);
        parts.prefix(prefix);
        self.with(parts)
    }

    /// The name people see.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// What it does, for people.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Where to read more.
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.info.website_url = Some(url.into());
        self
    }

    /// A picture. Several can be added.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.get_or_insert_default().push(icon);
        self
    }

    /// How to use it, for the model.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Something that handlers share, found by its type with
    /// [`Context::state`](crate::Context::state).
    pub fn state<T: Any + Send + Sync>(mut self, state: T) -> Self {
        self.states.insert(state);
        self
    }

    /// Runs around every request. Those added first are outermost.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Other bounds than the defaults.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.registry.set_limits(limits.registry, limits.page.max(1));
        self.limits = limits;
        self
    }

    /// For how long, and by whom, clients may cache lists. Without it, nobody may.
    ///
    /// `Public` is for lists that are the same for every caller.
    pub fn cache(self, ttl: Duration, scope: CacheScope) -> Self {
        self.registry.set_cache(CacheHints { ttl, scope });
        self
    }

    /// The keys that request states are sealed with. Without it they are random, and no other
    /// process can go on with a request that this one has asked something about.
    pub fn keys(mut self, keys: KeyRing) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Which revisions to speak, instead of all.
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

    /// Offers tools, prompts and resources from the start, though some of them may only be added
    /// while the server runs. Without it, a server offers what it has or once had.
    pub fn live(self) -> Self {
        self.registry.offer_all();
        self
    }

    /// Who it says it is: name, version, and whatever of title, description and the rest was given.
    pub fn info(&self) -> &Implementation {
        &self.info
    }

    /// What the server has, to be changed while it runs.
    pub fn registry(&self) -> Registry {
        self.registry.clone()
    }

    /// Checks everything and freezes the rest.
    pub(crate) fn build(self) -> Result<Arc<Core>, BuildError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        // The limit may have been set after what it limits was added.
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

/// Keys of its own are made when the first state is sealed: most servers never ask anything.
fn keys(keys: Option<KeyRing>, max_token: usize) -> core::Keys {
    core::Keys::new(Box::new(move || {
        keys.unwrap_or_else(KeyRing::random).with_max_token(max_token)
    }))
}

/// Everything a server has at this moment, added to another. Its own name, instructions, limits,
/// state and middleware stay behind.
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
