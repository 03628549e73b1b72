//! Tasks under kills and faults: the simulation, and a real process that is killed.

use crate::options::Options;
use crate::process::{Ran, command, run};
use crate::step::Outcome;

/// The tests and where they are. Each is a program of its own.
const TESTS: [&str; 2] = [
    "cargo test --package bowline --all-features --test simulation",
    "cargo test --package bowline-redb --test kill",
];

pub(crate) fn step(options: &Options) -> Outcome {
    let (mut said, mut kills) = (String::new(), None);
    for line in TESTS {
        let mut test = command(line);
        if options.full {
            test.env("BOWLINE_FULL", "1");
        }
        let Ran { ok, output } = run(test);
        if !ok {
            return Outcome::one(false, output);
        }
        // Which tool was killed when, and how many kills there were.
        said.extend(output.lines().filter(|line| line.contains(": [")).map(|it| format!("{it}\n")));
        let counted = output.lines().find_map(|line| line.strip_prefix("kills: "));
        kills = counted.map(str::to_owned).or(kills);
    }
    let note = kills.map_or_else(String::new, |kills| format!("{kills} kills at random steps"));
    Outcome { table: said, ..Outcome::one(true, String::new()).with_note(note) }
}
