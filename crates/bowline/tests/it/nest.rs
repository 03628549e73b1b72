//! Nested servers: names are prefixed for clients, handlers do not notice, and nothing is lost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::model::CacheScope;
use bowline::{
    Context, ErrorObject, HandlerError, Incoming, Limits, Next, Prompt, Resource, Revision, Server,
    Tool, testing,
};
use serde_json::json;

use crate::raw::{Raw, modern, request};

type Log = Arc<Mutex<Vec<String>>>;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Key {
    #[expect(dead_code, reason = "a prompt with an argument")]
    key: String,
}

/// A server that adds and removes tools, by their names without the prefix.
fn doors() -> Server {
    Server::new("doors", "1.0.0")
        .with(Tool::new("open", |context: Context, _: Nothing| async move {
            context.registry().enable_tool("enter").to_string()
        }))
        .with(Tool::new("enter", || async { "inside" }).disabled())
        .with(Tool::new("doors_count", || async { 1 }))
        .with(Tool::new("build", |context: Context, _: Nothing| async move {
            let late = Tool::new("late", |context: Context, _: Nothing| async move {
                context.registry().remove_tool("late").to_string()
            });
            context.registry().add(late).map_err(|error| HandlerError::failed(error.to_string()))
        }))
        .with(Prompt::new("knock", || async { "Knock." }))
        .with(Resource::new("doors://shut", "shut", |context: Context, _: Nothing| async move {
            context.registry().disable_tool("enter").to_string()
        }))
}

#[tokio::test]
async fn names_are_prefixed_once() {
    let server = Server::new("house", "1.0.0").nest("doors", doors());
    let names = ["doors_open", "doors_count", "doors_build"];
    assert_eq!(server.registry().tool_names(), names);
    let client = testing::connect(server).await.unwrap();
    assert_eq!(client.list_prompts().await.unwrap()[0].name, "doors_knock");
    assert_eq!(client.list_resources().await.unwrap()[0].uri, "doors://shut");
}

#[tokio::test]
async fn handlers_change_what_they_came_with_by_their_own_names() {
    let house = Server::new("house", "1.0.0").nest("doors", doors());
    let street = Server::new("street", "1.0.0").nest("house", house);
    let client = testing::connect_in(street, Revision::V2025_11_25).await.unwrap();
    let call = async |name: &str| client.call_tool(name, json!({})).text().await;
    let mut notifications = client.notifications();
    assert!(call("house_doors_enter").await.is_err());
    assert_eq!(call("house_doors_open").await.unwrap(), "true");
    notifications.next_of("notifications/tools/list_changed").await.unwrap();
    assert_eq!(call("house_doors_enter").await.unwrap(), "inside");
    let shut = client.read_resource("doors://shut").await.unwrap();
    assert_eq!(shut.contents[0].as_text(), Some("true"));
    assert!(call("house_doors_enter").await.is_err());
    // Later additions are prefixed, too.
    call("house_doors_build").await.unwrap();
    assert_eq!(call("house_doors_late").await.unwrap(), "true");
    assert!(call("house_doors_late").await.is_err());
}

/// A server whose middleware denies everything.
fn closed(log: &Log) -> Server {
    let log = Arc::clone(log);
    Server::new("closed", "1.0.0")
        .with(Tool::new("enter", || async { "inside" }))
        .with(
            Prompt::new("peek", |_: Key| async { "inside" })
                .complete("key", |_| async { vec!["inside".to_owned()] }),
        )
        .with(Resource::text("closed://room", "room", "inside"))
        .middleware(move |incoming: Incoming, _: Next| {
            log.lock().unwrap().push(format!("inner {}", incoming.method));
            async { Err(ErrorObject::invalid_request("closed").into()) }
        })
}

