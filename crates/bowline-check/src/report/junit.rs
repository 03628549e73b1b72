//! The report for build servers: JUnit XML, a suite for each revision.
//!
//! Only what decides the conclusion is a failure there; other problems are in `system-out`.

use std::fmt::Write;

use bowline::Revision;

use super::{Finding, Report, Verdict};
use crate::text::plain;

impl Report {
    /// As JUnit XML.
    pub fn to_junit(&self) -> String {
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let failures = self.findings.iter().filter(|it| it.verdict == Verdict::Failed).count();
        let errors = usize::from(self.barred.is_some());
        let _ = writeln!(
            text,
            "<testsuites name=\"bowline check\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\">",
            self.findings.len() + errors
        );
        for revision in &self.revisions {
            self.suite(&mut text, *revision);
        }
        if let Some(why) = &self.barred {
            self.unchecked(&mut text, why);
        }
        text.push_str("</testsuites>\n");
        text
    }

    /// Everything that could not be checked, as an error.
    fn unchecked(&self, text: &mut String, why: &str) {
        let name = escape(&format!("{} {}", self.target, self.transport.as_str()));
        let why = escape(why);
        let _ = writeln!(
            text,
            "  <testsuite name=\"{name}\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\">\n    \
             <testcase classname=\"auth\" name=\"all other checks\"><error type=\"unauthorized\" \
             message=\"{why}\">They require a token: bowline login, --token or --header.</error></testcase>\n  \
             </testsuite>"
        );
    }

    fn suite(&self, text: &mut String, revision: Revision) {
        let of_it = || self.findings.iter().filter(move |finding| finding.revision == revision);
        let count = |verdict| of_it().filter(|finding| finding.verdict == verdict).count();
        let (failures, skipped) = (count(Verdict::Failed), count(Verdict::Skipped));
        let name = escape(&format!("{} {} {revision}", self.target, self.transport.as_str()));
        let _ = writeln!(
            text,
            "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">",
            of_it().count()
        );
        for finding in of_it() {
            case(text, finding);
        }
        text.push_str("  </testsuite>\n");
    }
}

fn case(text: &mut String, finding: &Finding) {
    let Finding { rule, revision, verdict, said, .. } = finding;
    let name = escape(&format!("{}: {}", rule.id, rule.says));
    let _ = write!(
        text,
        "    <testcase classname=\"{revision}.{}\" name=\"{name}\"",
        rule.group_name()
    );
    let told = escape(&said.join("; "));
    let _ = match verdict {
        Verdict::Passed => writeln!(text, "/>"),
        Verdict::Skipped => writeln!(text, "><skipped message=\"{told}\"/></testcase>"),
        Verdict::Failed => writeln!(
            text,
            "><failure type=\"{}\" message=\"{told}\">{}</failure></testcase>",
            rule.severity,
            escape(&body(finding))
        ),
        Verdict::Warned => {
            writeln!(text, "><system-out>{}</system-out></testcase>", escape(&body(finding)))
        }
    };
}

fn body(finding: &Finding) -> String {
    let Finding { rule, revision, said, evidence, .. } = finding;
    let mut body = format!("{} ({})\n", rule.id, rule.severity);
    for problem in said {
        let _ = writeln!(body, "found: {problem}");
    }
    for exchange in evidence.iter().rev().take(2).rev() {
        let _ = writeln!(body, "sent: {}", exchange.sent);
        for received in &exchange.received {
            let _ = writeln!(body, "got: {received}");
        }
    }
    let _ = write!(body, "fix: {}\nsee: {}", rule.remedy, rule.link(*revision));
    body
}

/// Text for XML 1.0, which allows few control characters, and for people who read it.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in plain(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{FFFE}' | '\u{FFFF}' => escaped.push('\u{FFFD}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_server_says_breaks_the_file() {
        assert_eq!(
            escape("<a b=\"c\">&\u{1b}[2J\u{0}"),
            "&lt;a b=&quot;c&quot;&gt;&amp;\\u{1b}[2J\\u{0}"
        );
    }
}
