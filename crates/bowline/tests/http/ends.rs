//! Middleware over HTTP: it sees every end of every request once, and statuses stay what they are.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::http::HttpService;
use bowline::{
    Context, ErrorObject, FailureKind, Incoming, Limits, Next, Principal, Revision, Server, Tool,
};
use serde_json::json;
use tokio::task::yield_now;

use self::examples::{Metrics, count, ending};
use super::client::{
    Ask, Session, call, initialize, modern, modern_with, open, request, send, soon, until,
};
use super::sse::Sse;
use super::world::Nothing;

#[path = "../../examples/middleware.rs"]
#[expect(dead_code, reason = "a test does not run the example's server")]
#[expect(unreachable_pub, reason = "it is an example of its own")]
mod examples;

type Log = Arc<Mutex<Vec<String>>>;

struct Watched {
    service: HttpService,
    log: Log,
    metrics: Arc<Metrics>,
}

impl Watched {
    fn new() -> Self {
        Self::with(|server| server)
    }

    fn with(change: impl FnOnce(Server) -> Server) -> Self {
        let (log, metrics) = (Log::default(), Arc::new(Metrics::default()));
        let recording = Arc::clone(&log);
        let limits = Limits { grace: Duration::from_secs(1), ..Limits::default() };
        let server = Server::new("watched", "1.0.0")
            .limits(limits)
            .middleware(count(&metrics))
            .middleware(move |incoming: Incoming, next: Next| {
                let log = Arc::clone(&recording);
                async move {
                    let name = incoming.name.clone().unwrap_or_default();
                    let what = format!("{} {name}", incoming.method);
                    let who = incoming.context.caller().principal.clone();
                    let outcome = next.run(incoming).await;
                    // Not done at once, so a request that is dropped needs a task for the rest.
                    yield_now().await;
                    let who = who.as_ref().map_or("", Principal::as_str);
                    log.lock().unwrap().push(format!(
                        "{} {who}: {}",
                        what.trim(),
                        ending(&outcome)
                    ));
                    outcome
                }
            });
        let server = change(server)
            .with(Tool::new("quick", || async { "quick" }))
            .with(Tool::new("write", || async { "written" }).scopes(["write"]))
            .with(Tool::new("waits", std::future::pending::<String>))
            .with(Tool::new("says", |context: Context, _: Nothing| async move {
                context.progress(1.0, None, "said");
                std::future::pending::<String>().await
            }))
            .with(Tool::new("asks", |context: Context, _: Nothing| async move {
                context.roots().await.map(|roots| roots.len().to_string())
            }));
        let http = server.http().identify(|parts| {
            let user = parts.headers.get("x-user")?.to_str().ok()?;
            let scopes = user.strip_suffix("+write").map(|_| "write");
            Some(Principal::new(user).with_scopes(scopes))
        });
        Self { service: http.into_service().unwrap(), log, metrics }
    }

    async fn until(&self, wanted: &[&str]) {
        let seen = || self.log.lock().unwrap().clone();
        until(&format!("{wanted:?}"), || seen().len() >= wanted.len()).await;
        assert_eq!(seen(), wanted);
        assert_eq!(self.metrics.running.load(Ordering::Relaxed), 0);
        self.log.lock().unwrap().clear();
    }
}

#[tokio::test]
async fn modern_requests_keep_their_status() {
    let world = Watched::new();
    let asks = json!({ "roots": {} });
    let cases = [
        (call(1, "quick"), 200, "tools/call quick : answered"),
        (call(1, "nobody"), 400, "tools/call nobody : rejected"),
        (modern(1, "no/such", json!({})), 404, "no/such : rejected"),
        (modern(1, "server/discover", json!({})), 200, "server/discover : answered"),
        (modern(1, "tools/list", json!({})), 200, "tools/list : answered"),
        (modern(1, "tools/list", json!({ "cursor": "x" })), 400, "tools/list : rejected"),
        (call(1, "quick").with("mcp-name", "other"), 400, "tools/call quick : rejected"),
        (call(1, "write"), 403, "tools/call write : forbidden"),
        (call(1, "write").with("x-user", "eve"), 403, "tools/call write eve: forbidden"),
        (call(1, "write").with("x-user", "ada+write"), 200, "tools/call write ada+write: answered"),
        (
            modern_with(1, "tools/call", json!({ "name": "asks" }), asks),
            200,
            "tools/call asks : asked",
        ),
    ];
    for (ask, status, seen) in cases {
        let answer = send(&world.service, ask).await;
        assert_eq!(answer.status, status, "{seen}: {}", answer.body);
        if status == 403 {
            assert!(answer.header("www-authenticate").unwrap().contains("write"), "{seen}");
        }
        world.until(&[seen]).await;
    }
}

#[tokio::test]
async fn a_client_that_disconnects_is_seen() {
    let world = Watched::new();
    // Before there is a response, and in the middle of a stream.
    let waiting = world.service.handle(call(1, "waits").into_request());
    assert!(tokio::time::timeout(Duration::from_millis(50), waiting).await.is_err());
    world.until(&["tools/call waits : disconnected"]).await;
    let mut talk = json!({ "name": "says" });
    talk["_meta"]["progressToken"] = json!(1);
    let mut stream = open(&world.service, modern(1, "tools/call", talk)).await;
    assert_eq!(stream.next().await.unwrap().method(), "notifications/progress");
    drop(stream);
    world.until(&["tools/call says : disconnected"]).await;
}

