//! Heads and bodies, as they arrive.

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use super::server::{MIB, few_files_row, head, modern, row, scaled, soon};

#[tokio::test]
async fn heads_without_end() {
    row(35, "heads without end", async |server| {
        let mut held = Vec::new();
        for number in 0..scaled(200, 4_000) {
            let mut stream = server.connect(number).await;
            let line = format!("x-{number}: {}\r\n", "y".repeat(8_000));
            let _ = stream.write_all(format!("{}{}", head(1), line.repeat(7)).as_bytes()).await;
            held.push(stream);
        }
        held
    })
    .await;
}

/// A call that waits, and how long its head is made: nearly as long as it may be.
const LONG: usize = 60_000;

fn waiting_call() -> serde_json::Value {
    json!({ "name": "slow", "arguments": { "ms": 600_000, "message": "" } })
}

#[tokio::test]
async fn complete_heads_over_http_1() {
    row(42, "complete heads over HTTP/1", async |server| {
        let call = modern(&json!(1), "tools/call", waiting_call(), Some("slow"));
        let call = call.replacen("\r\n", &format!("\r\nx-long: {}\r\n", "y".repeat(LONG)), 1);
        let mut held = Vec::new();
        for number in 0..scaled(1_000, 8_000) {
            let mut stream = server.connect(number).await;
            let _ = soon("a head", stream.write_all(call.as_bytes())).await;
            held.push(stream);
        }
        held
    })
    .await;
}

#[tokio::test]
async fn complete_heads_over_http_2() {
    row(43, "complete heads over HTTP/2", async |server| {
        let call = modern(&json!(1), "tools/call", waiting_call(), Some("slow"));
        let body = call.split_once("\r\n\r\n").unwrap().1.to_owned();
        let mut held = Vec::new();
        for number in 0..scaled(16, 80) {
            let stream = TokioIo::new(server.connect(number).await);
            let (mut client, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
            let connection = tokio::spawn(connection);
            let mut answers = called(&mut client, &body).await;
            // About a hundred of one address fit, so most are refused.
            if number >= 8 {
                let answer = soon("a refusal", answers.join_next()).await.map(Result::unwrap);
                assert!(answer.is_none_or(|it| it.is_err() || it.unwrap().status() == 503));
            }
            held.push((client, connection, answers));
        }
        held
    })
    .await;
}

type Answered = hyper::Result<Response<Incoming>>;

/// A hundred calls with long heads on one connection of HTTP/2, or as many as it takes.
async fn called(client: &mut SendRequest<String>, body: &str) -> JoinSet<Answered> {
    let mut answers = JoinSet::new();
    for _ in 0..100 {
        let request = Request::post("http://localhost/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "slow")
            // One that HPACK does not keep.
            .header("x-long", "y".repeat(LONG))
            .body(body.to_owned())
            .unwrap();
        // A connection whose first head does not fit is closed.
        if soon("a connection", client.ready()).await.is_err() {
            break;
        }
        answers.spawn(client.send_request(request));
    }
    answers
}

#[tokio::test]
async fn connections_when_descriptors_are_few() {
    few_files_row(44, "descriptors", 256, async |server| {
        let mut silent = Vec::new();
        for _ in 0..300 {
            silent.push(server.connect(0).await);
        }
        // Others are served while they are there.
        server.is_well().await;
        drop(silent);
    })
    .await;
}

#[tokio::test]
async fn bodies_over_http_1() {
    row(29, "bodies over HTTP/1", async |server| {
        let mut bodies = JoinSet::new();
        for number in 0..scaled(40, 400) {
            let mut stream = server.connect(number).await;
            bodies.spawn(async move {
                let head = format!("{}\r\n", head(4 * MIB));
                stream.write_all(head.as_bytes()).await.unwrap();
                let _ = stream.write_all(&vec![b' '; 4 * MIB - 1]).await;
                stream
            });
        }
        soon("bodies", bodies.join_all()).await
    })
    .await;
}

/// A body whose end never comes.
struct Endless(usize);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        static PIECE: [u8; 16 << 10] = [b' '; 16 << 10];
        if self.0 == 0 {
            return Poll::Pending;
        }
        self.0 -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&PIECE)))))
    }
}

#[tokio::test]
async fn bodies_over_http_2() {
    row(30, "bodies over HTTP/2", async |server| {
        let mut held = Vec::new();
        for number in 0..scaled(4, 8) {
            let stream = TokioIo::new(server.connect(number).await);
            let (mut client, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
            let connection = tokio::spawn(connection);
            let mut answers = JoinSet::new();
            for _ in 0..scaled(30, 100) {
                let request = Request::post("http://localhost/mcp")
                    .header("content-type", "application/json")
                    .header("accept", "application/json, text/event-stream")
                    // Nearly four mebibytes.
                    .body(Endless(255))
                    .unwrap();
                answers.spawn(client.send_request(request));
            }
            // Half of them do not fit.
            let refused = scaled(20, 90);
            for _ in 0..refused {
                let answer = soon("a refusal", answers.join_next()).await.unwrap().unwrap();
                assert!(answer.is_err() || answer.unwrap().status() == 503);
            }
            held.push((client, connection, answers));
        }
        held
    })
    .await;
}
