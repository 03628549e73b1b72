//! Extensions of a server: what it declares, and the methods they add.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline::client::{CallError, ClientBuilder};
use bowline::proto::json::Extra;
use bowline::{
    Answer, Caller, Client, Context, ErrorObject, Extension, HandlerError, Incoming, Middleware,
    Next, Outcome, Prompt, Resource, Revision, Server, Tool, testing,
};
use serde_json::{Value, json};

use crate::raw::{Raw, call, code, modern, request, text};

const ID: &str = "com.example/groups";

#[derive(serde::Deserialize)]
struct Wanted {
    name: String,
}

fn groups() -> Extension {
    Extension::new(ID)
        .setting("listChanged", false)
        .method("groups/get", .., |_: Context, wanted: Wanted| async move {
            match wanted.name.as_str() {
                "none" => Err(ErrorObject::invalid_params("groups/get: no such group")),
                name => Ok(json!({ "group": { "name": name } })),
            }
        })
        .method("groups/era", ..Revision::V2026_07_28, |_: Context, _: Value| async {
            Ok::<_, HandlerError>(json!({ "era": "legacy" }))
        })
        .method("groups/era", Revision::V2026_07_28.., |_: Context, _: Value| async {
            Ok::<_, HandlerError>(json!({ "era": "modern" }))
        })
        .method("groups/list", .., |_: Context, _: Value| async {
            Ok::<_, HandlerError>(json!(["not an object"]))
        })
}

fn server() -> Server {
    Server::new("grouped", "1.0.0").with(groups())
}

