//! Tasks over HTTP: headers, and servers that are away for a while.

use bowline::client::Client;
use serde_json::json;

use super::fixture::{builder, soon};
use super::tasks::{completed, created, discovered, task};
use super::web::Web;

async fn connect(web: &mut Web) -> Client {
    let client = web.connecting(builder());
    web.asked("server/discover").await.answer(discovered()).await;
    soon("a connection", client).await.unwrap().unwrap()
}

#[tokio::test]
async fn headers_name_the_task_and_a_restart_does_no_harm() {
    let mut web = Web::start().await;
    let client = connect(&mut web).await;
    let call = tokio::spawn(client.call_tool("slow", json!({})).text());
    let fast = json!({ "pollIntervalMs": 1 });
    web.asked("tools/call").await.answer(created(fast.clone())).await;
    let listen = web.asked("subscriptions/listen").await;
    assert_eq!(listen.body["params"]["notifications"]["taskIds"], json!(["t1"]));
    listen.refuse(404, -32601).await;
    let poll = web.asked("tasks/get").await;
    assert_eq!(poll.header("mcp-method"), Some("tasks/get"));
    assert_eq!(poll.header("mcp-name"), Some("t1"));
    // A gateway whose server restarts.
    poll.status(503).await;
    web.asked("tasks/get").await.answer(task("working", fast)).await;
    drop(web.asked("tasks/get").await);
    web.asked("tasks/get").await.answer(completed("done")).await;
    assert_eq!(soon("an end", call).await.unwrap().unwrap(), "done");

    let task = client.resume_task("t1");
    let cancel = tokio::spawn(async move { task.cancel().await });
    let cancelling = web.asked("tasks/cancel").await;
    assert_eq!(cancelling.header("mcp-name"), Some("t1"));
    cancelling.answer(json!({ "resultType": "complete" })).await;
    soon("an end", cancel).await.unwrap().unwrap();
    client.close().await;
}

#[tokio::test]
async fn changes_come_as_events() {
    let mut web = Web::start().await;
    let client = connect(&mut web).await;
    let call = tokio::spawn(client.call_tool("slow", json!({})).text());
    let slow = json!({ "pollIntervalMs": 60_000 });
    web.asked("tools/call").await.answer(created(slow.clone())).await;
    let listen = web.asked("subscriptions/listen").await;
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": listen.body["id"] });
    let mut listen = listen.events().await;
    let granted = json!({ "notifications": { "taskIds": ["t1"] }, "_meta": meta });
    let method = "notifications/subscriptions/acknowledged";
    listen.event("", &json!({ "jsonrpc": "2.0", "method": method, "params": granted })).await;
    // What changed before the server listened is asked for.
    web.asked("tasks/get").await.answer(task("working", slow)).await;
    let mut params = completed("done");
    params["_meta"] = meta;
    let method = "notifications/tasks";
    listen.event("", &json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    assert_eq!(soon("an end", call).await.unwrap().unwrap(), "done");
    listen.closed().await;
    client.close().await;
}
