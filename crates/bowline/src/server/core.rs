//! What all connections of a server share.

use std::mem;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use bowline_proto::json::Sparse;
use bowline_proto::model::{
    DiscoverResult, Implementation, InitializeResult, ListCapability, ResourcesCapability,
    ServerCapabilities, ServerTasksCapability, Settings,
};
use bowline_proto::revision::{Offer, Revision};
use serde_json::Map;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::account::Accounts;
use super::answer::Signature;
use super::app;
use super::audit;
use super::beyond::Beyond;
use super::extension::Extensions;
use super::fleet::Joined;
use super::limits::Limits;
use super::middleware::Middleware;
use super::registry::Registry;
use super::running::Running;
use super::session_state::Principals;
use super::state::States;
use super::tasks::Tasks;
use crate::clock;
use crate::seal::KeyRing;

/// The keys that request states are sealed with, once they are needed.
pub(crate) type Keys = LazyLock<KeyRing, Box<dyn FnOnce() -> KeyRing + Send>>;

/// Random keys are generated when the first state is sealed: most servers never ask anything.
pub(super) fn keys(keys: Option<KeyRing>, max_token: usize) -> Keys {
    Keys::new(Box::new(move || keys.unwrap_or_else(KeyRing::random).with_max_token(max_token)))
}

/// What all connections of a server share.
pub(crate) struct Core {
    pub(crate) info: Implementation,
    pub(crate) instructions: Option<String>,
    pub(crate) registry: Registry,
    pub(crate) limits: Limits,
    pub(crate) keys: Keys,
    pub(crate) offer: Offer,
    pub(crate) states: Arc<States>,
    pub(crate) middleware: Arc<[Arc<dyn Middleware>]>,
    /// The same within the audit.
    pub(crate) audited: Arc<[Arc<dyn Middleware>]>,
    pub(crate) signature: Signature,
    pub(crate) extensions: Extensions,
    pub(crate) experimental: Option<Settings>,
    pub(crate) leftovers: Leftovers,
    pub(crate) principals: Principals,
    pub(crate) accounts: Accounts,
    pub(crate) tasks: Option<Tasks>,
    pub(crate) fleet: Option<Joined>,
    pub(crate) beyond: Option<Arc<Beyond>>,
}

impl Core {
    /// The middleware of every request, with the audit if somebody listens to it.
    pub(crate) fn middleware(&self) -> &Arc<[Arc<dyn Middleware>]> {
        if audit::is_on() { &self.audited } else { &self.middleware }
    }

    /// Takes note of a notification that stops here.
    pub(crate) fn note(&self, method: &str) {
        if let Some(beyond) = &self.beyond {
            (beyond.notice)(method);
        }
    }

    /// Seconds since 1970, by a clock that all processes of the server share.
    pub(crate) fn unix_seconds(&self) -> u64 {
        self.fleet.as_ref().map_or_else(clock::unix_seconds, |joined| joined.now() / 1_000)
    }

    /// Ends what extensions do in the background, such as tasks that run.
    pub(crate) async fn stop_extensions(&self, grace: Duration) {
        self.extensions.stop(grace).await;
    }

    /// Leaves the fleet, once nothing runs any more that other nodes should hear of.
    pub(crate) async fn leave_fleet(&self) {
        if let Some(joined) = &self.fleet {
            joined.fleet.leave().await;
        }
    }

    /// The current capabilities of the server, in a revision.
    pub(crate) fn capabilities(&self, revision: Revision) -> ServerCapabilities {
        let tables = self.registry.tables();
        let list = || ListCapability { list_changed: Some(true) };
        let offered = tables.offered;
        ServerCapabilities {
            experimental: self.experimental.clone(),
            logging: Some(Map::new()),
            completions: tables.completes().then(Map::new),
            prompts: offered.prompts.then(list),
            resources: offered
                .resources
                .then_some(ResourcesCapability { subscribe: Some(true), list_changed: Some(true) }),
            tools: offered.tools.then(list),
            tasks: None,
            extensions: match (offered.apps, self.extensions.declared(revision)) {
                (true, declared) => Some(app::declare(declared)),
                (false, declared) => declared,
            },
            extra: Sparse::from(self.extensions.capabilities.clone()),
        }
    }

    pub(crate) fn initialize_result(
        &self,
        revision: Revision,
        tasks: Option<ServerTasksCapability>,
    ) -> InitializeResult {
        let capabilities = ServerCapabilities { tasks, ..self.capabilities(revision) };
        InitializeResult {
            protocol_version: revision.to_string(),
            capabilities,
            server_info: self.info.clone(),
            instructions: self.instructions.clone(),
            ..InitializeResult::default()
        }
    }

    pub(crate) fn discover_result(&self) -> DiscoverResult {
        DiscoverResult {
            supported_versions: self.offer.listed().iter().map(|it| it.to_string()).collect(),
            capabilities: self.capabilities(Revision::LATEST),
            instructions: self.instructions.clone(),
            ..DiscoverResult::default()
        }
    }
}

/// Middleware that still runs although its request has ended. It gets a short time.
#[derive(Default)]
pub(crate) struct Leftovers(Mutex<JoinSet<()>>);

impl Leftovers {
    pub(crate) fn spawn(&self, time: Duration, work: Running) {
        // Without a runtime the process is ending, and nothing can go on.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(async move { drop(tokio::time::timeout(time, work).await) }, &runtime);
    }

    /// Waits for all of it.
    pub(crate) async fn finish(&self) {
        let mut tasks = mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        while tasks.join_next().await.is_some() {}
    }
}
