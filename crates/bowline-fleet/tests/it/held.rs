//! Nodes while somebody holds a table of their database.

use std::time::Duration;

use bowline::fleet::{Change, Fleet as _};
use bowline_fleet::Fleet;

use crate::nodes::eventually;
use crate::stores::Postgres;

/// How long nodes wait for Postgres here: longer than anything in these tests takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Does something while a table of the first database is held.
fn while_held<T>(postgres: &Postgres, table: &str, work: impl Future<Output = T>) -> T {
    let hold = format!(
        "BEGIN; LOCK TABLE bowline.{table} IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(180); COMMIT"
    );
    let holders = format!(
        "FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted
         AND relation = 'bowline.{table}'::regclass"
    );
    let sql = |what: &str| postgres.sql("test0", &format!("SELECT {what} {holders}")).unwrap();
    std::thread::scope(|scope| {
        // Ended below.
        scope.spawn(|| drop(postgres.sql("test0", &hold)));
        let held = async {
            eventually("it is held", async || (sql("count(*)") == "1").then_some(())).await;
            let done = work.await;
            sql("pg_terminate_backend(pid)");
            done
        };
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(held))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn no_heartbeat_waits_while_a_node_cleans_up() {
    let postgres = Postgres::start();
    let database = postgres.database();
    // Makes the tables.
    Fleet::connect(&database).await.unwrap().leave().await;
    while_held(&postgres, "changes", async {
        let fleet = Fleet::builder(&database).patience(PATIENCE).connect().await.unwrap();
        let beaten = "SELECT count(*) FROM pg_stat_activity AS one, bowline.nodes AS two
            WHERE one.query LIKE 'DELETE FROM bowline.changes%' AND one.wait_event_type = 'Lock'
            AND two.seen > one.query_start";
        eventually("a heartbeat", async || {
            (postgres.sql("test0", beaten).unwrap() == "1").then_some(())
        })
        .await;
        drop(fleet);
    });
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::async_yields_async, reason = "the node cannot leave while the table is held")]
async fn a_node_that_leaves_announces_what_failed_meanwhile() {
    let postgres = Postgres::start();
    let builder = Fleet::builder(postgres.database()).patience(PATIENCE);
    let fleet = builder.connect().await.unwrap();
    let sql = |sql: &str| postgres.sql("test0", sql).unwrap();
    let leaving = while_held(&postgres, "changes", async {
        fleet.announce(Change::parse("resource test://last").unwrap());
        let waits = "FROM pg_stat_activity WHERE wait_event_type = 'Lock'
            AND query LIKE 'SELECT bowline.change(%'";
        let count = format!("SELECT count(*) {waits}");
        eventually("the announcement waits", async || (sql(&count) == "1").then_some(())).await;
        let leaving = fleet.clone();
        let leaving = tokio::spawn(async move { leaving.leave().await });
        eventually("the node leaves", async || (!fleet.is_ready()).then_some(())).await;
        sql(&format!("SELECT pg_terminate_backend(pid) {waits}"));
        leaving
    });
    leaving.await.unwrap();
    let kept = "SELECT count(*) FROM bowline.changes WHERE topic = 'resource test://last'";
    assert_eq!(sql(kept), "1");
}
