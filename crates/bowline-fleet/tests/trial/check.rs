//! What must be true of the histories.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::clients::{History, Seen, Task, Walk, is_over, look};
use crate::http;
use crate::node::RESOURCE;
use crate::stores::Postgres;

/// How long a change may take to every node. The crate promises 4 s, and how long it took is
/// printed; the rest is for a machine that is busy.
pub const SEEN: Duration = Duration::from_secs(30);
/// How long tasks may take to end once nothing fails any more.
const SETTLED: Duration = Duration::from_secs(180);

/// Writes down every version of every task, in the database itself.
pub const AUDIT: &str = "
    CREATE TABLE audit (id bytea, version bigint, fence bigint, holder text, state text);
    CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.kind LIKE 'task %' THEN
            INSERT INTO audit VALUES (NEW.id, NEW.version, (NEW.record::json->'lease'->>'fence')::bigint,
                NEW.record::json->'lease'->>'holder', NEW.record::json->>'state');
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER audit AFTER INSERT OR UPDATE ON bowline.records
        FOR EACH ROW EXECUTE FUNCTION audit();";

/// Every acknowledged task ends, and all nodes say the same of it, now and later.
pub async fn tasks_end(history: &Arc<History>, ports: [u16; 3]) {
    let tasks = history.tasks.lock().unwrap().clone();
    let began = Instant::now();
    let mut all = JoinSet::new();
    let turns = Arc::new(Semaphore::new(16));
    for task in tasks {
        let (history, turns) = (Arc::clone(history), Arc::clone(&turns));
        all.spawn(async move {
            let mut outcome = task.outcome.clone();
            for port in ports {
                let seen = settled(port, &task, &turns, began).await;
                match seen {
                    Seen::Ended(now) if outcome.as_ref().is_none_or(|it| *it == now) => {
                        outcome = Some(now);
                    }
                    Seen::Ended(now) => {
                        let was = outcome.clone().unwrap_or_default();
                        history.wrong(format!("task {}: first {was:?}, then {now:?}", task.number));
                    }
                    Seen::Unknown => history.wrong(format!("task {} is lost", task.number)),
                    Seen::Working | Seen::Nothing => {
                        history.wrong(format!("task {} does not end on {port}", task.number));
                    }
                }
            }
            (task, outcome.unwrap_or_default())
        });
    }
    let ended = all.join_all().await;
    let mut tasks = history.tasks.lock().unwrap();
    *tasks = ended
        .into_iter()
        .map(|(mut task, outcome)| {
            task.outcome = Some(outcome);
            task
        })
        .collect();
}

