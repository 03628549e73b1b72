//! Reports, to the letter, and the documentation, which must match the table.

use std::path::Path;

use bowline::Revision;
use bowline_serve::testing::golden;

use super::rewrite::{Rewrite, Way};
use super::{check, good, settings};
use crate::probe::Settings;
use crate::report::{Conclusion, Report, Verdict};
use crate::rule::{Profile, Rule, Transport, all};

/// A server with a fault of each severity, and a check of each outcome.
async fn report(profile: Profile) -> Report {
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
        let settings = Settings { profile, ..settings(rewrite.target()) };
        findings.extend(check(&settings, id, &revisions).await);
    }
    let skipped = findings.iter().position(|it| it.rule.id == "stdio.exit-status").unwrap();
    findings[skipped].verdict = Verdict::Skipped;
    findings[skipped].said = vec!["a reason".to_owned()];
    Report {
        target: "a server".to_owned(),
        server: Some("everything 1.0.0".to_owned()),
        transport: Transport::Stdio,
        revisions,
        findings,
        profile,
        barred: None,
    }
}

fn file(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

#[tokio::test]
async fn reports_are_as_they_were() {
    let report = report(Profile::Default).await;
    golden(&file("report.json"), &serde_json::to_string_pretty(&report.to_json(false)).unwrap());
    golden(&file("report.xml"), &report.to_junit());
}

#[tokio::test]
async fn a_missing_token_is_reported() {
    let mut report = report(Profile::Default).await;
    report.findings.retain(|it| it.rule.id == "tools.pages");
    report.barred = Some("401 <Unauthorized>".to_owned());
    assert_eq!(report.conclusion(), Conclusion::Barred);
    assert_eq!(report.to_json(false)["conclusion"], "unauthorized");
    let junit = report.to_junit();
    assert!(
        junit.contains("errors=\"1\"") && junit.contains("401 &lt;Unauthorized&gt;"),
        "{junit}"
    );
}

#[tokio::test]
async fn the_worst_finding_decides() {
    let without = |report: &mut Report, id: &str| report.findings.retain(|it| it.rule.id != id);
    let mut lenient = report(Profile::Default).await;
    assert_eq!(lenient.conclusion(), Conclusion::Broken);
    without(&mut lenient, "jsonrpc.unknown-method");
    assert_eq!(lenient.conclusion(), Conclusion::Good);
    let mut report = report(Profile::Strict).await;
    without(&mut report, "jsonrpc.unknown-method");
    assert_eq!(report.conclusion(), Conclusion::Broken);
    without(&mut report, "tools.names-valid");
    assert_eq!(report.conclusion(), Conclusion::NotPortable);
    without(&mut report, "tools.names-portable");
    assert_eq!(report.conclusion(), Conclusion::Good);
}

#[tokio::test]
async fn a_check_counts_once_whatever_the_revisions() {
    let report = report(Profile::Default).await;
    assert_eq!(report.findings.len(), 11);
    let summary = &report.to_json(false)["summary"];
    let counts = ["checks", "passed", "skipped", "failed", "warned"].map(|it| &summary[it]);
    // One passed in one revision and was skipped in the other.
    assert_eq!(counts, [6, 3, 0, 1, 2], "{summary}");
    assert_eq!(summary["problems"]["must"], 1);
}

#[test]
fn what_no_client_depends_on_does_not_count_by_default() {
    let profile_of = |id: &str| all().find(|it| it.id == id).and_then(Rule::profile);
    for id in ["jsonrpc.batch", "http.method-mismatch", "tools.bad-cursor", "schema.formats"] {
        assert_eq!(profile_of(id), Some(Profile::Strict), "{id}");
    }
    for id in ["tools.list", "http.origin", "auth.status", "jsonrpc.envelope"] {
        assert_eq!(profile_of(id), Some(Profile::Default), "{id}");
    }
    assert_eq!(profile_of("tools.context-cost"), None);
}

#[test]
fn the_documentation_lists_all_checks() {
    const BEGIN: &str = "<!-- checks -->\n";
    const END: &str = "<!-- /checks -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/check.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}{}{END}{after}", markdown());
    golden(&path, &wanted);
}

/// The rules as rows of a table.
fn markdown() -> String {
    let mut text = String::from(
        "| id | severity | profile | revisions | transport | a server passes when |\n|---|---|---|---|---|---|\n",
    );
    for rule in all() {
        let (id, severity, says, link) = (rule.id, rule.severity, rule.says, rule.main_link());
        let (revisions, transports) = (rule.revisions(), rule.transports());
        let profile = rule.profile().map_or("", Profile::as_str);
        text.push_str(&format!(
            "| [`{id}`]({link}) | {severity} | {profile} | {revisions} | {transports} | {says} |\n"
        ));
    }
    text
}
