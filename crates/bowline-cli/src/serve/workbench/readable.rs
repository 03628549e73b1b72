//! Answers as a model reads them: short, and nothing that it cannot use.

use std::fmt::Write as _;

use bowline_gateway::diff::Difference;
use serde_json::{Value, json};

use crate::text::cut;

/// The longest line of a list, in columns.
const LINE: usize = 160;

/// An item of a list in a line.
pub(super) fn summary(item: &Value, key: &str) -> String {
    let text = |member: &str| item[member].as_str().unwrap_or_default();
    let mut line = text(key).to_owned();
    if let Some(properties) = item["inputSchema"]["properties"].as_object() {
        let is_required = |name: &str| {
            let required = item["inputSchema"]["required"].as_array();
            required.is_some_and(|required| required.iter().any(|it| it == name))
        };
        let words = properties.iter().map(|(name, schema)| {
            let mark = if is_required(name) { "" } else { "?" };
            let kind = schema["type"].as_str().map(|it| format!(": {it}")).unwrap_or_default();
            format!("{name}{mark}{kind}")
        });
        line += &format!("({})", words.collect::<Vec<_>>().join(", "));
    }
    let about = text("description").lines().next().unwrap_or_default();
    if !about.is_empty() {
        line += &format!(": {about}");
    }
    cut(&line, LINE).into_owned()
}

/// The result of a tool: its texts, and a word about what cannot be read.
pub(super) fn readable(result: &Value) -> String {
    let mut text = match result["isError"].as_bool() {
        Some(true) => "The tool reported an error:\n".to_owned(),
        _ => String::new(),
    };
    for block in result["content"].as_array().into_iter().flatten() {
        let mut block = block.clone();
        if let (Some("text"), Some(said)) = (block["type"].as_str(), block["text"].as_str()) {
            text += said;
        } else {
            shorten(&mut block);
            text += &block.to_string();
        }
        text.push('\n');
    }
    match &result["structuredContent"] {
        // Most servers repeat it as text.
        Value::Null => {}
        data if serde_json::from_str::<Value>(text.trim()).is_ok_and(|said| said == *data) => {}
        data => text += &format!("structuredContent: {data}\n"),
    }
    if result["content"].is_array() { text } else { text + &format!("{result}\n") }
}

/// Replaces binary data by its length.
fn shorten(value: &mut Value) {
    if let Value::Object(members) = value {
        for (name, member) in members {
            match (name.as_str(), &*member) {
                ("data" | "blob", Value::String(data)) => {
                    *member = json!(format!("[{} characters of base64]", data.len()));
                }
                _ => shorten(member),
            }
        }
    }
}

/// The problems of a report of `check`: each once, with the revisions in which it was found.
pub(super) fn problems(report: &Value) -> String {
    let number = |name: &str| report["summary"][name].as_u64().unwrap_or_default();
    let mut text = format!(
        "{}: {} checks, {} passed, {} failed, {} advised, {} skipped\n",
        report["conclusion"].as_str().unwrap_or_default(),
        number("checks"),
        number("passed"),
        number("failed"),
        number("warned"),
        number("skipped"),
    );
    let mut found: Vec<(&str, &Value, Vec<&str>)> = Vec::new();
    for result in report["results"].as_array().into_iter().flatten() {
        if result["problems"].is_null() {
            continue;
        }
        let revision = result["revision"].as_str().unwrap_or_default();
        let id = result["id"].as_str().unwrap_or_default();
        match found.iter_mut().find(|(known, ..)| *known == id) {
            Some((.., revisions)) => revisions.push(revision),
            None => found.push((id, result, vec![revision])),
        }
    }
    for (id, result, revisions) in found {
        let word = |name: &str| result[name].as_str().unwrap_or_default();
        let _ = writeln!(
            text,
            "\n{} {id} ({}; {}): {}",
            word("outcome"),
            word("severity"),
            revisions.join(", "),
            word("says"),
        );
        for problem in result["problems"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "  {}", problem.as_str().unwrap_or_default());
        }
        let _ = writeln!(text, "  remedy: {}", word("remedy"));
    }
    text
}

/// The steps of the doctor.
pub(super) fn steps(report: &Value) -> String {
    let word = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let mut text = String::new();
    for step in report["steps"].as_array().into_iter().flatten() {
        let _ = writeln!(
            text,
            "{} {}: {}",
            word(step, "outcome"),
            word(step, "step"),
            word(step, "seen")
        );
        if !step["cause"].is_null() {
            let _ = writeln!(text, "  cause: {}", word(step, "cause"));
            let _ = writeln!(text, "  fix: {}", word(step, "fix"));
        }
    }
    let stderr = report["stderr"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let stderr: Vec<_> = stderr.map(|line| format!("  {line}\n")).collect();
    if !stderr.is_empty() {
        text += &format!("standard error:\n{}", stderr.concat());
    }
    text
}

/// What differs, a line each.
pub(super) fn differences(found: &[(String, Vec<Difference>)]) -> String {
    let mut text = String::new();
    for (of, differences) in found.iter().filter(|(_, differences)| !differences.is_empty()) {
        let _ = writeln!(text, "{of}");
        for difference in differences {
            let _ = writeln!(text, "  {difference}");
        }
    }
    if text.is_empty() { "nothing differs\n".to_owned() } else { text }
}

pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_lines() {
        let tool = json!({
            "name": "add", "description": "Adds.\nReally.",
            "inputSchema": { "properties": { "a": { "type": "integer" }, "b": {} }, "required": ["a"] },
        });
        assert_eq!(summary(&tool, "name"), "add(a: integer, b?): Adds.");
        let long = json!({ "uri": "x://y", "description": "ä".repeat(200) });
        assert!(summary(&long, "uri").ends_with('…'));
    }

    #[test]
    fn results_are_readable() {
        let result = json!({ "content": [
            { "type": "text", "text": "{\"a\":1}" }
        ], "structuredContent": { "a": 1 } });
        assert_eq!(readable(&result), "{\"a\":1}\n");
        let result = json!({ "isError": true, "content": [
            { "type": "text", "text": "no" },
            { "type": "image", "mimeType": "image/png", "data": "AAAA" },
        ] });
        let said = "The tool reported an error:\nno\n\
            {\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"[4 characters of base64]\"}\n";
        assert_eq!(readable(&result), said);
        assert_eq!(readable(&json!({ "content": "x" })), "{\"content\":\"x\"}\n");
    }
}
