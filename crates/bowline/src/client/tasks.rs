//! The tasks of one client: what answers the server's questions, and what keeps streams open.

use std::sync::Mutex;

use tokio::task::{AbortHandle, JoinSet};

use super::shared::lock;

/// Tasks that must not outlive their client.
#[derive(Default)]
pub(super) struct Tasks(Mutex<Running>);

#[derive(Default)]
struct Running {
    set: JoinSet<()>,
    is_over: bool,
}

impl Tasks {
    /// Runs something. Once the client has ended, it is stopped before it begins.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut running = lock(&self.0);
        while running.set.try_join_next().is_some() {}
        let handle = running.set.spawn(task);
        if running.is_over {
            handle.abort();
        }
        handle
    }

    /// Stops all that runs, and waits for it. Nothing runs any more after this.
    pub(super) async fn stop(&self) {
        let mut set = {
            let mut running = lock(&self.0);
            running.is_over = true;
            std::mem::take(&mut running.set)
        };
        set.shutdown().await;
    }
}
