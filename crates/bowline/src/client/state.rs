//! The state of a connection.

use std::time::Duration;

use bowline_proto::debug_as_sentence;
use bowline_proto::model::{Implementation, ServerCapabilities};
use bowline_proto::revision::Revision;
use bowline_proto::wire::Id;
use tokio::sync::watch;

use super::error::CloseReason;

/// The phase of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The process is being started or restarted, or the link is being opened.
    Starting,
    /// Finding out which revision the server speaks.
    Initializing,
    /// Calls can be made.
    Ready,
    /// Shutting down.
    Closing,
    /// Closed for good.
    Closed,
}

/// The state of a connection, with the reason if it has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The phase.
    pub phase: Phase,
    /// Why it ended, or is being restarted.
    pub reason: Option<CloseReason>,
    /// How often it has been opened, including this time.
    pub generation: u64,
}

/// Why a phase was not reached.
#[derive(Clone, thiserror::Error)]
pub enum WaitError {
    /// Not in time.
    #[error("still {:?} after {after:?}", state.phase)]
    TimedOut {
        /// The state instead.
        state: State,
        /// How long the caller waited.
        after: Duration,
    },
    /// Never: the connection has ended.
    #[error("the connection has ended")]
    Closed {
        /// The final state, with the reason.
        state: State,
    },
}

debug_as_sentence!(WaitError);

/// What is known about a server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Peer {
    /// The negotiated revision.
    pub revision: Revision,
    /// Its name and version. A modern server may omit them.
    pub info: Option<Implementation>,
    /// Its capabilities.
    pub capabilities: ServerCapabilities,
    /// Instructions for the model.
    pub instructions: Option<String>,
    /// The revisions that it listed, if it did.
    pub listed: Vec<String>,
}

/// A pending call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingCall {
    /// Its id on the wire.
    pub id: Id,
    /// Its method.
    pub method: String,
    /// How long it has waited.
    pub age: Duration,
}

/// Watches the state of a connection. A slow watcher sees only the latest state.
#[derive(Debug, Clone)]
pub struct StateWatch(pub(super) watch::Receiver<State>);

impl StateWatch {
    /// The state of the connection.
    pub fn state(&self) -> State {
        self.0.borrow().clone()
    }

    /// Waits for a change. Returns `None` after the last one.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn changed(&mut self) -> Option<State> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }

    /// Waits until the connection reaches `phase`.
    ///
    /// # Errors
    /// When that takes longer than `timeout`, or can no longer happen.
    pub async fn wait_for(&mut self, phase: Phase, timeout: Duration) -> Result<State, WaitError> {
        let settled = |state: &State| state.phase == phase || state.phase == Phase::Closed;
        // If the connection is gone, its last state counts.
        let waited = tokio::time::timeout(timeout, self.0.wait_for(settled)).await.map(drop);
        let state = self.state();
        match waited {
            _ if state.phase == phase => Ok(state),
            Ok(()) => Err(WaitError::Closed { state }),
            Err(_) => Err(WaitError::TimedOut { state, after: timeout }),
        }
    }
}
