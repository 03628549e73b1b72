//! What becomes of tasks when something breaks besides the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline::{
    Context, InputRequired, Part, Server, Step, TaskLimits, TaskMode, Tasks, Tool, tool,
};
use serde_json::json;
use tokio::time::Instant;

use crate::raw::{Raw, request};
use crate::shelf::Shelf;
use crate::tasks::{Seconds, able, about, start, until};

fn wait() -> Tool {
    let wait = |_: Context, Seconds { seconds }: Seconds| async move {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        "waited"
    };
    Tool::new("wait", wait).task(TaskMode::Optional).rerun()
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_cannot_start_again_does_not_keep_others_from_it() {
    let (shelf, is_broken) = (Shelf::default(), Arc::new(AtomicBool::new(false)));
    let server = || {
        let is_broken = Arc::clone(&is_broken);
        let breaks = move |_: Context| {
            assert!(!is_broken.load(Ordering::SeqCst), "on purpose");
            std::future::pending::<&'static str>()
        };
        Server::new("tasks", "1.0.0")
            .with(Tool::new("breaks", breaks).task(TaskMode::Optional).rerun())
            .with(wait())
            .tasks(Tasks::in_store(shelf.clone(), TaskLimits::default()))
    };
    let mut raw = Raw::start(server());
    let mut broken = Vec::new();
    for _ in 0..3 {
        broken.push(start(&mut raw, "breaks", json!({})).await);
    }
    let fine = start(&mut raw, "wait", json!({ "seconds": 600 })).await;
    drop(raw);
    is_broken.store(true, Ordering::SeqCst);
    let mut raw = Raw::start(server());
    for task in &broken {
        let failed = until(&mut raw, task, "failed").await;
        assert!(!failed.to_string().contains("on purpose"), "{failed}");
    }
    until(&mut raw, &fine, "completed").await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_is_asked_again() {
    let shelf = Shelf::default();
    let limits = TaskLimits { ttl: Duration::from_secs(30), ..TaskLimits::default() };
    let tasks = Tasks::in_store(shelf.clone(), limits);
    let mut raw = Raw::start(Server::new("tasks", "1.0.0").with(wait()).tasks(tasks));
    let task = start(&mut raw, "wait", json!({ "seconds": 600 })).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    shelf.panic_once();
    while shelf.will_panic() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let failed = until(&mut raw, &task, "failed").await;
    assert!(failed["error"]["message"].as_str().unwrap().contains("expired"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_at_the_end_of_a_task_does_not_keep_it_working() {
    let shelf = Shelf::default();
    let once = || async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        "done"
    };
    let server = Server::new("tasks", "1.0.0")
        .with(Tool::new("once", once).task(TaskMode::Optional))
        .with(wait())
        .tasks(Tasks::in_store(shelf.clone(), TaskLimits::default()));
    let mut raw = Raw::start(server);
    let task = start(&mut raw, "once", json!({})).await;
    shelf.panic_at_the_next_change();
    let failed = until(&mut raw, &task, "failed").await;
    assert!(failed["error"]["message"].as_str().unwrap().contains("could not store"), "{failed}");
    // One that may run again does.
    let task = start(&mut raw, "wait", json!({ "seconds": 10 })).await;
    shelf.panic_at_the_next_change();
    until(&mut raw, &task, "completed").await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_not_begun_runs_after_a_restart() {
    let shelf = Shelf::default();
    let server = || {
        let minute = || async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            "done"
        };
        let limits = TaskLimits { running: 1, ..TaskLimits::default() };
        Server::new("tasks", "1.0.0")
            .with(Tool::new("minute", minute).task(TaskMode::Optional))
            .tasks(Tasks::in_store(shelf.clone(), limits))
    };
    for end in ["completed", "failed"] {
        let mut raw = Raw::start(server());
        let [begun, waiting] = [
            start(&mut raw, "minute", json!({})).await,
            start(&mut raw, "minute", json!({})).await,
        ];
        drop(raw);
        // The server stops its handlers.
        tokio::time::sleep(Duration::from_secs(30)).await;
        let mut raw = Raw::start(server());
        until(&mut raw, &begun, "failed").await;
        if end == "failed" {
            // It has begun by now.
            tokio::time::sleep(Duration::from_secs(5)).await;
            drop(raw);
            tokio::time::sleep(Duration::from_secs(30)).await;
            raw = Raw::start(server());
        }
        until(&mut raw, &waiting, end).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_hears_the_end_that_the_store_could_not_read_at_once() {
    let shelf = Shelf::default();
    let tasks = Tasks::in_store(shelf.clone(), TaskLimits::default());
    let mut raw = Raw::start(Server::new("tasks", "1.0.0").with(wait()).tasks(tasks));
    let task = start(&mut raw, "wait", json!({ "seconds": 10 })).await;
    let filter = json!({ "notifications": { "taskIds": [task] } });
    raw.send(&able(request("listen", "subscriptions/listen", filter))).await;
    let acknowledged = raw.next().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(raw.next().await["params"]["status"], "working");
    shelf.fail_to_load_what_changes_next();
    assert_eq!(raw.next().await["params"]["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_does_not_wait_for_its_store_task_by_task() {
    let shelf = Shelf::default();
    let tasks = Tasks::in_store(shelf.clone(), TaskLimits::default());
    let mut raw = Raw::start(Server::new("tasks", "1.0.0").with(wait()).tasks(tasks));
    for _ in 0..50 {
        start(&mut raw, "wait", json!({ "seconds": 600 })).await;
    }
    shelf.be_slow();
    // It is given two minutes, in which this store fails thirty times.
    raw.close().await;
}

/// Runs this many times without a question, twice a second.
fn patient(rounds: u32) -> Tool {
    let work = move |context: Context| async move {
        let round = context.request_state::<u32>().unwrap_or_default();
        match round < rounds {
            true => Step::Ask(InputRequired::new().state(json!(round + 1))),
            false => Step::Done("done"),
        }
    };
    Tool::new("patient", work).task(TaskMode::Optional)
}

#[tokio::test(start_paused = true)]
async fn rounds_without_questions_renew_the_lease() {
    let tasks = Tasks::in_shared_store(Shelf::default(), TaskLimits::default());
    let mut raw = Raw::start(Server::new("tasks", "1.0.0").with(patient(200)).tasks(tasks));
    let task = start(&mut raw, "patient", json!({})).await;
    until(&mut raw, &task, "completed").await;
}

#[tokio::test(start_paused = true)]
async fn a_round_without_questions_is_followed_by_one_after_a_restart() {
    for is_shared in [false, true] {
        let shelf = Shelf::default();
        let server = || {
            let tasks = match is_shared {
                true => Tasks::in_shared_store(shelf.clone(), TaskLimits::default()),
                false => Tasks::in_store(shelf.clone(), TaskLimits::default()),
            };
            Server::new("tasks", "1.0.0").with(patient(20)).tasks(tasks)
        };
        let mut raw = Raw::start(server());
        let task = start(&mut raw, "patient", json!({})).await;
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(1_700)).await;
            raw.close().await;
            raw = Raw::start(server());
        }
        until(&mut raw, &task, "completed").await;
        let stopping = Instant::now();
        raw.close().await;
        assert!(stopping.elapsed() < Duration::from_secs(1), "{:?}", stopping.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_stored_is_stored_later() {
    for is_shared in [false, true] {
        let shelf = Shelf::default();
        let says = |context: Context| async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            context.status("compiling");
            tokio::time::sleep(Duration::from_secs(600)).await;
            "done"
        };
        let tasks = match is_shared {
            true => Tasks::in_shared_store(shelf.clone(), TaskLimits::default()),
            false => Tasks::in_store(shelf.clone(), TaskLimits::default()),
        };
        let says = Tool::new("says", says).task(TaskMode::Optional);
        let mut raw = Raw::start(Server::new("tasks", "1.0.0").with(says).tasks(tasks));
        let task = start(&mut raw, "says", json!({})).await;
        shelf.fail_at_the_next_changes(2);
        tokio::time::sleep(Duration::from_secs(12)).await;
        let found = raw.ask(&able(about("tasks/get", &task))).await;
        assert_eq!(found["result"]["statusMessage"], "compiling", "{found}");
        until(&mut raw, &task, "completed").await;
    }
}

/// Wait, and run again after a restart.
#[tool(task, rerun)]
async fn again() -> &'static str {
    tokio::time::sleep(Duration::from_secs(60)).await;
    "done"
}

/// Wait, and do not run again.
#[tool(task)]
async fn never_again() -> &'static str {
    tokio::time::sleep(Duration::from_secs(60)).await;
    "done"
}

#[tokio::test(start_paused = true)]
async fn the_attribute_says_whether_a_tool_runs_again() {
    async fn check<P: Part>(part: impl Fn() -> P, name: &str, end: &str) {
        let shelf = Shelf::default();
        let server = || {
            let tasks = Tasks::in_store(shelf.clone(), TaskLimits::default());
            Server::new("tasks", "1.0.0").with(part()).tasks(tasks)
        };
        let mut raw = Raw::start(server());
        let task = start(&mut raw, name, json!({})).await;
        raw.close().await;
        until(&mut Raw::start(server()), &task, end).await;
    }
    check(|| again, "again", "completed").await;
    check(|| never_again, "never_again", "failed").await;
}
