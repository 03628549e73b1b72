//! `bowline serve workbench`, used as a coding agent uses it.

use bowline::Client;
use bowline::client::Command;
use serde_json::{Value, json};

use crate::fixture::{Folder, PROGRAM, program, said, url};

/// An agent's client. The workbench has the folder as its home.
async fn agent(home: &Folder, servers: &[&str]) -> Client {
    let data = home.path().join("data");
    let command = Command::new(PROGRAM)
        .args(["serve", "workbench", "--sessions", "kept", "--accept"])
        .args(servers.iter().copied())
        .current_dir(home.path())
        .env("HOME", home.path())
        .env("BOWLINE_DATA_DIR", data);
    Client::connect(command).await.unwrap()
}

async fn call(client: &Client, tool: &str, arguments: Value) -> Result<String, String> {
    let result = client.call_tool(tool, arguments).await.unwrap();
    let text = result.content.iter().map(|block| serde_json::to_value(block).unwrap());
    let text: String = text.map(|block| block["text"].as_str().unwrap().to_owned()).collect();
    if result.is_error == Some(true) { Err(text) } else { Ok(text) }
}

/// The same when it must succeed.
async fn asked(client: &Client, tool: &str, arguments: Value) -> String {
    call(client, tool, arguments).await.unwrap()
}

#[tokio::test]
async fn an_agent_works_on_a_server() {
    let home = Folder::new();
    let servers = ["--", PROGRAM, "serve", "counter"];
    let client = agent(&home, &servers).await;
    let overview = asked(&client, "servers", json!({})).await;
    assert!(overview.contains("- bowline (not connected)"), "{overview}");
    assert!(overview.contains("Recorded sessions: none"), "{overview}");

    let server = json!({ "server": "bowline" });
    let about = asked(&client, "reconnect", server.clone()).await;
    assert!(about.contains(r#""name": "counter""#) && about.contains(r#""era""#), "{about}");
    let tools = asked(&client, "list", json!({ "server": "bowline", "what": "tools" })).await;
    assert!(tools.contains("- sum(a: integer, b: integer): "), "{tools}");
    let tool = json!({ "server": "bowline", "what": "tools", "name": "sum" });
    assert!(asked(&client, "list", tool).await.contains(r#""inputSchema": {"#));

    let increment = json!({ "server": "bowline", "tool": "increment" });
    assert_eq!(asked(&client, "call", increment.clone()).await, "1\n");
    let wrong = json!({ "server": "bowline", "tool": "sum", "arguments": { "a": "x" } });
    let said = asked(&client, "call", wrong).await;
    assert!(said.starts_with("The tool reported an error:\n"), "{said}");
    let read = json!({
        "server": "bowline", "method": "resources/read", "params": { "uri": "counter://value" },
    });
    assert!(asked(&client, "request", read).await.contains(r#""text":"1""#));
    let messages = asked(&client, "messages", json!({ "server": "bowline", "last": 2 })).await;
    assert_eq!(messages.lines().count(), 2, "{messages}");
    assert!(messages.contains("counter://value"), "{messages}");

    let named = json!({ "server": "bowline", "session": "before" });
    assert!(asked(&client, "record", named.clone()).await.ends_with("lines as before"));
    assert!(home.path().join("kept/before.jsonl").is_file());
    assert_eq!(asked(&client, "replay", named).await, "nothing differs\n");
    let sides = json!({ "before": { "session": "before" }, "after": { "server": "bowline" } });
    assert_eq!(asked(&client, "diff", sides).await, "nothing differs\n");

    let walked = asked(&client, "doctor", server.clone()).await;
    assert!(walked.contains("ok ") && !walked.contains("fail "), "{walked}");
    let checked = asked(&client, "check", server).await;
    assert!(checked.starts_with("good: "), "{checked}");
    client.close().await;
}

#[tokio::test]
async fn nothing_is_reached_that_was_not_approved() {
    let home = Folder::new();
    let client = agent(&home, &[&url("tools")]).await;
    let refused = call(&client, "reconnect", json!({ "server": "sh" })).await.unwrap_err();
    assert!(refused.starts_with("\"sh\" is not an approved server"), "{refused}");
    let other = json!({ "server": "http://127.0.0.1:1/mcp", "what": "tools" });
    assert!(call(&client, "list", other).await.unwrap_err().contains("not an approved server"));
    let server = json!({ "server": url("tools") });
    asked(&client, "reconnect", server.clone()).await;
    for name in ["../stolen", "a/b", ".."] {
        let named = json!({ "server": server["server"], "session": name });
        let refused = call(&client, "record", named).await.unwrap_err();
        assert!(refused.contains("cannot be the name of a session"), "{refused}");
    }
    client.close().await;
}

#[tokio::test]
async fn a_server_that_dies_is_reported_and_started_anew() {
    let home = Folder::new();
    let script = home.write("mortal.sh", &format!(
        "echo started >> starts\n[ -e broken ] && {{ echo 'no such table: users' >&2; exit 3; }}\n\
         exec '{PROGRAM}' serve counter\n"
    ));
    let script = script.to_str().unwrap();
    let client = agent(&home, &["--", "sh", script]).await;
    let increment = json!({ "server": "sh", "tool": "increment" });
    assert_eq!(asked(&client, "call", increment.clone()).await, "1\n");
    home.write("broken", "");
    let failed = call(&client, "reconnect", json!({ "server": "sh" })).await.unwrap_err();
    assert!(failed.contains("no such table: users"), "{failed}");
    std::fs::remove_file(home.path().join("broken")).unwrap();
    assert_eq!(asked(&client, "call", increment).await, "1\n");
    client.close().await;
}

#[test]
fn somebody_must_approve_something() {
    let home = Folder::new();
    let said = said(program(&home).args(["serve", "workbench"]));
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("which servers may the agent use?"), "{}", said.err);
}
