//! Runs the checks, each within its time; a server that dies is started again for the next.

use std::cell::RefCell;
use std::time::Duration;

use bowline::Revision;
use tokio::time::timeout;

use super::plan::{Lane, Unit, at_once, lanes};
use super::probe::{Probe, Settings, Trouble};
use super::report::{Finding, Verdict};
use super::table::{self, Check, Severity, Transport};
use super::wire::Lost;

/// How many exchanges' time a check may take in all.
const EXCHANGES: u32 = 8;
/// After this many connections or sessions in a row that could not be opened, the rest is skipped.
const FAILURES: usize = 2;

/// Which checks are wanted.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
    /// Ids and groups; none means all.
    pub(super) only: Vec<String>,
    pub(super) skip: Vec<String>,
    /// Whether the server lets nobody in: all but that is left out.
    pub(super) is_barred: bool,
}

impl Choice {
    /// Whether a check is wanted.
    fn wants(&self, check: &Check) -> bool {
        let is_named = |words: &[String]| words.iter().any(|word| check.is_named(word));
        (self.only.is_empty() || is_named(&self.only)) && !is_named(&self.skip)
    }

    /// The same, where it also means something.
    pub(super) fn takes(&self, check: &Check, revision: Revision, transport: Transport) -> bool {
        let is_open = !self.is_barred || check.group() == "auth";
        is_open && self.wants(check) && check.applies(revision, transport)
    }

    /// A word that names neither a check nor a group.
    pub(super) fn unknown(&self) -> Option<&str> {
        let is_known = |word: &&String| table::all().any(|check| check.is_named(word));
        self.only.iter().chain(&self.skip).find(|word| !is_known(word)).map(String::as_str)
    }
}

/// What a unit came to.
struct Done {
    unit: Unit,
    probe: Probe,
    failures: Failures,
    findings: Vec<Finding>,
}

/// Runs every wanted check that applies, in these of the revisions that the server speaks. The
/// findings come in the order of the report, whatever was done at the same time.
pub(super) async fn run(
    settings: &Settings,
    choice: &Choice,
    (revisions, spoken): (&[Revision], &[Revision]),
    told: impl FnMut(&Finding),
) -> Vec<Finding> {
    let transport = settings.transport();
    let choice = &Choice { is_barred: settings.is_barred, ..choice.clone() };
    let told = &RefCell::new(told);
    let lanes = lanes(choice, revisions, transport).into_iter();
    let work = lanes.map(|lane| run_lane(lane, settings, spoken, told)).collect();
    let done = at_once(settings.jobs(), work).await.into_iter().flatten();
    let (mains, beside): (Vec<Done>, Vec<Done>) = done.partition(|it| it.unit.is_main);
    let mut findings = Vec::new();
    for main in mains {
        let revision = main.unit.revision;
        let (mut mine, mut probe, mut failures) = (main.findings, main.probe, main.failures);
        for other in beside.iter().filter(|it| it.unit.is_of(revision)) {
            probe.seen.merge(other.probe.seen.clone());
            mine.extend(other.findings.iter().map(|it| Finding { revision, ..it.clone() }));
        }
        for check in table::watching().filter(|it| choice.takes(it, revision, transport)) {
            let finding = run_one(check, &mut probe, &mut failures).await;
            told.borrow_mut()(&finding);
            mine.push(finding);
        }
        mine.sort_by_key(|it| table::all().position(|check| check.id == it.check.id));
        findings.extend(mine);
    }
    findings
}

async fn run_lane(
    lane: Lane,
    settings: &Settings,
    spoken: &[Revision],
    told: &RefCell<impl FnMut(&Finding)>,
) -> Vec<Done> {
    let mut failures = Failures::default();
    let mut done = Vec::new();
    for unit in lane {
        let mut probe = Probe::new(settings, unit.revision, spoken);
        let mut findings = Vec::new();
        for check in &unit.checks {
            let finding = run_one(check, &mut probe, &mut failures).await;
            told.borrow_mut()(&finding);
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
    /// What to say of a server that was lost: with the check that may have killed it.
    fn note(&mut self, lost: &Lost) -> String {
        if !matches!(lost, Lost::Unreachable(_) | Lost::NoSession(_)) {
            return lost.to_string();
        }
        self.count += 1;
        match self.last {
            Some(last) => format!("{lost}; the last check that it answered was {last}"),
            None => lost.to_string(),
        }
    }
}

async fn run_one(check: &'static Check, probe: &mut Probe, failures: &mut Failures) -> Finding {
    probe.evidence.clear();
    let revision = probe.revision;
    let finding = |verdict, said| Finding { check, revision, verdict, said, evidence: Vec::new() };
    if failures.count >= FAILURES {
        let why = "the server could not be connected to any more".to_owned();
        return finding(Verdict::Skipped, vec![why]);
    }
    let most = probe.settings.timeout.saturating_mul(EXCHANGES);
    let outcome = match timeout(most, (check.run)(probe)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Trouble::Lost(Lost::Silent(most))),
    };
    let bad = if check.severity == Severity::Must { Verdict::Failed } else { Verdict::Warned };
    let mut finding = match outcome {
        Ok(note) => finding(Verdict::Passed, note.into_iter().collect()),
        Err(Trouble::Skipped(why)) => finding(Verdict::Skipped, vec![why]),
        Err(Trouble::Broken(problems)) => finding(bad, problems),
        Err(Trouble::Lost(lost)) => {
            probe.drop_link();
            finding(bad, vec![failures.note(&lost)])
        }
    };
    if !matches!(finding.verdict, Verdict::Failed | Verdict::Warned) {
        *failures = Failures { count: 0, last: Some(check.id) };
    }
    probe.collect();
    finding.evidence = std::mem::take(&mut probe.evidence);
    finding
}

/// The default for each exchange: 10 s.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
