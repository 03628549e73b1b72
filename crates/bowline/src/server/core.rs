//! What all connections of a server share.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use bowline_proto::model::{
    DiscoverResult, Implementation, InitializeResult, ListCapability, ResourcesCapability,
    ServerCapabilities, Settings,
};
use bowline_proto::revision::{Offer, Revision};
use serde_json::Map;

use super::answer::Signature;
use super::limits::Limits;
use super::middleware::Middleware;
use super::registry::Registry;
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
    pub(crate) states: States,
    pub(crate) middleware: Arc<[Arc<dyn Middleware>]>,
    pub(crate) signature: Signature,
    pub(crate) extensions: Option<Settings>,
    pub(crate) experimental: Option<Settings>,
}

impl Core {
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
            extensions: self.extensions.clone(),
            extra: Map::new(),
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

/// Values that handlers share, at most one of each type.
#[derive(Default)]
pub(crate) struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl States {
    pub(crate) fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    pub(crate) fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let value = Arc::clone(self.0.get(&TypeId::of::<T>())?);
        value.downcast().ok()
    }
}
