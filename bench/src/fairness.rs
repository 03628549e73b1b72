//! Two principals on one server, one of which floods it: what the other one notices.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::document::Section;
use crate::frames::{Calls, INITIALIZE, Revision, listen};
use crate::http::Connection;
use crate::measure::median;
use crate::program::{Line, PORT, Program};
use crate::table::{Table, number, times};
use crate::{Bench, block_on};

/// Where the flood comes from. Everybody else is at 127.0.0.1.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// The pause between two calls of the quiet principal.
const PAUSE: Duration = Duration::from_millis(1);

/// How often quiet and flood alternate within a round.
const TURNS: usize = 4;

/// A way to flood a server.
#[derive(Debug, Clone, Copy)]
enum Flood {
    Connections,
    Sessions,
    Streams,
    Calls,
    SlowCalls,
    Bodies,
    Tokens,
}

impl Flood {
    const ALL: [Self; 7] = [
        Self::Connections,
        Self::Sessions,
        Self::Streams,
        Self::Calls,
        Self::SlowCalls,
        Self::Bodies,
        Self::Tokens,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections, opened and kept",
            Self::Sessions => "`initialize`",
            Self::Streams => "listen streams, opened and kept",
            Self::Calls => "cheap calls",
            Self::SlowCalls => "calls that take a second",
            Self::Bodies => "bodies of 1 MiB",
            Self::Tokens => "junk tokens",
        }
    }

    /// How many tasks flood at a time.
    fn width(self) -> usize {
        match self {
            Self::Connections | Self::Streams | Self::Sessions => 16,
            Self::Calls | Self::Tokens => 64,
            Self::SlowCalls => 500,
            Self::Bodies => 8,
        }
    }
}

pub(crate) fn run(bench: &Bench) -> Result<Section, String> {
    let build = ["build", "--profile", "dist", "-p", "bowline", "--example", "shared"];
    let built = Command::new("cargo").args(build).args(["--features", "http,auth"]).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("cargo build: the example `shared` cannot be built".to_owned());
    }
    let line = Line::new(&["target/dist/examples/shared", PORT]);
    let mut table = Table::new(&[
        "flood",
        "attempts/s",
        "quiet p50, µs",
        "p50 meanwhile, µs",
        "quiet p99, µs",
        "p99 meanwhile, µs",
        "p50 ÷ quiet",
        "p99 ÷ quiet",
    ]);
    let rounds = bench.rounds().max(3);
    let mut seen: Vec<Vec<Round>> = Flood::ALL.map(|_| Vec::new()).into();
    for _ in 0..rounds {
        for (flood, seen) in Flood::ALL.into_iter().zip(&mut seen) {
            // A new server each time: nothing of the last flood is left.
            let round = block_on(measure(&line, flood, bench.span()));
            seen.push(round.map_err(|error| format!("{}: {error}", flood.name()))?);
        }
    }
    for (flood, seen) in Flood::ALL.into_iter().zip(&seen) {
        let middle = |figure: fn(&Round) -> f64| median(seen.iter().map(figure));
        table.row(&[
            flood.name().to_owned(),
            number(middle(|it| it.attempts)),
            number(middle(|it| it.quiet[0])),
            number(middle(|it| it.flooded[0])),
            number(middle(|it| it.quiet[1])),
            number(middle(|it| it.flooded[1])),
            times(middle(|it| it.flooded[0] / it.quiet[0])),
            times(middle(|it| it.flooded[1] / it.quiet[1])),
        ]);
    }
    let text = format!(
        "One principal calls `echo` with 64 bytes on one connection, with a pause of {} ms after \
         each answer, while another one floods the server from another address as fast as it can: \
         with 16 tasks, 64 for cheap calls and junk tokens, 500 for slow calls, 8 for bodies. The \
         flood comes and goes: in a round, quiet and flood alternate {TURNS} times, so that both \
         see the same machine. The flood has a thread of its own with the lowest priority, so that \
         the clients do not compete; the server (`crates/bowline/examples/shared.rs`) has all \
         cores and default limits. Times are those of the first principal's calls. Medians of \
         {rounds} rounds; ratios are computed within a round. The goal is that p99 stays within \
         twice its quiet value.\n\n{}",
        PAUSE.as_millis(),
        table.finish()
    );
    Ok(Section::new(text))
}

/// Times in microseconds: p50 and p99.
struct Round {
    quiet: [f64; 2],
    flooded: [f64; 2],
    /// What the flood tried, per second.
    attempts: f64,
}

async fn measure(line: &Line, flood: Flood, span: Duration) -> Result<Round, String> {
    let (program, address) = Program::listening(line).await?;
    let mut victim = Victim::open(address).await?;
    let (window, settling) = (span / 3, span / 10);
    let (mut quiet, mut flooded, mut attempts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        victim.call_for(settling, &mut Vec::new()).await?;
        victim.call_for(window, &mut quiet).await?;
        let flooding = Flooding::start(address, flood);
        victim.call_for(settling, &mut Vec::new()).await?;
        let (before, start) = (flooding.attempts(), Instant::now());
        victim.call_for(window, &mut flooded).await?;
        attempts.push((flooding.attempts() - before) as f64 / start.elapsed().as_secs_f64());
        flooding.stop();
        // A connection that is idle for long would be closed.
        while !flooding.has_ended() {
            victim.call_for(settling, &mut Vec::new()).await?;
        }
        flooding.end()?;
    }
    program.end().await?;
    Ok(Round {
        quiet: percentiles(quiet),
        flooded: percentiles(flooded),
        attempts: median(attempts),
    })
}

