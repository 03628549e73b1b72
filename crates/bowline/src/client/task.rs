//! Tasks: calls that a server works on while nobody waits.
//!
//! There are two generations. In 2025-11-25 the client requests that a call runs as a task; since
//! 2026-07-28 the server decides, if the client declares the extension. Both look the same here. A
//! call that becomes a task is waited for like any other ([`drive`]), unless the caller wants a
//! handle.

mod core;
mod create;
mod drive;
mod pace;
mod push;
mod state;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_proto::decode::DecodeError;
use bowline_proto::json::Json;
use bowline_proto::method::{CallTool, CancelTask, GetTask, GetTaskDetail, Method, StopTask};
use bowline_proto::model::{CallToolResult, RequestMeta, TaskParams, task_extension};
use bowline_proto::revision::{Outcome, Revision, decode_outcome};

use self::drive::request;
pub(super) use self::push::{TaskFeed, TaskFeeds};
pub use self::state::TaskState;
use self::state::Track;
use super::Client;
use super::call::CallOptions;
use super::error::CallError;
use super::list::List;
use super::shared::Shared;

/// A function that receives what a task does.
pub(super) type OnStatus = Arc<Mutex<dyn FnMut(&TaskState) + Send>>;

/// What became of a call that was [started](super::ToolCall::start).
#[derive(Debug, Clone)]
pub enum Started {
    /// The server runs it as a task.
    Task(TaskHandle),
    /// The server answered at once.
    Done(CallToolResult),
}

impl Started {
    /// The task, if there is one.
    pub fn task(&self) -> Option<&TaskHandle> {
        match self {
            Self::Task(task) => Some(task),
            Self::Done(_) => None,
        }
    }

    /// Waits for the result, if it is not there yet.
    ///
    /// # Errors
    /// As [`TaskHandle::wait`].
    pub async fn wait(self) -> Result<CallToolResult, CallError> {
        match self {
            Self::Task(task) => task.wait().await,
            Self::Done(result) => Ok(result),
        }
    }
}

/// A task on the server: a call that goes on whether or not anybody waits for it. Cheap to clone.
///
/// Dropping a handle leaves the task alone. Store its [`id`](Self::id) and the task can be found
/// again by [`Client::resume_task`], even by another process.
#[derive(Clone)]
pub struct TaskHandle {
    client: Client,
    track: Arc<Track>,
    /// What the server said when it created the task.
    created: Option<Arc<TaskState>>,
    options: CallOptions,
}

impl Client {
    /// A handle to a task that was started earlier, perhaps by another process. Nothing is sent
    /// until the handle is used.
    pub fn resume_task(&self, id: impl Into<String>) -> TaskHandle {
        let track = Arc::new(Track::new(id.into(), None));
        TaskHandle { client: self.clone(), track, created: None, options: CallOptions::default() }
    }

    /// The task that the result of `tools/call` announces, if it does: in 2025-11-25 only where
    /// the call requested one.
    pub(crate) fn created_task(
        revision: Revision,
        result: &Json,
    ) -> Result<Option<TaskState>, CallError> {
        if revision.is_modern() {
            let outcome = decode_outcome::<CallTool>(revision, result.as_raw())?;
            return Ok(match outcome {
                Outcome::Task(created) => Some(created.task.into()),
                _ => None,
            });
        }
        create::created(result)
    }

    /// Waits for the end of a task that nobody else knows of: dropping it cancels the task.
    pub(crate) async fn end_of_task(
        &self,
        state: TaskState,
        timeout: Duration,
        hear: impl FnMut(&TaskState) + Send + 'static,
    ) -> Result<Json, CallError> {
        let on_status: OnStatus = Arc::new(Mutex::new(hear));
        let options = CallOptions {
            total: Some(timeout),
            on_status: Some(on_status),
            ..CallOptions::default()
        };
        wait_or_cancel(&self.shared, state, &options).await
    }

    /// Lists the tasks on the server. Only 2025-11-25 can: in any other revision this fails with
    /// [`CallError::NoSuchMethod`].
    pub fn list_tasks(&self) -> List<bowline_proto::method::ListTasks> {
        List::list(self)
    }
}

impl TaskHandle {
    pub(super) fn new(
        client: &Client,
        state: TaskState,
        tool: String,
        options: CallOptions,
    ) -> Self {
        let track = Arc::new(Track::new(state.id.clone(), Some(tool)));
        Self { client: client.clone(), track, created: Some(Arc::new(state)), options }
    }

    /// The id of the task.
    pub fn id(&self) -> &str {
        &self.track.id
    }

    /// What the server said when it created the task. `None` for a task that was resumed.
    pub fn created(&self) -> Option<&TaskState> {
        self.created.as_deref()
    }

