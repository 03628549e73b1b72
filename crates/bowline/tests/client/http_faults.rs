//! HTTP servers that forget, break off, lead astray, or say nothing at all.

use std::time::Duration;

use bowline::client::http::Endpoint;
use bowline::client::{
    CallError, Change, Client, ClientBuilder, ClientLimits, Phase, Preference, Timeouts, Wanted,
};
use bowline::{Json, Revision};
use serde_json::{Value, json};

use super::fixture::{builder, limits, pass, soon, until};
use super::web::Web;
use super::wire::text;

/// A client of the legacy era, without a probe.
fn legacy() -> ClientBuilder {
    builder().preference(Preference::Pin(Revision::V2025_11_25))
}

type Said = tokio::task::JoinHandle<Result<String, CallError>>;

/// Calls a tool in the background.
fn call(client: &Client) -> Said {
    tokio::spawn(client.call_tool("t", json!({})).text())
}

async fn said(call: Said) -> String {
    soon("an answer", call).await.unwrap().unwrap()
}

async fn failed(call: Said) -> CallError {
    soon("an error", call).await.unwrap().unwrap_err()
}

fn changed(what: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": format!("notifications/{what}/list_changed") })
}

#[tokio::test]
async fn a_forgotten_session_is_opened_anew_and_everything_sent_again() {
    let mut web = Web::start().await;
    let (client, listening) = web.legacy(legacy()).await;
    let _listening = listening.events().await;
    let wanted = tokio::spawn({
        let client = client.clone();
        async move { client.changes(Wanted::all_lists().resource("a://b")).await }
    });
    web.asked("resources/subscribe").await.answer(json!({})).await;
    let mut changes = soon("changes", wanted).await.unwrap().unwrap();
    // Two calls at a time find the session gone; one new one is opened for both.
    let (first, second) = (call(&client), call(&client));
    let (one, two) = (web.asked("tools/call").await, web.asked("tools/call").await);
    assert_eq!(one.header("mcp-session-id"), Some("one"));
    one.status(404).await;
    two.status(404).await;
    web.shake("two").await;
    for _ in 0..2 {
        let again = web.asked("tools/call").await;
        assert_eq!(again.header("mcp-session-id"), Some("two"));
        again.answer(text("done")).await;
    }
    assert_eq!((said(first).await, said(second).await), ("done".into(), "done".into()));
    // The server knows nothing of what was subscribed to, and is told again.
    let again = web.asked("resources/subscribe").await;
    assert_eq!(again.header("mcp-session-id"), Some("two"));
    again.answer(json!({})).await;
    assert_eq!(soon("a change", changes.next()).await.unwrap().unwrap(), Change::Tools);
    let mut listening = web.http("GET").await.events().await;
    assert_eq!(listening.header("mcp-session-id"), Some("two"));
    for expected in [Change::Prompts, Change::Resources, Change::Resource("a://b".into())] {
        assert_eq!(soon("a change", changes.next()).await.unwrap().unwrap(), expected);
    }
    listening.event("", &changed("prompts")).await;
    assert_eq!(soon("a change", changes.next()).await.unwrap().unwrap(), Change::Prompts);
    // Neither a second session nor a cancellation of what the server never took.
    assert_eq!(web.unseen(), [""; 0]);
    drop(changes);
    web.asked("resources/unsubscribe").await.answer(json!({})).await;
    let closing = tokio::spawn(client.close());
    let farewell = web.http("DELETE").await;
    assert_eq!(farewell.header("mcp-session-id"), Some("two"));
    farewell.status(200).await;
    soon("the end", closing).await.unwrap();
}

#[tokio::test]
async fn a_session_that_cannot_be_opened_at_once_is_opened_later() {
    let mut web = Web::start().await;
    let (client, listening) = web.legacy(legacy()).await;
    listening.status(405).await;
    let first = call(&client);
    web.asked("tools/call").await.status(404).await;
    // The server is not itself yet.
    web.asked("initialize").await.status(503).await;
    let error = failed(first).await;
    assert!(
        error.to_string().contains("the session is gone, and no new one could be opened"),
        "{error}"
    );
    // The next call tries for itself.
    let second = call(&client);
    web.shake("two").await;
    web.asked("tools/call").await.answer(text("done")).await;
    assert_eq!(said(second).await, "done");
    assert_eq!(client.state().phase, Phase::Ready);
    // And without a call it is tried in the background.
    let third = call(&client);
    web.asked("tools/call").await.status(404).await;
    web.asked("initialize").await.status(503).await;
    let _ = failed(third).await;
    web.shake("three").await;
    client.wait_for(Phase::Ready, Duration::from_secs(60)).await.unwrap();
}

