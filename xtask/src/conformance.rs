//! Runs the official conformance suite against our server and our client.
//!
//! `conformance/` holds both and pins the release of the suite, which is installed and run in
//! `target/conformance`. A warning of the suite counts as a failure.

mod client;
mod verdict;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use self::verdict::{MayFail, Verdict};
use crate::cargo;
use crate::install::{Environment, Language};
use crate::options::Options;
use crate::process::{Ran, run};
use crate::server::Server;
use crate::step::Outcome;

const SUITE: Environment = Environment {
    source: "conformance",
    place: "target",
    folder: "conformance",
    inputs: &[".npmrc", "package.json", "package-lock.json"],
    language: Language::Node(22),
};
/// Where the suite is, and what it leaves behind.
pub(crate) const PLACE: &str = "target/conformance";

/// Scenarios that run together.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    arguments: &'static str,
    /// How many there are, so that none can go missing unnoticed.
    scenarios: usize,
}

pub(crate) const fn set(name: &'static str, arguments: &'static str, scenarios: usize) -> Set {
    Set { name, arguments, scenarios }
}

const SETS: &[Set] = &[
    set("required by 2025-11-25", "--requirements 2025-11-25", 33),
    set("required by 2026-07-28", "--requirements 2026-07-28", 50),
    set("all of 2025-03-26", "--suite all --spec-version 2025-03-26", 1),
    set("all of 2025-06-18", "--suite all --spec-version 2025-06-18", 27),
    set("all of 2025-11-25", "--suite all --spec-version 2025-11-25", 33),
    set("all of 2026-07-28", "--suite all --spec-version 2026-07-28", 40),
    set("all, with extensions", "--suite all", 65),
];

/// Every scenario passes.
const NOT_YET: MayFail = &[];

/// What the suite itself skips whatever a server does, and why. Nothing else may be skipped: a
/// capability that we stop declaring would take its checks with it unnoticed.
const SKIPPED_OF_SERVERS: MayFail = &[(
    "tasks-status-notifications/tasks-status-notifications",
    "the suite does not listen yet; `a_listener_hears_of_its_tasks_and_no_others` does",
)];
/// The same of clients.
const SKIPPED_OF_CLIENTS: MayFail = &[(
    "http-standard-headers in 2026-07-28/sep-2243-client-includes-standard-headers",
    "the suite waits for a handshake too, which this revision does not have",
)];

/// Installs the suite, builds and starts the server, and runs the sets one after the other, because
/// they share the server and one of them changes its lists.
pub(crate) fn step(_: &Options) -> Outcome {
    match judge() {
        Ok(judged) => {
            let mut wrong = stale(NOT_YET, judged.iter().map(|(_, it)| it));
            let known = [SKIPPED_OF_SERVERS, SKIPPED_OF_CLIENTS].concat();
            wrong.extend(wrong_skips(&known, judged.iter().map(|(_, it)| it)));
            outcome(&judged, wrong)
        }
        Err(why) => Outcome::one(false, why),
    }
}

fn judge() -> Result<Vec<(&'static str, Verdict)>, String> {
    let suite = Suite::install()?;
    cargo::build("--bin conformance-server --bin conformance-client")?;
    let arguments = ["--http", "127.0.0.1:{port}"];
    let server = Server::start("target/debug/conformance-server", &arguments, PLACE)?;
    let mut judged = Vec::new();
    for set in SETS {
        judged.push((set.name, suite.run(set, NOT_YET, &server.url("/mcp"))?));
    }
    let program = std::path::absolute("target/debug/conformance-client");
    let program = program.map_err(|error| error.to_string())?;
    judged.push(("client, one by one", client::judge(&suite, &program)?));
    Ok(judged)
}

/// What the suite says when it has changed the tools of one node of a fleet.
const OF_ONE_NODE: &str = "Not testable: the set of tools changed between";

/// Runs the sets against a server that somebody else has started.
pub(crate) fn of_server(url: &str) -> Outcome {
    let mut untestable = 0;
    let mut judge = || {
        let suite = Suite::install()?;
        let run = |set: &Set| {
            let mut verdict = suite.run(set, NOT_YET, url)?;
            let found = verdict.problems.len();
            // A tool of the suite changes the list of one node only, so two answers may differ.
            verdict.problems.retain(|problem| !problem.contains(OF_ONE_NODE));
            untestable += found - verdict.problems.len();
            Ok::<_, String>((set.name, verdict))
        };
        SETS.iter().map(run).collect::<Result<Vec<_>, _>>()
    };
    match judge() {
        Ok(judged) => {
            let wrong = wrong_skips(SKIPPED_OF_SERVERS, judged.iter().map(|(_, it)| it));
            let mut outcome = outcome(&judged, wrong);
            outcome.note += &format!("; {untestable} cannot be tested with several nodes");
            outcome
        }
        Err(why) => Outcome::one(false, why),
    }
}

