//! The table of checks, for people, programs and the documentation.

use std::fmt::Write;

use serde_json::{Value, json};

use super::table::{Check, Transport, all};

/// For people: a line each.
pub(super) fn for_people() -> String {
    let widest = all().map(|check| check.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for check in all() {
        let _ = writeln!(
            text,
            "{:widest$}  {:11}  {:15} {:5}  {}",
            check.id,
            check.severity,
            check.revisions(),
            transport(check),
            check.says
        );
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
            "transport": transport(check),
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
            transport(check),
            check.says,
            check.main_page()
        );
    }
    text
}

fn transport(check: &Check) -> &'static str {
    check.transport.map_or("both", Transport::as_str)
}
