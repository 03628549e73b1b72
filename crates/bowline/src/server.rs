//! Servers: the builder that authors use, and the parts that run it.

pub(crate) mod account;
mod answer;
mod app;
mod ask;
pub(crate) mod audit;
mod beyond;
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
pub mod fleet;
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
pub mod tasks;
mod tool;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bowline_proto::json::Extra;
use bowline_proto::model::{CacheScope, Icon, Implementation, Settings, task_extension};
use bowline_proto::revision::{Offer, Revisions};

pub use self::answer::{Answer, Outcome};
pub use self::app::App;
#[cfg(feature = "client")]
pub(crate) use self::ask::check_capability;
pub use self::ask::{Ask, AskError, Elicited, MissingCapability};
pub(crate) use self::beyond::Beyond;
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
#[cfg(feature = "http")]
pub(crate) use self::extension::TopicReader;
#[cfg(feature = "client")]
pub(crate) use self::extension::is_extension_id;
pub use self::failure::{Failure, FailureKind};
#[cfg(any(feature = "client", feature = "http"))]
pub(crate) use self::handler::BoxFuture;
pub use self::handler::{Handler, blocking};
#[cfg(feature = "http")]
pub(crate) use self::head::{Credentials, HttpHead};
pub use self::limits::Limits;
pub use self::logger::Logger;
pub use self::middleware::{Incoming, Middleware, Next};
#[cfg(feature = "client")]
pub(crate) use self::nest::{Nest, Step as NestStep};
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
pub use self::registry::Registry;
#[cfg(feature = "client")]
pub(crate) use self::registry::{Offered, Place};
pub use self::resource::{Resource, ResourceOutcome, ResourceOutput};
#[cfg(feature = "http")]
pub(crate) use self::running::{Handling, Running, until_deadline};
pub use self::schema::schema_for;
#[cfg(feature = "http")]
pub(crate) use self::scopes::{Rights, Scopes};
#[cfg(feature = "client")]
pub(crate) use self::serve::serve_core;
pub use self::serve::{ServeError, stop_signal};
#[cfg(feature = "http")]
pub(crate) use self::serve::{is_passing, is_watching_signals};
#[cfg(feature = "http")]
pub(crate) use self::session::Session;
use self::session_state::Principals;
use self::state::States;
pub use self::state::{MissingState, State};
pub use self::step::{InputRequired, Step, Verbatim};
pub use self::tasks::{Elsewhere, TaskLimits, TaskMode, Tasks};
pub use self::tool::Tool;
#[cfg(feature = "client")]
pub(crate) use self::{resource::Entry as ResourceEntry, rounds::interrupted};
#[cfg(feature = "http")]
pub(crate) use crate::outbox::Outbox;
use crate::seal::KeyRing;

/// An MCP server.
///
/// Build it from [parts](Part), then serve it: on stdio, on any byte stream, over HTTP or in
/// memory. A server speaks all revisions of the protocol at once; there is nothing to choose.
/// Begin with the [tutorial](crate::guide::tutorial).
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
    tasks: Option<Tasks>,
    fleet: Option<Arc<dyn fleet::Fleet>>,
    beyond: Option<Beyond>,
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
            tasks: None,
            fleet: None,
            beyond: None,
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

    /// Sets where [tasks](crate::tasks) are kept, and their limits. By default they are in memory.
    pub fn tasks(mut self, tasks: Tasks) -> Self {
        self.tasks = Some(tasks);
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
        let instructions: Vec<_> =
            self.instructions.into_iter().chain(self.nested_instructions).collect();
        let declared = |settings: Settings| (!settings.is_empty()).then_some(settings);
        self.fleet.iter().for_each(|fleet| fleet.belong_to(&self.info.name));
        let has_task = self.registry.tables().tools.iter().any(|it| it.task.is_some());
        let tasks = self.tasks.or_else(|| {
            has_task.then(|| self.fleet.as_ref().map_or_else(Tasks::in_memory, |it| it.tasks()))
        });
        let mut extensions = self.extensions;
        extensions.extend(tasks.as_ref().map(Tasks::extension));
        let extensions = Extensions::new(extensions)?;
        // Limits and state may have been set after the parts were added.
        self.registry.check(&states, &extensions.decorators)?;
        let core = Arc::new(Core {
            signature: answer::Signature::new(&self.info),
            info: self.info,
            instructions: (!instructions.is_empty()).then(|| instructions.join("\n\n")),
            registry: self.registry,
            keys: core::keys(
                self.keys.or_else(|| self.fleet.as_ref().map(|it| it.keys())),
                self.limits.request_state,
            ),
            accounts: account::Accounts::new(&self.limits),
            limits: self.limits,
            offer: self.offer,
            states,
            audited: audit::around(&self.middleware),
            middleware: self.middleware.into(),
            extensions,
            experimental: declared(self.experimental),
            leftovers: core::Leftovers::default(),
            principals: Principals::default(),
            tasks,
            fleet: self.fleet.map(fleet::Joined::new),
            beyond: self.beyond.map(Arc::new),
        });
        if let Some(tasks) = &core.tasks
            && !tasks.belong_to(&core)
        {
            let reason = "these tasks are those of another server".to_owned();
            return Err(BuildError::Extension { id: task_extension::ID.to_owned(), reason });
        }
        if let Some(tasks) = &core.tasks {
            tasks.start();
        }
        fleet::join(&core);
        Ok(core)
    }

    /// The first setting that only an outermost server can have.
    fn setting_of_its_own(&self) -> Option<&'static str> {
        let settings = [
            (self.keys.is_some(), "keys"),
            (self.offer != Offer::default(), "revisions"),
            (self.registry.tables().cache != CacheHints::default(), "cache"),
            // A server that is another one may lose those of that.
            (!self.experimental.is_empty() && self.beyond.is_none(), "experimental"),
            (self.tasks.is_some(), "tasks"),
            (self.fleet.is_some(), "fleet"),
            (self.registry.tables().hides_apps, "hide_unusable_apps"),
        ];
        settings.into_iter().find_map(|(is_set, setting)| is_set.then_some(setting))
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