/// The suite, installed.
pub(crate) struct Suite {
    node: PathBuf,
}

impl Suite {
    pub(crate) fn install() -> Result<Self, String> {
        SUITE.copy(SUITE.inputs)?;
        Ok(Self { node: SUITE.install()? })
    }

    /// Runs a set against a server.
    pub(crate) fn run(&self, set: &Set, may_fail: MayFail, url: &str) -> Result<Verdict, String> {
        let results = Path::new(PLACE).join("results").join(set.name.replace([' ', ','], "-"));
        // Results of an earlier run must not count.
        let _ = fs::remove_dir_all(&results);
        let mut suite = self.command();
        suite.args(["server", "--url", url]);
        suite.args(set.arguments.split(' ')).arg("--output-dir").arg(&results);
        let Ran { ok, output } = run(suite);
        let mut verdict = Verdict::read(&results, may_fail)?;
        verdict.finish(set.scenarios, ok, &output);
        Ok(verdict)
    }
}

/// What became of the sets; `stale` is what else is wrong.
pub(crate) fn outcome(judged: &[(&str, Verdict)], stale: Vec<String>) -> Outcome {
    let mut problems: Vec<String> = Vec::new();
    for (set, verdict) in judged {
        let of_set = verdict.problems.iter().map(|problem| format!("{set}: {problem}"));
        problems.extend(of_set);
    }
    problems.extend(stale);
    let passed = judged.iter().map(|(_, verdict)| verdict.passed).sum();
    Outcome {
        passed,
        failed: problems.len().try_into().unwrap_or(u64::MAX),
        note: format!("{passed} checks in {} sets", judged.len()),
        output: problems.join("\n"),
        table: table(judged),
    }
}

/// Checks that were skipped and are not known to be, and known ones that were not.
fn wrong_skips<'a>(
    known: &[(&str, &str)],
    verdicts: impl Iterator<Item = &'a Verdict>,
) -> Vec<String> {
    let skips: BTreeSet<&str> =
        verdicts.flat_map(|verdict| &verdict.skips).map(String::as_str).collect();
    let is_known = |name: &str| known.iter().any(|(known, _)| *known == name);
    let unknown = skips.iter().filter(|name| !is_known(name)).map(|name| {
        format!("`{name}` was skipped; help: does the server still declare what it is about?")
    });
    let stale = known.iter().filter(|(name, _)| !skips.contains(name)).map(|(name, why)| {
        format!("`{name}` runs, but is listed as a check that the suite always skips ({why})")
    });
    unknown.chain(stale).collect()
}

/// Scenarios that may fail but pass in every set: they must leave the list.
pub(crate) fn stale<'a>(
    may_fail: &[(&str, &str)],
    verdicts: impl Iterator<Item = &'a Verdict>,
) -> Vec<String> {
    let excused = |it: &'a Verdict| it.excused.iter().chain(&it.excused_checks);
    let excused: Vec<_> = verdicts.flat_map(excused).collect();
    let excuses = |prefix: &str| excused.iter().any(|name| name.starts_with(prefix));
    let stale = may_fail.iter().filter(|(prefix, _)| !excuses(prefix));
    stale
        .map(|(prefix, why)| {
            format!("`{prefix}` passes, but is listed as a scenario that may fail ({why})")
        })
        .collect()
}

fn table(judged: &[(&str, Verdict)]) -> String {
    let row = |first: &str, cells: [String; 6]| {
        let cells: String = cells.iter().map(|cell| format!("{cell:>11}")).collect();
        format!("    {first:24}{cells}\n")
    };
    let head = ["scenarios", "passed", "failed", "warned", "skipped", "not yet"];
    let mut table = row("", head.map(str::to_owned));
    for (set, verdict) in judged {
        let scenarios = verdict.scenarios - verdict.excused.len();
        let counts = [verdict.passed, verdict.failed, verdict.warned, verdict.skipped];
        let [passed, failed, warned, skipped] = counts.map(|count| count.to_string());
        let not_yet = verdict.excused.len().to_string();
        table += &row(set, [scenarios.to_string(), passed, failed, warned, skipped, not_yet]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_are_checked_by_name() {
        let known: MayFail = &[("one/a", "for a reason"), ("two/b", "for another")];
        let skipping = |names: &[&str]| Verdict {
            skips: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Verdict::default()
        };
        let fine = [skipping(&["one/a"]), skipping(&["two/b", "one/a"]), skipping(&[])];
        assert_eq!(wrong_skips(known, fine.iter()), [""; 0]);
        let wrong = wrong_skips(known, [skipping(&["one/a", "three/c"])].iter());
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].starts_with("`three/c` was skipped"), "{wrong:?}");
        assert!(wrong[1].starts_with("`two/b` runs"), "{wrong:?}");
    }
}
