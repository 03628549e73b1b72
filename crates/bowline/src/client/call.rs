//! One call: checked against what the server can do, sent, repeated while the server asks.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bowline_proto::decode::DecodeError;
use bowline_proto::json::Json;
use bowline_proto::method::{self, Method, SetLevel};
use bowline_proto::model::{
    InputRequiredResult, LoggingLevel, ProgressParams, RequestMeta, RequestParams, SetLevelParams,
};
use bowline_proto::revision::{Outcome, Revision, decode_outcome};
use bowline_proto::session::Timeout;
use futures_core::Stream;
use tokio::sync::mpsc;

use super::Client;
use super::budget::Share;
use super::error::CallError;
use super::exchange::{ExchangeError, Sending};
use super::notification::Boxed;
use super::outgoing::{Outgoing, Round};
use super::rounds::Rounds;
use super::shared::{Hears, Live, Shared, guarded, lock};
use super::task::{self, OnStatus, TaskState};

/// A call that has not been sent: await it.
///
/// `R` is what is asked: a method with typed parameters ([`Typed`]), a tool
/// ([`ToolCall`](super::ToolCall)), any method as JSON ([`JsonCall`](super::JsonCall)), or a whole
/// list ([`List`](super::List)).
///
/// # Cancel safety
/// Dropping a call while it waits cancels it: the client tells the server, and ignores a late
/// answer.
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<R> {
    pub(super) client: Client,
    pub(super) request: R,
    pub(super) options: CallOptions,
}

/// How one call differs from the client's other calls.
#[derive(Default, Clone)]
pub(super) struct CallOptions {
    pub(super) idle: Option<Duration>,
    pub(super) total: Option<Duration>,
    pub(super) skips_cache: bool,
    pub(super) reports: Option<Reports>,
    /// Receives what a task does, if the call becomes one.
    pub(super) on_status: Option<OnStatus>,
}

/// What a call led to, once the server asks nothing more.
pub(super) enum Settled<T> {
    /// The answer.
    Complete(T),
    /// A task that will have the answer.
    Task(Box<TaskState>),
}

/// A result that was read: `Err` has questions that must be answered first.
pub(super) type Decoded<T> = Result<Settled<T>, Box<InputRequiredResult>>;

/// Where the progress of a call goes.
#[derive(Clone)]
pub(super) enum Reports {
    Stream(ProgressSink),
    Function(Arc<Mutex<OnProgress>>),
}

/// A function that receives progress.
type OnProgress = dyn FnMut(ProgressParams) + Send;

impl<R> Call<R> {
    pub(super) fn new(client: &Client, request: R) -> Self {
        Self { client: client.clone(), request, options: CallOptions::default() }
    }

    /// Sets how long to wait without an answer and without progress.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.options.idle = Some(timeout);
        self
    }

    /// Sets how long to wait in total, whatever progress is reported. For a list, this applies to
    /// each page.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.total = Some(timeout);
        self
    }

    /// Asks for progress, and calls `hear` with each report in the task that awaits the call.
    pub fn on_progress(mut self, hear: impl FnMut(ProgressParams) + Send + 'static) -> Self {
        self.options.reports = Some(Reports::Function(Arc::new(Mutex::new(hear))));
        self
    }

    /// Asks for progress, and returns it as a stream that ends with the call.
    pub fn with_progress(mut self) -> (Self, ProgressStream) {
        let (sink, stream) = ProgressStream::new(&self.client.shared);
        self.options.reports = Some(Reports::Stream(sink));
        (self, stream)
    }

    /// Asks the server even if the cache has a fresh result.
    pub fn without_cache(mut self) -> Self {
        self.options.skips_cache = true;
        self
    }
}

impl CallOptions {
    fn timeout(&self, shared: &Shared) -> Timeout {
        let timeouts = &shared.profile.timeouts;
        Timeout { idle: Some(self.idle.unwrap_or(timeouts.idle)), total: Some(self.total(shared)) }
    }

    /// How long the whole call may take.
    pub(super) fn total(&self, shared: &Shared) -> Duration {
        self.total.unwrap_or(shared.profile.timeouts.total)
    }

    /// How long to wait for a connection.
    pub(super) fn patience(&self, shared: &Shared) -> Duration {
        let own = self.idle.into_iter().chain(self.total).min();
        own.unwrap_or(Duration::MAX).min(shared.profile.timeouts.connect)
    }
}

/// A method with its parameters.
pub struct Typed<'p, M: Method>(pub(super) M::Params<'p>);

