//! What a proxy does not understand passes through it: the upstream server says what it heard.

use bowline::client::Target;
use bowline::{Proxy, Revision, Server, testing};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::raw::{Raw, call, code, modern, request};

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;

/// Every pair of eras: the caller and the upstream server.
const PAIRS: [(Revision, Revision); 4] =
    [(LEGACY, LEGACY), (LEGACY, MODERN), (MODERN, LEGACY), (MODERN, MODERN)];

/// What the upstream server says of itself, and what it answers; `None` if it says nothing.
fn answer(asked: &Value, line: &str, revision: Revision) -> Option<Value> {
    let capabilities = json!({
        "tools": {}, "prompts": {}, "resources": {}, "completions": {},
        "experimental": { "trial": { "x": 1 } },
        "extensions": { "com.example/groups": { "y": 2 }, "no prefix": {} }
    });
    let heard = || Value::from(line.trim_end());
    let mut result = match (asked["method"].as_str()?, revision.is_modern()) {
        ("server/discover", true) => {
            json!({ "supportedVersions": [MODERN.as_str()], "capabilities": capabilities })
        }
        ("initialize", false) => json!({
            "protocolVersion": revision.as_str(),
            "capabilities": capabilities,
            "serverInfo": { "name": "far", "version": "1" }
        }),
        ("tools/list", _) => json!({ "tools": [{
            "name": "echo",
            "inputSchema": { "type": "object", "properties": { "a": { "type": "string" } } }
        }] }),
        ("prompts/list", _) => {
            json!({ "prompts": [{ "name": "say", "arguments": [{ "name": "x" }] }] })
        }
        ("resources/list", _) => json!({ "resources": [] }),
        ("resources/templates/list", _) => json!({ "resourceTemplates": [] }),
        ("tools/call", _) => json!({ "content": [{ "type": "text", "text": heard() }] }),
        ("resources/read", _) => {
            json!({ "contents": [{ "uri": asked["params"]["uri"], "text": heard() }] })
        }
        ("prompts/get", _) => {
            let content = json!({ "type": "text", "text": heard() });
            json!({ "messages": [{ "role": "user", "content": content }] })
        }
        ("completion/complete", _) => json!({ "completion": { "values": [heard()] } }),
        ("com.example/shout", _) => json!({ "heard": heard() }),
        (other, _) => {
            let error =
                json!({ "code": -32601, "message": format!("{other}: there is no such method") });
            return Some(json!({ "jsonrpc": "2.0", "id": asked.get("id")?, "error": error }));
        }
    };
    if revision.is_modern() {
        result["resultType"] = json!("complete");
    }
    Some(json!({ "jsonrpc": "2.0", "id": asked.get("id")?, "result": result }))
}

/// A server that is a proxy to such a server, and a client of it.
async fn through(caller: Revision, upstream: Revision) -> Raw {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (reader, mut writer) = tokio::io::split(theirs);
    tokio::spawn(async move {
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let asked = serde_json::from_str(&line).unwrap();
            if let Some(answer) = answer(&asked, &line, upstream) {
                writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
            }
        }
    });
    let client = testing::builder(upstream);
    let proxy = Proxy::connect_with(client, Target::stream(ours)).await.unwrap();
    start(proxy.into_server(), caller).await
}

async fn start(server: Server, caller: Revision) -> Raw {
    if caller.is_modern() { Raw::start(server) } else { Raw::session(server, caller).await }
}

/// Asks, in the caller's era, and returns the result.
async fn ask(raw: &mut Raw, caller: Revision, asked: Value) -> Value {
    let asked = if caller.is_modern() { modern(asked) } else { asked };
    let answer = raw.ask(&asked).await;
    assert!(answer.get("result").is_some(), "{answer}");
    answer["result"].clone()
}

/// What every caller adds to its requests, and what becomes of it.
fn more() -> Value {
    json!({
        "_meta": {
            "example.com/tenant": [1, null],
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "tracestate": "a=1",
            "baggage": "b=2",
            "progressToken": "mine",
            "io.modelcontextprotocol/somethingElse": 1
        },
        "x-unknown": { "deep": [1e0] }
    })
}

fn check(heard: &str, which: &str) {
    let params = &serde_json::from_str::<Value>(heard).unwrap()["params"];
    let meta = &params["_meta"];
    assert_eq!(meta["example.com/tenant"], json!([1, null]), "{which}: {heard}");
    assert_eq!(meta["traceparent"], more()["_meta"]["traceparent"], "{which}: {heard}");
    assert_eq!((&meta["tracestate"], &meta["baggage"]), (&json!("a=1"), &json!("b=2")), "{which}");
    assert_ne!(meta["progressToken"], "mine", "{which}: {heard}");
    assert!(meta.get("io.modelcontextprotocol/somethingElse").is_none(), "{which}: {heard}");
    assert_eq!(params["x-unknown"], more()["x-unknown"], "{which}: {heard}");
}

