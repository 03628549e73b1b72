//! Every row of the table of translation, and everything that it says cannot be translated, against
//! the bridge itself. A row without a test fails.

use bowline::client::Target;
use bowline::proxy::Loss;
use bowline::{Era, ErrorObject, Revision, Revisions, Server, testing};
use bowline_gateway::bridge::rules::{LOSSES, ROWS};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use super::scenes::play;
use super::world::{Side, Way, World, bridge_to, connect_as, soon};

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;

/// The pairs that the table is about: client, server.
fn pairs() -> [(Side, Side); 2] {
    let [legacy, modern] = [LEGACY, MODERN].map(|revision| Side { way: Way::Http, revision });
    [(legacy, modern), (modern, legacy)]
}

async fn scenes(names: &[&str]) {
    for (near, far) in pairs() {
        let mut world = World::new(near, far).await;
        for name in names {
            play(name, &mut world).await.unwrap_or_else(|problem| {
                panic!("{near} → {far}: {name}: {problem}");
            });
        }
    }
}

#[tokio::test]
async fn every_row_is_true() {
    for row in ROWS {
        match row.name {
            "opening" => scenes(&["introduction"]).await,
            "capabilities" => capabilities().await,
            "session" => scenes(&["upstream restart"]).await,
            // The server behind HTTP rejects requests whose headers are missing.
            "headers" => scenes(&["plain"]).await,
            "questions" => scenes(&["sampling", "roots", "two questions", "three rounds"]).await,
            "refusals" => refusals().await,
            "url" => {
                scenes(&["url"]).await;
                visits().await;
            }
            "forms" => scenes(&["form"]).await,
            "roots_change" => roots_change().await,
            "list_changed" => scenes(&["list changed"]).await,
            "subscribe" => scenes(&["subscribe"]).await,
            "log" => scenes(&["log"]).await,
            "ping" => ping().await,
            "progress" => scenes(&["progress"]).await,
            "cancel" => scenes(&["cancel"]).await,
            "results" => results().await,
            "errors" => errors().await,
            "arguments" => arguments().await,
            "requests" => requests().await,
            "extensions" => extensions().await,
            "tasks" => tasks().await,
            "completion" => completion().await,
            "lists" => lists().await,
            other => panic!("the row {other:?} has no test"),
        }
    }
}

#[tokio::test]
async fn every_loss_has_its_stated_answer() {
    for loss in LOSSES {
        match loss.name {
            "question_outside_call" => question_outside_call().await,
            "log_outside_call" => log_outside_call().await,
            "roots_push" => roots_change().await,
            "old_elicitation" => old_elicitation().await,
            "structured" => results().await,
            "lasting_task" => lasting_task().await,
            "multi_select" => multi_select().await,
            "replay" => replay().await,
            // Tests of the SDK's proxy have these:
            // `a_question_that_could_be_for_several_callers_is_refused`,
            // `a_server_that_asks_gets_a_connection_for_each_caller` and
            // `a_call_whose_caller_does_not_come_back_…`, `a_subscription_that_is_refused_…`.
            "question_of_several"
            | "process_state"
            | "parked_call"
            | "late_answer"
            | "subscription" => {}
            // What is left out leaves no trace.
            "visits" => {}
            other => panic!("the loss {other:?} has no test"),
        }
    }
}

/// What the server hears about its client.
async fn capabilities() {
    use bowline::{Context, Tool};
    let tells = || {
        Server::new("tells", "1").with(Tool::raw(
            "tell",
            json!({ "type": "object" }),
            |context: Context, _: bowline::Json| async move {
                let capabilities = &context.caller().capabilities;
                format!(
                    "{} {}",
                    capabilities.sampling.is_some(),
                    capabilities.elicitation.is_some()
                )
            },
        ))
    };
    for (near, far) in [(LEGACY, MODERN), (LEGACY, LEGACY), (MODERN, LEGACY), (MODERN, MODERN)] {
        let server = tells().revisions(Revisions::only(far));
        let near = Side { way: Way::Stdio, revision: near };
        let client = testing::builder(near.revision)
            .on_sampling(|_| async { Err(ErrorObject::invalid_request("never asked")) });
        let (client, _bridge) = connect_as(client, near, bridge_to(server.into())).await;
        let told = soon(client.call_tool("tell", json!({})).text()).await.unwrap();
        assert_eq!(told, "true false", "{near} to {far}");
    }
}

