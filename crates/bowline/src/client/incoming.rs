//! Dispatches what a server sends: answers to their waiters, notifications in order, requests to
//! their handlers, and the rest to the hook for faults.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::line::LineTooLong;
use bowline_proto::method::{
    Cancelled, Notice, Progress, PromptListChanged, ResourceListChanged, ResourceUpdated,
    SubscriptionsAcknowledged, TaskChanged, TaskStatusChanged, ToolListChanged,
};
use bowline_proto::model::{
    CancelledParams, Meta, ProgressParams, RelatedTask, ResourceUpdatedParams, SubscriptionFilter,
    SubscriptionsAcknowledgedParams,
};
use bowline_proto::raw::Raw;
use bowline_proto::revision::Revision;
use bowline_proto::session::{BeginError, Recipient};
use bowline_proto::wire::{self, BatchError, Id, Message, ParseError, Request, Response};
use tokio::sync::oneshot;

use super::changes::Change;
use super::exchange::ExchangeError;
use super::limits::ClientLimit;
use super::notification::{Fault, Notification, Told, start_of};
use super::outgoing::answered;
use super::shared::{Hears, Link, Shared, guarded, lock, malformed, refused};
use super::wire::{self as tap, Direction};
use crate::clock;

/// The most messages that a server may send in one batch.
const BATCH: usize = 1_000;

impl Shared {
    /// Takes in one frame. Returns the answer to `call` if the frame has it; every other answer
    /// goes to its waiter.
    pub(super) fn handle_frame(
        self: &Arc<Self>,
        frame: &[u8],
        link: &Link,
        call: Option<&Id>,
    ) -> Option<Result<Json, ExchangeError>> {
        tap::tell(self.profile.on_wire.as_ref(), Direction::Received, frame);
        let mut answer = None;
        match Message::parse(frame) {
            Ok(message) => answer = self.handle_message(message, link, call),
            // Only 2025-03-26 has batches, but then from servers too.
            Err(_) if frame.trim_ascii_start().starts_with(b"[") => {
                match wire::parse_batch(frame, BATCH) {
                    Ok(messages) => {
                        for message in messages {
                            let this = self.handle_message(message, link, call);
                            answer = answer.or(this);
                        }
                    }
                    Err(BatchError::Whole(error)) => self.handle_broken(frame, &error),
                    Err(BatchError::Parts(errors)) => {
                        errors.iter().for_each(|error| self.handle_broken(frame, error));
                    }
                }
            }
            Err(error) => self.handle_broken(frame, &error),
        }
        answer
    }

    fn handle_message(
        self: &Arc<Self>,
        message: Message<'_>,
        link: &Link,
        call: Option<&Id>,
    ) -> Option<Result<Json, ExchangeError>> {
        match message {
            Message::Response(response) => return self.handle_response(response, call),
            Message::Notification(notification) => {
                self.handle_notification(&notification.method, notification.params);
            }
            Message::Request(request) => self.handle_request(request, link),
            Message::Fault(error) => self.fault(&Fault::Reported(error)),
        }
        None
    }

    /// Handles a frame that is not a message. If it was meant to answer a call, the call fails now,
    /// not at its deadline.
    pub(super) fn handle_broken(&self, frame: &[u8], error: &ParseError) {
        let problem = error.to_string();
        if let Some(id) = error.id.as_ref().filter(|_| !error.has_method) {
            self.fail_call(id, &format!("the answer cannot be read: {problem}"));
        }
        self.fault(&Fault::NotAMessage { problem, start: start_of(frame) });
    }

