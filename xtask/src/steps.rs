//! The steps there are. A new one is a constant here and a place in [`TEST`].

use crate::cargo::{self, Tested};
use crate::need::{How, need};
use crate::options::Options;
use crate::process::{Ran, command, run};
use crate::step::{Outcome, Step};
use crate::{
    auth, bridge, browser, conformance, debian, faults, fleet, fuzz, inspector, interop, platforms,
    release, soak, tasks, tidy,
};

/// What a change must pass. The first lane runs programs that mostly wait, the second mostly
/// compiles; Cargo's own lock keeps their builds apart.
pub(crate) const TEST: &[&[Step]] = &[
    &[FMT, TIDY, UNIT, CONFORMANCE, BRIDGE, INTEROP, AUTH, BROWSER],
    &[CLIPPY, DOCTEST, DOC, BARE, OUTSIDE, FUZZ],
];

pub(crate) const FMT: Step =
    Step { name: "fmt", needs: &[need("cargo-fmt", How::Component("rustfmt"))], run: fmt };

pub(crate) const CLIPPY: Step =
    Step { name: "clippy", needs: &[need("cargo-clippy", How::Component("clippy"))], run: clippy };

/// Tests with all features.
pub(crate) const UNIT: Step = Step { name: "unit", needs: &[], run: unit };

/// The protocol crate without its default features.
pub(crate) const BARE: Step = Step {
    name: "bare",
    needs: &[],
    run: |_| {
        let line =
            "cargo test --package bowline-proto --no-default-features --no-fail-fast --tests";
        tests(run(command(line)))
    },
};

/// The example of an extension that is written outside the workspace.
pub(crate) const OUTSIDE: Step = Step {
    name: "outside",
    needs: &[],
    run: |_| {
        let line =
            "cargo check --locked --manifest-path examples/receipts/Cargo.toml --target-dir target";
        run(command(line)).into()
    },
};

/// Examples in the documentation.
pub(crate) const DOCTEST: Step = Step {
    name: "doctest",
    needs: &[],
    // Those of the attributes are tested by `bowline-macros-ui`.
    run: |_| tests(run(cargo::cargo("test", "--exclude bowline-macros --no-fail-fast --doc"))),
};