async fn refusals() {
    for (near, far) in pairs() {
        let world = World::new(near, far).await;
        let World { counts, .. } = &world;
        let server = super::world::server(counts).revisions(Revisions::only(far.revision));
        let near = Side { way: Way::Stdio, ..near };
        let client = testing::builder(near.revision)
            .on_sampling(|_| async { Err(ErrorObject::invalid_request("not for you")) })
            .on_form(|_| async { Ok(bowline::client::FormAnswer::Decline) });
        let (client, _bridge) = connect_as(client, near, bridge_to(server.into())).await;
        match soon(client.call_tool("sample", json!({})).into_future()).await {
            Ok(result) => assert_eq!(result.is_error, Some(true), "{near} → {far}"),
            Err(error) => drop(error),
        }
        let form = soon(client.call_tool("form", json!({})).text()).await.unwrap();
        assert_eq!(form, "nobody", "{near} → {far}");
    }
}

/// The server gets the roots of the moment when it asks.
async fn roots_change() {
    for (near, far) in pairs() {
        let world = World::new(near, far).await;
        let moved = vec![bowline::model::Root::new("file:///elsewhere")];
        world.client.set_roots(moved).await.unwrap();
        let roots = soon(world.client.call_tool("roots", json!({})).text()).await.unwrap();
        assert_eq!(roots, "file:///elsewhere", "{near} → {far}");
    }
}

async fn ping() {
    for (near, far) in pairs() {
        soon(World::new(near, far).await.client.ping()).await.unwrap();
    }
}

/// A result that is not an object, and what only one era writes.
async fn results() {
    use bowline::{Structured, Tool};
    for (near, far) in pairs() {
        let list = || Tool::new("list", || async { Structured(json!([1, 2])) });
        let server =
            Server::new("results", "1").with(list()).revisions(Revisions::only(far.revision));
        let near = Side { way: Way::Stdio, ..near };
        let client = testing::builder(near.revision);
        let (client, _bridge) = connect_as(client, near, bridge_to(server.into())).await;
        let params = json!({ "name": "list", "arguments": {} });
        let result = soon(client.call_json("tools/call", params).into_future()).await.unwrap();
        let result = result.to_value();
        assert_eq!(result["resultType"].is_string(), near.revision.is_modern(), "{result}");
        assert!(result["content"][0]["text"].as_str().unwrap().contains('1'), "{result}");
        if !near.revision.is_modern() {
            assert!(!result["structuredContent"].is_array(), "{result}");
        }
    }
}

async fn errors() {
    for (near, far) in pairs() {
        let world = World::new(near, far).await;
        let error = soon(world.client.read_resource("note:none").into_future()).await.unwrap_err();
        let code = error.as_refusal().unwrap().code.0;
        assert_eq!(code, if near.revision.is_modern() { -32602 } else { -32002 }, "{near} → {far}");
    }
    scenes(&["error"]).await;
    // What means something else in the other era.
    use bowline::{ErrorCode, Tool};
    for (near, far) in pairs() {
        let code = if far.revision.is_modern() { -32021 } else { -32050 };
        let tool = Tool::new("refuse", move || async move {
            let error = ErrorObject::new(ErrorCode(code), "not like this");
            let data = json!({ "requiredCapabilities": { "sampling": {} } });
            Err::<String, _>(error.with_data(data.into()))
        });
        let server = Server::new("far", "1").with(tool).revisions(Revisions::only(far.revision));
        let near = Side { way: Way::Stdio, ..near };
        let client = testing::builder(near.revision);
        let (client, _bridge) = connect_as(client, near, bridge_to(server.into())).await;
        let called = soon(client.call_tool("refuse", json!({})).into_future()).await;
        if near.revision.is_modern() {
            let error = called.unwrap_err();
            let error = error.as_refusal().unwrap();
            assert_eq!(error.code.0, -32603);
            let data = error.data.as_ref().unwrap().to_value();
            assert_eq!(data["original"]["code"], -32050, "{data}");
        } else {
            let result = called.unwrap();
            assert_eq!(result.is_error, Some(true));
            let text = json!(result.content).to_string();
            assert!(text.contains("sampling"), "{text}");
        }
    }
}

