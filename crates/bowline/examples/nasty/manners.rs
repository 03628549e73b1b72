//! Misbehaviour before any tool is called: in writing, in the answers to the handshake and to
//! lists, and in what is left behind.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
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
    let (manner, fat) = match manner.strip_suffix("-full") {
        Some(manner) => (manner, FAT_IN_FULL),
        None => (manner, FAT),
    };
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
        ("fat-text" | "fat-tools" | "fat-schema", "tools/list") => {
            fat_page(manner, id, fat);
        }
        ("fat-notes" | "fat-asks", "tools/list") => fat_messages(manner, id, fat),
        ("fat-hello", "initialize") => {
            let hello = json!({ "protocolVersion": LEGACY, "capabilities": {},
                "serverInfo": { "name": "nasty", "version": "1.0.0" },
                "instructions": "x".repeat(fat) });
            answer(id, &hello);
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

/// Just less than the longest message that a client takes.
const FAT_IN_FULL: usize = 15 << 20;

/// A fifth of that.
const FAT: usize = 3 << 20;

/// One of many fat pages, each with its own cursor: one long text, many small tools, or schemas.
fn fat_page(manner: &str, id: &Value, fat: usize) {
    static PAGES: AtomicU64 = AtomicU64::new(0);
    let page = PAGES.fetch_add(1, Ordering::Relaxed);
    let tools = match manner {
        "fat-text" => {
            let text = "x".repeat(fat);
            format!(r#"{{"name":"{page}","description":"{text}","inputSchema":{{}}}}"#)
        }
        "fat-tools" => {
            let small = format!(r#"{{"name":"{page}","inputSchema":{{}}}}"#);
            let count = fat / (small.len() + 1);
            vec![small.as_str(); count].join(",")
        }
        _ => {
            let list = "[],".repeat(fat / 6);
            let schema = format!(r#"{{"type":"object","enum":[{list}0]}}"#);
            format!(r#"{{"name":"{page}","inputSchema":{schema},"outputSchema":{schema}}}"#)
        }
    };
    let result = format!(r#"{{"tools":[{tools}],"nextCursor":"{page}"}}"#);
    say_bytes(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").as_bytes());
}

/// Fat notifications or requests before a short answer.
fn fat_messages(manner: &str, id: &Value, fat: usize) {
    let text = "x".repeat(fat);
    for number in 0..30 {
        let method = match manner {
            "fat-notes" => r#""method":"notifications/message""#.to_owned(),
            _ => format!(r#""id":{number},"method":"sampling/createMessage""#),
        };
        let params = format!(r#"{{"level":"info","data":"{text}"}}"#);
        say_bytes(format!("{{\"jsonrpc\":\"2.0\",{method},\"params\":{params}}}\n").as_bytes());
    }
    answer(id, &json!({ "tools": [tool("echo")] }));
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
