//! News between nodes.
//!
//! The truth is in the database: a revision for every list, resource and session that changed, and
//! the version of every task. What travels between nodes are hints to look there: they may get lost
//! or come twice. Each node also looks every few seconds.
//!
//! `NOTIFY` makes commits of a whole Postgres wait for each other, so it is never part of a
//! transaction that does something else, and all changes of a moment share one.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use bowline::fleet::{Change, Inbox, Node};
use bowline::with_causes;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::error::FleetError;
use crate::fleet::Inner;
use crate::hear::{channel, keep_connected, keep_subscribed};
use crate::pending::EVERYTHING;
use crate::store::number;

/// How long changes are collected.
const MOMENT: Duration = Duration::from_millis(20);
/// How often to look, at least and at most.
const LOOK: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(4));
/// The pause after a failure.
pub(crate) const PAUSE: Duration = Duration::from_millis(500);
/// The longest hint, in bytes; Postgres takes less than 8,000.
const HINT: usize = 7_500;
/// How many changes are announced in one statement.
const BATCH: usize = 1_000;
/// After this long without a look, revisions may have been forgotten.
const FORGOTTEN: Duration = Duration::from_secs(1_800);
/// A change that is older has been seen by all that watch a task since the last look, in
/// milliseconds.
const LATELY: u64 = 15_000;

