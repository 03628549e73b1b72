//! Clients that send slowly, not at all, or endlessly: limited, while others are served.

use std::time::Duration;

use bowline::http::HttpLimits;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::client::{call, pass, scaled, soon};
use super::socket::{Running, is_alone, listen, memory, read_to_end, read_until, wire};

/// How long a request may take. No test waits for it: its time passes at once.
const PATIENCE: Duration = Duration::from_secs(20);

fn impatient() -> HttpLimits {
    HttpLimits { head: PATIENCE, body_idle: PATIENCE, ..HttpLimits::default() }
}

/// Sends only `beginning` on many connections, and lets their time pass; returns the response of
/// each.
async fn begin(server: &Running, beginning: &str, count: usize) -> Vec<String> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = server.connect().await;
        stream.write_all(beginning.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    // The server takes connections in order, so it has seen all of them.
    server.is_alive().await;
    pass(PATIENCE).await;
    let mut answers = Vec::new();
    for mut stream in streams {
        answers.push(read_to_end(&mut stream).await);
    }
    answers
}

#[tokio::test]
async fn connections_that_say_nothing_or_too_little_are_closed() {
    let server = Running::with_limits(impatient()).await;
    let count = scaled(50, 1_000);
    for beginning in ["", "P", "PRI * HTTP/2.0\r\n\r\nSM\r\n", "POST /mcp HTTP/1.1\r\nhost: loc"] {
        let answers = begin(&server, beginning, count).await;
        assert!(
            answers.iter().all(|answer| answer.is_empty() || answer.starts_with("HTTP/1.1 408")),
            "{beginning:?}: {:?}",
            answers[0]
        );
    }
    server.end().await;
}

