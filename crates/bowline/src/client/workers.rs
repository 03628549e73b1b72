//! The background work of one client: it answers the server's requests and keeps streams open.
//!
//! Called workers, because a task is something that runs on a server.

use std::sync::Mutex;

use tokio::task::{AbortHandle, JoinSet};

use super::shared::lock;

/// Workers that must not outlive their client.
#[derive(Default)]
pub(super) struct Workers(Mutex<Running>);

#[derive(Default)]
struct Running {
    set: JoinSet<()>,
    is_over: bool,
}

impl Workers {
    /// Spawns a worker. Once the client has ended, the worker is aborted before it starts.
    pub(super) fn spawn(&self, worker: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut running = lock(&self.0);
        while running.set.try_join_next().is_some() {}
        let handle = running.set.spawn(worker);
        if running.is_over {
            handle.abort();
        }
        handle
    }

    /// Aborts all workers and waits for them. No worker runs after this.
    pub(super) async fn stop(&self) {
        let mut set = {
            let mut running = lock(&self.0);
            running.is_over = true;
            std::mem::take(&mut running.set)
        };
        set.shutdown().await;
    }
}
