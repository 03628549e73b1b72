//! Modern requests: each stands alone, and is served by the task that reads it.
//!
//! There is no session, and nothing is spawned: the handler is polled here. If it is ready before
//! it sends a message, the response is one JSON body with a status. Otherwise the response becomes
//! a stream that owns the handler.

use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bowline_proto::decode::DecodeError;
use bowline_proto::error::ErrorObject;
use bowline_proto::http::{Outline, name_source};
use bowline_proto::method::{Method, SubscriptionsListen, is_known};
use bowline_proto::revision::Revision;
use bowline_proto::session::Subscription;
use bowline_proto::wire::{Id, Request};
use bytes::Bytes;

use super::admit::Head;
use super::body::Source;
use super::reply::{self, Reply};
use super::service::HttpService;
use super::stop::Stopped;
use super::stream::{Execution, Streaming, Ticker, encode_event, poll_once, poll_quietly};
use crate::server::account::Account;
use crate::server::account::places::{Full, Kind, Place};
use crate::server::dispatch::Listening;
use crate::server::listen::Listener;
use crate::server::{
    Core, Handling, Outbox, Peer, Sender, Sink, Started, TopicReader, Via, dispatch, listen,
};
use crate::{Failure, FailureKind, Outcome, Principal, Profile, Registry};

impl HttpService {
    /// Serves a modern request.
    pub(super) async fn serve_modern(
        &self,
        head: &Head<'_>,
        request: &Request<'_>,
        revision: Revision,
    ) -> Reply {
        let name = match read_name(request) {
            Ok(name) => name,
            Err(error) => return self.refuse(head, request, revision, error.into()).await,
        };
        let outline =
            Outline { revision: revision.as_str(), method: &request.method, name: name.as_deref() };
        if let Err(mismatch) = outline.check(head.fields) {
            return self.refuse(head, request, revision, mismatch.to_error_object()).await;
        }
        let (params, principal) = (&request.params, head.principal.as_ref());
        match head.remembered.sender(&self.inner.core, &Sender { revision, params, principal }) {
            Ok(peer) => {
                let headers = Some(head.fields.headers());
                let asked = dispatch::Request { asker: head.asker(&peer), asked: request, headers };
                self.answer_alone(head, &asked).await
            }
            Err(error) => self.refuse(head, request, revision, error).await,
        }
    }