/// A server of 2025-11-25 that does nothing before its user has visited a URL.
async fn visits() {
    use bowline::client::UrlAnswer;
    use bowline::{ErrorCode, Tool};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    for answer in [UrlAnswer::Accept, UrlAnswer::Decline] {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let tool = Tool::new("visit", move || {
            let is_first = counted.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                let visit = json!({ "mode": "url", "message": "Log in", "url": "https://example.com/x", "elicitationId": "e1" });
                let error = ErrorObject::new(ErrorCode(-32042), "log in first");
                let error = error.with_data(json!({ "elicitations": [visit] }).into());
                if is_first { Err(error) } else { Ok("in") }
            }
        });
        let server = Server::new("far", "1").with(tool).revisions(Revisions::only(LEGACY));
        let near = Side { way: Way::Stdio, revision: MODERN };
        let client = testing::builder(MODERN).on_url(move |url| async move {
            assert_eq!(url.url, "https://example.com/x");
            Ok(answer)
        });
        let (client, _bridge) = connect_as(client, near, bridge_to(server.into())).await;
        let called = soon(client.call_tool("visit", json!({})).text()).await;
        assert_eq!(called.is_ok(), answer == UrlAnswer::Accept, "{called:?}");
        assert_eq!(calls.load(Ordering::SeqCst), if called.is_ok() { 2 } else { 1 });
    }
}

/// The server judges arguments, in its own words.
async fn arguments() {
    use bowline::{Context, Json, Tool};
    let echo = |_: Context, arguments: Json| async move { arguments.to_value().to_string() };
    for (near, far) in pairs() {
        let tool = Tool::raw("echo", json!({ "type": "object" }), echo);
        let server = Server::new("echo", "1").with(tool).revisions(Revisions::only(far.revision));
        let near = Side { way: Way::Stdio, ..near };
        let (client, _bridge) =
            connect_as(testing::builder(near.revision), near, bridge_to(server.into())).await;
        let odd = json!({ "unknown": [1, null], "deep": { "x": 1e3 } });
        let echoed = soon(client.call_tool("echo", odd.clone()).text()).await.unwrap();
        assert_eq!(serde_json::from_str::<Value>(&echoed).unwrap(), odd, "{near} → {far}");
    }
}

/// What the bridge does not understand passes: metadata, unknown methods, any URI.
async fn requests() {
    use bowline::{Context, Extension, HandlerError, Tool};
    for (near, far) in pairs() {
        let shout = |_: Context, params: Value| async move {
            Ok::<_, HandlerError>(json!({ "heard": params }))
        };
        let extension = Extension::new("com.example/shout").method("com.example/shout", .., shout);
        let link = Tool::new("link", || async { "secret:1" });
        let server = Server::new("odd", "1")
            .with(extension)
            .with(link)
            .with(bowline::Resource::text("listed:1", "listed", "listed"))
            .revisions(Revisions::only(far.revision));
        let near = Side { way: Way::Stdio, ..near };
        let (client, _bridge) =
            connect_as(testing::builder(near.revision), near, bridge_to(server.into())).await;
        let params = json!({ "loud": true, "_meta": { "example.com/a": [1], "baggage": "b=2" } });
        let result = soon(client.call_json("com.example/shout", params).into_future()).await;
        let heard = result.unwrap().to_value()["heard"].clone();
        assert_eq!(heard["loud"], true, "{near} → {far}: {heard}");
        assert_eq!(heard["_meta"]["example.com/a"], json!([1]), "{near} → {far}: {heard}");
        assert_eq!(heard["_meta"]["baggage"], "b=2", "{near} → {far}: {heard}");
        // The server itself says that it has no such resource.
        let error = soon(client.read_resource("secret:1").into_future()).await.unwrap_err();
        assert!(error.is_resource_not_found(), "{near} → {far}: {error}");
    }
}