/// p50 and p99.
fn percentiles(mut taken: Vec<f64>) -> [f64; 2] {
    taken.sort_by(f64::total_cmp);
    [50, 99].map(|percent| taken[(taken.len() - 1) * percent / 100])
}

/// The principal that notices.
struct Victim {
    connection: Connection,
    calls: Calls,
    next: u64,
}

impl Victim {
    async fn open(address: SocketAddr) -> Result<Self, String> {
        let connection = Connection::open_from(address, Ipv4Addr::LOCALHOST).await?;
        let connection = connection.with_outline("tools/call", Some("echo"));
        let connection = connection.with_header("authorization: Bearer ada");
        Ok(Self { connection, calls: Calls::new(Revision::Modern, "echo", 64), next: 1 })
    }

    /// Calls for a while, and adds how long each call took, in microseconds.
    async fn call_for(&mut self, span: Duration, taken: &mut Vec<f64>) -> Result<(), String> {
        let (start, mut body) = (Instant::now(), Vec::new());
        while start.elapsed() < span {
            body.clear();
            self.calls.write(&mut body, self.next);
            let asked = Instant::now();
            let (_, answer) = self.connection.post(&body).await?;
            taken.push(asked.elapsed().as_secs_f64() * 1e6);
            if self.calls.answered(answer)? != self.next {
                return Err("an answer has another id".to_owned());
            }
            self.next += 1;
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}

/// A flood in a thread of its own.
struct Flooding {
    is_over: Arc<AtomicBool>,
    attempts: Arc<AtomicU64>,
    thread: std::thread::JoinHandle<Result<(), String>>,
}

impl Flooding {
    fn start(address: SocketAddr, flood: Flood) -> Self {
        let (is_over, attempts) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let flooder = Flooder {
            address,
            flood,
            is_over: Arc::clone(&is_over),
            attempts: Arc::clone(&attempts),
        };
        let thread = std::thread::spawn(move || {
            // If that fails, the clients compete.
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 19);
            block_on(flooder.run())
        });
        Self { is_over, attempts, thread }
    }

    fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// Tells it to end, which takes a while.
    fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    fn end(self) -> Result<(), String> {
        self.thread.join().map_err(|_| "the flood panicked".to_owned())?
    }
}

#[derive(Clone)]
struct Flooder {
    address: SocketAddr,
    flood: Flood,
    is_over: Arc<AtomicBool>,
    attempts: Arc<AtomicU64>,
}

impl Flooder {
    async fn run(self) -> Result<(), String> {
        let mut tasks = JoinSet::new();
        for _ in 0..self.flood.width() {
            let flooder = self.clone();
            tasks.spawn(async move { flooder.repeat().await });
        }
        while !self.is_over.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tasks.shutdown().await;
        Ok(())
    }

    /// Repeats it. What the server refuses or closes is tried again.
    async fn repeat(&self) {
        let mut kept = VecDeque::new();
        let mut used = None;
        loop {
            self.attempts.fetch_add(1, Ordering::Relaxed);
            let connection = match used.take() {
                Some(connection) => Ok(connection),
                None => Connection::open_from(self.address, ELSEWHERE).await,
            };
            let Ok(connection) = connection else {
                tokio::task::yield_now().await;
                continue;
            };
            match self.flood {
                Flood::Connections => kept.push_back(connection),
                Flood::Streams => kept.extend(self.listen(connection).await),
                _ => used = self.post(connection).await,
            }
            // More than one party may have, all tasks together.
            if kept.len() > 300 {
                kept.pop_front();
            }
        }
    }

    async fn listen(&self, connection: Connection) -> Option<Connection> {
        let connection = connection.with_outline("subscriptions/listen", None);
        let mut connection = connection.with_header("authorization: Bearer eve");
        connection.listen(listen().as_bytes()).await.ok().map(|()| connection)
    }

    /// Sends one request, and returns its connection if that is still open.
    async fn post(&self, connection: Connection) -> Option<Connection> {
        let (tool, bytes) = match self.flood {
            Flood::SlowCalls => ("slow", 64),
            Flood::Bodies => ("echo", 1 << 20),
            _ => ("echo", 64),
        };
        let token = if matches!(self.flood, Flood::Tokens) { "junk" } else { "eve" };
        let mut body = Vec::new();
        let connection = if matches!(self.flood, Flood::Sessions) {
            body.extend_from_slice(INITIALIZE.as_bytes());
            connection.without_headers()
        } else {
            Calls::new(Revision::Modern, tool, bytes).write(&mut body, 1);
            connection.with_outline("tools/call", Some(tool))
        };
        let mut connection = connection.with_header(&format!("authorization: Bearer {token}"));
        match connection.post(&body).await {
            Ok(_) => Some(connection),
            // The whole answer has come with its status.
            Err(error) if error.starts_with("HTTP ") => Some(connection),
            Err(_) => None,
        }
    }
}
