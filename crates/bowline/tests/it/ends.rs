//! Middleware sees every end of every request, exactly once, in both eras.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::model::LoggingLevel;
use bowline::{
    Answer, Completing, Context, ErrorObject, HandlerError, Incoming, Limits, Next, Outcome,
    Prompt, Resource, Revision, Server, Tool,
};
use serde_json::{Value, json};
use tokio::task::yield_now;

use self::examples::{Metrics, count, ending};
use crate::raw::{Raw, call, cancel, code, initialize, modern, request, text};

#[path = "../../examples/middleware.rs"]
#[expect(dead_code, reason = "a test does not run the example's server")]
#[expect(unreachable_pub, reason = "it is an example of its own")]
pub(crate) mod examples;

pub(crate) const BOTH: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Empty {}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    number: u64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    #[expect(dead_code, reason = "a form with one field")]
    name: String,
}

pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// Writes down every request and its end. It waits in between, so it is not done at once.
pub(crate) fn recording(log: &Log, server: Server) -> Server {
    let log = Arc::clone(log);
    server.middleware(move |incoming: Incoming, next: Next| {
        let log = Arc::clone(&log);
        async move {
            let what = format!("{} {}", incoming.method, incoming.name.clone().unwrap_or_default());
            let outcome = next.run(incoming).await;
            for _ in 0..3 {
                yield_now().await;
            }
            log.lock().unwrap().push(format!("{}: {}", what.trim(), ending(&outcome)));
            outcome
        }
    })
}

async fn until(log: &Log, wanted: &str) {
    let found = async {
        while !log.lock().unwrap().iter().any(|line| line == wanted) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(120), found).await;
    assert!(found.is_ok(), "{wanted}: {:?}", log.lock().unwrap());
}

pub(crate) fn server() -> Server {
    let limits = Limits { grace: Duration::from_secs(1), ..Limits::default() };
    Server::new("ends", "1.0.0")
        .limits(limits)
        .with(Tool::new("quick", || async { "quick" }))
        .with(Tool::new("number", |it: Number| async move { it.number }))
        .with(Tool::new("fails", || async { Err::<String, _>("no luck") }))
        .with(Tool::new("refuses", || async {
            Err::<String, _>(HandlerError::Refused(ErrorObject::invalid_request("no")))
        }))
        .with(Tool::new("panics", || async {
            if true {
                panic!("on purpose");
            }
        }))
        .with(Tool::new("slow", std::future::pending::<String>).timeout(Duration::from_millis(20)))
        .with(Tool::new("waits", std::future::pending::<String>))
        .with(Tool::new("asks", |context: Context, _: Empty| async move {
            let name = context.elicit::<Name>("Name?").await.map_err(HandlerError::from)?;
            Ok::<_, HandlerError>(format!("{}", matches!(name, bowline::Elicited::Accepted(_))))
        }))
        .with(
            Prompt::new("prompt", |it: Number| async move { it.number.to_string() })
                .complete("number", |_: Completing| async { vec!["7".to_owned()] }),
        )
        .with(Resource::text("it://x", "x", "x"))
}

pub(crate) async fn start(server: Server, revision: Revision) -> Raw {
    match revision.is_modern() {
        true => Raw::start(server),
        false => Raw::session(server, revision).await,
    }
}

pub(crate) fn in_era(revision: Revision, request: Value) -> Value {
    if revision.is_modern() { modern(request) } else { request }
}

