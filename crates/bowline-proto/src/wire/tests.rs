//! One case per line: a frame and the expected outcome.

use serde_json::{Value, json};

use super::*;

/// The frame parses, and encodes back to the same JSON.
fn check(frame: &str) {
    let message =
        Message::parse(frame.as_bytes()).unwrap_or_else(|error| panic!("{frame}: {error}"));
    let mut out = Vec::new();
    message.encode(&mut out).unwrap();
    let encoded: Value = serde_json::from_slice(&out).unwrap();
    let expected: Value = serde_json::from_str(frame).unwrap();
    assert_eq!(encoded, expected, "{frame}");
    assert!(!out.contains(&b'\n'));
}

/// The frame is rejected with this code and id, and the message contains this text.
fn reject(frame: impl AsRef<[u8]>, code: ErrorCode, id: impl Into<Option<Value>>, says: &str) {
    let frame = frame.as_ref();
    let shown = String::from_utf8_lossy(&frame[..frame.len().min(200)]);
    let error = Message::parse(frame).expect_err(&shown);
    assert_eq!(error.code, code, "{shown}: {error}");
    let found = error.id.as_ref().map(|id| serde_json::to_value(id).unwrap());
    assert_eq!(found, id.into(), "{shown}: {error}");
    assert!(error.message.contains(says), "{shown}: {error}");
}

const BAD_JSON: ErrorCode = ErrorCode::PARSE_ERROR;
const BAD_SHAPE: ErrorCode = ErrorCode::INVALID_REQUEST;

#[test]
fn messages_survive_a_round_trip() {
    check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    check(r#"{"jsonrpc":"2.0","id":"1","method":"ping","params":{}}"#);
    check(r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"ping"}"#);
    check(r#"{"jsonrpc":"2.0","id":-9223372036854775808,"method":"ping"}"#);
    check(
        r#"{"method":"tools/call","params":{"name":"a\"b","x":[1,{}]},"jsonrpc":"2.0","id":"é"}"#,
    );
    check(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    check(r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"a":1}}}"#);
    check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#);
    check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"no","data":null}}"#);
    check(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#);
}

