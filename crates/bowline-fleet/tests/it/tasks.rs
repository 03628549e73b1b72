//! Tasks whose callers vanish, and what listeners hear of those that run.

use std::time::Duration;

use bowline::TaskLimits;
use bowline_fleet::Fleet;
use serde_json::json;

use crate::http;
use crate::nodes::{Plan, answer, eventually, node};
use crate::stores::Postgres;

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_caller_has_gone_does_not_exist() {
    let postgres = Postgres::start();
    let node = node(&postgres.database(), None).await;
    // Creations wait as long as somebody else holds their counters.
    let hold = "BEGIN; LOCK TABLE bowline.counts IN EXCLUSIVE MODE; SELECT pg_sleep(60); COMMIT";
    std::thread::scope(|scope| {
        // Ended below.
        scope.spawn(|| drop(postgres.sql("test0", hold)));
        let holders = "FROM pg_locks WHERE mode = 'ExclusiveLock' AND granted
            AND relation = 'bowline.counts'::regclass";
        let count = |what: &str| postgres.sql("test0", &format!("SELECT count({what}) {holders}"));
        let in_vain = async {
            eventually("the counters are held", async || {
                (count("*").unwrap() == "1").then_some(())
            })
            .await;
            for _ in 0..3 {
                let call = json!({ "name": "wait" });
                let created = http::modern(node.port, "ada", "tools/call", call);
                let created = tokio::time::timeout(Duration::from_millis(200), created).await;
                assert!(created.is_err(), "a creation waits");
            }
            count("pg_terminate_backend(pid)").unwrap();
        };
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(in_vain));
    });
    let call = json!({ "name": "wait" });
    let created = answer(http::modern(node.port, "ada", "tools/call", call).await).await;
    let id = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    let live = "SELECT count(*) FROM bowline.records
        WHERE record::json->>'state' IN ('Working', '\"Working\"')";
    eventually("only the task that was told lives", async || {
        (postgres.sql("test0", live).unwrap() == "1").then_some(())
    })
    .await;
    let seen = http::modern(node.port, "ada", "tasks/get", json!({ "taskId": id })).await;
    assert_eq!(answer(seen).await["result"]["status"], "working");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_renewal_of_a_lease_is_not_news() {
    let postgres = Postgres::start();
    let database = postgres.database();
    let limits = TaskLimits { lease: Duration::from_secs(9), ..TaskLimits::default() };
    let start = async || Plan::usual(Fleet::builder(&database).limits(limits)).start().await;
    let (one, two) = (start().await, start().await);
    let call = json!({ "name": "wait" });
    let created = answer(http::modern(one.port, "ada", "tools/call", call).await).await;
    let id = created["result"]["taskId"].as_str().unwrap().to_owned();
    let mut streams = Vec::new();
    for port in [one.port, two.port] {
        let filter = json!({ "notifications": { "taskIds": [id] } });
        let stream = http::modern(port, "ada", "subscriptions/listen", filter).await;
        let (mut stream, mut rest) = (stream.unwrap(), String::new());
        stream.event(&mut rest).await.unwrap();
        streams.push((stream, rest));
    }
    // Several renewals, and several looks at the store.
    let renewed = || one.fleet.metrics().tasks.renewed;
    eventually("the lease is renewed", async || (renewed() >= 3).then_some(())).await;
    http::modern(two.port, "ada", "tasks/cancel", json!({ "taskId": id })).await.unwrap();
    for (stream, rest) in &mut streams {
        let mut told = Vec::new();
        while told.last() != Some(&"cancelled".to_owned()) {
            let event = tokio::time::timeout(http::PATIENCE, stream.event(rest)).await;
            let event = event.expect("the end is told").unwrap();
            told.push(event["params"]["status"].as_str().unwrap_or_default().to_owned());
        }
        // How it was at first, perhaps once more because it had just begun, and its end.
        assert!(told.len() <= 3, "{told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_its_own_node_had_to_stop_says_why() {
    let mut postgres = Postgres::start();
    let limits = TaskLimits { lease: Duration::from_secs(3), ..TaskLimits::default() };
    let node = Plan::usual(Fleet::builder(postgres.database()).limits(limits)).start().await;
    let call = json!({ "name": "wait" });
    let created = answer(http::modern(node.port, "ada", "tools/call", call).await).await;
    let id = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    postgres.stop();
    eventually("the handler is stopped", async || {
        (node.fleet.metrics().tasks.lost > 0).then_some(())
    })
    .await;
    postgres.run();
    let why = eventually("the task ends", async || {
        let task = json!({ "taskId": id });
        let seen = answer(http::modern(node.port, "ada", "tasks/get", task).await).await;
        seen["result"]["error"]["message"].as_str().map(str::to_owned)
    })
    .await;
    assert!(why.contains("could not renew the lease"), "{why}");
}
