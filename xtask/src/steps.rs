//! The steps there are. A new one is a constant here and a place in [`TEST`].

use std::process::Command;

use crate::need::{How, need};
use crate::options::Options;
use crate::process::{Ran, command, run};
use crate::step::{Outcome, Step};
use crate::{auth, conformance, fuzz, inspector, interop, rsyslog, tidy};

/// What a change must pass, quickest answers first.
pub(crate) const TEST: &[Step] =
    &[FMT, TIDY, CLIPPY, UNIT, BARE, DOCTEST, DOC, CONFORMANCE, INTEROP, AUTH, FUZZ];

pub(crate) const FMT: Step =
    Step { name: "fmt", needs: &[need("cargo-fmt", How::Component("rustfmt"))], run: fmt };

pub(crate) const CLIPPY: Step =
    Step { name: "clippy", needs: &[need("cargo-clippy", How::Component("clippy"))], run: clippy };

/// Tests with everything that can be turned on turned on.
pub(crate) const UNIT: Step = Step {
    name: "unit",
    needs: &[],
    run: |_| {
        // Some are the servers that tests start. `cargo test --examples` would build their tests.
        let examples = cargo("build --workspace --all-features --quiet --examples");
        if !examples.ok {
            return examples.into();
        }
        let mut cargo = cargo_command("test --workspace --all-features --no-fail-fast --tests");
        rsyslog::tell(&mut cargo);
        tests(cargo)
    },
};

/// The protocol crate with everything that can be turned off turned off.
pub(crate) const BARE: Step = Step {
    name: "bare",
    needs: &[],
    run: |_| {
        tests(cargo_command(
            "test --package bowline-proto --no-default-features --no-fail-fast --tests",
        ))
    },
};

/// Examples in the documentation.
pub(crate) const DOCTEST: Step = Step {
    name: "doctest",
    needs: &[],
    run: |_| tests(cargo_command("test --workspace --all-features --no-fail-fast --doc")),
};

pub(crate) const DOC: Step = Step {
    name: "doc",
    needs: &[],
    run: |_| {
        let mut cargo = command("cargo doc --workspace --all-features --no-deps");
        cargo.env("RUSTDOCFLAGS", "-D warnings");
        run(cargo).into()
    },
};

pub(crate) const TIDY: Step =
    Step { name: "tidy", needs: &[need("git", How::Package("git"))], run: |_| tidy::step() };

/// The official conformance suite, against a server of ours.
pub(crate) const CONFORMANCE: Step = Step {
    name: "conformance",
    needs: &[need("node", How::Package("nodejs")), need("npm", How::Package("npm"))],
    run: conformance::step,
};

/// The official clients of other languages, against a server of ours; servers of others, against
/// our client.
pub(crate) const INTEROP: Step = Step {
    name: "interop",
    needs: &[
        need("node", How::Package("nodejs")),
        need("npm", How::Package("npm")),
        need("python3", How::Package("python3")),
        // Debian leaves out what `python3 -m venv` needs.
        need("python3 -m ensurepip", How::Package("python3-venv")),
    ],
    run: interop::step,
};

/// An authorization server of another maker, between a server and a client of ours.
pub(crate) const AUTH: Step = Step {
    name: "auth",
    needs: &[need("node", How::Package("nodejs")), need("npm", How::Package("npm"))],
    run: auth::step,
};

pub(crate) const FUZZ: Step = Step {
    name: "fuzz",
    // libFuzzer is compiled from its C++ source.
    needs: &[need("c++", How::Package("g++"))],
    run: fuzz::step,
};

/// Measures, and writes the page on performance. What it finds out is shown as it comes.
pub(crate) const BENCH: Step = Step { name: "bench", needs: &[], run: bench };

/// The program beside MCP Inspector's command line; writes the page on it.
pub(crate) const INSPECTOR: Step = Step {
    name: "inspector",
    needs: &[need("node", How::Package("nodejs")), need("npm", How::Package("npm"))],
    run: inspector::step,
};

pub(crate) const DENY: Step =
    Step { name: "deny", needs: &[need("cargo-deny", How::Crate("cargo-deny"))], run: deny };

fn cargo(arguments: &str) -> Ran {
    run(cargo_command(arguments))
}

fn cargo_command(arguments: &str) -> Command {
    command(&format!("cargo {arguments}"))
}

fn fmt(_: &Options) -> Outcome {
    let here = cargo("fmt --all --check -- --color never");
    let fuzz = cargo("fmt --manifest-path fuzz/Cargo.toml --check -- --color never");
    let rmcp =
        cargo("fmt --manifest-path interop/servers/rmcp/Cargo.toml --check -- --color never");
    let bench = cargo("fmt --manifest-path bench/rmcp/Cargo.toml --check -- --color never");
    let is_ok = here.ok && fuzz.ok && rmcp.ok && bench.ok;
    Outcome::one(is_ok, here.output + &fuzz.output + &rmcp.output + &bench.output)
}

/// With everything turned on, and as most people build the SDK: what nobody uses then is dead code.
fn clippy(_: &Options) -> Outcome {
    let all = cargo("clippy --workspace --all-targets --all-features --quiet -- -D warnings");
    let bare = cargo("clippy --package bowline --quiet -- -D warnings");
    Outcome::one(all.ok && bare.ok, all.output + &bare.output)
}

fn bench(options: &Options) -> Outcome {
    let mut cargo = cargo_command("run --release --package bowline-bench --");
    cargo.args(&options.target);
    if options.quick {
        cargo.arg("--quick");
    }
    println!();
    match cargo.status() {
        Ok(status) => Outcome::one(status.success(), format!("{status}: see above\n")),
        Err(error) => Outcome::one(false, format!("cargo: {error}\n")),
    }
}

fn deny(options: &Options) -> Outcome {
    let mut cargo = cargo_command("deny --workspace --all-features check bans licenses sources");
    if options.advisories {
        cargo.arg("advisories");
    }
    run(cargo).into()
}

fn tests(cargo: Command) -> Outcome {
    let Ran { ok, output } = run(cargo);
    let (passed, failed, ignored) = count(&output);
    let mut note = format!("{passed} passed");
    for (count, what) in [(failed, "failed"), (ignored, "ignored")] {
        if count > 0 {
            note += &format!(", {count} {what}");
        }
    }
    Outcome {
        passed,
        // What does not compile or dies half way reports no failed test.
        failed: if ok { failed } else { failed.max(1) },
        note,
        output,
        ..Outcome::default()
    }
}

/// Tests passed, failed and ignored, over all test binaries.
fn count(output: &str) -> (u64, u64, u64) {
    let mut sum = (0, 0, 0);
    for line in output.lines() {
        let Some(counts) = line.strip_prefix("test result: ") else {
            continue;
        };
        let of = |what: &str| {
            let (before, _) = counts.split_once(&format!(" {what};"))?;
            before.rsplit(' ').next()?.parse::<u64>().ok()
        };
        sum.0 += of("passed").unwrap_or(0);
        sum.1 += of("failed").unwrap_or(0);
        sum.2 += of("ignored").unwrap_or(0);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_counts_are_summed() {
        let output = "\
running 3 tests
test result: ok. 19 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s
  test result: ok. 99 passed; 0 failed; 0 ignored; what a test prints is not the harness
test result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s
";
        assert_eq!(count(output), (20, 3, 2));
        assert_eq!(count("error: could not compile"), (0, 0, 0));
    }
}