impl<'p, M: Method + 'p> Call<Typed<'p, M>>
where
    M::Params<'p>: RequestParams<'p> + Send + 'p,
{
    /// Sends the call once, and returns what the server says: a result, questions, or a task. The
    /// client's handlers are not asked, and nobody waits for the task. For applications that pass
    /// them on.
    ///
    /// # Errors
    /// When there is no answer, or it is an error.
    pub async fn once(self) -> Result<Outcome<M::Result>, CallError> {
        let Self { client, request, options } = self;
        let build = building::<M>(request.0);
        let (live, outgoing) = client.shared.prepare::<M>(build, &options).await?;
        let result = client.shared.send(&live, &outgoing, &Round::default(), &options).await?;
        Ok(decode_outcome::<M>(live.peer.revision, result.as_raw())?)
    }
}

impl<'p, M: Method + 'p> IntoFuture for Call<Typed<'p, M>>
where
    M::Params<'p>: RequestParams<'p> + Send + 'p,
{
    type Output = Result<M::Result, CallError>;
    type IntoFuture = Boxed<'p, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { client, request, options } = self;
        let build = building::<M>(request.0);
        Box::pin(async move { client.shared.call::<M>(build, &options).await })
    }
}

/// How to encode a call with these parameters, once the revision is known.
pub(super) fn building<'p, M: Method>(
    params: M::Params<'p>,
) -> impl FnOnce(Revision) -> Result<Outgoing<'p>, CallError> + Send + 'p
where
    M::Params<'p>: RequestParams<'p> + Send + 'p,
{
    move |revision| Outgoing::typed::<M>(params, revision)
}

