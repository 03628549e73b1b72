//! The table of checks, for people and programs.

use std::fmt::Write;

use bowline_check::{Profile, Rule, rules};
use serde_json::{Value, json};

use crate::text::{width, wrap};

/// For people: a line each, or several if the terminal is narrow.
pub(super) fn for_people(columns: Option<usize>) -> String {
    let widest = |of: fn(&Rule) -> usize| rules().map(of).max().unwrap_or(0);
    let ids = widest(|rule| rule.id.len());
    let revisions = widest(|rule| rule.revisions().len());
    let transports = widest(|rule| rule.transports().len());
    let profile = |rule: &Rule| rule.profile().map_or("", Profile::as_str);
    let line = |rule: &Rule| {
        let (of, on) = (rule.revisions(), rule.transports());
        let Rule { id, severity, says, .. } = rule;
        let profile = profile(rule);
        format!("{id:ids$}  {severity:11}  {profile:7}  {of:revisions$}  {on:transports$}  {says}")
    };
    let Some(columns) = columns.filter(|columns| rules().any(|it| width(&line(it)) > *columns))
    else {
        return rules().map(|rule| format!("{}\n", line(rule))).collect();
    };
    let mut text = String::new();
    for rule in rules() {
        let (of, on) = (rule.revisions(), rule.transports());
        let head = format!("{}  {} {}  {of}  {on}", rule.id, rule.severity, profile(rule));
        let head = wrap(&head, columns).join("\n    ");
        let _ = writeln!(text, "{head}");
        let says = wrap(rule.says, columns.saturating_sub(4));
        text.extend(says.iter().map(|line| format!("    {line}\n")));
    }
    text
}

/// For programs.
pub(super) fn to_json() -> Value {
    let entry = |rule: &Rule| {
        json!({
            "id": rule.id,
            "severity": rule.severity.as_str(),
            "profile": rule.profile().map(Profile::as_str),
            "revisions": rule.revisions(),
            "transport": rule.transports(),
            "says": rule.says,
            "spec": rule.main_link(),
            "remedy": rule.remedy,
        })
    };
    json!({"checks": rules().map(entry).collect::<Vec<_>>()})
}
