//! The counter, used as a client uses it, in every revision.

use std::path::Path;

use bowline::{Revision, testing};
use bowline_serve::testing::{Note, check_manners};
use serde_json::json;

#[tokio::test]
async fn it_counts() {
    for revision in Revision::ALL {
        let client = testing::connect_in(counter::server(), revision).await.unwrap();
        assert_eq!(client.call_tool("increment", json!({})).text().await.unwrap(), "1");
        assert_eq!(client.call_tool("increment", json!({})).text().await.unwrap(), "2");
        assert_eq!(client.call_tool("decrement", json!({})).text().await.unwrap(), "1");
        assert_eq!(client.call_tool("get_value", json!({})).text().await.unwrap(), "1");
        assert_eq!(client.call_tool("say_hello", json!({})).text().await.unwrap(), "hello");
        let sum = json!({ "a": 1_023_123, "b": 2_352_345 });
        assert_eq!(client.call_tool("sum", sum).text().await.unwrap(), "3375468");
        let value = client.read_resource(counter::VALUE_URI).await.unwrap();
        assert_eq!(value.contents[0].as_text(), Some("1"));
        let prompt = client.get_prompt("counter_analysis", &[("goal", "5")]).await.unwrap();
        let text = prompt.messages[0].content.as_text().unwrap();
        assert!(text.contains("4 steps to go"), "{text}");
    }
}

#[tokio::test]
async fn its_app_is_one_file_that_needs_no_other_origin() {
    let client = testing::connect(counter::server()).await.unwrap();
    let tools = client.list_tools().await.unwrap();
    let with_app = tools.iter().filter(|tool| {
        tool.ui().and_then(|ui| ui.resource_uri).as_deref() == Some(counter::APP_URI)
    });
    let names: Vec<&str> = with_app.map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["increment", "decrement", "get_value"]);
    let app = client.read_resource(counter::APP_URI).await.unwrap();
    let html = app.contents[0].as_text().unwrap();
    assert!(html.starts_with("<!doctype html>"));
    assert!(!html.contains("://"), "it refers to another origin");
    assert_eq!(app.contents[0].ui().unwrap().csp, None);
}

#[tokio::test]
async fn subscribers_are_notified_of_every_change() {
    let client = testing::connect_in(counter::server(), Revision::V2025_11_25).await.unwrap();
    let uri = json!({ "uri": counter::VALUE_URI });
    client.call_json("resources/subscribe", uri.clone()).await.unwrap();
    let mut notifications = client.notifications();
    client.call_tool("increment", json!({})).text().await.unwrap();
    let updated = notifications.next_of("notifications/resources/updated").await.unwrap();
    assert_eq!(updated.params.to_value(), uri);
}

#[tokio::test(start_paused = true)]
async fn a_long_task_reports_its_progress() {
    let client = testing::connect(counter::server()).await.unwrap();
    let (call, mut progress) = client.call_tool("long_task", json!({ "steps": 5 })).with_progress();
    assert_eq!(call.text().await.unwrap(), "counted 5 steps");
    for step in 1..=5 {
        let report = progress.next().await.unwrap();
        assert_eq!((report.progress, report.total), (f64::from(step), Some(5.0)));
    }
    assert!(progress.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_long_task_can_be_cancelled_and_bounded() {
    let client = testing::connect_in(counter::server(), Revision::V2025_11_25).await.unwrap();
    let long = tokio::spawn(client.call_tool("long_task", json!({ "steps": 500 })).into_future());
    while client.call_tool("get_value", json!({})).text().await.unwrap() == "0" {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    long.abort();
    assert!(long.await.unwrap_err().is_cancelled());
    let stopped = client.call_tool("get_value", json!({})).text().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    assert_eq!(client.call_tool("get_value", json!({})).text().await.unwrap(), stopped);
    let rejected = client.call_tool("long_task", json!({ "steps": 601 })).await.unwrap();
    assert_eq!(rejected.is_error, Some(true));
}

#[tokio::test]
async fn strategies_are_suggested() {
    let client = testing::connect(counter::server()).await.unwrap();
    let argument = ("strategy", "f");
    let completed = client.complete_prompt("counter_analysis", argument, &[]).await.unwrap();
    assert_eq!(completed.completion.values, ["fast"]);
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_counter-server");

#[test]
fn the_program_has_manners() {
    check_manners(PROGRAM, &[], Path::new("testdata/help.txt"));
}

const NOTE: Note = Note {
    sent: include_str!("../testdata/sent.jsonl"),
    answers: include_str!("../testdata/answers.jsonl"),
    seed: "002",
};

/// Where the note differs, and why.
const DIFFERENCES: &[(u64, &str, &str)] = &[
    (0, "/result/serverInfo/name", "the note has the library's name"),
    (0, "/result/serverInfo/version", "and the library's version"),
    (0, "/result/instructions", "abridged in the note; ours begin the same"),
    (1, "/result/tools/0/inputSchema/$schema", "2020-12 is the protocol's default and not written"),
    (1, "/result/tools/0/inputSchema/properties/a/format", "some frameworks reject int32"),
    (1, "/result/tools/0/inputSchema/properties/b/format", "some frameworks reject int32"),
    (
        1,
        "/result/tools/0/annotations",
        "annotations came with 2025-03-26, and the session is older",
    ),
    (2, "/result/resources/0/metadata", "not a member of the protocol"),
    (7, "/result/metadata", "not a member of the protocol"),
];

#[test]
fn the_seed_note_gets_its_answers() {
    let ours = NOTE.check(PROGRAM, &[], DIFFERENCES);
    let instructions = ours[0]["result"]["instructions"].as_str().unwrap();
    assert!(instructions.starts_with("This server provides a counter tool"), "{instructions}");
    // The note shows no answer to `say_hello`.
    assert_eq!(ours[3]["result"]["content"][0]["text"], "hello");
}
