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
        assert!(text.contains("sending to 127.0.0.1 is not allowed"), "{text}");
        assert!(text.contains("--allow"), "{text}");
    }
    let open = client_of("allow = [\"127.0.0.0/8\"]", Callers::Strangers).await;
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
async fn names_are_judged_by_their_addresses() {
    let client = client("allow = [\"192.0.2.0/24\"]").await;
    let text = fail(&client, "send-syslog", json!({"server": "localhost", "message": "x"})).await;
    assert!(text.contains("sending to localhost is not allowed"), "{text}");
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
