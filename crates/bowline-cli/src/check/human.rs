//! The report for people: problems first, each once, with the revisions that have it.

use std::cmp::Reverse;
use std::fmt::Write;

use bowline::Revision;
use bowline_check::text::shorten;
use bowline_check::{Finding, Profile, Report, Rule, Severity, Verdict};
use unicode_width::UnicodeWidthChar;

use crate::text::{plain, wrap};

/// How much of a message is shown, and in how many lines at most.
const MOST: usize = 240;
const LINES: usize = 3;
/// How many exchanges, and how many problems of one check, are shown.
const EXCHANGES: usize = 2;
const PROBLEMS: usize = 8;
/// Lines are not made narrower than this.
const NARROWEST: usize = 24;

/// How the report is written.
pub(super) struct Look<'a> {
    /// Colours the word for a verdict.
    pub(super) paint: &'a dyn Fn(Verdict, &str) -> String,
    /// How wide lines may be, if that matters.
    pub(super) columns: Option<usize>,
    /// Whether to list checks that passed or were skipped, too.
    pub(super) all: bool,
}

impl Look<'_> {
    /// How much room there is after so many columns.
    fn room(&self, indent: usize) -> Option<usize> {
        self.columns.map(|columns| columns.saturating_sub(indent).max(NARROWEST))
    }

    /// Prose after a head that is written already; further lines stand under the first.
    fn prose(&self, text: &str, indent: usize) -> String {
        let text = plain(text);
        let Some(room) = self.room(indent) else { return text.into_owned() };
        let lines: Vec<_> = wrap(&text, room).iter().flat_map(|line| fold(line, room)).collect();
        hang(&lines, indent)
    }

    /// The beginning of a message, broken anywhere.
    fn message(&self, text: &str, indent: usize) -> String {
        match self.room(indent) {
            None => shorten(text, MOST),
            Some(room) => hang(&fold(&shorten(text, MOST.min(LINES * room - 16)), room), indent),
        }
    }
}

fn hang(lines: &[String], indent: usize) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// A line in pieces of so many columns.
fn fold(line: &str, columns: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut taken = 0;
    for letter in line.chars() {
        let wide = letter.width().unwrap_or(0);
        if taken + wide > columns {
            pieces.push(String::new());
            taken = 0;
        }
        taken += wide;
        if let Some(piece) = pieces.last_mut() {
            piece.push(letter);
        }
    }
    pieces
}

/// The same problem in several revisions.
struct Group<'a> {
    first: &'a Finding,
    revisions: Vec<Revision>,
}

/// Writes a report for people.
pub(super) fn render(report: &Report, look: &Look<'_>) -> String {
    let mut text = format!("{}\n\n", look.prose(&head(report), 0));
    for group in groups(report, |finding| finding.verdict.is_problem()) {
        problem(&mut text, report, &group, look);
    }
    if look.all {
        for group in groups(report, |finding| !finding.verdict.is_problem()) {
            let Finding { rule, verdict, said, .. } = group.first;
            let word = (look.paint)(*verdict, &format!("{:7}", verdict.as_str()));
            let note =
                if said.is_empty() { String::new() } else { format!(": {}", said.join("; ")) };
            let rest = format!("{} {}{note}", rule.id, span(report, &group.revisions));
            let _ = writeln!(text, "{word} {}", look.prose(&rest, 8));
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{}", look.prose(&sum(report), 0));
    text
}

fn head(report: &Report) -> String {
    let server = report.server.as_ref().map_or_else(String::new, |server| format!(" ({server})"));
    let target = shorten(&report.target, MOST);
    let transport = report.transport.as_str();
    if report.barred.is_some() {
        return format!("{target}, {transport}: only what can be checked without a token");
    }
    let revisions: Vec<&str> = report.revisions.iter().map(|revision| revision.as_str()).collect();
    format!("{target}{server}, {transport}: {}", revisions.join(", "))
}

/// Findings that say the same, in order.
fn groups(report: &Report, pick: impl Fn(&Finding) -> bool) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for finding in report.findings.iter().filter(|finding| pick(finding)) {
        let is_same = |group: &&mut Group<'_>| {
            group.first.rule.id == finding.rule.id
                && group.first.verdict == finding.verdict
                && group.first.said == finding.said
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.revisions.push(finding.revision),
            None => groups.push(Group { first: finding, revisions: vec![finding.revision] }),
        }
    }
    groups.sort_by_key(|it| (Reverse(it.first.verdict), it.first.rule.severity));
    groups
}

