//! The methods of 2025-11-25, in which the caller decides what becomes a task.

use std::sync::Arc;
use std::time::Duration;

use bowline_proto::error::{ErrorCode, ErrorObject};
use bowline_proto::json::Json;
use bowline_proto::method::{CancelTask, GetTask, GetTaskPayload, ListTasks, Method};
use bowline_proto::model::{
    ElicitParams, GetTaskResult, InputRequest, InputRequests, ListTasksResult, Meta, meta_key,
};
use bowline_proto::revision::Revision;
use serde::Deserialize;
use serde_json::json;

use super::super::answer::with_meta;
use super::super::ask::{Ask, AskError, check_capability};
use super::super::context::Context;
use super::super::error::HandlerError;
use super::super::extension::Extension;
use super::super::peer::Transport;
use super::super::principal::Principal;
use super::Tasks;
use super::methods::{Params, failed};
use super::record::{State, TaskRecord};
use super::shared::Shared;

/// Tasks on one page.
const PAGE: usize = 100;
/// How long a request for the status of a task waits for the answers to its questions: less than
/// the minute that the official clients give a request.
const ASK: Duration = Duration::from_secs(45);
/// How often a task is looked at whose changes may happen in another process.
const LOOK: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    cursor: Option<String>,
}

/// Adds the methods.
pub(super) fn add(extension: Extension, tasks: &Tasks) -> Extension {
    let [get, payload, list, cancel] = std::array::from_fn(|_| tasks.clone());
    let requested = Revision::REQUESTED_TASKS..=Revision::REQUESTED_TASKS;
    extension
        .method(GetTask::NAME, requested.clone(), move |context: Context, params: Params| {
            let tasks = get.clone();
            async move {
                let shared = tasks.shared();
                let record = shared.poll(GetTask::NAME, &context, &params).await?;
                let record = shared.ask_one_that_polls(&context, &params, record).await?;
                Ok::<_, HandlerError>(shown(shared, &record))
            }
        })
        .method(CancelTask::NAME, requested.clone(), move |context: Context, params: Params| {
            let tasks = cancel.clone();
            async move {
                let shared = tasks.shared();
                let record = shared.find(CancelTask::NAME, &context, &params).await?;
                match shared.cancel(CancelTask::NAME, &record.id).await? {
                    (record, true) => Ok(shown(shared, &record)),
                    (_, false) => Err(HandlerError::Refused(ErrorObject::invalid_params(
                        "tasks/cancel: params.taskId: the task has already ended",
                    ))),
                }
            }
        })
        .method(ListTasks::NAME, requested.clone(), move |context: Context, page: Page| {
            let tasks = list.clone();
            async move { tasks.shared().list(&context, page.cursor.as_deref()).await }
        })
        .method(GetTaskPayload::NAME, requested, move |context: Context, params: Params| {
            let tasks = payload.clone();
            async move { tasks.shared().payload(&context, &params).await }
        })
        .without_deadline(GetTaskPayload::NAME)
}

fn shown(shared: &Shared, record: &TaskRecord) -> GetTaskResult {
    GetTaskResult { task: record.to_legacy(shared.now()), ..GetTaskResult::default() }
}

/// Whether a caller can list its tasks: only if nobody else could be listing the same.
pub(super) fn can_list(transport: Transport, has_principal: bool) -> bool {
    has_principal || matches!(transport, Transport::Stdio | Transport::Memory)
}

impl Shared {
    async fn list(
        &self,
        context: &Context,
        cursor: Option<&str>,
    ) -> Result<ListTasksResult, HandlerError> {
        let caller = context.caller();
        if !can_list(context.transport(), caller.principal.is_some()) {
            let error = ErrorObject::method_not_found(ListTasks::NAME);
            return Err(HandlerError::Refused(error));
        }
        let after = cursor.map(read_cursor).transpose()?;
        let after = after.as_ref().map(|(created, id)| (*created, id.as_str()));
        let owner = caller.principal.as_ref().map(Principal::as_str);
        let found = self.store.page(owner, after, PAGE + 1).await;
        let mut found = found.map_err(|error| failed(ListTasks::NAME, &error))?;
        let has_more = found.len() > PAGE;
        found.truncate(PAGE);
        let last = found.last().filter(|_| has_more);
        let next_cursor = last.map(|last| format!("{:x}-{}", last.created, last.id));
        let now = self.now();
        let tasks = found.iter().filter(|it| it.is_visible_to(caller)).map(|it| it.to_legacy(now));
        Ok(ListTasksResult { tasks: tasks.collect(), next_cursor, ..ListTasksResult::default() })
    }

    /// Waits for the outcome of a task. What the task asks meanwhile is asked on this request.
    async fn payload(
        self: &Arc<Self>,
        context: &Context,
        params: &Params,
    ) -> Result<Json, HandlerError> {
        let method = GetTaskPayload::NAME;
        let id = &params.task_id;
        // Ids of anything else are not kept.
        self.find(method, context, params).await?;
        let watcher = self.watch(id);
        loop {
            let mut changed = std::pin::pin!(watcher.notified());
            // From here on, no change is missed.
            changed.as_mut().enable();
            let record = self.find(method, context, params).await?;
            let related = || json!({ "taskId": record.id });
            match &record.state {
                State::Completed { result, .. } => {
                    let result = with_meta(result, meta_key::RELATED_TASK, related());
                    return result.map_err(HandlerError::from);
                }
                State::Failed { error } => return Err(HandlerError::Refused(error.clone())),
                State::Cancelled => {
                    let error =
                        ErrorObject::new(ErrorCode::INTERNAL_ERROR, "the task was cancelled");
                    return Err(HandlerError::Refused(error));
                }
                State::Waiting { open } => {
                    let is_able = open.iter().any(|(_, question)| can_ask(context, question));
                    if is_able && let Some(_asking) = self.begin_to_ask(&record.id) {
                        self.ask(context, method, &record, open).await?;
                        continue;
                    }
                }
                State::Working | State::Elsewhere => {}
            }
            let _ = tokio::time::timeout(LOOK, changed).await;
        }
    }

