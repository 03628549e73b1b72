//! The methods of the extension `io.modelcontextprotocol/tasks`, for callers of 2026-07-28.

use std::sync::Arc;

use bowline_proto::error::{ErrorCode, ErrorObject};
use bowline_proto::json::Json;
use bowline_proto::members::Members;
use bowline_proto::method::{GetTaskDetail, Method, Notice, StopTask, TaskChanged, UpdateTask};
use bowline_proto::model::{EmptyResult, task_extension};
use bowline_proto::revision::{Adapt, Revision};
use serde::Deserialize;

use super::super::caller::{Caller, Profile};
use super::super::context::Context;
use super::super::error::HandlerError;
use super::super::extension::{Extension, TASKS};
use super::super::peer::Peer;
use super::super::principal::Principal;
use super::Tasks;
use super::record::{Answered, State, TaskRecord};
use super::shared::{Doubt, Shared, Updated};
use super::store::StoreError;

/// The parameters of all three methods. Answers are read when their question is known: what is not
/// an answer to an open question is ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Params {
    pub(super) task_id: String,
    #[serde(default)]
    input_responses: Option<Members<Json>>,
}

/// Adds the methods. They are there for clients that declare the extension.
pub(super) fn add(extension: Extension, tasks: &Tasks) -> Extension {
    let [get, update, cancel, read] = std::array::from_fn(|_| tasks.clone());
    let modern = Revision::MODERN..;
    extension
        .method(GetTaskDetail::NAME, modern.clone(), move |context: Context, params: Params| {
            let tasks = get.clone();
            async move {
                let record = tasks.shared().poll(GetTaskDetail::NAME, &context, &params).await?;
                let mut detail = record.to_detail(tasks.shared().now());
                detail.adapt(record.revision).map_err(HandlerError::from)?;
                Ok::<_, HandlerError>(detail)
            }
        })
        .method(UpdateTask::NAME, modern.clone(), move |context: Context, params: Params| {
            let tasks = update.clone();
            async move { tasks.shared().answer(&context, params).await }
        })
        .method(StopTask::NAME, modern, move |context: Context, params: Params| {
            let tasks = cancel.clone();
            async move {
                let shared = tasks.shared();
                let record = shared.find(StopTask::NAME, &context, &params).await?;
                shared.cancel(StopTask::NAME, &record.id).await?;
                Ok::<_, HandlerError>(EmptyResult::default())
            }
        })
        .topic(TASKS, TaskChanged::NAME, move |caller: Caller, id: String| {
            let tasks = read.clone();
            async move { tasks.shared().read(&caller, &id).await }
        })
        .for_declaring_clients()
}

impl Shared {
    /// The task of a request, if it belongs to its caller, who sees it in one revision only.
    pub(super) async fn find(
        self: &Arc<Self>,
        method: &str,
        context: &Context,
        params: &Params,
    ) -> Result<Arc<TaskRecord>, HandlerError> {
        self.start_sweeping();
        let found = self.store.load(&params.task_id).await;
        let found = found.map_err(|error| failed(method, &error))?;
        let record = found.filter(|it| it.is_visible_to(context.caller()));
        let record = record.ok_or_else(|| unknown(method))?;
        match Self::missing_scopes(&record, context.call.peer()) {
            Some(error) => Err(HandlerError::Refused(error)),
            None => Ok(record),
        }
    }

    /// The same for a client that asks how its task is. Those that ask too often wait a moment.
    pub(super) async fn poll(
        self: &Arc<Self>,
        method: &str,
        context: &Context,
        params: &Params,
    ) -> Result<Arc<TaskRecord>, HandlerError> {
        let owner = context.caller().principal.as_ref().map(Principal::as_str);
        let id = &params.task_id;
        if let Some(pause) = self.polls.pause(id, owner) {
            let watcher = self.watch(id);
            // In any case, it is looked at afterwards.
            let _ = tokio::time::timeout(pause, watcher.notified()).await;
        }
        let record = self.find(method, context, params).await?;
        self.polls.note(id, owner);
        Ok(record)
    }

    /// Whether a caller has the scopes of the tool that became a task, as far as it needs any.
    fn missing_scopes(record: &TaskRecord, peer: &Peer) -> Option<ErrorObject> {
        let (tool, _) = peer.core.registry.tool(&record.tool);
        let tool = tool.filter(|tool| !tool.scopes.are_granted_to(peer))?;
        Some(tool.scopes.to_error_object())
    }

    /// What a listening client is told about a task of its own.
    async fn read(
        self: &Arc<Self>,
        caller: &Caller,
        id: &str,
    ) -> Option<task_extension::TaskChangedParams> {
        let found = self.load_or_later(id).await??;
        if Self::missing_scopes(&found, &caller.peer).is_some() {
            return None;
        }
        let visible = found.is_visible_to(caller).then(|| found.to_detail(self.now()));
        let mut detail = visible?;
        detail.adapt(found.revision).ok()?;
        Some(task_extension::TaskChangedParams {
            task: detail.task,
            input_requests: detail.input_requests,
            result: detail.result,
            error: detail.error,
            meta: None,
        })
    }

