//! The tools, resources and the prompt, as a client uses them.

use bowline::{Revision, testing};
use mcp_logger::{Callers, Config};
use serde_json::{Value, json};

use crate::receiver::{Datagrams, Stream};
use crate::{call, client, fail};

#[tokio::test]
async fn every_revision_sends() {
    let receiver = Datagrams::listen("127.0.0.1:0").await;
    for revision in Revision::ALL {
        let server = mcp_logger::server(Config::default(), Callers::Owner).unwrap();
        let client = testing::connect_in(server, revision).await.unwrap();
        let arguments = json!({
            "server": "127.0.0.1", "port": receiver.port(), "message": "hi", "facility": "local0",
            "severity": "error",
        });
        let text = client.call_tool("send-syslog", arguments).text().await.unwrap();
        let port = receiver.port();
        assert_eq!(text, format!("Success: Sent to 127.0.0.1:{port} (Encoding: UTF-8)"));
        let packet = String::from_utf8(receiver.next().await).unwrap();
        assert!(packet.starts_with("<131>") && packet.ends_with(" mcp-logger: hi"), "{packet}");
    }
}

#[tokio::test]
async fn schemas_are_plain() {
    let tools = client("").await.list_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["send-syslog", "send-syslog-batch", "test-syslog-target"]);
    for tool in &tools {
        let schema = tool.input_schema.to_value();
        let output = tool.output_schema.as_ref().unwrap().to_value();
        let text = format!("{schema}{output}");
        for word in ["null", "anyOf", "oneOf", "$ref"] {
            assert!(!text.contains(&format!("\"{word}\"")), "{}: {word} in {text}", tool.name);
        }
        for (name, property) in schema["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{}.{name}", tool.name);
        }
    }
    let send = tools[0].input_schema.to_value();
    let words = |name: &str| send["properties"][name]["enum"].clone();
    assert_eq!(words("format"), json!(["rfc3164", "rfc5424"]));
    assert_eq!(words("transport"), json!(["udp", "tcp", "tls", "unix"]));
    assert_eq!(words("framing"), json!(["octet-counting", "lf"]));
    let hints = tools[0].annotations.clone().unwrap();
    assert_eq!(
        (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint),
        (None, Some(false), Some(true))
    );
}

#[tokio::test]
async fn mistakes_are_explained() {
    let client = client("").await;
    let check = async |change: Value, part: &str| {
        let mut arguments = json!({ "server": "127.0.0.1", "message": "x", "dry_run": true });
        for (name, value) in change.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        let text = fail(&client, "send-syslog", arguments).await;
        assert!(text.contains(part), "{text}");
    };
    check(json!({"facility": "locl0"}), "unknown facility \"locl0\"; expected kern").await;
    check(json!({"severity": "8"}), "or a number from 0 to 7").await;
    check(json!({"port": 70000}), "port").await;
    check(json!({"port": 0}), "port").await;
    check(json!({"transport": "icmp"}), "\"udp\"").await;
    check(json!({"encoding": "utf-16"}), "use utf-8").await;
    check(json!({"encoding": "sjis", "message": "🎌"}), "does not exist in Shift_JIS").await;
    check(json!({"sevrity": "error"}), "sevrity").await;
    check(json!({"timestamp": "noon"}), "RFC 3339").await;
    check(json!({"msgid": "x"}), "use format rfc5424").await;
    check(json!({"tag": "日本"}), "tag \"日本\"").await;
    check(json!({"server": "10.0.0.1:514"}), "pass the port as `port`").await;
    check(json!({"message": "x".repeat(2000)}), "more than max_size 1024").await;
    check(json!({"timeout_ms": 0}), "timeout_ms").await;
}

