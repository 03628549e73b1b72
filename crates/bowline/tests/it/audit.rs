//! The audit on a byte stream: every end of every request, and everything that is refused, once, in
//! both eras.

use serde_json::json;

use crate::ends::{BOTH, common, in_era, of_era, server, start};
use crate::raw::{Raw, call, cancel, modern};
use crate::trail::{Entry, Trail};

#[tokio::test]
async fn each_end_is_reported_once() {
    for revision in BOTH {
        let trail = Trail::new();
        let mut raw = start(server(), revision).await;
        let mut expected = Vec::new();
        if !revision.is_modern() {
            expected.extend(["initialize: answered", "a session began: "]);
        }
        for (request, end) in common().into_iter().chain(of_era(revision)) {
            raw.ask(&in_era(revision, request)).await;
            expected.push(end);
        }
        raw.ask(&in_era(revision, call(6, "number", json!({ "number": "secret" })))).await;
        expected.push("tools/call number: tool_error");
        raw.send(&in_era(revision, call(7, "waits", json!({})))).await;
        raw.send(&cancel(7)).await;
        expected.push("tools/call waits: cancelled");
        let mut entries = trail.until(&expected).await;
        raw.send(&in_era(revision, call(9, "waits", json!({})))).await;
        raw.close().await;
        let ends = ["a session ended: closed", "tools/call waits: disconnected"];
        entries.extend(trail.until(&ends[usize::from(revision.is_modern())..]).await);
        assert!(!format!("{entries:?}").contains("secret"));
        let has_session = |entry: &Entry| !entry.get("session").is_empty();
        for entry in &entries {
            assert_eq!(entry.get("network.transport"), "stream", "{entry:?}");
            // The handshake comes before the session.
            let is_in_one = !revision.is_modern() && entry.line() != "initialize: answered";
            assert_eq!(has_session(entry), is_in_one, "{entry:?}");
        }
    }
}

#[tokio::test]
async fn what_never_becomes_a_request_is_reported_once() {
    let trail = Trail::new();
    let mut raw = Raw::start(server());
    raw.send_bytes(b"{\"secret\n").await;
    raw.next().await;
    raw.send(&modern(call(1, "waits", json!({})))).await;
    raw.ask(&modern(call(1, "quick", json!({})))).await;
    raw.send_bytes(b"[]\n").await;
    raw.next().await;
    raw.send(&cancel(1)).await;
    let refused = "a message was refused: message";
    let entries = trail.until(&[refused, refused, refused, "tools/call waits: cancelled"]).await;
    assert!(!format!("{entries:?}").contains("secret"));
    assert_eq!(entries[1].get("mcp.method.name"), "tools/call");
    raw.close().await;
}

#[tokio::test]
async fn a_panic_of_middleware_is_an_end_as_well() {
    let trail = Trail::new();
    let server = server().middleware(|_: bowline::Incoming, _: bowline::Next| async {
        if true {
            panic!("on purpose");
        }
        Ok(bowline::Answer::Empty)
    });
    let mut raw = Raw::start(server);
    raw.ask(&modern(call(1, "quick", json!({})))).await;
    trail.until(&["tools/call quick: panicked"]).await;
    raw.close().await;
}
