//! A server with tasks, the only client of it, and a store that both outlive.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline::tasks::{Elsewhere, TaskLimits, Tasks};
use bowline::tasks::{OutsideError, Quota, StoreError, StoreFuture, TaskRecord, TaskStore};
use bowline::{Context, ErrorObject, HandlerError, Server, TaskMode, Tool};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::{MOST, TTL};

/// A server that runs.
pub(crate) struct Running {
    stream: BufReader<DuplexStream>,
    serving: JoinHandle<()>,
    tasks: Tasks,
    store: Store,
    started: Instant,
    next: u64,
}

impl Running {
    pub(crate) fn start() -> Self {
        let store = Store::default();
        let (stream, serving, tasks) = serve(&store);
        Self { stream, serving, tasks, store, started: Instant::now(), next: 0 }
    }

    /// Seconds since the start, as its clock has it. Virtual time begins anew with each process, so
    /// a restart sets its clock back.
    pub(crate) fn now(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    pub(crate) async fn ask(&mut self, method: &str, mut params: Value) -> Value {
        self.next += 1;
        let capabilities = json!({
            "elicitation": { "form": {} },
            "extensions": { "io.modelcontextprotocol/tasks": {} },
        });
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "fuzz", "version": "0" },
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let request =
            json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        let line = format!("{request}\n");
        self.stream.get_mut().write_all(line.as_bytes()).await.expect("the server reads");
        let mut line = String::new();
        self.stream.read_line(&mut line).await.expect("the server answers");
        let answer: Value = serde_json::from_str(&line).expect("an answer is JSON");
        assert_eq!(answer["id"], self.next, "{answer}");
        // What an answer has started, such as the rest of a handler, happens now.
        tokio::time::sleep(Duration::from_millis(1)).await;
        answer
    }

    /// Ends work outside the server. Returns whether there was any.
    pub(crate) async fn end_outside(&mut self, id: &str, succeeds: bool) -> bool {
        let outside = self.tasks.outside(id);
        let ended = match succeeds {
            true => outside.complete("done").await,
            false => outside.fail(ErrorObject::internal("it broke")).await,
        };
        match ended {
            Ok(()) => true,
            Err(OutsideError::Store(error)) => panic!("{error}"),
            Err(_) => false,
        }
    }

    pub(crate) async fn restart(&mut self) {
        // Only one of them runs at a time.
        self.stream.get_mut().shutdown().await.expect("a stream in memory does not fail");
        (&mut self.serving).await.expect("a server does not panic");
        (self.stream, self.serving, self.tasks) = serve(&self.store);
        self.started = Instant::now();
        tokio::time::sleep(Duration::from_secs(2)).await;
    }

    pub(crate) async fn stop(self) {
        drop(self.stream);
        self.serving.await.expect("a server does not panic");
    }
}

type Served = (BufReader<DuplexStream>, JoinHandle<()>, Tasks);

fn serve(store: &Store) -> Served {
    let limits = TaskLimits {
        tasks: MOST,
        tasks_per_owner: MOST,
        ttl: Duration::from_secs(TTL),
        // Looking at a task must not take time.
        poll: Duration::ZERO,
        ..TaskLimits::default()
    };
    let tasks = Tasks::in_store(store.clone(), limits);
    let server = Server::new("fuzzed", "0").with(tools()).tasks(tasks.clone());
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let serving = tokio::spawn(async move {
        server.serve(theirs).await.expect("a stream in memory does not fail");
    });
    (BufReader::new(ours), serving, tasks)
}

#[derive(serde::Deserialize, bowline::schemars::JsonSchema)]
#[schemars(crate = "bowline::schemars")]
struct Plan {
    rounds: Vec<usize>,
}

fn tools() -> Vec<Tool> {
    let hang = |name: &str| {
        Tool::new(name, |_: Context, _: Plan| std::future::pending::<String>())
            .task(TaskMode::Required)
    };
    vec![
        Tool::new("ask", ask).task(TaskMode::Required),
        Tool::new("fail", |_: Context, _: Plan| async {
            Err::<String, _>(HandlerError::Refused(ErrorObject::internal("no")))
        })
        .task(TaskMode::Required),
        Tool::new("outside", |_: Context, _: Plan| async { Elsewhere }).task(TaskMode::Required),
        hang("hang"),
        hang("hang-again").rerun(),
    ]
}

/// Asks one or two questions at a time.
async fn ask(context: Context, plan: Plan) -> Result<String, HandlerError> {
    for (round, width) in plan.rounds.into_iter().enumerate() {
        let question = |place: usize| context.confirm(format!("question {round}.{place}"));
        match width {
            1 => drop(question(0).await?),
            _ => {
                let (one, two) = tokio::join!(question(0), question(1));
                one?;
                two?;
            }
        }
    }
    Ok("answered".to_owned())
}

/// A store as simple as it can be.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<BTreeMap<String, Arc<TaskRecord>>>>);

impl Store {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<TaskRecord>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A record as another process reads it.
fn written(record: &TaskRecord) -> Arc<TaskRecord> {
    let bytes = record.encode().expect("records can be written");
    Arc::new(TaskRecord::decode(&bytes).expect("records can be read"))
}

fn ready<'a, T: Send + 'a>(value: Result<T, StoreError>) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl TaskStore for Store {
    fn create(&self, record: Arc<TaskRecord>, quota: Quota) -> StoreFuture<'_, ()> {
        let mut kept = self.lock();
        if kept.len() >= quota.all.min(quota.each) {
            return ready(Err(StoreError::Full));
        }
        let before = kept.insert(record.id().to_owned(), written(&record));
        assert!(before.is_none(), "an id was used again");
        ready(Ok(()))
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        ready(Ok(self.lock().get(id).cloned()))
    }

    fn swap<'a>(
        &'a self,
        id: &'a str,
        version: u64,
        next: Option<Arc<TaskRecord>>,
    ) -> StoreFuture<'a, bool> {
        let mut kept = self.lock();
        if kept.get(id).is_none_or(|found| found.version() != version) {
            return ready(Ok(false));
        }
        match next {
            Some(next) => {
                assert_eq!(next.version(), version + 1, "versions count");
                kept.insert(id.to_owned(), written(&next));
            }
            None => drop(kept.remove(id)),
        }
        ready(Ok(true))
    }

    fn page<'a>(
        &'a self,
        owner: Option<&'a str>,
        after: Option<(u64, &'a str)>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Arc<TaskRecord>>> {
        let kept = self.lock();
        let mut all: Vec<_> = kept.values().filter(|it| it.owner() == owner).cloned().collect();
        all.sort_by(|a, b| (a.created(), a.id()).cmp(&(b.created(), b.id())));
        all.retain(|it| after.is_none_or(|after| (it.created(), it.id()) > after));
        all.truncate(limit);
        ready(Ok(all))
    }

    fn due(&self, now: u64, limit: usize) -> StoreFuture<'_, Vec<String>> {
        let kept = self.lock();
        let mut due: Vec<_> = kept.values().filter(|it| it.due() <= now).collect();
        due.sort_by_key(|it| it.due());
        ready(Ok(due.into_iter().take(limit).map(|it| it.id().to_owned()).collect()))
    }
}
