//! Floods of sessions, requests and streams: limited, and cleaned up afterwards.

use std::time::Duration;

use bowline::http::HttpLimits;
use bowline::{Revision, Tool};
use serde_json::json;

use super::client::{Ask, Session, initialize, open, request, scaled, send};
use super::socket::{is_alone, memory};
use super::world::World;

#[tokio::test(start_paused = true)]
async fn sessions_that_are_opened_and_left_are_bounded_and_forgotten() {
    if !is_alone() {
        return;
    }
    let limits = HttpLimits::default();
    let (most, idle) = (limits.sessions, limits.session_idle);
    let world = World::new();
    let honest = Session::open(&world.service, Revision::V2025_11_25).await;
    let ping = || honest.post(request(1, "ping", json!({})));
    let before = memory();
    let count = scaled(25_000, 100_000);
    for number in 0..count {
        let answer = send(&world.service, Ask::post(initialize("2025-11-25"))).await;
        assert_eq!(answer.status, 200, "each replaces the oldest that is half open");
        if number % 1_000 == 0 {
            assert_eq!(send(&world.service, ping()).await.status, 200);
            world.service_is_alive().await;
        }
    }
    assert!(count > most);
    let grown = memory().saturating_sub(before);
    assert!(grown <= 64 << 20, "{grown} bytes");
    // Their handshake is incomplete, so they expire soon.
    tokio::time::advance(Duration::from_secs(61)).await;
    for _ in 0..100 {
        Session::open(&world.service, Revision::V2025_11_25).await;
    }
    assert_eq!(send(&world.service, ping()).await.status, 200);
    tokio::time::advance(idle + Duration::from_secs(1)).await;
    assert_eq!(send(&world.service, ping()).await.status, 404);
}

#[tokio::test]
async fn requests_of_one_session_are_bounded() {
    let world = World::new();
    let session = Session::open(&world.service, Revision::V2025_11_25).await;
    let mut streams = Vec::new();
    for id in 0..128 {
        streams.push(open(&world.service, session.call(id, "wait", json!({}))).await);
    }
    let refused = send(&world.service, session.call(128, "wait", json!({}))).await;
    assert_eq!(refused.code(), Some(-32600), "{}", refused.body);
    // Handlers that are ready at once do not count.
    let who = send(&world.service, session.call(1, "who", json!({}))).await;
    assert_eq!(who.text(), "nobody");
    world.service_is_alive().await;
    // Disconnecting does not cancel, and the output is stored once, not twice.
    drop(streams);
    world.seen.until([129, 0, 1]).await;
    assert_eq!(send(&world.service, session.delete()).await.status, 204);
    world.seen.until([129, 0, 129]).await;
}

#[tokio::test]
async fn streams_nobody_reads_are_coalesced() {
    if !is_alone() {
        return;
    }
    let world = World::new();
    let mut streams = Vec::new();
    for _ in 0..scaled(200, 1_000) {
        let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["world://a"] });
        streams.push(open(&world.service, super::socket::listen(filter)).await);
    }
    let before = memory();
    for _ in 0..scaled(200, 2_000) {
        world.registry.resource_updated("world://a");
        world.registry.replace(Tool::new("late", || async { "late" })).unwrap();
    }
    let grown = memory().saturating_sub(before);
    assert!(grown <= 16 << 20, "{grown} bytes");
    for mut stream in streams {
        let mut methods = Vec::new();
        for _ in 0..3 {
            methods.push(stream.next().await.unwrap().method());
        }
        let expected = ["subscriptions/acknowledged", "resources/updated", "tools/list_changed"];
        assert_eq!(methods, expected.map(|name| format!("notifications/{name}")));
        let more = tokio::time::timeout(Duration::from_millis(1), stream.next());
        assert!(more.await.is_err());
    }
    world.service_is_alive().await;
}

#[tokio::test]
async fn panics_among_many_calls_hurt_nobody() {
    let world = World::new();
    let session = Session::open(&world.service, Revision::V2025_11_25).await;
    for number in 0..scaled(200, 10_000) {
        let tool = if number % 10 == 0 { "panics" } else { "who" };
        let legacy = send(&world.service, session.call(number, tool, json!({}))).await;
        let modern = send(&world.service, super::client::call(number, tool)).await;
        for answer in [legacy, modern] {
            assert_eq!(answer.json()["id"], number);
            assert_eq!(answer.code(), (tool == "panics").then_some(-32603));
        }
    }
}

#[tokio::test]
async fn a_client_describes_itself_briefly() {
    let world = World::new();
    let introduced = |length: usize| {
        let info = json!({ "name": "x".repeat(length), "version": "1" });
        let meta = json!({ "io.modelcontextprotocol/clientInfo": info });
        let ask = super::client::modern(1, "tools/list", json!({}));
        let mut body: serde_json::Value = serde_json::from_str(&ask.body).unwrap();
        let key = "io.modelcontextprotocol/clientInfo";
        body["params"]["_meta"][key] = meta[key].clone();
        Ask { body: body.to_string(), ..ask }
    };
    assert_eq!(send(&world.service, introduced(30_000)).await.status, 200);
    let refused = send(&world.service, introduced(40_000)).await;
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("params._meta: the client describes itself"), "{}", refused.body);
}
