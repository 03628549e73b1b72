//! The report for people, to the letter.

use std::path::Path;

use bowline_check::{Evidence, Transport, rules};
use bowline_serve::testing::golden;

use super::*;
use crate::check::list;
use crate::text::width;

const REVISIONS: [Revision; 2] = [Revision::V2025_06_18, Revision::V2025_11_25];

fn finding(id: &str, revision: Revision, verdict: Verdict, said: &str) -> Finding {
    let rule = rules().find(|rule| rule.id == id).unwrap();
    let said = Some(said.to_owned()).filter(|said| !said.is_empty()).into_iter().collect();
    let tool = r#"{"name":"an echo","description":"Repeats","inputSchema":{"type":"object"}}"#;
    let evidence = vec![Evidence {
        sent: r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{}}"#.to_owned(),
        received: vec![format!(
            r#"{{"jsonrpc":"2.0","id":3,"result":{{"tools":[{tool},{tool}]}}}}"#
        )],
    }];
    Finding { rule, revision, verdict, said, evidence }
}

/// A server with a fault of each severity, and a check of each outcome.
fn report() -> Report {
    let mut findings = Vec::new();
    for revision in REVISIONS {
        let mut add = |id, verdict, said| findings.push(finding(id, revision, verdict, said));
        let unknown =
            "an unknown method got error -32000 (<none> & nothing), expected error -32601";
        add("jsonrpc.unknown-method", Verdict::Failed, unknown);
        add("jsonrpc.batch-refused", Verdict::Passed, "");
        add("tools.names-portable", Verdict::Warned, "\"an echo\"");
        add("tools.pages", Verdict::Passed, "21 tools on 1 pages");
    }
    let [older, newer] = REVISIONS;
    findings.push(finding("stdio.exit-status", older, Verdict::Skipped, "a reason"));
    findings.push(finding("tools.names-valid", newer, Verdict::Warned, "\"an echo\""));
    Report {
        target: "a server".to_owned(),
        server: Some("everything 1.0.0".to_owned()),
        transport: Transport::Stdio,
        revisions: REVISIONS.to_vec(),
        findings,
        profile: Profile::Default,
        barred: None,
    }
}

fn plain(columns: Option<usize>) -> Look<'static> {
    Look { paint: &|_, word| word.to_owned(), columns, all: true }
}

fn file(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/check").join(name)
}

#[test]
fn lines_fit_the_terminal() {
    let report = report();
    let whole = render(&report, &plain(None));
    golden(&file("report.txt"), &whole);
    for columns in [60, 80, 120] {
        let text = render(&report, &plain(Some(columns)));
        let is_link = |line: &&str| line.starts_with("     see:");
        let widest = text.lines().filter(|it| !is_link(it)).map(width).max().unwrap();
        assert!(widest <= columns, "{widest} > {columns}:\n{text}");
        // Nothing is lost but line breaks, and of messages the end.
        let squeeze = |text: &str| text.split_whitespace().collect::<String>();
        for line in whole.lines().filter(|line| !line.contains("got:")) {
            assert!(squeeze(&text).contains(&squeeze(line)), "{line}\n{text}");
        }
    }
    golden(&file("report-60.txt"), &render(&report, &plain(Some(60))));
    for columns in [60, 80] {
        let list = list::for_people(Some(columns));
        let widest = list.lines().map(width).max().unwrap();
        assert!(widest <= columns, "{widest} > {columns}:\n{list}");
    }
    assert_eq!(list::for_people(None).lines().count(), rules().count());
}

#[test]
fn a_missing_token_is_mentioned() {
    let report = Report { barred: Some("401".to_owned()), ..report() };
    assert!(render(&report, &plain(None)).contains("without a token"));
}

#[test]
fn colour_goes_by_the_verdict() {
    let paint = |verdict: Verdict, word: &str| format!("<{verdict:?} {word}>");
    let text = render(&report(), &Look { paint: &paint, columns: None, all: true });
    assert!(text.contains("<Failed FAIL>") && text.contains("<Passed pass   >"), "{text}");
}
