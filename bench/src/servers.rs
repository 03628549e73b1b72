//! Servers side by side: the same load on each, one after another, in rounds.

use tokio::time::Instant;

use crate::document::Section;
use crate::frames::{Calls, Revision};
use crate::http::Connections;
use crate::machine::{Cores, pin};
use crate::measure::{Sample, middle, ratio};
use crate::peers::Peer;
use crate::pipe::{Pipe, Until};
use crate::program::{Line, Program};
use crate::table::{Table, bytes, number, times};
use crate::{Bench, block_on};

/// A load on a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) is_http: bool,
    pub(crate) revision: Revision,
    /// Calls at a time.
    pub(crate) width: usize,
    /// The length of the message.
    pub(crate) bytes: usize,
    /// Whether each connection is another client; over HTTP in the modern era only.
    pub(crate) has_identities: bool,
}

impl Load {
    fn title(&self) -> String {
        let Self { is_http, revision, width, bytes: length, .. } = *self;
        let transport = match (is_http, revision) {
            (false, _) => "stdio",
            (true, Revision::Legacy) => "http, sessions",
            (true, Revision::Modern) => "http",
        };
        let length = bytes(length as f64);
        format!("{transport}, {}, {width} at a time, {length}", revision.name())
    }
}

fn loads(is_quick: bool) -> Vec<Load> {
    let mut loads = Vec::new();
    for is_http in [false, true] {
        for revision in Revision::BOTH {
            for (width, bytes) in [(64, 64), (1, 64), (8, 64 << 10), (2, 1 << 20)] {
                if !is_quick || bytes == 64 {
                    loads.push(Load { is_http, revision, width, bytes, has_identities: false });
                }
            }
        }
    }
    loads
}

pub(crate) fn run(bench: &Bench) -> Result<Section, String> {
    let peers = bench.peers.all();
    let mut heading =
        vec!["scenario", "server", "calls/s", "CPU µs/call", "user µs/call", "memory"];
    heading.extend(["calls/s ÷ rmcp", "CPU: rmcp ÷", "user: rmcp ÷"]);
    let mut table = Table::new(&heading);
    for load in loads(bench.is_quick) {
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); peers.len()];
        for _ in 0..bench.rounds() {
            for (peer, samples) in peers.iter().zip(&mut samples) {
                let line = if load.is_http {
                    bench.peers.http(*peer, load.revision == Revision::Legacy)
                } else {
                    bench.peers.stdio(*peer)
                };
                let sample = block_on(measure(bench, &line, &load, "echo"));
                samples.push(
                    sample
                        .map_err(|error| format!("{}, {}: {error}", peer.name(), load.title()))?,
                );
            }
        }
        // Ratios are relative to rmcp at its fastest.
        let base = peers.iter().position(|peer| *peer == Peer::Rmcp).map(|place| &samples[place]);
        for (peer, samples) in peers.iter().zip(&samples) {
            let against = |figure: fn(&Sample) -> f64, is_cost: bool| match base {
                Some(base) if is_cost => times(ratio(base, samples, figure)),
                Some(base) => times(ratio(samples, base, figure)),
                None => times(f64::NAN),
            };
            table.row(&[
                load.title(),
                peer.name().to_owned(),
                number(middle(samples, Sample::calls_per_second)),
                number(middle(samples, Sample::cpu_per_call)),
                number(middle(samples, Sample::user_per_call)),
                bytes(middle(samples, |sample| sample.resident as f64)),
                against(Sample::calls_per_second, false),
                against(Sample::cpu_per_call, true),
                against(Sample::user_per_call, true),
            ]);
        }
    }
    let text = format!(
        "Tool `echo`; CPU and memory are the server's. Medians of {} rounds. Ratios are computed \
         within a round; above 1 is better than tuned rmcp in each.\n\n{}",
        bench.rounds(),
        table.finish()
    );
    Ok(Section::new(text))
}

/// Starts a server, puts load on it for a while, and measures it.
pub(crate) async fn measure(
    bench: &Bench,
    line: &Line,
    load: &Load,
    tool: &str,
) -> Result<Sample, String> {
    // The server inherits the cores.
    pin(if load.width == 1 { Cores::First } else { Cores::NotLast });
    let sample = measure_here(bench, line, load, tool).await;
    pin(Cores::All);
    sample
}

/// Pins the load generator.
fn go_apart(load: &Load) {
    pin(if load.width == 1 { Cores::First } else { Cores::Last });
}

async fn measure_here(
    bench: &Bench,
    line: &Line,
    load: &Load,
    tool: &str,
) -> Result<Sample, String> {
    let mut calls = Calls::new(load.revision, tool, load.bytes);
    calls.has_identities = load.has_identities;
    let warm = |start: Instant| Until::Time(start + bench.span() / 4);
    let long = |start: Instant| Until::Time(start + bench.span());
    if load.is_http {
        let (program, address) = Program::listening(line).await?;
        go_apart(load);
        let mut connections = Connections::open(address, &calls, load.width).await?;
        connections.run(&calls, warm(Instant::now())).await?;
        let (from, start) = (program.cpu()?, Instant::now());
        let count = connections.run(&calls, long(start)).await?;
        let (took, cpu) = (start.elapsed(), (from, program.cpu()?));
        return Ok(Sample::new(count, took, cpu, program.resident()?));
    }
    let (program, input, output) = Program::pipes(line)?;
    go_apart(load);
    let mut pipe = Pipe::open(input, output, load.revision).await?;
    pipe.run(&calls, load.width, warm(Instant::now())).await?;
    let (from, start) = (program.cpu()?, Instant::now());
    let count = pipe.run(&calls, load.width, long(start)).await?;
    let (took, cpu) = (start.elapsed(), (from, program.cpu()?));
    Ok(Sample::new(count, took, cpu, program.resident()?))
}
