//! One run of a task's handler, to its end or to its next question.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use bowline_proto::error::ErrorObject;
use bowline_proto::model::InputRequiredResult;
use tokio::time::Instant;

use super::super::answer::{Answer, Outcome};
use super::super::call::Call;
use super::super::failure::Failure;
use super::super::handler::BoxFuture;
use super::super::rounds::Past;
use super::ending::{Ending, read};
use super::link::Link;
use super::places::Place;
use super::record::{KEPT, State, TaskRecord};
use super::shared::{Doubt, Running, Shared, Updated, lock};
use super::store::StoreError;
use crate::server::tool;

/// A handler and the task that it belongs to.
pub(super) struct Run {
    pub(super) link: Arc<Link>,
    pub(super) call: Arc<Call>,
    pub(super) handler: BoxFuture<Outcome>,
    /// Where it runs, if it need not wait for a place.
    pub(super) place: Option<Place>,
}

/// How often the status is stored at most.
const STATUS: Duration = Duration::from_millis(250);
/// How long a handler that returned no questions waits before it runs again.
const AGAIN: Duration = Duration::from_millis(500);

/// What there may be no room for, besides questions and results.
const STATE: &str = "the state";

impl Shared {
    /// Runs a handler. The server owns it from now on.
    pub(super) fn spawn(self: &Arc<Self>, run: Run) {
        let Run { link, call, .. } = &run;
        let running = Running { call: Arc::clone(call), fence: link.fence };
        self.running().insert(link.id().to_owned(), running);
        let mut runs = lock(&self.runs);
        while runs.try_join_next().is_some() {}
        runs.spawn(run.drive());
    }

    /// Ready when no handler runs any more, nor one that another one has started meanwhile.
    pub(super) async fn all_ended(&self) {
        poll_fn(|cx| {
            let mut runs = lock(&self.runs);
            while ready!(runs.poll_join_next(cx)).is_some() {}
            Poll::Ready(())
        })
        .await;
    }

    /// Runs the handler of a task from the top, with everything that is recorded; or else the task
    /// fails. Without a place it waits for one.
    pub(super) async fn resume(self: &Arc<Self>, record: &TaskRecord, place: Option<Place>) {
        match Run::again(self, record, place) {
            Ok(run) => self.spawn(run),
            Err(error) => self.end(&record.id, &State::Failed { error }).await,
        }
    }

    /// Ends a task, whoever runs it.
    pub(super) async fn end(&self, id: &str, end: &State) {
        let ended = self.insist(|| {
            self.update(id, |record, now| record.finish(now, end.clone()).then_some(()))
        });
        if let Err(error) = ended.await {
            tracing::error!(task = %id, %error, "the end of a task cannot be stored");
            self.doubt(id, Doubt::Ran);
        }
    }
}

impl Run {
    async fn drive(self) {
        let Self { link, call, handler, place } = self;
        let shared = Arc::clone(link.shared());
        let handler = match place {
            Some(_) => handler,
            None => shared.in_turn(&link, &call, handler),
        };
        let mut over = Over { shared: &shared, link: &link, call: &call, is_settled: false };
        let followed = shared.follow(&link, handler).await;
        drop(place);
        let Some(outcome) = followed else {
            over.is_settled = true;
            // What the handler has started elsewhere hears of it, too.
            call.cancel();
            shared.lose();
            tracing::warn!(task = %link.id(), "the lease could not be renewed; the handler stopped");
            return;
        };
        let ending = read(&call, outcome, shared.limits.result);
        if matches!(ending, Ending::Final(_)) {
            call.end_progress();
        }
        // A task that has been stopped meanwhile does not run again.
        let again = over.settle(ending).await.filter(|_| !call.is_cancelled());
        over.is_settled = true;
        let starting = again.as_ref().map(|record| shared.starting(&record.id, Doubt::Ran));
        drop(over);
        if let (Some(record), Some(starting)) = (again, starting) {
            shared.resume(&record, None).await;
            starting.settle();
        }
    }
}

/// A run from its beginning to its end, however that comes.
struct Over<'a> {
    shared: &'a Arc<Shared>,
    link: &'a Link,
    call: &'a Call,
    /// Whether the store has what the run has come to, as far as that is possible.
    is_settled: bool,
}