    /// Takes in the start of a frame that is longer than allowed. If it was meant to answer a call,
    /// the call fails now, not at its deadline.
    pub(super) fn handle_too_long(&self, error: &LineTooLong) {
        let ParseError { id, has_method, .. } = ParseError::too_long(error.limit, &error.prefix);
        let mut calls = lock(&self.calls);
        // Some servers write the result first and the id last.
        let is_answer = || error.prefix.windows(8).any(|bytes| bytes == br#""result""#);
        let id = id.or_else(|| calls.only_pending().filter(|_| is_answer()));
        if let Some(waiter) = id.filter(|_| !has_method).and_then(|id| calls.abandon(&id)) {
            let exceeded = ExchangeError::TooMuch(ClientLimit::MessageLength, error.limit);
            let _ = waiter.answer.send(Err(exceeded));
        }
        drop(calls);
        self.fault(&Fault::TooLong { limit: error.limit });
    }

    fn fail_call(&self, id: &Id, problem: &str) {
        let mut calls = lock(&self.calls);
        let method = calls.method(id).map(str::to_owned);
        if let (Some(method), Some(waiter)) = (method, calls.abandon(id)) {
            let _ = waiter.answer.send(Err(malformed(&method, problem)));
        }
    }

    fn handle_response(
        &self,
        response: Response<'_>,
        call: Option<&Id>,
    ) -> Option<Result<Json, ExchangeError>> {
        let Response { id, outcome } = response;
        let recipient = lock(&self.calls).close(&id);
        match recipient {
            Recipient::Awaited(waiter) => {
                let answer = outcome.map(Json::copy_of).map_err(refused);
                if call == Some(&id) {
                    return Some(answer);
                }
                let _ = waiter.answer.send(answer);
            }
            Recipient::Late => tracing::debug!(%id, "a late answer"),
            Recipient::Unknown => {
                // A call whose id came back as a string would wait in vain.
                if let Some(number) = id.as_str().and_then(|text| text.parse::<i64>().ok()) {
                    let problem =
                        format!("the answer has the string {id} as its id, but a number was sent");
                    self.fail_call(&Id::from(number), &problem);
                }
                self.fault(&Fault::UnknownAnswer { id: id.to_string() });
            }
        }
        None
    }

    /// The negotiated revision, or the latest legacy one while that is not known yet.
    fn revision(&self) -> Revision {
        self.live().map_or(Revision::LATEST_LEGACY, |live| live.peer.revision)
    }

    pub(super) fn handle_notification(&self, method: &str, params: Option<Raw<'_>>) {
        match method {
            Progress::NAME => self.handle_progress(params),
            Cancelled::NAME => self.handle_cancelled(params),
            ToolListChanged::NAME => self.handle_change(&Change::Tools),
            PromptListChanged::NAME => self.handle_change(&Change::Prompts),
            ResourceListChanged::NAME => self.handle_change(&Change::Resources),
            ResourceUpdated::NAME => {
                if let Some(ResourceUpdatedParams { uri, .. }) = read(params) {
                    self.handle_change(&Change::Resource(uri));
                }
            }
            SubscriptionsAcknowledged::NAME => self.handle_acknowledged(params),
            TaskChanged::NAME | TaskStatusChanged::NAME => self.handle_task(params),
            _ => {}
        }
        self.tell(method, params);
    }

    /// Passes a notification to the application, in order.
    fn tell(&self, method: &str, params: Option<Raw<'_>>) {
        let hook = self.profile.on_notification.as_ref();
        if hook.is_none() && self.notifications.receiver_count() == 0 {
            return;
        }
        let size = method.len() + params.map_or(0, |params| params.get().len());
        let params = params.map_or_else(Json::empty_object, Json::copy_of);
        let notification = Notification { method: method.into(), params: Arc::new(params) };
        if let Some(hook) = hook {
            guarded(|| hook(&notification));
        }
        let told = match self.queued.take(size) {
            Some(share) => Told::Notification(notification, Arc::new(share)),
            None => Told::Dropped,
        };
        // No receiver may be left, which is fine.
        let _ = self.notifications.send(told);
    }

    fn handle_progress(&self, params: Option<Raw<'_>>) {
        let size = params.map_or(0, |params| params.get().len());
        let Some(progress) = read::<ProgressParams>(params) else { return };
        let mut calls = lock(&self.calls);
        let id = &progress.progress_token.0;
        if calls.touch(clock::now().into_std(), id)
            && let Some(Hears::Progress(sink)) = calls.waiter(id).map(|waiter| &waiter.hears)
            && let Some(share) = self.queued.take(size)
        {
            // A slow caller misses some reports, but never the answer.
            let _ = sink.try_send((progress, share));
        }
    }

    fn handle_cancelled(&self, params: Option<Raw<'_>>) {
        let Some(CancelledParams { request_id: Some(id), .. }) = read(params) else { return };
        if let Some(task) = lock(&self.inbound).cancel(&id) {
            task.abort();
        }
        // A modern server may end a subscription this way.
        let mut calls = lock(&self.calls);
        let hears = calls.waiter(&id).map(|it| &it.hears);
        let listens = matches!(hears, Some(Hears::Changes(_) | Hears::Task(_)));
        if listens && let Some(waiter) = calls.abandon(&id) {
            let _ = waiter.answer.send(Ok(Json::empty_object()));
        }
    }

    fn handle_change(&self, change: &Change) {
        self.cache.forget(change);
        self.feeds.tell(change);
    }

    fn handle_acknowledged(&self, params: Option<Raw<'_>>) {
        let Some(acknowledged) = read::<SubscriptionsAcknowledgedParams>(params) else { return };
        let granted: SubscriptionFilter = acknowledged.notifications;
        let id = acknowledged.meta.as_ref().and_then(Meta::subscription_id);
        let mut calls = lock(&self.calls);
        match id.and_then(|id| calls.waiter(&id)).map(|waiter| &waiter.hears) {
            Some(Hears::Changes(feed)) => {
                feed.acknowledge(granted);
                self.cache.clear();
            }
            Some(Hears::Task(feed)) => feed.acknowledge(&granted),
            _ => {}
        }
    }

    /// Passes the state of a task on to whoever waits for it.
    fn handle_task(&self, params: Option<Raw<'_>>) {
        let (Some(RelatedTask { task_id }), Some(params)) = (read(params), params) else { return };
        self.task_feeds.tell(&task_id, params, &self.queued);
    }

    /// Starts to answer a request of the server.
    fn handle_request(self: &Arc<Self>, request: Request<'_>, link: &Link) {
        let Request { id, method, params } = request;
        if self.revision().is_modern() && !link.is_stream() {
            let problem =
                format!("a request ({method}), which servers cannot send in this revision");
            return self.fault(&Fault::NotAMessage { problem, start: String::new() });
        }
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return self.refuse(link, &id, &method, busy());
        };
        let size =
            method.len() + id.to_string().len() + params.raw().map_or(0, |it| it.get().len());
        let Some(share) = self.queued.take(size) else {
            return self.refuse(link, &id, &method, busy());
        };
        let passed_on = self.handlers.pass_on(self.revision(), &method, params.raw());
        let params = params.raw().map(Json::copy_of);
        // The task must not finish before it is registered.
        let (begin, begun) = oneshot::channel();
        let (shared, reply, asked) = (Arc::clone(self), link.clone(), id.clone());
        let name = method.clone().into_owned();
        let task = self.spawn(async move {
            let _held = (place, share);
            let Ok(ticket) = begun.await else { return };
            let params = params.as_ref().map(Json::as_raw);
            let answer = match passed_on {
                Some(answer) => caught(answer).await,
                None => caught(shared.handlers.respond(shared.revision(), &name, params)).await,
            };
            if lock(&shared.inbound).finish(ticket) {
                reply.answer(&asked, answer).await;
            }
        });
        let begun = lock(&self.inbound).begin(id.clone(), &method, task);
        match begun {
            Ok(ticket) => drop(begin.send(ticket)),
            Err(BeginError::Refused(error)) => self.refuse(link, &id, &method, error),
            Err(BeginError::Full) => self.refuse(link, &id, &method, busy()),
        }
    }

