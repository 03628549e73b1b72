//! Extensions of a server: what it declares, and the methods they add.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline::{
    Context, ErrorObject, Extension, HandlerError, Incoming, Middleware, Next, Outcome, Revision,
    Server, testing,
};
use serde_json::{Value, json};

use crate::raw::{Raw, code, modern, request};

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
