//! Inside axum: paths, what layers add, and a graceful shutdown.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::ConnectInfo;
use bowline::http::HttpService;
use bowline::{Context, Server, Tool};
use http::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::client::{Ask, call, initialize, modern, request, send, soon};
#[cfg(unix)]
use super::socket::is_alone;
use super::socket::{listen, read_to_end, read_until, wire};
use super::world::{Nothing, World};

/// The example, as it is.
#[cfg(feature = "macros")]
#[path = "../../examples/axum.rs"]
#[expect(dead_code, reason = "its `main` is not called")]
mod example;

/// An application on a socket.
struct App {
    address: SocketAddr,
    served: JoinHandle<std::io::Result<()>>,
}

impl App {
    async fn serve(app: Router) -> Self {
        Self::serve_until(app, std::future::pending()).await
    }

    /// As axum's documentation says.
    async fn serve_until(app: Router, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        let serving = axum::serve(listener, app).with_graceful_shutdown(signal);
        Self { address, served: tokio::spawn(async { serving.await }) }
    }

    async fn open(&self, ask: &Ask) -> TcpStream {
        let mut stream = soon("a connection", TcpStream::connect(self.address)).await.unwrap();
        stream.write_all(wire(ask).as_bytes()).await.unwrap();
        stream
    }

    async fn ask(&self, ask: Ask) -> String {
        read_to_end(&mut self.open(&ask.with("connection", "close")).await).await
    }

    /// Opens a session; returns its id.
    async fn session(&self, path: &str, key: &str) -> String {
        let opening = Ask::post(initialize("2025-11-25")).path(path).with("x-api-key", key);
        let opened = self.ask(opening).await;
        let id = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        id.unwrap_or_else(|| panic!("{opened}")).to_owned()
    }
}

#[cfg(feature = "macros")]
#[tokio::test]
async fn the_example_does_what_it_says() {
    let app = App::serve(example::app().unwrap()).await;
    let note = modern(1, "tools/call", json!({ "name": "note", "arguments": { "text": "hi" } }));
    let refused = app.ask(note.clone()).await;
    assert!(refused.starts_with("HTTP/1.1 401") && refused.contains("x-api-key"), "{refused}");
    let note = note.with("accept-language", "en");
    let kept = app.ask(note.with("x-api-key", "blue-key")).await;
    assert!(kept.contains("note 1 is kept"), "{kept}");
    let id = app.session("/mcp", "green-key").await;
    let note = request(1, "tools/call", json!({ "name": "note", "arguments": { "text": "ho" } }));
    let note = Ask::post(note).with("mcp-session-id", &id).with("x-api-key", "green-key");
    assert!(app.ask(note).await.contains("note 2 is kept"));
    let page = app.ask(Ask::new(Method::GET, "/notes")).await;
    assert!(page.ends_with("blue (en): hi\ngreen (any language): ho"), "{page}");
}

/// Clients that listen, of every era.
async fn listeners(app: &App) -> [TcpStream; 3] {
    let mut modern = app.open(&listen(json!({ "toolsListChanged": true }))).await;
    read_until(&mut modern, "acknowledged").await;
    let id = app.session("/mcp", "").await;
    let get = Ask::new(Method::GET, "/mcp").with("mcp-session-id", &id);
    let mut legacy = app.open(&get).await;
    read_until(&mut legacy, "retry").await;
    let mut oldest = app.open(&Ask::new(Method::GET, "/sse")).await;
    read_until(&mut oldest, "endpoint").await;
    [modern, legacy, oldest]
}

/// Checks that a shutdown that has begun ends soon, and that no client is cut off.
async fn ends(app: App, listeners: [TcpStream; 3]) {
    for mut stream in listeners {
        // Keep-alives would count as news for ever.
        let end = soon("the end of a stream", read_to_end(&mut stream)).await;
        assert!(end.ends_with("0\r\n\r\n"), "cut off: {end}");
    }
    soon("the end of the server", app.served).await.unwrap().unwrap();
}

/// All paths of a service, in an application without a prefix.
fn routed(mcp: &HttpService) -> Router {
    let paths = mcp.paths().into_iter();
    paths.fold(Router::new(), |app, path| app.route_service(&path, mcp.clone()))
}

/// The function in axum's documentation.
#[cfg(unix)]
async fn shutdown_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let ctrl_c = async { tokio::signal::ctrl_c().await.unwrap() };
    let terminate = async { signal(SignalKind::terminate()).unwrap().recv().await };
    tokio::select! {
        () = ctrl_c => {}
        _ = terminate => {}
    }
}

