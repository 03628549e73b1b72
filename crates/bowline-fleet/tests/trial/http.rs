//! Requests as bytes: no client of ours hides what a node says.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// How long anything may take, on a busy machine, while a node is stopped.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A response whose body is read line by line, without chunks.
pub struct Response {
    pub status: u16,
    pub session: Option<String>,
    body: BufReader<TcpStream>,
    is_chunked: bool,
    left: Option<usize>,
}

/// Sends a request; `None` if there is no response.
pub async fn send(port: u16, head: &str, body: &str) -> Option<Response> {
    tokio::time::timeout(PATIENCE, try_send(port, head, body)).await.ok()?.ok()
}

async fn try_send(port: u16, head: &str, body: &str) -> std::io::Result<Response> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let text = format!(
        "{head}host: 127.0.0.1:{port}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).await?;
    let mut body = BufReader::new(stream);
    let mut line = String::new();
    body.read_line(&mut line).await?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other("no status"))?;
    let mut response = Response { status, session: None, body, is_chunked: false, left: None };
    loop {
        let mut line = String::new();
        response.body.read_line(&mut line).await?;
        let line = line.trim_end();
        if line.is_empty() {
            return Ok(response);
        }
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        match &*name.to_ascii_lowercase() {
            "mcp-session-id" => response.session = Some(value.to_owned()),
            "content-length" => response.left = value.parse().ok(),
            "transfer-encoding" => response.is_chunked = true,
            _ => {}
        }
    }
}

impl Response {
    /// The whole body; `None` if it breaks off.
    pub async fn text(mut self) -> Option<String> {
        let read = async {
            let mut whole = Vec::new();
            if let Some(left) = self.left {
                whole.resize(left, 0);
                self.body.read_exact(&mut whole).await.ok()?;
            } else {
                while let Some(chunk) = self.chunk().await {
                    whole.extend(chunk);
                }
            }
            String::from_utf8(whole).ok()
        };
        tokio::time::timeout(PATIENCE, read).await.ok()?
    }

    /// The next piece of a stream.
    pub async fn chunk(&mut self) -> Option<Vec<u8>> {
        if !self.is_chunked {
            let mut some = vec![0; 4_096];
            let length = self.body.read(&mut some).await.ok().filter(|length| *length > 0)?;
            some.truncate(length);
            return Some(some);
        }
        let mut line = String::new();
        self.body.read_line(&mut line).await.ok()?;
        let length = usize::from_str_radix(line.trim(), 16).ok().filter(|length| *length > 0)?;
        let mut chunk = vec![0; length + 2];
        self.body.read_exact(&mut chunk).await.ok()?;
        chunk.truncate(length);
        Some(chunk)
    }

    /// The next message of an event stream.
    pub async fn event(&mut self, rest: &mut String) -> Option<Value> {
        loop {
            if let Some(end) = rest.find("\n\n") {
                let event: String = rest.drain(..end + 2).collect();
                let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                if let Some(message) = data.and_then(|data| serde_json::from_str(data).ok()) {
                    return Some(message);
                }
                continue;
            }
            rest.push_str(&String::from_utf8(self.chunk().await?).ok()?);
        }
    }
}

pub async fn get(port: u16, path: &str) -> Option<u16> {
    Some(send(port, &format!("GET {path} HTTP/1.1\r\n"), "").await?.status)
}

pub const ACCEPT: &str =
    "content-type: application/json\r\naccept: application/json, text/event-stream\r\n";

/// A request of 2026-07-28.
pub async fn modern(port: u16, user: &str, method: &str, params: Value) -> Option<Response> {
    let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    modern_with(port, user, method, params, tasks).await
}

/// A call of a client that can be asked.
pub async fn asking(port: u16, user: &str, params: Value) -> Option<Response> {
    modern_with(port, user, "tools/call", params, json!({ "elicitation": { "form": {} } })).await
}

async fn modern_with(
    port: u16,
    user: &str,
    method: &str,
    mut params: Value,
    capabilities: Value,
) -> Option<Response> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "trial", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let name = params.get("name").or_else(|| params.get("taskId")).and_then(Value::as_str);
    let name = name.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
    let head = format!(
        "POST /mcp HTTP/1.1\r\n{ACCEPT}x-user: {user}\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: {method}\r\n{name}"
    );
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    send(port, &head, &body.to_string()).await
}

/// A message of a session of 2025-11-25.
pub async fn legacy(port: u16, user: &str, session: Option<&str>, body: Value) -> Option<Response> {
    let session = session.map(|id| format!("mcp-session-id: {id}\r\n")).unwrap_or_default();
    let head = format!(
        "POST /mcp HTTP/1.1\r\n{ACCEPT}x-user: {user}\r\nmcp-protocol-version: 2025-11-25\r\n{session}"
    );
    send(port, &head, &body.to_string()).await
}

pub async fn delete(port: u16, user: &str, session: &str) -> Option<Response> {
    let head = format!("DELETE /mcp HTTP/1.1\r\nx-user: {user}\r\nmcp-session-id: {session}\r\n");
    send(port, &head, "").await
}

/// The stream of a session that belongs to no request, from its start or after an event.
pub async fn listen(port: u16, user: &str, session: &str, after: Option<&str>) -> Option<Response> {
    let after = after.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
    let head = format!(
        "GET /mcp HTTP/1.1\r\naccept: text/event-stream\r\nx-user: {user}\r\n\
         mcp-session-id: {session}\r\n{after}"
    );
    send(port, &head, "").await
}
