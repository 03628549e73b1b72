//! Servers and databases that are not what a node expects.

use std::time::Duration;

use bowline::{Context, Server, TaskLimits, TaskMode, Tool};
use bowline_fleet::Fleet;
use serde_json::{Value, json};

use crate::http;
use crate::nodes::{NEWS, Node, Plan, answer, eventually, node, open, request, two};
use crate::stores::Postgres;

/// A node of a server, whose tool can run again.
async fn of(database: &str, server: &str, tool: &'static str) -> Node {
    let work = Tool::new(tool, move |context: Context| async move {
        // Longer than a node that stops waits for it. A run that was interrupted begins again.
        tokio::time::sleep(Duration::from_secs(20)).await;
        format!("{tool} of {}", context.caller().principal.as_ref().unwrap().as_str())
    });
    let server = Server::new(server, "1").with(work.task(TaskMode::Required).rerun());
    let limits = TaskLimits { lease: Duration::from_secs(10), ..TaskLimits::default() };
    Plan::new(Fleet::builder(database).limits(limits), server).start().await
}

async fn task(node: &Node, id: &str) -> Value {
    let asked = http::modern(node.port, "ada", "tasks/get", json!({ "taskId": id })).await;
    answer(asked).await
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_with_other_names_share_nothing() {
    let postgres = Postgres::start();
    let database = postgres.database();
    let (one, other) = (of(&database, "one", "dig").await, of(&database, "other", "fly").await);
    let session = open(one.port).await;
    let ping = request(1, "ping", json!({}));
    let known = http::legacy(one.port, "ada", Some(&session), ping.clone()).await.unwrap();
    let stranger = http::legacy(other.port, "ada", Some(&session), ping).await.unwrap();
    assert_eq!((known.status, stranger.status), (200, 404));
    let created = http::modern(one.port, "ada", "tools/call", json!({ "name": "dig" })).await;
    let created = answer(created).await;
    let id = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    assert!(task(&other, id).await["error"].is_object());
    // The other server does not take over what is not its own.
    one.end().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(other.fleet.metrics().others, 0);
    let again = of(&database, "one", "dig").await;
    let done = eventually("the task is done", async || {
        let seen = task(&again, id).await["result"].take();
        (seen["status"] != "working").then_some(seen)
    })
    .await;
    assert_eq!(done["result"]["content"][0]["text"], "dig of ada", "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_without_a_tool_leaves_its_tasks_alone() {
    let postgres = Postgres::start();
    let database = postgres.database();
    let (old, new) = (of(&database, "one", "old").await, of(&database, "one", "new").await);
    let created = http::modern(new.port, "ada", "tools/call", json!({ "name": "new" })).await;
    let created = answer(created).await;
    let id = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    new.end().await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(task(&old, id).await["result"]["status"], "working");
    let again = of(&database, "one", "new").await;
    let done = eventually("the task is done", async || {
        let seen = task(&old, id).await["result"].take();
        (seen["status"] != "working").then_some(seen)
    })
    .await;
    assert_eq!(done["result"]["content"][0]["text"], "new of ada", "{done}");
    assert_eq!(again.fleet.metrics().tasks.adopted, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_number_is_anothers_is_not_ready() {
    let postgres = Postgres::start();
    let node = node(&postgres.database(), None).await;
    assert_eq!(http::get(node.port, "/ready").await, Some(200));
    postgres.sql("test0", "UPDATE bowline.nodes SET incarnation = 'x'").unwrap();
    eventually("not ready", async || {
        (http::get(node.port, "/ready").await == Some(503)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_yesterday_does_no_harm() {
    let postgres = Postgres::start();
    let [one, two] = two(&postgres, None).await;
    let listening = async || {
        let filter = json!({ "notifications": { "resourceSubscriptions": [NEWS] } });
        let stream = http::modern(one.port, "ada", "subscriptions/listen", filter).await;
        let (mut stream, mut rest) = (stream.unwrap(), String::new());
        stream.event(&mut rest).await.unwrap();
        (stream, rest)
    };
    let touch = async || {
        let call = json!({ "name": "touch" });
        http::modern(two.port, "ada", "tools/call", call).await.unwrap();
    };
    for _ in 0..3 {
        let (mut stream, mut rest) = listening().await;
        touch().await;
        stream.event(&mut rest).await.unwrap();
    }
    // As before anything had changed, and before the second node came.
    let restore = "DELETE FROM bowline.changes; SELECT setval('bowline.revisions', 1, false);
        DELETE FROM bowline.nodes; SELECT setval('bowline.nodes_number_seq', 1, false)";
    postgres.sql("test0", restore).unwrap();
    let (mut stream, mut rest) = listening().await;
    touch().await;
    let told = tokio::time::timeout(http::PATIENCE, stream.event(&mut rest)).await;
    assert!(told.expect("a change after the restore is heard").is_some());
    let sql = "SELECT count(*) FROM bowline.nodes";
    eventually("both are registered again", async || {
        (postgres.sql("test0", sql).unwrap() == "2").then_some(())
    })
    .await;
    let third = node(&Postgres::url("test0", postgres.port), None).await;
    eventually("all know each other", async || {
        [&one, &two, &third].iter().all(|it| it.fleet.metrics().others == 2).then_some(())
    })
    .await;
}
