//! Sessions with legacy servers over HTTP, and the stream for messages that answer no request.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bowline_proto::http::{LAST_EVENT_ID, Media, SessionId};
use bowline_proto::method::{Initialized, Notice};
use bowline_proto::revision::Revision;
use bowline_proto::wire::encode_notification;
use bowline_web::Body;
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, Uri};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::HttpLink;
use super::events::Events;
use super::exchange::discard;
use super::request::{refusal, resolve};
use crate::client::exchange::ExchangeError;
use crate::client::notification::Boxed;
use crate::client::restart::Backoff;
use crate::client::shared::{Shared, lock, malformed};

/// A session, or the state before one.
#[derive(Default)]
pub(super) struct Session {
    pub(super) id: Option<SessionId>,
    /// The negotiated revision.
    pub(super) revision: Option<Revision>,
    /// Where messages go, if not to the URL itself: HTTP+SSE.
    pub(super) post_url: Option<Uri>,
    /// Changes whenever a session is opened, and whenever one is found to be gone.
    pub(super) number: u64,
    /// Whether the last session is gone and there is no new one yet.
    pub(super) is_lost: bool,
    /// Reads the server's own messages.
    listening: Option<AbortHandle>,
}

/// Where answers arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    /// In the response to the POST.
    Streamable,
    /// On one stream for everything, as in 2024-11-05.
    Sse,
}

impl HttpLink {
    pub(super) fn carrier(&self) -> Carrier {
        match lock(&self.session).post_url {
            Some(_) => Carrier::Sse,
            None => Carrier::Streamable,
        }
    }

    pub(super) fn has_session(&self) -> bool {
        lock(&self.session).id.is_some()
    }

    /// The answer to a handshake has arrived.
    pub(super) fn begin_session(&self, id: Option<SessionId>) {
        lock(&self.session).id = id;
    }

    /// There is a session now, or none is needed.
    pub(super) fn session_opened(&self) {
        let mut session = lock(&self.session);
        session.number += 1;
        session.is_lost = false;
    }

    /// Tells the server that the handshake is over.
    pub(in crate::client) async fn initialized(&self, revision: Revision) -> bool {
        lock(&self.session).revision = Some(revision);
        let mut body = Vec::new();
        encode_notification::<()>(&mut body, Initialized::NAME, None)
            .expect("a name has a JSON form");
        self.notify(revision, Initialized::NAME, body).await.is_ok()
    }

    /// Opens a new session in place of the one that was `seen` to be gone; one for all callers that
    /// saw it.
    ///
    /// Runs in its own task: a caller may give up while others still need the session.
    pub(super) async fn renew(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        seen: u64,
    ) -> Result<(), ExchangeError> {
        let (done, outcome) = oneshot::channel();
        let (link, ours) = (Arc::clone(self), Arc::clone(shared));
        shared.spawn(async move { drop(done.send(link.renew_boxed(&ours, seen).await)) });
        outcome.await.unwrap_or_else(|_| Err(ExchangeError::Closed(shared.reason())))
    }

