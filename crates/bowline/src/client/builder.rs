//! Configures and connects a client.

use std::sync::{Arc, Mutex};

use bowline_proto::error::ErrorObject;
use bowline_proto::json::{Extra, Json};
use bowline_proto::model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitFormParams,
    ElicitUrlParams, Implementation, InputRequest, Root,
};
use bowline_proto::session::Preference;
use tokio::sync::{oneshot, watch};

use super::claim::Claims;
use super::error::{CallError, OpenError};
use super::handlers::{FormAnswer, Handlers, UrlAnswer, handler};
use super::limits::{ClientLimits, Timeouts};
use super::notification::{Boxed, Fault, Notification};
use super::restart::Restart;
use super::shared::{Profile, Shared};
use super::supervise::{Once, Source, Supervisor};
use super::target::{Destination, Target};
use super::trace::{self, TraceContext};
use super::verdicts::Verdicts;
use super::wire::WireMessage;
use super::{Client, Handle};
use crate::server::serve_core;
use crate::{BuildError, with_causes};

/// Configures a client: who it is, what it answers, how long it waits.
///
/// ```no_run
/// use bowline::client::{Client, Command, FormAnswer};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::builder("my-app", "1.0.0")
///     .on_form(|form| async move {
///         println!("{}", form.message);
///         Ok(FormAnswer::Decline)
///     })
///     .roots(["file:///project"])
///     .connect(Command::new("some-server"))
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a client does nothing until it is connected"]
pub struct ClientBuilder {
    profile: Profile,
    handlers: Handlers,
}