    /// Rejects a request of the server. A server that does not read gets no answer, so that answers
    /// do not pile up.
    fn refuse(self: &Arc<Self>, link: &Link, id: &Id, method: &str, error: ErrorObject) {
        let is_answered = match link {
            Link::Stream(outbox) => outbox.try_push(|out| answered(out, id, &Err(error))),
            #[cfg(feature = "client-http")]
            Link::Http(_) => match Arc::clone(&self.places).try_acquire_owned() {
                Err(_) => false,
                Ok(place) => {
                    let (link, id) = (link.clone(), id.clone());
                    self.spawn(async move {
                        link.answer(&id, Err(error)).await;
                        drop(place);
                    });
                    true
                }
            },
        };
        if !is_answered {
            self.fault(&Fault::Unanswered { method: method.to_owned() });
        }
    }
}

fn busy() -> ErrorObject {
    ErrorObject::internal("too many requests at a time")
}

/// Awaits a handler of the application. A panic becomes an error, so that the server gets an
/// answer.
async fn caught<T>(
    handler: impl Future<Output = Result<T, ErrorObject>>,
) -> Result<T, ErrorObject> {
    let mut handler = std::pin::pin!(handler);
    let poll = |cx: &mut Context<'_>| {
        let polled = catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| {
            tracing::error!("a handler of the application panicked");
            Poll::Ready(Err(ErrorObject::internal("the client's handler failed")))
        })
    };
    std::future::poll_fn(poll).await
}

impl Link {
    /// Whether requests can be answered on this link in every era.
    fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    async fn answer(&self, id: &Id, answer: Result<Json, ErrorObject>) {
        match self {
            // If the outbox is closed, there is no server left to read the answer.
            Self::Stream(outbox) => drop(outbox.send(|out| answered(out, id, &answer)).await),
            #[cfg(feature = "client-http")]
            Self::Http(link) => link.answer(id, &answer).await,
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(params: Option<Raw<'_>>) -> Option<T> {
    let read = serde_json::from_str(params.map_or("{}", Raw::get));
    read.inspect_err(|error| tracing::warn!(%error, "a notification that cannot be read")).ok()
}
