//! Which era a server speaks is found out from what it says, without a stall, and from nothing
//! else.

use std::time::Duration;

use bowline::Revision;
use bowline::client::{Client, ConnectError, OpenError, Target, Timeouts, Verdicts};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::fixture::{Nasty, builder, soon};
use super::wire::{Wire, discovered, initialized, text};

/// A client that connects over a wire.
fn connecting(wire: &Wire) -> tokio::task::JoinHandle<Result<Client, OpenError>> {
    tokio::spawn(builder().connect(Target::stream(wire.clone())))
}

async fn shake(wire: &Wire) {
    let hello = wire.asked("initialize").await;
    assert_eq!(hello["params"]["protocolVersion"], "2025-11-25");
    wire.answer(&hello, initialized());
    wire.asked("notifications/initialized").await;
}

fn revision(client: &Client) -> Revision {
    client.peer().unwrap().revision
}

#[tokio::test(start_paused = true)]
async fn every_error_of_an_old_server_leads_to_the_handshake() {
    let codes = [-32601, -32600, -32602, -32603, -32700, -32000, -32001, -32002, 0, 1, 404, -1];
    for code in codes {
        let wire = Wire::new();
        let client = connecting(&wire);
        let begun = Instant::now();
        let probe = wire.asked("server/discover").await;
        wire.refuse(&probe, code);
        shake(&wire).await;
        let client = soon("a connection", client).await.unwrap().unwrap();
        assert_eq!(revision(&client), Revision::V2025_11_25, "{code}");
        assert!(begun.elapsed() < Duration::from_millis(100), "{code}");
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_answer_that_is_none_leads_to_the_handshake() {
    let answers: [fn(&Wire, &Value); 5] = [
        |wire, probe| wire.answer(probe, json!({})),
        |wire, probe| wire.answer(probe, json!({ "supportedVersions": [] })),
        |wire, probe| wire.answer(probe, json!({ "supportedVersions": "all" })),
        |wire, probe| {
            wire.send(b"Error: unknown method\n");
            wire.say(&json!({ "jsonrpc": "2.0", "id": probe["id"], "result": null }));
        },
        |wire, probe| {
            wire.say(&json!({ "jsonrpc": "2.0", "id": probe["id"].to_string(),
                "error": { "code": -32601, "message": "no" } }));
        },
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        let wire = Wire::new();
        let client = connecting(&wire);
        let probe = wire.asked("server/discover").await;
        answer(&wire, &probe);
        shake(&wire).await;
        let client = soon("a connection", client).await.unwrap().unwrap();
        assert_eq!(revision(&client), Revision::V2025_11_25, "{number}");
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_costs_a_second_and_its_late_answer_is_ignored() {
    let wire = Wire::new();
    let client = connecting(&wire);
    let probe = wire.asked("server/discover").await;
    let begun = Instant::now();
    let hello = wire.asked("initialize").await;
    assert!(begun.elapsed() <= Duration::from_millis(1100), "{:?}", begun.elapsed());
    // What it says now to the first question means nothing any more.
    wire.answer(&probe, discovered());
    wire.answer(&hello, initialized());
    wire.asked("notifications/initialized").await;
    let client = soon("a connection", client).await.unwrap().unwrap();
    assert_eq!(revision(&client), Revision::V2025_11_25);
    let call = tokio::spawn(client.call_tool("t", json!({})).text());
    let question = wire.asked("tools/call").await;
    assert!(question["params"]["_meta"].is_null(), "{question}");
    wire.answer(&probe, discovered());
    wire.refuse(&probe, -32601);
    wire.answer(&question, text("done"));
    assert_eq!(soon("an answer", call).await.unwrap().unwrap(), "done");
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_modern_server_is_recognised_nonetheless() {
    let wire = Wire::new();
    let client = connecting(&wire);
    wire.asked("server/discover").await;
    let hello = wire.asked("initialize").await;
    wire.refuse(&hello, -32601);
    let probe = wire.asked("server/discover").await;
    wire.answer(&probe, discovered());
    let client = soon("a connection", client).await.unwrap().unwrap();
    assert_eq!(revision(&client), Revision::LATEST);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_is_no_era() {
    for says_something in [false, true] {
        let wire = Wire::new();
        let client = connecting(&wire);
        let probe = wire.asked("server/discover").await;
        if says_something {
            wire.refuse(&probe, -32601);
            wire.asked("initialize").await;
        }
        wire.end();
        let error = soon("an error", client).await.unwrap().unwrap_err();
        let expected = matches!(error, OpenError::Connect { error: ConnectError::Exited, .. });
        assert!(expected, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_that_refuses_for_its_own_reasons_is_not_shaken_hands_with() {
    for code in [-32020, -32021] {
        let wire = Wire::new();
        let client = connecting(&wire);
        let probe = wire.asked("server/discover").await;
        wire.refuse(&probe, code);
        let error = soon("an error", client).await.unwrap().unwrap_err();
        let OpenError::Connect { error: ConnectError::Refused(_), .. } = error else {
            panic!("{error}")
        };
    }
}

#[tokio::test]
async fn processes_of_every_manner_are_understood() {
    for (manner, expected) in [
        ("legacy", Revision::V2025_11_25),
        ("error-32600", Revision::V2025_11_25),
        ("error-32602", Revision::V2025_11_25),
        ("error-32000", Revision::V2025_11_25),
        ("silent", Revision::V2025_11_25),
        ("late", Revision::V2025_11_25),
        ("malformed", Revision::V2025_11_25),
        // Started again, because it dies of what it does not know.
        ("dies", Revision::V2025_11_25),
        ("modern", Revision::LATEST),
    ] {
        let nasty = Nasty::new();
        let client = nasty.connect(manner).await;
        assert_eq!(revision(&client), expected, "{manner}");
        let said = client.call_tool("echo", json!({ "text": "hello" })).text();
        assert_eq!(soon("an answer", said).await.unwrap(), "hello", "{manner}");
        client.close().await;
        nasty.is_gone().await;
    }
}

#[tokio::test]
async fn a_verdict_spares_the_question_and_is_looked_at_anew_if_it_is_wrong() {
    // What was known, and how the server turns out.
    let legacy = Revision::V2025_06_18;
    let modern = Revision::LATEST;
    for (known, manner, expected) in [
        (legacy, "dies", Revision::V2025_11_25),
        (legacy, "silent", Revision::V2025_11_25),
        (legacy, "modern", Revision::LATEST),
        (modern, "modern", Revision::LATEST),
        (modern, "legacy", Revision::V2025_11_25),
        (modern, "dies", Revision::V2025_11_25),
        (modern, "silent", Revision::V2025_11_25),
        (modern, "malformed", Revision::V2025_11_25),
    ] {
        let nasty = Nasty::new();
        let verdicts = Verdicts::new();
        let first = builder().verdicts(verdicts.clone());
        let client = nasty.try_connect(manner, first).await.unwrap();
        client.close().await;
        // The one entry that there is now is the server's; say what it spoke last time.
        let key = format!("{verdicts:?}");
        let key = key.split("\": Verdict").next().and_then(|it| it.split_once('"')).unwrap().1;
        let key = key.replace("\\\"", "\"").replace("\\\\", "\\");
        assert_eq!(verdicts.find(&key), Some(expected), "{key}");
        verdicts.remember(&key, known);
        // Short, so that the silence of one that was modern is a second and not five.
        let timeouts = Timeouts { probe: Duration::from_millis(300), ..Timeouts::default() };
        let again = builder().verdicts(verdicts.clone()).timeouts(timeouts);
        let client = nasty.try_connect(manner, again).await.unwrap();
        assert_eq!(revision(&client), expected, "{known} {manner}");
        assert_eq!(verdicts.find(&key), Some(expected));
        client.close().await;
        nasty.is_gone().await;
    }
}
