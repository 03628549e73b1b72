//! Rows of made-up sessions.

use bowline_proto::json::Json;
use serde_json::{Value, json};

use super::*;

/// A model of messages: when, which way, what.
fn model(messages: &[(f64, Way, Value)]) -> Model {
    let mut model = Model::new(100, usize::MAX);
    let session = model.open(Opening::now(json!({ "command": "server", "args": [] })));
    for (at, way, message) in messages {
        let line = Line {
            kind: LineKind::Message,
            at: *at,
            direction: Some(*way),
            message: Some(Json::from(message)),
            ..Line::default()
        };
        model.handle_line(session, line);
    }
    model
}

fn call(id: u64, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

fn result(id: u64, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

use Way::{Received, Sent};

#[test]
fn answers_find_their_requests_in_both_directions() {
    let model = model(&[
        (0.0, Sent, call(1, &json!({ "name": "echo" }))),
        (0.1, Received, json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" })),
        (0.2, Sent, result(1, &json!({}))),
        (0.5, Received, result(1, &json!({ "isError": true }))),
        (0.6, Received, result(9, &json!({}))),
        (0.7, Sent, call(2, &json!({ "name": "slow" }))),
    ]);
    let rows: Vec<&Row> = model.rows().map(|(_, row)| row).collect();
    assert_eq!(rows.len(), 4);
    let took = |row: &Row| row.answer.as_ref().map(|answer| (answer.took * 10.0).round());
    assert_eq!((took(rows[0]), rows[0].is_error()), (Some(5.0), true));
    assert_eq!((took(rows[1]), rows[1].is_error()), (Some(1.0), false));
    assert_eq!(rows[2].what, What::Stray);
    assert!(rows[3].is_pending());
    let times: Vec<_> =
        model.times().iter().map(|(method, it)| (method, it.count, it.errors)).collect();
    assert_eq!(times, [("roots/list", 1, 0), ("tools/call", 1, 1)]);
}

#[test]
fn answers_may_come_by_another_exchange() {
    let mut model = Model::new(100, usize::MAX);
    let session = model.open(Opening::now(Value::Null));
    let mut hear = |connection, direction, message: Value| {
        let (kind, connection) = (LineKind::Message, Some(connection));
        let (direction, message) = (Some(direction), Some(Json::from(&message)));
        model
            .handle_line(session, Line { kind, direction, connection, message, ..Line::default() });
    };
    // Streamable HTTP: the server asks in the stream of a call; the answer is a POST of its own.
    hear(1, Sent, call(1, &json!({ "name": "ask" })));
    hear(1, Received, json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create" }));
    hear(2, Sent, result(1, &json!({ "action": "accept" })));
    hear(1, Received, result(1, &json!({})));
    // HTTP+SSE: every answer comes down the stream of exchange 3.
    hear(4, Sent, call(2, &json!({ "name": "echo" })));
    hear(3, Received, result(2, &json!({})));
    // Two clients of the modern era use the same id: exchanges tell them apart.
    hear(5, Sent, call(7, &json!({ "name": "one" })));
    hear(6, Sent, call(7, &json!({ "name": "other" })));
    hear(6, Received, result(7, &json!({ "isError": true })));
    hear(5, Received, result(7, &json!({})));
    assert!(model.rows().all(|(_, row)| !row.is_pending() && row.what != What::Stray));
    let failed: Vec<u64> =
        model.rows().filter(|(_, row)| row.is_error()).map(|(number, _)| number).collect();
    assert_eq!(failed, [4]);
}

#[test]
fn rounds_and_polls_are_grouped() {
    let asks = |state: &str| json!({ "resultType": "input_required", "requestState": state });
    let get = |id: u64| json!({ "id": id, "method": "tasks/get", "params": { "taskId": "t" } });
    let model = model(&[
        (0.0, Sent, call(1, &json!({ "name": "ask" }))),
        (0.1, Received, result(1, &asks("s1"))),
        (0.2, Sent, call(2, &json!({ "name": "ask", "requestState": "s1" }))),
        (0.3, Received, result(2, &asks("s2"))),
        (0.4, Sent, call(3, &json!({ "name": "ask", "requestState": "s2" }))),
        (0.5, Received, result(3, &json!({ "resultType": "task", "taskId": "t" }))),
        (0.6, Sent, get(4)),
        (0.7, Received, result(4, &json!({ "taskId": "t", "status": "working" }))),
        (0.8, Sent, get(5)),
    ]);
    let parents: Vec<_> = model.rows().map(|(_, row)| row.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(0), Some(0), Some(0)]);
    let first = model.row(0).unwrap();
    assert_eq!((first.rounds, first.polls), (2, 2));
}

#[test]
fn filters_combine() {
    let model = model(&[
        (0.0, Sent, call(1, &json!({ "name": "echo", "arguments": { "a": "Needle" } }))),
        (2.0, Received, result(1, &json!({}))),
        (2.1, Sent, call(2, &json!({ "name": "other" }))),
        (2.2, Received, json!({ "id": 2, "error": { "code": 1, "message": "no" } })),
        (2.3, Received, json!({ "id": 7, "method": "ping" })),
    ]);
    for (text, expected) in [
        ("", &[0, 1, 2][..]),
        ("method:tools", &[0, 1]),
        ("tool:ECHO", &[0]),
        ("id:2", &[1]),
        ("dir:received", &[2]),
        ("is:error", &[1]),
        ("is:slow", &[0, 2]),
        ("slow:50ms", &[0, 1, 2]),
        ("is:pending", &[2]),
        ("server:serv needle", &[0]),
        ("method:tools needle is:error", &[]),
    ] {
        let filter = Filter::parse(text).unwrap();
        let rows = model.rows().filter(|(_, row)| filter.matches(&model, row, 10.0));
        let rows: Vec<u64> = rows.map(|(number, _)| number).collect();
        assert_eq!(rows, expected, "{text}");
    }
    assert!(Filter::parse("is:dancing").is_err());
}

#[test]
fn old_rows_go_and_percentiles_are_ranks() {
    let mut model = Model::new(3, usize::MAX);
    let session = model.open(Opening::now(Value::Null));
    for at in 0..10 {
        let line = Line { kind: LineKind::Stderr, at: f64::from(at), ..Line::default() };
        model.handle_line(session, line);
    }
    let numbers: Vec<u64> = model.rows().map(|(number, _)| number).collect();
    assert_eq!(numbers, [7, 8, 9]);
    assert!(model.row(6).is_none());
    // So do those that are too long together; the newest one stays, however long it is.
    let mut model = Model::new(100, 10_000);
    let session = model.open(Opening::now(Value::Null));
    for length in [3_000, 3_000, 3_000, 3_000, 30_000] {
        let text = Some("x".repeat(length));
        model.handle_line(session, Line { kind: LineKind::Stderr, text, ..Line::default() });
        let most = if length > 10_000 { 1 } else { 3 };
        assert!(model.rows().count() <= most, "{length}");
    }
    let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
    assert_eq!([0.5, 0.95, 0.99].map(|share| percentile(&hundred, share)), [50.0, 95.0, 99.0]);
    assert_eq!(percentile(&[], 0.5), 0.0);
}
