//! Notifications of changes, in both eras.

use bowline::client::{CallError, Wanted};
use bowline::{Limits, Resource, Revision, Server, Tool, testing};
use serde_json::{Value, json};

use crate::raw::{Raw, call, cancel, code, modern, notification, request, text};

const UPDATED: &str = "notifications/resources/updated";
const TOOLS: &str = "notifications/tools/list_changed";
const ID: &str = "io.modelcontextprotocol/subscriptionId";

fn server() -> Server {
    Server::new("subscriptions", "1.0.0")
        .limits(Limits { listens: 3, subscriptions: 2, ..Limits::default() })
        .with(Tool::new("tool", || async { "tool" }))
        .with(Resource::text("it://a", "a", "a"))
        .with(Resource::text("it://b", "b", "b"))
}

fn late(name: &str) -> Tool {
    Tool::new(name, || async { "late" })
}

#[tokio::test]
async fn a_session_hears_what_it_subscribed_to() {
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_11_25] {
        let server = server();
        let registry = server.registry();
        let mut raw = Raw::session(server, revision).await;
        let change = |id: u64, what: &str, uri: &str| {
            request(id, &format!("resources/{what}"), json!({ "uri": uri }))
        };
        raw.ask(&change(1, "subscribe", "it://a")).await;
        raw.ask(&change(2, "subscribe", "it://a")).await;
        registry.resource_updated("it://b");
        registry.resource_updated("it://a");
        let updated = raw.next().await;
        assert_eq!(updated["method"], UPDATED);
        assert_eq!(updated["params"], json!({ "uri": "it://a" }));
        raw.ask(&change(3, "unsubscribe", "it://a")).await;
        registry.resource_updated("it://a");
        raw.ask(&change(4, "unsubscribe", "it://never")).await;
        raw.ask(&change(5, "subscribe", "it://b")).await;
        raw.ask(&change(6, "subscribe", "it://c")).await;
        assert_eq!(code(&raw.ask(&change(7, "subscribe", "it://d")).await), -32602);
        assert_eq!(code(&raw.ask(&request(8, "resources/subscribe", json!({}))).await), -32602);
        assert!(raw.close().await.is_empty());
    }
}

#[tokio::test]
async fn changes_add_up_until_they_are_told() {
    let server = server();
    let registry = server.registry();
    let mut raw = Raw::start(server);
    raw.ask(&crate::raw::initialize("2025-11-25")).await;
    // Not before the handshake is complete.
    for name in ["one", "two", "three"] {
        registry.add(late(name)).unwrap();
    }
    assert!(registry.disable_tool("one") && registry.enable_tool("one"));
    assert!(raw.ask(&request(1, "ping", json!({}))).await["result"].is_object());
    raw.send(&notification("notifications/initialized", json!({}))).await;
    assert_eq!(raw.next().await["method"], TOOLS);
    assert!(raw.ask(&request(2, "ping", json!({}))).await["result"].is_object());
    assert!(registry.remove_tool("one") && !registry.remove_tool("one"));
    assert_eq!(raw.next().await["method"], TOOLS);
    assert!(raw.close().await.is_empty());
}

fn listen(id: impl Into<Value>, filter: Value) -> Value {
    modern(request(id, "subscriptions/listen", json!({ "notifications": filter })))
}

#[tokio::test]
async fn each_listener_hears_its_own_under_its_id() {
    let server = server();
    let registry = server.registry();
    let mut raw = Raw::start(server);
    let filters = [
        ("both", json!({ "toolsListChanged": true, "resourceSubscriptions": ["it://a"] })),
        ("tools", json!({ "toolsListChanged": true, "promptsListChanged": true })),
        ("none", json!({ "toolsListChanged": false })),
    ];
    for (id, filter) in filters {
        raw.send(&listen(id, filter)).await;
        let acknowledged = raw.next().await;
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
        let params = &acknowledged["params"];
        assert_eq!(params["_meta"][ID], id);
        // There are no prompts, so their changes are not reported.
        assert_eq!(params["notifications"].get("promptsListChanged"), None);
        assert_eq!(params["notifications"]["toolsListChanged"] == true, id != "none");
    }
    registry.add(late("late")).unwrap();
    let heard = [raw.next().await, raw.next().await];
    for (heard, id) in heard.iter().zip(["both", "tools"]) {
        assert_eq!((&heard["method"], &heard["params"]["_meta"][ID]), (&json!(TOOLS), &json!(id)));
    }
    raw.send(&cancel("both")).await;
    raw.ask(&modern(request(1, "tools/list", json!({})))).await;
    registry.resource_updated("it://a");
    assert!(registry.remove_tool("late"));
    assert_eq!(raw.next().await["params"]["_meta"][ID], "tools");
    let mut rest = raw.close().await;
    rest.sort_by_key(|end| end["id"].to_string());
    for (end, id) in rest.iter().zip(["none", "tools"]) {
        assert_eq!((&end["id"], &end["result"]["_meta"][ID]), (&json!(id), &json!(id)), "{end}");
    }
    assert_eq!(rest.len(), 2);
}

#[tokio::test]
async fn listening_has_its_limits() {
    let mut raw = Raw::start(server());
    let many = json!({ "resourceSubscriptions": ["it://a", "it://b", "it://c"] });
    assert_eq!(code(&raw.ask(&listen(0, many)).await), -32602);
    for id in 1..=3 {
        raw.send(&listen(id, json!({}))).await;
        assert_eq!(raw.next().await["params"]["_meta"][ID], id);
    }
    assert_eq!(code(&raw.ask(&listen(3, json!({}))).await), -32600, "the id is taken");
    assert_eq!(code(&raw.ask(&listen(4, json!({}))).await), -32600, "one too many");
    raw.send(&cancel(2)).await;
    raw.send(&listen(4, json!({}))).await;
    assert_eq!(raw.next().await["params"]["_meta"][ID], 4);
    assert_eq!(code(&raw.ask(&listen(5, json!("all"))).await), -32602);
    // The method does not exist in the legacy era.
    let legacy = request(6, "subscriptions/listen", json!({ "notifications": {} }));
    assert_ne!(code(&raw.ask(&legacy).await), 0);
    assert_eq!(text(&raw.ask(&modern(call(7, "tool", json!({})))).await), "tool");
    assert_eq!(raw.close().await.len(), 3);
}

#[tokio::test]
async fn changes_that_a_server_does_not_report_are_left_out_in_both_eras() {
    for revision in Revision::ALL {
        let only_tools = Server::new("tools", "1.0.0").with(late("a"));
        let client = testing::connect_in(only_tools, revision).await.unwrap();
        let wanted = Wanted::all_lists().resource("it://a");
        let granted = client.changes(wanted).await.unwrap().granted();
        assert_eq!(granted.tools_list_changed, Some(true), "{revision}");
        assert_eq!(granted.prompts_list_changed, None, "{revision}");
        assert_eq!(granted.resource_subscriptions, None, "{revision}");
        for (wanted, missing) in [
            (Wanted::new().prompts(), "prompts.listChanged"),
            (Wanted::new().resource("it://a").resources(), "resources.listChanged"),
            (Wanted::new().resource("it://a"), "resources.subscribe"),
        ] {
            let error = client.changes(wanted).await.err().unwrap();
            let CallError::Lacks { capability, .. } = &error else { panic!("{revision}: {error}") };
            assert_eq!(*capability, missing, "{revision}");
        }
        // Nothing is missing for somebody who wants nothing.
        assert!(client.changes(Wanted::new()).await.is_ok(), "{revision}");
    }
}
