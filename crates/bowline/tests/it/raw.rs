//! A client that sends arbitrary lines and sees every line of the server.

use std::time::Duration;

use bowline::{Revision, ServeError, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

/// A guard against hanging; nothing else depends on time.
const GUARD: Duration = Duration::from_secs(120);

pub(crate) struct Raw {
    pub(crate) reader: BufReader<ReadHalf<DuplexStream>>,
    pub(crate) writer: WriteHalf<DuplexStream>,
    server: JoinHandle<Result<(), ServeError>>,
}

impl Raw {
    pub(crate) fn start(server: Server) -> Self {
        Self::with_pipe(server, 64 << 10)
    }

    /// Starts with a pipe of this capacity.
    pub(crate) fn with_pipe(server: Server, size: usize) -> Self {
        let (ours, theirs) = tokio::io::duplex(size);
        let (reader, writer) = tokio::io::split(ours);
        let server = tokio::spawn(server.serve(theirs));
        Self { reader: BufReader::new(reader), writer, server }
    }

    /// Starts with the handshake of a legacy revision.
    pub(crate) async fn session(server: Server, revision: Revision) -> Self {
        let mut raw = Self::start(server);
        let answer = raw.ask(&initialize(revision.as_str())).await;
        assert_eq!(answer["result"]["protocolVersion"], revision.as_str(), "{answer}");
        raw.send(&notification("notifications/initialized", json!({}))).await;
        raw
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        tokio::time::timeout(GUARD, self.writer.write_all(bytes)).await.unwrap().unwrap();
    }

    /// The next message; `None` at the end.
    pub(crate) async fn next_or_end(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = tokio::time::timeout(GUARD, self.reader.read_line(&mut line)).await;
        (read.expect("the server says nothing").unwrap() > 0)
            .then(|| serde_json::from_str(&line).expect("a whole line"))
    }

    pub(crate) async fn next(&mut self) -> Value {
        self.next_or_end().await.expect("the server goes on")
    }

    /// Sends a request and returns the next message, which should be its answer.
    pub(crate) async fn ask(&mut self, request: &Value) -> Value {
        self.send(request).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], request["id"], "{answer}");
        answer
    }

    /// Everything until the answer to this id, which is the last.
    pub(crate) async fn until(&mut self, id: Value) -> Vec<Value> {
        let mut messages = vec![self.next().await];
        while messages.last().and_then(|last| last.get("id")) != Some(&id) {
            messages.push(self.next().await);
        }
        messages
    }

    /// Closes the client's side, and returns what the server sent before it ended.
    pub(crate) async fn close(mut self) -> Vec<Value> {
        self.writer.shutdown().await.unwrap();
        let mut rest = Vec::new();
        while let Some(message) = self.next_or_end().await {
            rest.push(message);
        }
        tokio::time::timeout(GUARD, self.server).await.unwrap().unwrap().unwrap();
        rest
    }
}

pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

pub(crate) fn cancel(id: impl Into<Value>) -> Value {
    notification("notifications/cancelled", json!({ "requestId": id.into() }))
}

pub(crate) fn initialize(version: &str) -> Value {
    let capabilities = json!({ "elicitation": {}, "roots": {}, "sampling": {} });
    let info = json!({ "name": "raw", "version": "1.0.0" });
    let params =
        json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": info });
    request("hello", "initialize", params)
}

pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

/// The same request in the modern era, from a client that can be asked anything.
pub(crate) fn modern(mut request: Value) -> Value {
    let meta = &mut request["params"]["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "raw", "version": "1.0.0" });
    meta["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "elicitation": { "form": {} }, "roots": {}, "sampling": {} });
    request
}

pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

pub(crate) fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}
