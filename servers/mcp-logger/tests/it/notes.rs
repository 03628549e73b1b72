//! Replays the conversation in a note on the first mcp-logger against the program: the same
//! requests, byte for byte, and the answers the note shows.
//!
//! The note marks omissions with dots; those are not compared. Its answers are all correct. The
//! program it describes would have sent facility "nowhere" as local0 and port 70000 as port 4464;
//! this one rejects both, which `tools.rs` tests.

use std::path::{Path, PathBuf};
use std::{env, fs};

use bowline_serve::testing::Process;
use serde_json::{Value, json};

use crate::receiver::{Datagrams, folder};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"Claude","version":"3.5-sonnet"}},"id":1}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","method":"tools/list","id":2}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"send-syslog","arguments":{"server":"192.168.1.40","port":514,"facility":"local0","severity":"error","message":"Deployment failed due to timeout"}},"id":3}"#;

#[tokio::test]
async fn the_note_is_replayed() {
    let receiver = Datagrams::listen("127.0.0.1:0").await;
    // Redirects messages for the note's server to this machine.
    let folder = folder("note");
    let config = format!("[connect_to]\n\"192.168.1.40:514\" = \"127.0.0.1:{}\"", receiver.port());
    fs::write(folder.join("config.toml"), config).unwrap();
    let config = folder.join("config.toml").display().to_string();
    let mut process = Process::start(env!("CARGO_BIN_EXE_mcp-logger"), &["--config", &config]);
    check_answers(&process.play(&[INITIALIZE, INITIALIZED, LIST, CALL].join("\n")));
    let packet = String::from_utf8(receiver.next().await).unwrap();
    assert!(packet.starts_with("<131>"), "{packet}");
    assert!(packet.ends_with(" mcp-logger: Deployment failed due to timeout"), "{packet}");
    assert_eq!(process.close().code, Some(0));
    fs::remove_dir_all(folder).unwrap();
}

fn check_answers(answers: &[Value]) {
    let [handshake, list, call] = answers else { panic!("{answers:?}") };
    assert_eq!(handshake["result"]["protocolVersion"], "2024-11-05");
    let name = json!({ "name": "mcp-logger", "version": "0.1.0" });
    assert_eq!(handshake["result"]["serverInfo"], name);
    assert!(handshake["result"]["capabilities"]["tools"].is_object());

    let tool = &list["result"]["tools"][0];
    assert_eq!(tool["name"], "send-syslog");
    let begins = |value: &Value, text: &str| value.as_str().unwrap().starts_with(text);
    assert!(begins(&tool["description"], "Send a standard Syslog message"));
    let properties = &tool["inputSchema"]["properties"];
    assert!(begins(&properties["server"]["description"], "IP address"));
    assert_eq!(tool["inputSchema"]["required"], json!(["server", "message"]));
    for (name, kind, default) in [
        ("server", "string", Value::Null),
        ("port", "integer", json!(514)),
        ("message", "string", Value::Null),
        ("severity", "string", json!("info")),
        ("facility", "string", json!("user")),
    ] {
        assert_eq!(properties[name]["type"], kind, "{name}");
        assert_eq!(properties[name]["default"], default, "{name}");
    }

    let text = "Success: Sent to 192.168.1.40:514 (Encoding: UTF-8)";
    let result = json!({ "content": [{ "type": "text", "text": text }], "isError": false });
    assert_eq!(*call, json!({ "jsonrpc": "2.0", "result": result, "id": 3 }));
}

/// If the note is available, it has exactly the requests above.
#[test]
fn the_requests_are_the_notes() {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = env::var_os("BOWLINE_SHARED").map_or_else(beside, PathBuf::from).join("seeds");
    let Ok(entries) = fs::read_dir(folder) else { return };
    let is_it =
        |path: &PathBuf| path.file_name().is_some_and(|it| it.to_string_lossy().starts_with("001"));
    let note = entries.map(|entry| entry.unwrap().path()).find(is_it).unwrap();
    let note = fs::read_to_string(note).unwrap();
    let blocks = note.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let requests: Vec<String> =
        blocks.filter(|it| it.contains("\"method\"")).map(one_line).collect();
    assert_eq!(requests, [INITIALIZE, INITIALIZED, LIST, CALL]);
}

/// A message on one line, without the white space between its parts.
fn one_line(block: &str) -> String {
    let mut is_text = false;
    let mut kept = String::new();
    for character in block.chars() {
        is_text ^= character == '"';
        if is_text || !character.is_whitespace() {
            kept.push(character);
        }
    }
    kept
}
