//! Load over HTTP: one call at a time on each of many persistent connections.

use std::net::{Ipv4Addr, SocketAddr};

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::frames::{Calls, INITIALIZE, INITIALIZED, Revision};
use crate::pipe::Until;
use crate::program::PATIENCE;

/// One connection.
pub(crate) struct Connection {
    address: SocketAddr,
    stream: TcpStream,
    out: Vec<u8>,
    read: Vec<u8>,
    /// Headers in addition to those that all requests have.
    headers: String,
    next: u64,
}

impl Connection {
    /// Connects, and opens a session in the legacy era.
    pub(crate) async fn open(address: SocketAddr, revision: Revision) -> Result<Self, String> {
        let stream = connect(address).await?;
        let (out, read, headers) = (Vec::new(), Vec::new(), String::new());
        let mut connection = Self { address, stream, out, read, headers, next: 1 };
        if revision == Revision::Legacy {
            connection.open_session().await?;
        }
        Ok(connection)
    }

    /// Connects from a local address.
    pub(crate) async fn open_from(address: SocketAddr, local: Ipv4Addr) -> Result<Self, String> {
        let said = |error: std::io::Error| error.to_string();
        let socket = TcpSocket::new_v4().map_err(said)?;
        socket.bind((local, 0).into()).map_err(said)?;
        let stream = socket.connect(address).await.map_err(said)?;
        stream.set_nodelay(true).map_err(said)?;
        let (out, read, headers) = (Vec::new(), Vec::new(), String::new());
        Ok(Self { address, stream, out, read, headers, next: 1 })
    }

    /// Adds a line to the headers.
    pub(crate) fn with_header(mut self, line: &str) -> Self {
        self.headers += &format!("{line}\r\n");
        self
    }

    /// Removes the headers that not all requests have.
    pub(crate) fn without_headers(mut self) -> Self {
        self.headers.clear();
        self
    }

    /// Opens another session, which replaces the previous one.
    pub(crate) async fn open_session(&mut self) -> Result<(), String> {
        self.headers.clear();
        let head = self.post(INITIALIZE.as_bytes()).await?.0;
        self.headers = format!("mcp-protocol-version: {}\r\n", Revision::Legacy.name());
        if let Some(session) = header(&head, "mcp-session-id") {
            self.headers += &format!("mcp-session-id: {session}\r\n");
        }
        self.post(INITIALIZED.as_bytes()).await.map(drop)
    }

    /// Adds the headers of the modern era.
    pub(crate) fn with_outline(mut self, method: &str, name: Option<&str>) -> Self {
        let revision = Revision::Modern.name();
        self.headers = format!("mcp-protocol-version: {revision}\r\nmcp-method: {method}\r\n");
        if let Some(name) = name {
            self.headers += &format!("mcp-name: {name}\r\n");
        }
        self
    }

    /// Sends a message, and returns the head and the whole body of the response.
    pub(crate) async fn post(&mut self, body: &[u8]) -> Result<(String, &[u8]), String> {
        self.send(body).await?;
        let (head, start) = self.head().await?;
        let status = head.split(' ').nth(1).unwrap_or_default();
        if !status.starts_with('2') {
            return Err(format!("HTTP {status}: {}", String::from_utf8_lossy(&self.read[start..])));
        }
        let is_chunked = header(&head, "transfer-encoding").is_some();
        let length = header(&head, "content-length").and_then(|length| length.parse().ok());
        let end = start + length.unwrap_or(0_usize);
        loop {
            let is_whole = if is_chunked {
                // The JSON has no raw line breaks, so this can only be the end of the last chunk.
                self.read.ends_with(b"\r\n0\r\n\r\n")
            } else {
                self.read.len() >= end
            };
            if is_whole {
                return Ok((head, &self.read[start..]));
            }
            self.more().await?;
        }
    }

    /// Sends a message that opens a stream, and waits for its first event.
    pub(crate) async fn listen(&mut self, body: &[u8]) -> Result<(), String> {
        self.send(body).await?;
        let (head, start) = self.head().await?;
        if !head.starts_with("HTTP/1.1 200") {
            return Err(format!("no stream: {head}"));
        }
        while memmem::find(&self.read[start..], b"data:").is_none() {
            self.more().await?;
        }
        self.read = Vec::new();
        self.out = Vec::new();
        Ok(())
    }

    async fn send(&mut self, body: &[u8]) -> Result<(), String> {
        self.out.clear();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n{}\r\n",
            body.len(),
            self.headers
        );
        self.out.extend_from_slice(head.as_bytes());
        self.out.extend_from_slice(body);
        self.read.clear();
        self.stream.write_all(&self.out).await.map_err(|error| format!("writing: {error}"))
    }

    async fn head(&mut self) -> Result<(String, usize), String> {
        loop {
            if let Some(end) = memmem::find(&self.read, b"\r\n\r\n") {
                return Ok((String::from_utf8_lossy(&self.read[..end]).into_owned(), end + 4));
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Result<(), String> {
        let read = timeout(PATIENCE, self.stream.read_buf(&mut self.read)).await;
        match read.map_err(|_| "no answer".to_owned())? {
            Ok(0) => Err("the server closed the connection".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(format!("reading: {error}")),
        }
    }

    async fn run(mut self, calls: Calls, until: Until) -> Result<(Self, u64), String> {
        let mut answered = 0;
        let mut body = Vec::new();
        while !until.is_over(answered) {
            let id = self.next;
            self.next += 1;
            body.clear();
            calls.write(&mut body, id);
            // A server may close an idle connection; among thousands that are opened one after
            // another, the first ones are.
            if self.post(&body).await.is_err() {
                self.stream = connect(self.address).await?;
                self.post(&body).await?;
            }
            let answer = &self.read;
            if calls.answered(answer)? != id {
                return Err(format!("the answer to {id} has another id"));
            }
            answered += 1;
        }
        Ok((self, answered))
    }
}

async fn connect(address: SocketAddr) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    Ok(stream)
}

/// The value of a header.
fn header(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut values =
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    values.next().map(|value| value.trim().to_owned())
}

/// Many connections to one server.
pub(crate) struct Connections(Vec<Connection>);

impl Connections {
    pub(crate) async fn open(
        address: SocketAddr,
        calls: &Calls,
        count: usize,
    ) -> Result<Self, String> {
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            let connection = Connection::open(address, calls.revision).await?;
            all.push(match calls.revision {
                Revision::Legacy => connection,
                Revision::Modern => connection.with_outline("tools/call", Some(&calls.tool)),
            });
        }
        Ok(Self(all))
    }

    /// Makes calls on all of them, waits for all answers, and returns how many there were; a number
    /// of calls is per connection.
    pub(crate) async fn run(&mut self, calls: &Calls, until: Until) -> Result<u64, String> {
        let mut running = JoinSet::new();
        for (number, connection) in self.0.drain(..).enumerate() {
            running.spawn(connection.run(calls.of_client(number), until));
        }
        let mut answered = 0;
        while let Some(done) = running.join_next().await {
            let (connection, count) = done.map_err(|error| error.to_string())??;
            answered += count;
            self.0.push(connection);
        }
        Ok(answered)
    }
}
