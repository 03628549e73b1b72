//! A future that something rare wakes, beside others that something wakes all the time.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// A future that is polled only when it was woken itself.
///
/// A task with several sources polls all of them whenever one has something. Waiting for a signal
/// to stop costs more to poll than serving a small request takes, and nothing ever comes of it.
pub(crate) struct Rarely<F> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    /// The bell, as futures know it.
    rope: Waker,
    /// Whom the bell wakes.
    task: Option<Waker>,
}

struct Bell {
    is_rung: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl<F: Future> Rarely<F> {
    pub(crate) fn new(future: F) -> Self {
        let bell = Arc::new(Bell { is_rung: AtomicBool::new(true), task: Mutex::default() });
        let rope = Waker::from(Arc::clone(&bell));
        Self { future: Box::pin(future), bell, rope, task: None }
    }
}

impl<F: Future> Future for Rarely<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        // Before looking at the bell, so that it cannot ring unheard in between.
        if !this.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            this.task = Some(cx.waker().clone());
            *this.bell.task.lock().unwrap_or_else(PoisonError::into_inner) = this.task.clone();
        }
        if !this.bell.is_rung.load(Ordering::Relaxed)
            || !this.bell.is_rung.swap(false, Ordering::AcqRel)
        {
            return Poll::Pending;
        }
        this.future.as_mut().poll(&mut Context::from_waker(&this.rope))
    }
}

impl Wake for Bell {
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
