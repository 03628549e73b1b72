//! Legacy sessions: their owners, their end, and streams that outlive their connections.

use std::time::Duration;

use bowline::http::{Http, HttpLimits};
use bowline::{Revision, Tool};
use http::Method;
use serde_json::{Value, json};

use super::client::{Ask, Event, Session, initialize, modern, open, request, send};
use super::world::World;

const LATEST: Revision = Revision::V2025_11_25;

fn ping() -> Value {
    request(1, "ping", json!({}))
}

fn cancelled(id: i64) -> Value {
    let params = json!({ "requestId": id });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
}

#[tokio::test]
async fn session_ids_cannot_be_guessed() {
    let world = World::new();
    let mut ids = Vec::new();
    for _ in 0..100 {
        ids.push(Session::open(&world.service, LATEST).await.id);
    }
    assert!(ids.iter().all(|id| id.len() >= 32 && id.bytes().all(|byte| byte.is_ascii_graphic())));
    // They differ in every position, so they are not counters.
    for place in 0..32 {
        assert!(ids.iter().any(|id| id.as_bytes()[place] != ids[0].as_bytes()[place]), "{place}");
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 100);
}

#[tokio::test]
async fn a_foreign_session_looks_like_none() {
    let world = World::new();
    let ann = Session::open_as(&world.service, LATEST, Some("ann")).await;
    let unknown = Session { id: "0".repeat(32), ..ann.clone() };
    for thief in [Some("bob".to_owned()), None] {
        let stolen = Session { user: thief, ..ann.clone() };
        for (tried, missed) in [
            (stolen.post(ping()), unknown.post(ping())),
            (stolen.get(), unknown.get()),
            (stolen.get().with("last-event-id", "1-0"), unknown.get().with("last-event-id", "1-0")),
            (stolen.delete(), unknown.delete()),
        ] {
            let tried = send(&world.service, tried).await;
            let missed = send(&world.service, missed).await;
            assert_eq!((tried.status, &tried.body), (404, &missed.body));
            assert_eq!(tried.headers, missed.headers);
        }
    }
    assert_eq!(send(&world.service, ann.post(ping())).await.status, 200);
    let who = send(&world.service, ann.call(1, "who", json!({}))).await;
    assert_eq!(who.text(), "ann");
}