#[tokio::test]
async fn a_server_declares_its_extensions_and_serves_their_methods_in_both_eras() {
    let mut raw = Raw::start(server());
    let found = raw.ask(&modern(request(1, "server/discover", json!({})))).await;
    assert_eq!(found["result"]["capabilities"]["extensions"][ID], json!({ "listChanged": false }));
    let answer = raw.ask(&modern(request(2, "groups/get", json!({ "name": "a" })))).await;
    assert_eq!(answer["result"]["group"]["name"], "a", "{answer}");
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    let answer = raw.ask(&modern(request(3, "groups/era", json!({})))).await;
    assert_eq!(answer["result"]["era"], "modern", "{answer}");

    let mut raw = Raw::session(server(), Revision::V2025_11_25).await;
    let answer = raw.ask(&request(1, "groups/get", json!({ "name": "a" }))).await;
    assert_eq!(answer["result"], json!({ "group": { "name": "a" } }));
    let answer = raw.ask(&request(2, "groups/era", json!({}))).await;
    assert_eq!(answer["result"]["era"], "legacy", "{answer}");
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said() {
    let mut raw = Raw::start(server());
    let mut ask = async |id: u8, method: &str, params: Value| {
        let answer = raw.ask(&modern(request(id, method, params))).await;
        (code(&answer), answer["error"]["message"].as_str().unwrap_or_default().to_owned())
    };
    let (code, message) = ask(1, "groups/get", json!({})).await;
    assert_eq!((code, message.as_str()), (-32602, "groups/get: params.name is missing"));
    let refused = (-32602, "groups/get: no such group".to_owned());
    assert_eq!(ask(2, "groups/get", json!({ "name": "none" })).await, refused);
    let (code, message) = ask(3, "groups/list", json!({})).await;
    assert_eq!((code, message.as_str()), (-32603, "groups/list: the result is not an object"));
    assert_eq!(ask(4, "groups/other", json!({})).await.0, -32601);
}

#[tokio::test]
async fn clients_can_be_required_to_declare_it_too() {
    let mut raw = Raw::start(Server::new("strict", "1.0.0").with(groups().for_declaring_clients()));
    let mut asked = modern(request(1, "groups/get", json!({ "name": "a" })));
    let answer = raw.ask(&asked).await;
    assert_eq!(code(&answer), -32021, "{answer}");
    let required = &answer["error"]["data"]["requiredCapabilities"];
    assert_eq!(*required, json!({ "extensions": { ID: {} } }));
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    asked["params"]["_meta"][capabilities] = json!({ "extensions": { ID: {} } });
    assert_eq!(raw.ask(&asked).await["result"]["group"]["name"], "a");
}

struct Counting(Arc<AtomicUsize>);

impl Middleware for Counting {
    fn handle(
        &self,
        incoming: Incoming,
        next: Next,
    ) -> Pin<Box<dyn Future<Output = Outcome> + Send>> {
        assert_eq!(incoming.method, "groups/get");
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(next.run(incoming))
    }
}

#[tokio::test]
async fn a_nested_server_brings_its_extensions_and_the_middleware_around_them() {
    let count = Arc::new(AtomicUsize::new(0));
    let inner = server().middleware(Counting(Arc::clone(&count)));
    let mut raw = Raw::start(Server::new("outer", "1.0.0").nest("in", inner));
    let found = raw.ask(&modern(request(1, "server/discover", json!({})))).await;
    assert!(found["result"]["capabilities"]["extensions"][ID].is_object(), "{found}");
    let answer = raw.ask(&modern(request(2, "groups/get", json!({ "name": "a" })))).await;
    assert_eq!(answer["result"]["group"]["name"], "a", "{answer}");
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn mistakes_are_found_before_the_first_client() {
    let nothing = |_: Context, _: Value| async { Ok::<_, HandlerError>(json!({})) };
    let of = |id: &str| Extension::new(id);
    let none = |_: Caller, _: String| async { None::<Value> };
    let cases = [
        (vec![of("groups")], "an id is a prefix and a name, as in com.example/groups"),
        (vec![of("a/b"), of("a/b")], "two extensions have the name \"a/b\""),
        (
            vec![of("a/b").method("tools/call", .., nothing)],
            "the protocol itself has a method \"tools/call\"",
        ),
        (
            vec![of("a/b").method("skills/list", .., nothing)],
            "the protocol itself has a method \"skills/list\"",
        ),
        (
            vec![of("a/b").capability("tools", json!({}))],
            "the protocol itself has a capability \"tools\"",
        ),
        (
            vec![of("a/b").capability("c", json!({})), of("a/c").capability("c", json!({}))],
            "extension \"a/c\": another extension declares the capability \"c\"",
        ),
        (
            vec![
                of("a/b").topic("a/t", "notifications/t", none),
                of("a/c").topic("a/t", "n", none),
            ],
            "extension \"a/c\": another extension has the topic \"a/t\"",
        ),
        (
            vec![of("a/b").topic("taskIds", "notifications/t", none)],
            "the protocol itself has a topic \"taskIds\"",
        ),
        (
            vec![of("a/b").topic("toolsListChanged", "notifications/t", none)],
            "the protocol itself has a topic \"toolsListChanged\"",
        ),
        (
            vec![of("a/b").method("x/y", .., nothing), of("a/c").method("x/y", .., nothing)],
            "extension \"a/c\": another handler has the method \"x/y\" in 2024-11-05",
        ),
    ];
    for (extensions, expected) in cases {
        let error = testing::connect(Server::new("wrong", "1.0.0").with(extensions)).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let late = server().registry().add(Extension::new("a/b")).unwrap_err().to_string();
    assert!(late.contains("a server that runs cannot be extended"), "{late}");
}

/// An extension that uses everything there is: receipts for calls, a mark on tools, a topic.
fn receipts() -> Extension {
    let receipt = |incoming: Incoming, next: Next| async move {
        match next.run(incoming).await {
            Ok(Answer::Tool(result)) => {
                let text = result.content.len();
                let receipt = json!({ "resultType": "com.example/receipt", "blocks": text });
                Ok(Answer::Verbatim(receipt.into()))
            }
            outcome => outcome,
        }
    };
    Extension::new("com.example/receipts")
        .around_calls(receipt)
        .decorate_tools(|tool, revision| {
            if revision.is_modern() {
                tool.description = Some("with a receipt".to_owned());
            }
        })
        .topic(
            "com.example/prices",
            "notifications/com.example/price",
            |_: Caller, name: String| async move {
                (name == "tea").then(|| json!({ "name": name, "price": 3 }))
            },
        )
        .for_declaring_clients()
}

/// A modern request of a client that has declared it.
fn declared(mut request: Value) -> Value {
    let capabilities =
        &mut request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    capabilities["extensions"] = json!({ "com.example/receipts": {} });
    request
}

#[tokio::test]
async fn an_extension_wraps_calls_and_decorates_tools() {
    let tool = Tool::new("say", || async { "hello" });
    let mut raw = Raw::start(Server::new("shop", "1.0.0").with(tool).with(receipts()));
    let plain = raw.ask(&modern(call(1, "say", json!({})))).await;
    assert_eq!(text(&plain), "hello");
    let receipt = raw.ask(&declared(modern(call(2, "say", json!({}))))).await;
    assert_eq!(receipt["result"]["resultType"], "com.example/receipt");
    assert_eq!(receipt["result"]["blocks"], 1);
    let listed = raw.ask(&modern(request(3, "tools/list", json!({})))).await;
    assert_eq!(listed["result"]["tools"][0]["description"], "with a receipt");
    let tool = Tool::new("say", || async { "hello" });
    let server = Server::new("shop", "1.0.0").with(tool).with(receipts());
    let mut raw = Raw::session(server, Revision::V2025_11_25).await;
    let listed = raw.ask(&request(3, "tools/list", json!({}))).await;
    assert_eq!(listed["result"]["tools"][0].get("description"), None);
}

#[tokio::test]
async fn an_extension_reports_to_those_who_listen() {
    let server = Server::new("shop", "1.0.0").with(receipts());
    let registry = server.registry();
    let mut raw = Raw::start(server);
    let filter = json!({ "notifications": { "com.example/prices": ["tea", "coffee"] } });
    let listen = |id: &str| modern(request(id, "subscriptions/listen", filter.clone()));
    assert_eq!(code(&raw.ask(&listen("undeclared")).await), -32021);
    raw.send(&declared(listen("listen"))).await;
    let ack = raw.next().await;
    let granted = &ack["params"]["notifications"];
    assert_eq!(*granted, json!({ "com.example/prices": ["tea"] }));
    for _ in 0..2 {
        let told = raw.next().await;
        assert_eq!(told["method"], "notifications/com.example/price");
        assert_eq!(told["params"]["price"], 3);
        let id = &told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(*id, "listen");
        registry.topic_changed("com.example/prices", "coffee");
        registry.topic_changed("com.example/prices", "tea");
    }
}

#[derive(serde::Deserialize, bowline::schemars::JsonSchema)]
#[schemars(crate = "bowline::schemars")]
struct Named {
    #[expect(dead_code, reason = "a template needs its variable")]
    x: String,
}

#[tokio::test]
async fn an_extension_decorates_every_list() {
    let extension = Extension::new("com.example/marks")
        .decorate_prompts(|it, _| it.description = Some("a prompt".to_owned()))
        .decorate_resources(|it, _| it.description = Some("a resource".to_owned()))
        .decorate_templates(|it, _| it.description = Some("a template".to_owned()));
    let server = || {
        Server::new("marked", "1.0.0")
            .with(Prompt::new("p", || async { "hello" }))
            .with(Resource::text("a://b", "b", "text"))
            .with(Resource::new("a://c/{x}", "c", |_: Named| async { "text" }))
    };
    let mut raw = Raw::start(server().with(extension));
    let mut plain = Raw::start(server());
    for (method, list, expected) in [
        ("prompts/list", "prompts", "a prompt"),
        ("resources/list", "resources", "a resource"),
        ("resources/templates/list", "resourceTemplates", "a template"),
    ] {
        let asked = modern(request(1, method, json!({})));
        let listed = raw.ask(&asked).await;
        assert_eq!(listed["result"][list][0]["description"], expected, "{listed}");
        let listed = plain.ask(&asked).await;
        assert_eq!(listed["result"][list][0].get("description"), None, "{listed}");
    }
}

#[tokio::test]
async fn an_extension_is_declared_where_it_exists_and_where_clients_look() {
    let server = || {
        let modern = receipts().declared_in(Revision::MODERN..);
        let tool = Tool::new("say", || async { "hello" });
        Server::new("shop", "1.0.0")
            .with(tool)
            .with(modern.capability("receipts", json!({ "a": 1 })))
    };
    let mut raw = Raw::start(server());
    let found = raw.ask(&modern(request(1, "server/discover", json!({})))).await;
    let capabilities = &found["result"]["capabilities"];
    assert!(capabilities["extensions"]["com.example/receipts"].is_object(), "{found}");
    assert_eq!(capabilities["receipts"], json!({ "a": 1 }));

    let mut raw = Raw::start(server());
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "extensions": { "com.example/receipts": {} } },
        "clientInfo": { "name": "test", "version": "1.0.0" },
    });
    let found = raw.ask(&request(1, "initialize", hello)).await;
    let capabilities = &found["result"]["capabilities"];
    assert_eq!(capabilities.get("extensions"), None, "{found}");
    assert_eq!(capabilities["receipts"], json!({ "a": 1 }));
    raw.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    // The client has declared it, but in a revision that does not have it.
    assert_eq!(text(&raw.ask(&call(2, "say", json!({}))).await), "hello");
}

