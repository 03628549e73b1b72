//! Runs the checks, each within its time. A server that dies is started again for the next.

use std::cell::RefCell;

use bowline::Revision;
use tokio::time::timeout;

use crate::frames::Lost;
use crate::plan::{Lane, Unit, at_once, lanes};
use crate::probe::{NotPassed, Probe, Settings};
use crate::report::{Finding, Verdict};
use crate::rule::{self, Rule, Transport};

/// A check may take as long as this many exchanges.
const EXCHANGES: u32 = 8;
/// After this many connections in a row that could not be opened, the rest is skipped.
const FAILURES: usize = 2;

/// Which rules to check.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    /// Ids and groups; none means all.
    pub(crate) only: Vec<String>,
    pub(crate) skip: Vec<String>,
    /// Whether only the rules of `auth` can be checked.
    pub(crate) is_barred: bool,
}

impl Choice {
    pub(crate) fn takes(&self, rule: &Rule, revision: Revision, transport: Transport) -> bool {
        let is_named = |words: &[String]| words.iter().any(|word| rule.is_named(word));
        (!self.is_barred || rule.group_name() == "auth")
            && (self.only.is_empty() || is_named(&self.only))
            && !is_named(&self.skip)
            && rule.applies(revision, transport)
    }
}

/// A unit that has run.
struct Done {
    unit: Unit,
    probe: Probe,
    failures: Failures,
    findings: Vec<Finding>,
}

/// Runs every chosen check that applies, in these of the revisions that the server speaks. Findings
/// are in the order of the report, whatever ran at the same time.
pub(crate) async fn run(
    settings: &Settings,
    choice: &Choice,
    (revisions, spoken): (&[Revision], &[Revision]),
    on_finding: impl FnMut(&Finding),
) -> Vec<Finding> {
    let transport = settings.transport();
    let choice = &Choice { is_barred: settings.is_barred, ..choice.clone() };
    let on_finding = &RefCell::new(on_finding);
    let lanes = lanes(choice, revisions, transport).into_iter();
    let running = lanes.map(|lane| run_lane(lane, settings, spoken, on_finding)).collect();
    let done = at_once(settings.jobs(), running).await.into_iter().flatten();
    let (mains, beside): (Vec<Done>, Vec<Done>) = done.partition(|it| it.unit.is_main);
    let mut findings = Vec::new();
    for main in mains {
        let revision = main.unit.revision;
        let (mut mine, mut probe, mut failures) = (main.findings, main.probe, main.failures);
        for other in beside.iter().filter(|it| it.unit.is_of(revision)) {
            probe.observed.merge(other.probe.observed.clone());
            mine.extend(other.findings.iter().map(|it| Finding { revision, ..it.clone() }));
        }
        for rule in rule::watching().filter(|it| choice.takes(it, revision, transport)) {
            let finding = run_one(rule, &mut probe, &mut failures).await;
            on_finding.borrow_mut()(&finding);
            mine.push(finding);
        }
        mine.sort_by_key(|it| rule::all().position(|rule| rule.id == it.rule.id));
        findings.extend(mine);
    }
    findings
}

async fn run_lane(
    lane: Lane,
    settings: &Settings,
    spoken: &[Revision],
    on_finding: &RefCell<impl FnMut(&Finding)>,
) -> Vec<Done> {
    let mut failures = Failures::default();
    let mut done = Vec::new();
    for unit in lane {
        let mut probe = Probe::new(settings, unit.revision, spoken);
        let mut findings = Vec::new();
        for rule in &unit.rules {
            let finding = run_one(rule, &mut probe, &mut failures).await;
            on_finding.borrow_mut()(&finding);
            findings.push(finding);
        }
        probe.hang_up().await;
        done.push(Done { unit, probe, failures: failures.clone(), findings });
    }
    done
}

/// Connections in a row that could not be opened, and the last check before them.
#[derive(Clone, Default)]
struct Failures {
    count: usize,
    last: Option<&'static str>,
}

impl Failures {
    /// Describes a lost server, with the check that may have killed it.
    fn note(&mut self, lost: &Lost) -> String {
        if !lost.is_unconnected() {
            return lost.to_string();
        }
        self.count += 1;
        match self.last {
            Some(last) => format!("{lost}; the last check before that was {last}"),
            None => lost.to_string(),
        }
    }
}

async fn run_one(rule: &'static Rule, probe: &mut Probe, failures: &mut Failures) -> Finding {
    probe.evidence.clear();
    probe.rule = rule.id;
    let revision = probe.revision;
    let finding = |verdict, said| Finding { rule, revision, verdict, said, evidence: Vec::new() };
    if failures.count >= FAILURES {
        let why = "the server accepts no more connections".to_owned();
        return finding(Verdict::Skipped, vec![why]);
    }
    let most = probe.settings.timeout.saturating_mul(EXCHANGES);
    let silent = || Err(NotPassed::Lost(Lost::Silent(most)));
    let outcome = timeout(most, (rule.run)(probe)).await.unwrap_or_else(|_| silent());
    let is_counted = rule.counts_in(probe.settings.profile);
    let bad = if is_counted { Verdict::Failed } else { Verdict::Warned };
    let mut finding = match outcome {
        Ok(note) => finding(Verdict::Passed, note.into_iter().collect()),
        Err(NotPassed::Skipped(why)) => finding(Verdict::Skipped, vec![why]),
        Err(NotPassed::Broken(problems)) => finding(bad, problems),
        Err(NotPassed::Lost(lost)) => {
            probe.drop_connection();
            finding(bad, vec![failures.note(&lost)])
        }
    };
    if !finding.verdict.is_problem() {
        *failures = Failures { count: 0, last: Some(rule.id) };
    }
    probe.collect();
    finding.evidence = std::mem::take(&mut probe.evidence);
    finding
}
