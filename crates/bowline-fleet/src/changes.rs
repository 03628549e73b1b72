//! News between nodes.
//!
//! The truth is in the database: a revision for every list, resource and session that changed, and
//! the version of every task. What travels between nodes are hints to look there: they may get lost
//! or come twice. Each node also looks every few seconds.
//!
//! `NOTIFY` makes commits of a whole Postgres wait for each other, so it is never part of a
//! transaction that does something else, and all changes of a moment share one.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::sync::{PoisonError, Weak};
use std::time::Duration;

use bowline::fleet::{Change, Inbox, Node};
use bowline::with_causes;
use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_postgres::{AsyncMessage, NoTls};

use crate::error::FleetError;
use crate::fleet::Inner;
use crate::store::number;

/// How long changes are collected.
const MOMENT: Duration = Duration::from_millis(20);
/// How often to look, at least and at most.
const LOOK: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(4));
/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest hint, in bytes; Postgres takes less than 8,000.
const HINT: usize = 7_500;
/// How many changes wait to be announced at most. Those of tasks are dropped beyond it: whoever
/// waits for one looks.
const PENDING: usize = 10_000;
/// After this long without a look, revisions may have been forgotten.
const FORGOTTEN: Duration = Duration::from_secs(1_800);

const CHANNEL: &str = "bowline";

/// Changes that are not announced yet.
#[derive(Default)]
pub(crate) struct Pending(HashSet<Change>);

impl Pending {
    pub(crate) fn add(&mut self, change: Change) {
        if self.0.len() < PENDING || change.task().is_none() {
            self.0.insert(change);
        }
    }
}