/// What both sides declare of extensions reaches the other side.
async fn extensions() {
    use bowline::{Context, Extension, Tool};
    for (near, far) in pairs() {
        let tell = |context: Context, _: bowline::Json| async move {
            context.caller().capabilities.has_extension("com.example/pictures").to_string()
        };
        let tool = Tool::raw("tell", json!({ "type": "object" }), tell);
        let server = Server::new("odd", "1")
            .with(Extension::new("com.example/groups").setting("deep", 2))
            .with(tool)
            .revisions(Revisions::only(far.revision));
        let near = Side { way: Way::Stdio, ..near };
        let client = testing::builder(near.revision)
            .extension("com.example/pictures", serde_json::Map::new());
        let (client, _bridge) = connect_as(client, near, bridge_to(server.into())).await;
        let peer = client.peer().unwrap();
        let offered = json!(peer.capabilities.extensions);
        assert_eq!(offered["com.example/groups"]["deep"], 2, "{near} → {far}: {offered}");
        let told = soon(client.call_tool("tell", json!({})).text()).await.unwrap();
        assert_eq!(told, "true", "{near} → {far}");
    }
}

async fn completion() {
    use bowline::Prompt;
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Who {
        name: String,
    }
    for (near, far) in pairs() {
        let prompt = Prompt::new("hello", |who: Who| async move { who.name })
            .complete("name", |typed| async move { typed.matching(&["Ada", "Grace"]) });
        let server =
            Server::new("names", "1").with(prompt).revisions(Revisions::only(far.revision));
        let near = Side { way: Way::Stdio, ..near };
        let (client, _bridge) =
            connect_as(testing::builder(near.revision), near, bridge_to(server.into())).await;
        let found = soon(client.complete_prompt("hello", ("name", "a"), &[]).into_future()).await;
        assert_eq!(found.unwrap().completion.values, ["Ada"], "{near} → {far}");
    }
}

async fn lists() {
    for (near, far) in pairs() {
        let world = World::new(near, far).await;
        let tools = soon(world.client.list_tools().into_future()).await.unwrap();
        let found: Vec<_> = tools.iter().map(|tool| tool.name.clone()).collect();
        assert_eq!(found, world.registry.tool_names(), "{near} → {far}");
    }
}

/// A server of one revision with tools that run as tasks, one of which asks.
fn with_tasks(revision: Revision) -> Server {
    use bowline::model::CreateMessageParams;
    use bowline::tasks::TaskMode;
    use bowline::{Context, HandlerError, Tool};
    let ask = |context: Context| async move {
        let said = context.sample(CreateMessageParams::default()).await?;
        Ok::<_, HandlerError>(said.model)
    };
    Server::new("tasks", "1")
        .with(Tool::new("must", || async { "done" }).task(TaskMode::Required))
        .with(Tool::new("may", ask).task(TaskMode::Optional))
        .revisions(Revisions::only(revision))
}

