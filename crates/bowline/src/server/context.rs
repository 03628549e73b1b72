//! What a handler can do besides returning: report, log, ask, look around.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bowline_proto::json::Json;
use bowline_proto::model::{
    CreateMessageParams, CreateMessageResult, LoggingLevel, LoggingMessageParams, Root,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::ask::{Ask, AskError, Elicited};
use super::call::Call;
use super::caller::Caller;
use super::registry::Registry;

/// The request that a handler works on. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub(crate) call: Arc<Call>,
}

impl Context {
    /// Reports how far the work is, if the client asked to know. Costs nothing otherwise, and never
    /// waits: reports that come too fast are left out, the newest one never.
    pub fn progress(&self, done: f64, total: impl Into<Option<f64>>, message: &str) {
        let message = (!message.is_empty()).then(|| message.to_owned());
        self.call.report(done, total.into(), message);
    }

    /// Tells the client something about the work, if it wants to know at this level.
    ///
    /// `data` is any JSON; a string does well.
    pub async fn log(&self, level: LoggingLevel, data: impl Serialize) {
        if !self.call.wants_log(level) {
            return;
        }
        let Ok(data) = Json::new(&data) else { return };
        self.call.log(LoggingMessageParams { level, logger: None, data, meta: None }).await;
    }

    /// Whether nobody waits for the answer any more. An async handler is dropped then; a blocking
    /// one should look now and again.
    pub fn is_cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    /// Waits until nobody waits for the answer any more.
    pub async fn cancelled(&self) {
        self.call.cancelled().await;
    }

    /// Lets the client go for now: its HTTP connection ends, and it comes back for the answer. Good
    /// for work that takes longer than a proxy keeps a connection.
    ///
    /// Only clients of 2025-11-25 can come back, and only over HTTP; for others nothing happens.
    pub fn release_stream(&self) {
        self.call.released.notify_one();
    }

    /// When the handler will be dropped, done or not.
    pub fn deadline(&self) -> Instant {
        self.call.deadline()
    }

    /// Who is calling.
    pub fn caller(&self) -> &Caller {
        &self.call.peer.caller
    }

    /// The W3C `traceparent` of the request, to go on with the caller's trace. Every request runs
    /// in a [`tracing`] span of its own that has it as a field.
    pub fn traceparent(&self) -> Option<&str> {
        self.call.traceparent.as_deref()
    }

    /// What [`Server::state`](crate::Server::state) put there: one value of each type.
    pub fn state<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.call.peer.core.states.get()
    }

    /// The tools, prompts and resources of the server, to be changed while it runs. In a server
    /// that is [nested](crate::Server::nest) into another, by the names they have there.
    pub fn registry(&self) -> Registry {
        self.call.peer.core.registry.within(self.call.nest.clone())
    }

    /// A question under a key of the handler's choice.
    pub fn ask(&self, key: impl Into<String>) -> Ask<'_> {
        Ask { call: &self.call, key: Some(key.into()) }
    }

    fn question(&self) -> Ask<'_> {
        Ask { call: &self.call, key: None }
    }

    /// Asks the user to fill in the fields of `T`.
    ///
    /// In the modern era the handler runs again from the top once the answer is there: what it does
    /// before asking must be harmless to repeat, or stand in [`Context::once`].
    ///
    /// # Errors
    /// When the client cannot ask its user, or does not answer.
    pub async fn elicit<T>(&self, message: impl Into<String>) -> Result<Elicited<T>, AskError>
    where
        T: JsonSchema + DeserializeOwned,
    {
        self.question().elicit(message).await
    }

    /// Asks the user to visit a URL: for secrets, payments and sign-ins.
    ///
    /// # Errors
    /// When the client cannot show URLs, or does not answer.
    pub async fn elicit_url(
        &self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<Elicited<()>, AskError> {
        self.question().elicit_url(message, url).await
    }

    /// Asks the client's model.
    ///
    /// # Errors
    /// When the client has none to ask, or does not answer.
    pub async fn sample(
        &self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, AskError> {
        self.question().sample(params).await
    }

    /// Asks which folders the client works in.
    ///
    /// # Errors
    /// When the client does not tell.
    pub async fn roots(&self) -> Result<Vec<Root>, AskError> {
        self.question().roots().await
    }

    /// Does something once per request, however often the handler runs again because it asks.
    ///
    /// The value travels to the client and back, sealed. `key` must be unique in the handler.
    pub async fn once<T, F>(&self, key: &str, work: F) -> T
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = T>,
    {
        let Some(rounds) = &self.call.rounds else { return work.await };
        let kept = rounds.memo(key).and_then(|json| serde_json::from_str(json.as_str()).ok());
        if let Some(value) = kept {
            return value;
        }
        let value = work.await;
        if let Ok(json) = Json::new(&value) {
            rounds.keep(key, json);
        }
        value
    }

    /// The request whose handler is running right now on this task, for code that is not handed it.
    pub fn current() -> Option<Self> {
        super::running::current().map(|call| Self { call })
    }

    /// The same as [`Context::log`] for code that cannot wait. Says whether it was sent.
    pub fn try_log(&self, level: LoggingLevel, logger: Option<&str>, data: impl Serialize) -> bool {
        if !self.call.wants_log(level) {
            return false;
        }
        let Ok(data) = Json::new(&data) else { return false };
        let logger = logger.map(str::to_owned);
        self.call.try_log(&LoggingMessageParams { level, logger, data, meta: None })
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("method", &self.call.method)
            .field("id", &self.call.id)
            .field("caller", &self.call.peer.caller)
            .finish_non_exhaustive()
    }
}
