//! Waits for the end of a task: what both generations have in common, and the extension.

use std::sync::Arc;
use std::time::Duration;

use bowline_proto::decode::{DecodeError, decode_params, decode_result};
use bowline_proto::json::Json;
use bowline_proto::members::RawMembers;
use bowline_proto::method::{CallTool, GetTaskDetail, Method, Notice, TaskChanged, UpdateTask};
use bowline_proto::model::task_extension::{GetTaskResult, TaskParams, UpdateTaskParams};
use bowline_proto::model::{
    InputRequests, RequestMeta, RequestParams, Task, TaskStatus, task_extension,
};
use bowline_proto::revision::{Outcome, decode_outcome};
use tokio::time::{Instant, sleep_until};

use super::pace::Pace;
use super::push::{Pushed, TaskFeed, subscribe};
use super::state::{TaskState, Track};
use crate::client::call::{CallOptions, building};
use crate::client::error::CallError;
use crate::client::limits::{ClientLimit, ClientLimits};
use crate::client::notification::Boxed;
use crate::client::outgoing::Round;
use crate::client::restart::Backoff;
use crate::client::shared::{Live, Shared, guarded, lock};
use crate::client::state::Phase;
use crate::clock;

/// One wait for the end of a task.
pub(super) struct Drive<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) track: &'a Track,
    pub(super) feed: Arc<TaskFeed>,
    pub(super) pace: Pace,
    /// When to give up. Starts over whenever the task waits for input.
    pub(super) deadline: Option<Instant>,
    options: &'a CallOptions,
    failures: Backoff,
    /// How often in a row the task waited for input without a new question.
    repeats: u32,
    /// What the application heard last.
    told: Option<TaskState>,
}

/// Waits for the end of a task, and returns the result of the call that it stands for.
///
/// Boxed, because waiting for a task takes calls of its own.
pub(super) fn wait<'a>(
    shared: &'a Arc<Shared>,
    track: &'a Track,
    known: Option<&'a TaskState>,
    options: &'a CallOptions,
) -> Boxed<'a, Result<Json, CallError>> {
    Box::pin(async move {
        let live = shared.ready_within(GetTaskDetail::NAME, options.patience(shared)).await?;
        let mut drive = Drive::new(shared, track, options);
        // What was known at first is old news once the task has ended.
        if let Some(state) = known.filter(|_| !track.has_ended()) {
            drive.observe(CallTool::NAME, state, false)?;
        }
        match live.peer.revision.is_modern() {
            true => drive.run_extension().await,
            false => drive.run_core().await,
        }
    })
}

impl<'a> Drive<'a> {
    fn new(shared: &'a Arc<Shared>, track: &'a Track, options: &'a CallOptions) -> Self {
        let mut drive = Self {
            shared,
            track,
            options,
            feed: shared.task_feeds.add(&track.id),
            pace: Pace::new(&shared.profile.limits, track.since, clock::now()),
            deadline: None,
            failures: Backoff::new(),
            repeats: 0,
            told: None,
        };
        drive.restart_deadline();
        drive
    }

    async fn run_extension(mut self) -> Result<Json, CallError> {
        let _subscription = subscribe(self.shared, &self.feed);
        loop {
            let Some((found, had_ended)) = self.next_detail().await? else { continue };
            let GetTaskResult { task, input_requests, result, error, .. } = found;
            let state = TaskState::from(task);
            if !self.observe(GetTaskDetail::NAME, &state, had_ended)? {
                continue;
            }
            match state.status {
                TaskStatus::Completed => {
                    return result.ok_or_else(|| missing("result", "completed"));
                }
                TaskStatus::Failed => {
                    let error = error.ok_or_else(|| missing("error", "failed"))?;
                    return Err(CallError::Refused { method: CallTool::NAME.to_owned(), error });
                }
                TaskStatus::Cancelled => return Err(cancelled(state)),
                TaskStatus::InputRequired => {
                    let asked = input_requests.unwrap_or_default();
                    let is_new = self.answer(asked).await?;
                    self.count_repeat(is_new)?;
                }
                TaskStatus::Working => self.repeats = 0,
            }
            self.check_expiry()?;
        }
    }