/// Requests that both eras have, and how they end.
pub(crate) fn common() -> Vec<(Value, &'static str)> {
    let get = |name: &str, arguments: Value| {
        request(1, "prompts/get", json!({ "name": name, "arguments": arguments }))
    };
    let read = |uri: &str| request(1, "resources/read", json!({ "uri": uri }));
    let complete = json!({
        "ref": { "type": "ref/prompt", "name": "prompt" },
        "argument": { "name": "number", "value": "" },
    });
    vec![
        (call(1, "quick", json!({})), "tools/call quick: answered"),
        (call(1, "number", json!({ "number": "x" })), "tools/call number: tool_error"),
        (call(1, "fails", json!({})), "tools/call fails: tool_error"),
        (call(1, "refuses", json!({})), "tools/call refuses: failed"),
        (call(1, "panics", json!({})), "tools/call panics: panicked"),
        (call(1, "slow", json!({})), "tools/call slow: timed_out"),
        (call(1, "nobody", json!({})), "tools/call nobody: rejected"),
        (call(1, "quick", json!([])), "tools/call quick: rejected"),
        (request(1, "no/such", json!({})), "no/such: rejected"),
        (get("prompt", json!({ "number": "7" })), "prompts/get prompt: answered"),
        (get("prompt", json!({})), "prompts/get prompt: rejected"),
        (get("nobody", json!({})), "prompts/get nobody: rejected"),
        (read("it://x"), "resources/read it://x: answered"),
        (read("it://y"), "resources/read it://y: rejected"),
        (request(1, "tools/list", json!({})), "tools/list: answered"),
        (request(1, "tools/list", json!({ "cursor": "x" })), "tools/list: rejected"),
        (request(1, "prompts/list", json!({})), "prompts/list: answered"),
        (request(1, "completion/complete", complete), "completion/complete prompt: answered"),
    ]
}

pub(crate) fn of_era(revision: Revision) -> Vec<(Value, &'static str)> {
    let uri = || json!({ "uri": "it://x" });
    if revision.is_modern() {
        return vec![
            (request(1, "server/discover", json!({})), "server/discover: answered"),
            (call(1, "asks", json!({})), "tools/call asks: asked"),
        ];
    }
    vec![
        (request(1, "ping", json!({})), "ping: answered"),
        (request(1, "logging/setLevel", json!({ "level": "error" })), "logging/setLevel: answered"),
        (request(1, "logging/setLevel", json!({ "level": "x" })), "logging/setLevel: rejected"),
        (request(1, "resources/subscribe", uri()), "resources/subscribe it://x: answered"),
        (request(1, "resources/unsubscribe", uri()), "resources/unsubscribe it://x: answered"),
        (initialize("2025-11-25"), "initialize: rejected"),
    ]
}

#[tokio::test]
async fn every_end_is_seen_once() {
    for revision in BOTH {
        let (log, metrics) = (Log::default(), Arc::new(Metrics::default()));
        let server = recording(&log, server().middleware(count(&metrics)));
        let mut raw = start(server, revision).await;
        let mut expected = Vec::new();
        if !revision.is_modern() {
            expected.push("initialize: answered");
        }
        for (request, end) in common().into_iter().chain(of_era(revision)) {
            let answer = raw.ask(&in_era(revision, request)).await;
            assert_eq!(answer["error"].is_object(), !is_result(end), "{answer}");
            expected.push(end);
        }
        raw.send(&in_era(revision, call(7, "waits", json!({})))).await;
        raw.send(&cancel(7)).await;
        until(&log, "tools/call waits: cancelled").await;
        expected.push("tools/call waits: cancelled");
        raw.send(&in_era(revision, call(8, "waits", json!({})))).await;
        // The client has talked with the server, so it has gone and gets no answer.
        assert_eq!(raw.close().await, Vec::<Value>::new());
        expected.push("tools/call waits: disconnected");
        assert_eq!(*log.lock().unwrap(), expected, "{revision}");
        assert_eq!(metrics.running.load(Ordering::Relaxed), 0, "{revision}");
        let ended: u64 = metrics.ended.lock().unwrap().values().sum();
        assert_eq!(ended, expected.len() as u64, "{revision}");
    }
}

fn is_result(end: &str) -> bool {
    ["answered", "tool_error", "asked"].iter().any(|it| end.ends_with(it))
}

