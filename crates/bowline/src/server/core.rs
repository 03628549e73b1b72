//! What all connections of a server share.

use std::mem;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use bowline_proto::json::Sparse;
use bowline_proto::model::{
    DiscoverResult, Implementation, InitializeResult, ListCapability, ResourcesCapability,
    ServerCapabilities, Settings,
};
use bowline_proto::revision::{Offer, Revision};
use serde_json::Map;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::account::Accounts;
use super::answer::Signature;
use super::audit;
use super::extension::Extensions;
use super::limits::Limits;
use super::middleware::Middleware;
use super::registry::Registry;
use super::running::Running;
use super::session_state::Principals;
use super::state::States;
use crate::seal::KeyRing;

/// The keys that request states are sealed with, once they are needed.
pub(crate) type Keys = LazyLock<KeyRing, Box<dyn FnOnce() -> KeyRing + Send>>;

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
}

impl Core {
    /// The middleware of every request, with the audit if somebody listens to it.
    pub(crate) fn middleware(&self) -> &Arc<[Arc<dyn Middleware>]> {
        if audit::is_on() { &self.audited } else { &self.middleware }
    }

    /// The current capabilities of the server.
    pub(crate) fn capabilities(&self) -> ServerCapabilities {
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
            extensions: self.extensions.declared.clone(),
            extra: Sparse::default(),
        }
    }

    pub(crate) fn initialize_result(&self, revision: Revision) -> InitializeResult {
        InitializeResult {
            protocol_version: revision.to_string(),
            capabilities: self.capabilities(),
            server_info: self.info.clone(),
            instructions: self.instructions.clone(),
            ..InitializeResult::default()
        }
    }

    pub(crate) fn discover_result(&self) -> DiscoverResult {
        DiscoverResult {
            supported_versions: self.offer.listed().iter().map(|it| it.to_string()).collect(),
            capabilities: self.capabilities(),
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