#[tokio::test]
async fn a_session_ends_when_its_client_says_so() {
    let world = World::new();
    let session = Session::open(&world.service, LATEST).await;
    let mut stream = open(&world.service, session.get()).await;
    let waiting = open(&world.service, session.call(1, "wait", json!({}))).await;
    assert_eq!(send(&world.service, session.delete()).await.status, 204);
    for ask in [session.post(ping()), session.get(), session.delete()] {
        assert_eq!(send(&world.service, ask).await.status, 404);
    }
    while stream.next_any().await.is_some() {}
    waiting.rest().await;
    world.seen.until([1, 0, 1]).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_when_nobody_uses_it() {
    let idle = Duration::from_secs(100);
    let limits = HttpLimits { session_idle: idle, ..HttpLimits::default() };
    let world = World::with(|http| http.limits(limits));
    let session = Session::open(&world.service, LATEST).await;
    for _ in 0..3 {
        tokio::time::advance(idle - Duration::from_secs(1)).await;
        assert_eq!(send(&world.service, session.post(ping())).await.status, 200);
    }
    // A client reads, so it is not idle.
    let stream = open(&world.service, session.get()).await;
    tokio::time::advance(10 * idle).await;
    assert_eq!(send(&world.service, session.post(ping())).await.status, 200);
    drop(stream);
    tokio::time::advance(idle + Duration::from_secs(1)).await;
    assert_eq!(send(&world.service, session.post(ping())).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn half_a_handshake_makes_room() {
    let limits = HttpLimits { sessions: 2, ..HttpLimits::default() };
    let world = World::with(|http| http.limits(limits));
    let whole = Session::open(&world.service, LATEST).await;
    let open = || send(&world.service, Ask::post(initialize("2025-11-25")));
    for _ in 0..3 {
        assert_eq!(open().await.status, 200);
    }
    assert_eq!(send(&world.service, whole.post(ping())).await.status, 200);
    // It takes the place of one of them, and nobody can take it away.
    let second = Session::open(&world.service, LATEST).await;
    let refused = open().await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")));
    for whole in [whole, second] {
        assert_eq!(send(&world.service, whole.post(ping())).await.status, 200);
    }
}

#[tokio::test]
async fn the_standing_stream_tells_of_changes_and_is_read_once() {
    let world = World::new();
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18, LATEST] {
        let session = Session::open(&world.service, revision).await;
        let subscribe = request(1, "resources/subscribe", json!({ "uri": "world://a" }));
        assert_eq!(send(&world.service, session.post(subscribe)).await.status, 200);
        let mut stream = open(&world.service, session.get()).await;
        assert_eq!(open(&world.service, session.get()).await.status, 409);
        if revision == LATEST {
            let first = stream.next().await.unwrap();
            assert_eq!((first.data.as_str(), first.retry.as_deref()), ("", Some("1000")));
            assert!(first.id.is_some());
        }
        world.registry.resource_updated("world://a");
        world.registry.resource_updated("world://b");
        let told = stream.next().await.unwrap();
        assert_eq!(told.method(), "notifications/resources/updated");
        assert_eq!(told.json()["params"], json!({ "uri": "world://a" }));
        assert!(told.retry.is_none());
        world.registry.add(Tool::new("late", || async { "late" })).unwrap();
        assert_eq!(stream.next().await.unwrap().method(), "notifications/tools/list_changed");
        drop(stream);
        // A change while no client reads is reported once to the one that reconnects.
        world.registry.remove_tool("late");
        world.registry.resource_updated("world://a");
        world.registry.resource_updated("world://a");
        let last = told.id.unwrap();
        let mut stream = open(&world.service, session.get().with("last-event-id", &last)).await;
        let mut methods = Vec::new();
        for _ in 0..3 {
            methods.push(stream.next().await.unwrap().method());
        }
        let lists = "notifications/tools/list_changed";
        assert_eq!(methods, [lists, lists, "notifications/resources/updated"], "{revision}");
        // Without Last-Event-ID a new stream starts: no old events, and an id to resume from.
        drop(stream);
        let mut stream = open(&world.service, session.get()).await;
        world.registry.resource_updated("world://a");
        let first = stream.next().await.unwrap();
        assert_eq!(first.data.is_empty() && first.id.is_some(), revision == LATEST);
        if revision == LATEST {
            assert_eq!(stream.next().await.unwrap().method(), "notifications/resources/updated");
        }
        world.service_is_alive().await;
    }
}

#[tokio::test]
async fn an_answer_waits_for_a_client_that_lost_its_connection() {
    let world = World::new();
    let mut count = 0;
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18, LATEST] {
        let session = Session::open(&world.service, revision).await;
        let meta = json!({ "name": "talk", "_meta": { "progressToken": 9 } });
        let ask = session.post(request(3, "tools/call", meta));
        let mut stream = open(&world.service, ask).await;
        let mut first = stream.next().await.unwrap();
        // Older clients would take it for a message.
        let is_primed = revision == LATEST;
        assert_eq!(first.data.is_empty(), is_primed, "{revision}");
        assert_eq!(first.retry.is_some(), is_primed);
        if is_primed {
            first = stream.next().await.unwrap();
        }
        assert_eq!(first.method(), "notifications/progress");
        drop(stream);
        count += 1;
        world.seen.until([count, count, 0]).await;
        let last = first.id.unwrap();
        let rest = send(&world.service, session.get().with("last-event-id", &last)).await;
        assert_eq!(rest.status, 200);
        assert_eq!(rest.text(), "talked", "{revision}: {}", rest.body);
        let events = super::client::events(&rest.body);
        let methods: Vec<_> = events.iter().map(Event::method).collect();
        assert_eq!(methods, ["notifications/message", "notifications/progress", ""]);
        // Other sessions do not know it.
        let other = Session::open(&world.service, revision).await;
        let foreign = send(&world.service, other.get().with("last-event-id", &last)).await;
        assert_eq!(foreign.status, 400);
    }
}

#[tokio::test]
async fn calls_without_a_client_are_limited_in_number() {
    let limits = HttpLimits { abandoned: 2, ..HttpLimits::default() };
    let world = World::with(|http| http.limits(limits));
    let session = Session::open(&world.service, LATEST).await;
    let mut primed = Vec::new();
    for id in 0..2 {
        let mut stream = open(&world.service, session.call(id, "held", json!({}))).await;
        primed.push(stream.next().await.unwrap().id.unwrap());
    }
    world.seen.until([2, 0, 0]).await;
    // One more is cancelled, whoever made it.
    let other = Session::open(&world.service, LATEST).await;
    let mut stream = open(&world.service, other.call(2, "held", json!({}))).await;
    stream.next().await.unwrap();
    drop(stream);
    world.seen.until([3, 0, 1]).await;
    // A client that comes back for its answer makes room for another call.
    let mut resumed = open(&world.service, session.get().with("last-event-id", &primed[0])).await;
    drop(open(&world.service, other.call(3, "held", json!({}))).await);
    world.seen.release();
    world.seen.until([4, 3, 1]).await;
    let answer = resumed.next().await.unwrap().json();
    assert_eq!((&answer["id"], super::client::text(&answer).as_str()), (&json!(0), "done"));
    world.service_is_alive().await;
}

#[tokio::test]
async fn resuming_a_call_that_is_over_ends_quietly() {
    let world = World::new();
    let session = Session::open(&world.service, LATEST).await;
    let resume = async |last: &str| {
        let answer = send(&world.service, session.get().with("last-event-id", last)).await;
        (answer.status, answer.body)
    };
    // Cancelled, after it was primed and said nothing.
    let mut stream = open(&world.service, session.call(3, "name", json!({}))).await;
    let primed = stream.next().await.unwrap().id.unwrap();
    let asked = stream.next().await.unwrap().id.unwrap();
    let cancelled = json!({ "requestId": 3 });
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled });
    assert_eq!(send(&world.service, session.post(cancelled)).await.status, 202);
    assert_eq!(resume(&asked).await, (204, String::new()));
    // What it missed of it still comes.
    let (status, missed) = resume(&primed).await;
    assert!(status == 200 && missed.contains("elicitation/create"), "{status} {missed}");
    // Finished, and the client has the answer.
    let chat = send(&world.service, session.call(4, "chat", json!({}))).await;
    let last = super::client::events(&chat.body).pop().unwrap().id.unwrap();
    assert_eq!(resume(&last).await, (204, String::new()));
    // Never there.
    for never in ["99-1", "x"] {
        assert_eq!(resume(never).await.0, 400, "{never}");
    }
}