/// Announces changes until the node leaves.
pub(crate) async fn keep_announcing(node: Weak<Inner>, announced: Arc<Notify>) {
    loop {
        announced.notified().await;
        tokio::time::sleep(MOMENT).await;
        let Some(inner) = node.upgrade() else { return };
        while let Err(error) = inner.announce_pending().await {
            tracing::warn!(error = %with_causes(&error), "changes cannot be announced yet");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Inner {
    /// Announces what has changed since the last time, after whatever is being announced.
    pub(crate) async fn announce_pending(&self) -> Result<(), FleetError> {
        let _turn = self.announcing.lock().await;
        let mut taken =
            std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(since) = taken.since else { return Ok(()) };
        let began = Instant::now();
        let count = taken.tasks.len() + taken.topics.len();
        let has_topics = !taken.topics.is_empty();
        let revised = self.revise(&mut taken.topics).await;
        if revised.is_err() {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            pending.restore(taken.topics, since);
        }
        // Whoever waits for a task looks, so hints of tasks are not sent again.
        let since = (has_topics && revised.is_ok()).then_some(since);
        let hints = hints(self.node, since, taken.tasks.iter().map(String::as_str));
        let hinted = self.hint(&hints).await;
        if revised.is_ok() && hinted.is_ok() {
            self.counters.announced(count, began.elapsed());
        }
        revised.and(hinted)
    }

    /// Writes down that topics have changed, and removes them from the set.
    async fn revise(&self, topics: &mut HashSet<String>) -> Result<(), FleetError> {
        while !topics.is_empty() {
            let batch: Vec<String> = topics.iter().take(BATCH).cloned().collect();
            if let Err(error) = self.revise_batch(&batch).await {
                if !is_refused(&error) {
                    return Err(error);
                }
                // Not all of them are to blame.
                for topic in &batch {
                    self.revise_alone(topic).await?;
                    topics.remove(topic);
                }
            }
            for topic in &batch {
                topics.remove(topic);
            }
        }
        Ok(())
    }

    async fn revise_alone(&self, topic: &str) -> Result<(), FleetError> {
        match self.revise_batch(&[topic.to_owned()]).await {
            Err(error) if is_refused(&error) => {
                let error = with_causes(&error);
                tracing::warn!(topic, %error, "other nodes do not hear of a change");
                Ok(())
            }
            done => done,
        }
    }

    async fn revise_batch(&self, topics: &[String]) -> Result<(), FleetError> {
        let sql = "SELECT bowline.change($1, $2, $3)";
        let (server, node) = (self.server(), i64::from(self.node.number()));
        let change = self
            .connections
            .with(async |client| client.query_one(sql, &[&server, &topics, &node]).await);
        change.await.map(|_| ())
    }

    /// Sends hints to all nodes.
    async fn hint(&self, hints: &[String]) -> Result<(), FleetError> {
        if self.publish(hints).await {
            return Ok(());
        }
        let sql = "SELECT pg_notify($1, hint) FROM unnest($2::text[]) AS hint";
        let channel = self.channel();
        self.connections.with(async |client| client.query(sql, &[&channel, &hints]).await).await?;
        Ok(())
    }

    /// Publishes hints with Redis. Returns whether that worked.
    async fn publish(&self, hints: &[String]) -> bool {
        let Some(redis) = &self.redis else { return false };
        let mut pipe = redis::pipe();
        for hint in hints {
            pipe.publish(self.channel(), hint).ignore();
        }
        let mut connection = redis.connection.clone();
        let publish = pipe.query_async::<()>(&mut connection);
        let published = tokio::time::timeout(PAUSE, publish).await;
        let done = matches!(published, Ok(Ok(())));
        if !done {
            self.counters.redis_failed();
        }
        done
    }

    /// Where hints for the nodes of this server are published.
    pub(crate) fn channel(&self) -> String {
        channel(self.server())
    }

    /// Reads the changes of other nodes after a revision. `None` if there has never been such a
    /// revision: the database was restored, and is at an earlier time.
    async fn changes_after(&self, revision: u64) -> Result<Option<News>, FleetError> {
        let sql = "SELECT topic, revision, node, others FROM bowline.changes
            WHERE server = $1 AND revision > $2";
        let last = "SELECT last_value FROM bowline.revisions";
        let server = self.server();
        let (last, rows) = self
            .connections
            .with(async |client| {
                let last = client.prepare_cached(last).await?;
                let statement = client.prepare_cached(sql).await?;
                let last = client.query_one(&last, &[]).await?;
                Ok((last, client.query(&statement, &[&server, &number(revision)]).await?))
            })
            .await?;
        if last.get::<_, i64>(0) < number(revision) {
            return Ok(None);
        }
        let own = i64::from(self.node.number());
        let mut news = News { latest: revision, is_everything: false, changes: Vec::new() };
        for row in rows {
            let topic: &str = row.get(0);
            news.latest = news.latest.max(u64::try_from(row.get::<_, i64>(1)).unwrap_or(0));
            // Its own change may have come right after that of another node.
            if row.get::<_, i64>(2) != own || row.get::<_, i64>(3) > number(revision) {
                news.is_everything |= topic == EVERYTHING;
                news.changes.extend(Change::parse(topic));
            }
        }
        Ok(Some(news))
    }

    async fn latest_revision(&self) -> Result<u64, FleetError> {
        let sql = "SELECT coalesce(max(revision), 0) FROM bowline.changes WHERE server = $1";
        let server = self.server();
        let row = self.connections.with(async |client| client.query_one(sql, &[&server]).await);
        Ok(u64::try_from(row.await?.get::<_, i64>(0)).unwrap_or(0))
    }
}

/// What other nodes have changed.
struct News {
    /// The revision after which there is nothing more.
    latest: u64,
    is_everything: bool,
    changes: Vec<Change>,
}

/// Whether Postgres will never take this, however often it is told: a character that its encoding
/// does not have, or too much of something (SQLSTATE classes 22 and 54).
fn is_refused(error: &FleetError) -> bool {
    let FleetError::Postgres(error) = error else { return false };
    error.code().is_some_and(|code| ["22", "54"].iter().any(|class| code.code().starts_with(class)))
}

/// Hints: who sends them, whether there are new revisions and since when, and the tasks that have
/// changed.
fn hints<'a>(
    node: Node,
    revisions: Option<u64>,
    ids: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let start = |revisions: Option<u64>| {
        let revisions = revisions.map_or_else(|| "0".to_owned(), |since| format!("1 {since}"));
        format!("{}\n{revisions}", node.number())
    };
    let mut hints = vec![start(revisions)];
    for id in ids {
        let last = hints.last_mut().expect("there is one from the start");
        if last.len() + id.len() < HINT {
            last.push('\n');
            last.push_str(id);
        } else {
            hints.push(format!("{}\n{id}", start(None)));
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
    /// The marks of the tasks that are watched here, when they were last seen.
    marks: HashMap<String, u64>,
}

impl Listener {
    fn new(inbox: Inbox, revision: u64) -> Self {
        Self { inbox, revision, looked: Instant::now(), marks: HashMap::new() }
    }

    async fn handle_hint(&mut self, inner: &Inner, hint: &str) -> Result<(), FleetError> {
        let mut lines = hint.lines();
        if lines.next() == Some(&*inner.node.number().to_string()) {
            return Ok(());
        }
        let flag = lines.next().unwrap_or_default();
        let (flag, since) = flag.split_once(' ').unwrap_or((flag, ""));
        if let Ok(since) = since.parse() {
            inner.counters.hinted(inner.now().saturating_sub(since));
        }
        let told: HashSet<&str> = lines.collect();
        // Those that are watched are not found again by looking, unless they change once more.
        let watched = self.marks.keys().filter(|id| told.contains(&***id));
        let watched: Vec<String> = watched.cloned().collect();
        if !watched.is_empty()
            && let Ok(marks) = inner.tasks.marks(&watched).await
        {
            self.marks.extend(marks);
        }
        for id in told {
            inner.counters.heard();
            self.inbox.change(&Change::of_task(id)).await;
        }
        if flag == "1" { self.catch_up(inner).await } else { Ok(()) }
    }

    /// Reads the revisions that are new.
    async fn catch_up(&mut self, inner: &Inner) -> Result<(), FleetError> {
        let mut is_everything = self.looked.elapsed() > FORGOTTEN;
        if let Some(news) = inner.changes_after(self.revision).await? {
            for change in &news.changes {
                inner.counters.heard();
                self.inbox.change(change).await;
            }
            self.revision = news.latest;
            is_everything |= news.is_everything;
        } else {
            self.revision = inner.latest_revision().await?;
            is_everything = true;
        }
        if is_everything {
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
            self.marks.clear();
            return Ok(());
        }
        let found: HashMap<String, u64> = inner.tasks.marks(&watched).await?.into_iter().collect();
        for id in &watched {
            let (now, before) = (found.get(id), self.marks.get(id));
            // A task is read when somebody begins to watch it. Only if it has changed lately, that
            // may have been afterwards.
            let is_late =
                before.is_none() && now.is_some_and(|mark| mark / 8 + LATELY < inner.now());
            if now != before && !is_late {
                inner.counters.repaired();
                self.inbox.change(&Change::of_task(id)).await;
            }
        }
        self.marks = found;
        Ok(())
    }
}
