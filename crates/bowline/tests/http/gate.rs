//! Admission: names, origins, media types, routes, and requests that a proxy might read
//! differently.

use bowline::Revision;
use http::Method;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::client::{Ask, Session, call, modern, send};
use super::socket::{Running, read_to_end, read_until, wire};
use super::world::World;

const GOOD_HOSTS: [&str; 4] = ["localhost", "127.0.0.1:8080", "[::1]:80", "mcp.example.com"];
const BAD_HOSTS: [&str; 10] = [
    "",
    "evil.com",
    "localhost.evil.com",
    "127.0.0.1.evil.com",
    "mcp.example.com.evil.com",
    "localhost@evil.com",
    "evil.com#localhost",
    "127.1",
    "0.0.0.0",
    "localhost, evil.com",
];
const GOOD_ORIGINS: [Option<&str>; 3] =
    [None, Some("http://localhost:3000"), Some("https://app.example.com")];
const BAD_ORIGINS: [Option<&str>; 7] = [
    Some("null"),
    Some(""),
    Some("https://evil.com"),
    Some("https://app.example.com.evil.com"),
    Some("https://app.example.com@evil.com"),
    Some("file://"),
    Some("http://localhost.evil.com"),
];

fn gated() -> World {
    World::with(|http| {
        let http = http.allow_host("mcp.example.com").unwrap();
        http.allow_origin("https://app.example.com").unwrap()
    })
}

