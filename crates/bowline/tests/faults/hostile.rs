//! Row 2: ten thousand frames that are nearly messages.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::frames::{Expect, Random, frame};
use crate::probe::{Probe, by_id, call, text};

const FRAMES: u64 = 10_000;
/// Ids start here, so that all have the same number of digits and none is a prefix of another.
const FIRST: u64 = 100_000;

#[test]
fn ten_thousand_hostile_frames_do_no_harm() {
    let mut random = Random::new(2);
    let mut probe = Probe::with_session("2025-11-25");
    let mut expected = HashMap::new();
    for id in FIRST..FIRST + FRAMES {
        let (expect, bytes) = frame(&mut random, id);
        probe.write(&bytes);
        probe.write(b"\n");
        expected.insert(id, (expect, bytes));
    }
    probe.send(&call(1, "echo", &json!({ "message": "still here" })));
    let mut messages = probe.until(&json!(1));
    assert_eq!(messages.pop().as_ref().map(text), Some("still here"));
    for message in &messages {
        check_id(message, &expected);
    }
    let answers = by_id(messages);
    let mut served = 0;
    for (id, (expect, bytes)) in &expected {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
        let answer = answers.get(id);
        match expect {
            Expect::Served => {
                served += 1;
                assert!(answer.is_some_and(|it| !text(it).is_empty()), "{shown}: {answer:?}");
            }
            Expect::Refused => {
                assert!(answer.is_some_and(|it| it["error"].is_object()), "{shown}: {answer:?}");
            }
            Expect::Unanswered => assert_eq!(answer, None, "{shown}"),
        }
    }
    probe.send(&call(2, "count", &json!({})));
    assert_eq!(text(&probe.next()), (served + 1).to_string(), "something was executed");
    probe.close();
    assert!(probe.rest().is_empty());
}

/// Answers have an id that was sent, or none.
fn check_id(message: &Value, sent: &HashMap<u64, (Expect, Vec<u8>)>) {
    match &message["id"] {
        Value::Null => assert!(message["error"].is_object(), "{message}"),
        id => assert!(id.as_u64().is_some_and(|id| sent.contains_key(&id)), "{message}"),
    }
}
