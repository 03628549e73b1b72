//! The thread that writes. Writes that have come while it was waiting for the disk are committed
//! together, with one sync.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use bowline::tasks::Quota;
use tokio::sync::{mpsc, oneshot};

use crate::engine::Engine;
use crate::error::Failure;
use crate::tables::{Entry, Tables, Written};

/// How many writes are committed together at most, and how many wait for that before callers do.
const BATCH: usize = 1_024;

/// One write.
pub(crate) enum Write {
    Create(Entry, Quota),
    Swap { id: String, version: u64, next: Option<Entry>, quota: Quota },
}

/// A write, and whoever waits for it.
struct Job {
    write: Write,
    done: oneshot::Sender<Result<Written, Failure>>,
}

/// The thread that writes. Dropping it waits until everything is written.
pub(crate) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(engine: Arc<Engine>, path: &Path) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel(BATCH);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let thread = std::thread::Builder::new().name(name).spawn(move || run(&engine, queue))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Writes.
    ///
    /// # Cancel safety
    /// If it is dropped, the write may happen or not.
    pub(crate) async fn write(&self, write: Write) -> Result<Written, Failure> {
        let gone = || Failure::new("the thread that writes has ended");
        let (done, written) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        jobs.send(Job { write, done }).await.map_err(|_| gone())?;
        written.await.map_err(|_| gone())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

fn run(engine: &Engine, mut queue: mpsc::Receiver<Job>) {
    let mut batch = Vec::new();
    while queue.blocking_recv_many(&mut batch, BATCH) > 0 {
        let written = engine.write(|transaction| {
            let mut tables = Tables::open(transaction)?;
            let written: Result<Vec<_>, _> =
                batch.iter().map(|job| apply(&mut tables, &job.write)).collect();
            let written = written?;
            let has_changed = written.contains(&Written::Done);
            Ok((written, has_changed))
        });
        if let Err(error) = &written {
            tracing::error!(%error, "tasks cannot be written");
        }
        for (at, job) in batch.drain(..).enumerate() {
            let outcome = written.as_ref().map(|written| written[at]).map_err(Clone::clone);
            // Nobody may be waiting any more.
            let _ = job.done.send(outcome);
        }
    }
}

fn apply(tables: &mut Tables<'_>, write: &Write) -> Result<Written, Failure> {
    match write {
        Write::Create(entry, quota) => tables.create(entry, *quota),
        Write::Swap { id, version, next, quota } => {
            tables.swap(id, *version, next.as_ref(), *quota)
        }
    }
}
