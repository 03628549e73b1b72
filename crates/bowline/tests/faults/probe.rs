//! The child process: started, driven line by line, and always waited for.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use std::{env, fs, thread};

use serde_json::{Value, json};

/// A guard against hanging; nothing else depends on time.
const GUARD: Duration = Duration::from_secs(60);

/// Whether to run at full size.
pub(crate) fn is_full() -> bool {
    env::var_os("BOWLINE_FULL").is_some()
}

pub(crate) struct Probe {
    child: Child,
    input: Option<BufWriter<ChildStdin>>,
    lines: Receiver<Value>,
}

impl Probe {
    pub(crate) fn start() -> Self {
        let mut child = Command::new(path())
            .arg("stdio")
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().map(BufWriter::new);
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines() {
                let line = line.unwrap();
                let message =
                    serde_json::from_str(&line).unwrap_or_else(|_| json!({ "bad": line }));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self { child, input, lines }
    }

    /// A child after the handshake of a revision.
    pub(crate) fn with_session(revision: &str) -> Self {
        let mut probe = Self::start();
        probe.send(&json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": { "name": "faults", "version": "1.0.0" },
        } }));
        assert_eq!(probe.next()["result"]["protocolVersion"], revision);
        probe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        probe
    }

    /// Writes bytes as they are; [`Probe::flush`] sends them.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn flush(&mut self) {
        self.input.as_mut().unwrap().flush().unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.queue(message);
        self.flush();
    }

    /// The same without flushing.
    pub(crate) fn queue(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// The next message that the child sends.
    pub(crate) fn next(&mut self) -> Value {
        let message = self.lines.recv_timeout(GUARD).unwrap();
        assert_eq!(message.get("bad"), None, "half a line, or two");
        message
    }

    /// Everything until the answer to this id, which is the last.
    pub(crate) fn until(&mut self, id: &Value) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let message = self.next();
            let is_last = message.get("id") == Some(id);
            messages.push(message);
            if is_last {
                return messages;
            }
        }
    }

    /// Closes the child's input.
    pub(crate) fn close(&mut self) {
        drop(self.input.take());
    }

    /// The remaining output, after which the child must have ended cleanly.
    pub(crate) fn rest(mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Ok(message) = self.lines.recv_timeout(GUARD) {
            assert_eq!(message.get("bad"), None, "half a line, or two");
            messages.push(message);
        }
        const PAUSE: Duration = Duration::from_millis(5);
        let mut left = GUARD.as_millis() / PAUSE.as_millis();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            left = left.checked_sub(1).expect("the child ends");
            thread::sleep(PAUSE);
        };
        assert!(status.success(), "{status}");
        messages
    }

    /// Sends the stop signal to the child.
    pub(crate) fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// A number of the child's `/proc/…/status`, in bytes.
    pub(crate) fn memory(&self, name: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let number = line.trim_start_matches(':').trim().split(' ').next().unwrap();
        number.parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A legacy request.
pub(crate) fn request(id: impl Into<Value>, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

/// A legacy call of a tool.
pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: &Value) -> Value {
    request(id, "tools/call", &json!({ "name": tool, "arguments": arguments }))
}

/// The same as a modern request.
pub(crate) fn modern(mut request: Value) -> Value {
    request["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "faults", "version": "1.0.0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    request
}

pub(crate) fn cancel(id: impl Into<Value>) -> Value {
    let params = json!({ "requestId": id.into() });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
}

/// The text of a tool's answer.
pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

/// Answers by their ids, which are numbers. Nothing is answered twice.
pub(crate) fn by_id(messages: Vec<Value>) -> HashMap<u64, Value> {
    let mut answers = HashMap::new();
    for message in messages {
        if let Some(id) = message["id"].as_u64() {
            assert_eq!(answers.insert(id, message), None, "{id} is answered twice");
        }
    }
    answers
}

/// The path of the example beside this test, unless `BOWLINE_PROBE` names another build of it.
/// Cargo builds examples when it builds all tests.
fn path() -> &'static PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        if let Some(path) = env::var_os("BOWLINE_PROBE") {
            return path.into();
        }
        let this = env::current_exe().unwrap();
        let folder = this.parent().and_then(|deps| deps.parent()).unwrap();
        let path = folder.join("examples/probe");
        if !path.exists() {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--package", "bowline", "--example", "probe"]);
            if folder.ends_with("release") {
                build.arg("--release");
            }
            assert!(build.status().unwrap().success());
        }
        path
    })
}
