//! Tasks over HTTP: whose they are, in both generations at once, and what a server that stops says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline::http::HttpService;
use bowline::{
    Context, HandlerError, InputRequired, Limits, Principal, Revision, Server, Step, TaskLimits,
    TaskMode, Tasks, Tool,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::{Answer, Session, modern_with, open, request, scaled, send, soon};
use super::shelf::Shelf;
use super::world::identified;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn service() -> HttpService {
    let ask = |context: Context| async move {
        let agreed = context.confirm("Go on?").await?;
        Ok::<_, HandlerError>(format!("agreed: {agreed}"))
    };
    let server = Server::new("tasks", "1.0.0").with(Tool::new("ask", ask).task(TaskMode::Optional));
    identified(server.http()).into_service().unwrap()
}

/// A modern request of somebody.
async fn modern(service: &HttpService, user: &str, method: &str, params: Value) -> Answer {
    let capabilities = json!({ "elicitation": { "form": {} }, "extensions": { (EXTENSION): {} } });
    let ask = modern_with(1, method, params.clone(), capabilities).with("x-user", user);
    let ask = match params["taskId"].as_str() {
        Some(task) => ask.with("mcp-name", task),
        None => ask,
    };
    send(service, ask).await
}

async fn start(service: &HttpService, user: &str) -> String {
    let created = modern(service, user, "tools/call", json!({ "name": "ask" })).await.json();
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    created["result"]["taskId"].as_str().unwrap().to_owned()
}

/// A request within a session. The answer is the last event, or all of the body.
async fn within(session: &Session, method: &str, params: Value) -> Value {
    let answer = send(&session.service, session.post(request(2, method, params))).await;
    let last = super::client::events(&answer.body).pop().map(|event| event.json());
    last.unwrap_or_else(|| answer.json())
}

async fn start_legacy(session: &Session) -> String {
    let params = json!({ "name": "ask", "arguments": {}, "task": {} });
    let created = within(session, "tools/call", params).await;
    created["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned()
}

#[tokio::test]
async fn others_cannot_tell_that_a_task_exists() {
    let service = service();
    let task = start(&service, "ada").await;
    let known = modern(&service, "ada", "tasks/get", json!({ "taskId": task })).await;
    assert_eq!(known.json()["result"]["taskId"], task);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let about = |id: &str| json!({ "taskId": id, "inputResponses": {} });
        let foreign = modern(&service, "eve", method, about(&task)).await;
        let unknown = modern(&service, "eve", method, about("nothing")).await;
        assert_eq!(foreign.code(), Some(-32602));
        assert_eq!((foreign.status, foreign.body), (unknown.status, unknown.body), "{method}");
    }
    // Nobody is not somebody.
    let nobody = Session::open(&service, Revision::V2025_11_25).await;
    let unknown = within(&nobody, "tasks/get", json!({ "taskId": task })).await;
    assert_eq!(unknown["error"]["code"], -32602);
}

#[tokio::test]
async fn both_generations_use_the_same_tool_at_once() {
    let service = service();
    let session = Session::open_as(&service, Revision::V2025_11_25, Some("ada")).await;
    let [old, new] = [start_legacy(&session).await, start(&service, "ada").await];
    // Each is visible where it was made.
    let foreign = modern(&service, "ada", "tasks/get", json!({ "taskId": old })).await;
    assert_eq!(foreign.code(), Some(-32602));
    let foreign = within(&session, "tasks/get", json!({ "taskId": new })).await;
    assert_eq!(foreign["error"]["code"], -32602);
    let listed = within(&session, "tasks/list", json!({})).await;
    let listed: Vec<_> = listed["result"]["tasks"].as_array().unwrap().iter().collect();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["taskId"], old);
    // Both are answered.
    let asking = session.post(request("r", "tasks/result", json!({ "taskId": old })));
    let mut stream = open(&service, asking).await;
    let question = loop {
        let event = stream.next().await.unwrap().json();
        if event["method"] == "elicitation/create" {
            break event;
        }
    };
    let accept = json!({ "action": "accept", "content": {} });
    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": accept });
    assert_eq!(send(&service, session.post(reply)).await.status, 202);
    let result = loop {
        let event = stream.next().await.unwrap().json();
        if event["id"] == "r" {
            break event;
        }
    };
    assert_eq!(result["result"]["content"][0]["text"], "agreed: true");
    let key = loop {
        let detail = modern(&service, "ada", "tasks/get", json!({ "taskId": new })).await.json();
        if let Some(asked) = detail["result"]["inputRequests"].as_object() {
            break asked.keys().next().unwrap().clone();
        }
        tokio::task::yield_now().await;
    };
    let params = json!({ "taskId": new, "inputResponses": { (key): { "action": "decline" } } });
    modern(&service, "ada", "tasks/update", params).await;
    loop {
        let detail = modern(&service, "ada", "tasks/get", json!({ "taskId": new })).await.json();
        if detail["result"]["status"] == "completed" {
            assert_eq!(detail["result"]["result"]["content"][0]["text"], "agreed: false");
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn tasks_are_not_listed_to_clients_without_an_identity() {
    let service = service();
    let session = Session::open(&service, Revision::V2025_11_25).await;
    start_legacy(&session).await;
    let refused = within(&session, "tasks/list", json!({})).await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
}

#[tokio::test]
async fn nobody_at_one_address_takes_the_room_of_nobody_at_another() {
    let ask = |context: Context| async move {
        let agreed = context.confirm("Go on?").await?;
        Ok::<_, HandlerError>(format!("agreed: {agreed}"))
    };
    let limits = TaskLimits { tasks_per_owner: 2, ..TaskLimits::default() };
    let http = Server::new("tasks", "1.0.0")
        .with(Tool::new("ask", ask).task(TaskMode::Optional))
        .tasks(Tasks::in_memory_with(limits))
        .http();
    let http = http.peer_addr(|parts| parts.headers.get("x-from")?.to_str().ok()?.parse().ok());
    let service = http.into_service().unwrap();
    let capabilities = json!({ "elicitation": { "form": {} }, "extensions": { (EXTENSION): {} } });
    let from = async |address: &str, method: &str, params: Value| {
        let ask = modern_with(1, method, params.clone(), capabilities.clone());
        let ask = match params["taskId"].as_str() {
            Some(task) => ask.with("mcp-name", task),
            None => ask,
        };
        send(&service, ask.with("x-from", address)).await.json()
    };
    let call = json!({ "name": "ask" });
    let first = from("192.0.2.1:1", "tools/call", call.clone()).await;
    let task = &first["result"]["taskId"];
    assert!(task.is_string(), "{first}");
    for (address, has_room) in [
        ("192.0.2.1:2", true),
        ("192.0.2.1:3", false),
        ("192.0.2.2:1", true),
        ("[2001:db8::1]:1", true),
        ("[2001:db8::2]:1", true),
        ("[2001:db8::3]:1", false),
    ] {
        let created = from(address, "tools/call", call.clone()).await;
        assert_eq!(created["result"]["taskId"].is_string(), has_room, "{address}: {created}");
    }
    // A client that moves still finds its task: nobody else has the id.
    let found = from("192.0.2.9:1", "tasks/get", json!({ "taskId": task })).await;
    assert_eq!(found["result"]["taskId"], *task);
}

#[tokio::test]
async fn a_stream_tells_its_owner_about_a_task() {
    let service = service();
    let task = start(&service, "ada").await;
    let capabilities = json!({ "extensions": { (EXTENSION): {} } });
    let filter = json!({ "notifications": { "taskIds": [task] } });
    let listen = |user: &str| {
        let params = filter.clone();
        modern_with(7, "subscriptions/listen", params, capabilities.clone()).with("x-user", user)
    };
    let mut stranger = open(&service, listen("eve")).await;
    let ack = stranger.next().await.unwrap().json();
    assert_eq!(ack["params"]["notifications"].get("taskIds"), None, "{ack}");
    let mut stream = open(&service, listen("ada")).await;
    let ack = stream.next().await.unwrap().json();
    assert_eq!(ack["params"]["notifications"]["taskIds"], json!([task]));
    modern(&service, "ada", "tasks/cancel", json!({ "taskId": task })).await;
    loop {
        let told = stream.next().await.unwrap().json();
        assert_eq!(told["method"], "notifications/tasks");
        if told["params"]["status"] == "cancelled" {
            break;
        }
    }
}

#[tokio::test]
async fn a_listener_needs_the_scopes_of_the_tool() {
    let work = |_: Context| async { "done" };
    let tool = Tool::new("ask", work).task(TaskMode::Optional).scopes(["write"]);
    let http = Server::new("tasks", "1.0.0").with(tool).http().identify(|parts| {
        let scopes = parts.headers.get("x-scopes").and_then(|it| it.to_str().ok()).unwrap_or("");
        Some(Principal::new("ada").with_scopes(scopes.split_whitespace()))
    });
    let service = http.into_service().unwrap();
    let capabilities = json!({ "extensions": { (EXTENSION): {} } });
    let call = modern_with(1, "tools/call", json!({ "name": "ask" }), capabilities.clone());
    let created = send(&service, call.with("x-scopes", "write")).await.json();
    let task = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    for (scopes, expected) in [("write", json!([task])), ("read", Value::Null)] {
        let filter = json!({ "notifications": { "taskIds": [task] } });
        let ask = modern_with(7, "subscriptions/listen", filter, capabilities.clone());
        let mut stream = open(&service, ask.with("x-scopes", scopes)).await;
        let ack = stream.next().await.unwrap().json();
        assert_eq!(ack["params"]["notifications"]["taskIds"], expected, "{scopes}: {ack}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_polls_too_fast_slows_down_no_one_else() {
    let service = service();
    let [hers, his] = [start(&service, "ada").await, start(&service, "eve").await];
    let (polling, began) = (service.clone(), Instant::now());
    let count = scaled(1_000, 10_000);
    let polls = tokio::spawn(async move {
        for _ in 0..count {
            let about = json!({ "taskId": hers });
            let answer = modern(&polling, "ada", "tasks/get", about).await.json();
            assert_eq!(answer["result"]["taskId"], hers, "{answer}");
        }
        began.elapsed()
    });
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let asked = Instant::now();
        let answer = modern(&service, "eve", "tasks/get", json!({ "taskId": his })).await.json();
        assert_eq!(answer["result"]["taskId"], his, "{answer}");
        assert!(asked.elapsed() < Duration::from_millis(50), "{:?}", asked.elapsed());
    }
    // Ten times a second.
    let taken = polls.await.unwrap();
    let expected = Duration::from_millis(100 * count as u64);
    assert!((expected * 9 / 10..expected * 11 / 10).contains(&taken), "{taken:?}");
}

/// A server with tasks on a shelf.
fn on(shelf: &Shelf, runs: &Arc<AtomicUsize>) -> HttpService {
    let runs = Arc::clone(runs);
    let hang = move |_: Context| {
        let run = runs.fetch_add(1, Ordering::SeqCst);
        async move {
            // The first server never sees its end.
            if run < 2 {
                std::future::pending::<()>().await;
            }
            "ran again"
        }
    };
    let ask = |context: Context| async move {
        let agreed = context.confirm("Go on?").await?;
        Ok::<_, HandlerError>(format!("agreed: {agreed}"))
    };
    let http = Server::new("tasks", "1.0.0")
        .limits(Limits { grace: Duration::from_millis(100), ..Limits::default() })
        .with(Tool::new("again", hang.clone()).task(TaskMode::Optional).rerun())
        .with(Tool::new("once", hang).task(TaskMode::Optional))
        .with(Tool::new("ask", ask).task(TaskMode::Optional))
        .tasks(Tasks::in_store(shelf.clone(), TaskLimits::default()))
        .http();
    identified(http).into_service().unwrap()
}

#[tokio::test]
async fn a_server_that_stops_writes_the_truth() {
    let (shelf, runs) = (Shelf::default(), Arc::new(AtomicUsize::new(0)));
    let service = on(&shelf, &runs);
    let create = async |tool: &str| {
        let created = modern(&service, "ada", "tools/call", json!({ "name": tool })).await.json();
        created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned()
    };
    let [again, once, parked] = [create("again").await, create("once").await, create("ask").await];
    while shelf.record(&parked)["state"]["Waiting"].is_null() || runs.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    service.stop();
    soon("the truth", async {
        let is_released = |id: &str| shelf.record(id)["lease"]["until"] != u64::MAX;
        while !is_released(&again) || shelf.record(&once)["state"]["Failed"].is_null() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(shelf.record(&again)["state"], "Working", "it runs again later");
    let failed = shelf.record(&once);
    let message = failed["state"]["Failed"]["error"]["message"].as_str().unwrap();
    assert!(message.contains("was restarted while this ran"), "{failed}");
    assert!(shelf.record(&parked)["state"]["Waiting"].is_object());

    let service = on(&shelf, &runs);
    let status = async |task: &str| {
        let answer = modern(&service, "ada", "tasks/get", json!({ "taskId": task })).await.json();
        tokio::task::yield_now().await;
        answer["result"].clone()
    };
    assert_eq!(status(&once).await["status"], "failed");
    let asked = status(&parked).await;
    let (key, _) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let reply = json!({ "action": "accept", "content": {} });
    let params = json!({ "taskId": parked, "inputResponses": { key.as_str(): reply } });
    modern(&service, "ada", "tasks/update", params).await;
    for (task, text) in [(&parked, "agreed: true"), (&again, "ran again")] {
        let done = loop {
            let found = status(task).await;
            if found["status"] != "working" {
                break found;
            }
        };
        assert_eq!(done["result"]["content"][0]["text"], text, "{done}");
    }
}

/// Two tools that do not run again after a crash: one runs for this long, and one just as often,
/// without a question. At most one handler runs at a time.
fn busy(shelf: &Shelf, seconds: u64) -> HttpService {
    let wait = move |_: Context| async move {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        "waited"
    };
    let patient = move |context: Context| async move {
        let round = context.request_state::<u64>().unwrap_or_default();
        match round < seconds {
            true => Step::Ask(InputRequired::new().state(json!(round + 1))),
            false => Step::Done("patient"),
        }
    };
    let limits = TaskLimits { running: 1, ..TaskLimits::default() };
    let http = Server::new("tasks", "1.0.0")
        .with(Tool::new("wait", wait).task(TaskMode::Optional))
        .with(Tool::new("patient", patient).task(TaskMode::Optional))
        .tasks(Tasks::in_store(shelf.clone(), limits))
        .http();
    identified(http).into_service().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_begins_no_more_tasks() {
    async fn create(service: &HttpService, tool: &str) -> String {
        let created = modern(service, "ada", "tools/call", json!({ "name": tool })).await.json();
        created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned()
    }
    let shelf = Shelf::default();
    let service = busy(&shelf, 3);
    let patient = create(&service, "patient").await;
    // It pauses between two rounds, which gives others a turn.
    tokio::time::sleep(Duration::from_millis(700)).await;
    let begun = create(&service, "wait").await;
    let waiting = [create(&service, "wait").await, create(&service, "wait").await, patient];
    tokio::time::sleep(Duration::from_millis(700)).await;
    service.stop();
    let is_left = |id: &str| {
        let record = shelf.record(id);
        record["is_queued"] == true && record["lease"]["until"] != u64::MAX
    };
    soon("an end", async {
        while shelf.record(&begun)["state"]["Completed"].is_null() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    // Those that wait do so no longer, and those that have ended leave their place to nobody.
    for _ in 0..100 {
        for id in &waiting {
            assert!(is_left(id), "{}", shelf.record(id));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let service = busy(&shelf, 3);
    for id in &waiting {
        let done = soon("an end", ended(&service, id)).await;
        assert_eq!(done["result"]["status"], "completed", "{done}");
    }
}

/// Waits for the end of a task.
async fn ended(service: &HttpService, task: &str) -> Value {
    loop {
        let params = json!({ "taskId": task });
        let found = modern(service, "ada", "tasks/get", params).await.json();
        if found["result"]["status"] != "working" {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