#[tokio::test]
async fn a_listen_request_ends_with_its_stream() {
    let listen = |id: &str| {
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        modern(request(id, "subscriptions/listen", filter))
    };
    let log = Log::default();
    let limits = Limits { listens: 2, ..Limits::default() };
    let server = recording(&log, server().limits(limits));
    let registry = server.registry();
    let mut raw = Raw::start(server);
    for id in ["a", "b"] {
        raw.send(&listen(id)).await;
        let acknowledged = raw.next().await;
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    }
    let refused = raw.ask(&listen("c")).await;
    assert_eq!(code(&refused), -32600, "{refused}");
    registry.disable_tool("quick");
    for _ in 0..2 {
        assert_eq!(raw.next().await["method"], "notifications/tools/list_changed");
    }
    raw.send(&cancel("a")).await;
    until(&log, "subscriptions/listen: cancelled").await;
    registry.enable_tool("quick");
    let changed = raw.next().await;
    let id = &changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(id, "b", "{changed}");
    let last = raw.close().await;
    assert_eq!((last.len(), &last[0]["id"]), (1, &json!("b")), "{last:?}");
    assert!(last[0]["result"].is_object(), "{last:?}");
    let ends =
        ["rejected", "cancelled", "answered"].map(|end| format!("subscriptions/listen: {end}"));
    assert_eq!(*log.lock().unwrap(), ends);
}

#[tokio::test]
async fn a_listen_request_that_was_cancelled_makes_room_at_once() {
    let listen = |id: u32| {
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        modern(request(id, "subscriptions/listen", filter))
    };
    let log = Log::default();
    let limits = Limits { listens: 1, ..Limits::default() };
    let mut raw = Raw::start(recording(&log, server().limits(limits)));
    raw.send(&listen(0)).await;
    for id in 1..20 {
        let first = raw.next().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        let refused = raw.ask(&listen(100 + id)).await;
        assert_eq!(code(&refused), -32600, "{refused}");
        // Both are read in one go.
        raw.send_bytes(format!("{}\n{}\n", cancel(id - 1), listen(id)).as_bytes()).await;
    }
}

#[tokio::test]
async fn a_batch_is_seen_request_by_request() {
    let log = Log::default();
    let mut raw = Raw::session(recording(&log, server()), Revision::V2025_03_26).await;
    let batch = json!([
        call(1, "quick", json!({})),
        request(2, "no/such", json!({})),
        call(3, "waits", json!({})),
        call(4, "panics", json!({})),
        cancel(3),
    ]);
    raw.send(&batch).await;
    let answers = raw.next().await;
    assert_eq!(answers.as_array().map(Vec::len), Some(3), "{answers}");
    until(&log, "tools/call waits: cancelled").await;
    let mut seen = log.lock().unwrap().split_off(1);
    seen.sort();
    let expected = [
        "no/such: rejected",
        "tools/call panics: panicked",
        "tools/call quick: answered",
        "tools/call waits: cancelled",
    ];
    assert_eq!(seen, expected);
}

/// Counts its runs before there is a future.
fn counted(
    runs: &Arc<AtomicUsize>,
) -> impl Fn() -> std::future::Ready<String> + Send + Sync + use<> {
    let runs = Arc::clone(runs);
    move || {
        runs.fetch_add(1, Ordering::SeqCst);
        std::future::ready("ran".to_owned())
    }
}

