//! Misbehaviour before any tool is called: in writing, in the answers to the handshake and to
//! lists, and in what is left behind.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, process, thread};

use serde_json::{Value, json};

use super::{LEGACY, answer, capabilities, say, say_bytes, tool};

/// Runs before anything is read.
pub(super) fn begin(manner: &str, mark: &str) {
    match manner {
        "bom" => say_bytes(b"\xef\xbb\xbf"),
        "latin" => say_bytes(b"caf\xe9 ouvert\n"),
        "buffered" => buffered(),
        "web" => {
            eprintln!("Server listening on http://127.0.0.1:3999/mcp");
            forever();
        }
        "leaves" => leave(mark),
        _ => {}
    }
}

/// The bytes of a message that is written wrongly.
pub(super) fn written(message: &Value) -> Option<Vec<u8>> {
    let manner = env::args().nth(1).unwrap_or_default();
    match manner.as_str() {
        "pretty" => Some(format!("{message:#}\n").into_bytes()),
        "unended" => Some(message.to_string().into_bytes()),
        "lsp" => {
            let body = message.to_string();
            Some(format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes())
        }
        "chatty" => Some(format!("{message}\nDEBUG handled a message\n").into_bytes()),
        _ => None,
    }
}

/// Answers wrongly, if the manner says so. Returns whether it did.
pub(super) fn misbehave(manner: &str, method: &str, id: &Value) -> bool {
    match (manner, method) {
        ("stringid", "initialize") => initialized(&json!(id.to_string()), LEGACY),
        ("otherid", "initialize") => initialized(&json!(4711), LEGACY),
        ("oldest", "initialize") => initialized(id, "2023-01-01"),
        ("nameless", "initialize") => {
            answer(id, &json!({ "protocolVersion": LEGACY, "capabilities": {} }));
        }
        ("eager", "initialize") => {
            say(&json!({ "jsonrpc": "2.0", "id": "early", "method": "roots/list" }));
            initialized(id, LEGACY);
        }
        ("hangs", "tools/list") => {}
        ("exits", "tools/list") => {
            eprintln!("Error: Cannot find module 'left-pad'");
            process::exit(1);
        }
        ("fails", "tools/list") => say(&json!({ "jsonrpc": "2.0", "id": id,
            "error": { "code": -32603, "message": "the database is closed" } })),
        ("endless", "tools/list") => {
            answer(id, &json!({ "tools": [tool("echo")], "nextCursor": "again" }));
        }
        ("sametool", "tools/list") => {
            answer(id, &json!({ "tools": [tool("echo"), tool("echo")] }));
        }
        ("badschema", "tools/list") => answer(
            id,
            &json!({ "tools": [{ "name": "odd", "inputSchema": { "type": "string" } }] }),
        ),
        ("noschema", "tools/list") => answer(id, &json!({ "tools": [{ "name": "odd" }] })),
        _ => return false,
    }
    true
}

fn initialized(id: &Value, revision: &str) {
    answer(
        id,
        &json!({
            "protocolVersion": revision,
            "serverInfo": { "name": "nasty", "version": "1.0.0" },
            "capabilities": capabilities(),
        }),
    );
}

/// Writes everything only when its input ends.
fn buffered() -> ! {
    let mut all = String::new();
    let _ = std::io::stdin().read_to_string(&mut all);
    let mut out = std::io::stdout().lock();
    for line in all.lines() {
        let message: Value = serde_json::from_str(line).unwrap_or_default();
        let id = &message["id"];
        let _ = writeln!(out, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
    }
    drop(out);
    process::exit(0);
}

/// Leaves a descendant behind that does not hold the streams.
fn leave(mark: &str) {
    let mut child = Command::new(env::current_exe().unwrap());
    child.arg("deaf").arg(mark).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // It is left behind on purpose; the test kills it.
    drop(child.spawn().unwrap());
}

fn forever() -> ! {
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}
