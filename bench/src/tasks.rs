//! What it costs that a call is a task: in memory, and in a file that survives a crash.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline::client::{CallError, Client};
use bowline::{Server, TaskLimits, TaskMode, Tool};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::callgrind;
use crate::document::Section;
use crate::frames::Revision;
use crate::measure::median;
use crate::micro::Echo;
use crate::peers::BUILD;
use crate::table::{Table, number, times};
use crate::{Bench, block_on};

/// The numbers of tasks that are created at a time.
const WIDTHS: [usize; 3] = [1, 16, 256];

/// What the program that syncs writes each time: about the pages that one task changes.
const PAGE: [u8; 4096] = [7; 4096];

pub(crate) fn run(bench: &Bench) -> Result<Section, String> {
    let mut text = String::new();
    if callgrind::is_here() {
        text += &in_memory(bench)?;
    }
    text += &in_a_file(bench)?;
    Ok(Section::new(text))
}

/// A server whose tool is always a task.
pub(crate) fn server(tasks: bowline::Tasks) -> Server {
    let echo = Tool::new("echo", |echo: Echo| async move { echo.message });
    Server::new("tasks", "1.0.0").with(echo.task(TaskMode::Required)).tasks(tasks)
}

/// As many as are created while something is measured, and none of them waits for its turn.
pub(crate) fn limits() -> TaskLimits {
    TaskLimits {
        tasks: usize::MAX,
        tasks_per_owner: usize::MAX,
        running: usize::MAX,
        running_per_owner: usize::MAX,
        memory: usize::MAX,
        memory_per_owner: usize::MAX,
        stored: usize::MAX,
        stored_per_owner: usize::MAX,
        ..TaskLimits::default()
    }
}

fn in_memory(bench: &Bench) -> Result<String, String> {
    let mut table = Table::new(&["in memory", "plain call", "task", "task ÷ plain call"]);
    for revision in Revision::BOTH {
        let count = |name: &str| {
            let name = format!("{name}-{}", revision.era());
            callgrind::of_program(&bench.peers.micro(&name), 1_000)
        };
        let (plain, task) = (count("dispatch")?, count("task")?);
        let row = [revision.name().to_owned(), number(plain), number(task), times(task / plain)];
        table.row(&row);
    }
    Ok(format!(
        "Instructions of the server for one call of `echo` with 64 bytes over a stream in memory: \
         as a plain call, and as a task, which is created, run, and kept with its outcome. The \
         goal is at most three times the plain call.\n\n{}\n",
        table.finish()
    ))
}

fn in_a_file(bench: &Bench) -> Result<String, String> {
    let mut table = Table::new(&["at a time", "tasks/s", "syncs/s", "tasks ÷ syncs"]);
    let folder = PathBuf::from(BUILD).join("tasks");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for width in WIDTHS {
        let mut rounds = Vec::new();
        for _ in 0..bench.rounds() {
            let syncs = syncs_per_second(&folder.join("syncs"), bench.span())?;
            let path = folder.join("tasks.redb");
            let tasks = block_on(tasks_per_second(&path, width, bench.span()))?;
            rounds.push((tasks, syncs));
        }
        table.row(&[
            width.to_string(),
            number(median(rounds.iter().map(|it| it.0))),
            number(median(rounds.iter().map(|it| it.1))),
            times(median(rounds.iter().map(|it| it.0 / it.1))),
        ]);
    }
    let removed = fs::remove_dir_all(&folder);
    removed.map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(format!(
        "Tasks in a file (`bowline-redb`): our client and server in one process, 2026-07-28, and \
         clients that create tasks as fast as their handles arrive. A handle leaves when the task \
         is on the disk; the outcome of each task is written, too. Beside it, what the disk allows \
         to a program that only appends 4 KiB and syncs, again and again. Writes that come at the \
         same time share a sync.\n\n{}",
        table.finish()
    ))
}

/// How often data can be synced one after another.
fn syncs_per_second(path: &Path, span: Duration) -> Result<f64, String> {
    let failed = |error| format!("{}: {error}", path.display());
    let mut file = File::create(path).map_err(failed)?;
    let (start, mut syncs) = (Instant::now(), 0_u32);
    while start.elapsed() < span {
        file.write_all(&PAGE).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        syncs += 1;
    }
    Ok(f64::from(syncs) / start.elapsed().as_secs_f64())
}

async fn tasks_per_second(path: &Path, width: usize, span: Duration) -> Result<f64, String> {
    // One that an earlier run left.
    let _ = fs::remove_file(path);
    let tasks = bowline_redb::tasks_with(path, limits()).map_err(|error| error.to_string())?;
    let client = Client::builder("bench", "1.0.0").connect(server(tasks));
    let client = client.await.map_err(|error| error.to_string())?;
    let (created, start) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let mut workers = JoinSet::new();
    for _ in 0..width {
        let (client, created) = (client.clone(), Arc::clone(&created));
        workers.spawn(async move {
            while start.elapsed() < span {
                let message = "x".repeat(64);
                let started = client.call_tool("echo", Echo { message }).start().await?;
                assert!(started.task().is_some(), "not a task");
                created.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, CallError>(())
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    }
    let rate = created.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
    client.close().await;
    Ok(rate)
}
