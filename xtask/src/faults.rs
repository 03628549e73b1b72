//! Every row of docs/reliability.md, run: faults, abuse and attacks, on processes, over sockets or
//! in memory.
//!
//! A row is one or more tests. A test that measures prints a line `figure: ROW | FIGURE | BOUND`,
//! and fails if the figure exceeds the bound. One that cannot run on this machine prints
//! `skipped: WHY`. What ran becomes the table of the page.

mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

use self::rows::{ROWS, Row, Tests, Where};
use crate::cargo::{self, TestProgram};
use crate::debian;
use crate::options::Options;
use crate::process::Ran;
use crate::step::Outcome;

/// The page, and what encloses its table.
const PAGE: &str = "docs/reliability.md";
const BEGIN: &str = "<!-- written by `cargo xtask faults` -->\n";
const END: &str = "<!-- end -->";

/// What became of a row.
#[derive(Debug, PartialEq)]
enum Verdict {
    Passed,
    Failed,
    /// A part of it cannot run on this machine, and why.
    NotRun(String),
}

/// What became of the tests of one program.
#[derive(Default)]
struct Said {
    ok: bool,
    /// Verdicts by test.
    tests: BTreeMap<String, bool>,
    /// Why tests that passed did nothing, by test.
    skipped: BTreeMap<String, String>,
    /// Figures with their bounds, by row.
    figures: Vec<(u32, String, String)>,
    output: String,
}

pub(crate) fn step(options: &Options) -> Outcome {
    let programs = match cargo::test_programs(&rows::targets()) {
        Ok(programs) => programs,
        Err(why) => return Outcome::one(false, why),
    };
    if let Err(why) = cargo::build("--bins --examples") {
        return Outcome::one(false, why);
    }
    let mut all = BTreeMap::new();
    for name in rows::programs() {
        let said = match programs.iter().find(|program| program.name == name) {
            Some(program) => run(program, name, options),
            None => Said {
                output: format!("{name}: there is no such test program\n"),
                ..Said::default()
            },
        };
        println!("{name:24} {}", if said.ok { "ok" } else { "FAILED" });
        all.insert(name, said);
    }
    let judged: Vec<(&Row, Verdict)> = ROWS.iter().map(|row| (row, row.verdict(&all))).collect();
    let mut outcome = Outcome::default();
    for (_, verdict) in &judged {
        outcome.passed += u64::from(*verdict == Verdict::Passed);
        outcome.failed += u64::from(*verdict == Verdict::Failed);
    }
    for said in all.values().filter(|said| !said.ok) {
        outcome.output += &said.output;
    }
    let table = table(&judged, &all, options.full);
    outcome.table.clone_from(&table);
    if let Err(why) = write(&table) {
        outcome.failed += 1;
        outcome.output += &why;
    }
    outcome.note = format!("{} of {} rows", outcome.passed, ROWS.len());
    outcome
}

/// Runs what the rows want of a program.
fn run(program: &TestProgram, name: &str, options: &Options) -> Said {
    let wanted: Vec<&str> = ROWS.iter().flat_map(|row| row.filters(name)).collect();
    let mut variables = debian::variables();
    if options.full {
        variables.push(("BOWLINE_FULL".to_owned(), "1".into()));
    }
    let mut arguments = wanted.clone();
    if !wanted.contains(&rows::WHOLE) {
        // Attacks mostly wait.
        arguments.extend(["--show-output", "--test-threads", "4"]);
    } else {
        arguments.clear();
    }
    read(program.run(&arguments, &variables).ran)
}

