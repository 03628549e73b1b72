//! The report for people: problems first, each once with the revisions it was seen in.

use std::fmt::Write;

use bowline::Revision;

use super::{Finding, Report, Verdict};
use crate::check::evidence::shorten;
use crate::check::table::Severity;

/// How much of a message is shown.
const MOST: usize = 240;
/// How many exchanges, and how many problems of one check, are shown.
const EXCHANGES: usize = 2;
const PROBLEMS: usize = 8;

/// The same problem in several revisions.
struct Group<'a> {
    first: &'a Finding,
    revisions: Vec<Revision>,
}

impl Report {
    /// For people. With `all`, what passed and what was skipped is listed too.
    pub(in crate::check) fn for_people(
        &self,
        paint: &dyn Fn(Verdict, &str) -> String,
        all: bool,
    ) -> String {
        let mut text = self.head();
        for group in self.groups(|finding| finding.verdict.is_problem()) {
            self.problem(&mut text, &group, paint);
        }
        if all {
            for group in self.groups(|finding| !finding.verdict.is_problem()) {
                let Finding { check, verdict, said, .. } = group.first;
                let word = paint(*verdict, &format!("{:7}", verdict.as_str()));
                let note =
                    if said.is_empty() { String::new() } else { format!(": {}", said.join("; ")) };
                let _ = writeln!(text, "{word} {} {}{note}", check.id, self.span(&group.revisions));
            }
            text.push('\n');
        }
        self.sum(&mut text);
        text
    }

    fn head(&self) -> String {
        let server = self.server.as_ref().map_or_else(String::new, |server| format!(" ({server})"));
        let revisions: Vec<&str> =
            self.revisions.iter().map(|revision| revision.as_str()).collect();
        let target = shorten(&self.target, MOST);
        format!("{target}{server}, {}: {}\n\n", self.transport.as_str(), revisions.join(", "))
    }

    /// Findings that say the same, in order.
    fn groups(&self, pick: impl Fn(&Finding) -> bool) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for finding in self.findings.iter().filter(|finding| pick(finding)) {
            let is_same = |group: &&mut Group<'_>| {
                group.first.check.id == finding.check.id
                    && group.first.verdict == finding.verdict
                    && group.first.said == finding.said
            };
            match groups.iter_mut().find(is_same) {
                Some(group) => group.revisions.push(finding.revision),
                None => groups.push(Group { first: finding, revisions: vec![finding.revision] }),
            }
        }
        groups.sort_by_key(|group| group.first.check.severity);
        groups
    }

    fn problem(
        &self,
        text: &mut String,
        group: &Group<'_>,
        paint: &dyn Fn(Verdict, &str) -> String,
    ) {
        let Finding { check, verdict, said, evidence, revision } = group.first;
        let word = paint(*verdict, &format!("{:4}", verdict.as_str().to_uppercase()));
        let _ = writeln!(
            text,
            "{word} {} ({}) {}",
            check.id,
            check.severity,
            self.span(&group.revisions)
        );
        let _ = writeln!(text, "     wanted: {}", check.says);
        for problem in said.iter().take(PROBLEMS) {
            let _ = writeln!(text, "     found:  {}", shorten(problem, 2 * MOST));
        }
        if said.len() > PROBLEMS {
            let _ = writeln!(text, "     found:  … and {} more", said.len() - PROBLEMS);
        }
        let shown = evidence.len().saturating_sub(EXCHANGES);
        for exchange in &evidence[shown..] {
            let _ = writeln!(text, "     sent:   {}", shorten(&exchange.sent, MOST));
            for received in exchange.received.iter().take(3) {
                let _ = writeln!(text, "     got:    {}", shorten(received, MOST));
            }
        }
        let _ = writeln!(text, "     do:     {}", check.remedy);
        let _ = writeln!(text, "     see:    {revision}/{}\n", check.page_of(*revision));
    }

    /// The revisions of a finding, if not all that were checked.
    fn span(&self, revisions: &[Revision]) -> String {
        if revisions.len() == self.revisions.len() && self.revisions.len() > 1 {
            return "in all revisions".to_owned();
        }
        let names: Vec<&str> = revisions.iter().map(|revision| revision.as_str()).collect();
        format!("in {}", names.join(", "))
    }

    fn sum(&self, text: &mut String) {
        let passed = self.count(Verdict::Passed);
        let skipped = self.count(Verdict::Skipped);
        let _ = write!(text, "{} checks: {passed} passed, {skipped} skipped", self.findings.len());
        for severity in Severity::ALL {
            let count = self.problems(severity);
            let _ = match severity {
                Severity::Must => write!(text, ", {count} broken (must)"),
                _ if count == 0 => Ok(()),
                Severity::Should => write!(text, ", {count} against advice (should)"),
                Severity::Portability => write!(text, ", {count} not portable"),
                Severity::Info => write!(text, ", {count} to know"),
            };
        }
        text.push('\n');
    }
}
