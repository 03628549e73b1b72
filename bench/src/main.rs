//! Measures Bowline, alone and beside the official Rust SDK, and writes `docs/performance.md`.
//!
//! `bowline-bench [PART…] [--quick] [--built]` from the root of the repository; `--built` skips
//! building the programs to measure. It also runs itself with three more commands: `client` is a
//! client program, `flood` floods a server, `repeat` repeats one operation.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints its results")]

mod caller;
mod callgrind;
mod clients;
mod document;
mod drive;
mod fairness;
mod frames;
mod hello;
mod http;
mod identities;
mod machine;
mod measure;
mod micro;
mod peers;
mod pipe;
mod plot;
mod program;
mod scaling;
mod servers;
mod startup;
mod streams;
mod table;
mod tasks;

use std::process::ExitCode;
use std::time::Duration;

use document::{Document, Section};
use peers::Peers;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The parts, in the order of the document.
struct Part {
    name: &'static str,
    title: &'static str,
    run: fn(&Bench) -> Result<Section, String>,
}

const PARTS: &[Part] = &[
    Part { name: "servers", title: "Servers side by side", run: servers::run },
    Part { name: "clients", title: "Clients side by side", run: clients::run },
    Part { name: "identities", title: "Different clients at once", run: identities::run },
    Part { name: "scaling", title: "Cost as work grows", run: scaling::run },
    Part { name: "fairness", title: "One floods, another calls", run: fairness::run },
    Part { name: "tasks", title: "What tasks cost", run: tasks::run },
    Part { name: "micro", title: "Instructions", run: micro::run },
    Part { name: "startup", title: "Start-up and idle memory", run: startup::run },
    Part { name: "hello", title: "Hello world", run: hello::run },
];

/// The flags.
const FLAGS: [&str; 2] = ["--quick", "--built"];

/// What all parts share.
struct Bench {
    peers: Peers,
    is_quick: bool,
}

impl Bench {
    /// How often each measurement is repeated.
    fn rounds(&self) -> usize {
        if self.is_quick { 1 } else { 5 }
    }

    /// The duration of one measurement.
    fn span(&self) -> Duration {
        Duration::from_millis(if self.is_quick { 300 } else { 1_500 })
    }
}

/// Runs a future to completion.
fn block_on<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start the runtime: {error}"))?.block_on(work)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["client", revision, ref target @ ..] if !target.is_empty() => {
            block_on(drive::run(revision, target))
        }
        ["flood", name, address] => block_on(fairness::flood(name, address)),
        ["repeat", name, times] => micro::repeat(name, times),
        _ => bench(&words),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(words: &[&str]) -> Result<(), String> {
    let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
    let is_quick = words.contains(&"--quick");
    let is_built = words.contains(&"--built");
    let wanted: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with("--")).collect();
    if let Some(unknown) = words.iter().find(|it| it.starts_with("--") && !FLAGS.contains(it)) {
        return Err(format!("unknown option `{unknown}`; expected one of: {}", FLAGS.join(", ")));
    }
    if let Some(unknown) = wanted.iter().find(|word| !names.contains(word)) {
        return Err(format!("unknown part `{unknown}`; expected one of: {}", names.join(", ")));
    }
    machine::allow_many_files();
    let bench = Bench { peers: Peers::find(is_built)?, is_quick };
    let mut document = Document::open(is_quick, &names)?;
    let mut failures = Vec::new();
    for part in PARTS.iter().filter(|part| wanted.is_empty() || wanted.contains(&part.name)) {
        eprintln!("== {}", part.title);
        match (part.run)(&bench) {
            Ok(section) => {
                println!("\n## {}\n\n{}", part.title, section.text);
                document.put(part.name, part.title, &section)?;
            }
            Err(error) => failures.push(format!("{}: {error}", part.name)),
        }
    }
    println!("written: {}", document.path());
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}
