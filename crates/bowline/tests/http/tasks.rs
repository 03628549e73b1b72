//! Tasks over HTTP: whose they are, in both generations at once.

use bowline::http::HttpService;
use bowline::{Context, HandlerError, Revision, Server, TaskMode, Tool};
use serde_json::{Value, json};

use super::client::{Answer, Session, modern_with, open, request, send};
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
