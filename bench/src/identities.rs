//! Many clients over HTTP at once: the cost of each having its own identity.

use crate::document::Section;
use crate::frames::Revision;
use crate::measure::{Sample, middle, ratio};
use crate::servers::{Load, measure};
use crate::table::{Table, number, times};
use crate::{Bench, block_on};

/// The number of concurrent clients.
const CLIENTS: [usize; 3] = [2, 8, 64];

pub(crate) fn run(bench: &Bench) -> Result<Section, String> {
    let mut table = Table::new(&[
        "clients",
        "same identity, calls/s",
        "different, calls/s",
        "same, CPU µs/call",
        "different, CPU µs/call",
        "CPU: different ÷ same",
    ]);
    let line = bench.peers.with_tools(true, 0);
    for clients in CLIENTS {
        let mut samples: [Vec<Sample>; 2] = [Vec::new(), Vec::new()];
        for _ in 0..bench.rounds() {
            for (has_identities, samples) in [false, true].into_iter().zip(&mut samples) {
                let load = Load {
                    is_http: true,
                    revision: Revision::Modern,
                    width: clients,
                    bytes: 64,
                    has_identities,
                };
                let sample = block_on(measure(bench, &line, &load, "echo"));
                samples.push(sample.map_err(|error| format!("{clients} clients: {error}"))?);
            }
        }
        let [same, different] = &samples;
        table.row(&[
            clients.to_string(),
            number(middle(same, Sample::calls_per_second)),
            number(middle(different, Sample::calls_per_second)),
            number(middle(same, Sample::cpu_per_call)),
            number(middle(different, Sample::cpu_per_call)),
            times(ratio(different, same, Sample::cpu_per_call)),
        ]);
    }
    let text = format!(
        "Tool `echo` with 64 bytes, 2026-07-28, each client on its own connection. In the modern \
         era every request carries `clientInfo`: all clients send the same one, or each its own. \
         CPU is the server's. Medians of {} rounds. Ratios are computed within a round.\n\n{}",
        bench.rounds(),
        table.finish()
    );
    Ok(Section::new(text))
}