pub(crate) const DOC: Step = Step {
    name: "doc",
    needs: &[],
    run: |_| {
        let mut cargo = cargo::cargo("doc", "--no-deps");
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

/// The official conformance suite through the bridge, in front of servers of the other era.
pub(crate) const BRIDGE: Step =
    Step { name: "bridge", needs: CONFORMANCE.needs, run: bridge::step };

/// The official clients of other languages, against a server of ours; servers of others, against
/// our client.
pub(crate) const INTEROP: Step = Step {
    name: "interop",
    needs: &[
        need("node", How::Package("nodejs")),
        need("npm", How::Package("npm")),
        need("python3", How::Package("python3")),
        // Debian leaves out what `python3 -m venv` needs.
        need("python3 -m ensurepip --version", How::Package("python3-venv")),
    ],
    run: interop::step,
};

/// Agent frameworks, which convert and call the tools of our servers. They take minutes to install,
/// so this is not in [`TEST`].
pub(crate) const FRAMEWORKS: Step =
    Step { name: "frameworks", needs: INTEROP.needs, run: interop::frameworks::step };

/// An authorization server of another maker, between a server and a client of ours.
pub(crate) const AUTH: Step = Step {
    name: "auth",
    needs: &[need("node", How::Package("nodejs")), need("npm", How::Package("npm"))],
    run: auth::step,
};

/// Apps of ours, in the official host library and a real browser.
pub(crate) const BROWSER: Step = Step {
    name: "browser",
    needs: &[
        need("node", How::Package("nodejs")),
        need("npm", How::Package("npm")),
        need(browser::PROGRAM, How::Package("chromium")),
    ],
    run: browser::step,
};

/// The tests of fleets at the size of choice, and the official suite against three nodes. The
/// tests at their short size are a part of [`UNIT`].
pub(crate) const FLEET: Step = Step { name: "fleet", needs: CONFORMANCE.needs, run: fleet::step };

/// The simulation of tasks and the kills at the size of choice. At their short size they are a part
/// of [`UNIT`].
pub(crate) const TASKS: Step = Step { name: "tasks", needs: &[], run: tasks::step };

/// Every row of the page on reliability, which it writes. The same tests at their short size are a
/// part of [`UNIT`].
pub(crate) const FAULTS: Step = Step { name: "faults", needs: &[], run: faults::step };

/// Mixed traffic on one process. The short one is a part of [`UNIT`].
pub(crate) const SOAK: Step = Step { name: "soak", needs: &[], run: soak::step };

/// Systems that this machine is not. It compiles everything four times, so it is not in [`TEST`].
pub(crate) const PLATFORMS: Step = Step {
    name: "platforms",
    needs: &[
        need("cc", How::Package("gcc")),
        need("python3", How::Package("python3")),
        // Debian leaves out what `python3 -m venv` needs.
        need("python3 -m ensurepip --version", How::Package("python3-venv")),
        need("unshare", How::Package("util-linux")),
        need("readelf", How::Package("binutils")),
        need("openssl version", How::Package("openssl")),
    ],
    run: platforms::step,
};

/// Everything that is published.
pub(crate) const RELEASE: Step = Step {
    name: "release",
    needs: &[
        PLATFORMS.needs[0],
        PLATFORMS.needs[1],
        PLATFORMS.needs[2],
        need("node", How::Package("nodejs")),
        need("npm", How::Package("npm")),
        need("dpkg-deb", How::Package("dpkg")),
        need("gzip", How::Package("gzip")),
        need("tar", How::Package("tar")),
        need("strip", How::Package("binutils")),
        need("unzip -v", How::Package("unzip")),
    ],
    run: release::step,
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
    needs: &[
        need("node", How::Package("nodejs")),
        need("npm", How::Package("npm")),
        need(browser::PROGRAM, How::Package("chromium")),
    ],
    run: inspector::step,
};

pub(crate) const DENY: Step =
    Step { name: "deny", needs: &[need("cargo-deny", How::Crate("cargo-deny"))], run: deny };

fn fmt(_: &Options) -> Outcome {
    let manifests = ["Cargo.toml", "fuzz/Cargo.toml", "interop/servers/rmcp/Cargo.toml"];
    let ran: Vec<Ran> = manifests
        .iter()
        .chain(&["bench/rmcp/Cargo.toml", "examples/receipts/Cargo.toml"])
        .map(|path| run(command(&format!("cargo fmt --all --manifest-path {path} --check"))))
        .collect();
    let is_ok = ran.iter().all(|ran| ran.ok);
    Outcome::one(is_ok, ran.into_iter().map(|ran| ran.output).collect())
}

/// With all features, and as most people build the SDK, which finds code that is dead then.
fn clippy(_: &Options) -> Outcome {
    let all = run(cargo::cargo("clippy", "--all-targets --quiet -- -D warnings"));
    let bare = run(command("cargo clippy --package bowline --quiet -- -D warnings"));
    Outcome::one(all.ok && bare.ok, all.output + &bare.output)
}

fn unit(_: &Options) -> Outcome {
    // Some examples and programs are servers that tests start.
    if let Err(why) = cargo::build("--bins --examples") {
        return Outcome::one(false, why);
    }
    match cargo::test(WORKERS, &debian::variables()) {
        Ok(tested) => all_tests(&tested),
        Err(why) => Outcome::one(false, why),
    }
}

/// How many test programs run at once. Each has a thread for every core, and most threads wait.
const WORKERS: usize = 3;

fn bench(options: &Options) -> Outcome {
    let mut cargo = command("cargo run --profile dist --package bowline-bench --");
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
    let mut cargo = cargo::cargo("deny", "check bans licenses sources");
    if options.advisories {
        cargo.arg("advisories");
    }
    run(cargo).into()
}

/// The outcome of test programs that ran side by side, with the slowest of them.
fn all_tests(tested: &[Tested]) -> Outcome {
    let mut whole = Outcome::default();
    let mut times: Vec<_> = tested.iter().map(|it| (it.took, it.name.as_str())).collect();
    for Tested { ran, .. } in tested {
        let one = tests(Ran { ok: ran.ok, output: ran.output.clone() });
        whole.passed += one.passed;
        whole.failed += one.failed;
        if one.failed > 0 {
            whole.output += &one.output;
        }
    }
    times.sort_by(|one, two| two.cmp(one));
    let slowest: Vec<_> = times
        .iter()
        .take(3)
        .map(|(took, name)| format!("{name} {:.0} s", took.as_secs_f64()))
        .collect();
    let (passed, programs) = (whole.passed, tested.len());
    whole.note = format!("{passed} passed in {programs} programs; slowest: {}", slowest.join(", "));
    whole
}

fn tests(Ran { ok, output }: Ran) -> Outcome {
    let (passed, failed, ignored) = count(&output);
    let mut note = format!("{passed} passed");
    for (count, what) in [(failed, "failed"), (ignored, "ignored")] {
        if count > 0 {
            note += &format!(", {count} {what}");
        }
    }
    Outcome {
        passed,
        // A program that does not compile or dies half way reports no failed test.
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
