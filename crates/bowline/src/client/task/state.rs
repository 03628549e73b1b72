//! A task as its server describes it, in one form for both generations, and what a client checks
//! about it.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use bowline_proto::decode::DecodeError;
use bowline_proto::model::{Task, TaskStatus, task_extension};
use tokio::time::Instant;

use crate::client::error::CallError;
use crate::client::limits::{ClientLimit, ClientLimits};
use crate::client::shared::lock;
use crate::clock;

/// A task at one moment, as its server describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskState {
    /// Its id.
    pub id: String,
    /// Its status.
    pub status: TaskStatus,
    /// A description of the status, for people.
    pub message: Option<String>,
    /// When it was created, in ISO 8601, by the server's clock.
    pub created_at: String,
    /// When it last changed, in ISO 8601, by the server's clock.
    pub last_updated_at: String,
    /// How long the server keeps it, from its creation; `None` is forever.
    pub ttl: Option<Duration>,
    /// How long the server wants clients to wait between polls.
    pub poll_interval: Option<Duration>,
}

impl From<Task> for TaskState {
    fn from(task: Task) -> Self {
        Self {
            id: task.task_id,
            status: task.status,
            message: task.status_message,
            created_at: task.created_at,
            last_updated_at: task.last_updated_at,
            ttl: task.ttl.map(Duration::from_millis),
            poll_interval: task.poll_interval.map(Duration::from_millis),
        }
    }
}

impl From<task_extension::Task> for TaskState {
    fn from(task: task_extension::Task) -> Self {
        Self {
            id: task.task_id,
            status: task.status,
            message: task.status_message,
            created_at: task.created_at,
            last_updated_at: task.last_updated_at,
            ttl: task.ttl_ms.map(Duration::from_millis),
            poll_interval: task.poll_interval_ms.map(Duration::from_millis),
        }
    }
}

/// What a client remembers about one task between requests.
pub(super) struct Track {
    pub(super) id: String,
    /// The tool whose call it is, if this client made the call.
    pub(super) tool: Option<String>,
    /// When this client first heard of it: its time to live counts from here, because the clocks of
    /// client and server may differ.
    pub(super) since: Instant,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The status, once it is final.
    end: Option<TaskStatus>,
    /// The questions that have been answered, by key. A server never uses a key twice.
    answered: HashSet<String>,
    /// The bytes of these keys.
    bytes: usize,
}

impl Track {
    pub(super) fn new(id: String, tool: Option<String>) -> Self {
        Self { id, tool, since: clock::now(), known: Mutex::default() }
    }

    /// Checks that a description is of this task, and that it does not contradict earlier ones.
    /// Returns whether it is news: one that was sent before the end may arrive after it, unless it
    /// was asked for when the task `had_ended`.
    pub(super) fn check(
        &self,
        method: &str,
        state: &TaskState,
        had_ended: bool,
    ) -> Result<bool, CallError> {
        let wrong = |problem: String| Err(DecodeError::new(method, problem).into());
        if state.id != self.id {
            let (found, asked) = (short(&state.id), short(&self.id));
            return wrong(format!("result.taskId is {found:?}, but task {asked:?} was asked for"));
        }
        let mut known = lock(&self.known);
        if let Some(end) = known.end.filter(|end| *end != state.status) {
            let status = state.status;
            if !status.is_final() && !had_ended {
                return Ok(false);
            }
            return wrong(format!("result.status is {status:?} after {end:?}, which is final"));
        }
        known.end = Some(state.status).filter(|status| status.is_final());
        Ok(true)
    }

    /// Whether the task is known to have ended.
    pub(super) fn has_ended(&self) -> bool {
        lock(&self.known).end.is_some()
    }

    /// Whether a question has not been answered yet.
    pub(super) fn is_new(&self, key: &str) -> bool {
        !lock(&self.known).answered.contains(key)
    }

    /// Checks that one more question may be asked.
    pub(super) fn admit(&self, key: &str, limits: &ClientLimits) -> Result<(), CallError> {
        let known = lock(&self.known);
        let exceeded = |limit, most: usize| {
            let method = "tasks/get".to_owned();
            Err(CallError::LimitExceeded { method, limit, most: most as u64 })
        };
        if known.answered.len() >= limits.task_questions {
            return exceeded(ClientLimit::TaskQuestions, limits.task_questions);
        }
        if known.bytes.saturating_add(key.len()) > limits.task_bytes {
            return exceeded(ClientLimit::TaskBytes, limits.task_bytes);
        }
        Ok(())
    }

    /// Remembers that a question has been answered.
    pub(super) fn note_answered(&self, key: String) {
        let mut known = lock(&self.known);
        known.bytes += key.len();
        known.answered.insert(key);
    }
}

/// The start of a text that a server chose, for error messages.
fn short(text: &str) -> String {
    const MOST: usize = 100;
    text.chars().take(MOST).collect()
}
