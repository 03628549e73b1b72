//! Clients side by side: each against our server and rmcp's.

use crate::caller::Caller;
use crate::callgrind;
use crate::document::Section;
use crate::frames::Revision;
use crate::machine::{Cores, pin};
use crate::measure::{Sample, median, middle, ratio};
use crate::peers::Peer;
use crate::program::{Line, Program};
use crate::table::{Table, bytes, number, times};
use crate::{Bench, block_on};

/// The number of pending calls whose memory is measured.
const PENDING: u64 = 10_000;

pub(crate) fn run(bench: &Bench) -> Result<Section, String> {
    let mut text = format!(
        "Each client calls `echo` with 64 bytes; CPU is the client's. Medians of {} rounds. Ratios \
         are computed within a round; above 1 is better than tuned rmcp.\n\n",
        bench.rounds()
    );
    text += &block_on(speed(bench))?;
    text += &format!("Memory of {PENDING} pending calls over stdio:\n\n");
    text += &block_on(pending(bench))?;
    if callgrind::is_here() {
        text += "Instructions of the client per call, 16 at a time:\n\n";
        text += &block_on(instructions(bench))?;
    }
    Ok(Section::new(text))
}

/// The servers to call: ours, and rmcp at its fastest.
fn servers(bench: &Bench) -> Vec<Peer> {
    bench.peers.all().into_iter().filter(|peer| *peer != Peer::RmcpDefault).collect()
}

async fn speed(bench: &Bench) -> Result<String, String> {
    let mut table = Table::new(&[
        "scenario",
        "server",
        "client",
        "calls/s",
        "CPU µs/call",
        "calls/s ÷ rmcp",
        "CPU: rmcp ÷",
    ]);
    let clients = bench.peers.all();
    for scenario in scenarios(bench) {
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); clients.len()];
        for _ in 0..bench.rounds() {
            for (client, samples) in clients.iter().zip(&mut samples) {
                let sample = scenario.measure(bench, *client).await;
                samples.push(sample.map_err(|error| {
                    format!("{} to {}: {error}", client.name(), scenario.title())
                })?);
            }
        }
        scenario.rows(&mut table, &clients, &samples);
    }
    Ok(table.finish())
}

fn scenarios(bench: &Bench) -> Vec<Scenario> {
    let mut all = Vec::new();
    for is_http in [false, true] {
        for revision in Revision::BOTH {
            for window in [64, 1] {
                let of = |server| Scenario { is_http, revision, window, server };
                all.extend(servers(bench).into_iter().map(of));
            }
        }
    }
    all
}

struct Scenario {
    is_http: bool,
    revision: Revision,
    window: usize,
    server: Peer,
}

impl Scenario {
    fn title(&self) -> String {
        let transport = if self.is_http { "http" } else { "stdio" };
        format!("{transport}, {}, {} at a time", self.revision.name(), self.window)
    }

    async fn measure(&self, bench: &Bench, client: Peer) -> Result<Sample, String> {
        let line = bench.peers.client(client, self.revision.name());
        // Both sides inherit the cores.
        pin(if self.window == 1 { Cores::First } else { Cores::All });
        let connected = self.connected(bench, line).await;
        let caller = match &connected {
            Ok((line, _)) => Caller::start(line).await,
            Err(error) => Err(error.clone()),
        };
        pin(Cores::All);
        let (mut caller, (_, server)) = (caller?, connected?);
        let sample = caller.measure(self.window, bench.span()).await;
        caller.end().await?;
        drop(server);
        sample
    }

    /// The client's command line, including the server to call.
    async fn connected(
        &self,
        bench: &Bench,
        line: Line,
    ) -> Result<(Line, Option<Program>), String> {
        if !self.is_http {
            let server = bench.peers.stdio(self.server);
            let words: Vec<&str> = server.0.iter().map(String::as_str).collect();
            return Ok((line.and(&words), None));
        }
        let has_sessions = self.revision == Revision::Legacy;
        let server = bench.peers.http(self.server, has_sessions);
        let (program, address) = Program::listening(&server).await?;
        Ok((line.and(&[&format!("http://{address}/mcp")]), Some(program)))
    }

    fn rows(&self, table: &mut Table, clients: &[Peer], samples: &[Vec<Sample>]) {
        let base = clients.iter().position(|peer| *peer == Peer::Rmcp).map(|place| &samples[place]);
        for (client, samples) in clients.iter().zip(samples) {
            let (faster, cheaper) = match base {
                Some(base) => (
                    ratio(samples, base, Sample::calls_per_second),
                    ratio(base, samples, Sample::cpu_per_call),
                ),
                None => (f64::NAN, f64::NAN),
            };
            table.row(&[
                self.title(),
                self.server.name().to_owned(),
                client.name().to_owned(),
                number(middle(samples, Sample::calls_per_second)),
                number(middle(samples, Sample::cpu_per_call)),
                times(faster),
                times(cheaper),
            ]);
        }
    }
}

async fn pending(bench: &Bench) -> Result<String, String> {
    let mut table = Table::new(&["server", "client", "memory", "per call"]);
    for server in servers(bench) {
        for client in bench.peers.all() {
            let scenario =
                Scenario { is_http: false, revision: Revision::Legacy, window: 1, server };
            let line = bench.peers.client(client, scenario.revision.name());
            let mut found = Vec::new();
            for _ in 0..bench.rounds().min(3) {
                let mut caller =
                    Caller::start(&scenario.connected(bench, line.clone()).await?.0).await?;
                found.push(caller.hold(PENDING).await? as f64);
            }
            let memory = median(found);
            let each = number(memory / PENDING as f64);
            let (server, client) = (server.name().to_owned(), client.name().to_owned());
            table.row(&[server, client, bytes(memory), format!("{each} B")]);
        }
    }
    Ok(table.finish())
}

async fn instructions(bench: &Bench) -> Result<String, String> {
    let mut table = Table::new(&["scenario", "client", "instructions", "rmcp ÷"]);
    for is_http in [false, true] {
        for revision in Revision::BOTH {
            let server = Peer::Bowline;
            let scenario = Scenario { is_http, revision, window: 16, server };
            let mut rows = Vec::new();
            for client in servers(bench) {
                let line = bench.peers.client(client, revision.name());
                let (line, server) = scenario.connected(bench, line).await?;
                rows.push((client, callgrind::of_client(&line).await?));
                drop(server);
            }
            let base = rows.iter().find(|(peer, _)| *peer == Peer::Rmcp).map(|(_, count)| *count);
            for (client, count) in rows {
                let better = times(base.unwrap_or(f64::NAN) / count);
                table.row(&[scenario.title(), client.name().to_owned(), number(count), better]);
            }
        }
    }
    Ok(table.finish())
}
