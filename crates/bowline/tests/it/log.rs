//! What handlers log with `tracing` reaches the client that calls them.

use bowline::model::LoggingLevel;
use bowline::testing::TestClient;
use bowline::{ClientLog, Revision, Server, Tool};
use serde_json::json;
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
        let client = TestClient::builder().revision(revision).log_level(LoggingLevel::Info);
        let client = client.connect(server).await.unwrap();
        tracing::info!("outside of any handler");
        client.call_text("work", json!({})).await.unwrap();
        let logs: Vec<_> = client.notifications().into_iter().map(|it| it.params).collect();
        assert_eq!(logs.len(), 2, "{revision}: {logs:?}");
        assert_eq!((&logs[0]["level"], &logs[0]["data"]), (&json!("info"), &json!("begun")));
        assert_eq!(logs[0]["logger"], "it::log");
        assert_eq!(logs[1]["data"], json!({ "left": 3, "message": "nearly done" }));
    }
}
