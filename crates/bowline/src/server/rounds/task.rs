//! How a request becomes a task while its handler runs, or stays an ordinary one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::super::tasks::Link;
use super::Rounds;

impl Rounds {
    /// Lets the handler turn its request into a task.
    pub(crate) fn offer_task(&mut self) {
        self.may_become_task = true;
    }

    /// Turns the request into a task, if it can become one.
    pub(crate) async fn want_task(&self) {
        if !self.may_become_task {
            return;
        }
        let mut settled = std::pin::pin!(self.settled.notified());
        // From here on, the decision is not missed: whatever polls this, it is woken.
        settled.as_mut().enable();
        if self.task().is_some() || self.is_refused.load(Ordering::Acquire) {
            return;
        }
        self.wants_task.notify_one();
        settled.await;
    }

    /// Decides that the request stays an ordinary one.
    pub(crate) fn refuse_task(&self) {
        self.is_refused.store(true, Ordering::Release);
        self.settled.notify_waiters();
    }

    /// Ready when the handler wants its request to become a task.
    pub(crate) async fn task_wanted(&self) {
        self.wants_task.notified().await;
    }

    /// The task that the request has become.
    pub(crate) fn task(&self) -> Option<&Arc<Link>> {
        self.task.get()
    }

    /// From now on, the request is a task.
    pub(crate) fn become_task(&self, link: Arc<Link>) {
        // A request becomes a task once.
        let _ = self.task.set(link);
        self.settled.notify_waiters();
    }
}
