//! Legacy sessions, and what is kept for them.

use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::server::{MIB, initialize, post, row, scaled, session};

#[tokio::test]
async fn fat_identities() {
    row(28, "fat identities", async |server| {
        for number in 0..scaled(20, 200) {
            let answer = server.ask(number, &initialize("2025-11-25", &"x".repeat(3 * MIB))).await;
            assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
            assert!(answer.contains("more than the 32768 that are allowed"), "{answer}");
        }
        for number in 0..scaled(500, 20_000) {
            server.ask(number, &initialize("2025-11-25", &"x".repeat(30_000))).await;
        }
    })
    .await;
}

#[tokio::test]
async fn half_open_sessions() {
    row(36, "half-open sessions", async |server| {
        for number in 0..scaled(2_000, 25_000) {
            server.ask(number, &initialize("2025-11-25", "attacks")).await;
        }
        assert!(session(server, 9, "2025-11-25").await.is_some(), "a new client gets in");
    })
    .await;
}

#[tokio::test]
async fn replay_buffers() {
    row(34, "replay buffers", async |server| {
        // Each answer is kept for a client that might reconnect.
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "slow", "arguments": { "ms": 1, "message": "x".repeat(MIB / 2) } } });
        for number in 0..scaled(60, 1_000) {
            let headers = session(server, number, "2025-11-25").await.unwrap();
            server.ask(number, &post(&headers, &call.to_string())).await;
        }
    })
    .await;
}

#[tokio::test]
async fn abandoned_calls() {
    row(37, "abandoned calls", async |server| {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "slow", "arguments": { "ms": 600_000, "message": "x".repeat(16 << 10) } } });
        let mut headers = String::new();
        for number in 0..scaled(300, 10_000) {
            if number % 100 == 0 {
                headers = session(server, number, "2025-11-25").await.unwrap();
            }
            let mut stream = server.connect(number).await;
            stream.write_all(post(&headers, &call.to_string()).as_bytes()).await.unwrap();
            // The first event says that it runs.
            let mut byte = [0];
            let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut byte).await;
        }
    })
    .await;
}
