//! Allowed destinations and the rate limit.

use mcp_logger::Callers;
use serde_json::json;

use crate::receiver::Datagrams;
use crate::{call, client, client_of, fail};

#[tokio::test]
async fn remote_callers_send_only_to_allowed_destinations() {
    let receiver = Datagrams::listen("127.0.0.1:0").await;
    let port = receiver.port();
    let arguments = json!({ "server": "127.0.0.1", "port": port, "message": "x" });

    let closed = client_of("", Callers::Strangers).await;
    for tool in ["send-syslog", "test-syslog-target"] {
        let mut arguments = arguments.clone();
        if tool == "test-syslog-target" {
            arguments.as_object_mut().unwrap().remove("message");
        }
        let text = fail(&closed, tool, arguments).await;
        assert!(
            text.contains("sending to 127.0.0.1:") && text.contains(" is not allowed"),
            "{text}"
        );
        assert!(text.contains("--allow"), "{text}");
    }
    let open = client_of("allow = [\"127.0.0.0/8:*\"]", Callers::Strangers).await;
    call(&open, "send-syslog", arguments.clone()).await;
    let named = format!("[targets.here]\nserver = \"127.0.0.1\"\nport = {port}");
    let named = client_of(&named, Callers::Strangers).await;
    call(&named, "send-syslog", json!({ "server": "here", "message": "x" })).await;
    let text = fail(&named, "send-syslog", arguments).await;
    assert!(text.contains("is not allowed"), "{text}");
    let moved = json!({ "server": "here", "port": 1, "message": "x" });
    let text = fail(&named, "send-syslog", moved).await;
    assert!(text.contains("is fixed by the configuration"), "{text}");
}

#[tokio::test]
async fn other_protocols_cannot_be_reached() {
    // Such as Redis, which obeys every line that it understands.
    let redis = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = redis.local_addr().unwrap().port();
    let client = client_of("allow = [\"127.0.0.0/8\"]", Callers::Strangers).await;
    let endpoint = json!({ "server": "127.0.0.1", "port": port, "transport": "tcp" });
    let mut message = endpoint.clone();
    message["message"] = "x\r\nFLUSHALL\r\n".into();
    message["framing"] = "lf".into();
    for (tool, arguments) in [("send-syslog", message), ("test-syslog-target", endpoint)] {
        let text = fail(&client, tool, arguments).await;
        let expected = format!(
            "sending to 127.0.0.1:{port} over tcp is not allowed; allowed: 127.0.0.0/8 (without a \
             port: 514 over udp"
        );
        assert!(text.contains(&expected), "{text}");
    }
    let connected = tokio::time::timeout(std::time::Duration::ZERO, redis.accept()).await;
    assert!(connected.is_err(), "it was connected to");
    let listed = format!("allow = [\"127.0.0.0/8:{port}\"]");
    let client = client_of(&listed, Callers::Strangers).await;
    let endpoint = json!({ "server": "127.0.0.1", "port": port, "transport": "tcp" });
    let (_, accepted) = tokio::join!(call(&client, "test-syslog-target", endpoint), redis.accept());
    accepted.unwrap();
}

#[tokio::test]
async fn only_the_configuration_keeps_control_characters() {
    let config = "[targets.raw]\nserver = \"192.0.2.1\"\n[targets.raw.defaults]\n\
                  control_characters = \"keep\"\n[targets.plain]\nserver = \"192.0.2.2\"";
    let client = client(config).await;
    let ask = |server: &str, control: Option<&str>| {
        let mut asked = json!({ "server": server, "message": "a\nb", "dry_run": true });
        if let Some(control) = control {
            asked["control_characters"] = control.into();
        }
        asked
    };
    for server in ["192.0.2.3", "plain"] {
        let text = fail(&client, "send-syslog", ask(server, Some("keep"))).await;
        assert!(text.contains("the configuration does not keep them"), "{text}");
        let batch = json!({ "server": server, "messages": [
            { "message": "a\nb", "control_characters": "keep" } ] });
        let text = fail(&client, "send-syslog-batch", batch).await;
        assert!(text.contains("messages[0]: control characters are escaped"), "{text}");
    }
    for (server, control, end) in [
        ("raw", Some("keep"), ": a\nb"),
        ("raw", None, ": a\nb"),
        ("raw", Some("escape"), ": a#012b"),
        ("plain", None, ": a#012b"),
    ] {
        let shown = call(&client, "send-syslog", ask(server, control)).await;
        assert!(shown["frames"][0]["text"].as_str().unwrap().ends_with(end), "{shown}");
    }
}

