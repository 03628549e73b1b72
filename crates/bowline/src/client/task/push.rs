//! Changes of a task that its server reports by itself, so that the client need not poll.
//!
//! A modern server does so on a subscription that names the task, if it grants that; a server of
//! 2025-11-25 may at any time. Only the latest report is kept: it says everything.

use std::sync::{Arc, Mutex, Weak};

use bowline_proto::error::ErrorCode;
use bowline_proto::json::Json;
use bowline_proto::method::SubscriptionsListen;
use bowline_proto::model::{RequestMeta, SubscriptionFilter, SubscriptionsListenParams};
use bowline_proto::raw::Raw;
use bowline_proto::session::Timeout;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::task::AbortHandle;

use crate::client::budget::{Budget, Share};
use crate::client::exchange::{ExchangeError, Sending};
use crate::client::outgoing::{Outgoing, Round};
use crate::client::restart::Backoff;
use crate::client::shared::{Hears, Live, Shared, lock};

/// What was reported about one task and not looked at yet.
pub(in crate::client) struct TaskFeed {
    id: String,
    latest: Mutex<Latest>,
    changed: Notify,
    refused: Notify,
}

#[derive(Default)]
struct Latest {
    report: Option<(Json, Share)>,
    /// Whether the server agreed to report changes; `None` while it has not said.
    is_granted: Option<bool>,
    /// Whether that has changed since it was last looked at.
    is_news: bool,
}

/// Something that a server reported.
pub(super) enum Pushed {
    /// The task, as parameters of a notification.
    Report(Json),
    /// Whether the server reports changes from now on.
    Granted(bool),
}

impl TaskFeed {
    /// Keeps a report, in place of an earlier one. Without room the next poll has it.
    fn tell(&self, params: Raw<'_>, queued: &Budget) {
        let Some(share) = queued.take(params.get().len()) else { return };
        lock(&self.latest).report = Some((Json::copy_of(params), share));
        self.changed.notify_one();
    }

    /// The server said which tasks it reports.
    pub(in crate::client) fn acknowledge(&self, granted: &SubscriptionFilter) {
        let is_ours = |ids: &Vec<String>| ids.contains(&self.id);
        self.set_granted(granted.task_ids.as_ref().is_some_and(is_ours));
    }

    fn set_granted(&self, is_granted: bool) {
        let mut latest = lock(&self.latest);
        latest.is_news |= latest.is_granted != Some(is_granted);
        latest.is_granted = Some(is_granted);
        drop(latest);
        self.changed.notify_one();
        if !is_granted {
            self.refused.notify_one();
        }
    }

    /// Waits for the next report.
    pub(super) async fn next(&self) -> Pushed {
        loop {
            if let Some(pushed) = lock(&self.latest).take() {
                return pushed;
            }
            self.changed.notified().await;
        }
    }

    /// Waits until the server says that it does not report the task.
    async fn refused(&self) {
        while lock(&self.latest).is_granted != Some(false) {
            self.refused.notified().await;
        }
    }
}

impl Latest {
    fn take(&mut self) -> Option<Pushed> {
        if std::mem::take(&mut self.is_news) {
            return self.is_granted.map(Pushed::Granted);
        }
        self.report.take().map(|(report, _)| Pushed::Report(report))
    }
}

/// The tasks that somebody waits for.
#[derive(Default)]
pub(in crate::client) struct TaskFeeds(Mutex<Vec<Weak<TaskFeed>>>);

impl TaskFeeds {
    /// Passes a notification on to everybody who waits for its task.
    pub(in crate::client) fn tell(&self, id: &str, params: Raw<'_>, queued: &Budget) {
        let feeds: Vec<_> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        feeds.iter().filter(|feed| feed.id == id).for_each(|feed| feed.tell(params, queued));
    }

    pub(super) fn add(&self, id: &str) -> Arc<TaskFeed> {
        let feed = TaskFeed {
            id: id.to_owned(),
            latest: Mutex::default(),
            changed: Notify::new(),
            refused: Notify::new(),
        };
        let feed = Arc::new(feed);
        let mut feeds = lock(&self.0);
        feeds.retain(|feed| feed.strong_count() > 0);
        feeds.push(Arc::downgrade(&feed));
        feed
    }
}

/// A subscription to one task. Ends when it is dropped.
pub(super) struct Subscription(AbortHandle);

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Subscribes to a task, if there is a stream left for it and the server is not known to refuse.
pub(super) fn subscribe(shared: &Arc<Shared>, feed: &Arc<TaskFeed>) -> Option<Subscription> {
    let place = Arc::clone(&shared.task_streams).try_acquire_owned().ok()?;
    let (ours, feed) = (Arc::clone(shared), Arc::clone(feed));
    Some(Subscription(shared.spawn(listen(ours, feed, place))))
}

/// Keeps a subscription alive until the server refuses it.
async fn listen(shared: Arc<Shared>, feed: Arc<TaskFeed>, place: OwnedSemaphorePermit) {
    let mut backoff = Backoff::new();
    while let Ok(live) = shared.ready("tasks/get").await {
        match listen_once(&shared, &live, &feed).await {
            Listened::Ended => {}
            Listened::NotGranted => break,
            Listened::Rejected => {
                // Nor will it report other tasks, so there is no need to ask again.
                shared.task_streams.close();
                break;
            }
        }
        feed.set_granted(false);
        tokio::time::sleep(backoff.next()).await;
    }
    feed.set_granted(false);
    drop(place);
}

/// What became of a subscription.
enum Listened {
    /// Another one may last longer.
    Ended,
    /// The server does not report this task: it may be gone, for instance.
    NotGranted,
    /// The server does not report changes of tasks.
    Rejected,
}

async fn listen_once(shared: &Arc<Shared>, live: &Live, feed: &Arc<TaskFeed>) -> Listened {
    let notifications =
        SubscriptionFilter { task_ids: Some(vec![feed.id.clone()]), ..Default::default() };
    let params = SubscriptionsListenParams { notifications, meta: RequestMeta::default() };
    let revision = live.peer.revision;
    let Ok(outgoing) = Outgoing::typed::<SubscriptionsListen>(params, revision) else {
        return Listened::Rejected;
    };
    lock(&feed.latest).is_granted = None;
    let sending = Sending {
        outgoing: &outgoing,
        round: &Round::default(),
        claim: &live.claim,
        timeout: Timeout::NEVER,
        hears: Hears::Task(Arc::clone(feed)),
        is_cancellable: true,
    };
    let exchange = shared.exchange(&live.link, &sending);
    tokio::select! {
        ended = exchange => match ended {
            Err(error) if is_refusal(&error) => Listened::Rejected,
            _ => Listened::Ended,
        },
        () = feed.refused() => Listened::NotGranted,
    }
}

/// Whether asking again would be pointless.
fn is_refusal(error: &ExchangeError) -> bool {
    match error {
        ExchangeError::Rejected(rejection) => {
            rejection.code().is_some_and(|code| code != ErrorCode::INTERNAL_ERROR)
        }
        _ => false,
    }
}
