//! Shutdown: running requests finish, new ones are rejected, and nothing is left behind.

use bowline::Revision;
use http::Method;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::client::{Ask, Session, call, initialize, open, pass, request, scaled, send, until};
#[cfg(unix)]
use super::socket::is_alone;
use super::socket::{Running, listen, read_to_end, read_until, wire};
use super::world::{GRACE, World};

#[tokio::test]
async fn what_runs_is_finished_and_what_comes_is_sent_away() {
    let mut server = Running::start(|http| http).await;
    let (calls, listeners) = (scaled(50, 200), scaled(10, 20));
    let mut working = Vec::new();
    for id in 0..calls {
        let mut stream = server.connect().await;
        stream.write_all(wire(&call(id, "held")).as_bytes()).await.unwrap();
        working.push(stream);
    }
    let mut listening = Vec::new();
    for _ in 0..listeners {
        let mut stream = server.connect().await;
        let ask = listen(json!({ "toolsListChanged": true }));
        stream.write_all(wire(&ask).as_bytes()).await.unwrap();
        read_until(&mut stream, "acknowledged").await;
        listening.push(stream);
    }
    // A legacy client with its standing stream, and one of 2024-11-05: neither delays the end.
    let opened = server.exchange(&Ask::post(initialize("2025-11-25"))).await;
    let id = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let mut standing = server.connect().await;
    let get = Ask::new(Method::GET, "/mcp").with("mcp-session-id", id);
    standing.write_all(wire(&get).as_bytes()).await.unwrap();
    let mut oldest = server.connect().await;
    oldest.write_all(wire(&Ask::new(Method::GET, "/sse")).as_bytes()).await.unwrap();
    read_until(&mut oldest, "endpoint").await;
    // An idle client.
    let mut idle = server.connect().await;
    let seen = std::sync::Arc::clone(&server.seen);
    until("all handlers", || seen.counts()[0] == calls).await;

    let late = server.begin_to_stop().await;
    assert!(late.contains("retry-after: 5"), "{late}");
    let health = server.exchange(&Ask::new(Method::GET, "/health")).await;
    assert!(health.starts_with("HTTP/1.1 503"), "{health}");
    seen.release();
    for (id, mut stream) in working.into_iter().enumerate() {
        let answer = read_to_end(&mut stream).await;
        assert!(answer.contains("done") && answer.contains(&format!("\"id\":{id},")), "{answer}");
    }
    for mut stream in listening {
        let end = read_to_end(&mut stream).await;
        assert!(end.contains("\"resultType\":\"complete\""), "{end}");
    }
    for stream in [&mut standing, &mut oldest, &mut idle] {
        read_to_end(stream).await;
    }
    // This does not wait for as long as the grace time.
    server.end().await;
    assert_eq!(seen.counts(), [calls, calls, 0]);
}

#[tokio::test]
#[cfg(unix)]
async fn a_process_stops_on_a_signal() {
    // The signal would end the streams of other tests, too.
    if !is_alone() {
        return;
    }
    let seen = std::sync::Arc::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = tokio::spawn(super::world::server(&seen).http().serve_on(listener));
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(wire(&call(1, "work")).as_bytes()).await.unwrap();
    seen.until([1, 0, 0]).await;
    let process = std::process::id().to_string();
    let told = std::process::Command::new("kill").args(["-TERM", &process]).status().unwrap();
    assert!(told.success());
    assert!(read_to_end(&mut stream).await.contains("done"));
    super::client::soon("the end", served).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_takes_too_long_is_dropped() {
    let mut server = Running::start(|http| http).await;
    let mut stream = server.connect().await;
    stream.write_all(wire(&call(1, "wait")).as_bytes()).await.unwrap();
    server.seen.until([1, 0, 0]).await;
    let seen = std::sync::Arc::clone(&server.seen);
    server.begin_to_stop().await;
    pass(GRACE).await;
    server.end().await;
    seen.until([1, 0, 1]).await;
}

#[tokio::test]
async fn a_legacy_handler_whose_client_is_gone_gets_its_time_too() {
    let mut server = Running::start(|http| http).await;
    let opened = server.exchange(&Ask::post(initialize("2025-11-25"))).await;
    let id = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let body = request(1, "tools/call", json!({ "name": "held", "arguments": {} }));
    let mut stream = server.connect().await;
    let ask = Ask::post(body).with("mcp-session-id", id);
    stream.write_all(wire(&ask).as_bytes()).await.unwrap();
    read_until(&mut stream, "event-stream").await;
    drop(stream);
    let seen = std::sync::Arc::clone(&server.seen);
    assert_eq!(seen.counts(), [1, 0, 0]);
    server.begin_to_stop().await;
    assert_eq!(seen.counts(), [1, 0, 0]);
    seen.release();
    server.end().await;
    assert_eq!(seen.counts(), [1, 1, 0]);
}

#[tokio::test]
async fn a_stopped_service_refuses_on_every_path() {
    let world = World::new();
    let session = Session::open(&world.service, Revision::V2025_11_25).await;
    let mut standing = open(&world.service, session.get()).await;
    world.service.stop();
    for ask in [
        call(1, "who"),
        session.get(),
        Ask::post(initialize("2025-11-25")),
        Ask::new(Method::GET, "/sse"),
        Ask::new(Method::GET, "/health"),
    ] {
        let answer = send(&world.service, ask).await;
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")));
    }
    while standing.next_any().await.is_some() {}
}
