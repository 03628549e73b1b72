//! Fair between parties: what one has open or asks for does not keep out another.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::http::{HttpLimits, HttpService};
use bowline::{Context, Json, Principal, Revision, Server, Tool};
use http::Method;
use serde_json::json;
use tokio::task::JoinSet;

use super::client::{Answer, Ask, Session, call, initialize, modern, open, request, send, soon};
use super::trail::Trail;

fn service(limits: HttpLimits) -> HttpService {
    let server = Server::new("fair", "1.0.0")
        .with(Tool::new("quick", || async { "quick" }))
        .with(Tool::new("waits", std::future::pending::<String>));
    let http = server.http().limits(limits).identify(|parts| {
        let user = parts.headers.get("x-user")?.to_str().ok()?;
        Some(Principal::new(user))
    });
    let http = http.peer_addr(|parts| parts.headers.get("x-from")?.to_str().ok()?.parse().ok());
    http.into_service().unwrap()
}

fn listen() -> Ask {
    modern("l", "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }))
}

fn health() -> Ask {
    Ask::new(Method::GET, "/health")
}

/// Checks that it is a refusal that names the limit for one caller.
fn is_own_limit(answer: &Answer, what: &str) {
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{}", answer.body);
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains(what) && message.contains("limit for one caller"), "{message}");
}

#[tokio::test]
async fn streams_of_one_party_leave_places_for_others() {
    // With and without the audit, which opens streams within middleware.
    for is_audited in [false, true] {
        let _trail = is_audited.then(Trail::new);
        let service = service(HttpLimits { streams_per_party: 2, ..HttpLimits::default() });
        let by = |user: &str| listen().with("x-user", user);
        let from = |address: &str| listen().with("x-from", address);
        let mut kept = Vec::new();
        for _ in 0..2 {
            kept.push(open(&service, by("ada")).await);
            kept.push(open(&service, from("192.0.2.1:1")).await);
        }
        assert!(kept.iter().all(|stream| stream.status == 200));
        let refused = send(&service, by("ada")).await;
        is_own_limit(&refused, "subscriptions/listen: this caller has 2 streams open");
        assert_eq!(refused.json()["id"], "l");
        is_own_limit(&send(&service, from("192.0.2.1:2")).await, "2 streams");
        // The standing stream of a legacy session and HTTP+SSE count as well.
        let session = Session::open_as(&service, Revision::V2025_11_25, Some("ada")).await;
        is_own_limit(&send(&service, session.get()).await, "2 streams");
        let sse = Ask::new(Method::GET, "/sse").with("x-user", "ada");
        is_own_limit(&send(&service, sse).await, "2 streams");
        assert_eq!(open(&service, by("bob")).await.status, 200);
        assert_eq!(open(&service, from("192.0.2.2:1")).await.status, 200);
        assert_eq!(send(&service, health()).await.status, 200);
        // A place is given back with its stream.
        drop(kept);
        assert_eq!(open(&service, by("ada")).await.status, 200);
    }
}

#[tokio::test]
async fn calls_of_one_party_leave_places_for_others() {
    let service = service(HttpLimits { calls_per_party: 2, ..HttpLimits::default() });
    let by = |user: &str, tool: &str| call(7, tool).with("x-user", user);
    let running = |ask: Ask| {
        let service = service.clone();
        tokio::spawn(async move { service.handle(ask.into_request()).await.status().as_u16() })
    };
    // One of each era: the legacy one goes on although its client has gone.
    let session = Session::open_as(&service, Revision::V2025_11_25, Some("ada")).await;
    drop(open(&service, session.call(1, "waits", json!({}))).await);
    let first = running(by("ada", "waits"));
    let until_full = async {
        loop {
            let answer = send(&service, by("ada", "quick")).await;
            if answer.status == 503 {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    };
    let refused = soon("a refusal", until_full).await;
    is_own_limit(&refused, "tools/call: this caller has 2 calls open");
    assert_eq!(refused.json()["id"], 7);
    is_own_limit(&send(&service, session.call(2, "quick", json!({}))).await, "2 calls");
    // What is answered at once is not refused, and neither are others.
    let list = modern(1, "tools/list", json!({})).with("x-user", "ada");
    assert_eq!(send(&service, list).await.status, 200);
    assert_eq!(send(&service, by("bob", "quick")).await.text(), "quick");
    first.abort();
    let cancelled = json!({ "requestId": 1 });
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled });
    assert_eq!(send(&service, session.post(cancelled)).await.status, 202);
    let until_free = async {
        while send(&service, by("ada", "quick")).await.status == 503 {
            tokio::task::yield_now().await;
        }
    };
    soon("a place", until_free).await;
}

