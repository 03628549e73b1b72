//! The store by itself.

use bowline_fleet::Fleet;
use serde_json::json;

use crate::http;
use crate::nodes::{answer, node};
use crate::stores::Postgres;

#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_the_contract() {
    let postgres = Postgres::start();
    let make = async || {
        let fleet = Fleet::connect(&postgres.database()).await.unwrap();
        fleet.store("task")
    };
    bowline::testing::task_store_contract(make).await;
}

#[tokio::test]
async fn two_kinds_do_not_see_each_other() {
    use bowline::tasks::TaskStore as _;
    let postgres = Postgres::start();
    let fleet = Fleet::connect(&postgres.database()).await.unwrap();
    let [one, two] = ["one", "two"].map(|kind| fleet.store(kind));
    bowline::testing::task_store_contract(async || one_of(&fleet).await).await;
    assert!(one.due(u64::MAX, 9).await.unwrap().is_empty());
    assert!(two.due(u64::MAX, 9).await.unwrap().is_empty());
}

/// An empty store of a kind that was not used before.
async fn one_of(fleet: &Fleet) -> bowline_fleet::Store {
    use std::sync::atomic::{AtomicUsize, Ordering};
    const KINDS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    fleet.store(KINDS[NEXT.fetch_add(1, Ordering::Relaxed)])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_for_what_is_due_writes_nothing() {
    use bowline::tasks::TaskStore as _;
    let postgres = Postgres::start();
    let node = node(&postgres.database(), None).await;
    let call = json!({ "name": "wait" });
    let created = answer(http::modern(node.port, "ada", "tools/call", call).await).await;
    let due = node.fleet.store("task").due(u64::MAX, 9).await.unwrap();
    assert_eq!(json!(due), json!([created["result"]["taskId"]]));
    let locked = "SELECT count(*) FROM bowline.records WHERE xmax <> 0";
    assert_eq!(postgres.sql("test0", locked).unwrap(), "0");
}