#[tokio::test]
async fn fixed_fields_cannot_be_changed() {
    let config = "[fixed]\nfacility = \"local4\"\n[targets.audit]\nserver = \"192.0.2.1\"\n\
                  [targets.audit.fixed]\nhostname = \"gateway\"\ntag = \"agents\"\n\
                  timestamp = \"now\"\nfacility = \"local5\"\n";
    let client = client(config).await;
    let shown = async |server: &str, change: serde_json::Value| {
        let mut asked = json!({ "server": server, "message": "m", "dry_run": true });
        for (name, value) in change.as_object().unwrap() {
            asked[name] = value.clone();
        }
        asked
    };
    for (name, value) in [
        ("hostname", "other"),
        ("tag", "sshd"),
        ("timestamp", "2020-01-01T00:00:00Z"),
        ("facility", "auth"),
    ] {
        let asked = shown("audit", json!({ name: value })).await;
        let text = fail(&client, "send-syslog", asked).await;
        let expected =
            format!("the {name} of target \"audit\" is fixed by the configuration; leave it out");
        assert!(text.contains(&expected), "{text}");
    }
    let asked = shown("192.0.2.7", json!({ "facility": "auth" })).await;
    let text = fail(&client, "send-syslog", asked).await;
    assert!(text.contains("the facility of every message is fixed"), "{text}");
    // The same value is not a change, and the rest is free.
    for change in [json!({}), json!({ "tag": "agents", "severity": "err" })] {
        let sent = call(&client, "send-syslog", shown("audit", change).await).await;
        let text = sent["frames"][0]["text"].as_str().unwrap();
        assert!(text.ends_with(" gateway agents: m"), "{text}");
        assert_eq!(sent["facility"], "local5");
    }
    let sent = call(&client, "send-syslog", shown("192.0.2.7", json!({})).await).await;
    assert_eq!(sent["facility"], "local4");
}

#[tokio::test]
async fn names_are_judged_by_their_addresses() {
    let client = client("allow = [\"192.0.2.0/24\"]").await;
    let text = fail(&client, "send-syslog", json!({"server": "localhost", "message": "x"})).await;
    assert!(text.contains("sending to localhost:514 over udp is not allowed"), "{text}");
    let socket = json!({"server": "/dev/log", "transport": "unix", "message": "x"});
    let text = fail(&client, "send-syslog", socket).await;
    assert!(text.contains("sending to /dev/log is not allowed"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn too_many_messages_are_rejected_and_batches_wait() {
    let receiver = Datagrams::listen("127.0.0.1:0").await;
    let client = client("messages_per_second = 10\nburst = 2").await;
    let arguments = json!({ "server": "127.0.0.1", "port": receiver.port(), "message": "x" });
    call(&client, "send-syslog", arguments.clone()).await;
    call(&client, "send-syslog", arguments.clone()).await;
    let text = fail(&client, "send-syslog", arguments).await;
    assert!(
        text.contains("the limit of 10 messages per second is exceeded; try again in"),
        "{text}"
    );
    let entries: Vec<_> = (0..20).map(|number| json!({ "message": number.to_string() })).collect();
    let batch = json!({ "server": "127.0.0.1", "port": receiver.port(), "messages": entries });
    let before = tokio::time::Instant::now();
    assert_eq!(call(&client, "send-syslog-batch", batch).await["sent"], 20);
    // By the paused clock: twenty messages at ten a second.
    assert!(before.elapsed().as_millis() >= 1_900);
}
