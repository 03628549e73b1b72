//! Owners of tasks, however long their names are.

use bowline::tasks::TaskStore as _;
use bowline_fleet::Fleet;
use serde_json::json;

use crate::changes::noise;
use crate::http;
use crate::nodes::{answer, eventually, node};
use crate::stores::Postgres;

/// The tables as the first releases have made them.
const FIRST: [&str; 3] = [
    include_str!("../../migrations/0001_records.sql"),
    include_str!("../../migrations/0002_nodes.sql"),
    include_str!("../../migrations/0003_changes.sql"),
];

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_may_have_a_long_name() {
    let postgres = Postgres::start();
    let node = node(&postgres.database(), None).await;
    let long = noise(8_000);
    for user in [&*long, "ada"] {
        let call = json!({ "name": "wait" });
        let created = answer(http::modern(node.port, user, "tools/call", call).await).await;
        let id = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
        let task = || json!({ "taskId": id });
        let seen = answer(http::modern(node.port, user, "tasks/get", task()).await).await;
        assert_eq!(seen["result"]["status"], "working", "{seen}");
        let tasks = node.fleet.store("task").page(Some(user), None, 9).await.unwrap();
        assert_eq!(tasks.iter().map(|task| task.id()).collect::<Vec<_>>(), [id]);
    }
    assert!(node.fleet.store("task").page(None, None, 9).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_are_counted_as_before_when_the_tables_are_brought_up_to_date() {
    let postgres = Postgres::start();
    let database = postgres.database();
    let sql = |sql: &str| postgres.sql("test0", sql).unwrap();
    let create = |id: &str, owner: &str| {
        let quota = "2, 9";
        format!(
            "SELECT bowline.create_record('task x', '{id}', {owner}, 1, 1, '{{}}', 0, 0, {quota});"
        )
    };
    sql("CREATE SCHEMA bowline; CREATE TABLE bowline.migrations (number integer PRIMARY KEY,
        applied timestamptz NOT NULL DEFAULT clock_timestamp())");
    FIRST.iter().for_each(|file| drop(sql(file)));
    sql("INSERT INTO bowline.migrations VALUES (1), (2), (3)");
    for (id, owner) in [("a", "'ada'"), ("b", "'ada'"), ("c", "NULL")] {
        assert_eq!(sql(&create(id, owner)), "0");
    }
    // Somebody is at it: first the record, then its count, as removals do.
    let remove = "BEGIN; UPDATE bowline.records SET due = 2; SELECT pg_sleep(1);
        SELECT bowline.count_down('task x', false, '', false);
        SELECT bowline.count_up('task x', false, '', false, 9); COMMIT";
    let fleet = std::thread::scope(|scope| {
        let removal = scope.spawn(|| postgres.sql("test0", remove));
        let joined = async {
            eventually("somebody changes records", async || {
                let locks = "SELECT count(*) FROM pg_locks WHERE mode = 'RowExclusiveLock'
                    AND relation = 'bowline.records'::regclass";
                (sql(locks) == "1").then_some(())
            })
            .await;
            Fleet::connect(&database).await.unwrap()
        };
        let fleet =
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(joined));
        removal.join().unwrap().unwrap();
        fleet
    });
    assert_eq!(sql(&create("d", "'ada'")), "1", "both are counted");
    assert_eq!(sql(&create("d", "NULL")), "0");
    let removed = "SELECT bool_and(bowline.remove_record('task x', id, 0)) FROM bowline.records";
    assert_eq!(sql(removed), "t");
    assert_eq!(sql("SELECT coalesce(sum(number), 0) FROM bowline.counts"), "0");
    drop(fleet);
}
