//! One call over HTTP: a POST, and its answer, wherever that arrives.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bowline_proto::error::ErrorCode;
use bowline_proto::error::ErrorObject;
use bowline_proto::http::{LAST_EVENT_ID, MCP_SESSION_ID, Media, SessionId};
use bowline_proto::json::Json;
use bowline_proto::method::{Initialize, Method as _, SubscriptionsListen};
use bowline_proto::revision::Revision;
use bowline_proto::session::Rejection;
use bowline_proto::wire::Id;
use bowline_web::{Body, WebError};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::HttpLink;
use super::events::Events;
use super::request::{refusal, unreachable};
use super::session::Carrier;
use crate::client::exchange::ExchangeError;
use crate::client::exchange::Sending;
use crate::client::limits::ClientLimit;
use crate::client::list::relist;
use crate::client::notification::start_of;
use crate::client::outgoing::{answered, cancelled};
use crate::client::shared::{Link, Shared, Waiter, lock, malformed};
use crate::clock;

/// How long to read the rest of a stream after its answer, so that its connection can be reused.
const REST: Duration = Duration::from_secs(1);

/// How long to wait before reopening a broken stream, unless the server says.
const RETRY: Duration = Duration::from_secs(1);

/// The outcome of a POST.
enum Posted {
    /// The server answered it.
    Answered(Result<Json, ExchangeError>),
    /// The answer comes on another stream, or has come.
    Elsewhere,
    /// The session is gone.
    NoSession,
    /// It did not reach the server, or the server rejected it: there is nothing to cancel.
    Refused(ExchangeError),
}