#[tokio::test]
async fn middleware_of_a_nested_server_guards_its_parts() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for prefix in [None, Some("my")] {
            let log = Log::default();
            let outer = Arc::clone(&log);
            let house = Server::new("house", "1.0.0")
                .with(Tool::new("open", || async { "open" }))
                .middleware(move |incoming: Incoming, next: Next| {
                    outer.lock().unwrap().push(format!("outer {}", incoming.method));
                    next.run(incoming)
                });
            let inner = closed(&log);
            let registry = inner.registry();
            let house = match prefix {
                Some(prefix) => house.nest(prefix, inner),
                None => house.with(inner),
            };
            let name =
                |own: &str| prefix.map_or_else(|| own.to_owned(), |it| format!("{it}_{own}"));
            // What the nested server adds later is guarded, too, under its own name.
            registry.add(Tool::new("late", || async { "inside" })).unwrap();
            let client = testing::connect_in(house, revision).await.unwrap();
            log.lock().unwrap().clear();
            let is_closed = |error: String| assert!(error.contains("closed"), "{error}");
            for tool in ["enter", "late"] {
                let entered = client.call_tool(name(tool), json!({})).text().await;
                is_closed(entered.unwrap_err().to_string());
            }
            let peeked = client.get_prompt(name("peek"), &[("key", "x")]).await;
            is_closed(peeked.unwrap_err().to_string());
            is_closed(client.read_resource("closed://room").await.unwrap_err().to_string());
            let methods = ["tools/call", "tools/call", "prompts/get", "resources/read"];
            let expected: Vec<_> = methods
                .iter()
                .flat_map(|it| [format!("outer {it}"), format!("inner {it}")])
                .collect();
            assert_eq!(*log.lock().unwrap(), expected, "{revision}");
            assert_eq!(client.call_tool("open", json!({})).text().await.unwrap(), "open");
            // It is gone under its own name, and its list changes.
            assert!(registry.remove_tool("late") && registry.disable_tool("enter"));
            assert_eq!(registry.tool_names(), ["open"]);
        }
    }
}

#[tokio::test]
async fn a_list_is_for_the_outermost_middleware_alone() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let log = Log::default();
        let outer = Arc::clone(&log);
        let house = Server::new("house", "1.0.0")
            .with(Tool::new("open", || async { "open" }))
            .nest("my", closed(&log))
            .middleware(move |incoming: Incoming, next: Next| {
                outer.lock().unwrap().push(format!("outer {}", incoming.method));
                next.run(incoming)
            });
        let client = testing::connect_in(house, revision).await.unwrap();
        log.lock().unwrap().clear();
        let tools = client.list_tools().await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["open", "my_enter"], "{revision}");
        assert_eq!(client.list_prompts().await.unwrap().len(), 1);
        assert_eq!(client.list_resources().await.unwrap().len(), 1);
        let expected = ["tools/list", "prompts/list", "resources/list"];
        assert_eq!(*log.lock().unwrap(), expected.map(|it| format!("outer {it}")), "{revision}");
    }
}

#[tokio::test]
async fn completion_and_subscriptions_of_a_nested_server_are_guarded() {
    let log = Log::default();
    let house = Server::new("house", "1.0.0").nest("my", closed(&log));
    let mut raw = Raw::session(house, Revision::V2025_11_25).await;
    let complete = json!({
        "ref": { "type": "ref/prompt", "name": "my_peek" },
        "argument": { "name": "key", "value": "" },
    });
    let uri = json!({ "uri": "closed://room" });
    for (method, params) in [("completion/complete", complete), ("resources/subscribe", uri)] {
        let answer = raw.ask(&request(1, method, params)).await;
        assert_eq!(answer["error"]["message"], "closed", "{answer}");
    }
    let filter = json!({ "notifications": { "resourceSubscriptions": ["closed://room"] } });
    let house = Server::new("house", "1.0.0").nest("my", closed(&log));
    let listen = modern(request(1, "subscriptions/listen", filter));
    let answer = Raw::start(house).ask(&listen).await;
    assert_eq!(answer["error"]["message"], "closed", "{answer}");
}

