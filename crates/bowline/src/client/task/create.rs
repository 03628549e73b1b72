//! Calls of tools that become tasks: requested by the client in 2025-11-25, decided on by the
//! server since.

use std::sync::{Arc, Mutex};

use bowline_proto::decode::decode_result;
use bowline_proto::error::ErrorCode;
use bowline_proto::json::Json;
use bowline_proto::method::{CallTool, Method as _};
use bowline_proto::model::{CallToolResult, CreateTaskResult, TaskSupport};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Started, TaskHandle, TaskState, wait_or_cancel};
use crate::client::call::{Call, Settled};
use crate::client::error::CallError;
use crate::client::list::relist;
use crate::client::outgoing::{Outgoing, Repeated, Round};
use crate::client::shared::{Live, Shared};
use crate::client::tools::ToolRequest;

impl Call<ToolRequest> {
    /// Calls `hear` with what the task does, if the call becomes one, in the task of Rust that
    /// awaits the call.
    pub fn on_status(mut self, hear: impl FnMut(&TaskState) + Send + 'static) -> Self {
        self.options.on_status = Some(Arc::new(Mutex::new(hear)));
        self
    }

    /// Sends the call, and returns as soon as the server has made a task of it, or has answered.
    ///
    /// Whether it becomes a task is up to the server. In 2025-11-25 the client requests it if the
    /// tool allows that, and lists the tools first if it does not know.
    ///
    /// # Errors
    /// Like the call itself.
    ///
    /// # Cancel safety
    /// Dropping it cancels the call. A task that the server has created by then is not cancelled,
    /// because its id is not known.
    pub async fn start(self) -> Result<Started, CallError> {
        let shared = &self.client.shared;
        let live = shared.ready_within(CallTool::NAME, self.options.patience(shared)).await?;
        let settled = if shared.requests_tasks(&live) && self.can_be_task().await {
            self.request_task().await?
        } else {
            let build = |_| self.request.outgoing();
            let (live, outgoing) = shared.prepare::<CallTool>(build, &self.options).await?;
            let decode = |result: Json| shared.decode::<CallTool>(&live, &result);
            shared.call_until_settled(&live, &outgoing, &self.options, &decode).await?
        };
        match settled {
            Settled::Complete(result) => {
                Ok(Started::Done(shared.tools.check(&self.request.name, result)?))
            }
            Settled::Task(state) => {
                let tool = self.request.name;
                Ok(Started::Task(TaskHandle::new(&self.client, *state, tool, self.options)))
            }
        }
    }

    /// Whether the tool can run as a task. 2025-11-25.
    async fn can_be_task(&self) -> bool {
        let shared = &self.client.shared;
        if shared.tools.find(&self.request.name).is_none() {
            relist(shared).await;
        }
        let known = shared.tools.find(&self.request.name).and_then(|tool| tool.task);
        matches!(known, Some(TaskSupport::Optional | TaskSupport::Required))
    }

    /// Sends the call with the request to run as a task. 2025-11-25.
    async fn request_task(&self) -> Result<Settled<CallToolResult>, CallError> {
        let shared = &self.client.shared;
        let params = self.request.params_as_task()?;
        // No header repeats anything in this revision.
        let build = |_| Ok(Outgoing::written(CallTool::NAME, &params, Repeated::default()));
        let (live, outgoing) = shared.prepare::<CallTool>(build, &self.options).await?;
        let result = shared.send(&live, &outgoing, &Round::default(), &self.options).await?;
        Ok(match created(&result)? {
            Some(state) => Settled::Task(Box::new(state)),
            None => Settled::Complete(decode_result(CallTool::NAME, result.as_raw())?),
        })
    }

    /// Makes the call as a task of 2025-11-25, and waits for its result. `rejected` is why it
    /// failed as a plain call; it is only made again if that is because the tool must run as a
    /// task.
    pub(in crate::client) async fn make_as_task(
        &self,
        rejected: Option<CallError>,
    ) -> Result<CallToolResult, CallError> {
        let shared = &self.client.shared;
        if let Some(rejected) = rejected {
            if !shared.may_require_task(&rejected) {
                return Err(rejected);
            }
            relist(shared).await;
            if !shared.must_request_task(&self.request.name) {
                return Err(rejected);
            }
        }
        match self.request_task().await? {
            Settled::Complete(result) => Ok(result),
            Settled::Task(state) => {
                let result = wait_or_cancel(shared, *state, &self.options).await?;
                Ok(decode_result(CallTool::NAME, result.as_raw())?)
            }
        }
    }
}

impl Shared {
    /// Whether calls of tools can be requested to run as tasks. 2025-11-25.
    fn requests_tasks(&self, live: &Live) -> bool {
        self.profile.has_tasks
            && live.peer.revision.has_requested_tasks()
            && live.peer.capabilities.has_tool_tasks()
    }

    /// Whether a tool is known to run as a task only. 2025-11-25.
    pub(in crate::client) fn must_request_task(&self, tool: &str) -> bool {
        let is_required = |task| task == Some(TaskSupport::Required);
        self.tools.find(tool).is_some_and(|tool| is_required(tool.task))
            && self.live().is_some_and(|live| self.requests_tasks(&live))
    }

    /// Whether an error may mean that a tool only runs as a task. Nothing has run then.
    fn may_require_task(&self, error: &CallError) -> bool {
        let is_unknown = |code| code == ErrorCode::METHOD_NOT_FOUND;
        error.as_refusal().is_some_and(|refusal| is_unknown(refusal.code))
            && self.live().is_some_and(|live| self.requests_tasks(&live))
    }
}

/// What a server says to the request to run as a task. One that does not know of tasks ignores the
/// request and returns the result of the tool, and only the member tells the two apart.
pub(super) fn created(result: &Json) -> Result<Option<TaskState>, CallError> {
    #[derive(Deserialize)]
    struct Head {
        task: Option<IgnoredAny>,
    }
    let head: Head = decode_result(CallTool::NAME, result.as_raw())?;
    if head.task.is_none() {
        return Ok(None);
    }
    let created: CreateTaskResult = decode_result(CallTool::NAME, result.as_raw())?;
    Ok(Some(created.task.into()))
}
