//! The program over HTTP: what strangers may do, and how it ends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use bowline_serve::testing::free_port;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep, timeout};

use crate::receiver::{Datagrams, PATIENCE};

/// The program on a port of its own, gone with it.
struct Program {
    child: Child,
    port: u16,
}

impl Program {
    /// Somebody else may take the port first: then another one is tried.
    async fn start(options: &[&str]) -> Self {
        let start = Instant::now();
        let mut program = Self::spawn(options);
        while TcpStream::connect(("127.0.0.1", program.port)).is_err() {
            assert!(start.elapsed() < PATIENCE, "it does not listen");
            if program.child.try_wait().unwrap().is_some() {
                program = Self::spawn(options);
            }
            sleep(Duration::from_millis(10)).await;
        }
        program
    }

    fn spawn(options: &[&str]) -> Self {
        let port = free_port();
        let child = Command::new(env!("CARGO_BIN_EXE_mcp-logger"))
            .arg("--http")
            .arg(format!("127.0.0.1:{port}"))
            .args(options)
            .env_remove("MCP_LOGGER_CONFIG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, port }
    }

    /// Calls a tool as a client of the newest revision does.
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let body = body.to_string();
        let port = self.port;
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
             mcp-method: tools/call\r\nmcp-name: {tool}\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let body = &answer[answer.find('{').unwrap()..=answer.rfind('}').unwrap()];
        serde_json::from_str::<Value>(body).unwrap()["result"].clone()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn strangers_need_a_list() {
    let receiver = Datagrams::listen("127.0.0.1:0").await;
    let arguments = json!({ "server": "127.0.0.1", "port": receiver.port(), "message": "hello" });
    let closed = Program::start(&[]).await;
    let refused = closed.call("send-syslog", &arguments);
    assert_eq!(refused["isError"], true);
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("127.0.0.1 is not among the servers"), "{text}");

    let open = Program::start(&["--allow", "192.0.2.0/24,127.0.0.1"]).await;
    let sent = open.call("send-syslog", &arguments);
    assert_eq!(sent["structuredContent"]["delivery"], "unconfirmed", "{sent}");
    assert!(receiver.next().await.ends_with(b": hello"));
}

#[tokio::test]
async fn it_ends_when_it_is_told_to() {
    let mut program = Program::start(&[]).await;
    let id = program.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let ended = async {
        loop {
            match program.child.try_wait().unwrap() {
                Some(status) => return status,
                None => sleep(Duration::from_millis(10)).await,
            }
        }
    };
    assert_eq!(timeout(PATIENCE, ended).await.unwrap().code(), Some(0));
}