impl Over<'_> {
    /// Stores what the run has come to. Returns the task if its handler is to run again.
    async fn settle(&self, ending: Ending) -> Option<Arc<TaskRecord>> {
        match ending {
            Ending::Final(end) => {
                self.write_end(end).await;
                None
            }
            Ending::Elsewhere => {
                self.write(STATE, TaskRecord::leave).await;
                None
            }
            Ending::Asks(open) if open.is_empty() => self.pause().await,
            Ending::Asks(open) => {
                let past = self.past();
                let park =
                    |record: &mut TaskRecord, now| record.park(now, past.clone(), open.clone());
                self.write("the questions", park).await;
                None
            }
        }
    }

    /// Stores that the handler is to run again: in this process after a while, or in a later one
    /// if this one stops.
    async fn pause(&self) -> Option<Arc<TaskRecord>> {
        let (shared, past, is_last) = (self.shared, self.past(), self.shared.is_closing());
        let kept = self.write(STATE, |record, now| {
            let until = if is_last { now } else { shared.lease(now) };
            record.queue(now, past.clone(), until);
        });
        let kept = kept.await.filter(|_| !is_last)?;
        tokio::time::sleep(AGAIN).await;
        Some(kept)
    }

    async fn write_end(&self, end: State) {
        self.write("the result", |record, now| _ = record.finish(now, end.clone())).await;
    }

    /// Changes the record, unless another process has taken over, or the task has ended. Without
    /// room for that, the task fails.
    async fn write(
        &self,
        what: &str,
        change: impl Fn(&mut TaskRecord, u64),
    ) -> Option<Arc<TaskRecord>> {
        match self.try_write(change).await {
            Ok(written) => return written,
            Err(StoreError::Full) => {}
            Err(_) => return None,
        }
        let error = ErrorObject::internal(format!("there is no room for {what} of the task"));
        let end = State::Failed { error };
        let failed = self.try_write(|record, now| _ = record.finish(now, end.clone())).await;
        if let Err(StoreError::Full) = failed {
            // Not even for that. It is tried again.
            self.shared.doubt(self.link.id(), Doubt::Ran);
        }
        None
    }

    async fn try_write(
        &self,
        change: impl Fn(&mut TaskRecord, u64),
    ) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        let Self { shared, link, .. } = self;
        // What the handler has said last is not lost because it asks right afterwards.
        let status = link.status();
        let written = shared.insist(|| {
            shared.update(link.id(), |record, now| {
                record.is_run_by(shared.boot(), link.fence).then(|| {
                    record.message = status.clone().or_else(|| record.message.take());
                    change(record, now);
                })
            })
        });
        match written.await {
            Ok(Updated::Changed(record, ())) => Ok(Some(record)),
            // It was cancelled, has expired, or runs elsewhere by now.
            Ok(_) => Ok(None),
            Err(StoreError::Full) => Err(StoreError::Full),
            Err(error) => {
                tracing::error!(task = %link.id(), %error, "a task cannot be stored");
                shared.doubt(link.id(), Doubt::Ran);
                Err(error)
            }
        }
    }

    fn past(&self) -> Past {
        self.call.rounds.as_ref().map(|rounds| rounds.past()).unwrap_or_default()
    }
}

/// Forgets that the handler runs, however that ended.
impl Drop for Over<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            if self.shared.is_closing() {
                // Whoever stops the server writes what became of it.
                return;
            }
            // A store is code of others, and may panic.
            self.shared.doubt(self.link.id(), Doubt::Ran);
        }
        let mut running = self.shared.running();
        let is_this = running.get(self.link.id()).is_some_and(|it| it.fence == self.link.fence);
        if is_this {
            running.remove(self.link.id());
        }
    }
}

impl Shared {
    /// A handler that runs once there is a place for it. When the server stops there is none any
    /// more: then a later one runs it.
    fn in_turn(
        self: &Arc<Self>,
        link: &Arc<Link>,
        call: &Arc<Call>,
        handler: BoxFuture<Outcome>,
    ) -> BoxFuture<Outcome> {
        let (shared, link, call) = (Arc::clone(self), Arc::clone(link), Arc::clone(call));
        Box::pin(async move {
            let place = tokio::select! {
                biased;
                () = call.cancelled() => return Err(call.abandonment()),
                place = shared.places.take(link.owner()) => place,
            };
            let Some(_place) = place else {
                return Ok(Answer::InputRequired(InputRequiredResult::default()));
            };
            if !shared.begin(&link).await? {
                return Err(call.abandonment());
            }
            handler.await
        })
    }

