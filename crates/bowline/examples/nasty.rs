//! A server that misbehaves, for the tests of the client.
//!
//! `nasty <manner> [mark]` serves on its standard streams. The manner says how it misbehaves until
//! its tools are listed (see `nasty/manners.rs`); after that, each tool misbehaves as its name
//! says. The mark does nothing: it identifies the processes of one test in a list of processes.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test")]

#[path = "nasty/manners.rs"]
mod manners;
#[path = "nasty/tools.rs"]
mod tools;

use std::io::Write;
use std::time::Duration;
use std::{env, thread};

use bowline::{Server, Tool};
use serde_json::{Value, json};

/// The revision of servers of the legacy era.
const LEGACY: &str = "2025-11-25";

/// The revision of servers of the modern era.
const MODERN: &str = "2026-07-28";

fn main() {
    let mut arguments = env::args().skip(1);
    let manner = arguments.next().unwrap_or_else(|| "legacy".to_owned());
    let mark = arguments.next().unwrap_or_default();
    match manner.as_str() {
        "bowline" => return serve(),
        // Ignores everything that can be ignored.
        "deaf" | "stubborn" => ignore_term(),
        "banner" => say_line("Starting up! {not json} [1, 2"),
        _ => manners::begin(&manner, &mark),
    }
    let mut speaker = Speaker { manner, mark, late: None };
    while let Some(message) = hear() {
        speaker.hear(&message);
    }
    if matches!(speaker.manner.as_str(), "deaf" | "stubborn") {
        loop {
            thread::sleep(Duration::from_secs(3600));
        }
    }
}

/// A well-behaved server.
fn serve() {
    let server = Server::new("nice", "1.0.0")
        .with(Tool::new("pid", || async { std::process::id().to_string() }))
        .with(Tool::new("never", || async {
            std::future::pending::<()>().await;
            "never"
        }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(server.serve_stdio()).unwrap();
}

/// Replaces the default action with a handler that does nothing.
fn ignore_term() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let kind = tokio::signal::unix::SignalKind::terminate();
    let ignored = runtime.block_on(async move { tokio::signal::unix::signal(kind).unwrap() });
    std::mem::forget((ignored, runtime));
}

/// The next message. The lock on standard input is released, because a tool may read on.
fn hear() -> Option<Value> {
    loop {
        let mut line = String::new();
        match std::io::stdin().read_line(&mut line) {
            Ok(1..) => {}
            _ => return None,
        }
        if let Ok(message) = serde_json::from_str(&line) {
            return Some(message);
        }
    }
}

struct Speaker {
    manner: String,
    mark: String,
    /// A question that is answered after the next one.
    late: Option<Value>,
}

impl Speaker {
    fn is_modern(&self) -> bool {
        self.manner.starts_with("modern")
    }

    fn hear(&mut self, message: &Value) {
        let id = &message["id"];
        let Some(method) = message["method"].as_str() else { return };
        if manners::misbehave(&self.manner, method, id) {
            return;
        }
        match method {
            "server/discover" => self.discover(id),
            "initialize" => self.initialize(id),
            "ping" => answer(id, &json!({})),
            "tools/list" => answer(id, &json!({ "tools": [tool("echo")] })),
            "resources/list" if self.manner != "lacks" => answer(id, &json!({ "resources": [] })),
            "resources/subscribe" => answer(id, &json!({ "_meta": { "a": 1 } })),
            "subscriptions/listen" => acknowledge(message),
            "tools/call" => tools::call(id, &message["params"], &self.mark),
            _ if id.is_null() => {}
            _ => refuse(id, -32601, "no such method"),
        }
    }

    fn discover(&mut self, id: &Value) {
        if let Some(code) = self.manner.strip_prefix("error") {
            return refuse(id, code.parse().unwrap(), "I do not know that");
        }
        match self.manner.as_str() {
            "silent" | "mute" => {}
            "late" => self.late = Some(id.clone()),
            "dies" => std::process::exit(3),
            "malformed" => answer(id, &json!({ "supportedVersions": "all of them" })),
            _ if self.is_modern() => answer(id, &discovered()),
            _ => refuse(id, -32601, "no such method"),
        }
    }

    fn initialize(&mut self, id: &Value) {
        match self.manner.as_str() {
            "mute" => return,
            "ends" => {
                eprintln!("cannot open the database");
                std::process::exit(4);
            }
            _ if self.is_modern() => {
                let error = json!({ "code": -32022, "message": "no", "data": {
                    "supported": [MODERN], "requested": LEGACY } });
                return say(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            _ => {}
        }
        answer(
            id,
            &json!({
                "protocolVersion": LEGACY,
                "serverInfo": { "name": "nasty", "version": "1.0.0" },
                "capabilities": capabilities(),
            }),
        );
        if let Some(probe) = self.late.take() {
            answer(&probe, &discovered());
        }
        if self.manner == "hello" {
            std::process::exit(5);
        }
    }
}

fn capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": true },
    })
}

fn discovered() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": capabilities(),
        "ttlMs": 0,
        "cacheScope": "private",
    })
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

/// Acknowledges the subscription, but never reports a change.
fn acknowledge(message: &Value) {
    say(&json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": {
            "_meta": { "io.modelcontextprotocol/subscriptionId": message["id"] },
            "notifications": message["params"]["notifications"],
        } }));
}

fn answer(id: &Value, result: &Value) {
    say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn refuse(id: &Value, code: i64, why: &str) {
    say(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } }));
}

fn say(message: &Value) {
    match manners::written(message) {
        Some(bytes) => say_bytes(&bytes),
        None => say_line(&message.to_string()),
    }
}

fn say_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(bytes);
    let _ = out.flush();
}

fn say_line(line: &str) {
    let mut out = std::io::stdout().lock();
    // It does not matter if nobody reads it.
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}
