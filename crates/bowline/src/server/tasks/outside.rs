//! Tasks whose work is done outside the server: by a queue, a build service, a person.

use std::fmt;
use std::time::Duration;

use bowline_proto::error::ErrorObject;

use super::super::answer::Answer;
use super::super::error::HandlerError;
use super::super::output::{ToolOutcome, ToolOutput};
use super::Tasks;
use super::ending::check_length;
use super::link::cut;
use super::record::{State, TaskRecord};
use super::shared::Updated;
use super::size::written;
use super::store::StoreError;
use super::view::payload;
use crate::clock;

/// How long a handler may take to return after the work elsewhere is done.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a task is looked at whose handler may run in another process.
const LOOK: Duration = Duration::from_millis(500);

/// What a tool returns whose work goes on outside the server.
///
/// The task stays as it is until somebody ends it with [`Tasks::outside`], in this process or in
/// another one that uses the same store.
///
/// ```
/// use bowline::{Context, Elsewhere, HandlerError, Server, TaskMode, Tasks, Tool};
///
/// # async fn enqueue(_: &str) {}
/// let tasks = Tasks::in_memory();
/// let build = Tool::new("build", |context: Context| async move {
///     let id = context.task_id().ok_or("this runs only as a task")?;
///     enqueue(id).await;
///     Ok::<_, HandlerError>(Elsewhere)
/// });
/// let server = Server::new("ci", "1.0.0")
///     .with(build.task(TaskMode::Required))
///     .tasks(tasks.clone());
///
/// // Later, when the queue reports that the build is done:
/// # async fn report(tasks: Tasks, id: &str) -> Result<(), bowline::tasks::OutsideError> {
/// tasks.outside(id).complete("built").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Elsewhere;

impl ToolOutput for Elsewhere {
    fn into_outcome(self) -> ToolOutcome {
        Err(HandlerError::Instead(Box::new(Answer::Elsewhere)))
    }
}

/// A task whose work is done outside the server.
#[derive(Debug, Clone)]
pub struct OutsideTask {
    pub(super) tasks: Tasks,
    pub(super) id: String,
}

/// Why a task was not changed from outside.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutsideError {
    /// There is no such task, or it has expired.
    #[error("no such task, or it has expired")]
    Unknown,
    /// It has ended, for instance because its client has cancelled it. Stop working on it.
    #[error("the task has already ended")]
    Ended,
    /// Its handler still runs in the server: it has not returned [`Elsewhere`] yet, within 5
    /// seconds.
    #[error("the handler of the task still runs")]
    Running,
    /// The output cannot be the result of a tool.
    #[error("the output cannot be the result of a task: {0}")]
    Output(String),
    /// The store failed. Try again.
    #[error("the task cannot be stored")]
    Store(#[from] StoreError),
}

impl OutsideTask {
    /// Ends the task with what a tool may return.
    ///
    /// # Errors
    /// When the task does not wait for that, or the output is a question, too long, or does not
    /// match the output schema of the tool.
    pub async fn complete(&self, output: impl ToolOutput) -> Result<(), OutsideError> {
        let mut result = match output.into_outcome() {
            Ok(result) => result,
            Err(HandlerError::Failed(message)) => {
                bowline_proto::model::CallToolResult::failure(message)
            }
            Err(HandlerError::Refused(error)) => return self.fail(error).await,
            Err(HandlerError::Instead(_)) => {
                let message = "questions can only be asked by the handler".to_owned();
                return Err(OutsideError::Output(message));
            }
        };
        let shared = self.tasks.shared();
        let found = shared.store.load(&self.id).await?.ok_or(OutsideError::Unknown)?;
        let tool = shared.core().and_then(|core| core.registry.tool(&found.tool).0);
        if let Some(tool) = tool {
            result = match tool.finish(Ok(result)) {
                Ok(Answer::Tool(result)) => result,
                Err(failure) => return Err(OutsideError::Output(failure.error.message)),
                Ok(_) => return Err(OutsideError::Output("it is not a result".to_owned())),
            };
        }
        let is_error = result.is_error == Some(true);
        let result = payload(&mut result, found.revision).map_err(OutsideError::Output)?;
        check_length("result", result.as_str().len(), shared.limits.result)
            .map_err(OutsideError::Output)?;
        self.end(&State::Completed { result, is_error }).await
    }

    /// Ends the task with an error of the protocol. For a failure that the model should read,
    /// [complete](Self::complete) it with a [`HandlerError`].
    ///
    /// # Errors
    /// When the task does not wait for that, or the error is too long.
    pub async fn fail(&self, error: ErrorObject) -> Result<(), OutsideError> {
        let longest = self.tasks.shared().limits.result;
        check_length("error", written(&error), longest).map_err(OutsideError::Output)?;
        self.end(&State::Failed { error }).await
    }

    /// Says what the task is doing. Only the first 1,024 bytes are kept.
    ///
    /// # Errors
    /// When the task does not wait for that; [`OutsideError::Ended`] if it was cancelled.
    pub async fn status(&self, message: impl Into<String>) -> Result<(), OutsideError> {
        let message = cut(message.into());
        self.change(|record, now| record.describe(now, message.clone())).await
    }

    async fn end(&self, end: &State) -> Result<(), OutsideError> {
        self.change(|record, now| _ = record.finish(now, end.clone())).await
    }

    async fn change(&self, change: impl Fn(&mut TaskRecord, u64)) -> Result<(), OutsideError> {
        let shared = self.tasks.shared();
        let watcher = shared.watch(&self.id);
        let patience = clock::now() + PATIENCE;
        loop {
            let mut changed = std::pin::pin!(watcher.notified());
            // From here on, no change is missed.
            changed.as_mut().enable();
            let updated = shared.update(&self.id, |record, now| {
                matches!(record.state, State::Elsewhere).then(|| change(record, now))
            });
            match updated.await? {
                Updated::Changed(..) => return Ok(()),
                Updated::Missing => return Err(OutsideError::Unknown),
                Updated::Same(record) if record.state.is_final() => {
                    return Err(OutsideError::Ended);
                }
                // Whoever works elsewhere may be faster than the handler, which still returns.
                Updated::Same(record)
                    if matches!(record.state, State::Working) && clock::now() < patience =>
                {
                    let _ = tokio::time::timeout(LOOK, changed).await;
                }
                Updated::Same(_) => return Err(OutsideError::Running),
            }
        }
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("limits", &self.shared().limits).finish_non_exhaustive()
    }
}