#[tokio::test]
async fn an_unknown_session_is_reported_in_the_words_that_clients_know() {
    let world = World::new();
    let ask = Ask::post(request(1, "ping", json!({}))).with("mcp-session-id", "abc");
    let answer = send(&world.service, ask).await;
    let error = &answer.json()["error"];
    assert_eq!((answer.status, &error["message"]), (404, &json!("Session terminated")));
    assert_eq!(error["data"], "unknown session; help: initialize a new one");
}

#[tokio::test]
async fn a_handler_that_speaks_and_is_done_at_once_is_answered() {
    let world = World::new();
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18, LATEST] {
        let session = Session::open(&world.service, revision).await;
        for id in 0..20 {
            let answer = send(&world.service, session.call(id, "chat", json!({}))).await;
            assert_eq!(answer.text(), "chatted", "{revision}: {}", answer.body);
            assert!(answer.body.contains("at once"), "{}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_question_comes_on_the_stream_of_its_request() {
    let world = World::new();
    for revision in [Revision::V2025_06_18, LATEST] {
        let session = Session::open(&world.service, revision).await;
        let mut standing = open(&world.service, session.get()).await;
        let mut stream = open(&world.service, session.call(4, "name", json!({}))).await;
        let mut asked = stream.next().await.unwrap();
        if asked.data.is_empty() {
            asked = stream.next().await.unwrap();
        }
        assert_eq!(asked.method(), "elicitation/create");
        let result = json!({ "action": "accept", "content": { "name": "Ada" } });
        let answer = json!({ "jsonrpc": "2.0", "id": asked.json()["id"], "result": result });
        // No other session can answer it.
        let mallory = Session::open(&world.service, revision).await;
        assert_eq!(send(&world.service, mallory.post(answer.clone())).await.status, 202);
        assert_eq!(send(&world.service, session.post(answer)).await.status, 202);
        assert_eq!(super::client::text(&stream.next().await.unwrap().json()), "Ada");
        assert_eq!(stream.next_any().await, None);
        if revision == LATEST {
            assert_eq!(standing.next().await.unwrap().data, "");
        }
        let silent = tokio::time::timeout(Duration::from_millis(50), standing.next_any());
        assert!(silent.await.is_err());
    }
}

#[tokio::test]
async fn a_cancellation_stops_the_handler_and_ends_the_stream() {
    let world = World::new();
    let session = Session::open(&world.service, LATEST).await;
    let stream = open(&world.service, session.call(8, "wait", json!({}))).await;
    let other = Session::open(&world.service, LATEST).await;
    assert_eq!(send(&world.service, other.post(cancelled(8))).await.status, 202);
    assert_eq!(world.seen.counts(), [1, 0, 0]);
    assert_eq!(send(&world.service, session.post(cancelled(8))).await.status, 202);
    let rest = stream.rest().await;
    assert!(!rest.body.contains("\"id\":8"), "{}", rest.body);
    world.seen.until([1, 0, 1]).await;
    world.service_is_alive().await;
}

#[tokio::test]
async fn batches_are_for_one_revision_and_keep_the_callers_name() {
    let world = World::new();
    let who = |id: i64| request(id, "tools/call", json!({ "name": "who", "arguments": {} }));
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/x" });
    for revision in Revision::ALL.into_iter().filter(|it| !it.is_modern()) {
        let session = Session::open_as(&world.service, revision, Some("ann")).await;
        let batch = json!([who(1), told, who(2), request(3, "none", json!({}))]);
        let answer = send(&world.service, session.post(batch)).await;
        if revision != Revision::V2025_03_26 {
            assert_eq!((answer.status, answer.code()), (400, Some(-32600)), "{revision}");
            continue;
        }
        let answers = answer.json();
        let ids: Vec<_> = answers.as_array().unwrap().iter().map(|it| &it["id"]).collect();
        assert_eq!(ids, [1, 2, 3]);
        assert_eq!(super::client::text(&answers[1]), "ann");
        assert_eq!(answers[2]["error"]["code"], -32601);
        assert_eq!(send(&world.service, session.post(json!([told]))).await.status, 202);
        let modern: Value = serde_json::from_str(&modern(4, "tools/list", json!({})).body).unwrap();
        for bad in
            [json!([]), json!([1]), json!([who(1), modern]), json!([initialize("2025-03-26")])]
        {
            let answer = send(&world.service, session.post(bad.clone())).await;
            assert_eq!((answer.status, answer.code()), (400, Some(-32600)), "{bad}");
        }
    }
}

#[tokio::test]
async fn without_sessions_each_request_is_for_itself() {
    let world = World::with(Http::without_sessions);
    let opened = send(&world.service, Ask::post(initialize("2025-06-18"))).await;
    assert_eq!((opened.status, opened.header("mcp-session-id")), (200, None));
    assert_eq!(opened.json()["result"]["capabilities"]["resources"], json!({}), "{}", opened.body);
    let who = Ask::post(request(1, "tools/call", json!({ "name": "who" }))).with("x-user", "ann");
    assert_eq!(send(&world.service, who.clone()).await.text(), "ann");
    let batch = Ask { body: format!("[{}]", who.body), ..who.clone() };
    assert_eq!(super::client::text(&send(&world.service, batch).await.json()[0]), "ann");
    let twice = who.with("mcp-protocol-version", "2025-06-18");
    let twice = twice.and("mcp-protocol-version", "2025-03-26");
    assert_eq!(send(&world.service, twice).await.status, 400);
    for method in [Method::GET, Method::DELETE] {
        let answer = send(&world.service, Ask::new(method, "/mcp")).await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    }
}
