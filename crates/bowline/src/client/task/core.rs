//! Waits for the end of a task of 2025-11-25.
//!
//! One request, `tasks/result`, stays open until the task has ended, and its answer is the result.
//! Questions of the server come as requests of their own. The client polls besides, to see that the
//! task is alive and what it does. Some servers answer `tasks/result` with an error while the task
//! is running: then it is asked again at the end.

use bowline_proto::decode::decode_params;
use bowline_proto::json::Json;
use bowline_proto::method::{CallTool, GetTask, GetTaskPayload, Method, Notice, TaskStatusChanged};
use bowline_proto::model::{RequestMeta, TaskParams, TaskStatus};
use bowline_proto::session::Timeout;
use tokio::time::sleep_until;

use super::drive::{Drive, cancelled, overdue};
use super::push::Pushed;
use super::state::TaskState;
use crate::client::call::building;
use crate::client::error::CallError;
use crate::client::exchange::Sending;
use crate::client::notification::Boxed;
use crate::client::outgoing::Round;
use crate::client::shared::{Hears, lock};
use crate::clock;

/// The request for the result.
enum Payload<'a> {
    /// It is open.
    Open(Boxed<'a, Result<Json, CallError>>),
    /// It failed; what the task has become shows whether that is the outcome.
    Failed(CallError),
    /// It is not open. The status opens it.
    Closed,
}

/// What happened while waiting.
enum Event {
    Payload(Result<Json, CallError>),
    Pushed(Pushed),
    Due,
}

impl<'a> Drive<'a> {
    pub(super) async fn run_core(mut self) -> Result<Json, CallError> {
        let mut payload = Payload::Open(self.payload());
        let mut is_over = false;
        loop {
            let event = tokio::select! {
                biased;
                outcome = payload.outcome() => Event::Payload(outcome),
                pushed = self.feed.next() => Event::Pushed(pushed),
                () = sleep_until(self.pace.due()), if !is_over => Event::Due,
                error = overdue(self.deadline, self.total()) => return Err(error),
            };
            let had_ended = self.track.has_ended();
            let state = match event {
                Event::Payload(Ok(result)) => return Ok(result),
                Event::Payload(Err(error)) if is_over => return Err(error),
                Event::Payload(Err(error)) => {
                    self.check_failure(&error)?;
                    payload = Payload::Failed(error);
                    self.pace.hurry();
                    continue;
                }
                Event::Pushed(pushed) => read(&pushed)?.map(|state| (state, false)),
                Event::Due => self.poll().await?.map(|state| (state, had_ended)),
            };
            let Some((state, had_ended)) = state else { continue };
            if !self.observe(GetTask::NAME, &state, had_ended)? {
                continue;
            }
            payload = self.follow(payload, &state)?;
            is_over = state.status.is_final();
            if is_over {
                // The result is there, so it need not be waited for long.
                let patience = clock::now().checked_add(self.idle());
                self.deadline = self.deadline.into_iter().chain(patience).min();
            } else {
                self.check_expiry()?;
            }
        }
    }

    /// What becomes of the request for the result, now that the status is known.
    fn follow(
        &mut self,
        payload: Payload<'a>,
        state: &TaskState,
    ) -> Result<Payload<'a>, CallError> {
        let is_waiting = state.status == TaskStatus::InputRequired;
        if is_waiting {
            // Answering takes as long as it takes.
            self.restart_deadline();
            let is_asked = !lock(&self.shared.inbound).is_empty();
            self.count_repeat(is_asked)?;
        } else {
            self.clear_repeats();
        }
        match payload {
            _ if state.status == TaskStatus::Cancelled => Err(cancelled(state.clone())),
            Payload::Failed(error) if state.status.is_final() && !self.may_pass(&error) => {
                Err(error)
            }
            Payload::Failed(error) if self.may_pass(&error) => Ok(Payload::Open(self.payload())),
            Payload::Failed(_) => Ok(Payload::Closed),
            Payload::Closed if is_waiting || state.status.is_final() => {
                Ok(Payload::Open(self.payload()))
            }
            payload => Ok(payload),
        }
    }

    /// Fails unless the status can explain why there is no result.
    fn check_failure(&self, error: &CallError) -> Result<(), CallError> {
        match error {
            CallError::Refused { .. } => Ok(()),
            error if self.may_pass(error) => Ok(()),
            error => Err(error.clone()),
        }
    }

    async fn poll(&mut self) -> Result<Option<TaskState>, CallError> {
        let params = params(&self.track.id);
        let found = self.ask::<GetTask>(params).await?;
        Ok(found.map(|found| found.task.into()))
    }

    /// Asks for the result, and waits as long as the task runs. Polls tell whether it does.
    fn payload(&self) -> Boxed<'a, Result<Json, CallError>> {
        let (shared, params) = (self.shared, params(&self.track.id));
        Box::pin(async move {
            let build = building::<GetTaskPayload>(params);
            let (live, outgoing) =
                shared.prepare::<GetTaskPayload>(build, &Default::default()).await?;
            let sending = Sending {
                outgoing: &outgoing,
                round: &Round::default(),
                claim: &live.claim,
                timeout: Timeout::NEVER,
                hears: Hears::Nothing,
                is_cancellable: true,
            };
            let result = shared.exchange(&live.link, &sending).await;
            // As if the call had never been a task.
            result.map_err(|error| error.into_call_error(CallTool::NAME))
        })
    }
}

impl Payload<'_> {
    async fn outcome(&mut self) -> Result<Json, CallError> {
        match self {
            Self::Open(request) => request.await,
            Self::Failed(_) | Self::Closed => std::future::pending().await,
        }
    }
}

fn params(id: &str) -> TaskParams<'static> {
    TaskParams { task_id: id.to_owned(), meta: RequestMeta::default() }
}

/// The task that a notification describes.
fn read(pushed: &Pushed) -> Result<Option<TaskState>, CallError> {
    let Pushed::Report(report) = pushed else { return Ok(None) };
    let params = decode_params(TaskStatusChanged::NAME, Some(report.as_raw()))?;
    let bowline_proto::model::TaskStatusParams { task, .. } = params;
    Ok(Some(task.into()))
}
