//! Our client as a program: executes the commands it reads from standard input, one per line.
//!
//! `call CALLS WINDOW BYTES` makes this many calls of `echo`, this many at a time, and prints
//! `done`; `hold CALLS` starts calls that do not return, and prints `held` when they have been
//! sent. Written as an application would be, with default settings.

use std::time::Duration;

use bowline::client::{CallError, Client, Command, Preference, Target};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinSet;

#[derive(Serialize)]
struct Echo<'a> {
    message: &'a str,
}

#[derive(Serialize)]
struct Slow {
    ms: u64,
    message: &'static str,
}

/// Connects, and executes commands until the input ends.
pub(crate) async fn run(revision: &str, target: &[&str]) -> Result<(), String> {
    let preference = match revision {
        "2026-07-28" => Preference::Modern,
        _ => Preference::Legacy,
    };
    let target = match target {
        [url] if url.starts_with("http://") => Target::from(*url),
        _ => Target::from(Command::new(target[0]).args(&target[1..])),
    };
    let client = Client::builder("bench", "1.0.0").preference(preference).connect(target);
    let client = client.await.map_err(|error| error.to_string())?;
    println!("ready");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut held = JoinSet::new();
    while let Some(line) = lines.next_line().await.map_err(|error| error.to_string())? {
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbers: Vec<usize> = words.iter().skip(1).filter_map(|it| it.parse().ok()).collect();
        match (words.first().copied(), &numbers[..]) {
            (Some("call"), [calls, window, bytes]) => {
                call(&client, *calls, *window, *bytes).await?;
                println!("done");
            }
            (Some("hold"), [calls]) => {
                for _ in 0..*calls {
                    let client = client.clone();
                    held.spawn(async move {
                        let slow = Slow { ms: 280_000, message: "late" };
                        drop(client.call_tool("slow", slow).await);
                    });
                }
                tokio::time::sleep(Duration::from_secs(2)).await;
                println!("held");
            }
            _ => return Err(format!("unknown command {line:?}")),
        }
    }
    held.shutdown().await;
    client.close().await;
    Ok(())
}

async fn call(client: &Client, calls: usize, window: usize, bytes: usize) -> Result<(), String> {
    let mut workers = JoinSet::new();
    for worker in 0..window {
        let share = calls / window + usize::from(worker < calls % window);
        let (client, message) = (client.clone(), "x".repeat(bytes));
        workers.spawn(async move {
            for _ in 0..share {
                let text = client.call_tool("echo", Echo { message: &message }).text().await?;
                assert_eq!(text, message);
            }
            Ok::<_, CallError>(())
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    }
    Ok(())
}
