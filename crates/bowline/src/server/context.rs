//! What a handler can do besides returning: report progress, log, ask, inspect the request.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bowline_proto::json::Json;
use bowline_proto::model::{CreateMessageParams, CreateMessageResult, LoggingLevel, Root};
use bowline_proto::wire::Id;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
#[cfg(feature = "http")]
use {
    http::{Extensions, HeaderMap},
    std::net::SocketAddr,
};

use super::ask::{Ask, AskError, Elicited};
use super::call::Call;
use super::caller::Caller;
use super::logger::Logger;
use super::peer::Transport;
use super::registry::Registry;
use super::state::{MissingState, State, States};

/// The request that a handler works on. Cheap to clone.
///
/// Guides: [questions](crate::guide::questions) to the user, and
/// [state](crate::guide::state_and_errors).
#[derive(Clone)]
pub struct Context {
    pub(crate) call: Arc<Call>,
}

impl Context {
    /// Reports progress if the client asked for it; otherwise it costs nothing. Never waits:
    /// reports that come too fast are skipped, except for the newest one.
    pub fn progress(&self, done: f64, total: impl Into<Option<f64>>, message: &str) {
        let message = (!message.is_empty()).then(|| message.to_owned());
        self.call.report(done, total.into(), message);
    }

    /// Sends a log message to the client, if it wants messages of this level.
    ///
    /// `data` is any JSON value, often a string.
    pub async fn log(&self, level: LoggingLevel, data: impl Serialize) {
        Logger { call: &self.call, name: None }.log(level, data).await;
    }

    /// Like [`Context::log`], but without waiting. Returns whether the message was sent.
    pub fn try_log(&self, level: LoggingLevel, data: impl Serialize) -> bool {
        Logger { call: &self.call, name: None }.try_log(level, data)
    }

    /// Log messages under a name, which clients show or filter by:
    /// `context.logger("disk").log(LoggingLevel::Error, "full")`.
    pub fn logger<'a>(&'a self, name: &'a str) -> Logger<'a> {
        Logger { call: &self.call, name: Some(name) }
    }

    /// The id that the client gave this request.
    pub fn request_id(&self) -> &Id {
        &self.call.id
    }

    /// Sends a notification that belongs to this request, waiting for room: for methods of
    /// [extensions](crate::Extension) that report something before they answer. `method` is one
    /// that the extension defines, and `params` an object. Returns whether it was sent.
    pub async fn notify(&self, method: &str, params: impl Into<Json>) -> bool {
        self.call.notify(method, &params.into()).await
    }

    /// Whether the request was cancelled. An async handler is dropped then; a blocking one should
    /// check this from time to time.
    pub fn is_cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    /// Waits until the request is cancelled.
    pub async fn cancelled(&self) {
        self.call.cancelled().await;
    }

    /// Closes the client's HTTP connection for now; the client reconnects for the answer. Useful
    /// for work that takes longer than a proxy keeps a connection open.
    ///
    /// Only clients of 2025-11-25 over HTTP can reconnect; for others this does nothing.
    pub fn release_stream(&self) {
        self.call.released.notify_one();
    }

    /// When the handler times out and is dropped.
    pub fn deadline(&self) -> Instant {
        self.call.deadline()
    }

    /// The client that sent the request.
    pub fn caller(&self) -> &Caller {
        &self.call.caller
    }

    /// The headers of the HTTP request; empty if it came another way. Behind
    /// `Http::require_auth` they lack the token, which is for this server only.
    ///
    /// In HTTP+SSE, which only 2024-11-05 uses, they are those of the request that opened the
    /// stream; the same holds for [extensions](Self::extensions) and the
    /// [address](Self::peer_addr).
    #[cfg(feature = "http")]
    pub fn headers(&self) -> &HeaderMap {
        self.caller().headers()
    }

    /// What the layers of another framework added to the HTTP request, found by its type; empty if
    /// it came another way.
    ///
    /// ```
    /// #[derive(Clone)]
    /// struct Tenant(String); // added by a layer: `request.extensions_mut().insert(Tenant(…))`
    ///
    /// # async fn handler(context: bowline::Context) {
    /// let tenant = context.extensions().get::<Tenant>();
    /// # }
    /// ```
    #[cfg(feature = "http")]
    pub fn extensions(&self) -> &Extensions {
        self.caller().extensions()
    }

