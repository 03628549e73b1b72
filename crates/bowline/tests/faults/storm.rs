//! Rows 6, 7 and 21: panics, equal ids, and cancellations at every moment.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use crate::frames::Random;
use crate::probe::{Probe, by_id, call, cancel, is_full, request, text};

#[test]
fn a_thousand_panics_are_a_thousand_errors() {
    let mut probe = Probe::with_session("2025-11-25");
    for id in 0..10_000 {
        match id % 10 {
            0 => probe.queue(&call(id, "boom", &json!({}))),
            _ => probe.queue(&call(id, "echo", &json!({ "message": id.to_string() }))),
        }
    }
    probe.close();
    let answers = by_id(probe.rest());
    assert_eq!(answers.len(), 10_000);
    for (id, answer) in answers {
        if id % 10 == 0 {
            assert_eq!(answer["error"]["code"], -32603);
        } else {
            assert_eq!(text(&answer), id.to_string());
        }
    }
}

#[test]
fn a_second_request_under_an_id_in_flight_is_refused() {
    let mut probe = Probe::with_session("2025-11-25");
    probe.queue(&call(1, "slow", &json!({ "ms": 300, "message": "first" })));
    probe.queue(&call(1, "count", &json!({})));
    for method in ["tools/list", "ping", "initialize"] {
        probe.queue(&request(1, method, &json!({})));
    }
    probe.flush();
    for _ in 0..4 {
        let refused = probe.next();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(1), &json!(-32600)));
    }
    assert_eq!(text(&probe.next()), "first");
    probe.send(&call(1, "count", &json!({})));
    assert_eq!(text(&probe.next()), "1", "a refused call was executed");
    probe.close();
    assert!(probe.rest().is_empty());
}

/// The outcome of a call.
enum Fate {
    Answered,
    /// It would run for a minute; the cancellation follows at once.
    Cancelled,
}

/// How many calls are sent before their answers are awaited.
const WAVE: u64 = 500;

#[test]
fn no_answer_after_a_cancellation_and_no_progress_after_an_answer() {
    let waves: u64 = if is_full() { 200 } else { 20 };
    let mut random = Random::new(21);
    let mut probe = Probe::with_session("2025-11-25");
    let mut fates = HashMap::new();
    let mut answered = HashSet::new();
    for wave in 0..waves {
        for id in wave * WAVE..(wave + 1) * WAVE {
            fates.insert(id, storm(&mut probe, &mut random, id));
        }
        probe.flush();
        let expected = fates.values().filter(|fate| matches!(fate, Fate::Answered)).count();
        while answered.len() < expected {
            check(&probe.next(), &fates, &mut answered);
        }
    }
    // All cancellations have been handled when this is answered; no more answers may follow.
    probe.send(&request("end", "ping", &json!({})));
    for message in probe.until(&json!("end")) {
        check(&message, &fates, &mut answered);
    }
    probe.close();
    assert_eq!(probe.rest(), Vec::<Value>::new());
}

fn check(message: &Value, fates: &HashMap<u64, Fate>, answered: &mut HashSet<u64>) {
    if let Some(id) = message["id"].as_u64() {
        assert!(matches!(fates[&id], Fate::Answered), "{id} was cancelled: {message}");
        assert!(message["result"].is_object(), "{message}");
        assert!(answered.insert(id), "{id} is answered twice");
    } else if let Some(id) = message["params"]["progressToken"].as_u64() {
        assert!(!answered.contains(&id), "progress after the answer to {id}");
    }
}

fn storm(probe: &mut Probe, random: &mut Random, id: u64) -> Fate {
    let kind = random.below(6);
    if kind == 0 {
        probe.queue(&cancel(id));
    }
    let will_stop = matches!(kind, 1 | 2);
    let ms = if will_stop { 60_000 } else { random.below(3) };
    let mut message = match random.below(3) {
        0 if !will_stop => call(id, "echo", &json!({ "message": "x" })),
        1 => call(id, "slow", &json!({ "ms": ms, "message": "x" })),
        _ => call(id, "work", &json!({ "steps": 2, "ms": ms })),
    };
    message["params"]["_meta"] = json!({ "progressToken": id });
    probe.queue(&message);
    let unknown: Value = json!("nobody");
    match kind {
        1 => probe.queue(&cancel(id)),
        2 => {
            probe.queue(&cancel(unknown));
            probe.queue(&cancel(id));
            probe.queue(&cancel(id));
        }
        // Answered long ago, never asked, or of the other kind.
        3 => {
            probe.queue(&cancel(id.wrapping_sub(WAVE)));
            probe.queue(&cancel(id.to_string()));
        }
        _ => {}
    }
    if will_stop { Fate::Cancelled } else { Fate::Answered }
}