fn problem(text: &mut String, report: &Report, group: &Group<'_>, look: &Look<'_>) {
    const LABEL: usize = 13;
    let Finding { rule, verdict, said, evidence, revision } = group.first;
    let word = (look.paint)(*verdict, &format!("{:4}", verdict.as_str().to_uppercase()));
    let title = format!("{} ({}) {}", rule.id, rule.severity, span(report, &group.revisions));
    let _ = writeln!(text, "{word} {}", look.prose(&title, 5));
    let mut lines = vec![("rule:", look.prose(rule.says, LABEL))];
    for problem in said.iter().take(PROBLEMS) {
        lines.push(("found:", look.prose(&shorten(problem, 2 * MOST), LABEL)));
    }
    if said.len() > PROBLEMS {
        lines.push(("found:", format!("… and {} more", said.len() - PROBLEMS)));
    }
    let shown = evidence.len().saturating_sub(EXCHANGES);
    for exchange in &evidence[shown..] {
        lines.push(("sent:", look.message(&exchange.sent, LABEL)));
        let received = exchange.received.iter().take(3);
        lines.extend(received.map(|received| ("got:", look.message(received, LABEL))));
    }
    lines.push(("fix:", look.prose(rule.remedy, LABEL)));
    // Whole on one line, so that it can be opened.
    lines.push(("see:", rule.link(*revision)));
    for (label, words) in lines {
        let _ = writeln!(text, "     {label:7} {words}");
    }
    text.push('\n');
}

/// The revisions of a finding, if not all that were checked.
fn span(report: &Report, revisions: &[Revision]) -> String {
    if revisions.len() == report.revisions.len() && report.revisions.len() > 1 {
        return "in all revisions".to_owned();
    }
    let names: Vec<&str> = revisions.iter().map(|revision| revision.as_str()).collect();
    format!("in {}", names.join(", "))
}

/// How many checks ended how, and which of them decide the exit status.
fn sum(report: &Report) -> String {
    let checks = report.checks();
    let count = |verdict| checks.iter().filter(|(_, it)| *it == verdict).count();
    let (passed, skipped) = (count(Verdict::Passed), count(Verdict::Skipped));
    let mut text = format!("{} checks: {passed} passed, {skipped} skipped", checks.len());
    for severity in Severity::ALL {
        let is_it =
            |(rule, verdict): &&(&Rule, Verdict)| verdict.is_problem() && rule.severity == severity;
        let count = checks.iter().filter(is_it).count();
        let _ = match severity {
            Severity::Must => write!(text, ", {count} broken (must)"),
            _ if count == 0 => Ok(()),
            Severity::Should => write!(text, ", {count} against advice (should)"),
            Severity::Portability => write!(text, ", {count} not portable"),
            Severity::Info => write!(text, ", {count} to know"),
        };
    }
    text + "\n" + &verdict(report, &checks)
}

fn verdict(report: &Report, checks: &[(&Rule, Verdict)]) -> String {
    let profile = report.profile.as_str();
    let failed: Vec<&str> =
        checks.iter().filter(|it| it.1 == Verdict::Failed).map(|it| it.0.id).collect();
    if !failed.is_empty() {
        return format!("Failed in the {profile} profile: {}", failed.join(", "));
    }
    let is_more = |(rule, verdict): &&(&Rule, Verdict)| {
        *verdict == Verdict::Warned && rule.counts_in(Profile::Strict)
    };
    match checks.iter().filter(is_more).count() {
        0 => format!("Nothing fails in the {profile} profile"),
        more => format!("Nothing fails in the {profile} profile; --strict would count {more} more"),
    }
}

#[cfg(test)]
mod tests;
