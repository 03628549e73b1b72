//! A node, as its server sees it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bowline::fleet::{Change, Delivery, FleetFuture, Inbox, Node, Opened, PATH};
use bowline::seal::KeyRing;
use bowline::tasks::TaskStore;
use bowline::{Tasks, with_causes};
use bowline_web::Body;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::changes::{self, PAUSE};
use crate::error::FleetError;
use crate::fleet::{Fleet, Inner, Whereabouts};

/// A node that was not heard of for this long is not ready.
const SILENCE: Duration = Duration::from_secs(5);
/// How long a letter may take.
pub(crate) const LETTER: Duration = Duration::from_secs(5);

impl Inner {
    async fn send(&self, to: Node, letter: String) -> Delivery {
        let (address, is_silent) = match self.find(to).await {
            Whereabouts::At { address, is_silent } => (address, is_silent),
            Whereabouts::Unknown => return Delivery::Failed,
            Whereabouts::Nowhere => return Delivery::Gone,
        };
        let Some(request) = letter_to(&address, letter) else { return Delivery::Failed };
        let began = Instant::now();
        let failed = if is_silent { Delivery::Gone } else { Delivery::Failed };
        match self.web.fetch(request).await {
            Ok(response) if response.status().is_success() => return Delivery::Arrived,
            Ok(response) => {
                let status = response.status();
                tracing::warn!(node = to.number(), %status, "a letter was refused");
            }
            Err(error) => {
                let took = began.elapsed();
                tracing::warn!(node = to.number(), %error, ?took, "a letter did not arrive");
            }
        }
        failed
    }
}

/// The request that carries a letter.
fn letter_to(address: &str, letter: String) -> Option<http::Request<Bytes>> {
    let uri = format!("{}{PATH}", address.trim_end_matches('/'));
    http::Request::post(uri).body(Bytes::from(letter)).ok()
}

/// Passes a body on as it comes, until nobody wants it any more.
async fn pipe(mut from: Body, to: mpsc::Sender<Vec<u8>>) {
    loop {
        let chunk = tokio::select! {
            chunk = from.chunk() => chunk,
            () = to.closed() => return,
        };
        let Some(Ok(chunk)) = chunk else { return };
        if to.send(chunk.to_vec()).await.is_err() {
            return;
        }
    }
}

impl bowline::fleet::Fleet for Fleet {
    fn belong_to(&self, server: &str) {
        // A fleet with a name keeps it, and so does one with a server.
        let _ = self.inner.server.set(server.to_owned());
        self.inner.keys.belong();
    }

    fn node(&self) -> Node {
        self.inner.node
    }

    fn keys(&self) -> KeyRing {
        self.inner.keys.ring().clone()
    }

    fn tasks(&self) -> Tasks {
        Tasks::in_shared_store(self.inner.tasks.clone(), self.inner.limits)
    }

    fn sessions(&self) -> Arc<dyn TaskStore> {
        Arc::new(self.inner.sessions.clone())
    }

    fn start(&self, inbox: Inbox) {
        // A second server has news of its own only while the first one has not.
        if self.inner.inbox.set(inbox.clone()).is_ok() {
            self.inner.spawn(changes::keep_listening(Arc::downgrade(&self.inner), inbox));
        }
    }

    fn announce(&self, change: Change) {
        let now = self.inner.now();
        let mut pending = self.inner.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.add(&change, now);
        drop(pending);
        self.inner.announced.notify_one();
    }

    fn listens_at(&self, origin: Option<String>) {
        if self.inner.is_fixed {
            return;
        }
        if origin.is_none() {
            tracing::warn!(
                "other nodes cannot reach this one: it listens on all addresses, or within another \
                 framework; help: set its address, with `FleetBuilder::address`"
            );
        }
        *self.inner.address.lock().unwrap_or_else(PoisonError::into_inner) = origin;
    }

    fn send(&self, to: Node, letter: String) -> FleetFuture<'_, Delivery> {
        Box::pin(async move {
            let sent = self.inner.send(to, letter).await;
            if sent != Delivery::Gone {
                self.inner.counters.letter(sent == Delivery::Arrived);
            }
            sent
        })
    }

    fn open(&self, to: Node, letter: String) -> FleetFuture<'_, Option<Opened>> {
        Box::pin(async move {
            let Whereabouts::At { address, .. } = self.inner.find(to).await else { return None };
            let request = letter_to(&address, letter)?;
            let response = tokio::time::timeout(LETTER, self.inner.web.send(request)).await;
            let response = response.ok()?.ok();
            self.inner.counters.letter(response.is_some());
            let response = response?;
            let status = response.status().as_u16();
            let from = response.into_body();
            let (chunks, body) = mpsc::channel(16);
            tokio::spawn(pipe(from, chunks));
            Some(Opened { status, body })
        })
    }

    fn others(&self) -> Vec<Node> {
        let others = self.inner.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.keys().copied().collect()
    }

    fn is_ready(&self) -> bool {
        let silence = self.inner.clock.silence();
        let is_out = [&self.inner.is_leaving, &self.inner.is_displaced];
        let is_out = is_out.iter().any(|flag| flag.load(Ordering::Acquire));
        !is_out && silence.is_some_and(|it| it < SILENCE)
    }

    fn leave(&self) -> FleetFuture<'_, ()> {
        Box::pin(async move {
            self.inner.is_leaving.store(true, Ordering::Release);
            let patience = self.inner.connections.patience();
            // What has changed last is still announced.
            let announce = async {
                while self.inner.announce_pending().await.is_err() {
                    tokio::time::sleep(PAUSE).await;
                }
            };
            if tokio::time::timeout(patience, announce).await.is_err() {
                tracing::warn!("the last changes of this node are not announced");
            }
            let mut work = std::mem::take(
                &mut *self.inner.work.lock().unwrap_or_else(PoisonError::into_inner),
            );
            work.shutdown().await;
            let forgotten = tokio::time::timeout(patience, self.inner.forget_node()).await;
            if let Err(error) = forgotten.unwrap_or(Err(FleetError::Slow(patience))) {
                tracing::debug!(error = %with_causes(&error), "the node cannot be unregistered");
            }
        })
    }
}
