//! What a server can make the client read and keep is bounded in bytes, and the error says whose
//! limit it is.

use bowline::client::{CallError, ClientLimit, ClientLimits};
use serde_json::json;

use super::fixture::{builder, limits, soon};
use super::web::Web;
use super::wire::{Wire, text};

const MIB: usize = 1 << 20;

/// Results of any size, if the client is told to take them.
#[tokio::test]
async fn large_results_are_possible_by_a_setting() {
    let giant = "x".repeat(20 * MIB);
    let roomy = ClientLimits { message_length: 64 * MIB, ..limits() };

    let wire = Wire::new();
    let client = wire.connect(false, builder().limits(roomy.clone())).await;
    let call = tokio::spawn(client.call_tool("t", json!({})).text());
    wire.answer(&wire.asked("tools/call").await, text(&giant));
    assert!(soon("an answer", call).await.unwrap().unwrap() == giant);
    client.close().await;

    let mut web = Web::start().await;
    let client = web.modern(builder().limits(roomy)).await;
    let call = tokio::spawn(client.call_tool("t", json!({})).text());
    web.asked("tools/call").await.answer(text(&giant)).await;
    assert!(soon("an answer", call).await.unwrap().unwrap() == giant);
    let call = tokio::spawn(client.call_tool("t", json!({})).text());
    let asked = web.asked("tools/call").await;
    let answer = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": text(&giant) });
    asked.respond(200, "text/event-stream", "", &format!("data: {answer}\n\n")).await;
    assert!(soon("an answer", call).await.unwrap().unwrap() == giant);
    client.close().await;
}

fn assert_ours(error: &CallError, which: ClientLimit, value: u64) {
    let CallError::LimitExceeded { limit, most, .. } = error else { panic!("{error}") };
    assert_eq!((*limit, *most), (which, value));
    assert!(error.to_string().contains("a limit of this client"), "{error}");
    assert!(error.to_string().contains(which.setting()), "{error}");
    assert!(!which.explain(value).contains("Limits"), "{}", which.explain(value));
}

/// The call fails at once, wherever the server writes the id.
#[tokio::test]
async fn an_answer_that_is_too_long_says_whose_limit_it_is() {
    let limit = 64 << 10;
    let tight = ClientLimits { message_length: limit, ..limits() };
    let giant = "x".repeat(limit);
    let wire = Wire::new();
    let client = wire.connect(false, builder().limits(tight.clone())).await;
    for is_id_last in [false, true] {
        let call = tokio::spawn(client.call_tool("t", json!({})).text());
        let id = &wire.asked("tools/call").await["id"];
        let result = format!(r#""result":{}"#, text(&giant));
        let answer = match is_id_last {
            true => format!("{{{result},\"jsonrpc\":\"2.0\",\"id\":{id}}}\n"),
            false => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{result}}}\n"),
        };
        wire.send(answer.as_bytes());
        let error = soon("an error", call).await.unwrap().unwrap_err();
        assert_ours(&error, ClientLimit::MessageLength, limit as u64);
    }
    // A notification is nobody's answer.
    let call = tokio::spawn(client.call_tool("t", json!({})).text());
    let asked = wire.asked("tools/call").await;
    wire.say(&json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": { "x": giant } }));
    wire.answer(&asked, text("still here"));
    assert_eq!(soon("an answer", call).await.unwrap().unwrap(), "still here");
    client.close().await;

    let mut web = Web::start().await;
    let client = web.modern(builder().limits(tight)).await;
    let call = tokio::spawn(client.call_tool("t", json!({})).text());
    web.asked("tools/call").await.answer(text(&giant)).await;
    let error = soon("an error", call).await.unwrap().unwrap_err();
    assert_ours(&error, ClientLimit::MessageLength, limit as u64);
    client.close().await;
}