#[test]
fn kinds_follow_from_the_members() {
    let kind = |frame: &'static str| Message::parse(frame.as_bytes()).unwrap();
    assert!(matches!(kind(r#"{"jsonrpc":"2.0","id":0,"method":"a"}"#), Message::Request(_)));
    assert!(matches!(kind(r#"{"jsonrpc":"2.0","method":"a"}"#), Message::Notification(_)));
    assert!(matches!(kind(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#), Message::Response(_)));
    let fault = r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#;
    assert!(matches!(kind(fault), Message::Fault(_)));
}

#[test]
fn other_members_are_ignored_and_case_counts() {
    let frame = br#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"evil","trace":[1]}"#;
    assert_eq!(Message::parse(frame).unwrap().method(), Some("ping"));
    reject(
        r#"{"jsonrpc":"2.0","id":1,"METHOD":"ping"}"#,
        BAD_SHAPE,
        Some(json!(1)),
        "method is missing",
    );
}

#[test]
fn escaped_names_are_the_same_names() {
    let frame = br#"{"jsonrpc":"2.0","\u0069d":1,"m\u0065thod":"p\u0069ng"}"#;
    let Message::Request(request) = Message::parse(frame).unwrap() else { panic!("a request") };
    assert_eq!((request.id, request.method.as_ref()), (Id::from(1_i64), "ping"));
}

#[test]
fn a_byte_order_mark_and_line_breaks_are_skipped() {
    let frame = "\u{feff}{\r\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"method\": \"ping\"\n}\n";
    assert!(matches!(Message::parse(frame.as_bytes()), Ok(Message::Request(_))));
}

#[test]
fn bytes_that_are_not_json() {
    reject("", BAD_JSON, None, "not JSON");
    reject("hello", BAD_JSON, None, "not JSON");
    reject("\0", BAD_JSON, None, "not JSON");
    reject(r#"{"jsonrpc":"2.0","id":5,"method":"ping"} x"#, BAD_JSON, Some(json!(5)), "trailing");
    reject(
        r#"{"jsonrpc":"2.0","id":5,"method":"ping"}{"id":6}"#,
        BAD_JSON,
        Some(json!(5)),
        "trailing",
    );
    reject(r#"{"jsonrpc":"2.0","id":5,"method":"pi"#, BAD_JSON, Some(json!(5)), "EOF");
    reject(r#"{"id":7,"method":"a","params":{"x":NaN}}"#, BAD_JSON, Some(json!(7)), "not JSON");
    reject("{\"id\":\"x\",\"method\":\"a\nb\"}", BAD_JSON, Some(json!("x")), "control character");
    reject(
        b"{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"\xff\"}",
        BAD_JSON,
        Some(json!(6)),
        "UTF-8 at byte",
    );
    reject(r#"{"jsonrpc":"2.0","id":6,"method":"\ud800"}"#, BAD_JSON, Some(json!(6)), "not JSON");
}

#[test]
fn json_that_is_not_a_message() {
    reject("1", BAD_SHAPE, None, "which is an object");
    reject(r#"["2.0",1,"ping"]"#, BAD_SHAPE, None, "a batch");
    reject("[]", BAD_SHAPE, None, "a batch");
    reject("{}", BAD_SHAPE, None, "jsonrpc must be");
    reject(
        r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#,
        BAD_SHAPE,
        Some(json!(1)),
        r#"must be "2.0""#,
    );
    reject(
        r#"{"jsonrpc":2.0,"id":1,"method":"a"}"#,
        BAD_SHAPE,
        Some(json!(1)),
        "expected a string",
    );
    reject(r#"{"jsonrpc":"2.0","id":1}"#, BAD_SHAPE, Some(json!(1)), "method is missing");
    reject(
        r#"{"jsonrpc":"2.0","id":1,"method":1}"#,
        BAD_SHAPE,
        Some(json!(1)),
        "expected a string",
    );
    reject(
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#,
        BAD_SHAPE,
        Some(json!(1)),
        "params must be",
    );
    reject(
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":null}"#,
        BAD_SHAPE,
        Some(json!(1)),
        "params must be",
    );
    reject(r#"{"jsonrpc":"2.0","id":1,"result":7}"#, BAD_SHAPE, Some(json!(1)), "result must be");
    reject(r#"{"jsonrpc":"2.0","result":{}}"#, BAD_SHAPE, None, "without an id");
    reject(r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#, BAD_SHAPE, Some(json!(1)), "error: ");
    let both = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#;
    reject(both, BAD_SHAPE, Some(json!(1)), "both a result and an error");
    let both = r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#;
    reject(both, BAD_SHAPE, Some(json!(1)), "both a method and a result or error");
}

#[test]
fn values_that_are_not_ids() {
    for id in ["null", "1.5", "true", "[]", "{}", "1000000000000000000000000000000", "1e400"] {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        assert!(Message::parse(frame.as_bytes()).is_err_and(|error| error.id.is_none()), "{id}");
    }
    reject(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, BAD_SHAPE, None, "id must be");
}

#[test]
fn duplicate_members() {
    let twice = |member: &str| format!(r#"{{"jsonrpc":"2.0","id":4,"method":"a",{member}}}"#);
    reject(twice(r#""method":"b""#), BAD_SHAPE, Some(json!(4)), "duplicate field `method`");
    reject(twice(r#""m\u0065thod":"b""#), BAD_SHAPE, Some(json!(4)), "duplicate field `method`");
    reject(
        twice(r#""params":{},"params":{}"#),
        BAD_SHAPE,
        Some(json!(4)),
        "duplicate field `params`",
    );
    // It is unclear which of the two the sender waits for.
    reject(twice(r#""id":5"#), BAD_SHAPE, None, "duplicate field `id`");
}

#[test]
fn depth_has_a_limit_and_strings_do_not_count() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"jsonrpc":"2.0","id":6,"method":"a","params":{{"x":{open}{close}}}}}"#)
    };
    assert!(Message::parse(nested(MAX_DEPTH - 2).as_bytes()).is_ok());
    reject(nested(MAX_DEPTH - 1), BAD_SHAPE, Some(json!(6)), "levels deep");
    reject(nested(100_000), BAD_SHAPE, Some(json!(6)), "levels deep");
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":6,"method":"a","params":{{"x":"{}\""}}}}"#,
        "[".repeat(999)
    );
    assert!(Message::parse(text.as_bytes()).is_ok());
}

#[test]
fn accepted_frames_can_be_read_into_a_tree() {
    let (open, close) = ("[".repeat(MAX_DEPTH - 2), "]".repeat(MAX_DEPTH - 2));
    let frame =
        format!(r#"{{"jsonrpc":"2.0","id":6,"method":"a","params":{{"x":{open}{close}}}}}"#);
    assert!(serde_json::from_str::<Value>(&frame).is_ok());
}

#[test]
fn a_broken_frame_shows_whether_it_named_a_method() {
    let asks = |frame: &str| Message::parse(frame.as_bytes()).unwrap_err().has_method;
    assert!(asks(r#"{"id":1,"method":"a","params":[]"#));
    assert!(!asks(r#"{"id":1,"result":"#));
    assert!(!asks(r#"{"id":1,"result":{"method":"a"},}"#));
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

fn batch(items: &[&str]) -> Result<usize, BatchError> {
    let frame = format!("[{}]", items.join(","));
    parse_batch(frame.as_bytes(), 4).map(|batch| batch.len())
}

#[test]
fn batches_have_their_own_entry_point() {
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    assert_eq!(batch(&[PING, notification]), Ok(2));
    assert_eq!(batch(&[ANSWER, ANSWER]), Ok(2));
}

#[test]
fn frames_that_are_not_batches() {
    let message = |error: Result<usize, BatchError>| match error {
        Err(BatchError::Whole(error)) => error.message,
        other => panic!("{other:?}"),
    };
    assert_eq!(message(batch(&[])), "an empty batch");
    assert_eq!(message(batch(&[PING, ANSWER])), "a batch of both requests and responses");
    assert!(message(batch(&[PING, "{"])).contains("not JSON"));
    assert_eq!(batch(&[PING; 4]), Ok(4));
    let many = "a batch of more than 4 messages; send them in several batches";
    assert_eq!(message(batch(&[PING; 5])), many);
    assert_eq!(message(batch(&["1", "1", "1", "1", "1", "{"])), many);
    let one = parse_batch(PING.as_bytes(), 4).map(|batch| batch.len());
    assert!(message(one).contains("must be an array"));
}

#[test]
fn a_batch_with_invalid_parts_is_rejected_part_by_part() {
    let initialize = r#"{"jsonrpc":"2.0","id":9,"method":"initialize","params":{}}"#;
    let Err(BatchError::Parts(parts)) = batch(&[PING, "[]", initialize, "1"]) else {
        panic!("rejected in parts")
    };
    let messages: Vec<_> = parts.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(messages[1..3], ["a batch within a batch", "initialize: not allowed in a batch"]);
    assert_eq!((parts[2].id.clone(), parts.len()), (Some(Id::from(9_i64)), 4));
    assert!(messages[0].starts_with("not executed"), "the sender of the ping waits for an answer");
    assert!(parts[0].id.is_some() && parts[0].has_method);
}

#[test]
fn a_truncated_frame_yields_only_whole_ids() {
    let id = |prefix: &str| ParseError::too_long(9, prefix.as_bytes()).id;
    assert_eq!(id(r#"{"method":"a","id":12,"params":{"x":"yyy"#), Some(Id::from(12_i64)));
    assert_eq!(id(r#"{"method":"a","id":12"#), None);
    assert_eq!(id(r#"{"method":"a","id":"ab"#), None);
}

#[test]
fn a_value_that_cannot_be_encoded_leaves_no_half_message() {
    let bad = std::collections::BTreeMap::from([((1, 2), 3)]);
    let mut out = b"before".to_vec();
    let error = encode_response(&mut out, &Id::from(1_i64), &bad).unwrap_err();
    assert_eq!(out, b"before");
    assert_eq!(error.to_string(), "the result cannot be written as JSON");
}

#[test]
fn the_fast_path_agrees_with_the_slow_one() {
    for (frame, is_plain) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, true),
        (r#" {"id":"a","params":{"x":[{}]},"method":"m","more":1,"jsonrpc":"2.0"} "#, true),
        (r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, true),
        (r#"{"jsonrpc":"2.0","id":-7,"result":{"a":"\u00e9"}}"#, true),
        (r#"{"jsonrpc":"2.0","id":18446744073709551615,"result":{}}"#, true),
        (r#"{"jsonrpc":"2.0","id":999999999999999999,"result":{}}"#, true),
        (r#"{"jsonrpc":"2.0","id":9999999999999999999,"result":{}}"#, true),
        ("{ \"jsonrpc\" :\t\"2.0\" ,\r\n\"id\": 1 , \"method\" : \"ping\" }", true),
        (r#"{"i":0,"ids":2,"jsonrpc":"2.0","id":1,"meth":0,"methods":0,"method":"ping"}"#, true),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#, false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"p\u0069ng"}"#, false),
        (r#"{"jsonrpc":"2\u002e0","id":1,"method":"ping"}"#, false),
    ] {
        assert_eq!(Plain::default().walk(frame.as_bytes()).is_ok(), is_plain, "{frame}");
        assert_eq!(Message::parse(frame.as_bytes()), parse_one(frame), "{frame}");
    }
    for frame in [
        r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"a"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#,
        r#"{"id":1,"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":99999999999999999999999999999999,"method":"a"}"#,
        r#"{"jsonrpc":"2.0" "id":1,"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id" 1,"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a",}"#,
        r#"{,"jsonrpc":"2.0","id":1,"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params"#,
        r#"{"jsonrpc":"2.0"x,"id":1,"method":"a"}"#,
    ] {
        assert!(Message::parse(frame.as_bytes()).is_err(), "{frame}");
        assert!(parse_one(frame).is_err(), "{frame}");
    }
}

#[test]
fn a_long_id_is_named() {
    let parse = |length: usize| {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(length));
        Message::parse(frame.as_bytes()).map(drop).map_err(|error| error.message)
    };
    assert_eq!(parse(Id::LONGEST), Ok(()));
    assert_eq!(parse(Id::LONGEST + 1), Err("id has more than 1024 bytes".to_owned()));
}
