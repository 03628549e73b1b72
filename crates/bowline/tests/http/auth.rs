//! Authentication and scopes: checked for every request, in both eras, before anything runs.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use bowline::http::HttpService;
use bowline::http::auth::{Guard, Identity, StaticTokens};
use bowline::{BuildError, Context, Principal, Prompt, Resource, Revision, Server, Tool};
use http::Method;
use serde_json::{Value, json};

use super::client::{
    Answer, Ask, Session, call, initialize, modern, modern_with, open, request, send, soon,
};
use super::world::Nothing;

const RESOURCE: &str = "https://mcp.example.com/mcp";
const METADATA: &str = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";

/// Counts what was executed, to show that nothing forbidden was.
#[derive(Default)]
struct Done(AtomicUsize);

struct World {
    service: HttpService,
    done: Arc<Done>,
}

impl World {
    fn new() -> Self {
        Self::with(|http| http)
    }

    fn with(change: impl FnOnce(bowline::http::Http) -> bowline::http::Http) -> Self {
        let done = Arc::new(Done::default());
        let http = server(&done).http().require_auth(guard());
        Self { service: change(http).into_service().unwrap(), done }
    }

    fn done(&self) -> usize {
        self.done.0.load(Ordering::SeqCst)
    }
}

fn guard() -> Guard {
    let alice = |scopes: &[&str]| {
        scopes.iter().fold(Identity::new("alice").client("editor"), |it, scope| it.scope(*scope))
    };
    let tokens = StaticTokens::new()
        .token("alice-reads", alice(&["mcp"]))
        .token("alice-writes", alice(&["mcp", "write", "audit"]))
        .token("alice-elsewhere", Identity::new("alice").client("other").scope("mcp"))
        .token("bob", Identity::new("bob").client("editor").scope("mcp").scope("write"))
        .token("nothing", Identity::new("nobody"));
    let guard = Guard::new(RESOURCE, tokens).unwrap().scopes(["mcp"]).unwrap();
    guard.authorization_server("https://login.example.com").unwrap()
}

fn server(done: &Arc<Done>) -> Server {
    let done = Arc::clone(done);
    let write = move |context: Context, _: Nothing| {
        done.0.fetch_add(1, Ordering::SeqCst);
        async move {
            // This starts a stream before the answer is ready.
            context.progress(1.0, 2.0, "half");
            tokio::task::yield_now().await;
            "written"
        }
    };
    Server::new("guarded", "1.0.0")
        .with(Tool::new("who", |context: Context, _: Nothing| async move { who(&context) }))
        .with(Tool::new("write", write).scopes(["write", "audit"]))
        .with(Tool::new("hidden", || async { "?" }).scopes(["write"]).visible_to(|_| false))
        .with(Tool::new("name", |context: Context, _: Nothing| async move {
            context.elicit::<Name>("Your name?").await.map(|_| "named")
        }))
        .with(Prompt::new("plan", |_: Named| async { "a plan" }).scopes(["write"]))
        .with(Resource::text("notes://secret", "secret", "x").scopes(["write"]))
        .with(Resource::new("notes://{name}", "note", |_: Named| async { "y" }).scopes(["audit"]))
}

fn who(context: &Context) -> String {
    let principal = context.caller().principal.as_ref().unwrap();
    let scopes: Vec<_> = principal.scopes().collect();
    let client = principal.client_id().unwrap_or_default();
    format!("{} with {client}: {}", principal.subject(), scopes.join(" "))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Named {
    #[expect(dead_code, reason = "read and not used")]
    name: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    #[expect(dead_code, reason = "asked for and not used")]
    name: String,
}

fn signed(ask: Ask, token: &str) -> Ask {
    ask.with("authorization", &format!("Bearer {token}"))
}

async fn open_session(service: &HttpService, revision: Revision, token: &str) -> Session {
    let ask = signed(Ask::post(initialize(revision.as_str())), token);
    let answer = send(service, ask).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let id = answer.header("mcp-session-id").unwrap().to_owned();
    let (service, revision) = (service.clone(), revision.as_str());
    let session = Session { service, id, revision, user: None };
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(send(&session.service, signed(session.post(ready), token)).await.status, 202);
    session
}

fn check_scopes(answer: &Answer, scopes: &str, id: Value) {
    assert_eq!(answer.status, 403, "{}", answer.body);
    let challenge = answer.header("www-authenticate").unwrap();
    let expected = format!(
        r#"Bearer error="insufficient_scope", scope="{scopes}", resource_metadata="{METADATA}", error_description="the token does not allow this""#
    );
    assert_eq!(challenge, expected);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json()["id"], id);
}

