//! The commands of the repository: test it, tidy it, fuzz it. `cargo xtask` prints the menu.
//!
//! Standard library only, so that the one test command starts seconds after a clone.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "commands for people: what they print is what they are for"
)]

mod auth;
mod bridge;
mod browser;
mod cargo;
mod conformance;
mod debian;
mod faults;
mod fleet;
mod fuzz;
mod inspector;
mod install;
mod interop;
mod need;
mod options;
mod platforms;
mod process;
mod release;
mod room;
mod server;
mod soak;
mod step;
mod steps;
mod tasks;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

use options::Options;
use step::Step;

/// One line of the menu.
struct Command {
    name: &'static str,
    /// What may follow the name, as the menu shows it.
    takes: &'static [&'static str],
    about: &'static str,
    /// Lanes that run side by side; the steps of a lane run one after the other.
    lanes: &'static [&'static [Step]],
}

const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        takes: &[],
        about: "everything a change must pass; installs what it needs",
        lanes: steps::TEST,
    },
    Command { name: "fmt", takes: &[], about: "is the code formatted", lanes: &[&[steps::FMT]] },
    Command {
        name: "clippy",
        takes: &[],
        about: "lints, warnings are errors",
        lanes: &[&[steps::CLIPPY]],
    },
    Command {
        name: "unit",
        takes: &[],
        about: "tests, with all features, with none, and in the documentation",
        lanes: &[&[steps::UNIT, steps::BARE, steps::DOCTEST]],
    },
    Command {
        name: "outside",
        takes: &[],
        about: "the extension in `examples/receipts`, which is not a part of the workspace",
        lanes: &[&[steps::OUTSIDE]],
    },
    Command {
        name: "doc",
        takes: &[],
        about: "does the documentation build without warnings",
        lanes: &[&[steps::DOC]],
    },
    Command {
        name: "tidy",
        takes: &[],
        about: "the rules of CONTRIBUTING.md that no other tool checks",
        lanes: &[&[steps::TIDY]],
    },
    Command {
        name: "interop",
        takes: &[],
        about: "clients of others walk our servers, our client walks theirs; installs them",
        lanes: &[&[steps::INTEROP]],
    },
    Command {
        name: "frameworks",
        takes: &[],
        about: "agent frameworks convert and call our tools; installs 2 GB, so not in `test`",
        lanes: &[&[steps::FRAMEWORKS]],
    },
    Command {
        name: "auth",
        takes: &[],
        about: "our server and client with an authorization server of another maker; installs it",
        lanes: &[&[steps::AUTH]],
    },
    Command {
        name: "browser",
        takes: &[],
        about: "an app of ours in the official host library and a real browser; installs both",
        lanes: &[&[steps::BROWSER]],
    },
    Command {
        name: "conformance",
        takes: &[],
        about: "the official conformance suite, against a server of ours",
        lanes: &[&[steps::CONFORMANCE]],
    },
    Command {
        name: "fleet",
        takes: &[options::FULL],
        about: "three nodes on Postgres and Redis while everything fails, then the official suite",
        lanes: &[&[steps::FLEET]],
    },
    Command {
        name: "tasks",
        takes: &[options::FULL],
        about: "tasks in simulated worlds, and in a process that is killed at every step",
        lanes: &[&[steps::TASKS]],
    },
    Command {
        name: "faults",
        takes: &[options::FULL],
        about: "every row of docs/reliability.md, which it writes; an hour with --full",
        lanes: &[&[steps::FAULTS]],
    },
    Command {
        name: "soak",
        takes: &[options::FULL],
        about: "mixed traffic on one process, whose memory stays flat; an hour with --full",
        lanes: &[&[steps::SOAK]],
    },
    Command {
        name: "bridge",
        takes: &[],
        about: "the official conformance suite through the bridge, in front of the other era",
        lanes: &[&[steps::BRIDGE]],
    },
    Command {
        name: "platforms",
        takes: &[options::PART],
        about: "Windows under wine, a static program in an empty root, checks for macOS and Arm",
        lanes: &[&[steps::PLATFORMS]],
    },
    Command {
        name: "release",
        takes: &[options::QUICK],
        about: "all packages, each tried, in target/release-artifacts; not in `test`",
        lanes: &[&[steps::RELEASE]],
    },
    Command {
        name: "fuzz",
        takes: &[options::TARGET, options::SECONDS],
        about: "fuzz one target or all of them, 6 seconds each",
        lanes: &[&[steps::FUZZ]],
    },
    Command {
        name: "bench",
        takes: &[options::PART, options::QUICK],
        about: "measure, alone and beside rmcp, and write docs/performance.md; not in `test`",
        lanes: &[&[steps::BENCH]],
    },
    Command {
        name: "inspector",
        takes: &[],
        about: "ask beside MCP Inspector, and write docs/inspector.md; installs it; not in `test`",
        lanes: &[&[steps::INSPECTOR]],
    },
    Command {
        name: "deny",
        takes: &[options::ADVISORIES],
        about: "licences and sources of dependencies; takes minutes to install, so not in `test`",
        lanes: &[&[steps::DENY]],
    },
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        println!("{}", menu());
        return ExitCode::SUCCESS;
    };
    if ["help", "--help", "-h"].contains(&name.as_str()) {
        println!("{}", menu());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        return misused(&format!("`{name}` is not a command"));
    };
    let options = match Options::parse(command.takes, arguments) {
        Ok(options) => options,
        Err(error) => return misused(&format!("{name}: {error}")),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the repository");
    if let Err(error) = std::env::set_current_dir(root) {
        return misused(&format!("{}: {error}", root.display()));
    }
    step::run_all(command.lanes, &options)
}

fn misused(error: &str) -> ExitCode {
    eprintln!("error: {error}\n\n{}", menu());
    ExitCode::from(2)
}

fn menu() -> String {
    let mut text = "cargo xtask <command>\n".to_owned();
    for command in COMMANDS {
        let usage = [&[command.name], command.takes].concat().join(" ");
        text += &format!("\n  {usage:32} {}", command.about);
    }
    text
}