#[derive(Debug, PartialEq)]
struct Color(&'static str);

#[derive(Debug, PartialEq)]
struct Size(u32);

#[tokio::test]
async fn the_nearest_state_counts() {
    let tell = || {
        Tool::new("tell", |context: Context, _: Nothing| async move {
            let (color, size) = (context.state::<Color>()?, context.state::<Size>()?);
            Ok::<_, HandlerError>(format!("{} {}", color.0, size.0))
        })
        .needs_state::<Color>()
        .needs_state::<Size>()
    };
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let build = || {
            let inner = Server::new("inner", "1.0.0").with(tell()).state(Color("red"));
            let middle = Server::new("middle", "1.0.0").nest("in", inner).with(tell());
            let outer = Server::new("outer", "1.0.0").nest("mid", middle.state(Size(1)));
            outer.with(tell()).state(Color("blue")).state(Size(2))
        };
        let client = testing::connect_in(build(), revision).await.unwrap();
        let call = async |name: &str| client.call_tool(name, json!({})).text().await.unwrap();
        assert_eq!(call("mid_in_tell").await, "red 1");
        assert_eq!(call("mid_tell").await, "blue 1");
        assert_eq!(call("tell").await, "blue 2");
    }
}

#[tokio::test]
async fn the_deadline_of_a_nested_server_counts() {
    let waits = || Tool::new("waits", std::future::pending::<String>);
    let short = Limits { deadline: Duration::from_millis(20), ..Limits::default() };
    let inner = Server::new("inner", "1.0.0").with(waits()).limits(short);
    let outer = Server::new("outer", "1.0.0").nest("in", inner);
    let client = testing::connect(outer).await.unwrap();
    let error = client.call_tool("in_waits", json!({})).text().await.unwrap_err().to_string();
    assert!(error.contains("timed out"), "{error}");
}

#[tokio::test]
async fn instructions_follow_those_of_the_outer_server() {
    let inner = Server::new("inner", "1.0.0").instructions("Knock first.");
    let outer = Server::new("outer", "1.0.0").nest("doors", inner).instructions("Be quiet.");
    let mut raw = Raw::start(outer);
    let answer = raw.ask(&modern(request(1, "server/discover", json!({})))).await;
    assert_eq!(answer["result"]["instructions"], "Be quiet.\n\ndoors: Knock first.");
}

#[tokio::test]
async fn settings_that_would_be_lost_are_an_error() {
    let inner = || Server::new("inner", "1.0.0");
    let cases = [
        (inner().keys(bowline::seal::KeyRing::random()), "keys"),
        (inner().revisions(Revision::V2025_11_25.into()), "revisions"),
        (inner().cache(Duration::from_secs(1), CacheScope::Public), "cache"),
        (inner().experimental("x", serde_json::Map::new()), "experimental"),
    ];
    for (inner, setting) in cases {
        let outer = Server::new("outer", "1.0.0").with(inner);
        let error = testing::connect(outer).await.unwrap_err().to_string();
        let expected =
            format!("server \"inner\" is part of another one, and cannot have its own `{setting}`");
        assert!(error.contains(&expected), "{error}");
    }
}

/// Clients of the outer server hear of what the nested server changes.
#[tokio::test]
async fn changes_of_a_nested_server_are_reported() {
    let inner = Server::new("inner", "1.0.0").with(Resource::text("in://x", "x", "x"));
    let registry = inner.registry();
    let outer = Server::new("outer", "1.0.0").nest("in", inner);
    let mut raw = Raw::session(outer, Revision::V2025_11_25).await;
    raw.ask(&request(1, "resources/subscribe", json!({ "uri": "in://x" }))).await;
    registry.resource_updated("in://x");
    let updated = raw.next().await;
    assert_eq!(updated["params"]["uri"], "in://x", "{updated}");
    assert!(registry.remove_resource("in://x"));
    let changed = raw.next().await;
    assert_eq!(changed["method"], "notifications/resources/list_changed", "{changed}");
}
