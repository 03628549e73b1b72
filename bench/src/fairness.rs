//! Two principals on one server, one of which floods it: what the other one notices.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::document::Section;
use crate::frames::{Calls, INITIALIZE, Revision, listen};
use crate::http::Connection;
use crate::measure::median;
use crate::program::{Line, PATIENCE, PORT, Program};
use crate::table::{Table, number, times};
use crate::{Bench, block_on};

/// Where the flood comes from. Everybody else is at 127.0.0.1.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// The pause between two calls of the quiet principal.
const PAUSE: Duration = Duration::from_millis(1);

/// Runs a program only while nothing else wants to run.
const IDLE: [&str; 3] = ["chrt", "--idle", "0"];

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

    /// Whether the quiet principal opens a connection for each call: one that it keeps does not
    /// notice that others have to wait for theirs.
    fn is_met_at_the_door(self) -> bool {
        matches!(self, Self::Connections)
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
        "One principal calls `echo` with 64 bytes on one connection, or on a new one each time \
         while the flood is of connections, with a pause of {} ms after \
         each answer, while another one floods the server from another address as fast as it can: \
         with 16 tasks, 64 for cheap calls and junk tokens, 500 for slow calls, 8 for bodies. The \
         flood comes and goes: in a round, quiet and flood alternate {TURNS} times, so that both \
         see the same machine. The flood is a process of its own that runs only while nothing else \
         wants to (SCHED_IDLE), so that the clients do not compete; the server (`crates/bowline/examples/shared.rs`) has all \
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
    let mut victim = Victim::open(address, flood.is_met_at_the_door()).await?;
    let (window, settling) = (span / 3, span / 10);
    let (mut quiet, mut flooded, mut attempts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        victim.call_for(settling, &mut Vec::new()).await?;
        victim.call_for(window, &mut quiet).await?;
        let mut flooding = Flooding::start(address, flood)?;
        victim.call_for(settling, &mut Vec::new()).await?;
        let (before, start) = (flooding.attempts().await?, Instant::now());
        victim.call_for(window, &mut flooded).await?;
        let made = flooding.attempts().await? - before;
        attempts.push(made as f64 / start.elapsed().as_secs_f64());
        flooding.end().await?;
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
    address: SocketAddr,
    connection: Connection,
    /// Whether it opens a connection for each call.
    reopens: bool,
    calls: Calls,
    next: u64,
}

impl Victim {
    async fn open(address: SocketAddr, reopens: bool) -> Result<Self, String> {
        let (connection, calls) =
            (Self::connect(address).await?, Calls::new(Revision::Modern, "echo", 64));
        Ok(Self { address, connection, reopens, calls, next: 1 })
    }

    async fn connect(address: SocketAddr) -> Result<Connection, String> {
        let connection = Connection::open_from(address, Ipv4Addr::LOCALHOST).await?;
        let connection = connection.with_outline("tools/call", Some("echo"));
        Ok(connection.with_header("authorization: Bearer ada"))
    }

    /// Calls for a while, and adds how long each call took, in microseconds.
    async fn call_for(&mut self, span: Duration, taken: &mut Vec<f64>) -> Result<(), String> {
        let (start, mut body) = (Instant::now(), Vec::new());
        while start.elapsed() < span {
            body.clear();
            self.calls.write(&mut body, self.next);
            let asked = Instant::now();
            if self.reopens {
                self.connection = Self::connect(self.address).await?;
            }
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

/// A flood in a process of its own.
struct Flooding {
    program: Program,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Flooding {
    fn start(address: SocketAddr, flood: Flood) -> Result<Self, String> {
        let bench = std::env::current_exe().map_err(|error| error.to_string())?;
        let (name, address) = (format!("{flood:?}"), address.to_string());
        let line = Line::new(&[&bench.to_string_lossy(), "flood", &name, &address]);
        let (program, input, output) = Program::pipes(&line.under(&IDLE))?;
        Ok(Self { program, input, output: BufReader::new(output).lines() })
    }

    /// How often it has tried so far.
    async fn attempts(&mut self) -> Result<u64, String> {
        let told = self.input.write_all(b"\n").await;
        told.map_err(|error| format!("the flood: {error}"))?;
        let line = timeout(PATIENCE, self.output.next_line()).await;
        let line = line.map_err(|_| "the flood does not answer".to_owned())?;
        let line = line.map_err(|error| format!("the flood: {error}"))?;
        line.and_then(|line| line.parse().ok()).ok_or_else(|| "the flood has ended".to_owned())
    }

    /// Ends it.
    async fn end(self) -> Result<(), String> {
        drop(self.input);
        self.program.wait().await.map(drop)
    }
}

/// Floods a server, and prints the number of attempts for each line that comes, until there are no
/// more.
pub(crate) async fn flood(name: &str, address: &str) -> Result<(), String> {
    let flood = Flood::ALL.into_iter().find(|it| format!("{it:?}") == name);
    let flood = flood.ok_or_else(|| format!("unknown flood {name:?}"))?;
    let address = address.parse::<SocketAddr>().map_err(|error| format!("{address}: {error}"))?;
    let flooder = Flooder { address, flood, attempts: Arc::default() };
    let mut tasks = JoinSet::new();
    for _ in 0..flood.width() {
        let flooder = flooder.clone();
        tasks.spawn(async move { flooder.repeat().await });
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while lines.next_line().await.map_err(|error| error.to_string())?.is_some() {
        println!("{}", flooder.attempts.load(Ordering::Relaxed));
    }
    tasks.shutdown().await;
    Ok(())
}

#[derive(Clone)]
struct Flooder {
    address: SocketAddr,
    flood: Flood,
    attempts: Arc<AtomicU64>,
}

impl Flooder {
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