/// Not even the part of a handler before its future, nor its completer.
#[tokio::test]
async fn nothing_of_a_handler_runs_unless_middleware_lets_it() {
    for revision in BOTH {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = || counted(&runs);
        let completes = counted();
        let server = Server::new("closed", "1.0.0")
            .with(Tool::new("tool", counted()))
            .with(Prompt::new("prompt", counted()))
            .with(Resource::new("it://r", "r", counted()))
            .with(Prompt::new("typed", |_: Name| async { "typed" }).complete("name", move |_| {
                let ran = completes();
                async move { vec![ran.await] }
            }))
            .middleware(|incoming: Incoming, _: Next| async move {
                match &*incoming.method {
                    "initialize" => Ok(Answer::Empty),
                    method => Err(ErrorObject::invalid_request(format!("{method}: no")).into()),
                }
            });
        let mut raw = Raw::start(server);
        if !revision.is_modern() {
            raw.ask(&initialize(revision.as_str())).await;
        }
        let complete = json!({
            "ref": { "type": "ref/prompt", "name": "typed" },
            "argument": { "name": "name", "value": "" },
        });
        for refused in [
            call(1, "tool", json!({})),
            request(1, "prompts/get", json!({ "name": "prompt" })),
            request(1, "resources/read", json!({ "uri": "it://r" })),
            request(1, "completion/complete", complete),
        ] {
            let answer = raw.ask(&in_era(revision, refused)).await;
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.ends_with(": no"), "{answer}");
        }
        assert_eq!(runs.load(Ordering::SeqCst), 0, "{revision}");
    }
}

#[tokio::test]
async fn it_can_replace_any_outcome() {
    for revision in BOTH {
        let server = server().middleware(|incoming: Incoming, next: Next| async move {
            let is_call = incoming.method == "tools/call";
            match next.run(incoming).await {
                Err(failure) if is_call => {
                    let text = format!("{} instead", failure.kind);
                    Ok(Answer::Tool(bowline::model::CallToolResult::failure(text)))
                }
                outcome => outcome,
            }
        });
        let mut raw = start(server, revision).await;
        for (tool, expected) in [
            ("nobody", "rejected instead"),
            ("refuses", "failed instead"),
            ("panics", "panicked instead"),
            ("slow", "timed_out instead"),
        ] {
            let answer = raw.ask(&in_era(revision, call(1, tool, json!({})))).await;
            assert_eq!(text(&answer), expected, "{revision}: {answer}");
        }
    }
}