#[tokio::test]
async fn sessions_of_one_party_leave_places_for_others() {
    let service = service(HttpLimits { sessions_per_party: 2, ..HttpLimits::default() });
    let by = |user: &str| Ask::post(initialize("2025-11-25")).with("x-user", user);
    let session = Session::open_as(&service, Revision::V2025_11_25, Some("ada")).await;
    assert_eq!(send(&service, by("ada")).await.status, 200);
    is_own_limit(&send(&service, by("ada")).await, "initialize: this caller has 2 sessions open");
    assert_eq!(send(&service, by("bob")).await.status, 200);
    assert_eq!(send(&service, session.post(request(1, "ping", json!({})))).await.status, 200);
    assert_eq!(send(&service, session.delete()).await.status, 204);
    assert_eq!(send(&service, by("ada")).await.status, 200);
}

#[tokio::test]
async fn long_heads_of_calls_that_wait_are_held() {
    let long = "x".repeat(50_000);
    for (header, one, other) in [("x-user", "ada", "bob"), ("x-from", "192.0.2.1:1", "192.0.2.2:1")]
    {
        let service = service(HttpLimits::default());
        let ask = |tool, who| call(1, tool).with(header, who).with("x-long", &long);
        let mut waiting = JoinSet::new();
        let refused = loop {
            let answer = send(&service, ask("quick", one)).await;
            if answer.status == 503 {
                break answer;
            }
            let (service, asked) = (service.clone(), ask("waits", one).into_request());
            waiting.spawn(async move { service.handle(asked).await.status() });
            tokio::task::yield_now().await;
        };
        let why = "the head of the request: the server has no memory left";
        assert!(refused.body.contains(why), "{}", refused.body);
        // Each counts twice, and all of them have three quarters of 16 MiB.
        assert!((100..126).contains(&waiting.len()), "{}", waiting.len());
        assert_eq!(send(&service, ask("quick", other)).await.text(), "quick");
        assert_eq!(send(&service, call(1, "quick").with(header, one)).await.text(), "quick");
        waiting.shutdown().await;
        assert_eq!(send(&service, ask("quick", one)).await.text(), "quick");
    }
}

/// The runtime polls in order, so without turns the last one would be answered last. The clock
/// stands still: what is free in a moment is free once.
#[tokio::test(start_paused = true)]
async fn a_party_that_asks_a_lot_lets_others_go_first() {
    for (flooder, victim) in [("x-user", "x-user"), ("x-from", "x-user"), ("x-from", "x-from")] {
        let service = service(HttpLimits::default());
        let order = Arc::new(Mutex::new(Vec::new()));
        let ask = |ask: Ask, who: &'static str| {
            let (service, order) = (service.clone(), Arc::clone(&order));
            tokio::spawn(async move {
                assert_eq!(service.handle(ask.into_request()).await.status(), 200);
                order.lock().unwrap().push(who);
            })
        };
        let by = |header: &str, name: &str| {
            let number = name.len();
            let value =
                if header == "x-user" { name.to_owned() } else { format!("192.0.2.{number}:1") };
            call(1, "quick").with(header, &value)
        };
        let mut all: Vec<_> = (0..64).map(|_| ask(by(flooder, "greedy"), "greedy")).collect();
        all.push(ask(by(victim, "bob"), "bob"));
        for asked in all.drain(..) {
            asked.await.unwrap();
        }
        // While the greedy one is alone, nothing is reordered.
        assert_eq!(order.lock().unwrap().iter().position(|who| *who == "bob"), Some(64));
        order.lock().unwrap().clear();
        let mut all: Vec<_> = (0..64).map(|_| ask(by(flooder, "greedy"), "greedy")).collect();
        all.push(ask(by(victim, "bob"), "bob"));
        for asked in all {
            asked.await.unwrap();
        }
        let order = order.lock().unwrap();
        let place = order.iter().position(|who| *who == "bob").unwrap();
        assert!(order.len() == 65 && place < 10, "{place}");
    }
}

