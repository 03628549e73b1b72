//! Where a connection stands, for everybody to see.

use std::time::Duration;

use bowline_proto::model::{Implementation, ServerCapabilities};
use bowline_proto::revision::Revision;
use bowline_proto::wire::Id;
use tokio::sync::watch;

use super::error::CloseReason;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The process is being started, or the link is being opened; also while it is restarted.
    Starting,
    /// Finding out what the server speaks.
    Initializing,
    /// Calls can be made.
    Ready,
    /// Being shut down.
    Closing,
    /// Ended for good.
    Closed,
}

/// Where a connection stands, with the reason if it has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Where it stands.
    pub phase: Phase,
    /// Why it ended, or why it is being started again.
    pub reason: Option<CloseReason>,
    /// How often it has been opened, this time included.
    pub generation: u64,
}

/// A phase was not reached.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WaitError {
    /// Not in time.
    #[error("still {:?} after {after:?}", state.phase)]
    TimedOut {
        /// Where it stood instead.
        state: State,
        /// How long it was waited for.
        after: Duration,
    },
    /// Never: the connection has ended.
    #[error("the connection has ended")]
    Closed {
        /// Why.
        state: State,
    },
}

/// What a server is, once it is known.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Peer {
    /// What is spoken with it.
    pub revision: Revision,
    /// Who it is. A modern server need not say.
    pub info: Option<Implementation>,
    /// What it can do.
    pub capabilities: ServerCapabilities,
    /// How to use it, for the model.
    pub instructions: Option<String>,
    /// The revisions that it listed, where it did.
    pub listed: Vec<String>,
}

/// A call that waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingCall {
    /// Under which it was sent.
    pub id: Id,
    /// Which question.
    pub method: String,
    /// How long it has waited.
    pub age: Duration,
}

/// Sees every phase that a connection is in when it looks.
#[derive(Debug, Clone)]
pub struct StateWatch(pub(super) watch::Receiver<State>);

impl StateWatch {
    /// Where the connection stands.
    pub fn state(&self) -> State {
        self.0.borrow().clone()
    }

    /// Waits for a change. `None` after the last one.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn changed(&mut self) -> Option<State> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }

    /// Waits until the connection is in `phase`.
    ///
    /// # Errors
    /// When that takes longer than `timeout`, or cannot happen any more.
    pub async fn wait_for(&mut self, phase: Phase, timeout: Duration) -> Result<State, WaitError> {
        let settled = |state: &State| state.phase == phase || state.phase == Phase::Closed;
        // If the connection is gone, what it said last stands.
        let waited = tokio::time::timeout(timeout, self.0.wait_for(settled)).await.map(drop);
        let state = self.state();
        match waited {
            _ if state.phase == phase => Ok(state),
            Ok(()) => Err(WaitError::Closed { state }),
            Err(_) => Err(WaitError::TimedOut { state, after: timeout }),
        }
    }
}
