//! The counter, used as a client uses it, in every revision.

use bowline::{Revision, testing};
use serde_json::json;

#[tokio::test]
async fn it_counts_and_tells() {
    for revision in Revision::ALL {
        let client = testing::connect_in(counter::server(), revision).await.unwrap();
        assert_eq!(client.call_text("increment", json!({})).await.unwrap(), "1");
        assert_eq!(client.call_text("increment", json!({})).await.unwrap(), "2");
        assert_eq!(client.call_text("decrement", json!({})).await.unwrap(), "1");
        assert_eq!(client.call_text("get_value", json!({})).await.unwrap(), "1");
        assert_eq!(client.call_text("say_hello", json!({})).await.unwrap(), "hello");
        let sum = json!({ "a": 1_023_123, "b": 2_352_345 });
        assert_eq!(client.call_text("sum", sum).await.unwrap(), "3375468");
        let value = client.read_resource(counter::VALUE_URI).await.unwrap();
        assert_eq!(value.contents[0].as_text(), Some("1"));
        let prompt = client.get_prompt("counter_analysis", &[("goal", "5")]).await.unwrap();
        let text = prompt.messages[0].content.as_text().unwrap();
        assert!(text.contains("4 steps to go"), "{text}");
    }
}

#[tokio::test]
async fn whoever_subscribes_hears_of_every_change() {
    let client = testing::connect_in(counter::server(), Revision::V2025_11_25).await.unwrap();
    let uri = json!({ "uri": counter::VALUE_URI });
    client.request("resources/subscribe", uri.clone()).await.unwrap();
    client.call_text("increment", json!({})).await.unwrap();
    let told = client.notified("notifications/resources/updated").await.unwrap();
    assert_eq!(told.params, uri);
}

#[tokio::test(start_paused = true)]
async fn a_long_task_reports_its_progress() {
    let client = testing::connect(counter::server()).await.unwrap();
    let done = client.call_text("long_task", json!({ "steps": 5 })).await.unwrap();
    assert_eq!(done, "counted 5 steps");
    let reports = client.notifications();
    assert_eq!(reports.len(), 5);
    assert_eq!(reports[4].params["progress"], 5.0);
    assert_eq!(reports[4].params["total"], 5.0);
}
