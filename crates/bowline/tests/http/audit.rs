//! The audit over HTTP: every end of every request, and everything that is refused, once.

use std::time::Duration;

use bowline::http::{Http, HttpLimits, HttpService};
use bowline::{Context, Principal, Revision, Server, Tool};
use serde_json::json;

use super::client::{
    Ask, Session, call, initialize, modern, modern_with, open, request, send, soon,
};
use super::trail::Trail;
use super::world::Nothing;

fn server() -> Server {
    Server::new("audited", "1.0.0")
        .with(Tool::new("quick", || async { "quick" }))
        .with(Tool::new("write", || async { "written" }).scopes(["write"]))
        .with(Tool::new("fails", || async { Err::<String, _>("no luck") }))
        .with(Tool::new("waits", std::future::pending::<String>))
        .with(Tool::new("slow", std::future::pending::<String>).timeout(Duration::from_millis(20)))
        .with(Tool::new("panics", || async {
            if true {
                panic!("on purpose");
            }
        }))
        .with(Tool::new("asks", |context: Context, _: Nothing| async move {
            context.roots().await.map(|roots| roots.len().to_string())
        }))
}

fn service_with(change: impl FnOnce(Http) -> Http) -> HttpService {
    let http = server().http().identify(|parts| {
        let user = parts.headers.get("x-user")?.to_str().ok()?;
        Some(Principal::new(user))
    });
    let http = http.peer_addr(|parts| parts.headers.get("x-from")?.to_str().ok()?.parse().ok());
    change(http).into_service().unwrap()
}

#[tokio::test]
async fn each_end_of_a_modern_request_is_reported_once() {
    let trail = Trail::new();
    let service = service_with(|http| http);
    let asks = json!({ "roots": {} });
    let cases = [
        (call(1, "quick"), "tools/call quick: answered", "", ""),
        (call(1, "fails"), "tools/call fails: tool_error", "tool_error", ""),
        (call(1, "nobody"), "tools/call nobody: rejected", "-32602", "-32602"),
        (modern(1, "no/such", json!({})), "no/such: rejected", "-32601", "-32601"),
        (call(1, "quick").with("mcp-name", "x"), "tools/call quick: rejected", "-32020", "-32020"),
        (call(1, "write"), "tools/call write: forbidden", "-32600", "-32600"),
        (call(1, "panics"), "tools/call panics: panicked", "-32603", "-32603"),
        (call(1, "slow"), "tools/call slow: timed_out", "timeout", "-32603"),
        (
            modern_with(1, "tools/call", json!({ "name": "asks" }), asks),
            "tools/call asks: asked",
            "",
            "",
        ),
    ];
    for (ask, line, error, code) in cases {
        let ask = ask.with("x-user", "ada").with("x-from", "192.0.2.7:4711");
        send(&service, ask).await;
        let entry = &trail.until(&[line]).await[0];
        let fields = [
            ("error.type", error),
            ("rpc.response.status_code", code),
            ("enduser.id", "ada"),
            ("client.address", "192.0.2.7"),
            ("client.port", "4711"),
            ("network.transport", "tcp"),
            ("network.protocol.name", "http"),
            ("mcp.protocol.version", "2026-07-28"),
            ("jsonrpc.request.id", "1"),
            ("session", ""),
        ];
        for (field, value) in fields {
            assert_eq!(entry.get(field), value, "{line}: {field}: {entry:?}");
        }
        assert!(entry.get("duration").parse::<f64>().unwrap() >= 0.0, "{entry:?}");
    }
    trail.until(&[]).await;
}

#[tokio::test]
async fn a_client_that_disconnects_or_listens_is_reported() {
    let trail = Trail::new();
    let service = service_with(|http| http);
    let waiting = service.handle(call(1, "waits").into_request());
    assert!(tokio::time::timeout(Duration::from_millis(50), waiting).await.is_err());
    trail.until(&["tools/call waits: disconnected"]).await;
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let mut stream = open(&service, modern("l", "subscriptions/listen", filter)).await;
    assert!(stream.next().await.unwrap().method().ends_with("acknowledged"));
    service.stop();
    assert!(soon("the end", stream.next()).await.unwrap().json()["result"].is_object());
    trail.until(&["subscriptions/listen: answered"]).await;
}