    /// Stores that a handler is about to begin which had to wait. Returns whether it may.
    async fn begin(&self, link: &Link) -> Result<bool, Failure> {
        let begun = self.insist(|| {
            self.update(link.id(), |record, _| {
                record.is_run_by(self.boot(), link.fence).then(|| record.is_queued = false)
            })
        });
        match begun.await {
            Ok(Updated::Changed(..)) => Ok(true),
            Ok(_) => Ok(false),
            Err(error) => {
                tracing::error!(task = %link.id(), %error, "a task cannot begin");
                Err(ErrorObject::internal("the task could not begin: its store failed").into())
            }
        }
    }

    /// Polls a handler; stores its status and renews the lease meanwhile. `None` if the lease could
    /// not be renewed in time: another process may be about to take over, so the handler is dropped
    /// and nothing is written.
    async fn follow(&self, link: &Link, mut handler: BoxFuture<Outcome>) -> Option<Outcome> {
        let mut free = Instant::now() + STATUS;
        let mut renewal = Instant::now() + self.limits.lease / 3;
        let mut end = self.end_of(link.until);
        loop {
            let status = async {
                link.status_changed().await;
                tokio::time::sleep_until(free).await;
            };
            let step = self.step(&mut handler, end);
            tokio::select! {
                biased;
                outcome = step => return outcome,
                () = status => {}
                () = tokio::time::sleep_until(renewal), if self.is_shared => {}
            }
            let renewing = self.renew(link);
            let renewed = if self.is_shared {
                // The handler goes on: a store that others use may take its time.
                let mut renewing = std::pin::pin!(renewing);
                tokio::select! {
                    biased;
                    renewed = &mut renewing => renewed,
                    outcome = self.step(&mut handler, end) => {
                        let _ = tokio::time::timeout_at(end, renewing).await;
                        return outcome;
                    }
                }
            } else {
                renewing.await
            };
            let now = Instant::now();
            renewal = now + self.limits.lease / if renewed.is_some() { 3 } else { 15 };
            free = if renewed.is_some() { now + STATUS } else { renewal };
            end = renewed.map_or(end, |until| self.end_of(until));
        }
    }

    /// Polls a handler, but not beyond the end of its lease: a process that was stopped for a while
    /// finds out before it goes on. `None` at the end.
    async fn step(&self, handler: &mut BoxFuture<Outcome>, end: Instant) -> Option<Outcome> {
        if !self.is_shared {
            return Some(handler.await);
        }
        let mut over = std::pin::pin!(tokio::time::sleep_until(end));
        poll_fn(|cx| {
            if Instant::now() >= end || over.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            handler.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// When a handler stops whose lease lasts until then: a sixth of it earlier, for the time that
    /// messages are on their way.
    fn end_of(&self, until: u64) -> Instant {
        let rest = Duration::from_millis(until.saturating_sub(self.now()));
        Instant::now() + rest.min(self.limits.lease).saturating_sub(self.limits.lease / 6)
    }

    /// Stores the status of a task that runs here, and renews its lease. Returns until when.
    async fn renew(&self, link: &Link) -> Option<u64> {
        let status = link.status();
        let renewed = self.update(link.id(), |record, now| {
            record.is_run_by(self.boot(), link.fence).then(|| {
                record.lease.until = self.lease(now);
                if let Some(status) = &status {
                    record.describe(now, status.clone());
                }
                record.lease.until
            })
        });
        match renewed.await {
            // Somebody else has ended the task, or has taken it over.
            Ok(Updated::Missing | Updated::Same(_)) => {
                self.stop_running(link.id(), link.fence);
                None
            }
            Ok(Updated::Changed(_, until)) => {
                link.note_stored(status.as_deref());
                Some(self.renewed_until(until))
            }
            Err(error) => {
                link.remind();
                tracing::warn!(task = %link.id(), %error, "a lease cannot be renewed");
                None
            }
        }
    }

    /// Stops the handler of a task, if it runs here.
    pub(super) fn stop_running(&self, id: &str, fence: u64) {
        let running = self.running().get(id).filter(|it| it.fence <= fence).cloned();
        if let Some(running) = running {
            running.call.cancel();
        }
    }

    /// How long a run of a task may take. Whoever looks after the tasks ends it earlier if it
    /// expires.
    pub(super) fn time_for(&self, record: &TaskRecord, tool: &tool::Entry) -> Duration {
        let rest = record.expires().saturating_sub(self.now());
        tool.timeout.unwrap_or_else(|| Duration::from_millis(rest.saturating_add(KEPT)))
    }
}
