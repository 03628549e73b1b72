//! Who may be sent to, and how fast.

use mcp_logger::Callers;
use serde_json::json;

use crate::receiver::Datagrams;
use crate::{call, client, client_of, fail};

#[tokio::test]
async fn strangers_send_to_nothing_that_is_not_allowed() {
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
        assert!(text.contains("127.0.0.1 is not among the servers"), "{text}");
        assert!(text.contains("--allow"), "{text}");
    }
    let open = client_of("allow = [\"127.0.0.0/8\"]", Callers::Strangers).await;
    call(&open, "send-syslog", arguments.clone()).await;
    let named = format!("[targets.here]\nserver = \"127.0.0.1\"\nport = {port}");
    let named = client_of(&named, Callers::Strangers).await;
    call(&named, "send-syslog", json!({ "server": "here", "message": "x" })).await;
    let text = fail(&named, "send-syslog", arguments).await;
    assert!(text.contains("is not among"), "{text}");
    let moved = json!({ "server": "here", "port": 1, "message": "x" });
    let text = fail(&named, "send-syslog", moved).await;
    assert!(text.contains("is fixed by the configuration"), "{text}");
}

#[tokio::test]
async fn names_are_judged_by_where_they_lead() {
    let client = client("allow = [\"192.0.2.0/24\"]").await;
    let text = fail(&client, "send-syslog", json!({"server": "localhost", "message": "x"})).await;
    assert!(text.contains("localhost is not among the servers"), "{text}");
    let socket = json!({"server": "/dev/log", "transport": "unix", "message": "x"});
    let text = fail(&client, "send-syslog", socket).await;
    assert!(text.contains("/dev/log is not among the servers"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn too_many_messages_are_refused_and_batches_wait() {
    let receiver = Datagrams::listen("127.0.0.1:0").await;
    let client = client("messages_per_second = 10\nburst = 2").await;
    let arguments = json!({ "server": "127.0.0.1", "port": receiver.port(), "message": "x" });
    call(&client, "send-syslog", arguments.clone()).await;
    call(&client, "send-syslog", arguments.clone()).await;
    let text = fail(&client, "send-syslog", arguments).await;
    assert!(text.contains("more than 10 messages per second; try again in"), "{text}");
    let entries: Vec<_> = (0..20).map(|number| json!({ "message": number.to_string() })).collect();
    let batch = json!({ "server": "127.0.0.1", "port": receiver.port(), "messages": entries });
    let before = tokio::time::Instant::now();
    assert_eq!(call(&client, "send-syslog-batch", batch).await["sent"], 20);
    // On the clock of the test: twenty messages at ten a second.
    assert!(before.elapsed().as_millis() >= 1_900);
}