#[tokio::test]
async fn a_caller_that_gives_up_leaves_the_new_session_to_the_others() {
    let mut web = Web::start().await;
    let (client, listening) = web.legacy(legacy()).await;
    listening.status(405).await;
    let (first, second) = (call(&client), call(&client));
    let (one, two) = (web.asked("tools/call").await, web.asked("tools/call").await);
    one.status(404).await;
    let hello = web.asked("initialize").await;
    two.status(404).await;
    first.abort();
    let _ = first.await;
    let headers = "mcp-session-id: two\r\n";
    let result = json!({ "jsonrpc": "2.0", "id": hello.body["id"],
        "result": super::wire::initialized() });
    hello.respond(200, "application/json", headers, &result.to_string()).await;
    web.asked("notifications/initialized").await.status(202).await;
    // Whichever of the two was aborted, the other is sent again in the new session.
    let again = web.asked("tools/call").await;
    assert_eq!(again.header("mcp-session-id"), Some("two"));
    again.answer(text("done")).await;
    assert_eq!(said(second).await, "done");
}

#[tokio::test]
async fn a_call_waits_no_longer_for_a_new_session_than_for_its_answer() {
    let mut web = Web::start().await;
    let (client, listening) = web.legacy(legacy()).await;
    listening.status(405).await;
    // Less than the client waits for the session.
    let patience = Duration::from_secs(50);
    let impatient = client.call_tool("t", json!({})).timeout(patience);
    let impatient = tokio::spawn(impatient.text());
    web.asked("tools/call").await.status(404).await;
    let _hello = web.asked("initialize").await;
    pass(patience).await;
    let error = failed(impatient).await;
    assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
    drop(client);
}

#[tokio::test]
async fn a_server_that_has_no_stream_may_say_404() {
    let mut web = Web::start().await;
    let (client, listening) = web.legacy(legacy()).await;
    listening.status(404).await;
    let call = call(&client);
    web.asked("tools/call").await.answer(text("done")).await;
    assert_eq!(said(call).await, "done");
    // Nobody takes it for a forgotten session.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(web.unseen(), [""; 0]);
}

#[tokio::test]
async fn the_stream_of_the_server_is_opened_again_where_it_broke() {
    let mut web = Web::start().await;
    let (client, listening) = web.legacy(legacy()).await;
    let mut heard = client.notifications();
    let mut listening = listening.events().await;
    listening.event("id: 7\nretry: 10\n", &changed("tools")).await;
    soon("news", heard.next()).await.unwrap().unwrap();
    drop(listening);
    let again = web.http("GET").await;
    assert_eq!(again.header("last-event-id"), Some("7"));
    let mut again = again.events().await;
    again.event("id: 8\n", &changed("prompts")).await;
    soon("news", heard.next()).await.unwrap().unwrap();
    drop(again);
    // It has been open, so now the session is gone.
    let last = web.http("GET").await;
    assert_eq!(last.header("last-event-id"), Some("8"));
    last.status(404).await;
    web.shake("two").await;
    let fresh = web.http("GET").await;
    assert_eq!(fresh.header("last-event-id"), None);
    client.wait_for(Phase::Ready, Duration::from_secs(60)).await.unwrap();
}

