//! Changes on a server, as one stream that survives reconnects.
//!
//! In the modern era a long-lived request carries the changes, and is sent again when it ends. In
//! the legacy era the client subscribes to resources one by one, and again in a new session.
//! Changes are flags, not messages: a slow reader sees each once. After a gap everything that was
//! asked for counts as changed, because the client cannot know what it missed.

mod feed;
mod wanted;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bowline_proto::error::ErrorCode;
use bowline_proto::method::{Method, Subscribe, SubscriptionsListen, Unsubscribe};
use bowline_proto::model::{
    RequestMeta, SubscribeParams, SubscriptionFilter, SubscriptionsListenParams,
};
use bowline_proto::session::Timeout;
use futures_core::Stream;
use tokio::sync::futures::OwnedNotified;
use tokio::task::AbortHandle;

pub(super) use self::feed::{Feed, Feeds};
pub use self::wanted::Wanted;
use self::wanted::{missing, offered};
use super::Client;
use super::call::{CallOptions, building};
use super::error::CallError;
use super::exchange::Sending;
use super::outgoing::{Outgoing, Round};
use super::restart::Backoff;
use super::shared::{Hears, Live, Shared};
use super::state::Phase;

/// Something changed on the server. Ask the server for its new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources, or of their templates.
    Resources,
    /// The contents of a resource, by URI.
    Resource(String),
}

/// Changes as they happen. Ends when the client is closed, or with an error when the server does
/// not report changes.
pub struct Changes {
    feed: Arc<Feed>,
    client: Client,
    task: AbortHandle,
    waiting: Option<Pin<Box<OwnedNotified>>>,
}

impl Client {
    /// Subscribes to changes, from now on and across reconnects.
    ///
    /// Nothing is lost between this call and the first change. Changes that the server does not
    /// offer are left out, as long as it offers one of them; see [`Changes::granted`].
    ///
    /// # Errors
    /// When the server offers none of these changes ([`CallError::Lacks`], in either era), refuses,
    /// or does not confirm in time; when the client is closed.
    ///
    /// # Cancel safety
    /// The subscription is withdrawn.
    pub async fn changes(&self, wanted: Wanted) -> Result<Changes, CallError> {
        let shared = Arc::clone(&self.shared);
        shared.ready("changes").await?;
        let feed = Arc::new(Feed::new(wanted.0, shared.profile.limits.changed_bytes));
        shared.feeds.add(&feed);
        let task = shared.spawn(listen(Arc::clone(&shared), Arc::clone(&feed)));
        let changes = Changes { feed, client: self.clone(), task, waiting: None };
        let patience = shared.profile.timeouts.idle;
        let opened = tokio::time::timeout(patience, changes.feed.settled()).await;
        opened.unwrap_or_else(|_| Err(late("changes", patience)))?;
        Ok(changes)
    }
}

impl Changes {
    /// Waits for the next change. Returns `None` when the client was closed.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<Result<Change, CallError>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// What the server agreed to report. A modern server says so; of a legacy server it follows
    /// from the capabilities.
    pub fn granted(&self) -> SubscriptionFilter {
        self.feed.granted()
    }
}

impl Stream for Changes {
    type Item = Result<Change, CallError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            let waiting = this
                .waiting
                .get_or_insert_with(|| Box::pin(Arc::clone(&this.feed.changed).notified_owned()));
            waiting.as_mut().enable();
            if let Some(taken) = this.feed.take() {
                return Poll::Ready(taken);
            }
            match waiting.as_mut().poll(cx) {
                Poll::Ready(()) => this.waiting = None,
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.task.abort();
        let is_legacy = self.client.peer().is_some_and(|peer| !peer.revision.is_modern());
        if self.feed.uris().is_empty() || !is_legacy {
            return;
        }
        let uris = self.feed.uris().to_vec();
        let shared = Arc::clone(&self.client.shared);
        self.feed = Arc::new(Feed::new(SubscriptionFilter::default(), 0));
        let ours = Arc::clone(&shared);
        ours.spawn(async move {
            for uri in uris.into_iter().filter(|uri| !shared.feeds.wants(uri)) {
                let params = SubscribeParams { uri, meta: RequestMeta::default() };
                let _ = shared
                    .call::<Unsubscribe>(building::<Unsubscribe>(params), &CallOptions::default())
                    .await;
            }
        });
    }
}