#[tokio::test]
async fn a_body_that_pauses_is_given_up() {
    let server = Running::with_limits(impatient()).await;
    let ask = call(1, "who");
    let whole = wire(&ask);
    for answer in begin(&server, &whole[..whole.len() - 5], scaled(50, 1_000)).await {
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_body_that_drips_is_given_up() {
    let limits = HttpLimits { body_idle: Duration::from_millis(100), ..HttpLimits::default() };
    let server = Running::with_limits(limits).await;
    let mut stream = server.connect().await;
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                accept: */*\r\ncontent-length: 1000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut read, mut write) = stream.split();
    let drip = async {
        while write.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    };
    let mut answer = String::new();
    let read = tokio::io::AsyncReadExt::read_to_string(&mut read, &mut answer);
    soon("408", async {
        tokio::select! {
            // A reset ends it, too.
            _ = read => {}
            () = drip => {}
        }
    })
    .await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    server.end().await;
}

#[tokio::test]
async fn a_drip_within_one_head_is_closed() {
    let server = Running::with_limits(impatient()).await;
    let mut stream = server.connect().await;
    stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n").await.unwrap();
    let drip = async {
        while stream.write_all(b"x-a: b\r\n").await.is_ok() {
            pass(PATIENCE / 100).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    soon("the end of the connection", drip).await;
    server.end().await;
}

#[tokio::test]
async fn the_next_request_has_as_long_as_the_first() {
    let server = Running::with_limits(impatient()).await;
    let whole = wire(&call(1, "who"));
    for next in ["", "POST /mcp HTTP/1.1\r\nhost: loc"] {
        let mut stream = server.connect().await;
        stream.write_all(whole.as_bytes()).await.unwrap();
        read_until(&mut stream, "nobody").await;
        stream.write_all(next.as_bytes()).await.unwrap();
        pass(PATIENCE).await;
        let answer = read_to_end(&mut stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_connection_that_is_served_does_not_time_out() {
    let server = Running::with_limits(impatient()).await;
    let mut listener = server.connect().await;
    let ask = listen(serde_json::json!({ "resourceSubscriptions": ["world://a"] }));
    listener.write_all(wire(&ask).as_bytes()).await.unwrap();
    read_until(&mut listener, "acknowledged").await;
    let stream = TokioIo::new(server.connect().await);
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut say = async || {
        let ask = call(1, "who").without("host").path("http://localhost/mcp");
        soon("a response", client.send_request(ask.into_request())).await.unwrap().status()
    };
    assert_eq!(say().await, 200);
    // The handler runs three times as long as the timeout of a head.
    let mut working = server.connect().await;
    let work = call(1, "held").with("connection", "close");
    working.write_all(wire(&work).as_bytes()).await.unwrap();
    server.seen.until([1, 0, 0]).await;
    pass(3 * PATIENCE).await;
    server.seen.release();
    let answer = read_to_end(&mut working).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    server.registry.resource_updated("world://a");
    read_until(&mut listener, "world://a").await;
    assert_eq!(say().await, 200);
    drop(client);
    connection.await.unwrap().unwrap();
    drop(listener);
    server.end().await;
}

#[tokio::test]
async fn an_idle_http2_connection_ends_and_a_busy_one_does_not() {
    let idle = Duration::from_secs(20);
    let server = Running::with_limits(HttpLimits { idle, ..HttpLimits::default() }).await;
    let connect = async || {
        let stream = TokioIo::new(server.connect().await);
        let (client, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        (client, tokio::spawn(connection))
    };
    let (mut listener, open) = connect().await;
    let ask = listen(serde_json::json!({ "resourceSubscriptions": ["world://a"] }));
    let ask = ask.without("host").path("http://localhost/mcp").into_request();
    let response = soon("a response", listener.send_request(ask)).await.unwrap();
    assert_eq!(response.status(), 200);
    let (mut client, connection) = connect().await;
    let ask = call(1, "who").without("host").path("http://localhost/mcp").into_request();
    assert_eq!(soon("a response", client.send_request(ask)).await.unwrap().status(), 200);
    pass(idle).await;
    // The client keeps its end, and the connection ends without an error.
    soon("the end", connection).await.unwrap().unwrap();
    assert!(client.is_closed() && !open.is_finished());
    drop((response, listener));
    soon("the end", open).await.unwrap().unwrap();
    server.end().await;
}

/// Writes until the server stops reading; returns its response and how much it took.
async fn flood(mut stream: TcpStream, head: &str, piece: &[u8], most: usize) -> (String, usize) {
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut read, mut write) = stream.split();
    let mut sent = 0;
    let write = async {
        while sent < most && write.write_all(piece).await.is_ok() {
            sent += piece.len();
        }
        // The response may still be arriving.
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let mut answer = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut read, &mut answer);
    soon("an end of the flood", async {
        tokio::select! { _ = read => {} () = write => {} }
    })
    .await;
    (String::from_utf8_lossy(&answer).into_owned(), sent)
}

#[tokio::test]
async fn a_long_answer_may_be_read_slowly() {
    let limits = HttpLimits { body: 32 << 20, ..impatient() };
    let server = Running::with_limits(limits).await;
    let mut stream = server.connect().await;
    // More than fits into all buffers on the way.
    let text = "x".repeat(24 << 20);
    let arguments = serde_json::json!({ "text": text });
    let params = serde_json::json!({ "name": "say", "arguments": arguments });
    let ask = wire(&super::client::modern(1, "tools/call", params));
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut answer = read_until(&mut stream, "\r\n\r\n").await;
    // This takes longer than a request may take.
    pass(PATIENCE * 5 / 4).await;
    answer += &read_to_end(&mut stream).await;
    assert!(answer.contains(&text), "{} bytes", answer.len());
    server.end().await;
}

#[tokio::test]
async fn bodies_without_end_are_refused_in_bounded_memory() {
    if !is_alone() {
        return;
    }
    let server = Running::start(|http| http).await;
    let before = memory();
    let count = scaled(8, 64);
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                accept: */*\r\n";
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n");
    let mut chunk = b"10000\r\n".to_vec();
    chunk.extend_from_slice(&[b' '; 0x10000]);
    chunk.extend_from_slice(b"\r\n");
    let most = scaled(64 << 20, 1 << 30);
    let floods: Vec<_> = (0..count)
        .map(|_| {
            let (address, chunked, chunk) = (server.address, chunked.clone(), chunk.clone());
            tokio::spawn(async move {
                let stream = TcpStream::connect(address).await.unwrap();
                flood(stream, &chunked, &chunk, most).await
            })
        })
        .collect();
    for flood in floods {
        server.is_alive().await;
        let (answer, sent) = flood.await.unwrap();
        // Too long, or one of too many.
        let status = answer.get(..12).unwrap_or_default();
        assert!(matches!(status, "" | "HTTP/1.1 413" | "HTTP/1.1 503"), "{answer}");
        assert!(sent < most, "it took everything");
    }
    let grown = memory().saturating_sub(before);
    println!("figure: 12 | memory grew by {} MiB | 96 MiB", grown >> 20);
    assert!(grown <= 96 << 20, "{grown} bytes");

    // An announced length that is too long is rejected before anything is read.
    let mut stream = server.connect().await;
    let announced = format!("{head}content-length: 99999999999\r\n\r\n");
    stream.write_all(announced.as_bytes()).await.unwrap();
    assert!(read_until(&mut stream, "longer than").await.starts_with("HTTP/1.1 413"));
    server.is_alive().await;
    server.end().await;
}

#[tokio::test]
async fn long_bodies_leave_room_for_short_ones() {
    let server = Running::start(|http| http).await;
    let length = 4 << 20;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: */*\r\ncontent-length: {length}\r\n\r\n"
    );
    // All of them but for the last byte: twelve fill three quarters of the budget.
    let mut bodies = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (address, head) = (server.address, head.clone());
        bodies.spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            // The refusal may come before the whole body is written.
            let _ = stream.write_all(&vec![b' '; length - 1]).await;
            let mut answer = [0; 12];
            let _ = tokio::io::AsyncReadExt::read_exact(&mut stream, &mut answer).await;
            String::from_utf8_lossy(&answer).into_owned()
        });
    }
    for _ in 0..8 {
        let answer = soon("a refusal", bodies.join_next()).await.unwrap().unwrap();
        // A client that goes on writing may lose it.
        assert!(matches!(&*answer, "HTTP/1.1 503") || answer.starts_with('\0'), "{answer}");
    }
    server.is_alive().await;
    bodies.shutdown().await;
    server.end().await;
}

#[tokio::test]
async fn heads_without_end_are_refused() {
    let server = Running::start(|http| http).await;
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\n";
    let line = format!("x-{}: {}\r\n", "a".repeat(20), "b".repeat(1_000));
    for piece in [line.as_bytes(), &[b'a'; 1_000]] {
        let (answer, sent) = flood(server.connect().await, head, piece, 16 << 20).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
        assert!(sent < 8 << 20, "{sent}");
    }
    // A finite body that is too long is rejected, too.
    let mut stream = server.connect().await;
    let long = format!("{head}{}\r\n", line.repeat(70));
    stream.write_all(long.as_bytes()).await.unwrap();
    assert!(read_until(&mut stream, "\r\n").await.starts_with("HTTP/1.1 431"));
    server.is_alive().await;
    server.end().await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_client_that_stops_reading_is_disconnected() {
    let limits = HttpLimits { unread: Duration::from_millis(500), ..HttpLimits::default() };
    let server = Running::start(|http| http.limits(limits).identify(|_| None)).await;
    let mut stream = server.connect().await;
    // Many calls on one connection; the answers fill every buffer on the way.
    let text = "x".repeat(500_000);
    let arguments = serde_json::json!({ "text": text });
    let params = serde_json::json!({ "name": "say", "arguments": arguments });
    let ask = wire(&super::client::modern(1, "tools/call", params));
    let closed = async { while stream.write_all(ask.as_bytes()).await.is_ok() {} };
    soon("the end of the connection", closed).await;
    server.is_alive().await;
    server.end().await;
}

#[tokio::test]
async fn listeners_that_never_read_cost_little() {
    if !is_alone() {
        return;
    }
    let server = Running::start(|http| http).await;
    let count = scaled(200, 1_000);
    let before = memory();
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = server.connect().await;
        let ask = listen(serde_json::json!({ "resourceSubscriptions": ["world://a"] }));
        stream.write_all(wire(&ask).as_bytes()).await.unwrap();
        streams.push(stream);
    }
    let mut reader = server.connect().await;
    let ask = listen(serde_json::json!({ "resourceSubscriptions": ["world://a", "world://z"] }));
    reader.write_all(wire(&ask).as_bytes()).await.unwrap();
    read_until(&mut reader, "acknowledged").await;
    for number in 0..scaled(5_000, 100_000) {
        server.registry.resource_updated("world://a");
        if number % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    server.registry.resource_updated("world://z");
    read_until(&mut reader, "world://z").await;
    let grown = memory().saturating_sub(before);
    // Sockets buffer in the kernel; we hold hyper's buffers and one pending change each.
    assert!(grown <= (32 << 20) + count * (64 << 10), "{grown} bytes");
    server.is_alive().await;
    drop(streams);
    server.end().await;
}
