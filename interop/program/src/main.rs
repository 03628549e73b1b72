//! Walks a server with the commands of the program, as a script would: each check is a command line
//! and its expected outcome.
//!
//! `program-walk BOWLINE CHECKS ERAS SERVER TRANSPORT -- COMMAND…`, or a URL in place of the
//! command. `ERAS` is `legacy`, `both`, or `either`, which alternates between the eras. It prints a
//! line per check on standard output.

mod check;
mod run;

use std::env;
use std::fs;
use std::process::ExitCode;

use self::check::Check;
use self::run::Target;

/// The value of `--revision`, and the era it leads to.
type Mode = (&'static str, &'static str);

fn main() -> ExitCode {
    match walk(env::args().skip(1).collect()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            tell(&format!("not ok walk begin: {why}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns whether all checks passed.
fn walk(mut arguments: Vec<String>) -> Result<bool, String> {
    if arguments.len() < 6 {
        return Err("expected BOWLINE CHECKS ERAS SERVER TRANSPORT (-- COMMAND… | URL)".to_owned());
    }
    let words = arguments.split_off(5);
    let [program, file, eras, server, transport] =
        <[String; 5]>::try_from(arguments).expect("the rest was split off");
    let text = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let checks = check::parse(&text).map_err(|why| format!("{file}: {why}"))?;
    let modes: &[Mode] = match (eras.as_str(), transport.as_str()) {
        ("legacy", _) => &[("auto", "legacy")],
        // In `auto` mode, a process that starts slowly is taken for a legacy one.
        ("both" | "either", "stdio") => &[("modern", "modern"), ("legacy", "legacy")],
        ("both" | "either", _) => &[("auto", "modern"), ("legacy", "legacy")],
        _ => return Err(format!("{eras}: expected legacy, both or either")),
    };
    let target = Target::new(program, words);
    let mut all_passed = true;
    let is_turn = |check: usize, mode: usize| eras != "either" || check % modes.len() == mode;
    for (turn, (mode, era)) in modes.iter().enumerate() {
        let traits = [server.as_str(), transport.as_str(), era];
        let chosen = checks.iter().filter(|check| check.is_for(&traits)).enumerate();
        for (_, check) in chosen.filter(|(index, _)| is_turn(*index, turn)) {
            all_passed &= make(check, &target, mode);
        }
    }
    Ok(all_passed)
}

/// Runs a check and reports its outcome.
fn make(check: &Check, target: &Target, mode: &str) -> bool {
    let outcome =
        target.run(check, mode).and_then(|ran| check.judge(&ran).map_err(|why| (why, ran)));
    match outcome {
        Ok(()) => {
            tell(&format!("ok {mode} {}", check.name));
            true
        }
        Err((why, ran)) => {
            tell(&format!("not ok {mode} {}: {why}\n{ran}", check.name));
            false
        }
    }
}

#[expect(clippy::print_stdout, reason = "the lines are the result")]
fn tell(line: &str) {
    println!("{line}");
}