/// Clients get tasks in the generation that they know, and are asked from within.
async fn tasks() {
    let same = [LEGACY, MODERN].map(|revision| {
        let side = Side { way: Way::Http, revision };
        (side, side)
    });
    for (near, far) in pairs().into_iter().chain(same) {
        for way in [Way::Stdio, Way::Http] {
            let near = Side { way, ..near };
            let client = super::world::answering(near.revision);
            let target = with_tasks(far.revision).into();
            let (client, _bridge) = connect_as(client, near, bridge_to(target)).await;
            for (tool, expected) in [("must", "done"), ("may", "parrot")] {
                let started = soon(client.call_tool(tool, json!({})).start()).await.unwrap();
                assert!(started.task().is_some(), "{near} → {far}: {tool} is not a task");
                let result = soon(started.wait()).await;
                let result = result.unwrap_or_else(|it| panic!("{near} → {far}: {tool}: {it}"));
                let text = json!(result.content).to_string();
                assert!(text.contains(expected), "{near} → {far}: {tool}: {text}");
            }
        }
    }
}

/// A task that the bridge has not made is unknown.
async fn lasting_task() {
    for (near, far) in pairs() {
        let near = Side { way: Way::Stdio, ..near };
        let connect = async || {
            let client = super::world::answering(near.revision);
            connect_as(client, near, bridge_to(with_tasks(far.revision).into())).await
        };
        let (client, _bridge) = connect().await;
        let started = soon(client.call_tool("must", json!({})).start()).await.unwrap();
        let (client, _bridge) = connect().await;
        let unknown = client.resume_task(started.task().unwrap().id());
        let error = soon(unknown.status()).await.unwrap_err();
        assert!(error.as_refusal().is_some(), "{near} → {far}: {error}");
    }
}

/// A choice of several, which 2025-06-18 cannot express.
async fn multi_select() {
    use bowline::model::ElicitFormParams;
    use bowline::{Context, Json, Tool};
    let choose = |context: Context, _: Json| async move {
        let form: ElicitFormParams = serde_json::from_value(json!({
            "message": "Which?",
            "requestedSchema": { "type": "object", "properties": { "which": {
                "type": "array", "items": { "type": "string", "enum": ["a", "b"] }
            } } },
        }))
        .unwrap();
        let answer = context.ask("which").elicit_form(form.message, form.requested_schema).await?;
        Ok::<_, bowline::HandlerError>(answer.accepted().is_some().to_string())
    };
    for (near, far) in [(Revision::V2025_06_18, MODERN), (LEGACY, MODERN)] {
        let tool = Tool::raw("choose", json!({ "type": "object" }), choose);
        let server = Server::new("forms", "1").with(tool).revisions(Revisions::only(far));
        let side = Side { way: Way::Stdio, revision: near };
        let client = super::world::answering(near).on_form(|_| async {
            Ok(bowline::client::FormAnswer::accept(&json!({ "which": ["a"] })))
        });
        let bridge = bridge_to(server.into());
        let (client, _bridge) = connect_as(client, side, bridge).await;
        let called = soon(client.call_tool("choose", json!({})).text()).await.unwrap();
        assert_eq!(called, (near == LEGACY).to_string(), "{near}");
    }
}

/// A modern server that dies while it works on a call: the call fails, and is not made again.
async fn replay() {
    for near in [LEGACY, MODERN] {
        let [near, far] = [near, MODERN].map(|revision| Side { way: Way::Http, revision });
        let mut world = World::new(near, far).await;
        let call = tokio::spawn(world.client.call_tool("sleep", json!({})).into_future());
        soon(world.counts.started.notified()).await;
        world.restart().await;
        let failed = soon(call).await.unwrap();
        assert!(failed.is_err(), "{near}: {failed:?}");
        // A connection that broke just now may take one more call with it.
        soon(async { while play("plain", &mut world).await.is_err() {} }).await;
        let again =
            tokio::time::timeout(std::time::Duration::ZERO, world.counts.started.notified());
        assert!(again.await.is_err(), "{near}: the call was made again");
    }
}