    /// Waits until it is time to ask, asks, and returns what the server says; or what it reports
    /// without being asked. `None` if there is nothing yet. With it, whether the task was known to
    /// have ended when the client asked.
    async fn next_detail(&mut self) -> Result<Option<(GetTaskResult, bool)>, CallError> {
        let pushed = tokio::select! {
            biased;
            pushed = self.feed.next() => pushed,
            () = sleep_until(self.pace.due()) => {
                let (task_id, meta) = (self.track.id.clone(), RequestMeta::default());
                let had_ended = self.track.has_ended();
                let found = self.ask::<GetTaskDetail>(TaskParams { task_id, meta }).await?;
                return Ok(found.map(|found| (found, had_ended)));
            }
            error = overdue(self.deadline, self.total()) => return Err(error),
        };
        match pushed {
            Pushed::Granted(is_granted) => {
                self.pace.set_pushed(clock::now(), is_granted);
                Ok(None)
            }
            Pushed::Report(report) => {
                Ok(Some((decode_params(TaskChanged::NAME, Some(report.as_raw()))?, false)))
            }
        }
    }

    /// Answers the questions that have not been answered yet, one after another, and sends each
    /// answer at once. Returns whether there were any.
    async fn answer(&mut self, asked: InputRequests) -> Result<bool, CallError> {
        let mut is_new = false;
        for (key, question) in asked {
            if !self.track.is_new(&key) {
                continue;
            }
            self.track.admit(&key, self.limits())?;
            let live = self.shared.ready(UpdateTask::NAME).await?;
            let answer = self.shared.answer_one(CallTool::NAME, &live, question).await?;
            self.restart_deadline();
            self.send_answer(&key, &answer).await?;
            self.track.note_answered(key);
            is_new = true;
        }
        if is_new {
            self.pace.hurry();
        }
        Ok(is_new)
    }