    /// Refuses a request that cannot be dispatched. Boxed: it is rare.
    fn refuse<'a>(
        &'a self,
        head: &'a Head<'_>,
        request: &'a Request<'_>,
        revision: Revision,
        error: ErrorObject,
    ) -> Pin<Box<dyn Future<Output = Reply> + Send + 'a>> {
        Box::pin(async move {
            let peer = self.outsider(head.stranger(revision));
            let outbox = Arc::new(Outbox::new(self.inner.core.limits.outbox));
            let asked =
                dispatch::Request { asker: head.asker(&peer), asked: request, headers: None };
            let started = dispatch::surround(&asked, &outbox, Err(Failure::rejected(error)));
            self.conclude(head, &asked, outbox, started).await
        })
    }

    /// A sender without a session.
    pub(super) fn outsider(&self, profile: Profile) -> Arc<Peer> {
        Peer::new(&self.inner.core, profile, Via::HTTP)
    }

    /// Serves a request without a session, on the task that read it.
    pub(super) async fn answer_alone(
        &self,
        head: &Head<'_>,
        asked: &dispatch::Request<'_>,
    ) -> Reply {
        let outbox = Arc::new(Outbox::new(self.inner.core.limits.outbox));
        let started = match self.check_calls(head, &asked.asked.method) {
            Ok(()) => dispatch::start(asked, &outbox, None),
            Err(failure) => dispatch::surround(asked, &outbox, Err(failure)),
        };
        self.conclude(head, asked, outbox, started).await
    }

    /// Answers a request that has started.
    async fn conclude(
        &self,
        head: &Head<'_>,
        asked: &dispatch::Request<'_>,
        outbox: Arc<Outbox>,
        started: Started,
    ) -> Reply {
        let (request, profile) = (asked.asked, &asked.asker.peer.profile);
        let revision = profile.revision;
        let done = |outcome| self.reply(&request.id, revision, outcome);
        let mut running = match started {
            Started::Running(running) | Started::Settled(running) => running,
            Started::Done(outcome) => return done(*outcome),
            Started::Listening(listening) => {
                let principal = profile.principal.as_ref();
                match *listening {
                    Listening { subscription, around: None } => {
                        let account = self.account(head);
                        return self.listen(&request.id, subscription, principal, &account);
                    }
                    Listening { subscription, around: Some((around, reader)) } => {
                        let stopped = match self.listening(principal) {
                            Ok(stopped) => stopped,
                            Err(reply) => return reply,
                        };
                        let account = self.account(head);
                        let sink = self.inner.core.registry.bus().attach(Arc::clone(&account));
                        let id = request.id.clone();
                        let registry = self.inner.core.registry.clone();
                        let place = Place::take(&account, self.inner.limits.most(Kind::Streams));
                        around.run(Self::listening_within(
                            id,
                            &outbox,
                            (subscription, reader, registry),
                            (place, sink, stopped),
                        ))
                    }
                }
            }
        };
        let is_beyond = self.inner.core.beyond.is_some() && !is_known(&request.method);
        let polled = match is_beyond {
            true => poll_quietly(&mut running, &outbox).await,
            false => poll_once(&mut running).await,
        };
        let execution = match polled {
            Poll::Ready(outcome) if outbox.is_empty() => return done(outcome),
            Poll::Ready(outcome) => Execution::Done(Some(outcome)),
            Poll::Pending => Execution::new(running),
        };
        // Boxed, so that the futures of the many that are done by now stay small.
        let place = Place::claim(&self.account(head), Kind::Calls);
        let to = (request.id.clone(), revision);
        Box::pin(self.run_alone(to, outbox, execution, place)).await
    }

    async fn run_alone(
        &self,
        (id, revision): (Id, Revision),
        outbox: Arc<Outbox>,
        mut execution: Execution,
        place: Place,
    ) -> Reply {
        let mut said = Vec::new();
        let done = poll_fn(|cx| match execution.poll(cx) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending => outbox.poll_take(cx, &mut said).map(|_| None),
        })
        .await;
        match done {
            Some(outcome) if outbox.is_empty() && said.is_empty() => {
                self.reply(&id, revision, outcome)
            }
            done => {
                if done.is_some() {
                    execution = Execution::Done(done);
                }
                let mut opening = Vec::new();
                super::stream::encode_lines(&mut opening, &said);
                let streaming = Streaming {
                    core: Arc::clone(&self.inner.core),
                    id,
                    revision,
                    outbox,
                    execution: Some(execution),
                    keep_alive: Ticker::new(self.inner.limits.keep_alive),
                    _place: place,
                };
                reply::stream(After { opening: Some(opening.into()), rest: streaming })
            }
        }
    }

    /// The outcome of a request as one JSON body. A caller that lacks scopes is challenged.
    pub(super) fn reply(&self, id: &Id, revision: Revision, outcome: Outcome) -> Reply {
        match &outcome {
            Err(failure) if failure.kind == FailureKind::Forbidden => {
                self.insufficient(Some(id), failure.needed())
            }
            Err(failure) if failure.kind == FailureKind::Busy => {
                reply::busy_with(Some(id), &failure.error)
            }
            _ => reply::outcome(&self.inner.core, id, revision, outcome),
        }
    }

    /// A listening stream, as a handler that middleware can run.
    fn listening_within(
        id: Id,
        outbox: &Arc<Outbox>,
        (subscription, reader, registry): (Subscription, Option<TopicReader>, Registry),
        (place, sink, stopped): (Result<Place, Full>, Arc<Sink>, Stopped),
    ) -> Handling {
        let outbox = Arc::clone(outbox);
        Handling::Other(Box::pin(async move {
            let _place = place.map_err(|full| Failure::busy(SubscriptionsListen::NAME, full))?;
            let to = Listener { sink: &sink, outbox: &outbox, registry: &registry, reader };
            to.serve(id, subscription, stopped).await
        }))
    }

    /// Opens a listening stream.
    fn listen(
        &self,
        id: &Id,
        subscription: Subscription,
        principal: Option<&Principal>,
        account: &Arc<Account>,
    ) -> Reply {
        let place = match Place::take(account, self.inner.limits.most(Kind::Streams)) {
            Ok(place) => place,
            Err(full) => {
                let failure = Failure::busy(SubscriptionsListen::NAME, full);
                return reply::busy_with(Some(id), &failure.error);
            }
        };
        let stopped = match self.listening(principal) {
            Ok(stopped) => stopped,
            Err(reply) => return reply,
        };
        let sink = self.inner.core.registry.bus().attach(Arc::clone(account));
        let mut frame = Vec::new();
        listen::acknowledgement(&subscription, id).encode(&mut frame);
        let mut opening = Vec::new();
        encode_event(&mut opening, None, &frame);
        if let Err(error) = sink.add(Some(id.clone()), subscription) {
            return reply::busy(&error.message);
        }
        sink.release(Some(id));
        let listening = ListeningStream {
            core: Arc::clone(&self.inner.core),
            stopped,
            id: Some(id.clone()),
            sink,
            keep_alive: Ticker::new(self.inner.limits.keep_alive),
            _place: place,
        };
        reply::stream(After { opening: Some(opening.into()), rest: listening })
    }
}

/// A stream that starts with bytes that are already known.
pub(super) struct After<S> {
    pub(super) opening: Option<Bytes>,
    pub(super) rest: S,
}

impl<S: Source> Source for After<S> {
    fn poll_bytes(&mut self, cx: &mut std::task::Context<'_>) -> Poll<Option<Bytes>> {
        match self.opening.take().filter(|opening| !opening.is_empty()) {
            Some(opening) => Poll::Ready(Some(opening)),
            None => self.rest.poll_bytes(cx),
        }
    }
}

/// A listening stream: reports changes until either side ends it.
struct ListeningStream {
    core: Arc<Core>,
    stopped: Stopped,
    id: Option<Id>,
    sink: Arc<Sink>,
    keep_alive: Ticker,
    _place: Place,
}

impl Source for ListeningStream {
    fn poll_bytes(&mut self, cx: &mut std::task::Context<'_>) -> Poll<Option<Bytes>> {
        let Some(id) = &self.id else { return Poll::Ready(None) };
        let mut out = Vec::new();
        while let Poll::Ready(change) = self.sink.poll_next(cx) {
            let mut frame = Vec::new();
            listen::change(&change, None).encode(&mut frame);
            encode_event(&mut out, None, &frame);
        }
        if self.stopped.as_mut().poll(cx).is_ready() {
            let mut frame = Vec::new();
            self.core.signature.encode_listen_end(&mut frame, id);
            encode_event(&mut out, None, &frame);
            self.id = None;
        }
        if out.is_empty() {
            return self.keep_alive.poll(cx).map(Some);
        }
        self.keep_alive.reset();
        Poll::Ready(Some(out.into()))
    }
}

/// The member that the header `Mcp-Name` must repeat, if the request has it.
fn read_name<'a>(request: &Request<'a>) -> Result<Option<Cow<'a, str>>, DecodeError> {
    match name_source(&request.method) {
        Some(source) => request.params.string(&request.method, source.member),
        None => Ok(None),
    }
}
