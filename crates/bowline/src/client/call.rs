//! One call: checked against what the server can do, sent, repeated while the server asks.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bowline_proto::decode::DecodeError;
use bowline_proto::json::Json;
use bowline_proto::members::Members;
use bowline_proto::method::{self, Method, SetLevel};
use bowline_proto::model::{
    InputRequiredResult, LoggingLevel, ProgressParams, RequestMeta, RequestParams, SetLevelParams,
};
use bowline_proto::revision::{Outcome, Revision, decode_outcome};
use bowline_proto::session::Timeout;
use futures_core::Stream;
use tokio::sync::mpsc;

use super::Client;
use super::error::CallError;
use super::exchange::Sending;
use super::notification::Boxed;
use super::outgoing::{Outgoing, Round};
use super::rounds::Rounds;
use super::shared::{Hears, Live, Shared, guarded};

/// What one call does otherwise than the client's other calls.
#[derive(Default, Clone)]
pub(super) struct CallOptions {
    pub(super) idle: Option<Duration>,
    pub(super) total: Option<Duration>,
    pub(super) skips_cache: bool,
    pub(super) progress: Option<mpsc::Sender<ProgressParams>>,
}

/// A function that is told how far a call is.
pub(super) type OnProgress = Box<dyn FnMut(ProgressParams) + Send>;

impl CallOptions {
    fn timeout(&self, shared: &Shared) -> Timeout {
        let timeouts = &shared.profile.timeouts;
        Timeout {
            idle: Some(self.idle.unwrap_or(timeouts.idle)),
            total: Some(self.total.unwrap_or(timeouts.total)),
        }
    }

    /// How long to wait for a connection.
    pub(super) fn patience(&self, shared: &Shared) -> Duration {
        let own = self.idle.into_iter().chain(self.total).min();
        own.unwrap_or(Duration::MAX).min(shared.profile.timeouts.connect)
    }

    fn hears(&self) -> Hears {
        self.progress.clone().map_or(Hears::Nothing, Hears::Progress)
    }
}

/// Writes the settings that every kind of call has.
macro_rules! settings {
    () => {
        /// How long to wait without an answer and without progress.
        pub fn idle_timeout(mut self, timeout: std::time::Duration) -> Self {
            self.options.idle = Some(timeout);
            self
        }

        /// How long to wait in all, whatever progress is reported.
        pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
            self.options.total = Some(timeout);
            self
        }

        /// Asks for progress, and is told of it in the task that waits for the answer.
        pub fn on_progress(
            mut self,
            hear: impl FnMut(bowline_proto::model::ProgressParams) + Send + 'static,
        ) -> Self {
            self.on_progress = Some(Box::new(hear));
            self
        }

        /// Asks for progress, and gives it as a stream that ends with the call.
        pub fn with_progress(mut self) -> (Self, $crate::client::ProgressStream) {
            let (sink, stream) = $crate::client::ProgressStream::new(&self.client.shared);
            self.options.progress = Some(sink);
            (self, stream)
        }

        /// Asks the server even if a fresh result is at hand.
        pub fn without_cache(mut self) -> Self {
            self.options.skips_cache = true;
            self
        }
    };
}
pub(super) use settings;

/// A call that has not been sent: await it.
///
/// # Cancel safety
/// Dropped while it waits, it is cancelled: the server is told, and a late answer is ignored.
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<'p, M: Method> {
    client: Client,
    params: M::Params<'p>,
    options: CallOptions,
    on_progress: Option<OnProgress>,
}

impl<'p, M: Method> Call<'p, M> {
    pub(super) fn new(client: &Client, params: M::Params<'p>) -> Self {
        let options = CallOptions::default();
        Self { client: client.clone(), params, options, on_progress: None }
    }

    settings!();
}

impl<'p, M: Method + 'p> Call<'p, M>
where
    M::Params<'p>: RequestParams<'p> + Send + 'p,
{
    /// Sends it once, and gives what the server says: a result, or questions. Nothing is asked of
    /// this client's handlers. For those who pass questions on.
    ///
    /// # Errors
    /// When there is no answer, or it is an error.
    pub async fn once(self) -> Result<Outcome<M::Result>, CallError> {
        let Self { client, params, options, .. } = self;
        let (live, outgoing) = client.shared.prepare::<M>(building::<M>(params), &options).await?;
        let result = client.shared.send(&live, &outgoing, &Round::default(), &options).await?;
        Ok(decode_outcome::<M>(live.peer.revision, result.as_raw())?)
    }
}

impl<'p, M: Method + 'p> IntoFuture for Call<'p, M>
where
    M::Params<'p>: RequestParams<'p> + Send + 'p,
{
    type Output = Result<M::Result, CallError>;
    type IntoFuture = Boxed<'p, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { client, params, mut options, on_progress } = self;
        let build = building::<M>(params);
        Box::pin(
            async move { client.shared.call_heard::<M>(build, &mut options, on_progress).await },
        )
    }
}

/// How to encode a call with these parameters, once it is known what is spoken.
pub(super) fn building<'p, M: Method>(
    params: M::Params<'p>,
) -> impl FnOnce(Revision) -> Result<Outgoing, CallError> + Send + 'p
where
    M::Params<'p>: RequestParams<'p> + Send + 'p,
{
    move |revision| Outgoing::typed::<M>(params, revision)
}