    /// On the heap, because the handshake is an exchange, which may recurse into this.
    fn renew_boxed<'a>(
        self: &'a Arc<Self>,
        shared: &'a Arc<Shared>,
        seen: u64,
    ) -> Boxed<'a, Result<(), ExchangeError>> {
        Box::pin(self.renew_now(shared, seen))
    }

    async fn renew_now(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        seen: u64,
    ) -> Result<(), ExchangeError> {
        let gone = |why: &str| {
            ExchangeError::Unreachable(format!(
                "the session is gone, and no new one could be opened: {why}"
            ))
        };
        let _renewing = self.renewing.lock().await;
        {
            let mut session = lock(&self.session);
            match (session.number == seen, session.is_lost) {
                (true, _) => {}
                (false, false) => return Ok(()),
                (false, true) => return Err(gone("another call has just tried")),
            }
            if let Some(listening) = session.listening.take() {
                listening.abort();
            }
            *session = Session { number: seen + 1, is_lost: true, ..Session::default() };
        }
        tracing::debug!("the session is gone; opening a new one");
        let patience = shared.profile.timeouts.connect;
        let opened = timeout(patience, self.open(shared)).await;
        match opened {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                self.retry(shared);
                Err(gone(&error.to_string()))
            }
            Err(_) => {
                self.retry(shared);
                Err(ExchangeError::TimedOut(patience))
            }
        }
    }

    /// Keeps trying to open a new session, because subscriptions to changes need it. Calls do not
    /// wait for this: each tries on its own.
    fn retry(self: &Arc<Self>, shared: &Arc<Shared>) {
        if self.is_retrying.swap(true, Ordering::AcqRel) {
            return;
        }
        let (link, ours) = (Arc::clone(self), Arc::clone(shared));
        shared.spawn(async move {
            let mut backoff = Backoff::new();
            loop {
                sleep(backoff.next()).await;
                let Some(seen) = link.lost_session() else { return };
                if let Err(error) = link.renew_boxed(&ours, seen).await {
                    tracing::debug!(?error, "the server cannot be reached yet");
                }
            }
        });
    }

    /// The number of the lost session. `None` when there is a session: stop trying.
    fn lost_session(&self) -> Option<u64> {
        let session = lock(&self.session);
        if !session.is_lost {
            // Under the lock, so that a session lost from now on starts new tries.
            self.is_retrying.store(false, Ordering::Release);
        }
        session.is_lost.then_some(session.number)
    }

    /// Ends the session.
    pub(super) async fn delete_session(&self) {
        if !self.has_session() {
            return;
        }
        let headers = self.legacy_headers(&Method::DELETE);
        let url = self.url.clone();
        if let Ok(response) = self.send(Method::DELETE, url, headers, Bytes::new()).await {
            discard(response).await;
        }
    }

    /// Listens for a legacy server's own messages, if it sends any.
    pub(super) fn listen(self: &Arc<Self>, shared: &Arc<Shared>) {
        let is_legacy = lock(&self.session).revision.is_some();
        if !is_legacy || self.carrier() == Carrier::Sse {
            return;
        }
        let (link, ours) = (Arc::clone(self), Arc::clone(shared));
        let task = shared.spawn(async move { link.listen_on(&ours).await });
        let before = lock(&self.session).listening.replace(task);
        if let Some(before) = before {
            before.abort();
        }
    }

    async fn listen_on(self: &Arc<Self>, shared: &Arc<Shared>) {
        let limits = &shared.profile.limits;
        let mut events = Events::new(shared, self);
        let mut backoff = Backoff::new();
        let mut was_open = false;
        loop {
            let mut headers = self.legacy_headers(&Method::GET);
            let last = events.last_id().and_then(|id| HeaderValue::from_str(&id).ok());
            if let Some(last) = last {
                headers.insert(LAST_EVENT_ID, last);
            }
            let seen = lock(&self.session).number;
            let url = self.url.clone();
            let response = self.send(Method::GET, url, headers, Bytes::new());
            let response = timeout(limits.stream_silence, response).await;
            match response.unwrap_or(Err(ExchangeError::TimedOut(limits.stream_silence))) {
                Ok(response) if is_stream(&response) => {
                    was_open = true;
                    backoff.reset();
                    let silence = Some(limits.stream_silence);
                    let body = response.into_body();
                    let _ = events.read(body, None, silence).await;
                }
                // Some servers without such a stream answer 404 where 405 is right, so 404 means a
                // lost session only if the stream was open before.
                Ok(response)
                    if response.status() == StatusCode::NOT_FOUND
                        && was_open
                        && self.has_session() =>
                {
                    // Not in this task, which a new session aborts.
                    let (link, ours) = (Arc::clone(self), Arc::clone(shared));
                    shared.spawn(async move { drop(link.renew_boxed(&ours, seen).await) });
                    return;
                }
                // The server has no such stream, or not for us.
                Ok(response) if response.status().is_client_error() => {
                    return discard(response).await;
                }
                Ok(response) => discard(response).await,
                Err(error) => {
                    tracing::debug!(?error, "the stream of server messages cannot be opened yet");
                }
            }
            sleep(events.retry.take().unwrap_or_else(|| backoff.next())).await;
        }
    }

    /// Opens the single stream of HTTP+SSE, and finds out where messages go.
    pub(in crate::client) async fn open_sse(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
    ) -> Result<(), ExchangeError> {
        let headers = self.legacy_headers(&Method::GET);
        let url = self.url.clone();
        let response = self.send(Method::GET, url, headers, Bytes::new()).await?;
        if !response.status().is_success() {
            return Err(refusal(response).await);
        }
        let wrong = |problem: &str| malformed("endpoint", problem);
        if !is_stream(&response) {
            return Err(wrong("the answer to GET is not a stream of events"));
        }
        let mut events = Events::new(shared, self);
        let mut body = response.into_body();
        let endpoint = timeout(FIRST_EVENT, events.endpoint(&mut body)).await;
        let endpoint = endpoint.map_err(|_| ExchangeError::TimedOut(FIRST_EVENT))?;
        let endpoint =
            endpoint.ok_or_else(|| wrong("the first event does not say where to send messages"))?;
        let post_url =
            resolve(&self.url, &endpoint).ok_or_else(|| wrong("the endpoint is not a URL"))?;
        if !self.is_origin_of(&post_url) {
            return Err(wrong("the endpoint is on another origin, which is not allowed"));
        }
        let (link, ours) = (Arc::clone(self), Arc::clone(shared));
        let task = shared.spawn(async move { link.read_sse(&ours, events, body).await });
        let mut session = lock(&self.session);
        session.post_url = Some(post_url.uri().clone());
        session.listening = Some(task);
        Ok(())
    }

    /// Reads the single stream of HTTP+SSE. Its end is the end of the session.
    async fn read_sse(self: &Arc<Self>, shared: &Arc<Shared>, mut events: Events, body: Body) {
        let _ = events.read(body, None, None).await;
        {
            let mut session = lock(&self.session);
            session.is_lost = true;
            session.listening = None;
        }
        let waiting = lock(&shared.calls).drain();
        for (_, waiter) in waiting {
            let problem = "the stream ended before the answer".to_owned();
            let _ = waiter.answer.send(Err(ExchangeError::Unreachable(problem)));
        }
        self.retry(shared);
    }
}

/// How long to wait for the first event of HTTP+SSE.
const FIRST_EVENT: Duration = Duration::from_secs(10);

fn is_stream(response: &http::Response<Body>) -> bool {
    response.status() == StatusCode::OK && Media::of(response.headers()) == Some(Media::EventStream)
}
