//! Cancellations: in time, too late, of unknown requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline::{Context, Revision, Server, Tool};
use serde_json::{Value, json};

use crate::raw::{Raw, call, cancel, modern, request, text};

/// Counts handlers that were dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn server(dropped: &Arc<AtomicUsize>) -> Server {
    let dropped = Arc::clone(dropped);
    Server::new("cancel", "1.0.0").with(Tool::new("quick", || async { "quick" })).with(Tool::new(
        "for_ever",
        move |context: Context| {
            let dropped = Dropped(Arc::clone(&dropped));
            async move {
                let _dropped = dropped;
                context.cancelled().await;
                std::future::pending::<&str>().await
            }
        },
    ))
}

fn in_era(revision: Revision, request: Value) -> Value {
    if revision.is_modern() { modern(request) } else { request }
}

#[tokio::test]
async fn a_cancelled_request_is_dropped_and_not_answered() {
    for revision in [Revision::V2024_11_05, Revision::V2025_11_25, Revision::V2026_07_28] {
        let dropped = Arc::new(AtomicUsize::new(0));
        let mut raw = match revision.is_modern() {
            true => Raw::start(server(&dropped)),
            false => Raw::session(server(&dropped), revision).await,
        };
        let quick = |id: &str| in_era(revision, call(id, "quick", json!({})));
        // Before its request, so it has no effect.
        raw.send(&cancel("early")).await;
        assert_eq!(text(&raw.ask(&quick("early")).await), "quick");
        // While it runs, and twice.
        raw.send(&in_era(revision, call("while", "for_ever", json!({})))).await;
        raw.send(&cancel("while")).await;
        raw.send(&cancel("while")).await;
        // The id is free again.
        assert_eq!(text(&raw.ask(&quick("while")).await), "quick");
        // Too late; of a similar id; without an id; malformed.
        raw.send(&cancel("while")).await;
        raw.send(&in_era(revision, call(1, "for_ever", json!({})))).await;
        for wrong in [json!("1"), json!(2), json!(null), json!({}), json!(1.5)] {
            raw.send(&cancel(wrong)).await;
        }
        let taken = raw.ask(&in_era(revision, call(1, "quick", json!({})))).await;
        assert_eq!(taken["error"]["code"], -32600, "it still runs: {taken}");
        raw.send(&cancel(1)).await;
        assert!(raw.close().await.is_empty());
        assert_eq!(dropped.load(Ordering::Relaxed), 2, "{revision}");
    }
}

#[tokio::test]
async fn answers_that_nobody_asked_for_change_nothing() {
    let mut raw = Raw::session(server(&Arc::default()), Revision::V2025_11_25).await;
    for id in [json!(1), json!("1"), json!(1)] {
        raw.send(&json!({ "jsonrpc": "2.0", "id": id, "result": {} })).await;
        let error = json!({ "code": -1, "message": "no" });
        raw.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
    }
    raw.send(&json!({ "jsonrpc": "2.0", "id": null, "error": { "code": 1, "message": "x" } }))
        .await;
    assert!(raw.ask(&request(7, "ping", json!({}))).await["result"].is_object());
    assert!(raw.close().await.is_empty());
}