#[tokio::test]
async fn what_never_becomes_a_request_is_reported_once() {
    let trail = Trail::new();
    let service =
        service_with(|http| http.limits(HttpLimits { body: 1_000, ..Default::default() }));
    let broken = Ask::post("{\"jsonrpc\": \"2.0\", \"secret");
    let unknown = |ask: Ask| ask.with("mcp-session-id", "0123456789abcdef");
    let cases = [
        (call(1, "quick").with("host", "evil.example"), 403, "host"),
        (call(1, "quick").with("origin", "https://evil.example"), 403, "origin"),
        (call(1, "quick").with("content-type", "text/plain"), 415, "head"),
        (call(1, "quick").path("/nowhere"), 404, "head"),
        (Ask::new(http::Method::PUT, "/mcp"), 405, "head"),
        (Ask::post("x".repeat(2_000)), 413, "body"),
        (broken, 400, "message"),
        (Ask::post(json!([])), 400, "message"),
        (unknown(Ask::post(request(1, "ping", json!({})))), 404, "session"),
        (unknown(Ask::new(http::Method::DELETE, "/mcp")), 404, "session"),
    ];
    for (ask, status, why) in cases {
        let secret = ask.with("x-user", "ada").with("authorization", "Bearer secret");
        assert_eq!(send(&service, secret).await.status, status, "{why}");
        let entry = &trail.until(&[&format!("a request was refused: {why}")]).await[0];
        assert_eq!(entry.get("http.response.status_code"), status.to_string());
        assert!(!format!("{entry:?}").contains("secret"), "{entry:?}");
        // The caller is known once it has been authenticated.
        let is_known = !matches!(why, "host" | "origin") && entry.get("url.path") == "/mcp";
        assert_eq!(entry.get("enduser.id"), if is_known { "ada" } else { "" }, "{entry:?}");
    }
    service.stop();
    assert_eq!(send(&service, call(1, "quick")).await.status, 503);
    trail.until(&["a request was refused: stopping"]).await;
    trail.until(&[]).await;
}

#[tokio::test]
async fn sessions_are_reported_from_beginning_to_end() {
    let trail = Trail::new();
    let limits = HttpLimits { sessions: 2, ..HttpLimits::default() };
    let service = service_with(|http| http.limits(limits));
    let began = ["initialize: answered", "a session began: "];
    let session = Session::open(&service, Revision::V2025_11_25).await;
    let first = trail.until(&began).await;
    let number = first[1].get("session").to_owned();
    assert!(!number.is_empty() && first[1].get("mcp.protocol.version") == "2025-11-25");
    send(&service, session.call(2, "quick", json!({}))).await;
    let called = trail.until(&["tools/call quick: answered"]).await;
    assert_eq!(called[0].get("session"), number);
    drop(open(&service, session.call(3, "waits", json!({}))).await);
    let cancelled = json!({ "requestId": 3 });
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled });
    send(&service, session.post(cancelled)).await;
    trail.until(&["tools/call waits: cancelled"]).await;
    assert_eq!(send(&service, session.delete()).await.status, 204);
    let ended = trail.until(&["a session ended: deleted"]).await;
    assert_eq!(ended[0].get("session"), number);
    for _ in 0..2 {
        Session::open(&service, Revision::V2025_11_25).await;
        trail.until(&began).await;
    }
    assert_eq!(send(&service, Ask::post(initialize("2025-11-25"))).await.status, 503);
    trail.until(&["initialize: answered", "a request was refused: limit"]).await;
    // Those that nobody ended end with the service.
    drop((service, session));
    trail.until(&["a session ended: stopped", "a session ended: stopped"]).await;
}

#[tokio::test]
async fn each_message_of_a_batch_is_reported() {
    let trail = Trail::new();
    let service = service_with(|http| http);
    let session = Session::open(&service, Revision::V2025_03_26).await;
    trail.until(&["initialize: answered", "a session began: "]).await;
    let tool = |id: u8, name: &str| request(id, "tools/call", json!({ "name": name }));
    let batch = json!([tool(1, "quick"), request(2, "no/such", json!({}))]);
    assert_eq!(send(&service, session.post(batch)).await.status, 200);
    trail.until(&["tools/call quick: answered", "no/such: rejected"]).await;
}

#[cfg(feature = "auth")]
#[tokio::test]
async fn a_token_that_is_not_valid_is_reported_without_it() {
    use bowline::http::auth::{Guard, Identity, StaticTokens};

    let trail = Trail::new();
    let tokens = StaticTokens::new().token("good", Identity::new("ada"));
    let guard = Guard::new("http://localhost/mcp", tokens).unwrap().scopes(["write"]).unwrap();
    let service = server().http().require_auth(guard).into_service().unwrap();
    for (token, status, why) in [("secret", 401, "token"), ("good", 403, "scopes")] {
        let ask = call(1, "quick").with("authorization", &format!("Bearer {token}"));
        assert_eq!(send(&service, ask).await.status, status);
        let entry = &trail.until(&[&format!("a request was refused: {why}")]).await[0];
        assert!(!format!("{entry:?}").contains("secret"), "{entry:?}");
    }
    assert_eq!(send(&service, call(1, "quick")).await.status, 401);
    trail.until(&["a request was refused: token"]).await;
}