/// A body that must not be read.
struct Untouched;

impl http_body::Body for Untouched {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        panic!("the body is read before its sender is known")
    }
}

#[tokio::test]
async fn requests_without_a_token_are_rejected_unread() {
    let world = World::new();
    let methods = [Method::POST, Method::GET, Method::DELETE, Method::PUT, Method::PATCH];
    let paths = ["/mcp", "/", "/sse", "/messages?session=x"];
    for (method, path) in methods.iter().flat_map(|method| paths.map(|path| (method, path))) {
        for (token, status) in [(None, 401), (Some("wrong"), 401), (Some("nothing"), 403)] {
            let mut ask = Ask::new(method.clone(), path).with("mcp-session-id", "x");
            ask = ask.with("content-type", "text/plain").without("accept");
            if let Some(token) = token {
                ask = signed(ask, token);
            }
            let request = ask.into_request().map(|_| Untouched);
            let reply = world.service.handle(request).await;
            assert_eq!(reply.status(), status, "{method} {path} {token:?}");
            let challenge = reply.headers().get("www-authenticate").unwrap().to_str().unwrap();
            assert!(challenge.contains(METADATA), "{challenge}");
            assert!(challenge.contains(r#"scope="mcp""#), "{challenge}");
        }
    }
    assert_eq!(send(&world.service, Ask::new(Method::GET, "/health")).await.status, 200);
    assert_eq!(send(&world.service, Ask::new(Method::GET, "/other")).await.status, 404);
}

#[tokio::test]
async fn metadata_are_public() {
    let world = World::new();
    for path in
        ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]
    {
        let ask = Ask::new(Method::GET, path).with("origin", "https://page.example.com");
        let answer =
            send(&world.service, ask.with("host", "mcp.example.com").without("accept")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        let metadata = answer.json();
        assert_eq!(metadata["resource"], RESOURCE);
        assert_eq!(metadata["authorization_servers"], json!(["https://login.example.com"]));
        assert_eq!(metadata["scopes_supported"], json!(["mcp"]));
        let asked = send(&world.service, Ask::new(Method::OPTIONS, path)).await;
        assert_eq!((asked.status, asked.header("access-control-allow-origin")), (204, Some("*")));
        assert_eq!(send(&world.service, Ask::new(Method::POST, path)).await.status, 405);
    }
    let elsewhere = Ask::new(Method::GET, "/.well-known/oauth-protected-resource/other");
    assert_eq!(send(&world.service, elsewhere).await.status, 404);
}

#[tokio::test]
async fn the_host_of_the_resource_is_admitted() {
    let world = World::new();
    let ask = signed(call(1, "who"), "alice-reads").with("host", "mcp.example.com");
    assert_eq!(send(&world.service, ask.clone()).await.status, 200);
    assert_eq!(send(&world.service, ask.with("host", "evil.example.com")).await.status, 403);
}

#[tokio::test]
async fn handlers_see_the_current_principal() {
    let world = World::new();
    let who = |token| send(&world.service, signed(call(1, "who"), token));
    assert_eq!(who("alice-reads").await.text(), "alice with editor: mcp");
    // The same name with another token must not be confused with the previous one.
    assert_eq!(who("alice-writes").await.text(), "alice with editor: audit mcp write");
    assert_eq!(who("bob").await.text(), "bob with editor: mcp write");
    let session = open_session(&world.service, Revision::V2025_11_25, "alice-reads").await;
    for (token, expected) in [
        ("alice-reads", "alice with editor: mcp"),
        ("alice-writes", "alice with editor: audit mcp write"),
        ("alice-reads", "alice with editor: mcp"),
    ] {
        let ask = signed(session.call(1, "who", json!({})), token);
        assert_eq!(send(&world.service, ask).await.text(), expected);
    }
}

/// Everything that needs scopes, and which.
fn guarded() -> Vec<(&'static str, Value, &'static str)> {
    let progress = json!({"progressToken": 1});
    vec![
        ("tools/call", json!({"name": "write", "_meta": progress}), "mcp write audit"),
        ("prompts/get", json!({"name": "plan", "arguments": {"name": "x"}}), "mcp write"),
        ("resources/read", json!({"uri": "notes://secret"}), "mcp write"),
        ("resources/read", json!({"uri": "notes://other"}), "mcp audit"),
    ]
}

#[tokio::test]
async fn modern_requests_need_their_scopes() {
    let world = World::new();
    for (method, params, scopes) in guarded() {
        let ask = modern("x", method, params);
        let answer = send(&world.service, signed(ask.clone(), "alice-reads")).await;
        check_scopes(&answer, scopes, json!("x"));
        let answer = send(&world.service, signed(ask, "alice-writes")).await;
        assert_eq!(answer.status, 200, "{method}: {}", answer.body);
    }
    assert_eq!(world.done(), 1);
    let filter = json!({"resourceSubscriptions": ["notes://secret", "notes://a"]});
    let listen = modern(1, "subscriptions/listen", json!({ "notifications": filter }));
    let answer = send(&world.service, signed(listen.clone(), "alice-reads")).await;
    check_scopes(&answer, "mcp write audit", json!(1));
    assert_eq!(open(&world.service, signed(listen, "alice-writes")).await.status, 200);
    // One of two is not enough.
    let answer = send(&world.service, signed(call(1, "write"), "bob")).await;
    check_scopes(&answer, "mcp write audit", json!(1));
    assert_eq!(world.done(), 1);
}

#[tokio::test]
async fn what_is_hidden_stays_hidden() {
    let world = World::new();
    for tool in ["hidden", "missing"] {
        let answer = send(&world.service, signed(call(1, tool), "alice-reads")).await;
        assert_eq!(answer.code(), Some(-32602), "{}", answer.body);
        assert!(answer.header("www-authenticate").is_none());
    }
    // A malformed request gets the error of its parser.
    let answer =
        send(&world.service, signed(modern(1, "tools/call", json!({})), "alice-reads")).await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn sessions_need_scopes_and_go_on_with_a_better_token() {
    let world = World::new();
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25] {
        let done = world.done();
        let session = open_session(&world.service, revision, "alice-reads").await;
        let more = [("resources/subscribe", json!({"uri": "notes://secret"}), "mcp write")];
        for (method, params, scopes) in guarded().into_iter().chain(more) {
            let ask = session.post(request("x", method, params));
            let answer = send(&world.service, signed(ask.clone(), "alice-reads")).await;
            check_scopes(&answer, scopes, json!("x"));
            let answer = send(&world.service, signed(ask, "alice-writes")).await;
            assert_eq!(answer.status, 200, "{method}: {}", answer.body);
        }
        assert_eq!(world.done(), done + 1);
        let argument = json!({"name": "name", "value": ""});
        let reference = json!({"type": "ref/prompt", "name": "plan"});
        let params = json!({"ref": reference, "argument": argument});
        let ask = session.post(request(7, "completion/complete", params));
        let answer = send(&world.service, signed(ask, "alice-reads")).await;
        // Nothing here has completions, but scopes are checked first.
        check_scopes(&answer, "mcp write", json!(7));
    }
}

#[tokio::test]
async fn stateless_legacy_requests_need_their_scopes() {
    let world = World::with(bowline::http::Http::without_sessions);
    for (method, params, scopes) in guarded() {
        let ask =
            Ask::post(request("x", method, params)).with("mcp-protocol-version", "2025-06-18");
        let answer = send(&world.service, signed(ask.clone(), "alice-reads")).await;
        check_scopes(&answer, scopes, json!("x"));
        assert_eq!(send(&world.service, signed(ask, "alice-writes")).await.status, 200);
    }
}

#[tokio::test]
async fn a_batch_is_permitted_as_a_whole() {
    let world = World::new();
    let session = open_session(&world.service, Revision::V2025_03_26, "alice-reads").await;
    let batch = json!([
        request(1, "tools/call", json!({"name": "write"})),
        request(2, "tools/call", json!({"name": "who"})),
        request(3, "resources/read", json!({"uri": "notes://other"})),
    ]);
    let mixed = json!([
        request(1, "tools/call", json!({"name": "who"})),
        request(2, "tools/call", json!({"name": "write"})),
    ]);
    for batch in [batch.clone(), mixed] {
        let answer = send(&world.service, signed(session.post(batch), "alice-reads")).await;
        check_scopes(&answer, "mcp audit write", Value::Null);
    }
    assert_eq!(world.done(), 0);
    let answer = send(&world.service, signed(session.post(batch), "alice-writes")).await;
    assert_eq!(answer.json().as_array().map(Vec::len), Some(3), "{}", answer.body);
    assert_eq!(world.done(), 1);
}

#[tokio::test]
async fn sessions_do_not_exist_for_other_principals() {
    let world = World::new();
    let session = open_session(&world.service, Revision::V2025_11_25, "alice-reads").await;
    let ping = || session.post(request(1, "ping", json!({})));
    // A stream to resume.
    let ask = signed(session.call(2, "write", json!({})), "alice-writes");
    let first = open(&world.service, ask).await.next().await.unwrap();
    let resume = || session.get().with("last-event-id", first.id.as_deref().unwrap());
    let mut unknown = session.clone();
    unknown.id = "0".repeat(32);
    // Another user; the same user with another program.
    for token in ["bob", "alice-elsewhere"] {
        for ask in [ping(), session.get(), resume(), session.delete()] {
            let method = ask.method.clone();
            let foreign = send(&world.service, signed(ask, token)).await;
            assert_eq!(foreign.status, 404, "{method}");
            let none = match method {
                Method::POST => unknown.post(request(1, "ping", json!({}))),
                Method::GET => unknown.get(),
                _ => unknown.delete(),
            };
            let none = send(&world.service, signed(none, token)).await;
            assert_eq!((foreign.status, &foreign.body), (none.status, &none.body));
        }
        let batch = session.post(json!([request(1, "ping", json!({}))]));
        assert_eq!(send(&world.service, signed(batch, token)).await.status, 404);
    }
    assert_eq!(send(&world.service, signed(ping(), "alice-writes")).await.status, 200);
    assert_eq!(open(&world.service, signed(resume(), "alice-reads")).await.status, 200);
    // A session id does not replace a token.
    assert_eq!(send(&world.service, ping()).await.status, 401);
}

#[tokio::test]
async fn request_states_are_bound_to_the_principal() {
    let world = World::new();
    let asks = json!({"elicitation": {}});
    let first = modern_with(1, "tools/call", json!({"name": "name"}), asks.clone());
    let answer = send(&world.service, signed(first, "alice-reads")).await.json();
    let state = answer["result"]["requestState"].as_str().unwrap().to_owned();
    let key = answer["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let response = json!({ key: {"action": "accept", "content": {"name": "x"}} });
    let params = json!({"name": "name", "requestState": state, "inputResponses": response});
    let again = modern_with(2, "tools/call", params, asks);
    for token in ["bob", "alice-elsewhere"] {
        let stolen = send(&world.service, signed(again.clone(), token)).await;
        assert_eq!(stolen.status, 400, "{}", stolen.body);
    }
    let answer = send(&world.service, signed(again, "alice-writes")).await;
    assert_eq!(answer.text(), "named", "{}", answer.body);
}

#[tokio::test]
async fn http_with_sse_is_guarded() {
    let world = World::new();
    let get = signed(Ask::new(Method::GET, "/sse"), "alice-reads");
    let mut stream = open(&world.service, get).await;
    let endpoint = format!("/{}", stream.next().await.unwrap().data);
    let post = |message: Value, token: &str| {
        send(&world.service, signed(Ask::post(message).path(&endpoint), token))
    };
    assert_eq!(post(initialize("2024-11-05"), "bob").await.status, 404);
    assert_eq!(post(initialize("2024-11-05"), "alice-reads").await.status, 202);
    stream.next().await.unwrap();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    post(ready, "alice-reads").await;
    let write = request(1, "tools/call", json!({"name": "write"}));
    check_scopes(&post(write.clone(), "alice-reads").await, "mcp write audit", json!(1));
    assert_eq!(world.done(), 0);
    assert_eq!(post(write, "alice-writes").await.status, 202);
    loop {
        let event = stream.next().await.unwrap().json();
        if event["id"] == 1 {
            assert_eq!(event["result"]["content"][0]["text"], "written");
            break;
        }
    }
}

#[tokio::test]
async fn http_with_sse_refuses_every_kind_of_message_that_needs_scopes() {
    let world = World::new();
    let get = signed(Ask::new(Method::GET, "/sse"), "alice-reads");
    let mut stream = open(&world.service, get).await;
    let endpoint = format!("/{}", stream.next().await.unwrap().data);
    let post = |message: Value| {
        send(&world.service, signed(Ask::post(message).path(&endpoint), "alice-reads"))
    };
    assert_eq!(post(initialize("2025-03-26")).await.status, 202);
    stream.next().await.unwrap();
    let more = [("resources/subscribe", json!({"uri": "notes://secret"}), "mcp write")];
    for (method, params, scopes) in guarded().into_iter().chain(more) {
        check_scopes(&post(request("x", method, params)).await, scopes, json!("x"));
    }
    let batch = json!([
        request(1, "tools/call", json!({"name": "who"})),
        request(2, "tools/call", json!({"name": "write"})),
    ]);
    check_scopes(&post(batch).await, "mcp audit write", Value::Null);
    assert_eq!(world.done(), 0);
    // Unsubscribing needs no scopes.
    let unsubscribe = request(3, "resources/unsubscribe", json!({"uri": "notes://secret"}));
    assert_eq!(post(unsubscribe).await.status, 202);
}

#[tokio::test]
async fn a_batch_without_a_session_needs_its_scopes() {
    let world = World::with(bowline::http::Http::without_sessions);
    let batch = json!([request(1, "tools/call", json!({"name": "write"}))]);
    let answer = send(&world.service, signed(Ask::post(batch.clone()), "alice-reads")).await;
    check_scopes(&answer, "mcp audit write", Value::Null);
    assert_eq!(world.done(), 0);
    let answer = send(&world.service, signed(Ask::post(batch), "alice-writes")).await;
    assert_eq!(answer.json()[0]["result"]["content"][0]["text"], "written", "{}", answer.body);
}

#[tokio::test]
async fn a_pipe_carries_no_tokens_and_may_use_everything() {
    for revision in Revision::ALL {
        let done = Arc::new(Done::default());
        let client = bowline::testing::connect_in(server(&done), revision).await.unwrap();
        assert_eq!(client.call_tool("write", json!({})).text().await.unwrap(), "written");
        assert_eq!(done.0.load(Ordering::SeqCst), 1, "{revision}");
        assert_eq!(client.read_resource("notes://secret").await.unwrap().contents.len(), 1);
    }
}

#[test]
fn mistakes_are_reported_before_clients_connect() {
    let build = |tool: Tool| Server::new("x", "1").with(tool).http().into_service().unwrap_err();
    let error = build(Tool::new("t", || async { "x" }).scopes(["write"]));
    assert!(matches!(error, BuildError::Unguarded { .. }), "{error}");
    let error = build(Tool::new("t", || async { "x" }).scopes(["two words"]));
    assert!(matches!(error, BuildError::Scope { .. }), "{error}");
}

#[tokio::test]
async fn scopes_work_with_identify() {
    let tool = Tool::new("t", || async { "x" }).scopes(["write"]);
    let server = Server::new("x", "1").with(tool);
    let registry = server.registry();
    let service = server.http().identify(|parts| {
        let scopes = parts.headers.get("x-scopes")?.to_str().ok()?;
        Some(Principal::new("somebody").with_scopes(scopes.split(' ')))
    });
    let service = service.into_service().unwrap();
    assert_eq!(send(&service, call(1, "t").with("x-scopes", "read write")).await.status, 200);
    for ask in [call(1, "t"), call(1, "t").with("x-scopes", "read")] {
        let answer = send(&service, ask).await;
        assert_eq!(answer.status, 403);
        let expected = r#"Bearer error="insufficient_scope", scope="write""#;
        assert_eq!(answer.header("www-authenticate"), Some(expected));
    }
    // Later additions are guarded, too.
    registry.add(Tool::new("later", || async { "x" }).scopes(["late"])).unwrap();
    assert_eq!(send(&service, call(1, "later")).await.status, 403);
}

#[tokio::test]
async fn streams_end_with_the_token_that_opened_them() {
    let tokens = |token: String| async move {
        let mut identity = Identity::new("alice");
        if token == "brief" {
            identity.expires = Some(1);
        }
        Ok(identity)
    };
    let server = Server::new("x", "1").with(Resource::text("notes://a", "a", "x"));
    let registry = server.registry();
    let guard = Guard::new(RESOURCE, tokens).unwrap();
    let service = server.http().require_auth(guard).into_service().unwrap();
    let filter = json!({"resourcesListChanged": true});
    let listen = modern(1, "subscriptions/listen", json!({ "notifications": filter }));
    let mut stream = open(&service, signed(listen, "brief")).await;
    assert_eq!(stream.next().await.unwrap().method(), "notifications/subscriptions/acknowledged");
    assert_eq!(stream.next().await.unwrap().json()["id"], 1);
    assert_eq!(soon("the end", stream.next()).await, None);
    let session = open_session(&service, Revision::V2025_06_18, "brief").await;
    let mut stream = open(&service, signed(session.get(), "brief")).await;
    assert_eq!(soon("the end", stream.next()).await, None);
    drop(stream);
    let mut old = open(&service, signed(Ask::new(Method::GET, "/sse"), "brief")).await;
    assert_eq!(old.next().await.unwrap().name.as_deref(), Some("endpoint"));
    assert_eq!(soon("the end", old.next()).await, None);
    // With a token that does not expire, the stream stays open until there is a change.
    let mut lasting = open(&service, signed(session.get(), "lasting")).await;
    registry.add(Resource::text("notes://b", "b", "x")).unwrap();
    assert_eq!(lasting.next().await.unwrap().method(), "notifications/resources/list_changed");
}
