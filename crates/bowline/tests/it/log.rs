//! What handlers log with `tracing` reaches the client that calls them.

use bowline::model::LoggingLevel;
use bowline::{ClientLog, Revision, Server, Tool, testing};
use serde_json::{Value, json};
use tracing_subscriber::prelude::*;

async fn work() -> &'static str {
    tracing::debug!("not wanted");
    tracing::info!("begun");
    tokio::task::yield_now().await;
    tracing::warn!(left = 3, "nearly done");
    "done"
}

#[tokio::test]
async fn events_inside_a_handler_become_log_messages() {
    let _default = tracing_subscriber::registry().with(ClientLog::default()).set_default();
    for revision in Revision::ALL {
        let server = Server::new("logs", "1.0.0").with(Tool::new("work", work));
        let client = testing::connect_in(server, revision).await.unwrap();
        client.set_log_level(Some(LoggingLevel::Info)).await.unwrap();
        let mut notifications = client.notifications();
        tracing::info!("outside of any handler");
        client.call_tool("work", json!({})).text().await.unwrap();
        let said = std::iter::from_fn(|| notifications.try_next());
        let logs: Vec<Value> = said.map(|it| it.unwrap().params.to_value()).collect();
        assert_eq!(logs.len(), 2, "{revision}: {logs:?}");
        assert_eq!((&logs[0]["level"], &logs[0]["data"]), (&json!("info"), &json!("begun")));
        assert_eq!(logs[0]["logger"], "it::log");
        assert_eq!(logs[1]["data"], json!({ "left": 3, "message": "nearly done" }));
    }
}
