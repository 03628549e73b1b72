//! Results of kinds that extensions define, and what becomes of them.

use std::collections::HashMap;
use std::sync::Arc;

use bowline_proto::json::Json;
use serde::Deserialize;

use super::Client;
use super::call::CallOptions;
use super::error::{CallError, CloseReason};
use super::notification::Boxed;
use super::shared::Shared;

/// What turns a result of an extension into one of the method.
type Claim = Arc<dyn Fn(Client, Json) -> Boxed<'static, Result<Json, CallError>> + Send + Sync>;

/// The kinds of results that extensions of this client know.
#[derive(Default)]
pub(super) struct Claims(HashMap<String, Claim>);

impl Claims {
    pub(super) fn add<F>(
        &mut self,
        kind: String,
        claim: impl Fn(Client, Json) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<Json, CallError>> + Send + 'static,
    {
        self.0.insert(kind, Arc::new(move |client, result| Box::pin(claim(client, result))));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The claim to a result.
    fn find(&self, result: &Json) -> Option<&Claim> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(rename = "resultType")]
            kind: String,
        }
        self.0.get(&result.parse::<Head>().ok()?.kind)
    }
}

impl Shared {
    /// The result that a method would have had without an extension, within the time of the call.
    pub(super) async fn claimed(
        self: &Arc<Self>,
        method: &str,
        result: Json,
        options: &CallOptions,
    ) -> Result<Json, CallError> {
        let Some(claim) = self.profile.claims.find(&result) else { return Ok(result) };
        let client = self.client().ok_or(CallError::Closed(CloseReason::Asked))?;
        let claiming = claim(client, result);
        let after = options.total(self);
        let late = |_| CallError::TimedOut { method: method.to_owned(), after };
        tokio::time::timeout(after, claiming).await.map_err(late)?
    }
}
