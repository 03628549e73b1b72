//! Streams of legacy sessions that clients open, resume and end.

use std::sync::Arc;

use bowline_proto::error::ErrorObject;
use bowline_proto::http::{LAST_EVENT_ID, Refusal, check_accept};
use bowline_proto::session::{ResumeError, StreamId};
use http::StatusCode;

use super::admit::Head;
use super::live::{Ended, Live, Standalone};
use super::modern::After;
use super::reply::{self, Reply};
use super::service::HttpService;
use super::sessions::HttpSession;
use super::stop::Stopped;
use super::stream::{Ticker, encode_event};
use crate::server::Outbox;
use crate::server::account::places::{Kind, Place};
use crate::server::audit::Why;

impl HttpService {
    /// Opens the standalone stream of a session, or resumes a stream.
    pub(super) async fn get_legacy(&self, head: &Head<'_>) -> Reply {
        self.try_get_legacy(head).await.unwrap_or_else(|reply| reply)
    }

    async fn try_get_legacy(&self, head: &Head<'_>) -> Result<Reply, Reply> {
        let refused = |refusal| reply::refusal(&refusal);
        check_accept(&head.parts.method, head.fields).map_err(refused)?;
        let id = head.fields.session_id().map_err(refused)?;
        let session = self.session(head, id.as_ref()).await?;
        let last = head.fields.headers().get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
        let stopped = match self.listening(head.principal.as_ref()) {
            Ok(stopped) => stopped,
            Err(reply) => return Ok(reply),
        };
        if let Some(last) = last {
            return Ok(match Box::pin(self.open_elsewhere(&session, last)).await {
                Some(opened) => self.pipe(opened, stopped),
                None => self.resume(&session, last, stopped),
            });
        }
        let most = self.inner.limits.most(Kind::Streams);
        let place = match Place::take(&self.account(head), most) {
            Ok(place) => place,
            Err(full) => return Ok(reply::busy(&full.to_string())),
        };
        let opened = session.open_standalone(self.inner.core.limits.outbox);
        let Some((stream, live)) = opened else {
            return Ok(reply::status(StatusCode::CONFLICT));
        };
        let live = self.live(&session, stream, live);
        Box::pin(self.keep_standalone(&session, stream.number())).await?;
        Ok(reply::stream(Standalone { live, stopped, _place: Some(place) }))
    }

    pub(super) fn live(
        &self,
        session: &Arc<HttpSession>,
        stream: StreamId,
        live: Arc<Outbox>,
    ) -> Live {
        let keep_alive = Ticker::new(self.inner.limits.keep_alive);
        let (service, session) = (self.clone(), Arc::clone(session));
        Live { service, session, stream, live, keep_alive }
    }

    /// Sends what a client has missed of a stream, and then the rest of it.
    pub(super) fn resume(&self, session: &Arc<HttpSession>, last: &str, stopped: Stopped) -> Reply {
        let mut state = session.lock();
        let missed = match state.replay().resume(last) {
            Ok(missed) => missed,
            Err(ResumeError::Ended) => return reply::status(StatusCode::NO_CONTENT),
            Err(error) => {
                let error = ErrorObject::invalid_request(error.to_string());
                return reply::error(StatusCode::BAD_REQUEST, None, &error).because(Why::Session);
            }
        };
        // A call that was cancelled, or whose answer the client has. To an `EventSource`, 204 means
        // not to come back (HTML, server-sent events); the TypeScript SDK sees a response without a
        // body and is content. An empty 200 makes both official SDKs ask again and again, because
        // the stream ended without an answer; any error reaches the application.
        if missed.is_closed && missed.events.is_empty() {
            return reply::status(StatusCode::NO_CONTENT);
        }
        let mut opening = Vec::new();
        for (id, frame) in &missed.events {
            encode_event(&mut opening, Some(&id.to_string()), frame);
        }
        if missed.is_closed {
            drop(state);
            return reply::stream(After { opening: Some(opening.into()), rest: Ended });
        }
        let live = state.attach(missed.stream, self.inner.core.limits.outbox);
        let is_standalone = state.standalone == Some(missed.stream);
        drop(state);
        let live = self.live(session, missed.stream, live);
        let opening = Some(opening.into());
        if is_standalone {
            let rest = Standalone { live, stopped, _place: None };
            return reply::stream(After { opening, rest });
        }
        reply::stream(After { opening, rest: live })
    }

    /// Ends a session.
    pub(super) async fn delete_legacy(&self, head: &Head<'_>) -> Reply {
        match (head.fields.session_id(), &self.inner.core.fleet) {
            (Err(refusal), _) => reply::refusal(&refusal),
            (Ok(None), _) => reply::refusal(&Refusal::SessionMissing),
            (Ok(Some(id)), Some(joined)) => match self.end_shared(head, joined, &id).await {
                Ok(()) => reply::status(StatusCode::NO_CONTENT),
                Err(reply) => reply,
            },
            (Ok(Some(id)), None) if self.inner.sessions.close(&id, head.principal.as_ref()) => {
                reply::status(StatusCode::NO_CONTENT)
            }
            (Ok(Some(_)), None) => reply::refusal(&Refusal::SessionUnknown),
        }
    }
}
