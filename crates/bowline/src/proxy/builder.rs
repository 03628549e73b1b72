//! How a proxy is connected.

use std::fmt;
use std::sync::Arc;

use bowline_proto::model::{ClientCapabilities, Root};

use super::mirror::Mirror;
use super::pool::{Opening, Pool};
use super::upstream::{ToolNames, Upstream};
use super::{Proxy, ProxyError};
use crate::client::{ClientBuilder, Target};

/// The settings of a [`Proxy`]; see [`Proxy::builder`].
#[must_use = "a builder does nothing until it connects"]
pub struct ProxyBuilder {
    client: ClientBuilder,
    names: Option<ToolNames>,
    opening: Opening,
}

/// The most connections, unless more are allowed.
const CONNECTIONS: usize = 16;

impl ProxyBuilder {
    pub(super) fn new(client: ClientBuilder) -> Self {
        let opening = Opening {
            capabilities: None,
            roots: None,
            has_one_caller: false,
            opener: None,
            most: CONNECTIONS,
        };
        Self { client, names: None, opening }
    }

    /// Sets which tools there are and what they are called: `name` gets the upstream server's name
    /// of a tool and returns the name at the front, or `None` to leave the tool out.
    pub fn name_tools(
        mut self,
        name: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.names = Some(Arc::new(name));
        self
    }

    /// Sets what a legacy server hears that it may ask. By default it may ask anything, because
    /// callers differ; where there is one caller, pass on what that one declares.
    pub fn declare(mut self, capabilities: ClientCapabilities) -> Self {
        self.opening.capabilities = Some(capabilities);
        self
    }

    /// Sets the roots that a legacy server gets when it asks, whoever calls and also outside any
    /// call. By default its caller is asked.
    pub fn roots<U: Into<String>>(mut self, roots: impl IntoIterator<Item = U>) -> Self {
        self.opening.roots = Some(roots.into_iter().map(Root::new).collect());
        self
    }

    /// Says that the front has one client only, as on stdio. A question that a legacy server asks
    /// on a pipe then always finds the person that it is for.
    pub fn one_caller(mut self) -> Self {
        self.opening.has_one_caller = true;
        self
    }

    /// Says how to open further connections to the upstream server. A legacy server on a pipe that
    /// asks its callers then gets a connection for each call, as long as calls of other callers
    /// are in flight; so a question always finds the person that it is for.
    pub fn further(
        mut self,
        open: impl Fn() -> (ClientBuilder, Target) + Send + Sync + 'static,
    ) -> Self {
        self.opening.opener = Some(Arc::new(open));
        self
    }

    /// Sets how many connections there may be: 16. Calls that need another one wait.
    pub fn most_connections(mut self, most: usize) -> Self {
        self.opening.most = most.max(1);
        self
    }

    /// Connects to the upstream server, and lists what it has.
    ///
    /// # Errors
    /// When the server cannot be reached or listed.
    pub async fn connect(self, target: impl Into<Target>) -> Result<Proxy, ProxyError> {
        let Self { client, names, opening } = self;
        let pool = Pool::open(client, target.into(), opening).await?;
        let upstream = Upstream::new(pool, names).await?;
        Ok(Proxy { mirror: Mirror::open(upstream).await? })
    }
}

impl fmt::Debug for ProxyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyBuilder").finish_non_exhaustive()
    }
}
