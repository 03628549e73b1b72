//! An HTTP server in the hands of a test: it sees every request, and answers as it likes, when it
//! likes. One request to a connection.

use std::collections::VecDeque;

use bowline::client::{Client, ClientBuilder, OpenError};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::fixture::soon;
use super::wire::initialized;

/// A server. Requests wait until the test looks at them, in any order it likes.
pub(crate) struct Web {
    pub(crate) origin: String,
    requests: mpsc::UnboundedReceiver<Request>,
    waiting: VecDeque<Request>,
    accepting: JoinHandle<()>,
}

impl Drop for Web {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A request that waits for its answer. Dropped, it gets none.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    /// The message; null if there is none.
    pub(crate) body: Value,
    stream: TcpStream,
}

impl Web {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::unbounded_channel();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass_on(stream, sender.clone()));
            }
        });
        Self { origin, requests, waiting: VecDeque::new(), accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    /// Connects a client to it, in the background.
    pub(crate) fn connecting(
        &self,
        builder: ClientBuilder,
    ) -> JoinHandle<Result<Client, OpenError>> {
        let url = self.url();
        tokio::spawn(async move { builder.connect(url).await })
    }

    /// The next request that is so. Waits for it.
    pub(crate) async fn find(&mut self, what: &str, is_it: impl Fn(&Request) -> bool) -> Request {
        if let Some(place) = self.waiting.iter().position(&is_it) {
            return self.waiting.remove(place).unwrap();
        }
        let found = async {
            loop {
                let request = self.requests.recv().await.unwrap();
                if is_it(&request) {
                    return request;
                }
                self.waiting.push_back(request);
            }
        };
        soon(what, found).await
    }

    /// The next message with this method of the protocol.
    pub(crate) async fn asked(&mut self, method: &str) -> Request {
        self.find(method, |it| it.body["method"] == method).await
    }

    /// The next request with this method of HTTP.
    pub(crate) async fn http(&mut self, method: &str) -> Request {
        self.find(method, |it| it.method == method).await
    }

    /// How many requests so far have come and not been looked at.
    pub(crate) fn unseen(&mut self) -> Vec<String> {
        while let Ok(request) = self.requests.try_recv() {
            self.waiting.push_back(request);
        }
        let name = |it: &Request| it.body["method"].as_str().unwrap_or(&it.method).to_owned();
        self.waiting.iter().map(name).collect()
    }

    /// The handshake of the legacy era, with a session.
    pub(crate) async fn shake(&mut self, session: &str) {
        let hello = self.asked("initialize").await;
        assert_eq!(hello.header("mcp-session-id"), None);
        let headers = format!("mcp-session-id: {session}\r\n");
        let result = json!({ "jsonrpc": "2.0", "id": hello.body["id"], "result": initialized() });
        hello.respond(200, "application/json", &headers, &result.to_string()).await;
        let done = self.asked("notifications/initialized").await;
        assert_eq!(done.header("mcp-session-id"), Some(session));
        done.status(202).await;
    }

    /// A client of the legacy era with a session, and its GET if it is wanted.
    pub(crate) async fn legacy(&mut self, builder: ClientBuilder) -> (Client, Request) {
        let client = self.connecting(builder);
        self.shake("one").await;
        let listening = self.http("GET").await;
        assert_eq!(listening.header("mcp-session-id"), Some("one"));
        (soon("a connection", client).await.unwrap().unwrap(), listening)
    }

    /// A client of the modern era.
    pub(crate) async fn modern(&mut self, builder: ClientBuilder) -> Client {
        let client = self.connecting(builder);
        let probe = self.asked("server/discover").await;
        probe.answer(super::wire::discovered()).await;
        soon("a connection", client).await.unwrap().unwrap()
    }
}

async fn pass_on(stream: TcpStream, sender: mpsc::UnboundedSender<Request>) {
    if let Some(request) = read(stream).await {
        // The test may be over.
        let _ = sender.send(request);
    }
}

/// Reads one request. `None` when the client goes away before it is whole.
pub(crate) async fn read(mut stream: TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ').map(str::to_owned);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Some(Request { method: first.next()?, path: first.next()?, headers, body, stream })
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// A whole answer.
    pub(crate) async fn respond(mut self, status: u16, kind: &str, headers: &str, body: &str) {
        let text = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
             connection: close\r\n{headers}\r\n{body}",
            body.len()
        );
        self.send(text.as_bytes()).await;
    }

    /// An answer without a body.
    pub(crate) async fn status(self, status: u16) {
        self.respond(status, "text/plain", "", "").await;
    }

    /// A result.
    pub(crate) async fn answer(self, result: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result });
        self.respond(200, "application/json", "", &message.to_string()).await;
    }

    /// An error of the protocol, under a status.
    pub(crate) async fn refuse(self, status: u16, code: i64) {
        let error = json!({ "code": code, "message": "no" });
        let message = json!({ "jsonrpc": "2.0", "id": self.body["id"], "error": error });
        self.respond(status, "application/json", "", &message.to_string()).await;
    }

    /// Begins an answer whose end is the end of the connection.
    pub(crate) async fn begin(mut self, status: u16, kind: &str, headers: &str) -> Self {
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\n{headers}\r\n"
        );
        self.send(head.as_bytes()).await;
        self
    }

    /// Begins a stream of events.
    pub(crate) async fn events(self) -> Self {
        self.begin(200, "text/event-stream", "").await
    }

    /// Sends an event with a message.
    pub(crate) async fn event(&mut self, fields: &str, message: &Value) {
        self.send(format!("{fields}data: {message}\n\n").as_bytes()).await;
    }

    /// Sends the answer as an event.
    pub(crate) async fn answer_event(&mut self, id: &Value, result: Value) {
        self.event("", &json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
    }

    /// Sends bytes, as far as the client takes them. Says whether it did.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// The client has closed the connection, or does so soon.
    pub(crate) async fn closed(mut self) {
        soon("the end of a connection", self.gone()).await;
    }

    /// Waits until the client has closed the connection.
    pub(crate) async fn gone(&mut self) {
        let mut rest = [0; 64];
        while let Ok(1..) = self.stream.read(&mut rest).await {}
    }
}