impl Shared {
    /// Makes a call, and answers what the server asks until there is a result.
    ///
    /// Here and below, rare cases are on the heap, so that a call that waits is small.
    pub(super) async fn call<'a, M: Method>(
        self: &Arc<Self>,
        build: impl FnOnce(Revision) -> Result<Outgoing<'a>, CallError>,
        options: &CallOptions,
    ) -> Result<M::Result, CallError> {
        self.call_examined::<M>(build, options, |_| Ok(())).await
    }

    /// The same, with a look at each result before it is read.
    pub(super) async fn call_examined<'a, M: Method>(
        self: &Arc<Self>,
        build: impl FnOnce(Revision) -> Result<Outgoing<'a>, CallError>,
        options: &CallOptions,
        examine: impl Fn(&Json) -> Result<(), CallError>,
    ) -> Result<M::Result, CallError> {
        let (live, outgoing) = self.prepare::<M>(build, options).await?;
        let decode = |result: Json| {
            examine(&result)?;
            self.decode::<M>(&live, &result)
        };
        match self.call_until_settled(&live, &outgoing, options, &decode).await? {
            Settled::Complete(result) => Ok(result),
            Settled::Task(state) => Box::pin(self.wait_for_task(state, options, &decode)).await,
        }
    }

    /// Waits for the task that a call has become.
    pub(super) async fn wait_for_task<T>(
        self: &Arc<Self>,
        state: Box<TaskState>,
        options: &CallOptions,
        decode: &impl Fn(Json) -> Result<Decoded<T>, CallError>,
    ) -> Result<T, CallError> {
        let result = task::wait_or_cancel(self, *state, options).await?;
        match decode(result)? {
            Ok(Settled::Complete(result)) => Ok(result),
            _ => Err(task::not_complete()),
        }
    }

    /// Sends a call, and sends it again with answers as long as `decode` finds questions in the
    /// result.
    pub(super) async fn call_until_settled<T>(
        self: &Arc<Self>,
        live: &Live,
        outgoing: &Outgoing<'_>,
        options: &CallOptions,
        decode: &impl Fn(Json) -> Result<Decoded<T>, CallError>,
    ) -> Result<Settled<T>, CallError> {
        let mut round = Round::default();
        let mut rounds = Rounds::new();
        loop {
            let mut result = self.send(live, outgoing, &round, options).await?;
            if !self.profile.claims.is_empty() && live.peer.revision.is_modern() {
                result = Box::pin(self.claimed(&outgoing.method, result, options)).await?;
            }
            let asked = match decode(result)? {
                Ok(settled) => return Ok(settled),
                Err(asked) => asked,
            };
            round = Box::pin(rounds.next(self, &outgoing.method, live, *asked)).await?;
        }
    }

    /// What a result of `M` says.
    pub(super) fn decode<M: Method>(
        &self,
        live: &Live,
        result: &Json,
    ) -> Result<Decoded<M::Result>, CallError> {
        match decode_outcome::<M>(live.peer.revision, result.as_raw())? {
            Outcome::Complete(result) => Ok(Ok(Settled::Complete(result))),
            Outcome::InputRequired(asked) => Ok(Err(Box::new(asked))),
            Outcome::Task(created) if self.profile.has_tasks => {
                Ok(Ok(Settled::Task(Box::new(created.task.into()))))
            }
            Outcome::Task(_) => {
                let problem = "result is a task, which the call did not ask for";
                Err(DecodeError::new(M::NAME, problem).into())
            }
        }
    }

    /// Waits for a connection, and checks that the server can answer.
    pub(super) async fn prepare<'a, M: Method>(
        &self,
        build: impl FnOnce(Revision) -> Result<Outgoing<'a>, CallError>,
        options: &CallOptions,
    ) -> Result<(Live, Outgoing<'a>), CallError> {
        let live = self.ready_within(M::NAME, options.patience(self)).await?;
        check(&live, M::NAME)?;
        let outgoing = build(live.peer.revision)?;
        Ok((live, outgoing))
    }

    /// Tells a legacy server the level from which it should send log messages.
    pub(super) async fn tell_log_level(
        self: &Arc<Self>,
        level: LoggingLevel,
    ) -> Result<(), CallError> {
        let params = SetLevelParams { level, meta: RequestMeta::default() };
        let build = building::<SetLevel>(params);
        self.call::<SetLevel>(build, &CallOptions::default()).await.map(drop)
    }

    /// Sends a call once, or finds its result in the cache.
    pub(super) async fn send(
        self: &Arc<Self>,
        live: &Live,
        outgoing: &Outgoing<'_>,
        round: &Round,
        options: &CallOptions,
    ) -> Result<Json, CallError> {
        if !options.skips_cache
            && let Some(result) = self.cache.find(outgoing)
        {
            return Ok(result);
        }
        let sending = Sending {
            outgoing,
            round,
            claim: &live.claim,
            timeout: options.timeout(self),
            hears: match &options.reports {
                Some(Reports::Stream(sink)) => Hears::Progress(sink.clone()),
                _ => Hears::Nothing,
            },
            is_cancellable: true,
        };
        let asked = self.cache.epoch();
        let result = match &options.reports {
            Some(Reports::Function(hear)) => {
                Box::pin(self.exchange_heard(live, sending, hear)).await
            }
            _ => self.exchange(&live.link, &sending).await,
        };
        let result = result.map_err(|error| error.into_call_error(&outgoing.method))?;
        self.cache.keep(outgoing, &result, asked);
        Ok(result)
    }

    /// Sends a request, and passes its progress on; all of it before the answer.
    async fn exchange_heard(
        self: &Arc<Self>,
        live: &Live,
        mut sending: Sending<'_>,
        hear: &Mutex<OnProgress>,
    ) -> Result<Json, ExchangeError> {
        let (sink, mut progress) = ProgressStream::new(self);
        sending.hears = Hears::Progress(sink);
        let hear = |report| {
            let mut hear = lock(hear);
            guarded(|| hear(report));
        };
        let mut exchange = std::pin::pin!(self.exchange(&live.link, &sending));
        loop {
            tokio::select! {
                biased;
                Some(report) = progress.next() => hear(report),
                answer = &mut exchange => {
                    while let Ok((report, _)) = progress.0.try_recv() {
                        hear(report);
                    }
                    return answer;
                }
            }
        }
    }
}

/// Checks that the server supports the method.
fn check(live: &Live, name: &'static str) -> Result<(), CallError> {
    let revision = live.peer.revision;
    let Some(row) = method::find(name, revision) else {
        return Err(CallError::NoSuchMethod { method: name.to_owned(), revision });
    };
    match row.needs.name() {
        Some(capability) if !row.needs.is_met_by_server(&live.peer.capabilities) => {
            Err(CallError::Lacks { method: name.to_owned(), capability })
        }
        _ => Ok(()),
    }
}

/// The progress of a call. Ends with the call.
#[derive(Debug)]
pub struct ProgressStream(mpsc::Receiver<(ProgressParams, Share)>);

/// Where reports of progress go, each with its part of the budget.
pub(super) type ProgressSink = mpsc::Sender<(ProgressParams, Share)>;

impl ProgressStream {
    fn new(shared: &Shared) -> (ProgressSink, Self) {
        let (sink, stream) = mpsc::channel(shared.profile.limits.progress.max(1));
        (sink, Self(stream))
    }

    /// Waits for the next report. Returns `None` when the call has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<ProgressParams> {
        self.0.recv().await.map(|(report, _)| report)
    }
}

impl Stream for ProgressStream {
    type Item = ProgressParams;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|next| next.map(|(report, _)| report))
    }
}