#[tokio::test]
async fn it_sees_the_request_as_it_came() {
    for revision in BOTH {
        let seen = Log::default();
        let log = Arc::clone(&seen);
        let server = server().middleware(move |incoming: Incoming, next: Next| {
            let arguments = incoming.arguments().unwrap_or("-").to_owned();
            let params = incoming.params.as_ref().is_some_and(|it| it.as_str().contains("extra"));
            let transport = incoming.context.transport();
            let line = format!("{} {arguments} {params} {transport:?}", incoming.method);
            log.lock().unwrap().push(line);
            next.run(incoming)
        });
        let mut raw = start(server, revision).await;
        seen.lock().unwrap().clear();
        let mut odd = call(1, "number", json!({ "number":  7 }));
        odd["params"]["extra"] = json!(true);
        raw.ask(&in_era(revision, odd)).await;
        raw.ask(&in_era(revision, request(1, "no/such", json!({})))).await;
        let expected = [r#"tools/call {"number":7} true Stream"#, "no/such - false Stream"];
        assert_eq!(*seen.lock().unwrap(), expected, "{revision}");
    }
}

/// Questions of middleware itself, before and after the handler asks.
#[tokio::test]
async fn middleware_may_ask() {
    let server = server().middleware(|incoming: Incoming, next: Next| async move {
        let sure = incoming.context.ask("sure").elicit::<Name>("Sure?").await;
        match sure.map_err(HandlerError::from) {
            Ok(_) => next.run(incoming).await,
            Err(error) => Err(ErrorObject::invalid_request(error.to_string()).into()),
        }
    });
    let mut raw = Raw::start(server);
    let mut answer = raw.ask(&modern(call(1, "asks", json!({})))).await;
    for key in ["sure", "elicit-1"] {
        let asked = answer["result"]["inputRequests"].as_object().unwrap();
        assert_eq!(asked.keys().collect::<Vec<_>>(), [key], "{answer}");
        let state = answer["result"]["requestState"].clone();
        let accepted = json!({ key: { "action": "accept", "content": { "name": "Ada" } } });
        let mut again = call(1, "asks", json!({}));
        again["params"]["inputResponses"] = accepted;
        again["params"]["requestState"] = state;
        answer = raw.ask(&modern(again)).await;
    }
    assert_eq!(text(&answer), "true", "{answer}");
}

/// Waits, unless there is nothing to wait for.
async fn pause(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

/// Whether middleware is done at once or later, by a task.
#[tokio::test]
async fn a_refused_handshake_can_be_repeated() {
    for delay in [Duration::ZERO, Duration::from_millis(5)] {
        let tries = Arc::new(AtomicUsize::new(0));
        let server = server().middleware(move |incoming: Incoming, next: Next| {
            let tries = Arc::clone(&tries);
            async move {
                pause(delay).await;
                let outcome = next.run(incoming).await;
                match tries.fetch_add(1, Ordering::SeqCst) {
                    0 => Err(ErrorObject::internal("not yet").into()),
                    _ => outcome,
                }
            }
        });
        let mut raw = Raw::start(server);
        assert_eq!(code(&raw.ask(&initialize("2025-06-18")).await), -32603);
        assert_eq!(code(&raw.ask(&call(1, "quick", json!({}))).await), -32600);
        let answer = raw.ask(&initialize("2025-06-18")).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{answer}");
        assert_eq!(text(&raw.ask(&call(1, "quick", json!({}))).await), "quick");
    }
}

/// Middleware that never ends is cut off in the end: it must not hold up a connection.
#[tokio::test]
async fn middleware_has_its_own_deadline() {
    for revision in BOTH {
        let limits = Limits {
            grace: Duration::from_millis(20),
            deadline: Duration::from_millis(20),
            ..Limits::default()
        };
        let hangs = |incoming: Incoming, next: Next| async move {
            if incoming.method != "tools/call" {
                return next.run(incoming).await;
            }
            let _: Outcome = next.run(incoming).await;
            std::future::pending().await
        };
        let mut raw = start(server().limits(limits).middleware(hangs), revision).await;
        let answer = raw.ask(&in_era(revision, call(1, "quick", json!({})))).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("timed out"), "{answer}");
        raw.send(&in_era(revision, call(2, "waits", json!({})))).await;
        raw.send(&cancel(2)).await;
        raw.close().await;
    }
}

/// Its log messages come before the answer, as those of handlers do.
#[tokio::test]
async fn it_can_log_after_the_handler() {
    let server = server().middleware(|incoming: Incoming, next: Next| async move {
        let context = incoming.context.clone();
        let outcome = next.run(incoming).await;
        context.log(LoggingLevel::Error, "after").await;
        outcome
    });
    let mut raw = Raw::start(server);
    let mut logged = modern(call(1, "quick", json!({})));
    logged["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    raw.send(&logged).await;
    assert_eq!(raw.next().await["method"], "notifications/message");
    assert_eq!(text(&raw.next().await), "quick");
}

/// The audit and the rate limit of the examples; the other two are in the tests above.
#[tokio::test]
async fn the_examples_do_what_they_say() {
    for revision in BOTH {
        let lines = Log::default();
        let written = Arc::clone(&lines);
        let audit = examples::audit(move |line| written.lock().unwrap().push(line));
        let server =
            server().middleware(examples::log).middleware(audit).middleware(examples::limit(1));
        let mut raw = start(server, revision).await;
        lines.lock().unwrap().clear();
        let answer = raw.ask(&in_era(revision, call(1, "quick", json!({})))).await;
        // A stream has no principal; over HTTP there is one.
        assert_eq!(code(&answer), -32600, "{answer}");
        let seen = lines.lock().unwrap().clone();
        assert_eq!(seen.len(), 1);
        assert!(seen[0].starts_with("anyone: tools/call quick SHA256:44136fa3"), "{seen:?}");
        assert!(seen[0].ends_with(": failed"), "{seen:?}");
    }
}
