//! Futures that are rarely ready, in tasks that are polled often.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// A future that is polled only when it was woken itself.
///
/// A task with several sources polls all of them whenever one is ready. Polling for a stop signal
/// costs more than serving a small request, and it is almost never ready.
pub(crate) struct Rarely<F> {
    future: Pin<Box<F>>,
    bell: Bell,
}

impl<F: Future> Rarely<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { future: Box::pin(future), bell: Bell::new() }
    }
}

impl<F: Future> Future for Rarely<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if !this.bell.was_rung(cx) {
            return Poll::Pending;
        }
        this.future.as_mut().poll(&mut this.bell.context())
    }
}

/// Tells a task whether polling a rare event is worthwhile.
pub(crate) struct Bell {
    ring: Arc<Ring>,
    /// The same as a waker.
    rope: Waker,
    /// The task that it wakes.
    task: Option<Waker>,
}

struct Ring {
    is_rung: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Bell {
    /// A bell that is rung, so that everything is polled once.
    pub(crate) fn new() -> Self {
        let ring = Arc::new(Ring { is_rung: AtomicBool::new(true), task: Mutex::default() });
        let rope = Waker::from(Arc::clone(&ring));
        Self { ring, rope, task: None }
    }

    /// Whether it was rung since the last call. If not, it wakes the task when it is.
    pub(crate) fn was_rung(&mut self, cx: &Context<'_>) -> bool {
        // Registered first, so that no ring is missed.
        if !self.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            self.task = Some(cx.waker().clone());
            *self.ring.task.lock().unwrap_or_else(PoisonError::into_inner) = self.task.clone();
        }
        self.ring.is_rung.load(Ordering::Relaxed) && self.ring.is_rung.swap(false, Ordering::AcqRel)
    }

    /// Counts as rung again without waking the task, because there is more to poll.
    pub(crate) fn stay_rung(&self) {
        self.ring.is_rung.store(true, Ordering::Release);
    }

    /// A context that rings the bell.
    pub(crate) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.rope)
    }
}

impl Wake for Ring {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_rung.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn it_is_polled_when_woken_and_not_otherwise() {
        let (sender, receiver) = oneshot::channel();
        let polls = Arc::new(Mutex::new(0));
        let counted = {
            let (polls, mut receiver) = (Arc::clone(&polls), receiver);
            poll_fn(move |cx| {
                *polls.lock().unwrap() += 1;
                Pin::new(&mut receiver).poll(cx)
            })
        };
        let mut rarely = Rarely::new(counted);
        for _ in 0..10 {
            let polled = poll_fn(|cx| Poll::Ready(Pin::new(&mut rarely).poll(cx))).await;
            assert!(polled.is_pending());
        }
        assert_eq!(*polls.lock().unwrap(), 1);
        let waits = tokio::spawn(rarely);
        tokio::task::yield_now().await;
        sender.send(7).unwrap();
        assert_eq!(waits.await.unwrap(), Ok(7));
        assert_eq!(*polls.lock().unwrap(), 2);
    }
}
