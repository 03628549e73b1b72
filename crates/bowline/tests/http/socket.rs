//! A server on a loopback socket, and clients that write raw bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bowline::http::{Http, HttpLimits};
use bowline::{Registry, ServeError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::client::{Ask, call, modern, soon};
use super::world::{Seen, identified, server};

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) registry: Registry,
    pub(crate) seen: Arc<Seen>,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<Result<(), ServeError>>,
}

impl Running {
    pub(crate) async fn start(change: impl FnOnce(Http) -> Http) -> Self {
        let seen = Arc::new(Seen::default());
        let server = server(&seen);
        let registry = server.registry();
        let http = change(identified(server.http()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(http.serve_until(listener, async {
            // Dropping the sender stops it, too.
            let _ = stopped.await;
        }));
        Self { address, registry, seen, stop: Some(stop), served }
    }

    pub(crate) async fn with_limits(limits: HttpLimits) -> Self {
        Self::start(|http| http.limits(limits)).await
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        soon("a connection", TcpStream::connect(self.address)).await.unwrap()
    }

    /// Sends a request on a new connection and reads until it closes.
    pub(crate) async fn exchange(&self, ask: &Ask) -> String {
        let mut stream = self.connect().await;
        let ask = ask.clone().with("connection", "close");
        stream.write_all(wire(&ask).as_bytes()).await.unwrap();
        read_to_end(&mut stream).await
    }

    /// Checks that a regular client is answered.
    pub(crate) async fn is_alive(&self) {
        let answer = self.exchange(&call("alive", "who")).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("nobody"), "{answer}");
    }

    pub(crate) fn tell_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Tells it to stop, and waits until it rejects new requests. Returns such a rejection.
    pub(crate) async fn begin_to_stop(&mut self) -> String {
        self.tell_to_stop();
        let rejection = async {
            loop {
                let answer = self.exchange(&call("late", "who")).await;
                if answer.starts_with("HTTP/1.1 503") {
                    return answer;
                }
                // It was here before the server noticed.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon("a rejection", rejection).await
    }

    /// Stops it, and checks that it ends cleanly.
    pub(crate) async fn end(mut self) {
        self.tell_to_stop();
        soon("the end", self.served).await.unwrap().unwrap();
    }
}

/// A request as HTTP/1.1 writes it.
pub(crate) fn wire(ask: &Ask) -> String {
    let mut text = format!("{} {} HTTP/1.1\r\n", ask.method, ask.path);
    for (name, value) in &ask.headers {
        text.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
    }
    if !ask.body.is_empty() {
        text.push_str(&format!("content-length: {}\r\n", ask.body.len()));
    }
    text.push_str("\r\n");
    text.push_str(&ask.body);
    text
}

/// Reads until the connection closes or fails.
pub(crate) async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        match soon("the end of a connection", stream.read(&mut chunk)).await {
            Ok(0) | Err(_) => return String::from_utf8_lossy(&all).into_owned(),
            Ok(read) => all.extend_from_slice(&chunk[..read]),
        }
    }
}

/// Reads until a text has arrived.
pub(crate) async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut all = Vec::new();
    let mut chunk = [0; 4096];
    while !String::from_utf8_lossy(&all).contains(text) {
        let read = soon(text, stream.read(&mut chunk)).await.unwrap();
        assert!(read > 0, "ended before {text}: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&chunk[..read]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

pub(crate) fn listen(filter: serde_json::Value) -> Ask {
    modern(1, "subscriptions/listen", serde_json::json!({ "notifications": filter }))
}

/// Runs the calling test again in a separate process, to measure its memory alone. Returns whether
/// this is that process; otherwise there is nothing left to do.
pub(crate) fn is_alone() -> bool {
    const MARK: &str = "BOWLINE_TEST_ALONE";
    let thread = std::thread::current();
    // Tests that run one after the other run in this process.
    let Some(test) = thread.name().filter(|name| *name != "main") else { return true };
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let ran = std::process::Command::new(program)
        .args([test, "--exact", "--nocapture"])
        .env(MARK, "yes")
        .output();
    let ran = ran.unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    // `cargo xtask faults` collects them.
    let figures = said.lines().filter_map(|line| line.find("figure: ").map(|at| &line[at..]));
    figures.for_each(|figure| println!("{figure}"));
    false
}

/// Bytes of memory that this process uses.
pub(crate) fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.trim().split(' ').next()?.parse::<usize>().ok());
    number.unwrap_or(0) * 1024
}
