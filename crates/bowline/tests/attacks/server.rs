//! The server under attack, and what attackers send.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use std::{env, fs};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpSocket, TcpStream};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::Instant;

pub(crate) const MIB: usize = 1 << 20;

/// The peak that is allowed.
const PEAK: usize = 128 * MIB;

/// What may be left of it a minute later.
const LEFT: usize = 48 * MIB;

/// What the server itself holds: without the pages of its program, which are several times as many
/// in a debug build, and which the system takes back as it likes.
const HELD: &str = "RssAnon";
/// Those pages.
const PROGRAM: &str = "RssFile";

const MINUTE: Duration = Duration::from_secs(60);

/// A guard against hanging; nothing else depends on time.
const GUARD: Duration = Duration::from_secs(120);

/// How much of an attack to run: a part by default, all with `BOWLINE_FULL=1`.
pub(crate) fn scaled(part: usize, all: usize) -> usize {
    if is_full() { all } else { part }
}

fn is_full() -> bool {
    env::var_os("BOWLINE_FULL").is_some()
}

/// Waits with a guard.
pub(crate) async fn soon<F: Future>(what: &str, work: F) -> F::Output {
    match tokio::time::timeout(GUARD, work).await {
        Ok(output) => output,
        Err(_) => panic!("{what}: nothing came"),
    }
}

/// The process under attack.
struct Process(Child);

impl Process {
    /// Starts it with many tools, so that its lists are long.
    fn start(transport: &[&str]) -> Self {
        Self::spawn(Command::new(program()), transport)
    }

    /// The same with a limit on open files.
    fn with_files(most: u32, transport: &[&str]) -> Self {
        let mut shell = Command::new("sh");
        let script = format!("ulimit -Sn {most} && ulimit -Hn {most} && exec \"$0\" \"$@\"");
        shell.args(["-c", &script]).arg(program());
        Self::spawn(shell, transport)
    }

    fn spawn(mut command: Command, transport: &[&str]) -> Self {
        // This process has the other ends.
        bowline::http::raise_file_limit();
        command.args(transport).args(["--tools", "200"]).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        Self(command.spawn().unwrap())
    }

    fn lines(&mut self) -> Lines<BufReader<ChildStdout>> {
        BufReader::new(self.0.stdout.take().unwrap()).lines()
    }

    /// A number of `/proc/…/status`, in bytes.
    fn memory(&self, name: &str) -> usize {
        let text = fs::read_to_string(format!("/proc/{}/status", self.0.id().unwrap())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let number = line.trim_start_matches(':').trim().split(' ').next().unwrap();
        number.parse::<usize>().unwrap() * 1024
    }

    /// Prints the row of an attack that is over, and checks its figures.
    async fn settle(&self, number: u32, name: &str, idle: usize) {
        let start = Instant::now();
        // Nothing happens at the server meanwhile.
        while self.memory(HELD) >= LEFT && start.elapsed() < MINUTE {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        if is_full() {
            tokio::time::sleep(MINUTE.saturating_sub(start.elapsed())).await;
        }
        let peak = self.memory("VmHWM").saturating_sub(self.memory(PROGRAM));
        let left = self.memory(HELD);
        let [idle, most, rest] = [idle, peak, left].map(|bytes| bytes.div_ceil(MIB));
        println!(
            "figure: {number} | {name}: {idle} MiB idle, {most} at its peak, {rest} left | 128, 48 MiB"
        );
        assert!(peak < PEAK, "{name}: a peak of {most} MiB");
        assert!(left < LEFT, "{name}: {rest} MiB are left");
    }
}

/// A server over HTTP.
pub(crate) struct Server {
    process: Process,
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::of(Process::start(&["http", "0"])).await
    }

    /// One that may have this many files and sockets open.
    async fn with_files(most: u32) -> Self {
        Self::of(Process::with_files(most, &["http", "0"])).await
    }

    async fn of(mut process: Process) -> Self {
        let line = soon("an address", process.lines().next_line()).await.unwrap().unwrap();
        Self { process, address: line.parse().unwrap() }
    }

    /// A connection of one of eight attackers, who have an address each.
    pub(crate) async fn connect(&self, number: usize) -> TcpStream {
        let last = 2 + u8::try_from(number % 8).unwrap();
        self.connect_from(last).await
    }

    /// The same, of an attacker whose system buffers little.
    pub(crate) async fn connect_narrow(&self, number: usize) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4 << 10).unwrap();
        self.connect_by(socket, 2 + u8::try_from(number % 8).unwrap()).await
    }

    async fn connect_from(&self, last: u8) -> TcpStream {
        self.connect_by(TcpSocket::new_v4().unwrap(), last).await
    }

    async fn connect_by(&self, socket: TcpSocket, last: u8) -> TcpStream {
        socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
        soon("a connection", socket.connect(self.address)).await.unwrap()
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn ask(&self, number: usize, request: &str) -> String {
        let mut stream = self.connect(number).await;
        // A refusal may come before everything is written.
        let _ = stream.write_all(request.as_bytes()).await;
        read(&mut stream).await
    }

    /// Checks that others are served, and returns the size of the process.
    pub(crate) async fn is_well(&self) {
        let health = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        for (request, expected) in [(health.to_owned(), "200 OK"), (call("echo"), "still here")] {
            let mut stream = self.connect_from(1).await;
            stream.write_all(request.as_bytes()).await.unwrap();
            let answer = read(&mut stream).await;
            assert!(answer.contains(expected), "{answer}");
        }
    }
}

