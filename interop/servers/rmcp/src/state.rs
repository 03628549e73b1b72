//! The state of the server: per process, and per session.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::LoggingLevel;
use rmcp::task_manager::TaskManager;
use tokio::sync::broadcast;

/// The resource that changes.
pub const COUNTER: &str = "test://counter";

/// The counters of the process, shared by all its sessions.
pub struct State {
    pub touched: AtomicU64,
    pub abandoned: AtomicU64,
    pub ended: AtomicU64,
    pub has_extra: AtomicBool,
    pub tasks: TaskManager,
    /// For listeners in the modern era.
    pub changes: broadcast::Sender<Change>,
    /// Receivers for future listeners. The SDK acknowledges a subscription before it lets the
    /// server listen, and nothing may be lost in between.
    pub listeners: Mutex<VecDeque<broadcast::Receiver<Change>>>,
}

/// A change.
#[derive(Clone, Copy)]
pub enum Change {
    Counter,
    Tools,
}

impl State {
    pub fn new() -> Self {
        Self {
            touched: AtomicU64::new(0),
            abandoned: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            has_extra: AtomicBool::new(false),
            tasks: TaskManager::new(),
            changes: broadcast::Sender::new(16),
            listeners: Mutex::default(),
        }
    }

    /// Starts collecting changes for the next listener.
    pub fn begin_listening(&self) {
        let changes = self.changes.subscribe();
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push_back(changes);
    }

    /// The changes since the listener subscribed.
    pub fn listen(&self) -> broadcast::Receiver<Change> {
        let begun = self.listeners.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        begun.unwrap_or_else(|| self.changes.subscribe())
    }
}

/// The server of one session, or of one request.
pub struct Interop {
    pub state: Arc<State>,
    level: Mutex<LoggingLevel>,
    wanted: Mutex<HashSet<String>>,
}

impl Interop {
    pub fn new(state: Arc<State>) -> Self {
        Self { state, level: Mutex::new(LoggingLevel::Debug), wanted: Mutex::default() }
    }

    pub fn log_level(&self) -> LoggingLevel {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_log_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    /// Whether the session is subscribed to changes, in the legacy era.
    pub fn wants(&self, uri: &str) -> bool {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).contains(uri)
    }

    pub fn want(&self, uri: String, is_wanted: bool) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if is_wanted {
            wanted.insert(uri)
        } else {
            wanted.remove(&uri)
        };
    }
}