type Cell = (&'static str, Option<&'static str>, Option<&'static str>, bool);

/// All combinations, and whether they may pass.
fn cells() -> Vec<Cell> {
    let sites = [None, Some("same-origin"), Some("none"), Some("cross-site")];
    let mut cells = Vec::new();
    for host in GOOD_HOSTS.iter().chain(&BAD_HOSTS) {
        for origin in GOOD_ORIGINS.iter().chain(&BAD_ORIGINS) {
            let is_named = GOOD_HOSTS.contains(host) && GOOD_ORIGINS.contains(origin);
            let is_listed = *origin == Some("https://app.example.com");
            for site in sites {
                let may_pass = is_named && (is_listed || site != Some("cross-site"));
                cells.push((*host, *origin, site, may_pass));
            }
        }
    }
    cells
}

fn at(ask: Ask, host: &str, origin: Option<&str>, site: Option<&str>) -> Ask {
    let mut ask = ask.with("host", host);
    if let Some(origin) = origin {
        ask = ask.with("origin", origin);
    }
    match site {
        Some(site) => ask.with("sec-fetch-site", site),
        None => ask,
    }
}

#[tokio::test]
async fn only_allowed_names_and_pages_reach_a_route() {
    let world = gated();
    let session = Session::open(&world.service, Revision::V2025_11_25).await;
    let routes = [
        call(1, "work"),
        session.call(1, "work", json!({})),
        session.get().with("last-event-id", "9-9"),
        Ask::new(Method::GET, "/sse"),
        Ask::post("{}").path("/messages?session=0"),
        Ask::new(Method::GET, "/nowhere"),
        Ask::new(Method::OPTIONS, "/mcp"),
    ];
    let mut count = 0;
    for (host, origin, site, may_pass) in cells() {
        for route in &routes {
            let ask = at(route.clone(), host, origin, site);
            let response = world.service.handle(ask.into_request());
            let status = super::client::soon("a response", response).await.status();
            let path = &route.path;
            assert_eq!(status != 403, may_pass, "{path} {host:?} {origin:?} {site:?}: {status}");
            count += 1;
        }
    }
    assert!(count > 2_000, "{count}");
    // Two of the routes have a handler; no rejected request has reached it.
    let allowed = 4 * (3 * 3 + 1);
    let [started, ..] = world.seen.counts();
    assert_eq!(started, 2 * allowed);
}

#[tokio::test]
async fn a_probe_names_any_host_and_no_other_page_probes() {
    let world = gated();
    for path in ["/health", "/ready"] {
        for (host, origin, site, may_pass) in cells() {
            let ask = at(Ask::new(Method::GET, path), host, origin, site);
            let status = send(&world.service, ask).await.status;
            let is_probe = origin.is_none() && site.is_none();
            let expected = if may_pass || is_probe { 200 } else { 403 };
            assert_eq!(status, expected, "{path} {host:?} {origin:?} {site:?}");
        }
        let nameless = Ask::new(Method::GET, path).without("host");
        assert_eq!(send(&world.service, nameless).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_host_or_origin_given_twice_or_not_at_all_is_refused() {
    let world = gated();
    for ask in [
        call(1, "work").and("host", "localhost"),
        call(1, "work").without("host"),
        call(1, "work").with("origin", "http://localhost").and("origin", "http://localhost"),
        call(1, "work").path("http://evil.com/mcp"),
        call(1, "work").with("host", "evil.com").path("http://localhost/mcp"),
        call(1, "work").path("http://localhost:81/mcp").with("host", "localhost:80"),
    ] {
        assert_eq!(send(&world.service, ask).await.status, 403);
    }
    let whole = call(1, "who").path("http://localhost/mcp");
    assert_eq!(send(&world.service, whole).await.status, 200);
    assert_eq!(world.seen.counts(), [0, 0, 0]);
}

#[tokio::test]
async fn only_json_is_taken_and_only_what_the_client_accepts_is_given() {
    let world = World::new();
    for (content, status) in [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data", 415),
        ("application/json, text/plain", 415),
        ("application/jsonp", 415),
        ("", 415),
    ] {
        let answer = send(&world.service, call(1, "who").with("content-type", content)).await;
        assert_eq!(answer.status, status, "{content}");
    }
    let nothing = send(&world.service, call(1, "who").without("content-type")).await;
    assert_eq!(nothing.status, 415);
    let twice = call(1, "who").and("content-type", "text/plain");
    assert_eq!(send(&world.service, twice).await.status, 415);
    for (accept, status) in
        [("*/*", 200), ("application/json", 406), ("text/event-stream", 406), ("text/html", 406)]
    {
        let answer = send(&world.service, call(1, "who").with("accept", accept)).await;
        assert_eq!(answer.status, status, "{accept}");
    }
}

#[tokio::test]
async fn headers_given_twice_are_refused() {
    let world = World::new();
    for name in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
        let ask = call(1, "work");
        let value = ask.headers[name].to_str().unwrap().to_owned();
        let answer = send(&world.service, ask.and(name, &value)).await;
        assert_eq!((answer.status, answer.code()), (400, Some(-32020)), "{name}");
    }
    let session = Session::open(&world.service, Revision::V2025_11_25).await;
    for name in ["mcp-protocol-version", "mcp-session-id"] {
        let ask = session.call(1, "work", json!({}));
        let value = ask.headers[name].to_str().unwrap().to_owned();
        assert_eq!(send(&world.service, ask.and(name, &value)).await.status, 400, "{name}");
    }
    assert_eq!(world.seen.counts(), [0, 0, 0]);
}

#[tokio::test]
async fn requests_that_two_parsers_read_differently_reach_nobody() {
    let server = Running::start(|http| http).await;
    let ask = call(1, "work");
    let whole = wire(&ask);
    let length = format!("content-length: {}", ask.body.len());
    let insert = |line: &str| whole.replacen("\r\n", &format!("\r\n{line}\r\n"), 1);
    let second = "GET /smuggled HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for raw in [
        insert("content-length: 5"),
        insert("transfer-encoding: chunked, identity"),
        insert("transfer-encoding : chunked"),
        whole.replacen(&length, "content-length: +9", 1),
        whole.replacen(&length, "content-length: 5, 9", 1),
        insert("x-a: b\r\n folded: c"),
        whole.replacen("host: localhost", "host: localhost\r\nhost: evil.com", 1),
        whole.replacen("POST /mcp", "POST http://evil.com/mcp", 1),
        whole.replacen("POST /mcp", "POST /mcp /x", 1),
        whole.replacen(" HTTP/1.1", "", 1),
        whole.replacen("host: localhost\r\n", "host\0: localhost\r\n", 1),
        whole.replacen("host: localhost", "host: local\0host", 1),
    ] {
        let mut stream = server.connect().await;
        stream.write_all(raw.as_bytes()).await.unwrap();
        stream.write_all(second.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let answer = read_to_end(&mut stream).await;
        assert!(!answer.contains("HTTP/1.1 200"), "{raw}\n{answer}");
    }
    assert_eq!(server.seen.counts(), [0, 0, 0]);
    // A length besides chunks is ignored (RFC 9112, 6.3): one request, read by its chunks.
    let chunks =
        format!("transfer-encoding: chunked\r\nconnection: close\r\n\r\n{:x}", ask.body.len());
    for line in ["", "content-length: 5\r\n", "content-length: 9999\r\n"] {
        let end = format!("{length}\r\n\r\n");
        let raw = whole.replacen(&end, &format!("{line}{chunks}\r\n"), 1);
        let mut stream = server.connect().await;
        stream.write_all(format!("{raw}\r\n0\r\n\r\n{second}").as_bytes()).await.unwrap();
        let answer = read_to_end(&mut stream).await;
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{raw}\n{answer}");
        assert!(answer.starts_with("HTTP/1.1 200"), "{raw}\n{answer}");
    }
    server.end().await;
}

#[tokio::test]
async fn every_request_of_a_connection_is_gated() {
    let server = Running::start(|http| http).await;
    let mut stream = server.connect().await;
    let ask = || call(1, "who");
    for (ask, status) in [
        (ask(), 200),
        (ask().with("host", "evil.com"), 403),
        (ask().and("host", "evil.com"), 403),
        (ask().with("origin", "https://evil.com"), 403),
        (ask().with("sec-fetch-site", "cross-site"), 403),
        (ask().path("http://evil.com/mcp"), 403),
        (ask().with("host", "127.0.0.1:1"), 200),
        (ask(), 200),
    ] {
        stream.write_all(wire(&ask).as_bytes()).await.unwrap();
        let answer = read_until(&mut stream, "}}").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{}\n{answer}", wire(&ask));
    }
    server.end().await;
}

#[tokio::test]
async fn http2_with_prior_knowledge_is_served_and_gated() {
    use hyper_util::rt::{TokioExecutor, TokioIo};
    let server = Running::start(|http| http).await;
    let stream = TokioIo::new(server.connect().await);
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let connection = tokio::spawn(connection);
    for (authority, host, status) in [
        ("localhost", None, 200),
        ("evil.com", None, 403),
        ("evil.com", Some("localhost"), 403),
        ("localhost", Some("evil.com"), 403),
    ] {
        let mut ask = modern(1, "tools/list", json!({})).without("host");
        if let Some(host) = host {
            ask = ask.with("host", host);
        }
        let request = ask.path(&format!("http://{authority}/mcp")).into_request();
        let response = super::client::soon("a response", client.send_request(request)).await;
        assert_eq!(response.unwrap().status(), status, "{authority} {host:?}");
    }
    drop(client);
    connection.await.unwrap().unwrap();
    server.end().await;
}

#[tokio::test]
async fn pages_may_read_answers_only_when_asked_for() {
    let origin = "https://app.example.com";
    let server = |has_cors: bool| {
        let http = bowline::Server::new("pages", "1.0.0").http().allow_origin(origin).unwrap();
        if has_cors { http.cors() } else { http }.into_service().unwrap()
    };
    let preflight = || {
        http::Request::options("/mcp")
            .header("host", "localhost")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "content-type, mcp-method")
            .body(String::new())
            .unwrap()
    };
    let reply = server(true).handle(preflight()).await;
    assert_eq!(reply.status(), 204);
    assert_eq!(reply.headers()["access-control-allow-origin"], origin);
    assert_eq!(reply.headers()["access-control-allow-headers"], "content-type, mcp-method");
    assert_eq!(reply.headers()["vary"], "Origin");
    let mut foreign = preflight();
    foreign.headers_mut().insert("origin", "https://evil.example.com".parse().unwrap());
    let reply = server(true).handle(foreign).await;
    assert_eq!(reply.status(), 403);
    assert!(!reply.headers().contains_key("access-control-allow-origin"));
    let reply = server(false).handle(preflight()).await;
    assert_eq!(reply.status(), 405);
    assert!(!reply.headers().contains_key("access-control-allow-origin"));
}