#[tokio::test]
async fn a_call_is_resumed_where_its_stream_broke() {
    let mut web = Web::start().await;
    let (client, listening) = web.legacy(legacy()).await;
    listening.status(405).await;
    let call = call(&client);
    let question = web.asked("tools/call").await;
    let id = question.body["id"].clone();
    let mut events = question.events().await;
    // An event without a message, as polling streams begin, and the end.
    events.send(b"id: a\nretry: 20\ndata:\n\n").await;
    drop(events);
    // Not yet: it is tried again.
    let poll = web.http("GET").await;
    assert_eq!(poll.header("last-event-id"), Some("a"));
    poll.status(503).await;
    let mut poll = web.http("GET").await.events().await;
    assert_eq!(poll.header("last-event-id"), Some("a"));
    poll.send(b"id: b\ndata:\n\n").await;
    drop(poll);
    let mut poll = web.http("GET").await.events().await;
    assert_eq!(poll.header("last-event-id"), Some("b"));
    poll.answer_event(&id, text("at last")).await;
    assert_eq!(said(call).await, "at last");
    assert!(client.pending().is_empty());
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_ends_its_call() {
    let mut web = Web::start().await;
    let client = web.modern(builder()).await;
    let call = call(&client);
    let mut events = web.asked("tools/call").await.events().await;
    // The modern era has no resumption, whatever the server numbers.
    events.send(b"id: a\ndata:\n\n").await;
    drop(events);
    let error = failed(call).await;
    assert!(error.to_string().ends_with("the stream ended before the answer"), "{error}");
    assert!(client.pending().is_empty());
}

#[tokio::test]
async fn a_missing_header_is_learnt_and_the_call_sent_again_once() {
    let mut web = Web::start().await;
    let client = web.modern(builder()).await;
    let schema = json!({ "type": "object", "properties":
        { "region": { "type": "string", "x-mcp-header": "Region" } } });
    for is_cured in [true, false] {
        let call = client.call_tool("t", json!({ "region": "eu" }));
        let call = tokio::spawn(call.text());
        web.asked("tools/call").await.refuse(400, -32020).await;
        let list = web.asked("tools/list").await;
        let tools = json!([{ "name": "t", "inputSchema": schema }]);
        list.answer(json!({ "resultType": "complete", "tools": tools })).await;
        let again = web.asked("tools/call").await;
        assert_eq!(again.header("mcp-param-region"), Some("eu"));
        if is_cured {
            again.answer(text("done")).await;
            assert_eq!(said(call).await, "done");
        } else {
            again.refuse(400, -32020).await;
            let error = failed(call).await;
            assert_eq!(error.as_refusal().unwrap().code.0, -32020, "{error}");
        }
    }
    assert_eq!(web.unseen(), [""; 0]);
}

#[tokio::test]
async fn an_argument_that_no_header_can_repeat_is_named_and_nothing_is_sent() {
    let mut web = Web::start().await;
    let client = web.modern(builder()).await;
    let listing = tokio::spawn(client.list_tools().into_future());
    let schema = json!({ "type": "object", "properties":
        { "region": { "type": "string", "x-mcp-header": "Region" } } });
    let tools = json!([{ "name": "t", "inputSchema": schema }]);
    web.asked("tools/list").await.answer(json!({ "resultType": "complete", "tools": tools })).await;
    listing.await.unwrap().unwrap();
    for (arguments, problem) in [
        (r#"{ "region": "eu", "region": "us" }"#, "appears twice"),
        (r#"{ "region": "\ud800" }"#, "cannot be read: "),
    ] {
        let params = format!(r#"{{ "name": "t", "arguments": {arguments} }}"#);
        let params = Json::from_text(params).unwrap();
        let error = client.call_json("tools/call", params).await.unwrap_err();
        assert!(matches!(error, CallError::Unsendable { .. }), "{error:?}");
        let message = error.to_string();
        let start = format!(r#"tools/call: tool "t": argument "region" {problem}"#);
        assert!(message.starts_with(&start), "{message}");
        let end = "so header Mcp-Param-Region cannot repeat it; nothing was sent";
        assert!(message.ends_with(end), "{message}");
    }
    assert!(client.pending().is_empty());
    assert_eq!(web.unseen(), [""; 0]);
}

#[tokio::test]
async fn a_redirect_is_followed_to_the_same_origin_only() {
    let mut web = Web::start().await;
    let mut other = Web::start().await;
    let endpoint = Endpoint::new(web.url()).bearer("secret").header("x-key", "also secret");
    let preference = Preference::Pin(Revision::LATEST);
    let connecting = builder().preference(preference).connect(endpoint);
    let connecting = tokio::spawn(connecting);
    web.asked("server/discover").await.answer(super::wire::discovered()).await;
    let client = soon("a connection", connecting).await.unwrap().unwrap();
    // To the same origin: all of it again.
    for (status, target) in [(307, "/moved".to_owned()), (308, format!("{}/moved", web.origin))] {
        let call = call(&client);
        let headers = format!("location: {target}\r\n");
        web.asked("tools/call").await.respond(status, "text/plain", &headers, "").await;
        let moved = web.asked("tools/call").await;
        assert_eq!(moved.path, "/moved");
        assert_eq!(moved.header("authorization"), Some("Bearer secret"));
        moved.answer(text("done")).await;
        assert_eq!(said(call).await, "done");
    }
    // Elsewhere: not at all, with secrets or without.
    let port = other.origin.rsplit(':').next().unwrap();
    let elsewhere = [
        format!("{}/mcp", other.origin),
        format!("http://localhost:{port}/mcp"),
        format!("//127.0.0.1:{port}/"),
    ];
    for target in elsewhere {
        let call = call(&client);
        let headers = format!("location: {target}\r\n");
        web.asked("tools/call").await.respond(307, "text/plain", &headers, "").await;
        let error = failed(call).await;
        assert!(error.to_string().contains("to another origin"), "{error}");
    }
    // A message must not become a question.
    for status in [301, 302, 303] {
        let call = call(&client);
        web.asked("tools/call").await.respond(status, "text/plain", "location: /x\r\n", "").await;
        let error = failed(call).await;
        assert!(error.to_string().contains("redirect"), "{error}");
    }
    // Round and round.
    let endless = call(&client);
    for _ in 0..8 {
        let request = web.asked("tools/call").await;
        request.respond(307, "text/plain", "location: /round\r\n", "").await;
    }
    let error = failed(endless).await;
    assert!(error.to_string().contains("more than 8 times"), "{error}");
    assert_eq!(other.unseen(), [""; 0]);
}

#[tokio::test]
async fn a_dropped_call_closes_its_exchange_or_says_so() {
    // Modern: the exchange ends.
    let mut web = Web::start().await;
    let client = web.modern(builder()).await;
    for streams in [false, true] {
        let call = call(&client);
        let mut question = web.asked("tools/call").await;
        if streams {
            question = question.events().await;
        }
        call.abort();
        let _ = call.await;
        assert!(client.pending().is_empty());
        question.closed().await;
    }
    assert_eq!(web.unseen(), [""; 0]);
    // Legacy: the server is told.
    let mut web = Web::start().await;
    let (client, listening) = web.legacy(legacy()).await;
    listening.status(405).await;
    let call = call(&client);
    let question = web.asked("tools/call").await;
    let id = question.body["id"].clone();
    call.abort();
    let _ = call.await;
    assert!(client.pending().is_empty());
    let told = web.asked("notifications/cancelled").await;
    assert_eq!(told.body["params"]["requestId"], id);
    told.status(202).await;
}

#[tokio::test]
async fn a_call_that_times_out_closes_its_exchange_or_says_so() {
    let patience = Duration::from_secs(50);
    let mut web = Web::start().await;
    let client = web.modern(builder()).await;
    let call = tokio::spawn(client.call_tool("t", json!({})).timeout(patience).text());
    let question = web.asked("tools/call").await;
    pass(patience).await;
    assert!(matches!(failed(call).await, CallError::TimedOut { .. }));
    question.closed().await;
    let mut web = Web::start().await;
    let (client, listening) = web.legacy(legacy()).await;
    listening.status(405).await;
    let call = tokio::spawn(client.call_tool("t", json!({})).timeout(patience).text());
    let question = web.asked("tools/call").await;
    pass(patience).await;
    assert!(matches!(failed(call).await, CallError::TimedOut { .. }));
    let told = web.asked("notifications/cancelled").await;
    assert_eq!(told.body["params"]["requestId"], question.body["id"]);
    told.status(202).await;
}

#[tokio::test]
async fn closing_ends_exchanges_at_once_and_leaves_no_task() {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let mut web = Web::start().await;
    let before = alive();
    for drops in [false, true] {
        let client = web.modern(builder()).await;
        let waiting = call(&client);
        let question = web.asked("tools/call").await.events().await;
        match drops {
            false => soon("the end", client.close()).await,
            true => drop(client),
        }
        if drops {
            // The call holds on to the client until it ends.
            waiting.abort();
            let _ = waiting.await;
        } else {
            let error = failed(waiting).await;
            assert_eq!(error.to_string(), "the connection ended: the client closed it");
        }
        question.closed().await;
        until("the end of all tasks", || alive() <= before).await;
    }
    let (client, listening) = web.legacy(legacy()).await;
    let listening = listening.events().await;
    drop(client);
    web.http("DELETE").await.status(200).await;
    listening.closed().await;
    until("the end of all tasks", || alive() <= before).await;
}

#[tokio::test]
async fn changes_are_listened_to_once_after_every_break() {
    let mut web = Web::start().await;
    let client = web.modern(builder()).await;
    let wanted = tokio::spawn({
        let client = client.clone();
        async move { client.changes(Wanted::new().tools()).await }
    });
    let mut changes = None;
    let mut wanted = Some(wanted);
    for round in 0..3 {
        let listen = web.asked("subscriptions/listen").await;
        let id = listen.body["id"].clone();
        let mut events = listen.events().await;
        let acknowledged = json!({ "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged", "params": {
                "_meta": { "io.modelcontextprotocol/subscriptionId": id },
                "notifications": { "toolsListChanged": true } } });
        events.event("", &acknowledged).await;
        if let Some(wanted) = wanted.take() {
            changes = Some(soon("changes", wanted).await.unwrap().unwrap());
        }
        let changes = changes.as_mut().unwrap();
        // After a break, what was asked for counts as changed; and news come once.
        if round > 0 {
            assert_eq!(soon("a change", changes.next()).await.unwrap().unwrap(), Change::Tools);
        }
        events.event("", &changed("tools")).await;
        assert_eq!(soon("a change", changes.next()).await.unwrap().unwrap(), Change::Tools);
        assert_eq!(client.pending().len(), 1);
        match round {
            0 => drop(events),
            _ => events.answer_event(&id, json!({ "resultType": "complete" })).await,
        }
        assert_eq!(web.unseen(), [""; 0]);
    }
}

/// Lets this much time pass, a quarter at once, until the work is done.
async fn passes<T>(time: Duration, work: impl Future<Output = T>) -> T {
    let passing = async {
        // Slower than a client that may have to begin to wait first.
        for _ in 0..10_000 {
            pass(time / 4).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        done = work => done,
        () = passing => panic!("nobody runs out of patience"),
    }
}

#[tokio::test]
async fn a_half_open_peer_is_noticed() {
    let (silence, patience) = (Duration::from_secs(200), Duration::from_secs(300));
    let quick = || {
        let timeouts = Timeouts { idle: patience, ..Timeouts::default() };
        let limits = ClientLimits { stream_silence: silence, ..limits() };
        builder().timeouts(timeouts).limits(limits)
    };
    // A stream of changes on which nothing comes is opened again, whether it began or not.
    let mut web = Web::start().await;
    let client = quick().preference(Preference::Pin(Revision::V2025_11_25));
    let (client, mut first) = web.legacy(client).await;
    passes(silence, first.gone()).await;
    let mut second = web.http("GET").await.events().await;
    passes(silence, second.gone()).await;
    let _third = web.http("GET").await;
    drop(client);
    // The server that takes a request for changes and says nothing.
    let mut web = Web::start().await;
    let client = web.modern(quick()).await;
    let wanted = tokio::spawn({
        let client = client.clone();
        async move { client.changes(Wanted::all_lists()).await.map(drop) }
    });
    let listen = web.asked("subscriptions/listen").await;
    let error = passes(silence, wanted).await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
    listen.closed().await;
    // A call has its deadline in any case.
    let call = call(&client);
    let _question = web.asked("tools/call").await.events().await;
    pass(patience).await;
    assert!(matches!(failed(call).await, CallError::TimedOut { .. }));
}

#[tokio::test]
async fn an_answer_that_is_none_is_told_as_what_it_is() {
    let mut web = Web::start().await;
    let client = web.modern(builder()).await;
    let other = json!({ "jsonrpc": "2.0", "id": 99_999, "result": {} }).to_string();
    for (status, kind, headers, body, expected) in [
        (200, "text/html", "", "<html>", "neither JSON nor a stream of events"),
        (200, "application/json", "", "{", "does not answer the request"),
        (200, "application/json", "", &*other, "does not answer the request"),
        (202, "text/plain", "", "", "gives no answer"),
        (204, "text/plain", "", "", ""),
        (200, "application/json", "content-encoding: gzip\r\n", "x", "compressed (gzip)"),
        (500, "text/plain", "", "oops", "HTTP 500"),
        (429, "text/plain", "retry-after: 1\r\n", "", "HTTP 429"),
    ] {
        let call = call(&client);
        let question = web.asked("tools/call").await;
        question.respond(status, kind, headers, body).await;
        let error = failed(call).await;
        assert!(error.to_string().contains(expected), "{status} {kind}: {error}");
        assert!(client.pending().is_empty());
    }
    // The status of authorization is an error of its own.
    for status in [401, 403] {
        let call = call(&client);
        web.asked("tools/call").await.status(status).await;
        let error = failed(call).await;
        assert!(matches!(error, CallError::Unauthorized { .. }), "{error}");
    }
}