    /// Takes in answers. They are stored before they are acknowledged.
    async fn answer(
        self: &Arc<Self>,
        context: &Context,
        params: Params,
    ) -> Result<EmptyResult, HandlerError> {
        let record = self.find(UpdateTask::NAME, context, &params).await?;
        let answers: Vec<_> = params.input_responses.into_iter().flatten().collect();
        self.take_in(UpdateTask::NAME, &record.id, &answers).await?;
        Ok(EmptyResult::default())
    }

    /// Takes in answers; if none is missing, the handler runs again.
    pub(super) async fn take_in(
        self: &Arc<Self>,
        method: &str,
        id: &str,
        answers: &[(String, Json)],
    ) -> Result<(), HandlerError> {
        if self.is_closing() {
            let message = format!("{method}: the server is shutting down; try again later");
            return Err(HandlerError::Refused(ErrorObject::internal(message)));
        }
        let starting = self.starting(id, Doubt::Claimed);
        let (mut refused, mut place) = (None, None);
        let updated = self.update(id, |record, now| {
            let given = answers.iter().map(|(key, answer)| (key.as_str(), answer.clone()));
            match record.answer(now, given) {
                Ok(Answered::Ignored) => None,
                Ok(Answered::Partly) => Some(false),
                Ok(Answered::Fully) if !self.has_tool(&record.tool) => {
                    let message = format!(
                        "the tool {:?} runs in another release of this server; try again later",
                        record.tool
                    );
                    refused = Some(ErrorObject::internal(message));
                    None
                }
                Ok(Answered::Fully) => {
                    place = place.take().or_else(|| self.places.try_take(record.owner()));
                    record.claim(self.boot(), now, self.lease(now), place.is_none());
                    Some(true)
                }
                Err(error) => {
                    refused = Some(error);
                    None
                }
            }
        });
        let updated = updated.await.map_err(|error| failed(method, &error))?;
        if let Some(error) = refused {
            starting.settle();
            let is_of_params = error.code == ErrorCode::INVALID_PARAMS;
            let place = if is_of_params { "params." } else { "" };
            let message = format!("{method}: {place}{}", error.message);
            return Err(HandlerError::Refused(ErrorObject { message, ..error }));
        }
        let taken = match updated {
            Updated::Missing => Err(unknown(method)),
            Updated::Changed(record, true) => {
                self.resume(&record, place).await;
                Ok(())
            }
            Updated::Changed(_, false) | Updated::Same(_) => Ok(()),
        };
        starting.settle();
        taken
    }

    /// Whether this process could run a tool. In a fleet of two releases another one may.
    fn has_tool(&self, name: &str) -> bool {
        !self.is_shared || self.core().is_none_or(|core| core.registry.tool(name).0.is_some())
    }

    /// Cancels a task, unless it has ended. Returns the task, and whether it was cancelled now.
    pub(super) async fn cancel(
        self: &Arc<Self>,
        method: &str,
        id: &str,
    ) -> Result<(Arc<TaskRecord>, bool), HandlerError> {
        let cancelled = self
            .update(id, |record, now| record.finish(now, State::Cancelled).then_some(()))
            .await
            .map_err(|error| failed(method, &error))?;
        match cancelled {
            Updated::Missing => Err(unknown(method)),
            Updated::Same(record) => Ok((record, false)),
            Updated::Changed(record, ()) => {
                self.stop_running(id, u64::MAX);
                Ok((record, true))
            }
        }
    }
}

impl TaskRecord {
    /// Whether a caller may know about it: its owner, in the revision that it was made in. Callers
    /// without an identity share what was made without one; ids are hard to guess.
    pub(super) fn is_visible_to(&self, caller: &Profile) -> bool {
        let principal = caller.principal.as_ref().map(Principal::as_str);
        self.owner.as_deref() == principal && self.revision == caller.revision
    }
}

/// The same for ids that never existed, that have expired, and that belong to somebody else.
pub(super) fn unknown(method: &str) -> HandlerError {
    let message = format!("{method}: params.taskId: no such task, or it has expired");
    HandlerError::Refused(ErrorObject::invalid_params(message))
}

pub(super) fn failed(method: &str, error: &StoreError) -> HandlerError {
    let what = match error {
        StoreError::Full => "there is no room in the task store; try again later",
        error => {
            tracing::error!(method, %error, "the task store failed");
            "the task store failed"
        }
    };
    HandlerError::Refused(ErrorObject::internal(format!("{method}: {what}")))
}
