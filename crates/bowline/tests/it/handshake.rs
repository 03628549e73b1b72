//! Handshakes: in order, out of order, with unknown versions. And batches.

use bowline::{Revision, Revisions, Server, Tool};
use serde_json::{Value, json};

use crate::raw::{Raw, call, code, initialize, modern, notification, request, text};

fn server() -> Server {
    Server::new("handshake", "1.0.0").with(Tool::new("tool", || async { "called" }))
}

#[tokio::test]
async fn a_version_is_answered_with_one_that_is_spoken() {
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2023-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2099-12-31", "2025-11-25"),
        ("latest", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let mut raw = Raw::start(server());
        let answer = raw.ask(&initialize(asked)).await;
        assert_eq!(answer["result"]["protocolVersion"], answered, "{asked:?}");
        raw.send(&notification("notifications/initialized", json!({}))).await;
        assert_eq!(text(&raw.ask(&call(1, "tool", json!({}))).await), "called");
        assert!(raw.close().await.is_empty());
    }
}

#[tokio::test]
async fn words_in_the_wrong_order_are_refused_and_forgiven() {
    let mut raw = Raw::start(server());
    let early = raw.ask(&call(1, "tool", json!({}))).await;
    assert_eq!(code(&early), -32600, "{early}");
    assert!(raw.ask(&request(2, "ping", json!({}))).await["result"].is_object());
    raw.send(&notification("notifications/initialized", json!({}))).await;
    for params in [json!({}), json!({ "protocolVersion": 7 }), json!({ "protocolVersion": "x" })] {
        let refused = raw.ask(&request(3, "initialize", params)).await;
        assert_eq!(code(&refused), -32602, "{refused}");
    }
    raw.ask(&initialize("2025-06-18")).await;
    assert_eq!(code(&raw.ask(&initialize("2025-06-18")).await), -32600, "a second time");
    assert_eq!(text(&raw.ask(&call(4, "tool", json!({}))).await), "called");
    // Modern requests do not need a handshake, and one does not affect them.
    assert_eq!(text(&raw.ask(&modern(call(5, "tool", json!({})))).await), "called");
    assert_eq!(code(&raw.ask(&modern(request(6, "initialize", json!({})))).await), -32601);
    assert_eq!(code(&raw.ask(&request(7, "no/such", json!({}))).await), -32601);
    assert!(raw.close().await.is_empty());
}

/// Regression: the error code that tells a client to choose another version was replaced by an
/// older one, as for legacy clients.
#[tokio::test]
async fn a_server_of_one_era_says_so() {
    let mut raw = Raw::start(server().revisions(Revisions::MODERN));
    let refused = raw.ask(&initialize("2025-11-25")).await;
    assert_eq!(code(&refused), -32022, "{refused}");
    let mut raw = Raw::start(server().revisions(Revisions::LEGACY));
    let refused = raw.ask(&modern(call(1, "tool", json!({})))).await;
    assert_eq!(code(&refused), -32022, "{refused}");
    let mut odd = modern(call(1, "tool", json!({})));
    odd["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    assert_eq!(code(&Raw::start(server()).ask(&odd).await), -32022);
}

#[tokio::test]
async fn batches_exist_in_one_revision_only() {
    let batch = json!([
        call(1, "tool", json!({})),
        notification("notifications/nothing", json!({})),
        call("two", "missing", json!({})),
    ]);
    for revision in Revisions::LEGACY.iter() {
        let mut raw = Raw::session(server(), revision).await;
        raw.send(&batch).await;
        let answer = raw.next().await;
        if revision == Revision::V2025_03_26 {
            let answers = answer.as_array().unwrap();
            assert_eq!((answers.len(), text(&answers[0])), (2, "called"));
            assert_eq!((&answers[1]["id"], code(&answers[1])), (&json!("two"), -32602));
        } else {
            assert_eq!((&answer["id"], code(&answer)), (&Value::Null, -32600), "{revision}");
        }
        assert!(raw.close().await.is_empty());
    }
    let mut raw = Raw::start(server());
    raw.send(&batch).await;
    assert_eq!(code(&raw.next().await), -32600, "before the handshake");
}

/// Regression: a modern listen request in a batch held back the answers of all others.
#[tokio::test]
async fn odd_batches_hold_nobody_up() {
    let mut raw = Raw::session(server(), Revision::V2025_03_26).await;
    let listen = modern(request(1, "subscriptions/listen", json!({ "notifications": {} })));
    raw.send(&json!([listen, call(2, "tool", json!({})), modern(call(3, "tool", json!({})))]))
        .await;
    let answer = raw.next().await;
    let codes: Vec<i64> = answer.as_array().unwrap().iter().map(code).collect();
    assert_eq!(codes, [-32600, 0, -32600], "{answer}");
    // A batch of notifications has no answer; of two equal ids, the second is rejected.
    raw.send(&json!([notification("notifications/nothing", json!({}))])).await;
    raw.send(&json!([])).await;
    assert_eq!(code(&raw.next().await), -32600);
    // If a part of a batch is malformed, none of it is executed.
    raw.send(&json!([call(4, "tool", json!({})), 7])).await;
    let refused = raw.next().await;
    let refused: Vec<_> =
        refused.as_array().unwrap().iter().map(|it| (it["id"].clone(), code(it))).collect();
    assert_eq!(refused, [(json!(4), -32600), (json!(null), -32600)]);
    raw.send(&json!([call(5, "tool", json!({})), call(5, "tool", json!({}))])).await;
    assert_eq!(raw.next().await.as_array().unwrap().len(), 2);
    assert!(raw.close().await.is_empty());
}
