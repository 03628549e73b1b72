//! How many handlers of tasks run at a time, and how often tasks may be polled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline::tasks::OutsideError;
use bowline::{
    Context, Elsewhere, ErrorObject, HandlerError, Server, TaskLimits, TaskMode, Tasks, Tool,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::raw::Raw;
use crate::shelf::Shelf;
use crate::tasks::{able, about, accept, answer, name, start, until};

/// A tool that takes a minute, and knows how many of it have run at a time.
fn minute(most: &Arc<AtomicUsize>, running: &Arc<AtomicUsize>) -> Tool {
    let (most, running) = (Arc::clone(most), Arc::clone(running));
    let work = move |_: Context| {
        let (most, running) = (Arc::clone(&most), Arc::clone(&running));
        async move {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(60)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            "done"
        }
    };
    Tool::new("minute", work).task(TaskMode::Optional).rerun()
}

async fn status(raw: &mut Raw, task: &str) -> Value {
    raw.ask(&able(about("tasks/get", task))).await["result"]["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn only_so_many_handlers_run_at_a_time() {
    let (most, running) = (Arc::default(), Arc::default());
    let limits = TaskLimits { running_per_owner: 2, ..TaskLimits::default() };
    let server = Server::new("tasks", "1.0.0")
        .with(minute(&most, &running))
        .tasks(Tasks::in_memory_with(limits));
    let mut raw = Raw::start(server);
    let mut tasks = Vec::new();
    for _ in 0..6 {
        tasks.push(start(&mut raw, "minute", json!({})).await);
    }
    // One that waits for its turn can be cancelled.
    raw.ask(&able(about("tasks/cancel", &tasks[2]))).await;
    for (minutes, completed) in [(1, 2), (2, 4), (3, 5)] {
        tokio::time::sleep(Duration::from_secs(61)).await;
        let mut found = 0;
        for task in &tasks {
            found += usize::from(status(&mut raw, task).await == "completed");
        }
        assert_eq!(found, completed, "after {minutes} minutes");
    }
    assert_eq!(status(&mut raw, &tasks[2]).await, "cancelled");
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_restart_does_not_run_everything_at_once() {
    let (most, running) = (Arc::default(), Arc::default());
    let (shelf, limits) = (Shelf::default(), TaskLimits { running: 3, ..TaskLimits::default() });
    let server = |limits: TaskLimits| {
        Server::new("tasks", "1.0.0")
            .with(minute(&most, &running))
            .tasks(Tasks::in_store(shelf.clone(), limits))
    };
    let mut raw = Raw::start(server(TaskLimits::default()));
    let mut tasks = Vec::new();
    for _ in 0..9 {
        tasks.push(start(&mut raw, "minute", json!({})).await);
    }
    drop(raw);
    // The first server stops its handlers.
    tokio::time::sleep(Duration::from_secs(30)).await;
    for counter in [&most, &running] {
        counter.store(0, Ordering::SeqCst);
    }
    let mut raw = Raw::start(server(limits));
    for task in &tasks {
        until(&mut raw, task, "completed").await;
    }
    assert!(most.load(Ordering::SeqCst) <= 3);
}

/// A task that waits for an answer, for as long as a client may poll it.
fn waiting(shelf: &Shelf) -> Server {
    let ask = |context: Context| async move { Ok::<_, HandlerError>(name(&context, "who").await?) };
    Server::new("tasks", "1.0.0")
        .with(Tool::new("ask", ask).task(TaskMode::Optional))
        .tasks(Tasks::in_store(shelf.clone(), TaskLimits::default()))
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_polls_at_once_are_answered_and_slow_down_whoever_sends_them() {
    let shelf = Shelf::default();
    let mut raw = Raw::start(waiting(&shelf));
    let task = start(&mut raw, "ask", json!({})).await;
    until(&mut raw, &task, "input_required").await;
    let (began, loads) = (Instant::now(), shelf.loads());
    let poll = |number: i32| {
        let mut poll = able(about("tasks/get", &task));
        poll["id"] = json!(number);
        poll
    };
    for _ in 0..100 {
        for number in 0..100 {
            raw.send(&poll(number)).await;
        }
        for _ in 0..100 {
            let answer = raw.next().await;
            assert_eq!(answer["result"]["status"], "input_required", "{answer}");
        }
    }
    // A hundred at a time, ten times a second.
    let taken = began.elapsed();
    assert!((Duration::from_secs(9)..Duration::from_secs(20)).contains(&taken), "{taken:?}");
    assert!(shelf.loads() - loads <= 10_100, "one look at the store for each");
    // The next state is told when it is there, not when the pause is over.
    for number in 0..40 {
        raw.send(&poll(number)).await;
    }
    answer_between(&mut raw, &task, 40).await;
    let done = until(&mut raw, &task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Ada");
}

/// Answers the question while polls are pending.
async fn answer_between(raw: &mut Raw, task: &str, polls: usize) {
    let params = json!({ "taskId": task, "inputResponses": { "who": accept("Ada") } });
    raw.send(&able(crate::raw::request("update", "tasks/update", params))).await;
    let mut answers = Vec::new();
    for _ in 0..=polls {
        answers.push(raw.next().await);
    }
    assert!(answers.iter().any(|it| it["id"] == "update"), "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn quick_looks_of_a_normal_client_are_answered_at_once() {
    let shelf = Shelf::default();
    let mut raw = Raw::start(waiting(&shelf));
    let task = start(&mut raw, "ask", json!({})).await;
    until(&mut raw, &task, "input_required").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let began = Instant::now();
    for _ in 0..15 {
        status(&mut raw, &task).await;
    }
    answer(&mut raw, &task, json!({ "who": accept("Ada") })).await;
    status(&mut raw, &task).await;
    assert!(began.elapsed() < Duration::from_millis(50), "{:?}", began.elapsed());
}

/// A task whose question is too long to be kept.
#[tokio::test(start_paused = true)]
async fn a_task_whose_questions_find_no_room_fails() {
    let ask = |context: Context| async move {
        let agreed = context.confirm("?".repeat(64 << 10)).await?;
        Ok::<_, HandlerError>(agreed.to_string())
    };
    let limits = TaskLimits { memory_per_owner: 32 << 10, ..TaskLimits::default() };
    let server = Server::new("tasks", "1.0.0")
        .with(Tool::new("ask", ask).task(TaskMode::Optional))
        .tasks(Tasks::in_memory_with(limits));
    let mut raw = Raw::start(server);
    let task = start(&mut raw, "ask", json!({})).await;
    let failed = until(&mut raw, &task, "failed").await;
    let message = failed["error"]["message"].as_str().unwrap();
    assert_eq!(message, "there is no room for the questions of the task");
}

/// Asks this many times, one after another.
fn asks(times: u32) -> Tool {
    let ask = move |context: Context| async move {
        for round in 0..times {
            name(&context, &format!("round-{round}")).await?;
        }
        Ok::<_, HandlerError>("done")
    };
    Tool::new("asks", ask).task(TaskMode::Optional)
}

#[tokio::test(start_paused = true)]
async fn rounds_of_a_task_have_a_limit_of_their_own() {
    for (rounds, end) in [(100, "completed"), (20, "failed")] {
        let limits = TaskLimits { rounds, ..TaskLimits::default() };
        let server = Server::new("tasks", "1.0.0").with(asks(30));
        let mut raw = Raw::start(server.tasks(Tasks::in_memory_with(limits)));
        let task = start(&mut raw, "asks", json!({})).await;
        for round in 0..rounds.min(30) {
            until(&mut raw, &task, "input_required").await;
            answer(&mut raw, &task, json!({ format!("round-{round}"): accept("Ada") })).await;
        }
        let ended = until(&mut raw, &task, end).await;
        if end == "failed" {
            let message = ended["error"]["message"].as_str().unwrap();
            assert!(message.contains("more than 20 rounds"), "{message}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_said_of_a_task_has_a_length() {
    let long = || ErrorObject::internal("x".repeat(300));
    let limits = TaskLimits { result: 200, ..TaskLimits::default() };
    let tasks = Tasks::in_memory_with(limits);
    let fails = Tool::new("fails", move || async move { Err::<String, _>(long()) });
    let away = Tool::new("away", || async { Elsewhere }).task(TaskMode::Required);
    let server = Server::new("tasks", "1.0.0").with((fails.task(TaskMode::Optional), away));
    let mut raw = Raw::start(server.tasks(tasks.clone()));
    let task = start(&mut raw, "fails", json!({})).await;
    let failed = until(&mut raw, &task, "failed").await;
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("tools/call: the error has 3"), "{message}");
    // From outside, too.
    let task = start(&mut raw, "away", json!({})).await;
    tasks.outside(&task).status("é".repeat(1_000) + "x").await.unwrap();
    let working = until(&mut raw, &task, "working").await;
    assert_eq!(working["statusMessage"], "é".repeat(512));
    let error = tasks.outside(&task).fail(long()).await.unwrap_err();
    assert!(matches!(&error, OutsideError::Output(why) if why.contains("more than the 200")));
    tasks.outside(&task).fail(ErrorObject::internal("no")).await.unwrap();
    until(&mut raw, &task, "failed").await;
}
