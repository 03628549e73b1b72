//! The time from the start of a server to its first answer, and its idle memory.

use tokio::time::Instant;

use crate::document::Section;
use crate::frames::Revision;
use crate::measure::median;
use crate::peers::Peer;
use crate::pipe::Pipe;
use crate::program::{Line, Program};
use crate::table::{Table, bytes, number, times};
use crate::{Bench, block_on};

pub(crate) fn run(bench: &Bench) -> Result<Section, String> {
    let peers = bench.peers.all();
    let mut found: Vec<Vec<(f64, f64)>> = vec![Vec::new(); peers.len()];
    for _ in 0..if bench.is_quick { 5 } else { 25 } {
        for (peer, found) in peers.iter().zip(&mut found) {
            found.push(block_on(start(&bench.peers.stdio(*peer)))?);
        }
    }
    let base = peers.iter().position(|peer| *peer == Peer::Rmcp).map(|place| &found[place]);
    let mut table = Table::new(&["server", "ms to first answer", "idle memory", "rmcp ÷, time"]);
    for (peer, found) in peers.iter().zip(&found) {
        let better =
            base.map(|base| median(base.iter().zip(found).map(|(base, found)| base.0 / found.0)));
        table.row(&[
            peer.name().to_owned(),
            number(median(found.iter().map(|found| found.0))),
            bytes(median(found.iter().map(|found| found.1))),
            times(better.unwrap_or(f64::NAN)),
        ]);
    }
    let text = format!(
        "Time from the start of the process to the answer to `initialize` over stdio, and the memory of \
         the process then.\n\n{}",
        table.finish()
    );
    Ok(Section::new(text))
}

/// Milliseconds and bytes.
async fn start(line: &Line) -> Result<(f64, f64), String> {
    let start = Instant::now();
    let (program, input, output) = Program::pipes(line)?;
    let pipe = Pipe::open(input, output, Revision::Legacy).await?;
    let took = start.elapsed().as_secs_f64() * 1e3;
    let resident = program.resident()? as f64;
    drop(pipe);
    Ok((took, resident))
}
