//! Reports, to the letter, and the documentation, in step with the table.

use std::path::Path;

use bowline::Revision;
use bowline_serve::testing::golden;

use super::rewrite::{Rewrite, Way};
use super::{check, good, settings};
use crate::check::list;
use crate::check::report::{Conclusion, Finding, Look, Report, Verdict};
use crate::check::table::Transport;

/// A server with a fault of each severity, and a check of each outcome.
async fn report(is_strict: bool) -> Report {
    let rewrite = Rewrite {
        make: good,
        frame: |_| Way::Pass,
        message: |request, answer, _| {
            if request["method"] == "bowline/no-such-method" {
                answer["error"]["code"] = (-32000).into();
                answer["error"]["message"] = "<none> & \u{1b}[31mnothing".into();
            }
            if request["method"] == "tools/list" {
                answer["result"]["tools"][0]["name"] = "an echo".into();
            }
        },
        stays: false,
        ticks: false,
    };
    let revisions = vec![Revision::V2025_06_18, Revision::V2025_11_25];
    let mut findings = Vec::new();
    let wanted = [
        "jsonrpc.unknown-method",
        "jsonrpc.batch-refused",
        "tools.names-valid",
        "tools.names-portable",
        "tools.pages",
        "stdio.exit-status",
    ];
    for id in wanted {
        findings.extend(check(&settings(rewrite.door()), id, &revisions).await);
    }
    let skipped = findings.iter().position(|it| it.check.id == "stdio.exit-status").unwrap();
    findings[skipped].verdict = Verdict::Skipped;
    findings[skipped].said = vec!["a reason".to_owned()];
    Report {
        target: "a server".to_owned(),
        server: Some("everything 1.0.0".to_owned()),
        transport: Transport::Stdio,
        revisions,
        findings,
        is_strict,
        barred: None,
    }
}

fn plain(columns: Option<usize>) -> Look<'static> {
    Look { paint: &|_, word| word.to_owned(), columns, all: true }
}

fn file(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/check").join(name)
}

#[tokio::test]
async fn reports_are_as_they_were() {
    let report = report(false).await;
    golden(&file("report.txt"), &report.for_people(&plain(None)));
    golden(&file("report.json"), &serde_json::to_string_pretty(&report.to_json(false)).unwrap());
    golden(&file("report.xml"), &report.to_junit());
}

#[tokio::test]
async fn lines_fit_the_terminal() {
    let report = report(false).await;
    let whole = report.for_people(&plain(None));
    for columns in [60, 80, 120] {
        let text = report.for_people(&plain(Some(columns)));
        let widest = text.lines().map(crate::text::width).max().unwrap();
        assert!(widest <= columns, "{widest} > {columns}:\n{text}");
        // Nothing is lost but line breaks, and of messages the end.
        let squeeze = |text: &str| text.split_whitespace().collect::<String>();
        for line in whole.lines().filter(|line| !line.contains("got:")) {
            assert!(squeeze(&text).contains(&squeeze(line)), "{line}\n{text}");
        }
    }
    golden(&file("report-60.txt"), &report.for_people(&plain(Some(60))));
    for columns in [60, 80] {
        let list = list::for_people(Some(columns));
        let widest = list.lines().map(crate::text::width).max().unwrap();
        assert!(widest <= columns, "{widest} > {columns}:\n{list}");
    }
    assert_eq!(list::for_people(None).lines().count(), crate::check::table::all().count());
}

#[tokio::test]
async fn what_needs_a_token_is_told() {
    let mut report = report(false).await;
    report.findings.retain(|it| it.check.id == "tools.pages");
    report.barred = Some("401 <Unauthorized>".to_owned());
    assert_eq!(report.conclusion(), Conclusion::Barred);
    assert_eq!(report.to_json(false)["conclusion"], "unauthorized");
    assert!(report.for_people(&plain(None)).contains("without a token"));
    let junit = report.to_junit();
    assert!(
        junit.contains("errors=\"1\"") && junit.contains("401 &lt;Unauthorized&gt;"),
        "{junit}"
    );
}

#[tokio::test]
async fn the_worst_finding_decides() {
    let mut report = report(true).await;
    assert_eq!(report.conclusion(), Conclusion::Broken);
    let without = |report: &mut Report, id: &str| report.findings.retain(|it| it.check.id != id);
    without(&mut report, "jsonrpc.unknown-method");
    assert_eq!(report.conclusion(), Conclusion::Broken);
    report.is_strict = false;
    assert_eq!(report.conclusion(), Conclusion::Good);
    report.is_strict = true;
    without(&mut report, "tools.names-valid");
    assert_eq!(report.conclusion(), Conclusion::NotPortable);
    without(&mut report, "tools.names-portable");
    assert_eq!(report.conclusion(), Conclusion::Good);
}

#[test]
fn colour_goes_by_the_verdict() {
    let check = crate::check::table::all().next().unwrap();
    let finding = |verdict| Finding {
        check,
        revision: Revision::LATEST_LEGACY,
        verdict,
        said: vec!["x".to_owned()],
        evidence: Vec::new(),
    };
    let report = Report {
        target: "a".to_owned(),
        server: None,
        transport: Transport::Http,
        revisions: vec![Revision::LATEST_LEGACY],
        findings: vec![finding(Verdict::Failed), finding(Verdict::Passed)],
        is_strict: false,
        barred: None,
    };
    let paint = |verdict: Verdict, word: &str| format!("<{verdict:?} {word}>");
    let text = report.for_people(&Look { paint: &paint, columns: None, all: true });
    assert!(text.contains("<Failed FAIL>") && text.contains("<Passed pass   >"), "{text}");
}

#[test]
fn the_documentation_lists_all_checks() {
    const BEGIN: &str = "<!-- checks -->\n";
    const END: &str = "<!-- /checks -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/check.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}{}{END}{after}", list::to_markdown());
    golden(&path, &wanted);
}