#[tokio::test]
async fn a_method_reports_before_it_answers_and_not_after() {
    let (kept, after) = tokio::sync::oneshot::channel();
    let kept = std::sync::Mutex::new(Some(kept));
    let extension = Extension::new("a/b").method("x/y", .., move |context: Context, _: Value| {
        let kept = kept.lock().unwrap().take();
        async move {
            for count in 1..=3 {
                assert!(context.notify("notifications/x", json!({ "count": count })).await);
            }
            if let Some(kept) = kept {
                let _ = kept.send(context);
            }
            Ok::<_, HandlerError>(json!({}))
        }
    });
    let mut raw = Raw::start(Server::new("reports", "1.0.0").with(extension));
    raw.send(&modern(request(1, "x/y", json!({})))).await;
    for count in 1..=3 {
        let told = raw.next().await;
        assert_eq!(told["method"], "notifications/x", "{told}");
        assert_eq!(told["params"], json!({ "count": count }));
    }
    assert!(raw.next().await["result"].is_object());
    let context = after.await.unwrap();
    assert!(!context.notify("notifications/x", json!({ "count": 4 })).await);
}

#[tokio::test]
async fn an_extension_is_told_when_its_server_stops() {
    let (told, mut stopped) = tokio::sync::mpsc::unbounded_channel();
    let extension = Extension::new("a/b").on_stop(move |_| {
        let told = told.clone();
        async move {
            tokio::task::yield_now().await;
            let _ = told.send(());
        }
    });
    let client = testing::connect(Server::new("stops", "1.0.0").with(extension)).await.unwrap();
    client.ping().await.unwrap();
    assert!(stopped.try_recv().is_err());
    client.close().await;
    assert_eq!(stopped.recv().await, Some(()));
}

