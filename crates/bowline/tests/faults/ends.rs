//! Rows 3, 4 and 5: the end of the input, and of the process.

use serde_json::json;

use crate::probe::{Probe, by_id, call, modern, request, text};

#[test]
fn a_last_request_without_a_line_break_is_answered() {
    for message in
        [modern(call(1, "echo", &json!({ "message": "last" }))), request(1, "ping", &json!({}))]
    {
        let mut probe = Probe::start();
        probe.write(message.to_string().as_bytes());
        probe.close();
        let rest = probe.rest();
        assert_eq!(rest.len(), 1);
        assert!(rest[0]["id"] == 1 && rest[0]["result"].is_object(), "{rest:?}");
    }
}

#[test]
fn a_last_request_that_is_cut_short_is_refused() {
    let mut probe = Probe::start();
    let message = modern(call(1, "count", &json!({}))).to_string();
    probe.write(&message.as_bytes()[..message.len() - 1]);
    probe.close();
    let rest = probe.rest();
    assert_eq!((rest.len(), &rest[0]["id"]), (1, &json!(1)));
    assert_eq!(rest[0]["error"]["code"], -32700);
}

/// A hundred run, and as many again are queued.
#[test]
fn calls_in_flight_at_the_end_of_the_input_are_answered() {
    for calls in [100, 300] {
        let mut probe = Probe::start();
        for id in 0..calls {
            let slow = json!({ "ms": 300, "message": id.to_string() });
            probe.queue(&modern(call(id, "slow", &slow)));
        }
        probe.close();
        let answers = by_id(probe.rest());
        for id in 0..calls {
            assert_eq!(text(&answers[&id]), id.to_string());
        }
    }
}

/// 128 run and 72 are queued: all are answered. Later ones are rejected.
#[test]
fn a_stop_signal_loses_nothing() {
    let mut probe = Probe::start();
    for id in 1000..1020 {
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        probe.queue(&modern(request(id, "subscriptions/listen", &filter)));
    }
    for id in 0..200 {
        let slow = json!({ "ms": 500, "message": id.to_string() });
        probe.queue(&modern(call(id, "slow", &slow)));
    }
    // Its answer shows that everything before it has been read.
    probe.send(&request("read", "ping", &json!({})));
    let before = probe.until(&json!("read"));
    let acknowledged =
        |it: &&serde_json::Value| it["method"] == "notifications/subscriptions/acknowledged";
    assert_eq!(before.iter().filter(acknowledged).count(), 20);
    probe.terminate();
    let mut after = probe.until(&json!(1000));
    probe.send(&modern(call(2000, "count", &json!({}))));
    after.extend(probe.rest());
    let answers = by_id(after);
    for id in 0..200 {
        assert_eq!(text(&answers[&id]), id.to_string());
    }
    for id in 1000..1020 {
        let result = &answers[&id]["result"];
        assert_eq!(result["_meta"]["io.modelcontextprotocol/subscriptionId"], id, "{result}");
    }
    assert_eq!(answers[&2000]["error"]["code"], -32603, "{}", answers[&2000]);
}

/// A client that never pauses must not keep the server from handling the signal.
#[test]
fn a_stop_signal_works_under_load() {
    let mut probe = Probe::start();
    let ping = request(1, "ping", &json!({})).to_string() + "\n";
    let pings = ping.repeat(1000);
    for _ in 0..50 {
        probe.write(pings.as_bytes());
    }
    probe.terminate();
    probe.flush();
    for message in probe.rest() {
        assert_eq!(message["id"], 1);
    }
}
