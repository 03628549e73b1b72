//! Tasks of servers at the endpoints of the gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bowline::client::{Client, Preference};
use bowline::{Server, TaskMode, Tool};
use serde_json::json;

use crate::world::{names, plan, serve, server, soon, start, until};

#[tokio::test]
async fn tools_run_as_tasks_at_both_endpoints_however_late_their_server_comes() {
    for preference in [Preference::Legacy, Preference::Modern] {
        let works = Arc::new(AtomicBool::new(false));
        let known = Arc::clone(&works);
        let mut late = server("late", move || {
            let long = Tool::new("long", || async { "done" }).task(TaskMode::Optional);
            match known.load(Ordering::SeqCst) {
                true => Ok(Server::new("late", "1").with(long)),
                false => Err("not yet".to_owned()),
            }
        });
        late.preference = preference;
        let (gateway, front) = start(plan(vec![late])).await;
        let url = serve(&gateway, front).await;
        let connect = async |url: String| {
            let client = Client::builder("test", "1").preference(preference);
            client.connect(url).await.unwrap()
        };
        let own = connect(url.replace("/mcp", "/servers/late/mcp")).await;
        let front = connect(url).await;
        works.store(true, Ordering::SeqCst);
        until(async || own.list_tools().without_cache().await.is_ok_and(|it| it.len() == 1)).await;
        until(async || front.list_tools().without_cache().await.is_ok()).await;
        assert_eq!(names(&front).await, ["late__long"]);
        for (client, name) in [(&own, "long"), (&front, "late__long")] {
            let started = soon(client.call_tool(name, json!({})).start()).await.unwrap();
            assert!(started.task().is_some(), "{preference:?} {name}");
            let done = format!("{:?}", soon(started.wait()).await.unwrap());
            assert!(done.contains("done"), "{done}");
        }
    }
}
