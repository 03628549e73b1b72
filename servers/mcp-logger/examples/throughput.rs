//! Measures how many messages per second go out over UDP, and how that compares with logger(1).
//!
//! `cargo build --release -p bowline-mcp-logger --bin mcp-logger` first, then
//! `cargo run --release -p bowline-mcp-logger --example throughput [MESSAGES]`.

#![expect(clippy::print_stdout, reason = "a benchmark prints figures")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::error::Error;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use serde_json::json;

type Outcome = Result<(), Box<dyn Error>>;

const TEXT: &str = "Deployment failed due to timeout, instance i-0123456789 will be replaced";

/// A method of sending, and how many messages to send with it.
struct Method {
    name: &'static str,
    messages: usize,
    run: fn(&Bench, usize) -> Outcome,
}

struct Bench {
    program: PathBuf,
    port: u16,
    arrived: Arc<AtomicU64>,
    lines: PathBuf,
}

fn main() -> Outcome {
    let messages = env::args().nth(1).map_or(Ok(50_000), |count| count.parse())?;
    let bench = Bench::start(messages)?;
    println!("{messages} messages of {} bytes of text to 127.0.0.1:{}\n", TEXT.len(), bench.port);
    println!("{:58} {:>9} {:>10} {:>8}", "", "messages", "per second", "arrived");
    let methods = [
        Method { name: "send-syslog, calls written without waiting", messages, run: piped },
        Method { name: "send-syslog, each call after the answer", messages, run: one_by_one },
        Method { name: "send-syslog-batch, 1000 per call", messages, run: batches },
        Method { name: "mcp-logger send, lines from a file", messages, run: command },
        Method { name: "logger(1) --udp, lines from a file", messages, run: logger },
        Method {
            name: "logger(1) --udp, one process per message",
            messages: messages / 50,
            run: loggers,
        },
    ];
    for method in methods {
        bench.arrived.store(0, Ordering::Relaxed);
        let start = Instant::now();
        (method.run)(&bench, method.messages)?;
        let seconds = start.elapsed().as_secs_f64();
        // Leaves time for messages in flight to arrive.
        thread::sleep(Duration::from_millis(300));
        let arrived = bench.arrived.load(Ordering::Relaxed);
        let per_second = f64::from(u32::try_from(method.messages)?) / seconds;
        println!("{:58} {:>9} {per_second:>10.0} {arrived:>8}", method.name, method.messages);
    }
    fs::remove_file(&bench.lines)?;
    Ok(())
}

impl Bench {
    fn start(messages: usize) -> Result<Self, Box<dyn Error>> {
        // Examples are built into a folder next to the program.
        let folder = env::current_exe()?.ancestors().nth(2).map(Path::to_owned);
        let program = folder.unwrap_or_default().join("mcp-logger");
        if !program.is_file() {
            return Err(format!("{} does not exist; build it first", program.display()).into());
        }
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let port = socket.local_addr()?.port();
        let arrived = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&arrived);
        thread::spawn(move || {
            let mut buffer = [0; 2048];
            while socket.recv(&mut buffer).is_ok() {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        let lines = env::temp_dir().join(format!("throughput-{}", std::process::id()));
        fs::write(&lines, format!("{TEXT}\n").repeat(messages))?;
        Ok(Self { program, port, arrived, lines })
    }

    /// The server, as a client starts it.
    fn server(&self) -> std::io::Result<Child> {
        Command::new(&self.program)
            .args(["--rate", "0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
    }

    fn request(&self, id: usize) -> String {
        let arguments = json!({
            "server": "127.0.0.1", "port": self.port, "facility": "local0", "severity": "error",
            "message": TEXT,
        });
        let params = json!({ "name": "send-syslog", "arguments": arguments });
        frame(id, "tools/call", &params)
    }

    fn logger(&self) -> Command {
        let mut logger = Command::new("logger");
        logger.args(["--server", "127.0.0.1", "--udp", "--rfc3164", "--port"]);
        logger.arg(self.port.to_string()).args(["-p", "local0.err", "-t", "mcp-logger"]);
        logger
    }
}

fn frame(id: usize, method: &str, params: &serde_json::Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string() + "\n"
}

fn handshake() -> String {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "throughput", "version": "1" },
    });
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    frame(0, "initialize", &params) + &initialized.to_string() + "\n"
}

/// Writes all requests while reading the responses.
fn exchange(bench: &Bench, requests: Vec<String>) -> Outcome {
    let mut server = bench.server()?;
    let mut input = BufWriter::new(server.stdin.take().ok_or("no input")?);
    let output = BufReader::new(server.stdout.take().ok_or("no output")?);
    let expected = requests.len() + 1;
    let writer = thread::spawn(move || -> std::io::Result<()> {
        input.write_all(handshake().as_bytes())?;
        for request in requests {
            input.write_all(request.as_bytes())?;
        }
        input.flush()
    });
    let mut answers = 0;
    for line in output.lines() {
        let line = line?;
        if line.contains("\"isError\":true") || line.contains("\"error\":{") {
            return Err(line.into());
        }
        answers += usize::from(line.contains("\"id\":"));
        if answers == expected {
            break;
        }
    }
    writer.join().map_err(|_| "the writer panicked")??;
    server.wait()?;
    Ok(())
}

fn piped(bench: &Bench, messages: usize) -> Outcome {
    exchange(bench, (1..=messages).map(|id| bench.request(id)).collect())
}

fn batches(bench: &Bench, messages: usize) -> Outcome {
    let entries = vec![json!({ "message": TEXT }); 1_000.min(messages)];
    let arguments = json!({
        "server": "127.0.0.1", "port": bench.port, "facility": "local0", "severity": "error",
        "messages": entries,
    });
    let params = json!({ "name": "send-syslog-batch", "arguments": arguments });
    let batch = |id| frame(id, "tools/call", &params);
    exchange(bench, (1..=messages / entries.len()).map(batch).collect())
}

fn one_by_one(bench: &Bench, messages: usize) -> Outcome {
    let mut server = bench.server()?;
    let mut input = server.stdin.take().ok_or("no input")?;
    let mut output = BufReader::new(server.stdout.take().ok_or("no output")?);
    let mut line = String::new();
    input.write_all(handshake().as_bytes())?;
    output.read_line(&mut line)?;
    for id in 1..=messages {
        input.write_all(bench.request(id).as_bytes())?;
        line.clear();
        output.read_line(&mut line)?;
    }
    drop(input);
    server.wait()?;
    Ok(())
}

fn command(bench: &Bench, _: usize) -> Outcome {
    let mut send = Command::new(&bench.program);
    send.args(["send", "127.0.0.1", "-P", &bench.port.to_string(), "-p", "local0.err", "-f"]);
    succeed(send.arg(&bench.lines))
}

fn logger(bench: &Bench, _: usize) -> Outcome {
    succeed(bench.logger().arg("-f").arg(&bench.lines))
}

fn loggers(bench: &Bench, messages: usize) -> Outcome {
    for _ in 0..messages {
        succeed(bench.logger().arg(TEXT))?;
    }
    Ok(())
}

fn succeed(command: &mut Command) -> Outcome {
    let status = command.stdin(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}