impl HttpLink {
    /// Sends a call and waits for its answer. Renews a session that the server has dropped, and
    /// adds headers that the server misses, once each.
    pub(in crate::client) async fn exchange(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        sending: &Sending<'_>,
    ) -> Result<Json, ExchangeError> {
        let (mut was_renewed, mut was_relisted) = (false, false);
        let patience = Patience::new(sending);
        loop {
            let (seen, is_lost) = {
                let session = lock(&self.session);
                (session.number, session.is_lost)
            };
            if is_lost && sending.is_cancellable {
                patience.wait(self.renew(shared, seen)).await??;
                continue;
            }
            match self.exchange_once(shared, sending).await {
                Ok(Some(result)) => return Ok(result),
                Ok(None) if !was_renewed && sending.is_cancellable => {
                    was_renewed = true;
                    patience.wait(self.renew(shared, seen)).await??;
                }
                Ok(None) => {
                    return Err(ExchangeError::Rejected(Rejection {
                        status: Some(404),
                        error: None,
                    }));
                }
                Err(ExchangeError::Rejected(rejection))
                    if rejection.code() == Some(ErrorCode::HEADER_MISMATCH)
                        && sending.outgoing.method == "tools/call"
                        && !was_relisted =>
                {
                    was_relisted = true;
                    patience.wait(Box::pin(relist(shared))).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The same without retries; `None` when the session is gone.
    async fn exchange_once(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        sending: &Sending<'_>,
    ) -> Result<Option<Json>, ExchangeError> {
        let (answer, mut answered) = oneshot::channel();
        let (method, hears) = (sending.outgoing.method.clone(), sending.hears.clone());
        let headers = self.call_headers(shared, sending)?;
        let waiter = Waiter { answer, hears, is_cancellable: sending.is_cancellable };
        let begun = clock::now();
        let id =
            lock(&shared.calls).open(begun.into_std(), method.clone(), sending.timeout, waiter);
        let waiting = Waiting { shared, link: self, id: &id, revision: sending.claim.revision() };
        let mut body = Vec::new();
        let trace = (shared.profile.trace)();
        let beside = shared.beside(sending, trace.as_ref());
        sending.outgoing.encode(&mut body, &id, sending.round, &beside);
        let exchange = Exchange {
            link: Arc::clone(self),
            shared: Arc::clone(shared),
            id: id.clone(),
            is_legacy: !sending.claim.is_modern(),
            is_in_session: headers.contains_key(MCP_SESSION_ID),
            method: method.clone(),
        };
        let mut post = Box::pin(exchange.run(headers, body.into()));
        let mut is_posted = false;
        let outcome = loop {
            tokio::select! {
                biased;
                posted = &mut post, if !is_posted => match posted {
                    Ok(Posted::Answered(answer)) => break answer.map(Some),
                    Ok(Posted::Elsewhere) => is_posted = true,
                    Ok(Posted::NoSession) => {
                        lock(&shared.calls).abandon(&id);
                        break Ok(None);
                    }
                    Ok(Posted::Refused(error)) => {
                        lock(&shared.calls).abandon(&id);
                        break Err(error);
                    }
                    Err(error) => break Err(error),
                },
                answer = &mut answered => {
                    let answer = answer.unwrap_or_else(|_| Err(ExchangeError::Closed(shared.reason())));
                    if !is_posted && !matches!(answer, Err(ExchangeError::Closed(_))) {
                        shared.spawn(async move { drop(timeout(REST, post).await) });
                    }
                    break answer.map(Some);
                }
                () = expired(shared, &id) => break Err(ExchangeError::TimedOut(begun.elapsed())),
            }
        };
        drop(waiting);
        outcome
    }

    /// Sends the answer to a question of the server.
    pub(in crate::client) async fn answer(&self, id: &Id, answer: &Result<Json, ErrorObject>) {
        let mut body = Vec::new();
        answered(&mut body, id, answer);
        let sent = self.tell(self.legacy_headers(&Method::POST), body).await;
        if let Err(error) = sent {
            tracing::warn!(?error, %id, "an answer did not reach the server");
        }
    }

    /// Sends a notification.
    pub(in crate::client) async fn notify(
        &self,
        revision: Revision,
        method: &str,
        body: Vec<u8>,
    ) -> Result<(), ExchangeError> {
        self.tell(self.notification_headers(revision, method), body).await
    }

    /// Sends a message that has no answer.
    async fn tell(&self, headers: HeaderMap, body: Vec<u8>) -> Result<(), ExchangeError> {
        let sent = async {
            let response = self.post(headers, body.into()).await?;
            if response.status().is_success() { Ok(()) } else { Err(refusal(response).await) }
        };
        timeout(PATIENCE, sent).await.unwrap_or(Err(ExchangeError::TimedOut(PATIENCE)))
    }
}

/// How long a call waits for whatever must happen before it can be sent again.
struct Patience {
    all: Option<Duration>,
    end: Option<Instant>,
}

impl Patience {
    fn new(sending: &Sending<'_>) -> Self {
        let all = sending.timeout.idle.into_iter().chain(sending.timeout.total).min();
        Self { all, end: all.and_then(|all| clock::now().checked_add(all)) }
    }

    async fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, ExchangeError> {
        match (self.end, self.all) {
            (Some(end), Some(all)) => {
                timeout_at(end, work).await.map_err(|_| ExchangeError::TimedOut(all))
            }
            _ => Ok(work.await),
        }
    }
}

/// How long sending a message without an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until a call times out; progress extends its deadline.
async fn expired(shared: &Shared, id: &Id) {
    loop {
        let deadline = lock(&shared.calls).deadline(id).map(Instant::from_std);
        match deadline {
            None => std::future::pending().await,
            Some(deadline) if deadline <= clock::now() => return,
            Some(deadline) => sleep_until(deadline).await,
        }
    }
}

/// A call that has been sent. Dropping it while it waits cancels it: in the modern era by the end
/// of its exchange, in the legacy era by a notification.
struct Waiting<'a> {
    shared: &'a Arc<Shared>,
    link: &'a Arc<HttpLink>,
    id: &'a Id,
    revision: Revision,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(waiter) = lock(&self.shared.calls).abandon(self.id) else { return };
        if !waiter.is_cancellable || self.revision.is_modern() {
            return;
        }
        let (link, revision) = (Arc::clone(self.link), self.revision);
        let mut body = Vec::new();
        cancelled(&mut body, self.id, "the caller gave up");
        self.shared.spawn(async move {
            let _ = link.notify(revision, "notifications/cancelled", body).await;
        });
    }
}

/// The POST of one call, and the streams that continue it.
struct Exchange {
    link: Arc<HttpLink>,
    shared: Arc<Shared>,
    id: Id,
    is_legacy: bool,
    /// Whether it was sent in a session, which may be gone by now.
    is_in_session: bool,
    method: Cow<'static, str>,
}

impl Exchange {
    async fn run(self, headers: HeaderMap, body: Bytes) -> Result<Posted, ExchangeError> {
        let response = match self.link.post(headers, body).await {
            Ok(response) => response,
            Err(error) => return Ok(Posted::Refused(error)),
        };
        let status = response.status();
        if self.method == Initialize::NAME && status.is_success() {
            self.link.begin_session(SessionId::find(response.headers()).ok().flatten());
        }
        if status == StatusCode::NOT_FOUND && self.is_in_session {
            return Ok(Posted::NoSession);
        }
        if !status.is_success() {
            return Ok(Posted::Refused(refusal(response).await));
        }
        if self.link.carrier() == Carrier::Sse || status == StatusCode::ACCEPTED {
            return match self.link.carrier() {
                // The answer comes on the stream that is open already.
                Carrier::Sse => Ok(Posted::Elsewhere),
                Carrier::Streamable => {
                    Err(malformed(&self.method, "the server accepted the call but gives no answer"))
                }
            };
        }
        match Media::of(response.headers()) {
            Some(Media::EventStream) => self.read_events(response.into_body()).await,
            Some(Media::Json) => self.read_json(response).await,
            _ => {
                let kind = response.headers().get(http::header::CONTENT_TYPE);
                let kind = kind.map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned());
                let problem = format!(
                    "the answer is {}, neither JSON nor a stream of events",
                    kind.as_deref().unwrap_or("of unknown type")
                );
                Err(malformed(&self.method, problem))
            }
        }
    }

    async fn read_json(&self, response: Response<Body>) -> Result<Posted, ExchangeError> {
        let limit = self.shared.profile.limits.message_length;
        let all = response.into_body().collect(limit).await.map_err(|error| match error {
            WebError::TooLarge { limit, .. } => {
                ExchangeError::TooMuch(ClientLimit::MessageLength, limit)
            }
            error => unreachable(&error),
        })?;
        let link = Link::Http(Arc::clone(&self.link));
        match self.shared.handle_frame(&all, &link, Some(&self.id)) {
            Some(answer) => Ok(Posted::Answered(answer)),
            None if self.is_waiting() => Err(malformed(
                &self.method,
                format!("the response does not answer the request: {}", start_of(&all)),
            )),
            None => Ok(Posted::Elsewhere),
        }
    }

    async fn read_events(&self, body: Body) -> Result<Posted, ExchangeError> {
        let listens = self.method == SubscriptionsListen::NAME;
        let limits = &self.shared.profile.limits;
        let silence = listens.then_some(limits.stream_silence);
        let mut events = Events::new(&self.shared, &self.link);
        let mut stream = Some(body);
        loop {
            if let Some(body) = stream.take() {
                let read = events.read(body, Some(&self.id), silence);
                if let Some(answer) = read.await? {
                    return Ok(Posted::Answered(answer));
                }
            }
            let last = events.last_id().filter(|_| self.is_legacy);
            let Some(last) = last else {
                let problem = "the stream ended before the answer".to_owned();
                return Err(ExchangeError::Unreachable(problem));
            };
            sleep(events.retry.unwrap_or(RETRY)).await;
            if !self.is_waiting() {
                return Ok(Posted::Elsewhere);
            }
            stream = self.resume(&last).await?;
        }
    }

    /// Resumes after a break. `None` when it must be tried again.
    async fn resume(&self, last: &str) -> Result<Option<Body>, ExchangeError> {
        let mut headers = self.link.legacy_headers(&Method::GET);
        let last = HeaderValue::from_str(last).map_err(|_| {
            malformed(&self.method, "the id of an event cannot be sent back in a header")
        })?;
        headers.insert(LAST_EVENT_ID, last);
        let url = self.link.url.clone();
        match self.link.send(Method::GET, url, headers, Bytes::new()).await {
            Ok(response) if response.status() == StatusCode::OK => Ok(Some(response.into_body())),
            // The call's own deadline bounds the retries.
            Ok(response) if response.status().is_server_error() => Ok(None),
            Ok(response) => Err(refusal(response).await),
            Err(ExchangeError::Unreachable(problem)) => {
                tracing::debug!(problem, "a stream could not be resumed yet");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn is_waiting(&self) -> bool {
        lock(&self.shared.calls).method(&self.id).is_some()
    }
}

/// Reads a body to its end and drops it.
pub(super) async fn discard(response: Response<Body>) {
    let _ = timeout(REST, response.into_body().collect(64 << 10)).await;
}