    /// The address that the HTTP request came from, if it is known: that of the connection, or what
    /// [`Http::peer_addr`](crate::http::Http::peer_addr) says.
    #[cfg(feature = "http")]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.caller().peer_addr()
    }

    /// The W3C `traceparent` of the request, for continuing the caller's trace: that in `_meta`, or
    /// else that in the HTTP headers. Every request that reaches a handler runs in a [`tracing`]
    /// span of its own, which has it as a field.
    pub fn traceparent(&self) -> Option<&str> {
        self.call.traceparent()
    }

    /// Puts a span of the application between the caller's span and those of whatever the handler
    /// calls: from now on, [`traceparent`](Self::traceparent) returns this. Only the first time
    /// counts.
    pub fn set_traceparent(&self, traceparent: impl Into<String>) {
        // The first one stays.
        let _ = self.call.onward.set(traceparent.into().into());
    }

    /// A value that was added with [`Server::state`](crate::Server::state), found by its type. In a
    /// [nested](crate::Server::nest) server, its own values come before those of the outer one.
    ///
    /// # Errors
    /// When there is none. A tool that [declares](crate::Tool::needs_state) what it needs always
    /// finds it.
    pub fn state<T: Any + Send + Sync>(&self) -> Result<State<T>, MissingState> {
        let outermost = &*self.call.peer().core.states;
        States::find(self.call.nest.homes().map(|home| &home.states).chain([outermost]))
    }

    /// The value that the tool, prompt or resource of the request was marked with:
    /// [`Parts::label`](crate::Parts::label). `None` also where a request names nothing that is
    /// there for its caller.
    pub fn label<T: Any>(&self) -> Option<&T> {
        self.call.nest.label()
    }

    /// The id of the legacy session, over Streamable HTTP. Treat it as a secret.
    pub fn session_id(&self) -> Option<&str> {
        self.call.peer().member_of.as_ref()?.id()
    }

    /// A value of the client's own, found by its type and made on first use:
    /// `context.session_state(Cart::default)`.
    ///
    /// It belongs to the legacy session, and is dropped with it. Where there is no session, as in
    /// the modern era, it belongs to the [principal](crate::Profile::principal), whatever
    /// connection its requests come on, and is kept in this process while
    /// [`Limits::principals`](crate::Limits::principals) allows it. A client that has neither has
    /// none: `None`.
    pub fn session_state<T>(&self, make: impl FnOnce() -> T) -> Option<State<T>>
    where
        T: Any + Send + Sync,
    {
        self.caller().session_state(make)
    }

    /// How the request reached the server.
    pub fn transport(&self) -> Transport {
        self.call.peer().via.transport
    }

    /// The tools, prompts and resources of the server, for changing them while it runs. In a
    /// [nested](crate::Server::nest) server they have their names without the prefix.
    pub fn registry(&self) -> Registry {
        self.call.peer().core.registry.within(self.call.nest.clone())
    }

    /// A question under a key of the handler's choice.
    pub fn ask(&self, key: impl Into<String>) -> Ask<'_> {
        Ask { call: &self.call, key: Some(key.into()) }
    }

    fn question(&self) -> Ask<'_> {
        Ask { call: &self.call, key: None }
    }

    /// Asks the user to fill in the fields of `T`: a struct of text, numbers, booleans and
    /// enumerations, or one of these alone.
    ///
    /// In the modern era the handler runs again from the top once the answer has arrived: what it
    /// does before asking must be safe to repeat, or go into [`Context::once`].
    ///
    /// # Errors
    /// When the client cannot ask its user, or does not answer.
    pub async fn elicit<T>(&self, message: impl Into<String>) -> Result<Elicited<T>, AskError>
    where
        T: JsonSchema + DeserializeOwned,
    {
        self.question().elicit(message).await
    }

    /// Asks the user to agree. Declining and dismissing the question count as no.
    ///
    /// ```
    /// # use bowline::{AskError, Context};
    /// async fn delete_all(context: Context) -> Result<&'static str, AskError> {
    ///     match context.confirm("Delete all notes?").await? {
    ///         true => Ok("deleted"),
    ///         false => Ok("kept"),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// When the client cannot ask its user, or does not answer.
    pub async fn confirm(&self, message: impl Into<String>) -> Result<bool, AskError> {
        self.question().confirm(message).await
    }

    /// Asks the user to choose one of these.
    ///
    /// # Errors
    /// When the client cannot ask its user, does not answer, or answers with something else.
    pub async fn choose<S: Into<String>>(
        &self,
        message: impl Into<String>,
        choices: impl IntoIterator<Item = S>,
    ) -> Result<Elicited<String>, AskError> {
        self.question().choose(message, choices).await
    }

    /// Asks the user to visit a URL: for secrets, payments and logins.
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
    /// When the client does not offer its model, or does not answer.
    pub async fn sample(
        &self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, AskError> {
        self.question().sample(params).await
    }

    /// Asks which folders the client works in.
    ///
    /// # Errors
    /// When the client does not offer its folders, or does not answer.
    pub async fn roots(&self) -> Result<Vec<Root>, AskError> {
        self.question().roots().await
    }

    /// The client's answer to a question that this handler returned in
    /// [`Step::Ask`](crate::Step::Ask), by its key. Content fits the form that was asked; anything
    /// else has been rejected. `None` in the first run, and for an answer that is not a `T`: use
    /// [`ElicitResult`](crate::model::ElicitResult),
    /// [`CreateMessageResult`](crate::model::CreateMessageResult) or
    /// [`ListRootsResult`](crate::model::ListRootsResult), according to the question.
    pub fn answer<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let answers = self.call.rounds.as_ref()?.answers();
        let (_, answer) = answers.into_iter().find(|(found, _)| found == key)?;
        answer.parse().ok()
    }

    /// The state that this handler returned in [`Step::Ask`](crate::Step::Ask). `None` in the first
    /// run.
    pub fn request_state<T: DeserializeOwned>(&self) -> Option<T> {
        self.call.rounds.as_ref()?.own_state()?.parse().ok()
    }

    /// Whether the request goes on with an earlier one whose questions the client answers
    /// (2026-07-28): it came with state that this server has sealed for the same method, name and
    /// arguments of the same caller. A client can send the same state again.
    pub fn is_continued(&self) -> bool {
        self.call.rounds.as_ref().is_some_and(|rounds| rounds.is_continued())
    }

    /// Tells clients that poll a [task](crate::tasks) what it is doing:
    /// `context.status("3 of 7 files")`. Never waits; of messages in quick succession the newest
    /// counts. Does nothing in a call that is not a task.
    pub fn status(&self, message: impl Into<String>) {
        if let Some(task) = self.call.task() {
            task.set_status(message.into());
        }
    }

    /// Turns the call into a [task](crate::tasks) here, if its tool allows that
    /// ([`TaskMode::OnDemand`](crate::TaskMode::OnDemand), [`After`](crate::TaskMode::After)) and
    /// its client can use one. What the handler asked before belongs to the call, what it asks
    /// afterwards to the task.
    ///
    /// Otherwise, and in a task, it returns at once.
    pub async fn background(&self) {
        if let Some(rounds) = &self.call.rounds {
            rounds.want_task().await;
        }
    }

    /// The id of the [task](crate::tasks) that the call has become, if it is one: for work that
    /// goes on [elsewhere](crate::Elsewhere).
    pub fn task_id(&self) -> Option<&str> {
        self.call.task().map(|task| task.id())
    }

    /// Runs a future once per request, however often the handler runs again because it asks.
    ///
    /// The value travels to the client and back, sealed; that of a [task](crate::tasks) is stored
    /// before this returns, and also survives a restart of the server. `key` must be unique within
    /// the handler.
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
            if let Some(task) = rounds.task() {
                task.keep(rounds).await;
            }
        }
        value
    }

    /// The context of the handler that is being polled on this thread, for code that has no other
    /// access to it.
    pub fn current() -> Option<Self> {
        super::running::current().map(|call| Self { call })
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("method", &self.call.method)
            .field("id", &self.call.id)
            .field("caller", &self.call.caller)
            .finish_non_exhaustive()
    }
}