#[cfg(unix)]
async fn ends_on(signal: &str) {
    let app = App::serve_until(routed(&World::new().service), shutdown_signal()).await;
    let listeners = listeners(&app).await;
    let process = std::process::id().to_string();
    let told = std::process::Command::new("kill").args([signal, &process]).status().unwrap();
    assert!(told.success());
    ends(app, listeners).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_graceful_shutdown_does_not_wait_for_clients_that_listen() {
    if is_alone() {
        ends_on("-TERM").await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn neither_does_one_that_begins_with_ctrl_c() {
    if is_alone() {
        ends_on("-INT").await;
    }
}

#[tokio::test]
async fn a_shutdown_can_begin_without_a_signal() {
    let (begin, begun) = tokio::sync::oneshot::channel();
    let mcp = World::new().service;
    let app = App::serve_until(routed(&mcp), mcp.stop_on(begun)).await;
    let listeners = listeners(&app).await;
    begin.send(()).unwrap();
    ends(app, listeners).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn clients_cannot_listen_again_while_the_process_ends() {
    if !is_alone() {
        return;
    }
    let world = World::new();
    let ended = bowline::stop_signal();
    let mut stream = super::client::open(&world.service, listen(json!({}))).await;
    let process = std::process::id().to_string();
    std::process::Command::new("kill").args(["-TERM", &process]).status().unwrap();
    soon("the signal", ended).await;
    soon("the end of the stream", async { while stream.next_any().await.is_some() {} }).await;
    let again = send(&world.service, listen(json!({}))).await;
    assert_eq!((again.status, again.header("retry-after")), (503, Some("5")));
    // If it goes on after all, everything else is served.
    world.service_is_alive().await;
}

#[tokio::test]
async fn any_prefix_will_do() {
    let mcp = World::new().service;
    let app = Router::new()
        .nest_service("/api", mcp.clone())
        .nest_service("/tools", mcp.clone())
        .route_service("/direct/mcp", mcp.clone())
        .route_service("/else/where", mcp.clone());
    let app = App::serve(app).await;
    for path in ["/api/mcp", "/api", "/tools", "/tools/", "/direct/mcp"] {
        let answer = app.ask(call(1, "who").path(path)).await;
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.contains("nobody"),
            "{path}: {answer}"
        );
        app.session(path, "").await;
    }
    for path in ["/else/where", "/api/mc", "/api/xmcp"] {
        let answer = app.ask(call(1, "who").path(path)).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
        let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!(body["paths"], json!(["/mcp", "/sse", "/messages"]));
        let error = body["error"].as_str().unwrap();
        assert!(error.contains("/mcp, /sse, /messages") && error.contains("Http::path"), "{error}");
    }
    // HTTP+SSE finds its way back, too.
    let mut stream = app.open(&Ask::new(Method::GET, "/api/sse")).await;
    let opening = read_until(&mut stream, "\n\n").await;
    let reference = opening.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let hello = Ask::post(initialize("2024-11-05")).path(&format!("/api/{reference}"));
    assert!(app.ask(hello).await.starts_with("HTTP/1.1 202"));
    read_until(&mut stream, "2024-11-05").await;
}

#[tokio::test]
async fn a_server_of_its_own_has_exactly_its_paths() {
    let server = super::socket::Running::start(|http| http.path("tools")).await;
    for (path, status) in [("/tools", 200), ("/", 200), ("/mcp", 404), ("/api/tools", 404)] {
        let answer = server.exchange(&call(1, "who").path(path)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
    }
    for (method, path, allowed) in
        [(Method::POST, "/sse", "GET"), (Method::GET, "/messages", "POST")]
    {
        let answer = server.exchange(&Ask::new(method, path)).await;
        assert!(answer.starts_with("HTTP/1.1 405"), "{path}: {answer}");
        assert!(answer.contains(&format!("allow: {allowed}")), "{path}: {answer}");
    }
    server.end().await;
}

#[tokio::test]
async fn the_address_is_where_axum_says() {
    let where_from = |context: Context, _: Nothing| async move {
        context.peer_addr().map_or_else(|| "unknown".to_owned(), |it| it.ip().to_string())
    };
    let server = || Server::new("where", "1.0.0").with(Tool::new("where", where_from));
    let told = server()
        .http()
        .peer_addr(|parts| parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0));
    for (http, expected) in [(server().http(), "unknown"), (told, "127.0.0.1")] {
        let app = App::serve(routed(&http.into_service().unwrap())).await;
        let answer = app.ask(call(1, "where")).await;
        assert!(answer.contains(expected), "{answer}");
    }
}