#[cfg(target_os = "linux")]
mod on_sockets {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpSocket, TcpStream};

    use super::super::socket::{Running, read_to_end, read_until, wire};
    use super::*;

    async fn connect_from(server: &Running, last: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0))).unwrap();
        soon("a connection", socket.connect(server.address)).await.unwrap()
    }

    async fn exchange_from(server: &Running, last: u8, ask: Ask) -> String {
        let mut stream = connect_from(server, last).await;
        let ask = wire(&ask.with("connection", "close"));
        // A connection that is turned away may be closed already.
        let _ = stream.write_all(ask.as_bytes()).await;
        read_to_end(&mut stream).await
    }

    /// Opens listening streams until one is refused.
    async fn listen_until_refused(server: &Running, last: u8) -> (Vec<TcpStream>, String) {
        let mut kept = Vec::new();
        loop {
            let mut stream = connect_from(server, last).await;
            if stream.write_all(wire(&listen()).as_bytes()).await.is_err() {
                return (kept, String::new());
            }
            let mut first = [0; 12];
            let peeked = soon("an answer", stream.peek(&mut first)).await;
            if !peeked.is_ok_and(|read| first[..read].starts_with(b"HTTP/1.1 200")) {
                return (kept, read_to_end(&mut stream).await);
            }
            read_until(&mut stream, "acknowledged").await;
            kept.push(stream);
        }
    }

    #[tokio::test]
    async fn a_peer_that_opens_all_it_can_leaves_places_for_health_and_others() {
        let limits = HttpLimits {
            connections: 64,
            connections_per_party: 16,
            streams: 40,
            streams_per_party: 10,
            ..HttpLimits::default()
        };
        let server = Running::with_limits(limits).await;
        let (kept, refused) = listen_until_refused(&server, 1).await;
        assert_eq!(kept.len(), 10);
        assert!(refused.contains("503") && refused.contains("10 streams"), "{refused}");
        for last in [1, 2] {
            let answer = exchange_from(&server, last, health()).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{last}: {answer}");
            let answer = exchange_from(&server, last, call(1, "who")).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{last}: {answer}");
        }
        let (others, _) = listen_until_refused(&server, 2).await;
        assert_eq!(others.len(), 10);
        drop((kept, others));
        server.end().await;
    }

    #[tokio::test]
    async fn connections_of_one_address_leave_places_for_others() {
        let trail = Trail::new();
        let limits = HttpLimits { connections_per_party: 2, ..HttpLimits::default() };
        let server = Running::with_limits(limits).await;
        let (kept, _) = listen_until_refused(&server, 1).await;
        assert_eq!(kept.len(), 2);
        trail.until(&["a connection was refused: limit"]).await;
        let mut third = connect_from(&server, 1).await;
        let answer = read_to_end(&mut third).await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after"), "{answer}");
        assert!(answer.contains("this caller has 2 connections open"), "{answer}");
        let answer = exchange_from(&server, 2, call(1, "who")).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        drop((kept, third));
        server.end().await;
    }

    #[tokio::test]
    async fn health_is_answered_when_all_connections_are_taken() {
        let limits = HttpLimits { connections: 4, ..HttpLimits::default() };
        let server = Running::with_limits(limits).await;
        let (kept, refused) = listen_until_refused(&server, 1).await;
        assert_eq!(kept.len(), 4);
        assert!(refused.contains("503") && refused.contains("retry-after"), "{refused}");
        for _ in 0..3 {
            let answer = exchange_from(&server, 2, health()).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            let answer = exchange_from(&server, 2, call(1, "who")).await;
            assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        }
        drop(kept);
        let until_free = async {
            while !exchange_from(&server, 2, call(1, "who")).await.starts_with("HTTP/1.1 200") {}
        };
        soon("a place", until_free).await;
        server.end().await;
    }

    #[tokio::test]
    async fn the_places_for_health_are_not_held_by_those_who_say_nothing() {
        let head = Duration::from_secs(3_600);
        let limits = HttpLimits { connections: 4, head, ..HttpLimits::default() };
        let server = Running::with_limits(limits).await;
        let mut silent = Vec::new();
        // Four ordinary ones, and all that are accepted besides.
        for _ in 0..4 + 64 {
            silent.push(connect_from(&server, 1).await);
        }
        let answer = exchange_from(&server, 2, health()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        drop(silent);
        server.end().await;
    }
}

