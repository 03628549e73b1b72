//! Exports of a made-up recording with hostile words.

use std::io::Write;

use serde_json::{Value, json};

use super::*;
use crate::session_file::Opening;

fn recording(lines: &[Value]) -> Recording {
    let mut opening = Opening::now(json!({ "command": "<b>server</b>", "args": [] }));
    opening.started = "2026-11-16T00:00:00Z".to_owned();
    let lines = lines.iter().map(|line| serde_json::from_value(line.clone()).unwrap()).collect();
    Recording { opening, lines, problems: Vec::new() }
}

fn stdio() -> Recording {
    recording(&[
        json!({ "kind": "message", "at": 1.0, "direction": "sent", "message":
            { "id": 1, "method": "tools/call", "params": { "name": "<script>alert(1)</script>" } } }),
        json!({ "kind": "message", "at": 1.5, "direction": "received", "message":
            { "id": 1, "result": { "isError": true, "x": "</pre><img src=https://evil.example/>\u{202e}" } } }),
        json!({ "kind": "stderr", "at": 2.0, "text": "' onload='x" }),
    ])
}

#[test]
fn pages_show_markup_as_text_and_load_nothing() {
    let page = html(&stdio());
    for bad in ["<script", "<img", "</pre><img", "<b>", "' onload", "\u{202e}", "src="] {
        let allowed = bad == "src=" && page.contains("&lt;img src=https");
        assert!(!page.contains(bad) || allowed, "{bad}: {page}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn spans_follow_the_conventions() {
    let trace = otlp(&stdio());
    let span = &trace["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["startTimeUnixNano"], "1794787201000000000");
    assert_eq!(span["endTimeUnixNano"], "1794787201500000000");
    assert_eq!((span["kind"].as_u64(), span["status"]["code"].as_u64()), (Some(3), Some(2)));
    let named = |name: &str| {
        let all = span["attributes"].as_array().unwrap();
        all.iter().find(|it| it["key"] == name).map(|it| it["value"]["stringValue"].clone())
    };
    assert_eq!(named("mcp.method.name"), Some("tools/call".into()));
    assert_eq!(named("error.type"), Some("tool_error".into()));
    assert_eq!(named("jsonrpc.request.id"), Some("1".into()));
}

#[test]
fn archives_have_an_entry_per_exchange() {
    let archive = har(&stdio());
    let entry = &archive["log"]["entries"][0];
    assert_eq!(entry["startedDateTime"], "2026-11-16T00:00:01Z");
    assert_eq!((&entry["time"], &entry["response"]["status"]), (&json!(500.0), &json!(200)));
    let head = |direction: &str, status: Value| {
        let mut http = json!({ "exchange": 7, "method": "POST", "url": "http://a.b/mcp", "headers": [["x", "y"]] });
        if !status.is_null() {
            http["status"] = status;
        }
        json!({ "kind": "http", "at": 0.0, "direction": direction, "http": http })
    };
    let message = |direction: &str| json!({ "kind": "message", "at": 0.2, "direction": direction, "connection": 7, "message": { "id": 1 } });
    let lines = [
        head("sent", Value::Null),
        message("sent"),
        head("received", json!(503)),
        message("received"),
    ];
    let archive = har(&recording(&lines));
    let entry = &archive["log"]["entries"][0];
    assert_eq!(entry["request"]["postData"]["text"], r#"{"id":1}"#);
    assert_eq!(entry["response"]["content"]["text"], r#"{"id":1}"#);
    assert_eq!(entry["response"]["status"], 503);
    assert_eq!(entry["request"]["headers"], json!([{ "name": "x", "value": "y" }]));
}

#[test]
fn files_that_are_not_recordings_are_rejected() {
    let path = std::env::temp_dir().join(format!("bowline-recording-{}", std::process::id()));
    for text in ["", "x", "{\"kind\":\"end\",\"at\":0}\n"] {
        std::fs::File::create(&path).unwrap().write_all(text.as_bytes()).unwrap();
        assert_eq!(Recording::read(&path).unwrap_err(), "not a session file", "{text}");
    }
    std::fs::remove_file(path).unwrap();
}