#[tokio::test]
async fn a_dry_run_shows_the_exact_bytes() {
    let client = client("").await;
    let arguments = json!({
        "server": "192.0.2.1", "message": "表示", "encoding": "shift_jis", "format": "rfc5424",
        "timestamp": "2026-11-05T09:30:00Z", "hostname": "web1", "procid": "1", "msgid": "M",
        "structured_data": { "a@32473": { "k": "値 \"]" } }, "transport": "tcp", "dry_run": true,
    });
    let shown = call(&client, "send-syslog", arguments).await;
    let head =
        "<14>1 2026-11-05T09:30:00.000000+00:00 web1 mcp-logger 1 M [a@32473 k=\"値 \\\"\\]\"] ";
    let frame = [head.as_bytes(), b"\x95\x5c\x8e\xa6"].concat();
    let frame = [frame.len().to_string().as_bytes(), b" ", &frame].concat();
    let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(shown["frames"][0]["hex"], hex);
    assert_eq!(shown["delivery"], "none");
    assert_eq!(shown["encoding"], "Shift_JIS");
}

#[tokio::test]
async fn long_messages_are_cut_or_split() {
    let client = client("").await;
    let receiver = Datagrams::listen("127.0.0.1:0").await;
    let send = async |oversize: &str| {
        let arguments = json!({
            "server": "127.0.0.1", "port": receiver.port(), "message": "語".repeat(400),
            "max_size": 480, "oversize": oversize,
        });
        client.call_tool("send-syslog", arguments).await.unwrap()
    };
    let cut = send("truncate").await;
    let data = cut.structured_content.unwrap().to_value();
    assert_eq!((&data["truncated"], &data["messages"]), (&json!(true), &json!(1)));
    assert!(cut.content[0].as_text().unwrap().contains("truncated to"));
    let packet = String::from_utf8(receiver.next().await).unwrap();
    assert!(packet.len() <= 480 && packet.ends_with("語[...]"), "{packet}");
    let split = send("split").await.structured_content.unwrap().to_value();
    let mut text = String::new();
    for part in 1..=split["messages"].as_u64().unwrap() {
        let packet = String::from_utf8(receiver.next().await).unwrap();
        assert!(packet.len() <= 480);
        let mark = format!("[{part}/{}] ", split["messages"]);
        text += packet.split_once(&mark).unwrap().1;
    }
    assert_eq!(text, "語".repeat(400));
}

#[tokio::test]
async fn batches_use_one_connection_and_report() {
    let client = client("").await;
    let receiver = Stream::tcp().await;
    let arguments = json!({
        "server": "127.0.0.1", "port": receiver.port, "transport": "tcp", "framing": "lf",
        "severity": "debug",
        "messages": [
            { "message": "one" },
            { "message": "two", "severity": "emerg", "tag": "other" },
            { "message": "three" },
        ],
    });
    let (sending, mut progress) = client.call_tool("send-syslog-batch", arguments).with_progress();
    let sent = sending.await.unwrap().structured_content.unwrap().to_value();
    assert_eq!((&sent["sent"], &sent["delivery"]), (&json!(3), &json!("written")));
    let received = String::from_utf8(receiver.all().await).unwrap();
    let lines: Vec<&str> = received.lines().collect();
    assert!(lines[0].starts_with("<15>") && lines[0].ends_with("mcp-logger: one"));
    assert!(lines[1].starts_with("<8>") && lines[1].ends_with("other: two"));
    assert!(lines[2].ends_with("three"));
    assert_eq!(sent["bytes"], received.len());
    let mut last = None;
    while let Some(report) = progress.next().await {
        last = Some((report.progress, report.total));
    }
    assert_eq!(last, Some((3.0, Some(3.0))));
}

#[tokio::test]
async fn a_batch_with_a_mistake_sends_nothing() {
    let client = client("").await;
    let messages = json!([{ "message": "fine" }, { "message": "x", "facility": "nowhere" }]);
    // Nothing listens there, and nothing connects.
    let arguments =
        json!({ "server": "127.0.0.1", "port": 9, "transport": "tcp", "messages": messages });
    let text = fail(&client, "send-syslog-batch", arguments).await;
    assert!(text.contains("messages[1]: unknown facility \"nowhere\""), "{text}");
    let empty = json!({ "server": "127.0.0.1", "messages": [] });
    let text = fail(&client, "send-syslog-batch", empty).await;
    assert!(text.contains("messages"), "{text}");
}

