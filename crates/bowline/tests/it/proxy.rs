//! A server behind a server, in every pair of eras.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::client::{Change, Client, FormAnswer, Phase, UrlAnswer, Wanted};
use bowline::model::{
    self, CallToolResult, ContentBlock, CreateMessageParams, CreateMessageResult, LoggingLevel,
};
use bowline::proxy::Loss;
use bowline::{
    Context, Elicited, ErrorCode, ErrorObject, HandlerError, Incoming, Json, Limits, Next, Prompt,
    Proxy, Registry, Resource, Revision, Server, Structured, Tool, Verbatim, testing,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::raw::{Raw, call, code, modern, request};

const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// A guard against hanging; nothing else depends on time.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), what).await.expect("it never happens")
}

/// Every pair of eras: the front's client and the upstream server.
fn pairs() -> impl Iterator<Item = (Revision, Revision)> {
    ERAS.into_iter().flat_map(|front| ERAS.into_iter().map(move |upstream| (front, upstream)))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Any {}

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Who {
    name: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Note {
    id: String,
}

/// A proxy to a server that speaks one revision.
async fn proxy(server: Server, revision: Revision) -> Proxy {
    Proxy::connect_with(testing::builder(revision), server).await.unwrap()
}

/// A front with a proxy in it.
async fn front(server: Server, upstream: Revision) -> Server {
    Server::new("front", "1.0.0").nest("up", proxy(server, upstream).await)
}

async fn ask_all(context: Context) -> Result<String, HandlerError> {
    let form = match context.elicit::<Who>("Who?").await? {
        Elicited::Accepted(who) => who.name,
        other => format!("{other:?}", other = other.accepted().is_some()),
    };
    let url = context.elicit_url("Look", "https://example.com/x").await?;
    let roots = context.roots().await?;
    let sampled = context.sample(CreateMessageParams::default()).await?;
    Ok(format!("{form} {} {} {}", url.accepted().is_some(), roots[0].uri, sampled.model))
}

fn asking() -> Server {
    Server::new("asking", "1.0.0")
        .with(Tool::new("ask", |context: Context, _: Any| ask_all(context)))
        .with(Prompt::new("ask", |context: Context, _: Any| ask_all(context)))
        .with(Resource::new("ask:all", "ask", |context: Context, _: Any| ask_all(context)))
}

fn answering(revision: Revision) -> bowline::client::ClientBuilder {
    testing::builder(revision)
        .on_form(|form| async move {
            assert_eq!(form.message, "Who?");
            Ok(FormAnswer::accept(&json!({ "name": "Ada" })))
        })
        .on_url(|url| async move {
            assert_eq!(url.url, "https://example.com/x");
            Ok(UrlAnswer::Accept)
        })
        .on_sampling(|_| async {
            let result = json!({
                "role": "assistant",
                "content": { "type": "text", "text": "hi" },
                "model": "parrot"
            });
            Ok(serde_json::from_value::<CreateMessageResult>(result).unwrap())
        })
        .roots(["file:///home"])
}

#[tokio::test]
async fn questions_reach_the_caller_and_answers_come_back() {
    for (caller, upstream) in pairs() {
        let front = front(asking(), upstream).await;
        let client = answering(caller).connect(front).await.unwrap();
        let expected = "Ada true file:///home parrot";
        let tool = soon(client.call_tool("up_ask", json!({})).text()).await.unwrap();
        assert_eq!(tool, expected, "{caller} to {upstream}");
        let prompt = soon(client.get_prompt("up_ask", &[]).into_future()).await.unwrap();
        assert_eq!(json!(prompt.messages[0].content)["text"], expected, "{caller} to {upstream}");
        let read = soon(client.read_resource("ask:all").into_future()).await.unwrap();
        assert_eq!(read.contents[0].as_text(), Some(expected), "{caller} to {upstream}");
    }
}

#[tokio::test]
async fn a_caller_that_cannot_be_asked_gets_an_error_and_nothing_hangs() {
    for (caller, upstream) in pairs() {
        let client = testing::connect_in(front(asking(), upstream).await, caller).await.unwrap();
        let call = soon(client.call_tool("up_ask", json!({})).into_future()).await;
        let is_refused = call.is_err() || call.unwrap().is_error == Some(true);
        assert!(is_refused, "{caller} to {upstream}");
    }
}

fn varied() -> Server {
    let definition: model::Tool = serde_json::from_value(json!({
        "name": "odd",
        "inputSchema": { "type": "object", "properties": {}, "x-order": [2, 1] },
        "outputSchema": { "type": "object" },
        "_meta": { "example.com/a": 1 },
        "x-vendor": true
    }))
    .unwrap();
    let odd = Tool::from_model(definition, |_: Context, arguments: Json| async move {
        let mut result = CallToolResult::success(vec![ContentBlock::text("odd")]);
        result.structured_content = Some(arguments);
        result.meta.get_or_insert_default().set("example.com/b", 2);
        result.extra.insert("x-more".to_owned(), json!([1]));
        result
    });
    Server::new("varied", "1.0.0")
        .with(odd)
        .with(Tool::new("fails", |_: Context, _: Any| async {
            Err::<String, _>("it is broken".to_owned())
        }))
        .with(Tool::new("refuses", |_: Context, _: Any| async {
            let error = ErrorObject::new(ErrorCode(-31_999), "not today");
            Err::<String, _>(error.with_data(json!({ "until": "monday" }).into()))
        }))
        .with(Tool::new("log", |context: Context, _: Any| async move {
            context.log(LoggingLevel::Warning, "careful").await;
            for step in 1..=3 {
                context.progress(f64::from(step), 3.0, "counting");
            }
            "logged"
        }))
        .with(
            Prompt::new("hello", |who: Who| async move { format!("Hello, {}", who.name) })
                .complete("name", |typed| async move { typed.matching(&["Ada", "Alan", "Grace"]) }),
        )
        .with(Resource::text("notes:about", "about", "About notes."))
        .with(
            Resource::new("notes:{id}", "note", |note: Note| async move {
                if note.id == "none" {
                    let error = ErrorObject::new(ErrorCode::RESOURCE_NOT_FOUND, "no such note");
                    let error = error.with_data(json!({ "uri": "notes:none" }).into());
                    return Err(HandlerError::Refused(error));
                }
                Ok(Structured(json!({ "id": note.id })))
            })
            .complete("id", |typed| async move { typed.matching(&["one", "two"]) }),
        )
}

#[tokio::test]
async fn definitions_and_results_pass_unchanged() {
    for (caller, upstream) in pairs() {
        let which = format!("{caller} to {upstream}");
        let direct = testing::connect_in(varied(), caller).await.unwrap();
        let client = testing::connect_in(front(varied(), upstream).await, caller).await.unwrap();
        let mut expected = direct.list_tools().await.unwrap();
        expected.iter_mut().for_each(|tool| tool.name.insert_str(0, "up_"));
        assert_eq!(client.list_tools().await.unwrap(), expected, "{which}");
        let mut expected = direct.list_prompts().await.unwrap();
        expected.iter_mut().for_each(|prompt| prompt.name.insert_str(0, "up_"));
        assert_eq!(client.list_prompts().await.unwrap(), expected, "{which}");
        let lists = (client.list_resources().await, direct.list_resources().await);
        assert_eq!(lists.0.unwrap(), lists.1.unwrap(), "{which}");
        let lists =
            (client.list_resource_templates().await, direct.list_resource_templates().await);
        assert_eq!(lists.0.unwrap(), lists.1.unwrap(), "{which}");
        for tool in ["odd", "fails"] {
            let [mut through, mut plain] = [
                client.call_tool(format!("up_{tool}"), json!({ "a": [1] })).await.unwrap(),
                direct.call_tool(tool, json!({ "a": [1] })).await.unwrap(),
            ];
            // Each server signs its results.
            for result in [&mut through, &mut plain] {
                let meta = result.meta.iter_mut();
                meta.for_each(|meta| drop(meta.0.remove("io.modelcontextprotocol/serverInfo")));
            }
            assert_eq!(through, plain, "{which}");
        }
        let error = client.call_tool("up_refuses", json!({})).await.unwrap_err();
        let error = error.as_refusal().unwrap();
        assert_eq!((error.code.0, error.message.as_str()), (-31_999, "not today"), "{which}");
        assert_eq!(error.data.as_ref().unwrap().to_value(), json!({ "until": "monday" }));
        let prompt = client.get_prompt("up_hello", &[("name", "Ada")]).await.unwrap();
        let plain = direct.get_prompt("hello", &[("name", "Ada")]).await.unwrap();
        assert_eq!(prompt.messages, plain.messages, "{which}");
        assert_eq!(prompt.description, plain.description, "{which}");
        for uri in ["notes:about", "notes:two"] {
            let read = [client.read_resource(uri).await, direct.read_resource(uri).await];
            let [through, plain] = read.map(|read| read.unwrap().contents);
            assert_eq!(through, plain, "{which}");
        }
        // Both servers' own errors have the code of the caller's revision.
        let missing = if caller.is_modern() { -32602 } else { -32002 };
        for uri in ["notes:none", "other:x"] {
            let error = client.read_resource(uri).await.unwrap_err();
            assert_eq!(error.as_refusal().unwrap().code.0, missing, "{which}: {error}");
            assert!(error.is_resource_not_found(), "{which}: {error}");
        }
    }
}

/// Between servers of one revision nothing is lost, not even what only newer ones understand.
#[tokio::test]
async fn results_of_the_same_revision_pass_to_the_letter() {
    for revision in ERAS {
        let block =
            json!({ "type": "text", "text": "x", "x-inner": [1], "annotations": { "y": 2 } });
        let hologram = json!({ "type": "hologram", "depth": 3 });
        let result = json!({
            "content": [block, hologram], "x-outer": true, "_meta": { "example.com/b": 2 }
        });
        let given = result.clone();
        let odd = Tool::raw("odd", json!({ "type": "object" }), move |_: Context, _: Json| {
            let given = given.clone();
            async move { Verbatim(given.into()) }
        });
        let front = front(Server::new("odd", "1.0.0").with(odd), revision).await;
        let client = testing::connect_in(front, revision).await.unwrap();
        let call = client.call_json("tools/call", json!({ "name": "up_odd", "arguments": {} }));
        let mut found = call.await.unwrap().to_value();
        if revision.is_modern() {
            let members = found.as_object_mut().unwrap();
            assert_eq!(members.remove("resultType").unwrap(), "complete");
            let meta = members.get_mut("_meta").unwrap().as_object_mut().unwrap();
            let signed = meta.remove("io.modelcontextprotocol/serverInfo").unwrap();
            assert_eq!(signed["name"], "front");
        }
        assert_eq!(found, result, "{revision}");
    }
}

#[tokio::test]
async fn completion_progress_and_logs_are_forwarded() {
    for (caller, upstream) in pairs() {
        let which = format!("{caller} to {upstream}");
        let client = testing::connect_in(front(varied(), upstream).await, caller).await.unwrap();
        let names = client.complete_prompt("up_hello", ("name", "a"), &[]).await.unwrap();
        assert_eq!(names.completion.values, ["Ada", "Alan"], "{which}");
        let ids = client.complete_template("notes:{id}", ("id", "t"), &[]).await.unwrap();
        assert_eq!(ids.completion.values, ["two"], "{which}");
        let mut notifications = client.notifications();
        client.set_log_level(Some(LoggingLevel::Info)).await.unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hear = Arc::clone(&heard);
        let call = client.call_tool("up_log", json!({}));
        let call = call.on_progress(move |report| hear.lock().unwrap().push(report.progress));
        assert_eq!(soon(call.text()).await.unwrap(), "logged", "{which}");
        assert_eq!(heard.lock().unwrap().last(), Some(&3.0), "{which}");
        let log = soon(notifications.next_of("notifications/message")).await.unwrap();
        assert_eq!(log.params.to_value()["data"], "careful", "{which}");
    }
}

/// Counts handlers that run and handlers that were dropped.
#[derive(Default)]
struct Counts {
    started: Notify,
    dropped: Notify,
    running: AtomicUsize,
}

struct Running(Arc<Counts>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        self.0.dropped.notify_one();
    }
}

fn slow(counts: &Arc<Counts>) -> Server {
    let counts = Arc::clone(counts);
    Server::new("slow", "1.0.0").with(Tool::new("sleep", move |_: Context, _: Any| {
        let running = Running(Arc::clone(&counts));
        counts.running.fetch_add(1, Ordering::SeqCst);
        counts.started.notify_one();
        async move {
            let _running = running;
            std::future::pending::<String>().await
        }
    }))
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_upstream() {
    for (caller, upstream) in pairs() {
        let counts = Arc::new(Counts::default());
        let front = front(slow(&counts), upstream).await;
        let client = testing::connect_in(front, caller).await.unwrap();
        let call = client.call_tool("up_sleep", json!({}));
        let call = tokio::spawn(call.into_future());
        soon(counts.started.notified()).await;
        call.abort();
        soon(counts.dropped.notified()).await;
        assert_eq!(counts.running.load(Ordering::SeqCst), 0, "{caller} to {upstream}");
    }
}

#[tokio::test]
async fn lists_change_live_and_clients_are_told() {
    for (caller, upstream) in pairs() {
        let which = format!("{caller} to {upstream}");
        let server = varied().declare_all();
        let registry = server.registry();
        let front = front(server, upstream).await.with(Tool::new("up_mine", || async { "mine" }));
        let client = testing::connect_in(front, caller).await.unwrap();
        let mut changes = client.changes(Wanted::all_lists()).await.unwrap();
        let mut next = async || soon(changes.next()).await.unwrap().unwrap();
        registry.add(Tool::new("late", || async { "better than never" })).unwrap();
        assert_eq!(next().await, Change::Tools, "{which}");
        let late = client.call_tool("up_late", json!({})).text().await.unwrap();
        assert_eq!(late, "better than never", "{which}");
        // A name of the front's own is neither replaced nor removed.
        registry.add(Tool::new("mine", || async { "theirs" })).unwrap();
        registry.remove_tool("late");
        assert_eq!(next().await, Change::Tools, "{which}");
        soon(async {
            while names(&client).await.contains(&"up_late".to_owned()) {
                tokio::task::yield_now().await;
            }
        })
        .await;
        registry.remove_tool("mine");
        registry.add(Prompt::new("late", || async { "late" })).unwrap();
        while next().await != Change::Prompts {}
        assert_eq!(client.call_tool("up_mine", json!({})).text().await.unwrap(), "mine");
        client.get_prompt("up_late", &[]).await.unwrap();
        registry.remove_resource("notes:about");
        while next().await != Change::Resources {}
        assert_eq!(client.list_resources().await.unwrap(), [], "{which}");
    }
}

async fn names(client: &Client) -> Vec<String> {
    client.list_tools().await.unwrap().into_iter().map(|tool| tool.name).collect()
}

#[tokio::test]
async fn subscriptions_are_forwarded() {
    for (caller, upstream) in pairs() {
        let server = varied();
        let registry: Registry = server.registry();
        let client = testing::connect_in(front(server, upstream).await, caller).await.unwrap();
        let wanted = Wanted::new().resource("notes:about");
        let mut changes = client.changes(wanted).await.unwrap();
        // The subscription upstream follows; until it is there, updates go unnoticed.
        let touching = async {
            loop {
                registry.resource_updated("notes:about");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let change = tokio::select! {
            change = soon(changes.next()) => change.unwrap().unwrap(),
            () = touching => unreachable!(),
        };
        assert_eq!(change, Change::Resource("notes:about".to_owned()), "{caller} to {upstream}");
    }
}

/// A legacy session at a front whose upstream server has these notes, and how to change them.
async fn reader(server: Server) -> (Raw, Registry, Arc<bowline::proxy::Losses>) {
    let registry = server.registry();
    let proxy = proxy(server, Revision::V2025_11_25).await;
    let losses = proxy.losses();
    let front = Server::new("front", "1.0.0").with(proxy);
    (Raw::session(front, Revision::V2025_11_25).await, registry, losses)
}

fn about(id: u64, method: &str, note: impl std::fmt::Display) -> Value {
    request(id, method, json!({ "uri": format!("notes:{note}") }))
}

/// Changes a note until somebody hears of it.
async fn heard(raw: &mut Raw, registry: &Registry, uri: &str) {
    let touching = async {
        loop {
            registry.resource_updated(uri);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let told = tokio::select! {
        told = soon(raw.next()) => told,
        () = touching => unreachable!(),
    };
    assert_eq!(told["method"], "notifications/resources/updated", "{told}");
    assert_eq!(told["params"]["uri"], uri, "{told}");
}

#[tokio::test]
async fn readers_that_have_left_make_room_for_others() {
    let (mut raw, registry, losses) = reader(varied()).await;
    for note in 0..1024 {
        raw.ask(&about(2, "resources/subscribe", note)).await;
        raw.ask(&about(3, "resources/unsubscribe", note)).await;
    }
    let subscribed = raw.ask(&about(4, "resources/subscribe", "last")).await;
    assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    heard(&mut raw, &registry, "notes:last").await;
    // Nobody who has left is in the way of those who have not.
    assert_eq!(losses.count(Loss::Subscription), 0);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_refused_is_counted_and_made_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let server = varied().middleware(move |incoming: Incoming, next: Next| {
        let count = Arc::clone(&count);
        async move {
            let is_one = incoming.method == "resources/subscribe";
            if is_one && count.fetch_add(1, Ordering::SeqCst) == 0 {
                return Err(ErrorObject::invalid_request("not yet").into());
            }
            next.run(incoming).await
        }
    });
    let (mut raw, registry, losses) = reader(server).await;
    raw.ask(&about(2, "resources/subscribe", "one")).await;
    heard(&mut raw, &registry, "notes:one").await;
    assert_eq!((asked.load(Ordering::SeqCst), losses.count(Loss::Subscription)), (2, 1));
}

/// The subscription upstream ends after its last reader, also where nothing ever changes.
#[tokio::test(start_paused = true)]
async fn a_subscription_without_readers_ends() {
    let ended = Arc::new(Notify::new());
    let end = Arc::clone(&ended);
    let server = varied().middleware(move |incoming: Incoming, next: Next| {
        let end = Arc::clone(&end);
        async move {
            if incoming.method == "resources/unsubscribe" {
                end.notify_one();
            }
            next.run(incoming).await
        }
    });
    let (mut raw, registry, _) = reader(server).await;
    raw.ask(&about(2, "resources/subscribe", "one")).await;
    heard(&mut raw, &registry, "notes:one").await;
    raw.send(&about(3, "resources/unsubscribe", "one")).await;
    // The clock is paused: this waits for nothing.
    tokio::time::timeout(Duration::from_secs(3600), ended.notified()).await.unwrap();
}

#[tokio::test]
async fn calls_fail_with_the_name_of_an_upstream_that_is_gone() {
    for (caller, upstream) in pairs() {
        let counts = Arc::new(Counts::default());
        let proxy = proxy(slow(&counts), upstream).await;
        let connection = proxy.client().clone();
        let front = Server::new("front", "1.0.0").with(proxy);
        let client = testing::connect_in(front, caller).await.unwrap();
        let call = tokio::spawn(client.call_tool("sleep", json!({})).into_future());
        soon(counts.started.notified()).await;
        soon(connection.close()).await;
        for error in [
            soon(call).await.unwrap().unwrap_err(),
            client.call_tool("sleep", json!({})).await.unwrap_err(),
        ] {
            assert!(error.to_string().contains(r#""slow""#), "{caller} to {upstream}: {error}");
        }
    }
}

#[tokio::test]
async fn the_connection_ends_with_the_front() {
    let proxy = proxy(varied(), Revision::LATEST).await;
    let mut watch = proxy.client().watch();
    let front = Server::new("front", "1.0.0").nest("up", proxy);
    let street = Server::new("street", "1.0.0").nest("front", front);
    let client = testing::connect(street).await.unwrap();
    assert!(names(&client).await.contains(&"front_up_odd".to_owned()));
    client.close().await;
    watch.wait_for(Phase::Closed, Duration::from_secs(120)).await.unwrap();
}

/// On a pipe nothing says which call a question belongs to.
#[tokio::test]
async fn a_question_that_could_be_for_several_callers_is_refused() {
    let (ready, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (Arc::clone(&ready), Arc::clone(&go));
    let server = asking().with(Tool::new("wait", move |_: Context, _: Any| {
        let (tell, wait) = (Arc::clone(&tell), Arc::clone(&wait));
        async move {
            tell.notify_one();
            wait.notified().await;
            "waited"
        }
    }));
    let proxy = proxy(server, Revision::V2025_11_25).await;
    let server = |proxy: &Proxy| Server::new("front", "1.0.0").with(proxy.clone());
    let legacy = Revision::V2025_11_25;
    let eve = answering(legacy).connect(server(&proxy)).await.unwrap();
    let ada = answering(legacy).connect(server(&proxy)).await.unwrap();
    let waiting = tokio::spawn(eve.call_tool("wait", json!({})).into_future());
    soon(ready.notified()).await;
    let refused = soon(ada.call_tool("ask", json!({})).into_future()).await.unwrap();
    assert_eq!(refused.is_error, Some(true));
    assert!(json!(refused.content).to_string().contains("refused"), "{refused:?}");
    // The same session may ask: it is the same user.
    let text = soon(eve.call_tool("ask", json!({})).text()).await.unwrap();
    assert!(text.starts_with("Ada"), "{text}");
    go.notify_one();
    soon(waiting).await.unwrap().unwrap();
    let value: Value = json!(soon(ada.call_tool("ask", json!({})).into_future()).await.unwrap());
    assert!(value.to_string().contains("parrot"), "{value}");
}

/// A server whose tool asks two questions, one after the other.
fn twice() -> Server {
    Server::new("twice", "1.0.0").with(Tool::new("twice", |context: Context, _: Any| async move {
        context.elicit::<Who>("Who?").await?;
        context.elicit::<Who>("And who else?").await?;
        Ok::<_, HandlerError>("thanks")
    }))
}

/// The request again, with an answer to each question.
fn answered(id: u64, asked: &Value) -> Value {
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let answers: serde_json::Map<_, _> =
        requests.keys().map(|key| (key.clone(), json!({ "action": "decline" }))).collect();
    let state = &asked["result"]["requestState"];
    let params = json!({
        "name": "twice", "arguments": {}, "inputResponses": answers, "requestState": state
    });
    request(id, "tools/call", params)
}

/// A front whose upstream server asks, with so many connections to it, and the proxy.
async fn asking_twice(connections: usize) -> (Raw, Proxy) {
    let legacy = Revision::V2025_11_25;
    let builder = Proxy::builder(testing::builder(legacy)).most_connections(connections);
    let builder = builder.further(move || (testing::builder(legacy), twice().into()));
    let proxy = builder.connect(twice()).await.unwrap();
    (Raw::start(Server::new("front", "1.0.0").with(proxy.clone())), proxy)
}

/// Callers that do not come back do not keep others from calling.
#[tokio::test(start_paused = true)]
async fn a_caller_that_is_away_for_long_gives_its_connection_up() {
    let (mut raw, proxy) = asking_twice(3).await;
    let mut asked = Vec::new();
    for id in 1..=4 {
        asked.push(raw.ask(&modern(call(id, "twice", json!({})))).await);
        assert_eq!(asked.last().unwrap()["result"]["resultType"], "input_required", "{asked:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(proxy.losses().count(Loss::ExpiredCall), 1);
    for (id, asked) in (5..).zip(&asked) {
        let next = raw.ask(&modern(answered(id, asked))).await;
        assert_eq!(next["error"].is_object(), id == 5, "{id}: {next}");
    }
}

/// A front that is started again knows nothing of calls that waited, and does not begin anew.
#[tokio::test]
async fn a_call_that_waited_in_a_front_that_is_gone_fails_honestly() {
    let (mut raw, _proxy) = asking_twice(1).await;
    let asked = raw.ask(&modern(call(1, "twice", json!({})))).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    drop(raw);
    let (mut raw, _proxy) = asking_twice(1).await;
    let lost = raw.ask(&modern(answered(2, &asked))).await;
    assert_eq!(code(&lost), -32603, "{lost}");
    let message = lost["error"]["message"].as_str().unwrap();
    assert!(message.contains("effects may have happened"), "{lost}");
    // A handler that runs here does not stand for a call elsewhere.
    let mut own = Raw::start(twice());
    let refused = own.ask(&modern(answered(3, &asked))).await;
    assert_eq!(code(&refused), -32602, "{refused}");
}

/// Nothing is left of a call whose caller has come back.
#[tokio::test]
async fn a_question_that_is_answered_leaves_nothing_behind() {
    let (mut raw, _proxy) = asking_twice(1).await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let mut before = None;
    for round in 0..20 {
        let mut asked = raw.ask(&modern(call(round * 3 + 1, "twice", json!({})))).await;
        for step in 2..=3 {
            asked = raw.ask(&modern(answered(round * 3 + step, &asked))).await;
        }
        assert_eq!(asked["result"]["content"][0]["text"], "thanks", "{asked}");
        let most = *before.get_or_insert_with(tasks);
        soon(async {
            while tasks() > most {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// A bridge does not know how long a call may take.
#[tokio::test(start_paused = true)]
async fn only_the_caller_and_the_server_say_how_long_a_call_takes() {
    const LONG: Duration = Duration::from_secs(3 * 3600);
    for (caller, upstream) in pairs() {
        let limits = Limits { deadline: LONG, ..Limits::default() };
        let slow = Server::new("slow", "1.0.0").limits(limits).with(Tool::new("slow", || async {
            tokio::time::sleep(LONG / 2).await;
            "done"
        }));
        let client = testing::builder(caller);
        let client = client.connect(proxy(slow, upstream).await.into_server()).await.unwrap();
        let called = client.call_tool("slow", json!({})).timeout(LONG).idle_timeout(LONG);
        assert_eq!(called.text().await.unwrap(), "done", "{caller} to {upstream}");
    }
}

/// From its first question on, a legacy server on a pipe gets a connection for each caller at a
/// time, and no question is refused.
#[tokio::test]
async fn a_server_that_asks_gets_a_connection_for_each_caller() {
    let opened = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&opened);
    let legacy = Revision::V2025_11_25;
    let builder = Proxy::builder(testing::builder(legacy)).most_connections(3);
    let builder = builder.further(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        (testing::builder(legacy), twice().into())
    });
    let proxy = builder.connect(twice()).await.unwrap();
    let losses = proxy.losses();
    let mut raw = Raw::start(Server::new("front", "1.0.0").with(proxy));
    // Three callers are asked at the same time, and each gets its own next question.
    let mut asked = Vec::new();
    for id in 1..=3 {
        asked.push(raw.ask(&modern(call(id, "twice", json!({})))).await);
    }
    for (id, asked) in (4..).zip(asked.iter().rev()) {
        let next = raw.ask(&modern(answered(id, asked))).await;
        assert_eq!(next["result"]["resultType"], "input_required", "{next}");
    }
    assert_eq!(opened.load(Ordering::SeqCst), 2);
    assert_eq!(losses.count(Loss::AmbiguousQuestion), 0);
}

/// A modern caller that does not come back: the call to a legacy server does not wait for ever.
#[tokio::test]
async fn a_call_whose_caller_does_not_come_back_is_cancelled() {
    let counts = Arc::new(Counts::default());
    let counted = Arc::clone(&counts);
    let server =
        Server::new("asks", "1.0.0").with(Tool::new("ask", move |context: Context, _: Any| {
            let running = Running(Arc::clone(&counted));
            counted.running.fetch_add(1, Ordering::SeqCst);
            async move {
                let _running = running;
                ask_all(context).await
            }
        }));
    let limits = Limits { request_state_age: Duration::from_millis(50), ..Limits::default() };
    let proxy = proxy(server, Revision::V2025_11_25).await;
    let losses = proxy.losses();
    let front = Server::new("front", "1.0.0").nest("up", proxy).limits(limits);
    let mut raw = Raw::start(front);
    let asked = raw.ask(&modern(call(1, "up_ask", json!({})))).await;
    let (key, question) =
        asked["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["params"]["message"], "Who?", "{asked}");
    soon(counts.dropped.notified()).await;
    assert_eq!(counts.running.load(Ordering::SeqCst), 0);
    let params = json!({
        "name": "up_ask",
        "arguments": {},
        "inputResponses": { key: { "action": "decline" } },
        "requestState": asked["result"]["requestState"]
    });
    let late = raw.ask(&modern(request(2, "tools/call", params))).await;
    assert_eq!(code(&late), -32603, "{late}");
    let message = late["error"]["message"].as_str().unwrap();
    assert!(message.contains("effects may have happened"), "{late}");
    assert_eq!(losses.count(Loss::ExpiredCall), 1);
    assert_eq!(losses.count(Loss::LateAnswer), 1);
}