/// Keeps the subscription alive until the client is closed or the server refuses.
async fn listen(shared: Arc<Shared>, feed: Arc<Feed>) {
    let mut backoff = Backoff::new();
    loop {
        let live = match shared.ready("changes").await {
            Ok(live) => live,
            // The connection is slow to come back, but may yet.
            Err(CallError::TimedOut { .. }) => continue,
            Err(_) => return feed.end(Ok(())),
        };
        feed.ask_anew();
        let outcome = match live.peer.revision.is_modern() {
            true => listen_once(&shared, &live, &feed).await,
            false => subscribe_once(&shared, &live, &feed).await,
        };
        match outcome {
            // A new connection: subscribe again at once.
            Ok(()) if !live.peer.revision.is_modern() => continue,
            Ok(()) => {}
            Err(error) if is_final(&error) => return feed.end(Err(error)),
            Err(error) => {
                tracing::debug!(%error, "the server does not report changes at the moment");
            }
        }
        if feed.is_told() {
            backoff.reset();
        }
        // Pause, in case the server ends every stream at once.
        tokio::time::sleep(backoff.next()).await;
    }
}

/// Whether asking again would be pointless.
fn is_final(error: &CallError) -> bool {
    match error {
        CallError::Refused { error, .. } => error.code != ErrorCode::INTERNAL_ERROR,
        CallError::Lacks { .. } | CallError::NoSuchMethod { .. } => true,
        CallError::Unauthorized { .. } | CallError::Unsendable { .. } => true,
        _ => false,
    }
}

async fn listen_once(shared: &Arc<Shared>, live: &Live, feed: &Arc<Feed>) -> Result<(), CallError> {
    let params = SubscriptionsListenParams {
        notifications: feed.wanted.clone(),
        meta: RequestMeta::default(),
    };
    let outgoing = Outgoing::typed::<SubscriptionsListen>(params, live.peer.revision)?;
    let sending = Sending {
        outgoing: &outgoing,
        round: &Round::default(),
        claim: &live.claim,
        timeout: Timeout::NEVER,
        hears: Hears::Changes(Arc::clone(feed)),
        is_cancellable: true,
    };
    let mut exchange = std::pin::pin!(shared.exchange(&live.link, &sending));
    let patience = shared.profile.timeouts.idle;
    let useless = async {
        if tokio::time::timeout(patience, feed.told()).await.is_err() {
            return late(SubscriptionsListen::NAME, patience);
        }
        match lacking(feed, &feed.granted()) {
            Some(error) => error,
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        ended = &mut exchange => ended,
        error = useless => return Err(error),
    };
    match ended.map_err(|error| error.into_call_error(SubscriptionsListen::NAME)) {
        Err(CallError::Refused { error, .. }) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            let none = SubscriptionFilter::default();
            let refused =
                CallError::Refused { method: SubscriptionsListen::NAME.to_owned(), error };
            Err(lacking(feed, &none).unwrap_or(refused))
        }
        ended => ended.map(drop),
    }
}

/// The error for a server that reports nothing of what is wanted.
fn lacking(feed: &Feed, granted: &SubscriptionFilter) -> Option<CallError> {
    let capability = missing(&feed.wanted, granted)?;
    Some(CallError::Lacks { method: "changes".to_owned(), capability })
}

/// The server did not confirm the subscription in time.
fn late(method: &str, after: Duration) -> CallError {
    CallError::TimedOut { method: method.to_owned(), after }
}

/// Subscribes to every resource, and waits until the connection is replaced.
async fn subscribe_once(shared: &Arc<Shared>, live: &Live, feed: &Feed) -> Result<(), CallError> {
    let generation = shared.state.borrow().generation;
    let granted = offered(&live.peer.capabilities, &feed.wanted);
    if let Some(error) = lacking(feed, &granted) {
        return Err(error);
    }
    for uri in granted.resource_subscriptions.iter().flatten() {
        let params = SubscribeParams { uri: uri.clone(), meta: RequestMeta::default() };
        shared.call::<Subscribe>(building::<Subscribe>(params), &CallOptions::default()).await?;
    }
    feed.acknowledge(granted);
    let mut state = shared.state.subscribe();
    let is_other =
        |state: &super::State| state.generation != generation || state.phase == Phase::Closed;
    let _ = state.wait_for(is_other).await;
    Ok(())
}