/// How a task is on a node, once it has ended or has had its time.
async fn settled(port: u16, task: &Task, turns: &Semaphore, began: Instant) -> Seen {
    loop {
        let turn = turns.acquire().await.unwrap();
        let seen = look(port, &task.user, &task.id).await;
        drop(turn);
        let is_open = matches!(seen, Seen::Working | Seen::Nothing);
        if !is_open || began.elapsed() >= SETTLED {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// What is said of a task that was interrupted and may not run again: whichever node takes it over
/// first, its own one included, and whatever that one was about to write.
const INTERRUPTED: [&str; 3] = [
    "the server was restarted while this ran",
    "the server could not renew the lease of this task",
    "the server could not store what became of this",
];

/// What tools did: a tool that may not run again at most once, and every result was worked for.
pub fn effects(history: &History, file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut counts: HashMap<&str, u64> = HashMap::new();
    for line in text.lines() {
        *counts.entry(line).or_default() += 1;
    }
    for (line, count) in &counts {
        if line.starts_with("once ") && *count > 1 {
            history.wrong(format!("{line}: {count} effects"));
        }
    }
    let (mut completed, mut interrupted) = (0, 0);
    for task in &*history.tasks.lock().unwrap() {
        let outcome = task.outcome.as_deref().unwrap_or_default();
        let expected = format!("completed {} {} {} ", task.tool, task.number, task.user);
        if outcome == expected {
            completed += 1;
            let line = format!("{} {}", task.tool, task.number);
            if !counts.contains_key(&*line) {
                history.wrong(format!("{line} has a result and no effect"));
            }
        } else if task.tool == "once"
            && outcome.starts_with("failed ")
            && INTERRUPTED.iter().any(|said| outcome.contains(said))
        {
            interrupted += 1;
        } else {
            history.wrong(format!("task {} ({}): {outcome:?}", task.number, task.tool));
        }
    }
    let repeated = counts.values().filter(|count| **count > 1).count();
    format!("{completed} completed, {interrupted} interrupted and told so, {repeated} run again")
}

/// No write with an old fence, and none after the end.
pub fn fences(history: &History, postgres: &Postgres, database: &str) {
    let checks = [
        ("a write with an old fence", "SELECT count(*) FROM audit one JOIN audit two USING (id)
            WHERE one.version < two.version AND one.fence > two.fence"),
        ("one fence of two processes", "SELECT count(*) FROM audit one JOIN audit two USING (id, fence)
            WHERE one.holder <> two.holder"),
        ("a write after the end", "SELECT count(*) FROM audit one JOIN audit two USING (id)
            WHERE one.version < two.version
            AND (one.state LIKE '%Completed%' OR one.state LIKE '%Failed%' OR one.state LIKE '%Cancelled%')"),
        ("two writes of one version", "SELECT count(*) FROM (SELECT FROM audit
            GROUP BY id, version HAVING count(*) > 1) AS twice"),
    ];
    for (what, sql) in checks {
        match postgres.sql(database, sql).as_deref() {
            Ok("0") => {}
            found => history.wrong(format!("{what}: {found:?}")),
        }
    }
    let written = postgres.sql(database, "SELECT count(*) FROM audit");
    assert_ne!(written.as_deref(), Ok("0"), "the audit sees writes");
}

/// A change on each node reaches listeners on each node. Returns the longest time.
pub async fn changes(history: &History, ports: [u16; 3]) -> Duration {
    let mut longest = Duration::ZERO;
    for from in ports {
        let mut listening = Vec::new();
        for port in ports {
            let filter = json!({ "notifications": { "resourceSubscriptions": [RESOURCE] } });
            let stream = http::modern(port, "ada", "subscriptions/listen", filter).await;
            let Some(mut stream) = stream else {
                history.wrong(format!("port {port} lets nobody listen"));
                continue;
            };
            let mut rest = String::new();
            let began = tokio::time::timeout(http::PATIENCE, stream.event(&mut rest)).await;
            assert!(matches!(began, Ok(Some(_))), "port {port} does not say that it listens");
            listening.push((port, stream, rest));
        }
        let began = Instant::now();
        http::modern(from, "ada", "tools/call", json!({ "name": "touch" })).await;
        for (port, mut stream, mut rest) in listening {
            let heard = tokio::time::timeout(SEEN, stream.event(&mut rest)).await;
            match heard.ok().flatten() {
                Some(told) if told["method"] == "notifications/resources/updated" => {}
                told => {
                    history
                        .wrong(format!("{from} to {port}: {told:?} after {:?}", began.elapsed()));
                }
            }
            longest = longest.max(began.elapsed());
        }
    }
    longest
}

/// In peace, every combination of nodes works, and what has ended has ended everywhere.
pub async fn sessions(history: &History, ports: [u16; 3]) {
    let ended = history.ended.lock().unwrap().clone();
    for (session, user) in ended.iter().rev().take(60) {
        is_over(history, &ports, (session, user), true).await;
    }
    for open in ports {
        for answer in ports {
            let before = history.answered.load(Ordering::Relaxed);
            let (ask, end) = (ports[usize::from(open == ports[0])], ports[2]);
            let walk = Walk { history, ports, user: "ada", open, ask, answer, end };
            if walk.run().await.is_none() || history.answered.load(Ordering::Relaxed) == before {
                history
                    .wrong(format!("a session from {open} by {ask} and {answer} to {end} failed"));
            }
        }
    }
}