fn read(ran: Ran) -> Said {
    let mut said = Said { ok: ran.ok, ..Said::default() };
    // Whose output this is: it comes after all verdicts, each under a line with the test's name.
    let mut speaker = None;
    for line in ran.output.lines() {
        if let Some(test) =
            line.strip_prefix("---- ").and_then(|it| it.strip_suffix(" stdout ----"))
        {
            speaker = Some(test.to_owned());
        }
        if let (Some(test), Some(why)) = (&speaker, line.strip_prefix("skipped: ")) {
            said.skipped.insert(test.clone(), why.to_owned());
        }
        let verdict = line.strip_prefix("test ").and_then(|line| line.split_once(" ... "));
        if let Some((test, verdict)) = verdict {
            said.tests.insert(test.trim().to_owned(), verdict == "ok");
        }
        said.figures.extend(figure(line));
    }
    said.output = ran.output;
    said
}

/// Reads `figure: ROW | FIGURE | BOUND`.
fn figure(line: &str) -> Option<(u32, String, String)> {
    let mut parts = line.strip_prefix("figure: ")?.splitn(3, " | ");
    let row = parts.next()?.parse().ok()?;
    Some((row, parts.next()?.to_owned(), parts.next()?.to_owned()))
}

impl Row {
    /// What it wants of a program.
    fn filters(&self, program: &str) -> impl Iterator<Item = &'static str> {
        let own: Vec<&Tests> = self.tests.iter().filter(|it| it.program == program).collect();
        own.into_iter().flat_map(|tests| tests.filters.iter().copied())
    }

    /// Whether each of its tests ran and passed.
    fn verdict(&self, all: &BTreeMap<&str, Said>) -> Verdict {
        let verdicts = self.tests.iter().map(|tests| match all.get(tests.program) {
            Some(said) => tests.verdict(said),
            None => Verdict::Failed,
        });
        verdicts.fold(Verdict::Passed, Verdict::and)
    }

    /// Where its tests run.
    fn places(&self) -> String {
        let places: BTreeSet<_> = self.tests.iter().map(|tests| tests.runs).collect();
        places.into_iter().map(Where::name).collect::<Vec<_>>().join(", ")
    }
}

impl Tests {
    fn verdict(&self, said: &Said) -> Verdict {
        let verdicts = self.filters.iter().map(|filter| {
            let is_it = |test: &str| test.contains(filter);
            let mut found = said.tests.iter().filter(|(test, _)| is_it(test)).peekable();
            let is_whole = *filter == rows::WHOLE;
            let passes =
                if is_whole { said.ok } else { found.peek().is_some() && found.all(|(_, ok)| *ok) };
            let skipped = said.skipped.iter().find(|(test, _)| is_it(test));
            match (passes, skipped) {
                (false, _) => Verdict::Failed,
                (true, Some((_, why))) => Verdict::NotRun(why.clone()),
                (true, None) => Verdict::Passed,
            }
        });
        verdicts.fold(Verdict::Passed, Verdict::and)
    }
}

impl Verdict {
    /// The worse of two.
    fn and(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Failed, _) | (Self::NotRun(_), Self::Passed) => self,
            _ => other,
        }
    }
}

/// The table of the page.
fn table(judged: &[(&Row, Verdict)], all: &BTreeMap<&str, Said>, is_full: bool) -> String {
    let size = if is_full { "full size" } else { "the small size of the tests" };
    let mut table = format!(
        "\nAt {size}:\n\n| row | what | runs on | passes | figure | bound |\n\
         |---|---|---|---|---|---|\n"
    );
    for (row, verdict) in judged {
        let own = all.values().flat_map(|said| &said.figures).filter(|it| it.0 == row.number);
        let (figures, mut bounds): (Vec<&str>, Vec<&str>) =
            own.map(|(_, figure, bound)| (figure.as_str(), bound.as_str())).unzip();
        bounds.dedup();
        let verdict = match verdict {
            Verdict::Passed => "yes",
            Verdict::Failed => "**no**",
            Verdict::NotRun(why) => &format!("not run: {why}"),
        };
        let (number, what, places) = (row.number, row.what, row.places());
        let (figures, bounds) = (figures.join("; "), bounds.join("; "));
        let _ =
            writeln!(table, "| {number} | {what} | {places} | {verdict} | {figures} | {bounds} |");
    }
    table + "\n"
}

