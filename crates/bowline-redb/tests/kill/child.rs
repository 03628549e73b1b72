//! The server: its tools ask three questions and have two `once` steps. It kills itself at a step.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bowline::tasks::{Quota, StoreFuture, TaskRecord, TaskStore};
use bowline::{Context, HandlerError, Server, TaskLimits, TaskMode, Tasks, Tool};
use bowline_redb::Store;
use rustix::process::{Signal, getpid, kill_process};

use crate::journal::Journal;

/// The folder of the file and the journal. It makes this program a server.
pub(crate) const FOLDER: &str = "BOWLINE_TEST_FOLDER";
/// The step at which the server kills itself; 0 for never.
pub(crate) const STEP: &str = "BOWLINE_TEST_STEP";

/// The steps that are left before the server kills itself.
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Every step of the handler and of the store passes here.
fn step() {
    if LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
        kill_process(getpid(), Signal::KILL).unwrap();
        loop {
            std::thread::park();
        }
    }
}

#[tokio::main]
pub(crate) async fn serve(folder: &Path) {
    let steps = std::env::var(STEP).unwrap().parse().unwrap();
    LEFT.store(if steps == 0 { u64::MAX } else { steps }, Ordering::SeqCst);
    let store = Steps(Store::open(folder.join("tasks.redb")).unwrap());
    let tool = |name: &str| {
        let journal = Journal::new(folder);
        let tool = Tool::new(name, move |context: Context| work(context, journal.clone()));
        tool.task(TaskMode::Required)
    };
    Server::new("killed", "1.0.0")
        .with(tool("again").rerun())
        .with(tool("never-again"))
        .tasks(Tasks::in_store(store, TaskLimits::default()))
        .serve_stdio()
        .await
        .unwrap();
}

async fn work(context: Context, journal: Journal) -> Result<String, HandlerError> {
    let task = context.task_id().unwrap().to_owned();
    journal.append(&format!("begin {task}"));
    let once = async |key: &str| {
        step();
        let value = context.once(key, effect(&journal, &task, key)).await;
        journal.append(&format!("kept {task} {key} {value}"));
        step();
        value
    };
    let ask = async |question: &str| {
        step();
        let answer = context.confirm(question).await;
        step();
        answer
    };
    let first = once("first").await;
    let one = ask("one?").await?;
    let second = once("second").await;
    let two = ask("two?").await?;
    let three = ask("three?").await?;
    context.status("almost done");
    Ok(format!("{first} {second} {one} {two} {three}"))
}

/// Work that can be seen from outside, with a value that is another one if it is done again.
async fn effect(journal: &Journal, task: &str, key: &str) -> String {
    let effect = format!("effect {task} {key}");
    journal.append(&effect);
    step();
    tokio::task::yield_now().await;
    format!("{key}-{}", journal.count(&effect))
}

/// The store, with a step before and after each of its verbs.
struct Steps(Store);

fn stepping<'a, T: 'a>(work: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
    Box::pin(async move {
        step();
        let done = work.await;
        step();
        done
    })
}

impl TaskStore for Steps {
    fn create(&self, record: Arc<TaskRecord>, quota: Quota) -> StoreFuture<'_, ()> {
        stepping(self.0.create(record, quota))
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        stepping(self.0.load(id))
    }

    fn swap<'a>(
        &'a self,
        id: &'a str,
        version: u64,
        next: Option<Arc<TaskRecord>>,
    ) -> StoreFuture<'a, bool> {
        stepping(self.0.swap(id, version, next))
    }

    fn page<'a>(
        &'a self,
        owner: Option<&'a str>,
        after: Option<(u64, &'a str)>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Arc<TaskRecord>>> {
        stepping(self.0.page(owner, after, limit))
    }

    /// The sweep comes every second: its steps do not belong to a task.
    fn due(&self, now: u64, limit: usize) -> StoreFuture<'_, Vec<String>> {
        self.0.due(now, limit)
    }
}
