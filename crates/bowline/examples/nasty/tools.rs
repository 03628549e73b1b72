//! How each tool misbehaves.

use std::io::Write;
use std::process::{Command, Stdio};
use std::{env, process, thread};

use serde_json::{Value, json};

use super::{answer, hear, say, say_line};

pub(super) fn call(id: &Value, params: &Value, mark: &str) {
    let arguments = &params["arguments"];
    let count = arguments["count"].as_u64().unwrap_or(1);
    match params["name"].as_str().unwrap_or_default() {
        "echo" => text(id, arguments["text"].as_str().unwrap_or("")),
        "pid" => text(id, &process::id().to_string()),
        "never" => {}
        "garbage" => garbage(id),
        "stderr" => {
            flood_stderr(count);
            text(id, "done");
        }
        "twice" => {
            text(id, "first");
            text(id, "second");
        }
        "string_id" => text(&json!(id.to_string()), "as a string"),
        "other_id" => text(&json!(999_999), "to somebody else"),
        "null_id" => text(&Value::Null, "to nobody"),
        "fraction_id" => text(&json!(id.as_f64().unwrap() + 0.5), "to a half"),
        "exit" => {
            eprintln!("the first sign of trouble");
            eprintln!("fatal: disk on fire");
            process::exit(7);
        }
        "long" => long(id, count),
        "ask" => ask(id),
        "ask_and_not_read" => ask_and_not_read(count),
        "notify" => {
            notify(count);
            text(id, "done");
        }
        "fork" => fork(id, mark),
        "shut" => shut(),
        _ => say(&json!({ "jsonrpc": "2.0", "id": id, "error":
            { "code": -32602, "message": "no such tool" } })),
    }
}

fn text(id: &Value, text: &str) {
    answer(
        id,
        &json!({
            "resultType": "complete",
            "content": [{ "type": "text", "text": text }],
        }),
    );
}

/// Writes all kinds of lines that are not messages, and then the answer.
fn garbage(id: &Value) {
    let mut out = std::io::stdout().lock();
    let lines: [&[u8]; 12] = [
        b"Listening on port 3000",
        b"",
        b"{",
        b"\xff\xfe\x00\x01 not text",
        b"<html><body>502 Bad Gateway</body></html>",
        b"[]",
        b"[1, null]",
        b"null",
        b"{\"jsonrpc\":\"2.0\"}",
        b"{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}",
        b"{\"jsonrpc\":\"2.0\",\"method\":5}",
        b"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"you sent garbage\"}}",
    ];
    for line in lines {
        let _ = out.write_all(line).and_then(|()| out.write_all(b"\n"));
    }
    drop(out);
    text(id, "after the garbage");
}

/// Writes this many lines of a kilobyte.
fn flood_stderr(count: u64) {
    let line = format!("{}\n", "e".repeat(1023)).repeat(64);
    let mut errors = std::io::stderr().lock();
    for _ in 0..count.div_ceil(64) {
        let _ = errors.write_all(line.as_bytes());
    }
    drop(errors);
    eprintln!("the end of the flood");
}

/// Answers with one line of this many bytes.
fn long(id: &Value, count: u64) {
    let mut out = std::io::stdout().lock();
    let piece = [b'x'; 1 << 16];
    let _ = write!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"x":""#);
    for _ in 0..count / piece.len() as u64 {
        let _ = out.write_all(&piece);
    }
    let _ = out.write_all(b"\"}}\n");
    let _ = out.flush();
}

/// Asks for something that the client does not offer, and returns the answer.
fn ask(id: &Value) {
    let asked = [
        ("sampling/createMessage", json!({ "messages": [], "maxTokens": 1 })),
        (
            "elicitation/create",
            json!({ "message": "?", "requestedSchema":
            { "type": "object", "properties": {} } }),
        ),
        ("roots/list", json!({})),
        ("server/shell", json!({ "command": "rm" })),
        ("ping", json!({})),
    ];
    for (number, (method, params)) in asked.iter().enumerate() {
        say(&json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params }));
    }
    let mut said = vec![String::new(); asked.len()];
    while let Some(message) = hear() {
        let number = message["id"].as_u64().and_then(|id| usize::try_from(id).ok());
        let Some(place) = number.and_then(|number| said.get_mut(number)) else { continue };
        *place = match &message["error"]["code"] {
            Value::Null => "ok".to_owned(),
            code => code.to_string(),
        };
        if said.iter().all(|it| !it.is_empty()) {
            break;
        }
    }
    text(id, &said.join(" "));
}

/// Asks, and then stops reading.
fn ask_and_not_read(count: u64) {
    for number in 0..count {
        say(&json!({ "jsonrpc": "2.0", "id": number, "method": "roots/list" }));
    }
    say(&json!({ "jsonrpc": "2.0", "method": "notifications/message",
        "params": { "level": "info", "data": "all asked" } }));
    loop {
        thread::park();
    }
}

/// Sends unexpected notifications.
fn notify(count: u64) {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for number in 0..count {
        let (method, params) = match number % 3 {
            0 => ("progress", json!({ "progressToken": format!("no {number}"), "progress": 1 })),
            1 => ("message", json!({ "level": "info", "data": number })),
            _ => ("tools/list_changed", json!({})),
        };
        let method = format!("notifications/{method}");
        let notice = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        let _ = writeln!(out, "{notice}");
    }
    let _ = out.flush();
}

/// Starts a descendant that holds the streams and ignores signals.
fn fork(id: &Value, mark: &str) {
    let mut child = Command::new(env::current_exe().unwrap());
    child.arg("deaf").arg(mark).stdin(Stdio::null());
    match child.spawn() {
        Ok(child) => text(id, &child.id().to_string()),
        Err(error) => text(id, &error.to_string()),
    }
}

/// Falls silent, but keeps running.
fn shut() {
    use std::os::fd::AsFd;
    let null = std::fs::File::create("/dev/null").unwrap();
    rustix::stdio::dup2_stdout(null.as_fd()).unwrap();
    say_line("nobody hears this");
}