/// Parsing, a handler that does not wait, and the answer: on one thread at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn long_bodies_of_one_party_leave_threads_for_others() {
    let running = Arc::new(Mutex::new((0, 0)));
    let counted = Arc::clone(&running);
    let busy = Tool::raw("busy", json!({ "type": "object" }), move |_: Context, _: Json| {
        let counted = Arc::clone(&counted);
        async move {
            let mut counts = counted.lock().unwrap();
            counts.0 += 1;
            counts.1 = counts.1.max(counts.0);
            drop(counts);
            std::thread::sleep(Duration::from_millis(20));
            counted.lock().unwrap().0 -= 1;
            "done"
        }
    });
    let http = Server::new("fair", "1.0.0").with(busy).http();
    let service =
        http.identify(|parts| Some(Principal::new(parts.headers.get("x-user")?.to_str().ok()?)));
    let service = service.into_service().unwrap();
    let text = "x".repeat(100_000);
    let ask = |user: &str| {
        let params = json!({ "name": "busy", "arguments": { "text": text } });
        modern(1, "tools/call", params).with("x-user", user)
    };
    assert_eq!(send(&service, ask("bob")).await.text(), "done");
    let mut calls = JoinSet::new();
    for _ in 0..16 {
        let (service, ask) = (service.clone(), ask("ada"));
        calls.spawn(async move { send(&service, ask).await.text() });
    }
    while let Some(text) = soon("an answer", calls.join_next()).await {
        assert_eq!(text.unwrap(), "done");
    }
    assert_eq!(*running.lock().unwrap(), (0, 1));
}

/// A turn is for work, not for waiting.
#[tokio::test]
async fn long_bodies_of_calls_that_wait_do_not_keep_others_waiting() {
    let service = service(HttpLimits::default());
    let text = "x".repeat(100_000);
    let ask = |tool: &str, user: &str| {
        let params = json!({ "name": tool, "_meta": { "example.com/text": text } });
        modern(1, "tools/call", params).with("x-user", user)
    };
    assert_eq!(send(&service, ask("quick", "bob")).await.text(), "quick");
    let (waiting, asked) = (service.clone(), ask("waits", "ada").into_request());
    let waiting = tokio::spawn(async move { waiting.handle(asked).await.status() });
    tokio::task::yield_now().await;
    let answer = soon("an answer", send(&service, ask("quick", "ada"))).await;
    assert_eq!(answer.text(), "quick");
    waiting.abort();
}
