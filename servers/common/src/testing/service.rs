//! A service on loopback that answers as a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// A request that the service got.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The method and the path, as in `GET /v1/speakers?x=1`.
    pub what: String,
    /// The body.
    pub body: String,
}

/// What it answers.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
    /// Where to go instead.
    pub location: Option<String>,
}

impl Answer {
    /// JSON.
    pub fn json(body: &Value) -> Self {
        Self::bytes(body.to_string())
    }

    /// Bytes.
    pub fn bytes(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, body: body.into(), location: None }
    }

    /// An error.
    pub fn error(status: u16, body: &str) -> Self {
        Self { status, ..Self::bytes(body) }
    }

    /// Sends on to another address.
    pub fn redirect(location: impl Into<String>) -> Self {
        Self { location: Some(location.into()), ..Self::error(302, "") }
    }
}

/// A service on loopback, one connection to a request. It ends with the process.
#[derive(Debug)]
pub struct Service {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Service {
    /// Starts it.
    pub fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                // A client that goes away early is no failure of the service.
                thread::spawn(move || serve(stream, &log, answer.as_ref()).ok());
            }
        });
        Self { address, asked }
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("nobody panics with it").clone()
    }
}

fn serve(
    stream: TcpStream,
    log: &Mutex<Vec<Asked>>,
    answer: &(dyn Fn(&Asked) -> Answer + Send + Sync),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let what = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let asked = Asked { what, body: String::from_utf8_lossy(&body).into_owned() };
    log.lock().expect("nobody panics with it").push(asked.clone());
    let Answer { status, body, location } = answer(&asked);
    let location = location.map(|it| format!("location: {it}\r\n")).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status} x\r\n{location}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = stream;
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)
}
