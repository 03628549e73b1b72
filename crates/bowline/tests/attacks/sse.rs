//! HTTP+SSE: one stream down, POSTs up.

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::server::{MIB, Server, handshake, post_to, row, scaled, soon};

/// An open stream, and the path of its endpoint.
struct Stream {
    reader: BufReader<TcpStream>,
    endpoint: String,
    number: usize,
}

impl Stream {
    async fn open(server: &Server, number: usize) -> Self {
        let mut stream = server.connect_narrow(number).await;
        let request = "GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reader = BufReader::with_capacity(512, stream);
        let endpoint = loop {
            let mut line = String::new();
            let read = soon("an endpoint", reader.read_line(&mut line)).await.unwrap();
            assert!(read > 0, "no endpoint");
            if let Some(endpoint) = line.strip_prefix("data: ") {
                break endpoint.trim().to_owned();
            }
        };
        let stream = Self { reader, endpoint, number };
        let answer = server.ask(number, &stream.post(&handshake("2024-11-05", "attacks"))).await;
        assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
        stream
    }

    fn post(&self, body: &str) -> String {
        post_to(&self.endpoint, "", body)
    }

    /// Sends a call whose arguments have this length. Whether it is taken does not matter.
    async fn call(
        &self,
        server: &Server,
        id: usize,
        milliseconds: u64,
        length: usize,
    ) -> TcpStream {
        let arguments = json!({ "ms": milliseconds, "message": "x".repeat(length) });
        let params = json!({ "name": "slow", "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        let mut sent = server.connect(self.number).await;
        let call = self.post(&call.to_string());
        // It is not read to its end while the memory is spent.
        let half = std::time::Duration::from_millis(500);
        let _ = tokio::time::timeout(half, sent.write_all(call.as_bytes())).await;
        sent
    }
}

#[tokio::test]
async fn arguments_over_sse() {
    row(40, "arguments over HTTP+SSE", async |server| {
        let mut held = Vec::new();
        for number in 0..scaled(16, 64) {
            let stream = Stream::open(server, number).await;
            for id in 2..scaled(14, 66) {
                held.push(stream.call(server, id, 600_000, MIB).await);
            }
            held.push(stream.reader.into_inner());
        }
        held
    })
    .await;
}