    async fn send_answer(&mut self, key: &str, answer: &Json) -> Result<(), CallError> {
        loop {
            let mut input_responses = RawMembers::default();
            input_responses.push(key, answer.as_raw());
            let (task_id, meta) = (self.track.id.clone(), RequestMeta::default());
            let params = UpdateTaskParams { task_id, input_responses, meta };
            match self.ask::<UpdateTask>(params).await {
                Ok(Some(_)) => return Ok(()),
                Ok(None) => sleep_until(self.pace.due()).await,
                // The question is no longer open, or the task has ended: asking for it will tell.
                Err(CallError::Refused { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes one request about the task. `None` if it failed in a way that may pass: then the next
    /// one is due later.
    pub(super) async fn ask<'p, M: Method>(
        &mut self,
        params: M::Params<'p>,
    ) -> Result<Option<M::Result>, CallError>
    where
        M::Params<'p>: RequestParams<'p> + Send + 'p,
    {
        let left = self.deadline.map(|deadline| deadline - clock::now());
        let options = CallOptions { idle: self.options.idle, total: left, ..Default::default() };
        let asked = request::<M>(self.shared, params, &options).await;
        match asked {
            Ok(result) => {
                self.failures.reset();
                Ok(Some(result))
            }
            Err(error) if self.may_pass(&error) => {
                tracing::debug!(%error, task = self.track.id, "asking for a task failed");
                self.pace.pause(clock::now(), self.failures.next());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether asking again may help: the server restarts, or the network fails.
    pub(super) fn may_pass(&self, error: &CallError) -> bool {
        let is_outside = match error {
            CallError::Closed(_) => self.shared.state.borrow().phase != Phase::Closed,
            CallError::Http { status, .. } => {
                matches!(status, None | Some(408 | 425 | 429 | 500..=599))
            }
            _ => false,
        };
        is_outside && self.failures.failures() < self.limits().task_failures
    }

    /// Takes in a description of the task: checks it, and reports it if it is news. Returns whether
    /// it is [not late](Track::check).
    pub(super) fn observe(
        &mut self,
        method: &str,
        state: &TaskState,
        had_ended: bool,
    ) -> Result<bool, CallError> {
        let is_news = self.track.check(method, state, had_ended)?;
        self.pace.heard(clock::now(), state);
        if !is_news {
            return Ok(false);
        }
        if self.told.as_ref() != Some(state)
            && let Some(hear) = &self.options.on_status
        {
            let mut hear = lock(hear);
            guarded(|| hear(state));
            self.told = Some(state.clone());
        }
        Ok(true)
    }

    /// Counts how often the task waits for input that nobody is asked for.
    pub(super) fn count_repeat(&mut self, is_new: bool) -> Result<(), CallError> {
        let most = self.limits().task_repeats;
        self.repeats = if is_new { 0 } else { self.repeats.saturating_add(1) };
        if self.repeats <= most {
            return Ok(());
        }
        let (method, limit) = (GetTaskDetail::NAME.to_owned(), ClientLimit::TaskRepeats);
        Err(CallError::LimitExceeded { method, limit, most: most.into() })
    }

    pub(super) fn clear_repeats(&mut self) {
        self.repeats = 0;
    }

    /// Gives up on a task that is older than its server keeps it.
    pub(super) fn check_expiry(&self) -> Result<(), CallError> {
        match self.pace.expired(clock::now()) {
            Some(ttl) => Err(CallError::TaskExpired { id: self.track.id.clone(), ttl }),
            None => Ok(()),
        }
    }

    pub(super) fn restart_deadline(&mut self) {
        self.deadline = clock::now().checked_add(self.total());
    }

    /// How long to wait in total.
    pub(super) fn total(&self) -> Duration {
        self.options.total.unwrap_or(self.shared.profile.timeouts.total)
    }

    /// How long one answer may take.
    pub(super) fn idle(&self) -> Duration {
        self.options.idle.unwrap_or(self.shared.profile.timeouts.idle)
    }

    fn limits(&self) -> &'a ClientLimits {
        &self.shared.profile.limits
    }
}

/// Makes one request about a task, whose result is neither a question nor a task.
pub(super) async fn request<'p, M: Method>(
    shared: &Arc<Shared>,
    params: M::Params<'p>,
    options: &CallOptions,
) -> Result<M::Result, CallError>
where
    M::Params<'p>: RequestParams<'p> + Send + 'p,
{
    let (live, outgoing) = shared.prepare::<M>(building::<M>(params), options).await?;
    let result = shared.send(&live, &outgoing, &Round::default(), options).await?;
    let decoded = decode_outcome::<M>(live.peer.revision, result.as_raw());
    match decoded.map_err(|error| name_member(M::NAME, &live, &result).unwrap_or(error))? {
        Outcome::Complete(result) => Ok(result),
        _ => Err(DecodeError::new(M::NAME, "result is not complete").into()),
    }
}

/// What is wrong with the members of a task. The result has more members than the task, so that the
/// first error does not name the member.
fn name_member(method: &str, live: &Live, result: &Json) -> Option<DecodeError> {
    let result = result.as_raw();
    match live.peer.revision.is_modern() {
        _ if method != GetTaskDetail::NAME => None,
        true => decode_result::<task_extension::Task>(method, result).err(),
        false => decode_result::<Task>(method, result).err(),
    }
}

/// Waits until it is too late.
pub(super) async fn overdue(deadline: Option<Instant>, after: Duration) -> CallError {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
    CallError::TimedOut { method: CallTool::NAME.to_owned(), after }
}

pub(super) fn cancelled(state: TaskState) -> CallError {
    CallError::TaskCancelled { id: state.id, message: state.message }
}

fn missing(member: &str, status: &str) -> CallError {
    let problem = format!("result.{member} is missing, though the task has {status}");
    DecodeError::new(GetTaskDetail::NAME, problem).into()
}
