//! Calls as JSON: any method, with parameters and results as they are.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

use bowline_proto::json::Json;
use bowline_proto::method::{ListTools, Method};
use bowline_proto::model::task_extension::CreateTaskResult;
use bowline_proto::model::{ResultType, Tool};
use bowline_proto::revision::Revision;
use serde::Deserialize;

use super::Client;
use super::call::{Call, CallOptions, Decoded, Settled};
use super::error::CallError;
use super::notification::Boxed;
use super::outgoing::{Outgoing, Round};
use super::shared::{Live, Shared};
use super::task::TaskState;

/// A call of any method, as JSON.
pub type JsonCall = Call<JsonRequest>;

/// A method with its parameters, as JSON.
pub struct JsonRequest {
    method: String,
    params: Json,
}

impl Client {
    /// Calls any method: the parameters are sent as they are, and the result is returned as it
    /// came. In the modern era `_meta` gets whatever the protocol requires and the caller left
    /// out.
    ///
    /// The client's handlers answer what the server asks meanwhile, and a task is waited for;
    /// [`once`](JsonCall::once) leaves both to the caller.
    pub fn call_json(&self, method: impl Into<String>, params: impl Into<Json>) -> JsonCall {
        Call::new(self, JsonRequest { method: method.into(), params: params.into() })
    }
}

impl Call<JsonRequest> {
    /// Calls `hear` with what the task does, if the call becomes one, in the task of Rust that
    /// awaits the call.
    pub fn on_status(mut self, hear: impl FnMut(&TaskState) + Send + 'static) -> Self {
        self.options.on_status = Some(Arc::new(Mutex::new(hear)));
        self
    }

    /// Sends the call once, and returns what the server says: a result, questions, or a task. The
    /// client's handlers are not asked.
    ///
    /// # Errors
    /// When there is no answer, or it is an error.
    pub async fn once(self) -> Result<Json, CallError> {
        let Self { client, request: JsonRequest { method, params }, options } = self;
        let (live, outgoing) = client.shared.prepare_json(&method, &params, &options).await?;
        client.shared.send(&live, &outgoing, &Round::default(), &options).await
    }
}

impl IntoFuture for Call<JsonRequest> {
    type Output = Result<Json, CallError>;
    type IntoFuture = Boxed<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { client, request: JsonRequest { method, params }, options } = self;
        Box::pin(async move {
            let shared = &client.shared;
            let (live, outgoing) = shared.prepare_json(&method, &params, &options).await?;
            let decode = |result| Ok(shared.read(live.peer.revision, result));
            let settled = shared.call_until_settled(&live, &outgoing, &options, &decode).await?;
            let result = match settled {
                Settled::Complete(result) => result,
                Settled::Task(state) => shared.wait_for_task(state, &options, &decode).await?,
            };
            if method == ListTools::NAME {
                shared.learn(&live, &result);
            }
            Ok(result)
        })
    }
}

impl Shared {
    async fn prepare_json<'a>(
        self: &Arc<Self>,
        method: &str,
        params: &'a Json,
        options: &CallOptions,
    ) -> Result<(Live, Outgoing<'a>), CallError> {
        let live = self.ready_within(method, options.patience(self)).await?;
        Ok((live, Outgoing::json(method, params)?))
    }

    /// What a result says: that it is complete, asks something, or is a task.
    fn read(&self, revision: Revision, result: Json) -> Decoded<Json> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(rename = "resultType")]
            result_type: Option<ResultType>,
        }
        let head: Option<Head> = revision.is_modern().then(|| result.parse().ok()).flatten();
        let kind = head.and_then(|head| head.result_type);
        if kind == Some(ResultType::InputRequired)
            && let Ok(asked) = result.parse()
        {
            return Err(Box::new(asked));
        }
        if kind == Some(ResultType::Task)
            && self.profile.has_tasks
            && let Ok(CreateTaskResult { task, .. }) = result.parse()
        {
            return Ok(Settled::Task(Box::new(task.into())));
        }
        Ok(Settled::Complete(result))
    }

    /// Remembers the tools of a list, as far as they can be read: calls need to know of them.
    fn learn(&self, live: &Live, page: &Json) {
        #[derive(Deserialize)]
        struct Page {
            tools: Vec<Json>,
        }
        let Ok(page) = page.parse::<Page>() else { return };
        for tool in page.tools.iter().filter_map(|tool| tool.parse::<Tool>().ok()) {
            self.tools.learn(&tool, live.sends_headers());
        }
    }
}
