//! The tasks of one client: they answer the server's requests and keep streams open.

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
    /// Spawns a task. Once the client has ended, the task is aborted before it starts.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut running = lock(&self.0);
        while running.set.try_join_next().is_some() {}
        let handle = running.set.spawn(task);
        if running.is_over {
            handle.abort();
        }
        handle
    }

    /// Aborts all tasks and waits for them. No task runs after this.
    pub(super) async fn stop(&self) {
        let mut set = {
            let mut running = lock(&self.0);
            running.is_over = true;
            std::mem::take(&mut running.set)
        };
        set.shutdown().await;
    }
}
