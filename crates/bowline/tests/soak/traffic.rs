//! The clients, and what is measured.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bowline::client::{Client, FormAnswer, Preference, Target, Wanted};
use bowline::{Revision, with_causes};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::server::{RESOURCE, ROLE};

const MIB: u64 = 1 << 20;
/// How much more memory there may be at the end.
const MORE: u64 = 6 * MIB;
/// How long anything may take.
const GUARD: Duration = Duration::from_secs(180);
/// For how long nothing must have changed at rest: the server looks for forgotten sessions twice a
/// minute.
const QUIET: Duration = Duration::from_secs(45);

/// How much there is to do.
struct Size {
    clients: u64,
    warm: Duration,
    load: Duration,
    /// How long a client rests between two things.
    pace: Duration,
}

impl Size {
    fn chosen() -> Self {
        let seconds = Duration::from_secs;
        if std::env::var_os("BOWLINE_FULL").is_some() {
            Self { clients: 2000, warm: seconds(300), load: seconds(3600), pace: seconds(2) }
        } else {
            let pace = Duration::from_millis(40);
            Self { clients: 24, warm: seconds(8), load: seconds(20), pace }
        }
    }
}

/// What a process holds. The pages of its program do not count.
#[derive(Debug, Clone, Copy)]
struct Held {
    memory: u64,
    files: usize,
    threads: u64,
}

impl Held {
    fn is_within(self, before: Self) -> bool {
        self.memory <= before.memory + MORE
            && self.files <= before.files
            && self.threads <= before.threads
    }
}

pub(crate) async fn soak() {
    let size = Size::chosen();
    let mut server = Command::new(std::env::current_exe().unwrap());
    server.env(ROLE, "1").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = server.kill_on_drop(true).spawn().unwrap();
    let mut told = BufReader::new(server.stderr.take().unwrap()).lines();
    let address = told.next_line().await.unwrap().unwrap();
    let url = format!("http://{address}/mcp");
    let stream = tokio::io::join(server.stdout.take().unwrap(), server.stdin.take().unwrap());
    let piped = connect(Revision::LATEST_LEGACY, Target::stream(stream)).await.unwrap();
    let pid = server.id().unwrap();
    let seen = Arc::new(Seen::default());

    load(&size, size.warm, &url, &piped, &seen).await;
    let warm = rest(pid, None).await;
    load(&size, size.load, &url, &piped, &seen).await;
    let end = rest(pid, Some(warm)).await;

    let mib = |held: Held| held.memory.div_ceil(MIB);
    println!("{}", seen.summary());
    println!(
        "figure: 40 | {} things by {} clients: memory {} to {} MiB, descriptors {} to {}, threads \
         {} to {} | {} MiB more, as many, as many",
        seen.total(),
        size.clients,
        mib(warm),
        mib(end),
        warm.files,
        end.files,
        warm.threads,
        end.threads,
        MORE / MIB,
    );
    assert!(end.is_within(warm), "something is left: {warm:?}, {end:?}");
    seen.check();
    piped.close().await;
    ends(&mut server).await;
}

/// The server ends with its standard input.
async fn ends(server: &mut Child) {
    let status = timeout(GUARD, server.wait()).await.expect("the server ends").unwrap();
    assert!(status.success(), "{status}");
}

/// Everything that happened, by name: what went well, and what did not.
#[derive(Default)]
struct Seen([AtomicU64; KINDS.len()], std::sync::Mutex<BTreeMap<String, u64>>);

const KINDS: [&str; 10] = [
    "call", "error", "progress", "cancel", "question", "list", "read", "change", "session",
    "vanished",
];

impl Seen {
    fn note(&self, kind: usize, result: Result<(), String>) {
        self.0[kind].fetch_add(1, Ordering::Relaxed);
        if let Err(why) = result {
            *self.1.lock().unwrap().entry(format!("{}: {why}", KINDS[kind])).or_default() += 1;
        }
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn summary(&self) -> String {
        let counts = KINDS.iter().zip(&self.0);
        let counts =
            counts.map(|(kind, count)| format!("{kind} {}", count.load(Ordering::Relaxed)));
        counts.collect::<Vec<_>>().join(", ")
    }

    /// Everything happened, and everything went well.
    fn check(&self) {
        let wrong = self.1.lock().unwrap();
        assert!(wrong.is_empty(), "{wrong:#?}");
        for (kind, count) in KINDS.iter().zip(&self.0) {
            assert!(count.load(Ordering::Relaxed) > 0, "no {kind}");
        }
    }
}

type Done = Result<(), String>;

/// Clients come and go for this long; afterwards all are gone but the one on the pipe.
async fn load(size: &Size, time: Duration, url: &str, piped: &Client, seen: &Arc<Seen>) {
    let until = Instant::now() + time;
    let mut clients = JoinSet::new();
    for number in 0..size.clients {
        let (url, seen, pace) = (url.to_owned(), Arc::clone(seen), size.pace);
        clients.spawn(async move {
            let mut random = Random(number + 1);
            // Not all at once.
            sleep(pace * u32::try_from(number % 50).unwrap()).await;
            while Instant::now() < until {
                visit(&url, &mut random, &seen, pace, until).await;
            }
        });
    }
    let mut random = Random(9999);
    while Instant::now() < until {
        act(piped, &mut random, seen).await;
        sleep(size.pace).await;
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
}

async fn connect(revision: Revision, target: impl Into<Target>) -> Result<Client, String> {
    let client = Client::builder("soak", "1")
        .preference(Preference::Pin(revision))
        .without_cache()
        .on_form(|_| async { Ok(FormAnswer::accept(&json!({}))) });
    client.connect(target).await.map_err(|error| with_causes(&error))
}

/// One client from its beginning to its end.
async fn visit(url: &str, random: &mut Random, seen: &Seen, pace: Duration, until: Instant) {
    if random.below(8) == 0 {
        return seen.note(9, timeout(GUARD, vanish(url)).await.expect("a client vanishes"));
    }
    let revision = Revision::ALL[random.below(5)];
    let client = match connect(revision, url).await {
        Ok(client) => client,
        Err(why) => return seen.note(8, Err(why)),
    };
    seen.note(8, Ok(()));
    for _ in 0..4 + random.below(12) {
        if Instant::now() >= until {
            break;
        }
        act(&client, random, seen).await;
        sleep(pace).await;
    }
    if random.below(4) > 0 {
        client.close().await;
    }
}

/// A client that is gone in the middle of everything: its session stays, and so does its call; its
/// connections are reset.
async fn vanish(url: &str) -> Done {
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "gone", "version": "1" } } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "never" } });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let said = |error: std::io::Error| error.to_string();
    let (mut session, mut open) = (String::new(), Vec::new());
    for message in [hello, ready, call] {
        let mut stream = TcpStream::connect(address).await.map_err(said)?;
        let body = message.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{session}content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await.map_err(said)?;
        let mut lines = BufReader::new(&mut stream).lines();
        let status = lines.next_line().await.map_err(said)?.unwrap_or_default();
        is(status.get(..10).unwrap_or(&status), "HTTP/1.1 2")?;
        while let Some(line) = lines.next_line().await.map_err(said)? {
            if line.starts_with("mcp-session-id") {
                session = format!("{line}\r\n");
            } else if line.is_empty() {
                break;
            }
        }
        open.push(stream);
    }
    for stream in &open {
        stream.set_zero_linger().map_err(said)?;
    }
    Ok(())
}

