//! Nodes that come and go while somebody uses them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bowline_fleet::Fleet;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::balancer::Balancer;
use crate::http;
use crate::nodes::{Plan, eventually, node, open, request, two};
use crate::stores::Postgres;

/// How long a node drains: many times as long as the balancer takes to ask all of them.
const DRAIN: Duration = Duration::from_secs(10);

/// Asks on a node and answers on another one, right after `meanwhile`. Returns the status of the
/// answer, and what the call was answered with.
async fn ask(from: u16, to: u16, meanwhile: impl FnOnce()) -> (u16, Option<serde_json::Value>) {
    let session = open(to).await;
    let call = request(7, "tools/call", json!({ "name": "ask" }));
    let mut asked = http::legacy(from, "ada", Some(&session), call).await.unwrap();
    let mut rest = String::new();
    let question = asked.event(&mut rest).await.unwrap();
    meanwhile();
    let content = json!({ "action": "accept", "content": { "confirmed": true } });
    let given = json!({ "jsonrpc": "2.0", "id": question["id"], "result": content });
    let accepted = http::legacy(to, "ada", Some(&session), given).await.unwrap().status;
    let done = match accepted {
        202 => tokio::time::timeout(http::PATIENCE, asked.event(&mut rest)).await.unwrap(),
        _ => None,
    };
    (accepted, done)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_still_hears_answers() {
    let postgres = Postgres::start();
    let [mut one, two] = two(&postgres, None).await;
    let from = one.port;
    let (accepted, done) = ask(from, two.port, || one.stop()).await;
    assert_eq!(accepted, 202);
    assert_eq!(done.expect("the call is answered")["id"], 7);
    one.end().await;
    let left = postgres.sql("test0", "SELECT count(*) FROM bowline.nodes").unwrap();
    assert_eq!(left, "1", "it has left by now");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_finds_a_node_that_nobody_has_heard_of() {
    let postgres = Postgres::start();
    let database = postgres.database();
    let one = node(&database, None).await;
    for _ in 0..3 {
        let fresh = node(&database, None).await;
        // As soon as it says where it is; the other one looks once a second.
        let sql = "SELECT count(*) FROM bowline.nodes WHERE address IS NULL";
        eventually("it says where it is", async || {
            (postgres.sql("test0", sql).unwrap() == "0").then_some(())
        })
        .await;
        let (accepted, done) = ask(fresh.port, one.port, || {}).await;
        assert_eq!(accepted, 202);
        assert_eq!(done.expect("the call is answered")["id"], 7);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_arrive_is_not_acknowledged() {
    let postgres = Postgres::start();
    let database = postgres.database();
    let one = node(&database, None).await;
    let mut plan = Plan::usual(Fleet::builder(&database));
    // It cannot know where others reach it.
    plan.host = "0.0.0.0";
    let hidden = plan.start().await;
    let (accepted, _) = ask(hidden.port, one.port, || {}).await;
    assert_eq!(accepted, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_for_a_node_that_died_a_while_ago_are_taken() {
    let postgres = Postgres::start();
    let node = node(&postgres.database(), None).await;
    let dead = "INSERT INTO bowline.nodes (number, address, incarnation, server, seen)
        OVERRIDING SYSTEM VALUE VALUES (77, 'http://127.0.0.1:1', 'x', 'node', clock_timestamp()";
    let session = open(node.port).await;
    // A question of that node.
    let id = 77_u64 << 24;
    let given = json!({ "jsonrpc": "2.0", "id": id + 1, "result": { "action": "cancel" } });
    for (ago, status) in [("15 s", 503), ("2 min", 202)] {
        postgres.sql("test0", "DELETE FROM bowline.nodes WHERE number = 77").unwrap();
        postgres.sql("test0", &format!("{dead} - interval '{ago}')")).unwrap();
        let taken = http::legacy(node.port, "ada", Some(&session), given.clone()).await.unwrap();
        assert_eq!(taken.status, status, "silent for {ago}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_arrives_at_the_node_that_has_asked() {
    let postgres = Postgres::start();
    let [one, two] = two(&postgres, None).await;
    let session = open(two.port).await;
    let call = request(7, "tools/call", json!({ "name": "ask" }));
    let mut asked = http::legacy(one.port, "ada", Some(&session), call).await.unwrap();
    let mut rest = String::new();
    let question = asked.event(&mut rest).await.unwrap();
    // As long as a body may be, nearly; every quotation mark is escaped on its way.
    let content = json!({ "confirmed": true });
    let given = json!({ "jsonrpc": "2.0", "id": question["id"],
        "result": { "action": "accept", "content": content, "_meta": { "long": "x".repeat(4_000_000) } } });
    let accepted = http::legacy(two.port, "ada", Some(&session), given).await.unwrap();
    assert_eq!(accepted.status, 202);
    let done = tokio::time::timeout(http::PATIENCE, asked.event(&mut rest)).await.unwrap();
    assert_eq!(done.expect("the call is answered")["id"], 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_are_answered_whatever_host_they_name() {
    let postgres = Postgres::start();
    let node = node(&postgres.database(), None).await;
    let heads = [
        "GET /ready HTTP/1.0\r\n\r\n",
        "GET /ready HTTP/1.1\r\nhost: 10.1.2.3:8080\r\nconnection: close\r\n\r\n",
        "GET /health HTTP/1.1\r\nhost: mcp.example.com\r\nconnection: close\r\n\r\n",
        "OPTIONS /health HTTP/1.0\r\n\r\n",
    ];
    for head in heads {
        let mut stream = TcpStream::connect(("127.0.0.1", node.port)).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer.split(' ').nth(1), Some("200"), "{head:?}: {answer:?}");
    }
}

/// One call of each era, which must succeed.
async fn touch(port: u16, session: &str) {
    let call = json!({ "name": "touch" });
    let modern = http::modern(port, "ada", "tools/call", call.clone()).await;
    let call = request(1, "tools/call", call);
    let legacy = http::legacy(port, "ada", Some(session), call).await;
    for response in [modern, legacy] {
        let response = response.expect("a response");
        assert_eq!(response.status, 200);
        let text = response.text().await.expect("all of it");
        assert!(text.contains("touched"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_fails_no_call() {
    let postgres = Postgres::start();
    let database = postgres.database();
    let start = async || {
        let mut plan = Plan::usual(Fleet::builder(&database));
        plan.drain = DRAIN;
        plan.start().await
    };
    let mut nodes = [start().await, start().await, start().await];
    let balancer = Balancer::start(nodes.iter().map(|node| node.port)).await;
    let (stop, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut clients = JoinSet::new();
    for _ in 0..4 {
        let (stop, calls, port) = (Arc::clone(&stop), Arc::clone(&calls), balancer.port);
        clients.spawn(async move {
            let session = open(port).await;
            while !stop.load(Ordering::Acquire) {
                touch(port, &session).await;
                calls.fetch_add(2, Ordering::Relaxed);
            }
        });
    }
    for node in &mut nodes {
        let before = calls.load(Ordering::Relaxed);
        let fresh = start().await;
        balancer.add(fresh.port).await;
        let old = std::mem::replace(node, fresh);
        let port = old.port;
        old.end().await;
        balancer.remove(port);
        eventually("clients go on", async || {
            assert!(clients.try_join_next().is_none(), "no client gives up");
            (calls.load(Ordering::Relaxed) >= before + 50).then_some(())
        })
        .await;
    }
    stop.store(true, Ordering::Release);
    clients.join_all().await;
}