/// A client of a revision without elicitation.
async fn old_elicitation() {
    let near = Side { way: Way::Http, revision: Revision::V2025_03_26 };
    for revision in [LEGACY, MODERN] {
        let mut world = World::new(near, Side { way: Way::Http, revision }).await;
        play("form", &mut world).await.unwrap();
        play("url", &mut world).await.unwrap();
    }
}

/// A legacy server that says what the test wants, when it wants.
struct Script {
    lines: BufReader<tokio::io::ReadHalf<DuplexStream>>,
    writer: tokio::io::WriteHalf<DuplexStream>,
}

impl Script {
    /// The server, opened, behind a bridge with a modern client.
    async fn open() -> (Self, Target) {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let (reader, writer) = tokio::io::split(ours);
        (Self { lines: BufReader::new(reader), writer }, Target::stream(theirs))
    }

    async fn next(&mut self) -> Value {
        let mut line = String::new();
        soon(self.lines.read_line(&mut line)).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn send(&mut self, message: Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Answers until the client has opened the session and read the lists.
    async fn handshake(&mut self) {
        loop {
            let asked = self.next().await;
            let result = match asked["method"].as_str().unwrap_or_default() {
                "initialize" => json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "tools": {}, "logging": {} },
                    "serverInfo": { "name": "script", "version": "1" },
                }),
                "tools/list" => json!({ "tools": [] }),
                "notifications/initialized" => continue,
                "server/discover" => {
                    let error = json!({ "code": -32601, "message": "no" });
                    self.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
                    continue;
                }
                other => panic!("{other}"),
            };
            let is_last = result.get("tools").is_some();
            self.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).await;
            if is_last {
                return;
            }
        }
    }
}

async fn question_outside_call() {
    let (mut script, target) = Script::open().await;
    let bridge = bridge_to(target);
    let (connected, ()) = tokio::join!(bridge.server(), script.handshake());
    let (_server, proxy) = connected.unwrap();
    script.send(json!({ "jsonrpc": "2.0", "id": 5, "method": "roots/list" })).await;
    let refused = script.next().await;
    assert_eq!((&refused["id"], refused["error"].is_object()), (&json!(5), true), "{refused}");
    assert_eq!(proxy.losses().count(Loss::QuestionOutsideCall), 1);
    let summary = bowline_gateway::bridge::rules::sum_up(&proxy.losses()).unwrap();
    assert_eq!(summary, "not translated: a question outside any call (1)");
}

/// Roots of the command line are there outside calls, too.
#[tokio::test]
async fn configured_roots_need_no_client() {
    let (mut script, target) = Script::open().await;
    let bridge = bowline_gateway::bridge::Bridge {
        roots: vec!["file:///work".to_owned()],
        ..bridge_to(target)
    };
    let (connected, ()) = tokio::join!(bridge.server(), script.handshake());
    let (_server, proxy) = connected.unwrap();
    script.send(json!({ "jsonrpc": "2.0", "id": 5, "method": "roots/list" })).await;
    let answer = script.next().await;
    assert_eq!(answer["result"]["roots"], json!([{ "uri": "file:///work" }]), "{answer}");
    assert_eq!(proxy.losses().count(Loss::QuestionOutsideCall), 0);
}

async fn log_outside_call() {
    let (mut script, target) = Script::open().await;
    let bridge = bridge_to(target);
    let (connected, ()) = tokio::join!(bridge.server(), script.handshake());
    let (_server, proxy) = connected.unwrap();
    let params = json!({ "level": "error", "data": "alone" });
    let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
    script.send(log).await;
    script.send(json!({ "jsonrpc": "2.0", "id": 6, "method": "ping" })).await;
    assert_eq!(script.next().await["id"], 6);
    assert_eq!(proxy.losses().count(Loss::LogOutsideCall), 1);
}

#[test]
fn the_table_names_both_eras() {
    let text = bowline_gateway::bridge::rules::explain(Era::Legacy, Era::Modern);
    assert!(text.starts_with("legacy (2024-11-05 to 2025-11-25) client, modern"), "{text}");
}
