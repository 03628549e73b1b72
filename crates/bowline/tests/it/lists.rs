//! Lists: pages, visibility, and changes.

use bowline::client::{CallError, Wanted};
use bowline::{Caller, Limits, Prompt, Registry, Resource, Revision, Server, Tool, testing};
use serde_json::{Value, json};

use crate::raw::{Raw, call, code, modern, request, text};

fn tool(name: &str) -> Tool {
    Tool::new(name, || async { "called" })
}

fn server() -> Server {
    let limits = Limits { page: 2, ..Limits::default() };
    ["a", "b", "c", "d", "e"]
        .into_iter()
        .fold(Server::new("lists", "1.0.0").limits(limits), |server, name| server.with(tool(name)))
        .with(Prompt::new("p", || async { "p" }))
        .with(Prompt::new("q", || async { "q" }))
        .with(Prompt::new("r", || async { "r" }))
        .with(Resource::text("it://x", "x", "x"))
}

async fn page(raw: &mut Raw, method: &str, cursor: Option<&Value>) -> Value {
    let mut params = json!({});
    if let Some(cursor) = cursor {
        params["cursor"] = cursor.clone();
    }
    raw.ask(&modern(request(1, method, params))).await
}

fn names(page: &Value) -> Vec<&str> {
    page["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn pages_follow_each_other() {
    let server = server();
    let registry = server.registry();
    let mut raw = Raw::start(server);
    let first = page(&mut raw, "tools/list", None).await;
    assert_eq!(names(&first), ["a", "b"]);
    let cursor = first["result"]["nextCursor"].clone();
    let second = page(&mut raw, "tools/list", Some(&cursor)).await;
    assert_eq!(names(&second), ["c", "d"]);
    let last = page(&mut raw, "tools/list", Some(&second["result"]["nextCursor"])).await;
    assert_eq!((names(&last), last["result"].get("nextCursor")), (vec!["e"], None));
    // Cursors of another list, made up, empty, of the wrong type.
    let foreign = page(&mut raw, "prompts/list", None).await["result"]["nextCursor"].clone();
    let odd = ["", "-", "0-1", "zz-1-2", "0-1-2-3", "0-ffffffffffffffffff-2", "é", "-1--2"];
    let wrong = odd.iter().map(|odd| json!(odd)).chain([foreign, json!(7), json!({})]);
    for cursor in wrong {
        assert_eq!(code(&page(&mut raw, "tools/list", Some(&cursor)).await), -32602, "{cursor}");
    }
    registry.add(tool("f")).unwrap();
    let outdated = page(&mut raw, "tools/list", Some(&cursor)).await;
    let message = outdated["error"]["message"].as_str().unwrap();
    assert!(code(&outdated) == -32602 && message.contains("outdated"), "{message}");
    assert!(raw.close().await.is_empty());
}

#[tokio::test]
async fn the_registry_changes_while_clients_are_connected() {
    let server = server();
    let registry = server.registry();
    let mut raw = Raw::start(server);
    async fn called(raw: &mut Raw, name: &str) -> bool {
        let answer = raw.ask(&modern(call(name, name, json!({})))).await;
        assert!(code(&answer) == -32602 || text(&answer) == "called", "{answer}");
        code(&answer) == 0
    }
    type Change = fn(&Registry) -> bool;
    let changes: [(Change, bool); 9] = [
        (|it| it.add(tool("x")).is_ok(), true),
        (|it| it.add(tool("x")).is_err(), true),
        (|it| it.disable_tool("x"), false),
        (|it| it.enable_tool("x"), true),
        (|it| it.remove_tool("x"), false),
        (|it| !it.remove_tool("x") && !it.enable_tool("x"), false),
        (|it| it.add(tool("x").disabled()).is_ok(), false),
        (|it| it.replace(tool("x")).is_ok(), true),
        // All parts are added, or none.
        (|it| it.add((tool("y"), tool("x"))).is_err(), true),
    ];
    for (step, (change, is_there)) in changes.into_iter().enumerate() {
        assert!(change(&registry), "step {step}");
        assert_eq!(called(&mut raw, "x").await, is_there, "step {step}");
        assert_eq!(registry.tool_names().contains(&"x".to_owned()), is_there, "step {step}");
    }
    assert!(!called(&mut raw, "y").await);
    assert!(registry.disable_resource("it://x"));
    assert_eq!(
        code(&raw.ask(&modern(request(1, "resources/read", json!({ "uri": "it://x" })))).await),
        -32602
    );
    assert!(registry.disable_prompt("p"));
    assert_eq!(
        code(&raw.ask(&modern(request(1, "prompts/get", json!({ "name": "p" })))).await),
        -32602
    );
    assert!(raw.close().await.is_empty());
}

/// What a caller must not see is not listed and not callable, as if it did not exist.
#[tokio::test]
async fn what_is_hidden_does_not_exist() {
    let is_modern = |caller: &Caller| caller.revision.is_modern();
    let server = || {
        Server::new("hides", "1.0.0")
            .with(tool("open"))
            .with(tool("hidden").visible_to(is_modern))
            .with(Prompt::new("hidden", || async { "p" }).visible_to(is_modern))
            .with(Resource::text("it://hidden", "x", "x").visible_to(is_modern))
    };
    for revision in Revision::ALL {
        let client = testing::connect_in(server(), revision).await.unwrap();
        let sees = revision.is_modern();
        assert_eq!(client.list_tools().await.unwrap().len(), 1 + usize::from(sees));
        assert_eq!(client.list_prompts().await.unwrap().len(), usize::from(sees));
        assert_eq!(client.list_resources().await.unwrap().len(), usize::from(sees));
        assert_eq!(client.call_tool("hidden", json!({})).await.is_ok(), sees);
        assert_eq!(client.get_prompt("hidden", &[]).await.is_ok(), sees);
        assert_eq!(client.read_resource("it://hidden").await.is_ok(), sees);
        let heard = client.changes(Wanted::new().resource("it://hidden")).await;
        assert_eq!(heard.is_ok(), sees, "{revision}");
        if !sees {
            let message = |error: CallError| error.to_string();
            let hidden = client.call_tool("hidden", json!({})).await.map_err(message).unwrap_err();
            let nothing = client.call_tool("nothin", json!({})).await.map_err(message).unwrap_err();
            assert_eq!(hidden, nothing.replace("nothin", "hidden"));
        }
    }
}
