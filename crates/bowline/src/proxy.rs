//! Another server as a part of this one.
//!
//! A [`Proxy`] forwards everything between the clients of a server, here called the front, and one
//! upstream server, whatever era and transport either side has: tools, prompts, resources and
//! templates with their definitions as they are; completion, progress, log messages and
//! cancellation; changes of lists and resources; and the questions that the upstream server asks.
//! Arguments, `_meta`, trace context and unknown members of requests pass to the letter, except for
//! what belongs to each hop: ids, progress tokens, reserved `_meta`. A modern server hears the
//! capabilities and extensions of the caller. Errors, structured content, `_meta` and unknown
//! members of results pass unchanged. Where both sides speak the same revision, results pass to the
//! letter; otherwise they are adapted.
//!
//! [`Proxy::into_server`] is the upstream server as a whole: it also offers its extensions, reads
//! resources that it does not list, and passes on methods that the protocol does not have.
//!
//! # Questions
//!
//! The upstream server sees a client that can be asked anything. What the caller at the front
//! cannot answer is refused; a modern server is told in each request what its caller can do.
//!
//! A legacy server asks on its connection. Over HTTP the question arrives in the stream of the call
//! that it belongs to. On a pipe nothing says to which call it belongs: it goes to the only call in
//! flight, or to the session from which all calls in flight come. With calls of several callers in
//! flight the question is refused, because it could reach the wrong user. A proxy that can open
//! [further connections](ProxyBuilder::further) gives each call one of its own from the first
//! question on. Log messages find their call in the same way; those that belong to no single
//! caller are dropped.
//!
//! A modern caller is asked by the answer to its request. While it thinks, the call to a legacy
//! server goes on in this process, at most for
//! [`Limits::request_state_age`](crate::Limits::request_state_age); so the caller must come back to
//! the same process. With a modern server there is no such limit: its state travels along, sealed.
//!
//! # Tasks
//!
//! Calls of tools that can run as tasks become tasks of the front, in the generation that the
//! caller knows, and are kept where [`Server::tasks`] says. The proxy waits for what the upstream
//! server does, which may be a task of its own, in either generation; dropping or cancelling the
//! task at the front cancels it there.
//!
//! # What is not forwarded
//!
//! Changes of the caller's roots, `notifications/elicitation/complete`, and notifications that the
//! protocol does not have. Except by [`Proxy::into_server`]: instructions, extensions, methods that
//! the protocol does not have, and URIs that the upstream server neither lists nor has a template
//! for.

mod beyond;
mod builder;
mod crossing;
mod entries;
mod forward;
mod losses;
mod mirror;
mod params;
mod parked;
mod picked;
mod pool;
mod route;
mod subscribed;
mod upstream;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::builder::ProxyBuilder;
pub use self::losses::{Loss, Losses};
use self::mirror::{Added, Mirror};
pub use self::picked::{Listed, Picked};
use crate::client::{CallError, Client, ClientBuilder, OpenError, Target};
use crate::server::{Live, Nest, Offered};
use crate::{Limits, Part, Parts, Server};

/// How long a call may take, and a question wait: caller and server know, and nobody here does.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Another server as a part of this one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use bowline::{Client, Proxy, Server, Tool};
/// use serde_json::json;
///
/// // Usually a `Command` or a URL.
/// let files = Server::new("files", "1.0.0").with(Tool::new("list", || async { "a.txt" }));
///
/// let front = Server::new("front", "1.0.0").nest("files", Proxy::connect(files).await?);
/// let client = Client::connect(front).await?;
/// assert_eq!(client.call_tool("files_list", json!({})).text().await?, "a.txt");
/// # Ok(())
/// # }
/// ```
///
/// The connection lasts as long as the server that the proxy was added to.
/// [The module](self) says what is forwarded and how.
#[derive(Clone)]
#[must_use = "a proxy does nothing until it is added to a server"]
pub struct Proxy {
    mirror: Arc<Mirror>,
}

