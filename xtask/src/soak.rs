//! The soak: mixed traffic on one process, which must hold as much afterwards as before.

use crate::cargo;
use crate::options::Options;
use crate::process::Ran;
use crate::step::Outcome;

pub(crate) fn step(options: &Options) -> Outcome {
    let programs = match cargo::test_programs("--test soak") {
        Ok(programs) => programs,
        Err(why) => return Outcome::one(false, why),
    };
    let Some(program) = programs.first() else {
        return Outcome::one(false, "there is no such test program\n".to_owned());
    };
    let mut variables = Vec::new();
    if options.full {
        variables.push(("BOWLINE_FULL".to_owned(), "1".into()));
    }
    let Ran { ok, output } = program.run(&[], &variables).ran;
    let figure = output.lines().find_map(|line| line.strip_prefix("figure: 40 | "));
    let note = figure.unwrap_or_default().to_owned();
    Outcome::one(ok, output).with_note(note)
}
