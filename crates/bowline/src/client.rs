//! A client for any MCP server, in any revision, over any transport.
//!
//! ```no_run
//! use bowline::Client;
//! use bowline::client::Command;
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect(Command::new("counter-server")).await?;
//! for tool in client.list_tools().await? {
//!     println!("{}", tool.name);
//! }
//! let sum = client.call_tool("sum", json!({ "a": 1, "b": 2 })).text().await?;
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! [`Client::connect`] takes a [`Command`], a URL, a byte stream ([`Target::stream`]) or a
//! [`Server`](crate::Server) in this process. The client finds out which revision the server
//! speaks. [`Client::builder`] has the rest: handlers for what servers ask
//! ([sampling](ClientBuilder::on_sampling), [forms](ClientBuilder::on_form),
//! [URLs](ClientBuilder::on_url), [roots](ClientBuilder::roots)), timeouts, limits, preferences.
//!
//! # Guarantees
//!
//! - Every call has a deadline ([`Timeouts`]), which progress extends. A call can set its own.
//! - Dropping a call cancels it. A late answer is ignored.
//! - A call that becomes a task on the server is waited for like any other; [`ToolCall::start`]
//!   returns a handle instead.
//! - When the connection ends, every pending call fails with the reason; for a process, with its
//!   exit status and its last lines on standard error.
//! - A process that exits unexpectedly is restarted ([`Restart`]). [Changes](Client::changes)
//!   go on.
//! - What a server may send, and what it may make a client remember, is bounded
//!   ([`ClientLimits`]).
//! - [`Client::close`] leaves no process and no task behind.

/// Login: what [`Endpoint::authorize`](http::Endpoint::authorize) accepts.
#[cfg(feature = "client-auth")]
pub mod auth {
    pub use bowline_auth::client::*;
    pub use bowline_auth::jws::{KeyError, SigningKey};
}
mod budget;
mod builder;
mod cache;
mod call;
mod changes;
mod child;
mod claim;
mod connection;
mod error;
mod exchange;
mod handlers;
mod handshake;
#[cfg(feature = "client-http")]
pub mod http;
mod incoming;
mod json;
mod limits;
mod list;
mod methods;
mod notification;
mod outgoing;
mod restart;
mod rounds;
mod shared;
mod state;
mod supervise;
mod target;
mod task;
mod tools;
mod trace;
mod verdicts;
mod wire;
mod workers;

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use bowline_proto::session::{ConnectError, Preference, Rejection};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use self::builder::ClientBuilder;
pub use self::call::{Call, ProgressStream, Typed};
pub use self::changes::{Change, Changes, Wanted};
pub use self::child::{Command, ProcessGroup, find_program, program_names};
pub use self::error::{CallError, CloseReason, Exit, OpenError};
pub use self::handlers::{FormAnswer, UrlAnswer};
pub use self::json::{JsonCall, JsonRequest};
pub use self::limits::{ClientLimit, ClientLimits, Timeouts};
pub use self::list::{Items, List, Listing, Pages};
pub use self::notification::{Fault, Missed, Notification, Notifications};
pub use self::restart::Restart;
use self::shared::{Shared, lock};
pub use self::state::{Peer, PendingCall, Phase, State, StateWatch, WaitError};
pub use self::target::Target;
pub use self::task::{Started, TaskHandle, TaskState};
pub use self::tools::{ToolCall, ToolRequest};
pub use self::trace::TraceContext;
pub use self::verdicts::Verdicts;
pub use self::wire::{Direction, WireHeader, WireHttp, WireMessage};

/// A connection to an MCP server. Cheap to clone; dropping the last clone closes it.
///
/// Guides: [recipes](crate::guide::client), and [servers behind a server](crate::guide::proxying).
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    handle: Arc<Handle>,
}

/// What keeps a connection open.
struct Handle {
    closing: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Client {
    /// Connects to a server, with default settings.
    ///
    /// # Errors
    /// When the server cannot be reached, rejects the client, or shares no revision with it.
    pub async fn connect(target: impl Into<Target>) -> Result<Self, OpenError> {
        Self::builder("bowline", env!("CARGO_PKG_VERSION")).connect(target).await
    }

    /// Configures a client. The name and version are what the server sees.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(name, version)
    }

    /// The limits that this client enforces.
    pub fn limits(&self) -> &ClientLimits {
        &self.shared.profile.limits
    }

    /// What is known about the server. `None` while there is no connection.
    pub fn peer(&self) -> Option<Arc<Peer>> {
        self.shared.live().map(|live| live.peer)
    }

    /// Waits for the connection, and returns what is known about the server.
    pub(crate) async fn ready(&self, method: &str) -> Result<Arc<Peer>, CallError> {
        self.shared.ready(method).await.map(|live| live.peer)
    }

    /// The state of the connection.
    pub fn state(&self) -> State {
        self.shared.state.borrow().clone()
    }

    /// Watches the state of the connection.
    pub fn watch(&self) -> StateWatch {
        StateWatch(self.shared.state.subscribe())
    }

    /// Waits until the connection reaches a phase.
    ///
    /// # Errors
    /// When that takes longer than `timeout`, or can no longer happen.
    pub async fn wait_for(&self, phase: Phase, timeout: Duration) -> Result<State, WaitError> {
        self.watch().wait_for(phase, timeout).await
    }

    /// The pending calls, oldest first.
    pub fn pending(&self) -> Vec<PendingCall> {
        self.shared.pending()
    }

    /// The id of the server's process, while it runs.
    pub fn process_id(&self) -> Option<u32> {
        let id = self.shared.process.load(Ordering::Relaxed);
        (id != 0).then_some(id)
    }

    /// Subscribes to notifications, from now on and in order.
    pub fn notifications(&self) -> Notifications {
        Notifications(self.shared.notifications.subscribe())
    }

    /// Closes the connection: pending calls fail, and a process is asked to stop and killed if it
    /// does not. Nothing is left behind when this returns.
    pub async fn close(self) {
        self.handle.closing.send_replace(true);
        let task = lock(&self.handle.task).take();
        match task {
            Some(task) => drop(task.await),
            // Another clone is closing the connection.
            None => {
                let mut state = self.shared.state.subscribe();
                let _ = state.wait_for(|state| state.phase == Phase::Closed).await;
            }
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("state", &self.state())
            .field("peer", &self.peer())
            .finish_non_exhaustive()
    }
}