    /// Asks the questions of a task on a request for its status, for clients that go on to poll
    /// where the specification wants them to request the result (2025-11-25, basic/utilities/tasks,
    /// "Input Required Status"). Those that do had time for it: it is not asked at once.
    async fn ask_one_that_polls(
        self: &Arc<Self>,
        context: &Context,
        params: &Params,
        record: Arc<TaskRecord>,
    ) -> Result<Arc<TaskRecord>, HandlerError> {
        let State::Waiting { open } = &record.state else { return Ok(record) };
        let now = self.now();
        if now < record.updated + 2 * record.poll(now) {
            return Ok(record);
        }
        let Some(asking) = self.begin_to_ask(&record.id) else { return Ok(record) };
        // Without an answer, the task goes on to wait.
        let _ = tokio::time::timeout(ASK, self.ask(context, GetTask::NAME, &record, open)).await;
        drop(asking);
        self.find(GetTask::NAME, context, params).await
    }

    /// Asks the client what it can be asked, one question after another, and takes in each answer
    /// as it comes.
    ///
    /// A form or a page that the client fails to show is dismissed, as its user might have done. To
    /// the other questions nobody can say that: then the task fails.
    async fn ask(
        self: &Arc<Self>,
        context: &Context,
        method: &str,
        record: &TaskRecord,
        open: &InputRequests,
    ) -> Result<(), HandlerError> {
        for (key, question) in open.iter().filter(|(_, question)| can_ask(context, question)) {
            let ask = Ask { call: &context.call, key: None };
            let answered = ask.put(related(question.clone(), &record.id)).await;
            let checked = answered.and_then(|answer| {
                match record.past.check_answer(key, question, &answer) {
                    Ok(()) => Ok(answer),
                    Err(error) => Err(AskError::Malformed(error.message)),
                }
            });
            let answer = match checked {
                Ok(answer) => answer,
                // It may come back.
                Err(error @ AskError::Closed) => return Err(error.into()),
                Err(_) if matches!(question, InputRequest::Elicit(_)) => dismissal(),
                Err(error) => return self.fail(method, record, &error).await,
            };
            self.take_in(method, &record.id, &[(key.to_owned(), answer)]).await?;
        }
        Ok(())
    }

    /// Ends a task whose question has no answer, if it still waits.
    async fn fail(
        &self,
        method: &str,
        record: &TaskRecord,
        why: &AskError,
    ) -> Result<(), HandlerError> {
        let end = State::Failed { error: ErrorObject::internal(why.to_string()) };
        let ended = self.update(&record.id, |record, now| {
            let waits = matches!(record.state, State::Waiting { .. });
            (waits && record.finish(now, end.clone())).then_some(())
        });
        ended.await.map(drop).map_err(|error| failed(method, &error))
    }

    /// Takes the right to ask a task's questions, until it is dropped: several requests may wait
    /// for the same task.
    fn begin_to_ask(self: &Arc<Self>, id: &str) -> Option<Asking> {
        let is_first = self.asking().insert(id.to_owned());
        is_first.then(|| Asking { shared: Arc::clone(self), id: id.to_owned() })
    }
}

/// The right to ask a task's questions.
struct Asking {
    shared: Arc<Shared>,
    id: String,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.shared.asking().remove(&self.id);
        // Whoever else waits takes over.
        self.shared.watch(&self.id).notify_waiters();
    }
}

/// Whether this client can be asked. If not, another session of its owner may be able to.
fn can_ask(context: &Context, question: &InputRequest) -> bool {
    check_capability(question, &context.caller().capabilities).is_ok()
}

/// The answer of a user who dismisses a question.
fn dismissal() -> Json {
    json!({ "action": "cancel" }).into()
}

/// The question, as one of this task.
fn related(mut question: InputRequest, task: &str) -> InputRequest {
    let meta = match &mut question {
        InputRequest::Elicit(ElicitParams::Form(params)) => &mut params.meta,
        InputRequest::Elicit(ElicitParams::Url(params)) => &mut params.meta,
        InputRequest::CreateMessage(params) => &mut params.meta,
        InputRequest::ListRoots(params) => &mut params.meta,
    };
    let meta = meta.get_or_insert_with(Meta::default);
    meta.set(meta_key::RELATED_TASK, json!({ "taskId": task }));
    question
}

fn read_cursor(cursor: &str) -> Result<(u64, String), HandlerError> {
    let parts = cursor.split_once('-');
    let parts = parts.and_then(|(at, id)| Some((u64::from_str_radix(at, 16).ok()?, id.to_owned())));
    parts.ok_or_else(|| {
        let message = format!("{}: params.cursor was not issued by this server", ListTasks::NAME);
        HandlerError::Refused(ErrorObject::invalid_params(message))
    })
}