/// Puts the table into the page.
fn write(table: &str) -> Result<(), String> {
    let broken = |error: std::io::Error| format!("{PAGE}: {error}\n");
    let page = fs::read_to_string(PAGE).map_err(broken)?;
    let page =
        with_table(&page, table).ok_or_else(|| format!("{PAGE}: its table has no marks\n"))?;
    fs::write(PAGE, page).map_err(broken)
}

fn with_table(page: &str, table: &str) -> Option<String> {
    let begin = page.find(BEGIN)? + BEGIN.len();
    let end = begin + page[begin..].find(END)?;
    Some(format!("{}{table}{}", &page[..begin], &page[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_and_figures_are_read() {
        let output = "\ntest flood::a ... ok\ntest flood::b ... FAILED\n\
                      figure: 1 | memory grew by 3 MiB | 24 MiB\nfigure: nonsense\n";
        let said = read(Ran { ok: false, output: output.to_owned() });
        let verdicts: Vec<_> = said.tests.iter().map(|(test, ok)| (test.as_str(), *ok)).collect();
        assert_eq!(verdicts, [("flood::a", true), ("flood::b", false)]);
        let figure = (1, "memory grew by 3 MiB".to_owned(), "24 MiB".to_owned());
        assert_eq!(said.figures, [figure]);
        let row = |filters| Row {
            number: 1,
            what: "an endless line",
            tests: Box::leak(Box::new([Tests {
                runs: Where::Sockets,
                program: "bowline faults",
                filters,
            }])),
        };
        let all = BTreeMap::from([("bowline faults", said)]);
        assert_eq!(row(&["flood::a"]).verdict(&all), Verdict::Passed);
        assert_eq!(row(&["flood::"]).verdict(&all), Verdict::Failed);
        let verdict = row(&["flood::a", "gone::"]).verdict(&all);
        assert_eq!(verdict, Verdict::Failed, "a test that did not run has failed");
        let table = table(&[(&row(&["flood::a"]), Verdict::Passed)], &all, true);
        let line = "| 1 | an endless line | sockets | yes | memory grew by 3 MiB | 24 MiB |\n";
        assert!(table.contains("full size") && table.contains(line), "{table}");
        let page = format!("before\n{BEGIN}old{END} after");
        assert_eq!(with_table(&page, "new"), Some(format!("before\n{BEGIN}new{END} after")));
    }

    #[test]
    fn a_test_that_skips_itself_has_not_run() {
        let output = "test vanish::a ... ok\ntest load::b ... ok\n\nsuccesses:\n\n\
                      ---- vanish::a stdout ----\nskipped: this needs `ip`\n\n\n\
                      ---- load::b stdout ----\nsaid something\n";
        let said = read(Ran { ok: true, output: output.to_owned() });
        let all = BTreeMap::from([("bowline http", said)]);
        const BOTH: &[Tests] = &[
            Tests {
                runs: Where::Memory,
                program: "bowline http",
                filters: &["load::", "vanish::"],
            },
            Tests { runs: Where::Process, program: "bowline http", filters: &["load::"] },
        ];
        let row = Row { number: 22, what: "a peer that vanishes", tests: BOTH };
        let verdict = row.verdict(&all);
        assert_eq!(verdict, Verdict::NotRun("this needs `ip`".to_owned()));
        let table = table(&[(&row, verdict)], &all, false);
        let line =
            "| 22 | a peer that vanishes | processes, memory | not run: this needs `ip` | | |";
        assert!(table.replace("  ", " ").contains(line), "{table}");
        let other = Row { number: 1, what: "", tests: &BOTH[1..] };
        assert_eq!(other.verdict(&all), Verdict::Passed);
    }

    #[test]
    fn every_row_is_there_once() {
        let numbers: Vec<u32> = ROWS.iter().map(|row| row.number).collect();
        assert_eq!(numbers, (1..=44).collect::<Vec<_>>());
    }
}
