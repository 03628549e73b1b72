//! The table of checks, for people, programs and the documentation.

use std::fmt::Write;

use serde_json::{Value, json};

use super::table::{Check, all};
use crate::text::{width, wrap};

/// For people: a line each, or two where lines are short.
pub(super) fn for_people(columns: Option<usize>) -> String {
    let widest = |of: fn(&Check) -> usize| all().map(of).max().unwrap_or(0);
    let ids = widest(|check| check.id.len());
    let revisions = widest(|check| check.revisions().len());
    let transports = widest(|check| check.transports().len());
    let line = |check: &Check| {
        let (of, on) = (check.revisions(), check.transports());
        let Check { id, severity, says, .. } = check;
        format!("{id:ids$}  {severity:11}  {of:revisions$}  {on:transports$}  {says}")
    };
    let Some(columns) = columns.filter(|columns| all().any(|it| width(&line(it)) > *columns))
    else {
        return all().map(|check| format!("{}\n", line(check))).collect();
    };
    let mut text = String::new();
    for check in all() {
        let (of, on) = (check.revisions(), check.transports());
        let _ = writeln!(text, "{}  {}  {of}  {on}", check.id, check.severity);
        let says = wrap(check.says, columns.saturating_sub(4));
        text.extend(says.iter().map(|line| format!("    {line}\n")));
    }
    text
}

/// For programs.
pub(super) fn to_json() -> Value {
    let entry = |check: &Check| {
        json!({
            "id": check.id,
            "severity": check.severity.as_str(),
            "revisions": check.revisions(),
            "transport": check.transports(),
            "says": check.says,
            "spec": check.main_page(),
            "remedy": check.remedy,
        })
    };
    json!({"checks": all().map(entry).collect::<Vec<_>>()})
}

/// For the documentation: the rows of a table.
#[cfg(test)]
pub(super) fn to_markdown() -> String {
    let mut text = String::from(
        "| id | severity | revisions | transport | a server passes when | page |\n|---|---|---|---|---|---|\n",
    );
    for check in all() {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {} |",
            check.id,
            check.severity,
            check.revisions(),
            check.transports(),
            check.says,
            check.main_page()
        );
    }
    text
}
