//! What a legacy server and this client remember of each other over HTTP, and the stream on which
//! the server speaks unasked.

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

/// A session, or what there is before one.
#[derive(Default)]
pub(super) struct Session {
    pub(super) id: Option<SessionId>,
    /// What was agreed on.
    pub(super) revision: Option<Revision>,
    /// Where messages go, if not to the URL itself: HTTP+SSE.
    pub(super) post_url: Option<Uri>,
    /// Another one whenever a session is found to be gone, and whenever one is opened.
    pub(super) number: u64,
    /// The last session is gone, and there is no new one yet.
    pub(super) is_lost: bool,
    /// Reads what the server says unasked.
    listening: Option<AbortHandle>,
}

/// Where answers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    /// From the POST that asked.
    Streamable,
    /// From one stream for everything, as in 2024-11-05.
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

    /// The answer to a handshake has come.
    pub(super) fn begin_session(&self, id: Option<SessionId>) {
        lock(&self.session).id = id;
    }

    /// There is a session now, or none is needed.
    pub(super) fn session_opened(&self) {
        let mut session = lock(&self.session);
        session.number += 1;
        session.is_lost = false;
    }

    /// Says that the handshake is over.
    pub(in crate::client) async fn initialized(&self, revision: Revision) -> bool {
        lock(&self.session).revision = Some(revision);
        let mut body = Vec::new();
        encode_notification::<()>(&mut body, Initialized::NAME, None)
            .expect("a name has a JSON form");
        self.notify(revision, Initialized::NAME, body).await.is_ok()
    }

    /// Opens a new session instead of the one that was `seen` to be gone; one for all who saw it.
    ///
    /// In a task of its own: whoever waits for it may give up, and others want it still.
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

    /// On the heap, because the handshake that it makes is an exchange, which may lead here.
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
            ExchangeError::Unreachable(format!("the session is gone, and no new one opens: {why}"))
        };
        let _renewing = self.renewing.lock().await;
        {
            let mut session = lock(&self.session);
            match (session.number == seen, session.is_lost) {
                (true, _) => {}
                (false, false) => return Ok(()),
                (false, true) => return Err(gone("somebody else has just tried")),
            }
            if let Some(listening) = session.listening.take() {
                listening.abort();
            }
            *session = Session { number: seen + 1, is_lost: true, ..Session::default() };
        }
        tracing::debug!("the session is gone; a new one is opened");
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

    /// Tries to open a new session until there is one, because changes wait for it. Calls do not
    /// wait: each tries for itself.
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

    /// Which session is gone. `None` ends the tries: there is one.
    fn lost_session(&self) -> Option<u64> {
        let session = lock(&self.session);
        if !session.is_lost {
            // Under the lock, so that a session lost from now on is tried for anew.
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

    /// Hears what a legacy server says unasked, if it wants to say anything.
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
                // Some that have no such stream say 404 where 405 is right, so it means a forgotten
                // session only where the stream has been open.
                Ok(response)
                    if response.status() == StatusCode::NOT_FOUND
                        && was_open
                        && self.has_session() =>
                {
                    // Not in this task, which a new session ends.
                    let (link, ours) = (Arc::clone(self), Arc::clone(shared));
                    shared.spawn(async move { drop(link.renew_boxed(&ours, seen).await) });
                    return;
                }
                // It has nothing to say, or not to us.
                Ok(response) if response.status().is_client_error() => {
                    return discard(response).await;
                }
                Ok(response) => discard(response).await,
                Err(error) => tracing::debug!(?error, "the server cannot be listened to yet"),
            }
            sleep(events.retry.take().unwrap_or_else(|| backoff.next())).await;
        }
    }

    /// Opens the one stream of HTTP+SSE, and finds out where messages go.
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
            return Err(wrong("the answer to GET is no stream of events"));
        }
        let mut events = Events::new(shared, self);
        let mut body = response.into_body();
        let endpoint = timeout(FIRST_EVENT, events.endpoint(&mut body)).await;
        let endpoint = endpoint.map_err(|_| ExchangeError::TimedOut(FIRST_EVENT))?;
        let endpoint = endpoint.ok_or_else(|| wrong("the first event is not where to send to"))?;
        let post_url = resolve(&self.url, &endpoint).ok_or_else(|| wrong("it is no URL"))?;
        if !self.is_origin_of(&post_url) {
            return Err(wrong("it leads to another origin, which is not followed"));
        }
        let (link, ours) = (Arc::clone(self), Arc::clone(shared));
        let task = shared.spawn(async move { link.read_sse(&ours, events, body).await });
        let mut session = lock(&self.session);
        session.post_url = Some(post_url.uri().clone());
        session.listening = Some(task);
        Ok(())
    }

    /// Reads the one stream of HTTP+SSE. Its end is the end of the session.
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

/// How long the first event of HTTP+SSE may take.
const FIRST_EVENT: Duration = Duration::from_secs(10);

fn is_stream(response: &http::Response<Body>) -> bool {
    response.status() == StatusCode::OK && Media::of(response.headers()) == Some(Media::EventStream)
}