fn with_more(mut params: Value) -> Value {
    for (key, value) in more().as_object().unwrap() {
        params[key] = value.clone();
    }
    params
}

#[tokio::test]
async fn what_a_request_says_besides_reaches_the_server() {
    for (caller, upstream) in PAIRS {
        let which = format!("{caller} to {upstream}");
        let mut raw = through(caller, upstream).await;
        let asked = request(1, "tools/call", with_more(json!({ "name": "echo", "arguments": {} })));
        let result = ask(&mut raw, caller, asked).await;
        check(result["content"][0]["text"].as_str().unwrap(), &which);
        let asked = request(2, "prompts/get", with_more(json!({ "name": "say" })));
        let result = ask(&mut raw, caller, asked).await;
        check(result["messages"][0]["content"]["text"].as_str().unwrap(), &which);
        let asked = request(3, "resources/read", with_more(json!({ "uri": "any:thing" })));
        let result = ask(&mut raw, caller, asked).await;
        check(result["contents"][0]["text"].as_str().unwrap(), &which);
        let params = json!({
            "ref": { "type": "ref/prompt", "name": "say" },
            "argument": { "name": "x", "value": "a" }
        });
        let asked = request(4, "completion/complete", with_more(params));
        let result = ask(&mut raw, caller, asked).await;
        check(result["completion"]["values"][0].as_str().unwrap(), &which);
    }
}

/// Null, and members that a schema does not name; numbers as they were written.
#[tokio::test]
async fn arguments_pass_to_the_letter() {
    for (caller, upstream) in PAIRS {
        let mut raw = through(caller, upstream).await;
        let odd = r#"{"a":null,"z":1e3,"b":{"c":[1.50]}}"#;
        let meta = match caller.is_modern() {
            true => modern(request(1, "x", json!({})))["params"]["_meta"].to_string(),
            false => "{}".to_owned(),
        };
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{odd},"_meta":{meta}}}}}"#
        );
        raw.send_bytes(format!("{line}\n").as_bytes()).await;
        let answer = raw.next().await;
        let heard = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(heard.contains(odd), "{caller} to {upstream}: {heard}");
    }
}

/// What a client says it can do, extensions and experiments included.
#[tokio::test]
async fn a_modern_server_hears_the_extensions_of_its_caller() {
    let mut raw = through(MODERN, MODERN).await;
    let capabilities = json!({
        "extensions": { "io.modelcontextprotocol/ui": { "mimeTypes": ["text/html"] } },
        "experimental": { "trial": { "z": 1 } }
    });
    let mut asked = modern(call(1, "echo", json!({})));
    asked["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    let answer = raw.ask(&asked).await;
    let heard = answer["result"]["content"][0]["text"].as_str().unwrap();
    let heard: Value = serde_json::from_str(heard).unwrap();
    let declared = &heard["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(*declared, capabilities);
}

#[tokio::test]
async fn what_the_server_offers_besides_is_offered() {
    for upstream in [LEGACY, MODERN] {
        let mut raw = through(MODERN, upstream).await;
        let found = ask(&mut raw, MODERN, request(1, "server/discover", json!({}))).await;
        let offered = &found["capabilities"];
        assert_eq!(
            offered["extensions"],
            json!({ "com.example/groups": { "y": 2 } }),
            "{upstream}"
        );
        assert_eq!(offered["experimental"], json!({ "trial": { "x": 1 } }), "{upstream}");
    }
}

#[tokio::test]
async fn methods_that_the_protocol_does_not_have_pass() {
    for (caller, upstream) in PAIRS {
        let which = format!("{caller} to {upstream}");
        let mut raw = through(caller, upstream).await;
        let asked = request(1, "com.example/shout", with_more(json!({ "loud": true })));
        let result = ask(&mut raw, caller, asked).await;
        let heard = result["heard"].as_str().unwrap();
        check(heard, &which);
        assert!(heard.contains(r#""loud":true"#), "{which}: {heard}");
        let kind = result.get("resultType").and_then(Value::as_str);
        assert_eq!(kind, caller.is_modern().then_some("complete"), "{which}: {result}");
        let unknown = request(2, "com.example/nothing", json!({}));
        let unknown = if caller.is_modern() { modern(unknown) } else { unknown };
        let answer = raw.ask(&unknown).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!(
            (code(&answer), message),
            (-32601, "com.example/nothing: there is no such method")
        );
        // What another revision has is not asked of the server.
        let foreign =
            if caller.is_modern() { "resources/subscribe" } else { "subscriptions/listen" };
        let foreign = request(3, foreign, json!({ "uri": "a:b" }));
        let foreign = if caller.is_modern() { modern(foreign) } else { foreign };
        let answer = raw.ask(&foreign).await;
        assert!(!answer.to_string().contains("there is no such method"), "{which}: {answer}");
    }
}
