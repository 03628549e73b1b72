//! An HTTP service on loopback that replies as a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::{io, thread};

use serde_json::Value;

/// A request that the service received.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The method and path, as in `GET /v1/speakers?x=1`.
    pub what: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Asked {
    /// Reads a whole request. Closing the connection with unread bytes would discard the reply.
    fn read(stream: &TcpStream) -> io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let what = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
        let mut headers = Vec::new();
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut asked = Self { what, headers, body: String::new() };
        let length = asked.header("content-length").and_then(|it| it.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body)?;
        asked.body = String::from_utf8_lossy(&body).into_owned();
        Ok(asked)
    }

    /// The method.
    pub fn method(&self) -> &str {
        self.what.split(' ').next().unwrap_or_default()
    }

    /// The path, and the query if there is one.
    pub fn path(&self) -> &str {
        self.what.split(' ').nth(1).unwrap_or_default()
    }

    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The URL of the service, as the client sees it.
    pub fn base(&self) -> String {
        format!("http://{}", self.header("host").unwrap_or_default())
    }
}

/// A reply of the service.
#[derive(Debug, Clone)]
pub struct HttpReply {
    /// The status code.
    pub status: u16,
    /// The headers, except those that every reply has.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpReply {
    /// A reply with JSON.
    pub fn json(body: &Value) -> Self {
        Self::bytes(body.to_string())
    }

    /// A reply with bytes.
    pub fn bytes(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, headers: Vec::new(), body: body.into() }
    }

    /// A reply with an error status.
    pub fn error(status: u16, body: &str) -> Self {
        Self { status, ..Self::bytes(body) }
    }

    /// A redirect to another URL.
    pub fn redirect(location: impl Into<String>) -> Self {
        Self::error(302, "").with_header("location", location)
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    fn write(&self, mut stream: &TcpStream) -> io::Result<()> {
        let Self { status, headers, body } = self;
        let headers = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let headers = headers.collect::<String>();
        let head = format!(
            "HTTP/1.1 {status} x\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)
    }
}

/// A service on loopback, with one connection per request. It runs until the process exits.
#[derive(Debug)]
pub struct Service {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Service {
    /// Starts it.
    pub fn start(answer: impl Fn(&Asked) -> HttpReply + Send + Sync + 'static) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let address = answer_with(move |asked, stream| {
            log.lock().expect("the lock is not poisoned").push(asked.clone());
            answer(asked).write(stream)
        });
        Self { address, asked }
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests it has received so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("the lock is not poisoned").clone()
    }
}

/// Reads a request from each connection on loopback, and lets a test write any reply, or none. Runs
/// until the process exits.
pub fn answer_with(
    answer: impl Fn(&Asked, &TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            // A client that disconnects early is not an error.
            thread::spawn(move || answer(&Asked::read(&stream)?, &stream));
        }
    });
    address
}
