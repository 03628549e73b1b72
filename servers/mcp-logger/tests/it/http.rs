//! The program over HTTP: what remote callers may do, and how it exits.

use std::io::{Read, Write};
use std::net::TcpStream;

use bowline_serve::testing::Process;
use serde_json::{Value, json};

use crate::receiver::Datagrams;

/// The program, serving over HTTP.
struct Program {
    process: Process,
    port: u16,
}

impl Program {
    fn start(options: &[&str]) -> Self {
        let arguments = [&["--http", "127.0.0.1:0"], options].concat();
        let mut process = Process::start(env!("CARGO_BIN_EXE_mcp-logger"), &arguments);
        let port = process.http_address().port();
        Self { process, port }
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

#[tokio::test]
async fn remote_callers_need_a_list() {
    let receiver = Datagrams::listen("127.0.0.1:0").await;
    let arguments = json!({ "server": "127.0.0.1", "port": receiver.port(), "message": "hello" });
    let closed = Program::start(&[]);
    let rejected = closed.call("send-syslog", &arguments);
    assert_eq!(rejected["isError"], true);
    let text = rejected["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("sending to 127.0.0.1:") && text.contains(" is not allowed"), "{text}");

    let open = Program::start(&["--allow", "192.0.2.0/24,127.0.0.1:*"]);
    let sent = open.call("send-syslog", &arguments);
    assert_eq!(sent["structuredContent"]["delivery"], "unconfirmed", "{sent}");
    assert!(receiver.next().await.ends_with(b": hello"));
}

#[test]
fn it_exits_on_sigterm() {
    assert_eq!(Program::start(&[]).process.terminate().code, Some(0));
}
