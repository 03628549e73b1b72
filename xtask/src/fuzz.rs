//! Fuzzes with the stable compiler; needs only a C++ compiler.
//!
//! `cargo fuzz` requires a nightly toolchain, but the coverage counters are stable flags.
//! The same folder works with `cargo fuzz run <target>` for long runs with sanitizers.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use crate::options::Options;
use crate::process::{Ran, command, run};
use crate::step::Outcome;

const MANIFEST: &str = "fuzz/Cargo.toml";
const BUILD: &str = "target/fuzz";

/// What `cargo fuzz` passes for coverage, less the sanitizers.
const FLAGS: &str = "--cfg fuzzing -D warnings -C passes=sancov-module \
    -C llvm-args=-sanitizer-coverage-level=4 \
    -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
    -C llvm-args=-sanitizer-coverage-pc-table \
    -C llvm-args=-sanitizer-coverage-trace-compares";

/// Builds the targets and runs as many at once as there are cores.
pub(crate) fn step(options: &Options) -> Outcome {
    let targets = match wanted(options.target.as_deref()) {
        Ok(targets) => targets,
        Err(why) => return Outcome::one(false, why),
    };
    let programs = match build() {
        Ok(programs) => programs,
        Err(why) => return Outcome::one(false, why),
    };
    let waiting = Mutex::new(targets.iter());
    let done = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers.min(targets.len()) {
            scope.spawn(|| {
                let next = || waiting.lock().expect("no worker panics").next();
                while let Some(target) = next() {
                    let ran = fuzz(target, &programs, options.seconds);
                    done.lock().expect("no worker panics").push(ran);
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no worker panics");
    done.sort();
    summary(&done)
}

/// A target's name, whether it passed, a few words, and the output of libFuzzer.
type Fuzzed = (String, bool, String, String);

fn summary(done: &[Fuzzed]) -> Outcome {
    let ok = done.iter().all(|(_, ok, ..)| *ok);
    let note = |(target, _, note, _): &Fuzzed| format!("{target}: {note}");
    let notes: Vec<_> = done.iter().map(note).collect();
    let failures = done.iter().filter(|(_, ok, ..)| !ok);
    let output = failures.map(|(.., said)| said.as_str()).collect();
    Outcome::one(ok, output).with_note(notes.join("; "))
}

fn wanted(target: Option<&str>) -> Result<Vec<String>, String> {
    let manifest = fs::read_to_string(MANIFEST).map_err(|error| format!("{MANIFEST}: {error}"))?;
    let known = targets(&manifest);
    match target {
        None => Ok(known),
        Some(target) if known.iter().any(|name| name == target) => Ok(vec![target.to_owned()]),
        Some(target) => {
            Err(format!("`{target}` is not a fuzz target; expected one of: {}", known.join(", ")))
        }
    }
}

/// The names of the `[[bin]]` tables of a manifest.
fn targets(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut in_bin = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_bin = line.trim() == "[[bin]]";
        }
        if let (true, Some(("name", value))) = (in_bin, line.split_once(" = ")) {
            names.push(value.trim().trim_matches('"').to_owned());
        }
    }
    names
}

/// The folder the programs are in.
fn build() -> Result<PathBuf, String> {
    let host = host()?;
    let mut cargo = command(&format!("cargo build --release --manifest-path {MANIFEST}"));
    // With `--target`, even the host's own, build scripts are compiled without the flags.
    cargo.args(["--target-dir", BUILD, "--target", &host]);
    cargo.env("RUSTFLAGS", FLAGS);
    let Ran { ok, output } = run(cargo);
    if ok { Ok(Path::new(BUILD).join(host).join("release")) } else { Err(output) }
}

fn host() -> Result<String, String> {
    let Ran { output, .. } = run(command("rustc --version --verbose"));
    let host = output.lines().find_map(|line| line.strip_prefix("host: ").map(str::to_owned));
    host.ok_or(output)
}

fn fuzz(target: &str, programs: &Path, seconds: u32) -> Fuzzed {
    let corpus = format!("{BUILD}/corpus/{target}");
    let artifacts = format!("{BUILD}/artifacts/{target}/");
    let seeds = format!("fuzz/seeds/{target}");
    for folder in [&corpus, &artifacts] {
        if let Err(error) = fs::create_dir_all(folder) {
            let said = format!("{folder}: {error}\n");
            return (target.to_owned(), false, "not run".to_owned(), said);
        }
    }
    let program = programs.join(target);
    let mut fuzzer = command(&program.to_string_lossy());
    fuzzer.args(["-seed=1", "-timeout=10", "-rss_limit_mb=1024", "-max_len=4096"]);
    fuzzer.arg(format!("-max_total_time={seconds}"));
    fuzzer.arg(format!("-artifact_prefix={artifacts}"));
    // libFuzzer writes what it finds to the first folder, and only reads the seeds.
    fuzzer.args([&corpus, &seeds]);
    let Ran { ok, mut output } = run(fuzzer);
    if !ok {
        output += &advice(&output, &program);
        return (target.to_owned(), false, "crashed".to_owned(), output);
    }
    match progress(&output) {
        Some(note) => (target.to_owned(), true, note, output),
        // Without counters a fuzzer guesses blindly, and does not say so.
        None => {
            output += "no coverage was reported\nhelp: build the target with coverage counters\n";
            (target.to_owned(), false, "blind".to_owned(), output)
        }
    }
}

/// How to reproduce a crash.
fn advice(output: &str, program: &Path) -> String {
    let artifact = output
        .lines()
        .find_map(|line| line.split_once("Test unit written to "))
        .map(|(_, path)| path.trim());
    match artifact {
        Some(path) => format!("\ninput:     {path}\nreproduce: {} {path}\n\n", program.display()),
        None => String::new(),
    }
}

/// Runs and edges, from libFuzzer's last words.
fn progress(output: &str) -> Option<String> {
    let last = output.lines().rfind(|line| line.contains(" cov: "))?;
    let edges = last.split_once(" cov: ")?.1.split(' ').next()?;
    let runs = last.strip_prefix('#')?.split_whitespace().next()?;
    Some(format!("{runs} runs, {edges} edges"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_the_binaries_of_the_manifest() {
        let manifest = "[package]\nname = \"all\"\n\n[[bin]]\nname = \"wire\"\npath = \"x\"\n\
                        [[bin]]\nname = \"sse\"\n[profile.release]\nname = \"no\"\n";
        assert_eq!(targets(manifest), ["wire", "sse"]);
    }

    #[test]
    fn progress_is_read_from_the_last_report() {
        let said =
            "INFO: x\n#2\tINITED cov: 10 ft: 11\n#900\tDONE   cov: 812 ft: 9 corp: 1/1b\nDone";
        assert_eq!(progress(said).as_deref(), Some("900 runs, 812 edges"));
        assert_eq!(progress("Done 12 runs"), None);
    }

    #[test]
    fn a_crash_comes_with_its_input() {
        let said = "artifact_prefix='a/'; Test unit written to a/crash-1\nBase64: AA==\n";
        let advice = advice(said, Path::new("wire"));
        assert!(advice.contains("wire a/crash-1"), "{advice}");
    }
}