#[tokio::test]
async fn a_client_claims_results_of_its_extensions_and_no_others() {
    let connect = async |builder: ClientBuilder| {
        let tool = Tool::new("say", || async { "hello" });
        let server = Server::new("shop", "1.0.0").with(tool).with(receipts());
        let builder = builder.extension("com.example/receipts", Extra::new());
        builder.connect(server).await.unwrap()
    };
    let builder = || Client::builder("test", "1.0.0");
    let claims = |builder: ClientBuilder| {
        builder.on_result("com.example/receipt", |client, receipt| async move {
            let peer = client.peer().unwrap();
            let text =
                format!("{} {}", peer.info.as_ref().unwrap().name, receipt.to_value()["blocks"]);
            Ok(json!({ "content": [{ "type": "text", "text": text }] }).into())
        })
    };
    let client = connect(claims(builder())).await;
    assert_eq!(client.call_tool("say", json!({})).text().await.unwrap(), "shop 1");
    let params = json!({ "name": "say", "arguments": {} });
    let result = client.call_json("tools/call", params.clone()).await.unwrap();
    assert_eq!(result.to_value()["content"][0]["text"], "shop 1");
    let once = client.call_json("tools/call", params).once().await.unwrap();
    assert_eq!(once.to_value()["resultType"], "com.example/receipt");

    let client = connect(builder()).await;
    let error = client.call_tool("say", json!({})).await.unwrap_err().to_string();
    assert!(error.contains("\"com.example/receipt\", which is unknown"), "{error}");
    let other = builder().on_result("com.example/other", |_, result| async { Ok(result) });
    let error = connect(other).await.call_tool("say", json!({})).await.unwrap_err().to_string();
    assert!(error.contains("which is unknown"), "{error}");

    let never = builder().on_result("com.example/receipt", |_, _| std::future::pending());
    let call = connect(never).await.call_tool("say", json!({}));
    let error = call.timeout(std::time::Duration::from_millis(20)).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
}