/// Why there is no proxy.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The upstream server cannot be reached, or rejects the proxy.
    #[error("the upstream server cannot be reached")]
    Open(#[from] OpenError),
    /// The upstream server does not say what it has.
    #[error("the upstream server cannot be listed")]
    List(#[from] CallError),
}

impl ProxyError {
    /// The same for others than the server's operator: without what its process wrote to standard
    /// error, which may contain secrets.
    #[must_use]
    pub fn without_stderr(&self) -> Self {
        match self {
            Self::Open(error) => Self::Open(error.without_stderr()),
            Self::List(error) => Self::List(error.without_stderr()),
        }
    }
}

impl Proxy {
    /// Connects to the upstream server, and lists what it has.
    ///
    /// # Errors
    /// When the server cannot be reached or listed.
    pub async fn connect(target: impl Into<Target>) -> Result<Self, ProxyError> {
        Self::connect_with(Client::builder("bowline", env!("CARGO_PKG_VERSION")), target).await
    }

    /// The same with a client of one's own: its name, timeouts, limits and hooks. Its handlers for
    /// questions are not used: the proxy passes all questions on.
    ///
    /// # Errors
    /// When the server cannot be reached or listed.
    pub async fn connect_with(
        client: ClientBuilder,
        target: impl Into<Target>,
    ) -> Result<Self, ProxyError> {
        Self::builder(client).connect(target).await
    }

    /// A proxy with more settings: which tools it has, and what the upstream server may ask.
    pub fn builder(client: ClientBuilder) -> ProxyBuilder {
        ProxyBuilder::new(client)
    }

    /// A server that introduces itself as the upstream server does, with the same instructions, and
    /// has everything that the upstream server has: its extensions too, resources that it does not
    /// list, and methods that the protocol does not have. Its callers and the upstream server
    /// decide how long a call takes: the [deadline](Limits::deadline) is a day.
    pub fn into_server(self) -> Server {
        let limits = Limits { deadline: LONGEST, ask_timeout: LONGEST, ..Limits::default() };
        let mut server = Server::new("bowline", env!("CARGO_PKG_VERSION")).limits(limits);
        let mut parts = Parts::default();
        if let Some(peer) = self.client().peer() {
            if let Some(info) = &peer.info {
                server = server.introduced_as(info.clone());
            }
            if let Some(instructions) = &peer.instructions {
                server = server.instructions(instructions);
            }
            let offers = &peer.capabilities;
            parts.offered = Offered {
                tools: offers.tools.is_some(),
                prompts: offers.prompts.is_some(),
                resources: offers.resources.is_some(),
                apps: false,
            };
            server = beyond::declare(server, &peer);
        }
        self.mirror.take_any_uri();
        let beyond = beyond::beyond(&self.mirror.upstream);
        server.with(parts).with(self).beyond(beyond)
    }

    /// Reads the lists of the upstream server again, soon: after an outage that the connection has
    /// outlived, for instance. Otherwise they are read again when the server reports a change, in
    /// a new connection, and every few minutes where the server does not report changes.
    pub fn refresh(&self) {
        self.mirror.refresh();
    }

    /// What the upstream server lists and the proxy leaves out, because nobody can be served it:
    /// why, with its name.
    pub fn left_out(&self) -> Vec<String> {
        self.mirror.left_out()
    }

    /// How often something could not be passed on. Outlives the proxy.
    pub fn losses(&self) -> Arc<Losses> {
        self.mirror.upstream.pool.losses()
    }

    /// Closes all connections to the upstream server, and waits for that: a process is asked to
    /// stop before it is killed, a session over HTTP is ended. A program that exits without this
    /// leaves the server no time to clean up.
    pub async fn close(&self) {
        self.mirror.upstream.pool.close().await;
    }

    /// The client of the upstream server, for everything else that one may want to know or do.
    pub fn client(&self) -> &Client {
        &self.mirror.upstream.client
    }
}

impl Part for Proxy {
    fn add_to(self, parts: &mut Parts) {
        let entries = self.mirror.entries();
        let added = Added { mirror: self.mirror, entries: Arc::clone(&entries) };
        let live = Live { part: Arc::new(added), nest: Nest::default() };
        let entries = entries.as_ref().clone();
        parts.add(Parts { entries, live: vec![live], ..Parts::default() });
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("client", self.client()).finish_non_exhaustive()
    }
}