#[tokio::test]
async fn targets_can_be_tested() {
    let client = client("").await;
    let receiver = Stream::tcp().await;
    let endpoint = json!({ "server": "127.0.0.1", "port": receiver.port, "transport": "tcp" });
    let found = call(&client, "test-syslog-target", endpoint).await;
    assert_eq!(found["address"], format!("127.0.0.1:{}", receiver.port));
    assert_eq!(receiver.all().await, b"");
    let datagrams = Datagrams::listen("127.0.0.1:0").await;
    let endpoint = json!({ "server": "127.0.0.1", "port": datagrams.port() });
    let found = call(&client, "test-syslog-target", endpoint).await;
    assert!(found["conclusion"].as_str().unwrap().contains("UDP reveals no more than that"));
    assert_eq!(datagrams.next().await, b"");
}

#[tokio::test]
async fn resources_can_be_read() {
    let config = "recent = 2\n[targets.central]\nserver = \"10.0.0.1\"";
    let client = client(config).await;
    let read = async |uri: &str| {
        let result = client.read_resource(uri).await.unwrap();
        serde_json::from_str::<Value>(result.contents[0].as_text().unwrap()).unwrap()
    };
    assert_eq!(read("syslog://facilities").await.as_array().unwrap().len(), 24);
    assert_eq!(read("syslog://severities").await[3]["name"], "error");
    assert_eq!(read("syslog://severities/err").await["number"], 3);
    assert_eq!(read("syslog://facilities/16").await["name"], "local0");
    assert_eq!(read("syslog://targets").await["targets"][0]["name"], "central");
    assert!(client.read_resource("syslog://facilities/nowhere").await.is_err());

    let receiver = Datagrams::listen("127.0.0.1:0").await;
    for message in ["one", "two", "three"] {
        let arguments = json!({
            "server": "127.0.0.1", "port": receiver.port(), "message": message, "tag": message,
        });
        call(&client, "send-syslog", arguments).await;
    }
    let recent = read("syslog://recent").await;
    assert_eq!(recent.as_array().unwrap().len(), 2);
    assert_eq!((&recent[0]["tag"], &recent[0]["outcome"]), (&json!("three"), &json!("sent")));
}

#[tokio::test]
async fn subscribers_are_notified_of_sends() {
    let server = mcp_logger::server(Config::default(), Callers::Owner).unwrap();
    let client = testing::connect_in(server, Revision::V2025_11_25).await.unwrap();
    let uri = json!({ "uri": mcp_logger::tools::RECENT_URI });
    client.call_json("resources/subscribe", uri.clone()).await.unwrap();
    let mut notifications = client.notifications();
    let receiver = Datagrams::listen("127.0.0.1:0").await;
    let arguments = json!({ "server": "127.0.0.1", "port": receiver.port(), "message": "x" });
    call(&client, "send-syslog", arguments).await;
    let updated = notifications.next_of("notifications/resources/updated").await.unwrap();
    assert_eq!(updated.params.to_value(), uri);
}

#[tokio::test]
async fn the_prompt_is_filled_in_and_completed() {
    let client = client("[targets.central]\nserver = \"10.0.0.1\"").await;
    let arguments = [("event", "disk full"), ("server", "central"), ("severity", "crit")];
    let prompt = client.get_prompt("log-event", &arguments).await.unwrap();
    let text = prompt.messages[0].content.as_text().unwrap();
    assert!(text.contains("server central with severity crit:\n\ndisk full"), "{text}");
    let complete = async |argument: &str, value: &str| {
        let completed = client.complete_prompt("log-event", (argument, value), &[]).await;
        completed.unwrap().completion.values
    };
    assert_eq!(complete("severity", "e").await, ["emerg", "error"]);
    assert_eq!(complete("facility", "LOCAL7").await, ["local7"]);
    assert_eq!(complete("transport", "t").await, ["tcp", "tls"]);
    assert_eq!(complete("format", "rfc5").await, ["rfc5424"]);
    assert_eq!(complete("encoding", "euc").await, ["euc-jp", "euc-kr"]);
    assert_eq!(complete("server", "c").await, ["central"]);
    let template = "syslog://facilities/{name}";
    let found = client.complete_template(template, ("name", "aut"), &[]).await.unwrap();
    assert_eq!(found.completion.values, ["auth", "authpriv"]);
}
