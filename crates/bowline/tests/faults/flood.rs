//! Row 1: an endless line.

use serde_json::json;

use crate::probe::{Probe, call, is_full, text};

const MIB: usize = 1 << 20;

/// Sends this, then a flood of bytes, then a line break.
fn flood(start: &str) -> (Probe, Vec<serde_json::Value>) {
    let mut probe = Probe::with_session("2025-11-25");
    probe.send(&call(1, "echo", &json!({ "message": "before" })));
    assert_eq!(text(&probe.next()), "before");
    // The pages of its program do not count.
    let baseline = probe.memory("RssAnon");
    probe.write(start.as_bytes());
    let piece = vec![b'x'; MIB];
    for _ in 0..if is_full() { 1024 } else { 256 } {
        probe.write(&piece);
    }
    probe.write(b"\n");
    probe.send(&call(3, "echo", &json!({ "message": "after" })));
    let messages = probe.until(&json!(3));
    let peak = probe.memory("VmHWM").saturating_sub(probe.memory("RssFile"));
    let growth = peak.saturating_sub(baseline);
    println!("figure: 1 | memory grew by {} MiB | 24 MiB", growth / MIB as u64);
    assert!(growth <= 24 * MIB as u64, "grew by {} MiB", growth / MIB as u64);
    (probe, messages)
}

#[test]
fn a_line_without_end_costs_one_error_and_no_memory() {
    let start = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","#;
    for (start, id) in [(start, json!(2)), ("", json!(null))] {
        let (mut probe, messages) = flood(start);
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert_eq!((&messages[0]["id"], &messages[0]["error"]["code"]), (&id, &json!(-32600)));
        assert_eq!(text(&messages[1]), "after");
        probe.close();
        assert!(probe.rest().is_empty());
    }
}
