//! Every message on the wire, to the letter; and calls that are JSON in and out.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::client::http::Endpoint;
use bowline::client::{CallError, Direction, WireHttp, WireMessage};
use bowline::{Json, Revision};
use serde_json::{Value, json};

use super::world::{Via, builder, connect, serve, server, ways};

/// What a hook heard.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<Seen>>>);

/// One message, and the head of HTTP that carried it.
type Seen = (Direction, String, Option<WireHttp>);

impl Heard {
    fn hook(&self) -> impl Fn(&WireMessage<'_>) + Send + Sync + 'static {
        let heard = Arc::clone(&self.0);
        move |message| {
            let text = String::from_utf8(message.bytes.to_vec()).unwrap();
            let http = message.http.cloned();
            heard.lock().unwrap().push((message.direction, text, http));
        }
    }

    fn messages(&self) -> Vec<(Direction, Value)> {
        let heard = self.0.lock().unwrap();
        let texts = heard.iter().filter(|(_, text, _)| !text.is_empty());
        texts.map(|(way, text, _)| (*way, serde_json::from_str(text).unwrap())).collect()
    }

    fn heads(&self) -> Vec<(Direction, WireHttp)> {
        let heard = self.0.lock().unwrap();
        heard.iter().filter_map(|(way, _, http)| Some((*way, http.clone()?))).collect()
    }
}

#[tokio::test]
async fn every_message_is_told_on_every_way() {
    for (via, revision) in ways() {
        let heard = Heard::default();
        let client = connect(via, builder(revision).on_wire(heard.hook())).await;
        client.call_tool("sum", json!({ "a": 1, "b": 2 })).await.unwrap();
        client.close().await;
        let messages = heard.messages();
        let asked = messages
            .iter()
            .position(|(way, it)| *way == Direction::Sent && it["method"] == "tools/call")
            .unwrap_or_else(|| panic!("{via:?} {revision}: {messages:?}"));
        let id = &messages[asked].1["id"];
        let is_answer = |(way, it): &(Direction, Value)| {
            *way == Direction::Received && it["id"] == *id && it.get("result").is_some()
        };
        assert!(messages[asked..].iter().any(is_answer), "{via:?} {revision}: {messages:?}");
        assert_eq!(heard.heads().is_empty(), via == Via::Memory, "{via:?} {revision}");
    }
}

#[tokio::test]
async fn heads_name_their_secrets_and_belong_together() {
    let url = serve(server().http()).await;
    let heard = Heard::default();
    let endpoint = Endpoint::new(&url).bearer("hidden").header("X-Key", "hidden");
    let client = builder(Revision::LATEST).on_wire(heard.hook()).connect(endpoint).await.unwrap();
    client.close().await;
    let heads = heard.heads();
    let (way, asked) = &heads[0];
    assert_eq!((*way, asked.method.as_str(), asked.status), (Direction::Sent, "POST", None));
    assert_eq!(asked.url, url);
    for name in ["authorization", "x-key"] {
        let header = asked.headers.iter().find(|header| header.name == name).unwrap();
        assert!(header.is_secret && header.value.contains("hidden"));
        assert!(!format!("{asked:?}").contains("hidden"));
    }
    assert!(asked.headers.iter().any(|it| it.name == "mcp-method" && !it.is_secret));
    let (way, answered) = &heads[1];
    assert_eq!((*way, answered.exchange), (Direction::Received, asked.exchange));
    assert_eq!(answered.status, Some(200));
}

#[tokio::test]
async fn what_a_refusal_says_is_told() {
    let url = serve(server().http()).await;
    let heard = Heard::default();
    let client = builder(Revision::LATEST).on_wire(heard.hook()).connect(url).await.unwrap();
    let refused = client.call_json("no/such", Json::empty_object()).await;
    assert!(matches!(refused, Err(CallError::Refused { .. })), "{refused:?}");
    client.close().await;
    let messages = heard.messages();
    let is_error = |(way, it): &(Direction, Value)| {
        *way == Direction::Received && it["error"]["code"] == -32601
    };
    assert_eq!(messages.iter().filter(|it| is_error(it)).count(), 1, "{messages:?}");
}

#[tokio::test]
async fn calls_in_json_give_results_as_they_came_and_answer_what_is_asked() {
    for (via, revision) in ways() {
        let heard = Heard::default();
        let client = connect(via, builder(revision).on_wire(heard.hook())).await;
        let params = json!({ "name": "sum", "arguments": { "a": 1, "b": 2 } });
        let result = client.call_json("tools/call", params).await.unwrap();
        let told =
            heard.0.lock().unwrap().iter().any(|(way, text, _)| {
                *way == Direction::Received && text.contains(result.as_str())
            });
        assert!(told, "{via:?} {revision}: {}", result.as_str());
        // Forms are asked for since 2025-06-18.
        if revision >= Revision::V2025_06_18 {
            let params = json!({ "name": "ask", "arguments": {} });
            let call = client.call_json("tools/call", params).timeout(Duration::from_secs(120));
            let result = call.await.unwrap().to_value();
            assert!(result.to_string().contains("Ada"), "{via:?} {revision}: {result}");
        }
        client.close().await;
    }
}

#[tokio::test]
async fn calls_in_json_hear_of_progress() {
    let client = connect(Via::Memory, builder(Revision::LATEST)).await;
    let (sent, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let params = json!({ "name": "count", "arguments": {} });
    let call = client.call_json("tools/call", params);
    let result = call.on_progress(move |report| sent.send(report.progress).unwrap()).await;
    result.unwrap();
    assert!(reports.recv().await.is_some());
    client.close().await;
}
