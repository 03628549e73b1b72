//! Calls as JSON: any method, parameters and results as they are.

use std::future::IntoFuture;
use std::sync::Arc;

use bowline_proto::json::Json;
use bowline_proto::method::{ListTools, Method};
use bowline_proto::model::{InputRequiredResult, ResultType, Tool};
use bowline_proto::revision::Revision;
use serde::Deserialize;

use super::Client;
use super::call::{CallOptions, OnProgress, heard, settings};
use super::error::CallError;
use super::notification::Boxed;
use super::outgoing::{Outgoing, Round};
use super::rounds::Rounds;
use super::shared::{Live, Shared};

/// Any call at all, as JSON, that has not been sent: await it.
///
/// # Cancel safety
/// Dropped while it waits, it is cancelled: the server is told, and a late answer is ignored.
#[must_use = "a call does nothing until it is awaited"]
pub struct JsonCall {
    client: Client,
    method: String,
    params: Json,
    options: CallOptions,
    on_progress: Option<OnProgress>,
}

impl Client {
    /// Any call at all: the parameters are sent as they are, the result is given as it came. What
    /// the server asks meanwhile is answered by this client's handlers; [`Client::call_raw`]
    /// leaves that to the caller.
    pub fn call_json(&self, method: impl Into<String>, params: impl Into<Json>) -> JsonCall {
        JsonCall {
            client: self.clone(),
            method: method.into(),
            params: params.into(),
            options: CallOptions::default(),
            on_progress: None,
        }
    }
}

impl JsonCall {
    settings!();
}

impl IntoFuture for JsonCall {
    type Output = Result<Json, CallError>;
    type IntoFuture = Boxed<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { client, method, params, mut options, on_progress } = self;
        Box::pin(async move {
            let shared = &client.shared;
            match on_progress {
                None => shared.call_json(&method, &params, options).await,
                Some(hear) => {
                    let (sink, stream) = super::call::ProgressStream::new(shared);
                    options.progress = Some(sink);
                    heard(hear, stream, shared.call_json(&method, &params, options)).await
                }
            }
        })
    }
}

impl Shared {
    async fn call_json(
        self: &Arc<Self>,
        method: &str,
        params: &Json,
        options: CallOptions,
    ) -> Result<Json, CallError> {
        let live = self.ready_within(method, options.patience(self)).await?;
        let outgoing = Outgoing::raw(method, params)?;
        let mut round = Round::default();
        let mut rounds = Rounds::new();
        loop {
            let result = self.send(&live, &outgoing, &round, &options).await?;
            match questions(live.peer.revision, &result) {
                None => {
                    if method == ListTools::NAME {
                        self.learn(&live, &result);
                    }
                    return Ok(result);
                }
                Some(asked) => round = rounds.next(self, method, &live, asked).await?,
            }
        }
    }
}

impl Shared {
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

/// What a result asks for, if it is no result yet.
fn questions(revision: Revision, result: &Json) -> Option<InputRequiredResult> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "resultType")]
        result_type: Option<ResultType>,
    }
    let head: Head = revision.is_modern().then(|| result.parse().ok()).flatten()?;
    match head.result_type {
        Some(ResultType::InputRequired) => result.parse().ok(),
        _ => None,
    }
}
