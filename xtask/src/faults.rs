//! Every row of docs/reliability.md, run: faults, abuse and attacks against real processes.
//!
//! A row is one or more tests. A test that measures prints a line `figure: ROW | FIGURE | BOUND`,
//! and fails if the figure exceeds the bound. What ran becomes the table of the page.

mod rows;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use self::rows::{ROWS, Row, Tests};
use crate::cargo::{self, TestProgram};
use crate::debian;
use crate::options::Options;
use crate::process::Ran;
use crate::step::Outcome;

/// The page, and what encloses its table.
const PAGE: &str = "docs/reliability.md";
const BEGIN: &str = "<!-- written by `cargo xtask faults` -->\n";
const END: &str = "<!-- end -->";

/// What became of the tests of one program.
#[derive(Default)]
struct Said {
    ok: bool,
    /// Verdicts by test.
    tests: BTreeMap<String, bool>,
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
    let judged: Vec<(&Row, bool)> = ROWS.iter().map(|row| (row, row.passes(&all))).collect();
    let mut outcome = Outcome::default();
    for (_, passes) in &judged {
        outcome.passed += u64::from(*passes);
        outcome.failed += u64::from(!passes);
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
    for line in ran.output.lines() {
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
    fn passes(&self, all: &BTreeMap<&str, Said>) -> bool {
        self.tests.iter().all(|tests| {
            let Some(said) = all.get(tests.program) else { return false };
            tests.filters.iter().all(|filter| {
                let mut found =
                    said.tests.iter().filter(|(test, _)| test.contains(filter)).peekable();
                let is_whole = *filter == rows::WHOLE;
                if is_whole { said.ok } else { found.peek().is_some() && found.all(|(_, ok)| *ok) }
            })
        })
    }
}

/// The table of the page.
fn table(judged: &[(&Row, bool)], all: &BTreeMap<&str, Said>, is_full: bool) -> String {
    let size = if is_full { "full size" } else { "the small size of the tests" };
    let mut table = format!(
        "\nAt {size}:\n\n| row | what | passes | figure | bound |\n|---|---|---|---|---|\n"
    );
    for (row, passes) in judged {
        let own = all.values().flat_map(|said| &said.figures).filter(|it| it.0 == row.number);
        let (figures, mut bounds): (Vec<&str>, Vec<&str>) =
            own.map(|(_, figure, bound)| (figure.as_str(), bound.as_str())).unzip();
        bounds.dedup();
        let verdict = if *passes { "yes" } else { "**no**" };
        let (figures, bounds) = (figures.join("; "), bounds.join("; "));
        let _ =
            writeln!(table, "| {} | {} | {verdict} | {figures} | {bounds} |", row.number, row.what);
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
            tests: Box::leak(Box::new([Tests { program: "bowline faults", filters }])),
        };
        let all = BTreeMap::from([("bowline faults", said)]);
        assert!(row(&["flood::a"]).passes(&all));
        assert!(!row(&["flood::"]).passes(&all));
        assert!(!row(&["flood::a", "gone::"]).passes(&all), "a test that did not run has failed");
        let table = table(&[(&row(&["flood::a"]), true)], &all, true);
        let line = "| 1 | an endless line | yes | memory grew by 3 MiB | 24 MiB |\n";
        assert!(table.contains("full size") && table.contains(line), "{table}");
        let page = format!("before\n{BEGIN}old{END} after");
        assert_eq!(with_table(&page, "new"), Some(format!("before\n{BEGIN}new{END} after")));
    }

    #[test]
    fn every_row_is_there_once() {
        let numbers: Vec<u32> = ROWS.iter().map(|row| row.number).collect();
        assert_eq!(numbers, (1..=44).collect::<Vec<_>>());
    }
}