/// A server on standard input and output.
pub(crate) struct Piped {
    process: Process,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Piped {
    fn start() -> Self {
        let mut process = Process::start(&["stdio"]);
        let output = process.lines();
        Self { input: process.0.stdin.take().unwrap(), output, process }
    }

    /// Writes a line, and reads one.
    pub(crate) async fn ask(&mut self, line: &str) -> String {
        let both = async {
            self.input.write_all(line.as_bytes()).await.unwrap();
            self.input.write_all(b"\n").await.unwrap();
            self.output.next_line().await.unwrap().unwrap()
        };
        soon("an answer", both).await
    }
}

/// Runs one attack on a server with few descriptors.
pub(crate) async fn few_files_row(
    number: u32,
    name: &str,
    most: u32,
    attack: impl AsyncFnOnce(&Server),
) {
    let server = Server::with_files(most).await;
    let idle = server.process.memory("VmRSS");
    attack(&server).await;
    server.process.settle(number, name, idle).await;
}

/// Runs one attack. What it returns is held until the server has been looked at.
pub(crate) async fn row<T>(number: u32, name: &str, attack: impl AsyncFnOnce(&Server) -> T) {
    let server = Server::start().await;
    server.is_well().await;
    let idle = server.process.memory(HELD);
    let held = attack(&server).await;
    server.is_well().await;
    drop(held);
    server.process.settle(number, name, idle).await;
    server.is_well().await;
}

/// The same for a client on standard input and output.
pub(crate) async fn piped_row(number: u32, name: &str, attack: impl AsyncFnOnce(&mut Piped)) {
    let mut server = Piped::start();
    let hello = server.ask(&handshake("2025-03-26", "attacks")).await;
    assert!(hello.contains("2025-03-26"), "{hello}");
    let idle = server.process.memory(HELD);
    attack(&mut server).await;
    server.process.settle(number, name, idle).await;
    let answer = server.ask(r#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#).await;
    assert!(answer.contains("last"), "{answer}");
}

/// Reads until the end, or what came until then.
pub(crate) async fn read(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = soon("an answer", stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// A POST with these headers besides the usual ones, after which the connection closes.
pub(crate) fn post(headers: &str, body: &str) -> String {
    post_to("/mcp", headers, body)
}

/// The same to another path.
pub(crate) fn post_to(path: &str, headers: &str, body: &str) -> String {
    format!("{}connection: close\r\n{headers}\r\n{body}", head_to(path, body.len()))
}

/// The head of a POST without its end.
pub(crate) fn head(length: usize) -> String {
    head_to("/mcp", length)
}

fn head_to(path: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {length}\r\n"
    )
}

/// A modern call of a tool that says `still here`.
pub(crate) fn call(tool: &str) -> String {
    let arguments = json!({ "message": "still here" });
    modern(&json!(1), "tools/call", json!({ "name": tool, "arguments": arguments }), Some(tool))
}

/// A modern request, whose headers repeat its name.
pub(crate) fn modern(id: &Value, method: &str, mut params: Value, name: Option<&str>) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "attacks", "version": "1.0.0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (key, value) in meta.as_object().unwrap() {
        params["_meta"][key] = value.clone();
    }
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let name = name.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
    let headers = format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}");
    post(&headers, &body.to_string())
}

/// The handshake of a client with this name.
pub(crate) fn initialize(revision: &str, name: &str) -> String {
    post("", &handshake(revision, name))
}

pub(crate) fn handshake(revision: &str, name: &str) -> String {
    let params = json!({
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": { "name": name, "version": "1.0.0" },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()
}

/// Opens a session and returns the headers that name it; `None` if it is refused.
pub(crate) async fn session(server: &Server, number: usize, revision: &str) -> Option<String> {
    let answer = server.ask(number, &initialize(revision, "attacks")).await;
    let id = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: "))?;
    let headers = format!("mcp-session-id: {id}\r\nmcp-protocol-version: {revision}\r\n");
    let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let answer = server.ask(number, &post(&headers, told)).await;
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    Some(headers)
}

/// The path of the example beside this test, unless `BOWLINE_PROBE` names another build of it.
/// Cargo builds examples when it builds all tests.
fn program() -> PathBuf {
    if let Some(path) = env::var_os("BOWLINE_PROBE") {
        return path.into();
    }
    let this = env::current_exe().unwrap();
    let folder = this.parent().and_then(|deps| deps.parent()).unwrap();
    let path = folder.join("examples/probe");
    if !path.exists() {
        let mut build = std::process::Command::new(env!("CARGO"));
        build.args(["build", "--package", "bowline", "--all-features", "--example", "probe"]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success());
    }
    path
}