#[tokio::test]
async fn a_listen_request_ends_with_its_stream() {
    let world = Watched::new();
    let filter = || json!({ "notifications": { "toolsListChanged": true } });
    let listen = || modern("l", "subscriptions/listen", filter());
    let acknowledged = "notifications/subscriptions/acknowledged";
    let mut first = open(&world.service, listen()).await;
    assert_eq!(first.next().await.unwrap().method(), acknowledged);
    let mut second = open(&world.service, listen()).await;
    assert_eq!(second.next().await.unwrap().method(), acknowledged);
    drop(second);
    until("an end", || !world.log.lock().unwrap().is_empty()).await;
    world.service.stop();
    let last = soon("the end", first.next()).await.unwrap().json();
    assert!(last["result"].is_object() && last["id"] == "l", "{last}");
    assert!(first.next().await.is_none());
    world.until(&["subscriptions/listen : disconnected", "subscriptions/listen : answered"]).await;
}

#[tokio::test]
async fn legacy_sessions_are_seen() {
    let world = Watched::new();
    let session = Session::open(&world.service, Revision::V2025_11_25).await;
    let send = |ask: Ask| send(&world.service, ask);
    assert_eq!(send(session.post(request(1, "ping", json!({})))).await.status, 200);
    assert_eq!(send(session.call(2, "quick", json!({}))).await.text(), "quick");
    assert_eq!(send(session.call(3, "write", json!({}))).await.status, 403);
    world
        .until(&[
            "initialize : answered",
            "ping : answered",
            "tools/call quick : answered",
            "tools/call write : forbidden",
        ])
        .await;
    // A client that disconnects comes back for its answer; one that cancels does not.
    drop(open(&world.service, session.call(4, "waits", json!({}))).await);
    let cancel = json!({ "requestId": 4 });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel });
    assert_eq!(send(session.post(cancel)).await.status, 202);
    world.until(&["tools/call waits : cancelled"]).await;
    drop(open(&world.service, session.call(5, "waits", json!({}))).await);
    assert_eq!(send(session.delete()).await.status, 204);
    world.until(&["tools/call waits : disconnected"]).await;
}

#[tokio::test]
async fn batches_are_seen() {
    let world = Watched::new();
    let session = Session::open(&world.service, Revision::V2025_03_26).await;
    let tool = |id: u8, name: &str| request(id, "tools/call", json!({ "name": name }));
    let batch = json!([tool(1, "quick"), request(2, "no/such", json!({}))]);
    assert_eq!(send(&world.service, session.post(batch)).await.status, 200);
    let batch = json!([tool(1, "quick"), tool(2, "write")]);
    assert_eq!(send(&world.service, session.post(batch)).await.status, 403);
    world
        .until(&[
            "initialize : answered",
            "tools/call quick : answered",
            "no/such : rejected",
            "tools/call quick : forbidden",
            "tools/call write : forbidden",
        ])
        .await;
}

#[tokio::test]
async fn the_oldest_transport_is_seen() {
    let world = Watched::new();
    let mut client = Sse::open(&world.service, "ada").await;
    client.call(1, "quick", json!({})).await;
    let forbidden = client.ask(request(2, "tools/call", json!({ "name": "write" })));
    assert_eq!(send(&world.service, forbidden).await.status, 403);
    client.post(request(3, "tools/call", json!({ "name": "waits" }))).await;
    // Before its connection ends: the answer shows that the other one runs.
    client.post(request(4, "ping", json!({}))).await;
    client.next().await;
    drop(client);
    world
        .until(&[
            "initialize ada: answered",
            "tools/call quick ada: answered",
            "tools/call write ada: forbidden",
            "ping ada: answered",
            "tools/call waits ada: disconnected",
        ])
        .await;
}

#[tokio::test]
async fn middleware_may_refuse_a_handshake_or_replace_a_refusal() {
    let world = Watched::with(|server| {
        server.middleware(|incoming: Incoming, next: Next| async move {
            let method = incoming.method.clone();
            match next.run(incoming).await {
                Ok(_) if method == "initialize" => Err(ErrorObject::internal("not today").into()),
                Err(failure) if failure.kind == FailureKind::Forbidden => {
                    let scopes: Vec<_> = failure.scopes().collect();
                    Err(ErrorObject::invalid_request(format!("get {scopes:?}")).into())
                }
                outcome => outcome,
            }
        })
    });
    let refused = send(&world.service, Ask::post(initialize("2025-11-25"))).await;
    assert_eq!((refused.status, refused.header("mcp-session-id")), (400, None));
    let replaced = send(&world.service, call(1, "write")).await;
    assert_eq!((replaced.status, replaced.code()), (200, Some(-32600)), "{}", replaced.body);
    assert!(replaced.body.contains(r#"get [\"write\"]"#), "{}", replaced.body);
    world.until(&["initialize : failed", "tools/call write : failed"]).await;
}

#[tokio::test]
async fn the_rate_limit_counts_by_principal() {
    let world = Watched::with(|server| server.middleware(examples::limit(2)));
    let session = Session::open_as(&world.service, Revision::V2025_11_25, Some("ada")).await;
    assert_eq!(send(&world.service, session.call(1, "quick", json!({}))).await.text(), "quick");
    let ada = || call(1, "quick").with("x-user", "ada");
    assert_eq!(send(&world.service, ada()).await.text(), "quick");
    let limited = send(&world.service, ada()).await;
    assert_eq!(limited.json()["result"]["isError"], true, "{}", limited.body);
    assert!(limited.text().contains("at most 2 per minute; help: wait"), "{}", limited.text());
    let limited = send(&world.service, session.call(2, "quick", json!({}))).await;
    assert!(limited.text().contains("at most 2 per minute"), "{}", limited.body);
    let bob = call(1, "quick").with("x-user", "bob");
    assert_eq!(send(&world.service, bob).await.text(), "quick");
}
