//! Systems that this machine is not: every crate is checked for Windows, macOS and static Linux,
//! the program for Windows runs under wine, and the static one in an empty root.
//!
//! Rust's standard library is compiled for each of them from Debian's sources, by Debian's
//! compiler: nothing is installed but packages of Debian and the C compiler `zig` from `PyPI`.

mod musl;
mod tools;
mod windows;

use std::path::Path;
use std::time::Duration;

pub(crate) use self::musl::put_null;
use self::tools::Tools;
pub(crate) use self::tools::{NOT_PUBLISHED, Target};
use crate::debian;
use crate::options::Options;
use crate::process::run;
use crate::step::Outcome;

/// How long a program that was built may run: longer than it needs on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

type Run = fn(&Tools) -> Part;

/// The parts, in the order in which they run.
const PARTS: [(&str, Run); 4] =
    [("windows", windows::part), ("linux-musl", musl::part), ("macos", macos), ("arm", arm)];

/// What became of a part.
#[derive(Default)]
struct Part {
    /// What was shown, a few words each.
    passed: Vec<String>,
    failed: Vec<String>,
    said: String,
}

impl Part {
    /// Takes in one result. What its program printed is kept if it failed.
    fn count(&mut self, what: &str, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed.push(what.to_owned()),
            Err(said) => {
                self.failed.push(what.to_owned());
                self.said += &format!("{what}\n{said}\n\n");
            }
        }
    }
}

/// Runs all parts, or the one that is named.
pub(crate) fn step(options: &Options) -> Outcome {
    let wanted = options.target.as_deref();
    if let Some(name) = wanted.filter(|name| PARTS.iter().all(|part| part.0 != *name)) {
        let names = PARTS.map(|part| part.0).join(", ");
        return Outcome::one(false, format!("{name:?} is not a part; there are {names}\n"));
    }
    let tools = match Tools::install() {
        Ok(tools) => tools,
        Err(why) => return Outcome::one(false, why),
    };
    let mut outcome = Outcome::default();
    for (name, run) in PARTS.iter().filter(|part| wanted.is_none_or(|name| name == part.0)) {
        let part = run(&tools);
        let count = |all: &[String]| u64::try_from(all.len()).unwrap_or(u64::MAX);
        outcome.passed += count(&part.passed);
        outcome.failed += count(&part.failed);
        outcome.output += &part.said;
        for (verdict, all) in [("ok", &part.passed), ("FAILED", &part.failed)] {
            if !all.is_empty() {
                outcome.table += &format!("    {name:11} {verdict:6} {}\n", all.join(", "));
            }
        }
    }
    outcome.note = format!("{} passed", outcome.passed);
    outcome
}

fn macos(tools: &Tools) -> Part {
    checked(tools, Target::MacOs)
}

fn arm(tools: &Tools) -> Part {
    checked(tools, Target::LinuxArm)
}

/// The first result of each part: every crate that is published is checked.
fn checked(tools: &Tools, target: Target) -> Part {
    let mut part = Part::default();
    part.count(&format!("cargo check for {}", target.name()), check(tools, target));
    part
}

fn check(tools: &Tools, target: Target) -> Result<(), String> {
    let mut cargo = tools.cargo("check", target)?;
    // Not the rest of the workspace, which people run on machines like this one.
    cargo.args(["--workspace", "--all-features"]);
    for package in NOT_PUBLISHED {
        cargo.args(["--exclude", package]);
    }
    let ran = run(cargo);
    if ran.ok { Ok(()) } else { Err(ran.output) }
}

/// The program for a system, as it is published. Returns its path, and how it is started here:
/// as it is, in an emulator, or under wine.
pub(crate) fn published(target: Target) -> Result<(String, String), String> {
    let tools = Tools::install()?;
    let program = build_in(&tools, target, "dist")?;
    let start = match target {
        Target::LinuxArm => {
            let emulator = debian::unpack_whole("platforms/qemu", "qemu-user-static")?;
            format!("{} {program}", emulator.join("usr/bin/qemu-aarch64-static").display())
        }
        Target::Windows => windows::starter(&tools, &program)?,
        Target::Linux | Target::MacOs => program.clone(),
    };
    Ok((program, start))
}

/// Builds the program for tests.
fn build(tools: &Tools, target: Target) -> Result<String, String> {
    build_in(tools, target, "dev")
}

/// Builds the program with a profile. Returns its path.
fn build_in(tools: &Tools, target: Target, profile: &str) -> Result<String, String> {
    let mut cargo = tools.cargo("build", target)?;
    if profile == "dist" {
        // The same source gives the same program, wherever it is.
        cargo.args(["-Ztrim-paths", "--config", "profile.dist.trim-paths=\"all\""]);
        cargo.env("BOWLINE_RELEASE", "1");
    }
    cargo.args(["--profile", profile, "--package", "bowline-cli", "--bin", "bowline"]);
    let ran = run(cargo);
    let suffix = if target == Target::Windows { ".exe" } else { "" };
    let folder = if profile == "dev" { "debug" } else { profile };
    let program = format!("{}/{}/{folder}/bowline{suffix}", tools::BUILT, target.name());
    match ran.ok && Path::new(&program).exists() {
        true => Ok(program),
        false => Err(ran.output),
    }
}