    /// Sets how long [`wait`](Self::wait) waits in total.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.total = Some(timeout);
        self
    }

    /// Calls `hear` whenever [`wait`](Self::wait) learns something new about the task, in the task
    /// of Rust that waits.
    #[must_use]
    pub fn on_status(mut self, hear: impl FnMut(&TaskState) + Send + 'static) -> Self {
        self.options.on_status = Some(Arc::new(Mutex::new(hear)));
        self
    }

    /// Asks the server what the task does.
    ///
    /// # Errors
    /// When there is no answer, or it is an error; a server rejects a task that it does not know
    /// with [`CallError::Refused`].
    pub async fn status(&self) -> Result<TaskState, CallError> {
        let shared = &self.client.shared;
        let live = shared.ready(GetTask::NAME).await?;
        let had_ended = self.track.has_ended();
        let (method, state) = if live.peer.revision.is_modern() {
            let found = request::<GetTaskDetail>(shared, self.params(), &self.asking()).await?;
            (GetTaskDetail::NAME, TaskState::from(found.task))
        } else {
            let params = core_params(self.id());
            let found = request::<GetTask>(shared, params, &self.asking()).await?;
            (GetTask::NAME, TaskState::from(found.task))
        };
        self.track.check(method, &state, had_ended)?;
        Ok(state)
    }

    /// Waits for the end of the task, answers what the server asks meanwhile with the client's
    /// handlers, and returns the result of the call.
    ///
    /// The [total timeout](super::Timeouts::total) counts from here, and starts over when the task
    /// asked something. When it is over, the task goes on: wait again, or cancel it.
    ///
    /// # Errors
    /// As for a call that is not a task. Also [`CallError::TaskCancelled`] and
    /// [`CallError::TaskExpired`].
    ///
    /// # Cancel safety
    /// The task goes on. Questions that have been answered are not asked again by this handle.
    pub async fn wait(&self) -> Result<CallToolResult, CallError> {
        let shared = &self.client.shared;
        let result = self.wait_json().await?;
        let live = shared.ready(CallTool::NAME).await?;
        let decoded = decode_outcome::<CallTool>(live.peer.revision, result.as_raw())?;
        let Outcome::Complete(result) = decoded else { return Err(not_complete()) };
        match &self.track.tool {
            Some(tool) => shared.tools.check(tool, result),
            None => Ok(result),
        }
    }

    /// As [`wait`](Self::wait), but returns the result as it came.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub async fn wait_json(&self) -> Result<Json, CallError> {
        drive::wait(&self.client.shared, &self.track, self.created(), &self.options).await
    }

    /// Asks the server to stop the task. It may end otherwise if it was about to:
    /// [`wait`](Self::wait) tells.
    ///
    /// # Errors
    /// When there is no answer, or it is an error. In 2025-11-25 that is so for a task that has
    /// ended.
    pub async fn cancel(&self) -> Result<(), CallError> {
        cancel(&self.client.shared, self.id(), &self.asking()).await
    }

    fn params(&self) -> task_extension::TaskParams<'static> {
        extension_params(self.id())
    }

    /// How to make one request about the task.
    fn asking(&self) -> CallOptions {
        CallOptions { idle: self.options.idle, ..CallOptions::default() }
    }
}

impl std::fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskHandle").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// Waits for the task that a call has become. Dropping it, or an error on our side, cancels the
/// task: nobody else knows of it.
pub(super) async fn wait_or_cancel(
    shared: &Arc<Shared>,
    state: TaskState,
    options: &CallOptions,
) -> Result<Json, CallError> {
    let track = Track::new(state.id.clone(), None);
    let mut unwanted = Unwanted { shared, id: Some(state.id.clone()) };
    let outcome = drive::wait(shared, &track, Some(&state), options).await;
    let is_over = match &outcome {
        Ok(_) | Err(CallError::TaskCancelled { .. } | CallError::Refused { .. }) => true,
        Err(_) => false,
    };
    if is_over {
        unwanted.id = None;
    }
    outcome
}

/// A task whose result nobody wants any more, once this is dropped.
struct Unwanted<'a> {
    shared: &'a Arc<Shared>,
    id: Option<String>,
}

impl Drop for Unwanted<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let shared = Arc::clone(self.shared);
        self.shared.spawn(async move {
            if let Err(error) = cancel(&shared, &id, &CallOptions::default()).await {
                tracing::debug!(%error, id, "a task could not be cancelled");
            }
        });
    }
}

async fn cancel(shared: &Arc<Shared>, id: &str, options: &CallOptions) -> Result<(), CallError> {
    let live = shared.ready(StopTask::NAME).await?;
    if live.peer.revision.is_modern() {
        request::<StopTask>(shared, extension_params(id), options).await.map(drop)
    } else {
        request::<CancelTask>(shared, core_params(id), options).await.map(drop)
    }
}

fn extension_params(id: &str) -> task_extension::TaskParams<'static> {
    task_extension::TaskParams { task_id: id.to_owned(), meta: RequestMeta::default() }
}

fn core_params(id: &str) -> TaskParams<'static> {
    TaskParams { task_id: id.to_owned(), meta: RequestMeta::default() }
}

/// The error for a task whose result is a question or another task.
pub(super) fn not_complete() -> CallError {
    DecodeError::new(CallTool::NAME, "the result of the task is not complete").into()
}
