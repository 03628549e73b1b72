//! The connection ends, or the call is cancelled, after every number of polls.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use bowline::model::LoggingLevel;
use bowline::{Context, Server, Tool};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::yield_now;

use crate::raw::{call, cancel, modern};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// Reports, logs and waits in turn.
async fn busy(context: Context) -> &'static str {
    for step in 1..4_u8 {
        context.progress(step.into(), None, "busy");
        context.log(LoggingLevel::Error, json!({ "step": step })).await;
        yield_now().await;
    }
    "done"
}

fn server() -> Server {
    let busy = |context: Context, _: Nothing| async move { busy(context).await };
    Server::new("drops", "1.0.0").with(Tool::new("busy", busy))
}

fn busy_call(id: u64) -> Value {
    let mut call = modern(call(id, "busy", json!({})));
    call["params"]["_meta"]["progressToken"] = json!(id);
    call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    call
}

/// Polls a future this many times, and lets other tasks run in between.
async fn poll_times<F: Future>(mut future: Pin<&mut F>, times: usize) -> Option<F::Output> {
    for _ in 0..times {
        let polled = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        if let Poll::Ready(output) = polled {
            return Some(output);
        }
        yield_now().await;
    }
    None
}

fn whole_lines(bytes: &[u8]) -> Vec<Value> {
    assert!(bytes.is_empty() || bytes.ends_with(b"\n"), "half a line");
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("a message")).collect()
}

/// The server's future is dropped after each number of polls.
#[tokio::test]
async fn a_dropped_connection_leaves_whole_lines() {
    for polls in 0.. {
        let (mut ours, theirs) = tokio::io::duplex(64 << 10);
        for id in 0..3 {
            ours.write_all(format!("{}\n", busy_call(id)).as_bytes()).await.unwrap();
        }
        let mut serving = Box::pin(server().serve(theirs));
        if polls > 1 {
            ours.shutdown().await.unwrap();
        }
        let ended = poll_times(serving.as_mut(), polls).await;
        drop(serving);
        let mut received = Vec::new();
        ours.read_to_end(&mut received).await.unwrap();
        let lines = whole_lines(&received);
        if let Some(ended) = ended {
            ended.unwrap();
            assert_eq!(lines.iter().filter(|line| line["result"].is_object()).count(), 3);
            assert!(polls > 3, "nothing was tried");
            return;
        }
    }
}

/// The client disconnects after each number of polls.
#[tokio::test]
async fn a_client_that_vanishes_ends_the_server() {
    for (polls, pipe) in (0..40).flat_map(|polls| [(polls, 64), (polls, 64 << 10)]) {
        let (ours, theirs) = tokio::io::duplex(pipe);
        let client = tokio::spawn(speak_and_stare(ours));
        let mut serving = pin!(server().serve(theirs));
        poll_times(serving.as_mut(), polls).await;
        client.abort();
        let _ = client.await;
        // It does not matter whether reading or writing failed first.
        let _ = serving.await;
    }
}

async fn speak_and_stare(mut stream: DuplexStream) {
    for id in 0..3 {
        let _ = stream.write_all(format!("{}\n", busy_call(id)).as_bytes()).await;
    }
    let _ = stream.read(&mut [0; 100]).await;
    std::future::pending::<()>().await;
}

/// The call is cancelled after each number of polls, on a pipe that takes a few bytes at a time.
#[tokio::test]
async fn a_cancellation_at_any_moment_leaves_whole_lines() {
    for polls in 0..60 {
        let (ours, theirs) = tokio::io::duplex(61);
        let (mut reader, mut writer) = tokio::io::split(ours);
        let mut serving = Box::pin(server().serve(theirs));
        let (cancelling, cancelled) = tokio::sync::oneshot::channel::<()>();
        let writing = tokio::spawn(async move {
            writer.write_all(format!("{}\n", busy_call(1)).as_bytes()).await.unwrap();
            let _ = cancelled.await;
            let last = format!("{}\n{}\n", cancel(1), busy_call(2));
            writer.write_all(last.as_bytes()).await.unwrap();
            writer.shutdown().await.unwrap();
        });
        let reading = tokio::spawn(async move {
            let mut received = Vec::new();
            reader.read_to_end(&mut received).await.map(|_| received)
        });
        assert!(poll_times(serving.as_mut(), polls).await.is_none());
        cancelling.send(()).unwrap();
        serving.await.unwrap();
        writing.await.unwrap();
        let lines = whole_lines(&reading.await.unwrap().unwrap());
        let answers = |id: u64| lines.iter().filter(|line| line["id"] == id).count();
        assert!(answers(1) <= 1 && answers(2) == 1, "after {polls} polls: {lines:?}");
    }
}