/// Announces changes until the node leaves.
pub(crate) async fn keep_announcing(node: Weak<Inner>) {
    loop {
        let Some(inner) = node.upgrade() else { return };
        inner.announced.notified().await;
        tokio::time::sleep(MOMENT).await;
        while let Err(error) = inner.announce_pending().await {
            tracing::warn!(error = %with_causes(&error), "changes cannot be announced yet");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Inner {
    /// Announces what has changed since the last time.
    pub(crate) async fn announce_pending(&self) -> Result<(), FleetError> {
        let taken =
            std::mem::take(&mut self.pending.lock().unwrap_or_else(PoisonError::into_inner).0);
        if taken.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        let announced = self.announce_all(&taken).await;
        match &announced {
            Ok(()) => self.counters.announced(taken.len(), began.elapsed()),
            Err(_) => {
                let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
                taken.into_iter().for_each(|change| pending.add(change));
            }
        }
        announced
    }

    async fn announce_all(&self, changes: &HashSet<Change>) -> Result<(), FleetError> {
        let node = i64::from(self.node.number());
        let (tasks, others): (Vec<_>, Vec<_>) =
            changes.iter().partition(|change| change.task().is_some());
        if !others.is_empty() {
            let topics: Vec<String> = others.iter().map(ToString::to_string).collect();
            let sql = "SELECT bowline.change($1, $2)";
            self.connections
                .with(async |client| client.query_one(sql, &[&topics, &node]).await)
                .await?;
        }
        let ids = tasks.iter().filter_map(|change| change.task());
        let hints = hints(self.node, !others.is_empty(), ids);
        if self.publish(&hints).await {
            return Ok(());
        }
        let sql = "SELECT pg_notify($1, hint) FROM unnest($2::text[]) AS hint";
        self.connections.with(async |client| client.query(sql, &[&CHANNEL, &hints]).await).await?;
        Ok(())
    }

    /// Publishes hints with Redis. Returns whether that worked.
    async fn publish(&self, hints: &[String]) -> bool {
        let Some(redis) = &self.redis else { return false };
        let publish = async {
            let mut connection = redis.get_multiplexed_async_connection().await?;
            let mut pipe = redis::pipe();
            for hint in hints {
                pipe.publish(CHANNEL, hint).ignore();
            }
            pipe.query_async::<()>(&mut connection).await
        };
        let published = tokio::time::timeout(PAUSE, publish).await;
        let done = matches!(published, Ok(Ok(())));
        if !done {
            self.counters.redis_failed();
        }
        done
    }

    /// Reads the changes of other nodes after a revision.
    async fn changes_after(&self, revision: u64) -> Result<(u64, Vec<Change>), FleetError> {
        let sql = "SELECT topic, revision, node FROM bowline.changes WHERE revision > $1";
        let rows = self.connections.with(async |client| {
            let statement = client.prepare_cached(sql).await?;
            client.query(&statement, &[&number(revision)]).await
        });
        let own = i64::from(self.node.number());
        let mut latest = revision;
        let mut changes = Vec::new();
        for row in rows.await? {
            latest = latest.max(u64::try_from(row.get::<_, i64>(1)).unwrap_or(0));
            if row.get::<_, i64>(2) != own {
                changes.extend(Change::parse(row.get(0)));
            }
        }
        Ok((latest, changes))
    }

    async fn latest_revision(&self) -> Result<u64, FleetError> {
        let sql = "SELECT coalesce(max(revision), 0) FROM bowline.changes";
        let row = self.connections.with(async |client| client.query_one(sql, &[]).await).await?;
        Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or(0))
    }
}

/// Hints: who sends them, whether there are new revisions, and the tasks that have changed.
fn hints<'a>(node: Node, has_revisions: bool, ids: impl Iterator<Item = &'a str>) -> Vec<String> {
    let start = |has_revisions| format!("{}\n{}", node.number(), u8::from(has_revisions));
    let mut hints = vec![start(has_revisions)];
    for id in ids {
        let last = hints.last_mut().expect("there is one from the start");
        if last.len() + id.len() < HINT {
            last.push('\n');
            last.push_str(id);
        } else {
            hints.push(format!("{}\n{id}", start(false)));
        }
    }
    hints
}

/// Hears what other nodes announce until the node leaves.
pub(crate) async fn keep_listening(node: Weak<Inner>, inbox: Inbox) {
    let (hint, mut hinted) = mpsc::channel(256);
    let Some(inner) = node.upgrade() else { return };
    inner.spawn(keep_connected(Weak::clone(&node), hint.clone()));
    if inner.redis.is_some() {
        inner.spawn(keep_subscribed(Weak::clone(&node), hint));
    }
    let mut listener = loop {
        match inner.latest_revision().await {
            Ok(revision) => break Listener::new(inbox, revision),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    };
    drop(inner);
    let mut due = Instant::now();
    loop {
        let hint = tokio::select! {
            hint = hinted.recv() => hint,
            () = tokio::time::sleep_until(due) => None,
        };
        let Some(inner) = node.upgrade().filter(|_| listener.inbox.is_open()) else { return };
        let done = match hint {
            Some(hint) => listener.handle_hint(&inner, &hint).await,
            None => {
                due = Instant::now() + pause(inner.now());
                listener.look(&inner).await
            }
        };
        if let Err(error) = done {
            tracing::debug!(error = %with_causes(&error), "changes cannot be read yet");
        }
    }
}

/// Some time within the bounds, so that nodes do not look all at once.
fn pause(now: u64) -> Duration {
    let (least, most) = LOOK;
    let span = u64::try_from((most - least).as_millis()).unwrap_or(1);
    least + Duration::from_millis(now.wrapping_mul(2_654_435_761) % span)
}

struct Listener {
    inbox: Inbox,
    revision: u64,
    looked: Instant,
    /// The versions of the tasks that are watched here, when they were last seen.
    versions: HashMap<String, u64>,
}

impl Listener {
    fn new(inbox: Inbox, revision: u64) -> Self {
        Self { inbox, revision, looked: Instant::now(), versions: HashMap::new() }
    }

    async fn handle_hint(&mut self, inner: &Inner, hint: &str) -> Result<(), FleetError> {
        let mut lines = hint.lines();
        if lines.next() == Some(&*inner.node.number().to_string()) {
            return Ok(());
        }
        let has_revisions = lines.next() == Some("1");
        for id in lines {
            inner.counters.heard();
            self.inbox.change(&Change::of_task(id)).await;
        }
        if has_revisions { self.catch_up(inner).await } else { Ok(()) }
    }

    /// Reads the revisions that are new.
    async fn catch_up(&mut self, inner: &Inner) -> Result<(), FleetError> {
        let (latest, changes) = inner.changes_after(self.revision).await?;
        for change in &changes {
            inner.counters.heard();
            self.inbox.change(change).await;
        }
        self.revision = latest;
        if self.looked.elapsed() > FORGOTTEN {
            self.inbox.change_everything().await;
        }
        self.looked = Instant::now();
        Ok(())
    }

    /// Looks at everything that somebody here waits for.
    async fn look(&mut self, inner: &Inner) -> Result<(), FleetError> {
        self.catch_up(inner).await?;
        let watched = self.inbox.watched_tasks();
        if watched.is_empty() {
            self.versions.clear();
            return Ok(());
        }
        let found: HashMap<String, u64> =
            inner.tasks.versions(&watched).await?.into_iter().collect();
        for id in &watched {
            if found.get(id) != self.versions.get(id) {
                inner.counters.repaired();
                self.inbox.change(&Change::of_task(id)).await;
            }
        }
        self.versions = found;
        Ok(())
    }
}

/// Keeps a connection to Postgres that hears notifications.
async fn keep_connected(node: Weak<Inner>, hint: mpsc::Sender<String>) {
    loop {
        let Some(config) = node.upgrade().map(|inner| inner.connections.config().clone()) else {
            return;
        };
        let heard = hear(&config, &hint).await;
        if let Err(error) = heard {
            tracing::debug!(error = %with_causes(&error), "no notifications of Postgres");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn hear(
    config: &tokio_postgres::Config,
    hint: &mpsc::Sender<String>,
) -> Result<(), FleetError> {
    let (client, mut connection) = config.connect(NoTls).await?;
    let listen = format!("LISTEN {CHANNEL}");
    let mut listening = std::pin::pin!(client.batch_execute(&listen));
    let mut is_listening = false;
    loop {
        let message = tokio::select! {
            done = &mut listening, if !is_listening => {
                done?;
                is_listening = true;
                // Whatever was announced before is found by looking.
                let _ = hint.try_send("0\n1".to_owned());
                continue;
            }
            message = poll_fn(|cx| connection.poll_message(cx)) => message,
        };
        match message {
            None => return Ok(()),
            Some(Err(error)) => return Err(error.into()),
            Some(Ok(AsyncMessage::Notification(notification))) => {
                if hint.send(notification.payload().to_owned()).await.is_err() {
                    return Ok(());
                }
            }
            Some(Ok(_)) => {}
        }
    }
}

/// Keeps a connection to Redis that hears what is published.
async fn keep_subscribed(node: Weak<Inner>, hint: mpsc::Sender<String>) {
    loop {
        let Some(redis) = node.upgrade().and_then(|inner| inner.redis.clone()) else { return };
        if let Err(error) = subscribe(&redis, &hint).await {
            tracing::debug!(%error, "no messages of Redis");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn subscribe(
    redis: &redis::Client,
    hint: &mpsc::Sender<String>,
) -> Result<(), redis::RedisError> {
    let mut subscribed = redis.get_async_pubsub().await?;
    subscribed.subscribe(CHANNEL).await?;
    let _ = hint.try_send("0\n1".to_owned());
    let mut messages = subscribed.on_message();
    while let Some(message) = messages.next().await {
        if hint.send(message.get_payload()?).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
