//! Requests and their answers.

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use super::server::{MIB, Server, modern, piped_row, post, row, scaled, session};

/// A batch that asks for the list of tools, over and over.
fn batch(count: usize) -> String {
    let item = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    format!("[{}]", vec![item; count].join(","))
}

#[tokio::test]
async fn batches() {
    row(26, "batches", async |server| {
        let headers = session(server, 0, "2025-03-26").await.unwrap();
        // Nearly four mebibytes, and as long as a batch may be.
        for (count, expected) in [(89_000, "a batch of more than 100 messages"), (100, "tool-199")]
        {
            let answer = server.ask(0, &post(&headers, &batch(count))).await;
            assert!(answer.contains(expected), "{}", &answer[..answer.len().min(300)]);
        }
        // Answers that nobody reads.
        let mut held = Vec::new();
        for _ in 0..scaled(50, 1_000) {
            let mut stream = server.connect(0).await;
            stream.write_all(post(&headers, &batch(100)).as_bytes()).await.unwrap();
            held.push(stream);
        }
        held
    })
    .await;
}

#[tokio::test]
async fn batches_on_standard_input() {
    piped_row(39, "batches on standard input", async |server| {
        // Thirteen megabytes are rejected, and those that are as long as they may be are one line.
        let answer = server.ask(&batch(280_000)).await;
        assert!(answer.contains("error"), "{}", &answer[..answer.len().min(300)]);
        for _ in 0..scaled(20, 500) {
            assert!(server.ask(&batch(100)).await.contains("tool-199"));
        }
    })
    .await;
}

#[tokio::test]
async fn long_ids_and_tokens() {
    row(27, "ids and progress tokens", async |server| {
        let long = "x".repeat(3 * MIB);
        for number in 0..scaled(8, 100) {
            let wait = json!({ "name": "slow", "arguments": { "ms": 600_000, "message": "" } });
            let asked = modern(&json!(long), "tools/call", wait, Some("slow"));
            let answer = server.ask(number, &asked).await;
            assert!(answer.contains("more than 1024 bytes"), "{}", answer.len());
            let work = json!({ "name": "work", "arguments": { "steps": 9, "ms": 600_000 },
                               "_meta": { "progressToken": long } });
            let answer =
                server.ask(number, &modern(&json!(1), "tools/call", work, Some("work"))).await;
            assert!(answer.contains("more than 1024 bytes"), "{answer}");
        }
        let mut held = Vec::new();
        for number in 0..scaled(200, 4_000) {
            let mut stream = server.connect(number).await;
            let token = "x".repeat(1_024);
            let work = json!({ "name": "work", "arguments": { "steps": 9, "ms": 600_000 },
                               "_meta": { "progressToken": token } });
            let request = modern(&json!(token), "tools/call", work, Some("work"));
            stream.write_all(request.as_bytes()).await.unwrap();
            held.push(stream);
        }
        held
    })
    .await;
}

#[tokio::test]
async fn answers_that_nobody_reads() {
    row(32, "answers that nobody reads", async |server| {
        let mut held = Vec::new();
        let list = modern(&json!(1), "tools/list", json!({}), None);
        for number in 0..scaled(200, 4_000) {
            let mut stream = server.connect(number).await;
            stream.write_all(list.as_bytes()).await.unwrap();
            held.push(stream);
        }
        held
    })
    .await;
}

#[tokio::test]
async fn listening_streams() {
    row(33, "listening streams", async |server| {
        let uris: Vec<_> =
            (0..1_000).map(|it| format!("test://{it}/{}", "x".repeat(1_000))).collect();
        let filter = json!({ "notifications": { "resourceSubscriptions": uris } });
        let request = modern(&json!("listen"), "subscriptions/listen", filter, None);
        hold(server, scaled(40, 1_000), &request).await
    })
    .await;
}

#[tokio::test]
async fn arguments_of_waiting_calls() {
    row(31, "arguments of waiting calls", async |server| {
        let message = "x".repeat(MIB);
        let wait = json!({ "name": "slow", "arguments": { "ms": 600_000, "message": message } });
        let request = modern(&json!(1), "tools/call", wait, Some("slow"));
        hold(server, scaled(80, 1_000), &request).await
    })
    .await;
}

/// Sends a request on many connections, which stay open.
async fn hold(server: &Server, count: usize, request: &str) -> Vec<tokio::net::TcpStream> {
    let mut sent = JoinSet::new();
    for number in 0..count {
        let mut stream = server.connect(number).await;
        let request = request.to_owned();
        sent.spawn(async move {
            // A refusal may come before everything is written.
            let _ = stream.write_all(request.as_bytes()).await;
            stream
        });
    }
    sent.join_all().await
}