/// Does one thing.
async fn act(client: &Client, random: &mut Random, seen: &Seen) {
    let kind = random.below(8);
    let done = timeout(GUARD, perform(kind, client, random)).await;
    seen.note(kind, done.unwrap_or_else(|_| Err("it hangs".to_owned())));
}

#[expect(clippy::needless_pass_by_value, reason = "what `map_err` passes")]
fn told(error: bowline::client::CallError) -> String {
    with_causes(&error)
}

fn is(found: &str, wanted: &str) -> Done {
    if found == wanted { Ok(()) } else { Err(format!("{found:?} instead of {wanted:?}")) }
}

async fn perform(kind: usize, client: &Client, random: &mut Random) -> Done {
    match kind {
        0 => {
            let message = "x".repeat(random.below(20_000));
            let said = client.call_tool("echo", json!({ "message": message }));
            is(&said.text().await.map_err(told)?, &message)
        }
        1 => {
            let tool = ["none", "fail"][random.below(2)];
            match client.call_tool(tool, json!({})).text().await {
                Ok(said) => Err(said),
                Err(_) => Ok(()),
            }
        }
        2 => progress(client).await,
        3 => {
            let call = client.call_tool("never", json!({})).text();
            let patience = Duration::from_millis(random.below(20) as u64);
            match timeout(patience, call).await {
                Ok(said) => Err(format!("{said:?}")),
                Err(_) => Ok(()),
            }
        }
        4 => question(client).await,
        5 => is(&client.list_tools().await.map_err(told)?.len().to_string(), "6"),
        6 => client.read_resource(RESOURCE).await.map(drop).map_err(told),
        _ => change(client).await,
    }
}

async fn progress(client: &Client) -> Done {
    let heard = Arc::new(AtomicU64::new(0));
    let hears = Arc::clone(&heard);
    let call = client.call_tool("work", json!({})).on_progress(move |_| {
        hears.fetch_add(1, Ordering::Relaxed);
    });
    is(&call.text().await.map_err(told)?, "done")?;
    is(&(heard.load(Ordering::Relaxed) > 0).to_string(), "true")
}

/// Before 2025-06-18 nobody can be asked.
async fn question(client: &Client) -> Done {
    let can = client.peer().is_some_and(|peer| peer.revision >= Revision::V2025_06_18);
    match (can, client.call_tool("ask", json!({})).text().await) {
        (true, said) => is(&said.map_err(told)?, "true"),
        (false, Ok(said)) => Err(said),
        (false, Err(_)) => Ok(()),
    }
}

async fn change(client: &Client) -> Done {
    let wanted = Wanted::new().resource(RESOURCE);
    let mut changes = client.changes(wanted).await.map_err(told)?;
    loop {
        // A subscription may begin after the first change.
        client.call_tool("touch", json!({})).text().await.map_err(told)?;
        match timeout(Duration::from_millis(500), changes.next()).await {
            Ok(Some(Ok(_))) => return Ok(()),
            Ok(other) => return Err(format!("{other:?}")),
            Err(_) => {}
        }
    }
}

/// What the process holds once it has settled: when all clients are gone and forgotten.
async fn rest(pid: u32, before: Option<Held>) -> Held {
    let begun = Instant::now();
    let (mut least, mut changed) = (held(pid), begun);
    // As little as before, or as little as it gets.
    while begun.elapsed() < GUARD && changed.elapsed() < QUIET {
        sleep(Duration::from_millis(100)).await;
        let now = held(pid);
        if now.memory < least.memory || now.files < least.files || now.threads < least.threads {
            changed = Instant::now();
        }
        least.memory = least.memory.min(now.memory);
        least.files = least.files.min(now.files);
        least.threads = least.threads.min(now.threads);
        if before.is_some_and(|before| least.is_within(before)) {
            break;
        }
    }
    least
}

fn held(pid: u32) -> Held {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let number = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
    };
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    Held { memory: number("RssAnon") << 10, files, threads: number("Threads") }
}

/// Numbers that look random and are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}