impl ClientBuilder {
    pub(super) fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let profile = Profile {
            info: Implementation::new(name, version),
            limits: ClientLimits::default(),
            timeouts: Timeouts::default(),
            preference: Preference::Auto,
            restart: Restart::default(),
            verdicts: Verdicts::of_process(),
            has_cache: true,
            has_tasks: true,
            trace: Arc::new(trace::current),
            claims: Claims::default(),
            on_notification: None,
            on_fault: None,
            on_stderr: None,
            on_wire: None,
        };
        Self { profile, handlers: Handlers::default() }
    }

    /// Sets the display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.profile.info.title = Some(title.into());
        self
    }

    /// Sets everything that the client says about itself.
    pub fn info(mut self, info: Implementation) -> Self {
        self.profile.info = info;
        self
    }

    /// Handles forms for the user. Declares `elicitation.form`.
    pub fn on_form<F>(mut self, ask: impl Fn(ElicitFormParams) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<FormAnswer, ErrorObject>> + Send + 'static,
    {
        self.handlers.form = Some(handler(ask));
        self
    }

    /// Handles requests to open a URL. Declares `elicitation.url`.
    ///
    /// Ask the user first, show the whole URL, and open it outside the application.
    pub fn on_url<F>(mut self, ask: impl Fn(ElicitUrlParams) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<UrlAnswer, ErrorObject>> + Send + 'static,
    {
        self.handlers.url = Some(handler(ask));
        self
    }

    /// Handles requests to the model. Declares `sampling`.
    pub fn on_sampling<F>(
        mut self,
        ask: impl Fn(CreateMessageParams) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<CreateMessageResult, ErrorObject>> + Send + 'static,
    {
        self.handlers.sampling = Some(handler(ask));
        self
    }

    /// Declares `sampling.tools`: the sampling handler lets the model use tools.
    pub fn samples_with_tools(mut self) -> Self {
        self.handlers.samples_with_tools = true;
        self
    }

    /// Sets the folders that the client works in, as `file://` URIs. Declares `roots`;
    /// [`Client::set_roots`] changes them.
    pub fn roots<U: Into<String>>(mut self, uris: impl IntoIterator<Item = U>) -> Self {
        let roots = uris.into_iter().map(Root::new);
        self.handlers.roots = Some(Mutex::new(roots.collect()));
        self
    }

    /// Declares an extension.
    pub fn extension(mut self, id: impl Into<String>, settings: Extra) -> Self {
        self.handlers.extensions.insert(id, settings);
        self
    }

    /// Declares an experimental feature.
    pub fn experimental(mut self, name: impl Into<String>, settings: Extra) -> Self {
        self.handlers.experimental.insert(name, settings);
        self
    }

    /// Sets which revisions to speak.
    pub fn preference(mut self, preference: Preference) -> Self {
        self.profile.preference = preference;
        self
    }

    /// Sets where to remember which revision each server spoke. All clients of a process share one
    /// by default.
    pub fn verdicts(mut self, verdicts: Verdicts) -> Self {
        self.profile.verdicts = verdicts;
        self
    }

    /// Sets the timeouts.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.profile.timeouts = timeouts;
        self
    }

    /// Sets the limits on what a server may send or make this client remember.
    pub fn limits(mut self, limits: ClientLimits) -> Self {
        self.profile.limits = limits;
        self
    }

    /// Sets what to do when the server's process exits unexpectedly.
    pub fn restart(mut self, restart: Restart) -> Self {
        self.profile.restart = restart;
        self
    }

    /// Turns the cache off, whatever the server allows.
    pub fn without_cache(mut self) -> Self {
        self.profile.has_cache = false;
        self
    }

    /// Keeps calls from becoming tasks: the client does not declare the extension
    /// `io.modelcontextprotocol/tasks`, and requests no tasks of 2025-11-25. Tools that can only
    /// run as tasks reject its calls.
    pub fn without_tasks(mut self) -> Self {
        self.profile.has_tasks = false;
        self
    }

    /// Says what becomes of results of a kind that an [extension](Self::extension) defines: results
    /// whose `resultType` is `kind`. `claim` gets the client, for further calls, and the result as
    /// it came; it returns the result that the method would have had without the extension.
    ///
    /// ```
    /// use bowline::Json;
    /// use bowline::client::{CallError, Client};
    /// use serde_json::json;
    ///
    /// # fn example() {
    /// let builder = Client::builder("my-app", "1.0.0")
    ///     .extension("com.example/receipts", Default::default())
    ///     .on_result("com.example/receipt", |client, receipt: Json| async move {
    ///         let id = receipt.to_value()["id"].clone();
    ///         client.call_json("receipts/redeem", json!({ "id": id })).await
    ///     });
    /// # }
    /// ```
    ///
    /// It concerns clients of the modern era, as results of the legacy era have no kind. Results
    /// of other unknown kinds fail the call, and [`once`](super::JsonCall::once) returns them.
    pub fn on_result<F>(
        mut self,
        kind: impl Into<String>,
        claim: impl Fn(Client, Json) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Json, CallError>> + Send + 'static,
    {
        self.profile.claims.add(kind.into(), claim);
        self
    }

    /// Sets where the trace context of calls comes from; by default, the current `tracing` span.
    pub fn trace_context(
        mut self,
        current: impl Fn() -> Option<TraceContext> + Send + Sync + 'static,
    ) -> Self {
        self.profile.trace = Arc::new(current);
        self
    }

    /// Calls `hear` with every notification, in order, before any later message is handled. It must
    /// return quickly.
    pub fn on_notification(mut self, hear: impl Fn(&Notification) + Send + Sync + 'static) -> Self {
        self.profile.on_notification = Some(Arc::new(hear));
        self
    }

    /// Adds a function to that of [`on_notification`](Self::on_notification).
    pub(crate) fn also_on_notification(
        mut self,
        hear: impl Fn(&Notification) + Send + Sync + 'static,
    ) -> Self {
        let first = self.profile.on_notification.take();
        self.on_notification(move |notification| {
            if let Some(first) = &first {
                first(notification);
            }
            hear(notification);
        })
    }

    /// Handles every question of the server, whatever its kind, and declares these capabilities;
    /// without them, that it can be asked anything.
    pub(crate) fn on_question<F>(
        mut self,
        declared: Option<ClientCapabilities>,
        ask: impl Fn(InputRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Json, ErrorObject>> + Send + 'static,
    {
        self.handlers.any = Some(handler(ask));
        self.handlers.any_declares = declared;
        self
    }

    /// Calls `hear` with everything that the server sent and the client could not use. It must
    /// return quickly.
    pub fn on_fault(mut self, hear: impl Fn(&Fault) + Send + Sync + 'static) -> Self {
        self.profile.on_fault = Some(Arc::new(hear));
        self
    }

    /// Calls `hear` with every line that a child process writes to standard error. It must return
    /// quickly.
    pub fn on_stderr(mut self, hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.profile.on_stderr = Some(Arc::new(hear));
        self
    }

    /// Calls `hear` with every message as it is sent or received, byte for byte, before it is
    /// parsed. It must return quickly.
    pub fn on_wire(mut self, hear: impl Fn(&WireMessage<'_>) + Send + Sync + 'static) -> Self {
        self.profile.on_wire = Some(Arc::new(hear));
        self
    }

    /// Connects.
    ///
    /// # Errors
    /// When the server cannot be reached, rejects the client, or shares no revision with it.
    ///
    /// # Cancel safety
    /// Whatever was started is stopped.
    pub async fn connect(self, target: impl Into<Target>) -> Result<Client, OpenError> {
        self.connecting(target.into()).await
    }

    /// Boxed, because a crate that polls a future compiles everything in it: the client is compiled
    /// here, once, and not by every program again.
    fn connecting(self, target: Target) -> Boxed<'static, Result<Client, OpenError>> {
        Box::pin(self.connect_once(target))
    }

    async fn connect_once(self, target: Target) -> Result<Client, OpenError> {
        let source = match target.0 {
            Destination::Command(command) => Source::Command(command),
            Destination::Stream(once) => Source::Once(Some(once)),
            Destination::Server(server) => {
                let core = server.build().map_err(unserved)?;
                let (ours, theirs) = tokio::io::duplex(64 << 10);
                let (reader, writer) = tokio::io::split(ours);
                let server = tokio::spawn(async move {
                    // A stream in memory does not fail.
                    let _ = serve_core(core, theirs).await;
                });
                let (reader, writer) = (Box::new(reader), Box::new(writer));
                Source::Once(Some(Once { reader, writer, server: Some(server) }))
            }
            #[cfg(all(feature = "client-http", feature = "http", feature = "testing"))]
            Destination::OverHttp(server) => {
                return self.connect_to_url(server.into_endpoint().map_err(unserved)?).await;
            }
            #[cfg(feature = "client-http")]
            Destination::Url(url) => return self.connect_to_url(*url).await,
            #[cfg(not(feature = "client-http"))]
            Destination::Nowhere(why) => return Err(OpenError::Target(why)),
        };
        let shared = Shared::new(self.profile, self.handlers);
        let (closing, closed) = watch::channel(false);
        let (opened, outcome) = oneshot::channel();
        let supervisor = Supervisor { shared: Arc::clone(&shared), source, closing: closed };
        let task = tokio::spawn(supervisor.run(opened));
        wait_for_open(shared, closing, task, outcome).await
    }

    #[cfg(feature = "client-http")]
    async fn connect_to_url(self, url: super::http::Endpoint) -> Result<Client, OpenError> {
        let shared = Shared::new(self.profile, self.handlers);
        let link = super::http::HttpLink::new(&shared, url)?;
        let (closing, closed) = watch::channel(false);
        let (opened, outcome) = oneshot::channel();
        let run = super::http::run(Arc::clone(&shared), link, closed, opened);
        let task = tokio::spawn(run);
        wait_for_open(shared, closing, task, outcome).await
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` takes functions of values")]
fn unserved(error: BuildError) -> OpenError {
    OpenError::Serve(with_causes(&error))
}

/// Waits until the connection is open. Dropping it earlier closes the connection.
async fn wait_for_open(
    shared: Arc<Shared>,
    closing: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
    outcome: oneshot::Receiver<Result<(), OpenError>>,
) -> Result<Client, OpenError> {
    let handle = Arc::new(Handle { closing, task: Mutex::new(Some(task)) });
    let _ = shared.handle.set(Arc::downgrade(&handle));
    let client = Client { shared, handle };
    let gone = || Err(OpenError::Target("the connection's task ended".to_owned()));
    outcome.await.unwrap_or_else(|_| gone())?;
    Ok(client)
}