impl Shared {
    /// Makes a call, and tells how far it is.
    pub(super) async fn call_heard<M: Method>(
        self: &Arc<Self>,
        build: impl FnOnce(Revision) -> Result<Outgoing, CallError>,
        options: &mut CallOptions,
        on_progress: Option<OnProgress>,
    ) -> Result<M::Result, CallError> {
        match on_progress {
            None => self.call::<M>(build, options).await,
            Some(hear) => {
                let (sink, stream) = ProgressStream::new(self);
                options.progress = Some(sink);
                Box::pin(heard(hear, stream, self.call::<M>(build, options))).await
            }
        }
    }

    /// Makes a call, and answers what the server asks until there is a result.
    ///
    /// Here and below, what seldom happens is on the heap, so that a call that waits is small.
    pub(super) async fn call<M: Method>(
        self: &Arc<Self>,
        build: impl FnOnce(Revision) -> Result<Outgoing, CallError>,
        options: &CallOptions,
    ) -> Result<M::Result, CallError> {
        let (live, outgoing) = self.prepare::<M>(build, options).await?;
        let mut round = Round::default();
        let mut rounds = Rounds::new();
        loop {
            let result = self.send(&live, &outgoing, &round, options).await?;
            let asked = match decode_outcome::<M>(live.peer.revision, result.as_raw())? {
                Outcome::Complete(result) => return Ok(result),
                Outcome::InputRequired(asked) => Box::new(asked),
                Outcome::Task(_) => {
                    let problem = "result is a task, which was not asked for";
                    return Err(DecodeError::new(M::NAME, problem).into());
                }
            };
            drop(result);
            round = Box::pin(rounds.next(self, M::NAME, &live, *asked)).await?;
        }
    }

    /// Answers the questions of one round, one after another: a person can only read one.
    pub(super) async fn answer(
        &self,
        method: &str,
        live: &Live,
        asked: InputRequiredResult,
    ) -> Result<Round, CallError> {
        let InputRequiredResult { input_requests, request_state, .. } = asked;
        let mut answers = Members::new();
        let has_questions = input_requests.is_some();
        for (key, question) in input_requests.unwrap_or_default() {
            let name = question.method();
            let answer = self.handlers.answer(live.peer.revision, question).await;
            let answer = answer.map_err(|error| CallError::CannotAnswer {
                method: method.to_owned(),
                asked: name.to_owned(),
                problem: error.message,
            })?;
            answers.insert(key, answer);
        }
        Ok(Round { answers: has_questions.then_some(answers), state: request_state })
    }

    /// Waits for a connection, and checks that the server can answer.
    async fn prepare<M: Method>(
        &self,
        build: impl FnOnce(Revision) -> Result<Outgoing, CallError>,
        options: &CallOptions,
    ) -> Result<(Live, Outgoing), CallError> {
        let live = self.ready_within(M::NAME, options.patience(self)).await?;
        check(&live, M::NAME)?;
        let outgoing = build(live.peer.revision)?;
        Ok((live, outgoing))
    }

    /// Tells a legacy server from which level on to send log messages.
    pub(super) async fn tell_log_level(
        self: &Arc<Self>,
        level: LoggingLevel,
    ) -> Result<(), CallError> {
        let params = SetLevelParams { level, meta: RequestMeta::default() };
        let build = building::<SetLevel>(params);
        self.call::<SetLevel>(build, &CallOptions::default()).await.map(drop)
    }

    /// Any call at all, as it is.
    pub(super) async fn call_raw(
        self: &Arc<Self>,
        method: &str,
        params: &Json,
        options: CallOptions,
    ) -> Result<Json, CallError> {
        let live = self.ready_within(method, options.patience(self)).await?;
        let outgoing = Outgoing::raw(method, params)?;
        self.send(&live, &outgoing, &Round::default(), &options).await
    }

    /// Sends a call once, or finds its result in the cache.
    pub(super) async fn send(
        self: &Arc<Self>,
        live: &Live,
        outgoing: &Outgoing,
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
            hears: options.hears(),
            is_cancellable: true,
        };
        let asked = self.cache.epoch();
        let result = self.exchange(&live.link, &sending).await;
        let result = result.map_err(|trouble| trouble.into_call_error(&outgoing.method))?;
        self.cache.keep(outgoing, &result, asked);
        Ok(result)
    }
}

/// Whether the server can be asked this at all.
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

/// How far a call is, as it goes on. Ends with the call.
#[derive(Debug)]
pub struct ProgressStream(mpsc::Receiver<ProgressParams>);

impl ProgressStream {
    pub(super) fn new(shared: &Shared) -> (mpsc::Sender<ProgressParams>, Self) {
        let (sink, stream) = mpsc::channel(shared.profile.limits.progress.max(1));
        (sink, Self(stream))
    }

    /// The next report. `None` when the call has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<ProgressParams> {
        self.0.recv().await
    }
}

impl Stream for ProgressStream {
    type Item = ProgressParams;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}

/// Waits for a call and passes its progress on; all of it before the answer.
pub(super) async fn heard<T>(
    mut hear: OnProgress,
    mut progress: ProgressStream,
    call: impl Future<Output = T>,
) -> T {
    let mut call = std::pin::pin!(call);
    loop {
        tokio::select! {
            biased;
            Some(report) = progress.next() => guarded(|| hear(report)),
            answer = &mut call => {
                while let Ok(report) = progress.0.try_recv() {
                    guarded(|| hear(report));
                }
                return answer;
            }
        }
    }
}
