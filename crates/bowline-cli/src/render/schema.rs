//! A schema for people: a line per property, with its type, default and bounds.

use serde_json::Value;

use crate::schema::{Kinds, View};
use crate::screen::{Screen, Style};
use crate::text::{line, width, wrap};

/// How deep nested properties are shown.
const DEPTH: usize = 4;
/// How many values of an enum are shown.
const VALUES: usize = 12;

struct Row {
    depth: usize,
    name: String,
    is_required: bool,
    kind: String,
    about: String,
}

/// The properties of an object, indented by two.
pub(crate) fn fields(view: &View, screen: &Screen) -> String {
    let mut rows = Vec::new();
    add_rows(view, 0, &mut rows);
    if rows.is_empty() {
        return format!("  {}\n", screen.out.paint(Style::Cyan, &kind(view, 0)));
    }
    let label = |row: &Row| 2 * row.depth + width(&row.name) + usize::from(row.is_required);
    let names = rows.iter().map(label).max().unwrap_or(0).min(32);
    let kinds = rows.iter().map(|row| width(&row.kind)).max().unwrap_or(0).min(32);
    let mut text = String::new();
    for row in &rows {
        let star = if row.is_required { screen.out.paint(Style::Red, "*") } else { String::new() };
        let gap = " ".repeat(names.saturating_sub(label(row)));
        let indent = " ".repeat(2 + 2 * row.depth);
        let name = screen.out.paint(Style::Bold, &row.name);
        text += &format!("{indent}{name}{star}{gap}  {}", screen.out.paint(Style::Cyan, &row.kind));
        let column = 2 + names + 2 + kinds + 2;
        let room = screen.width().saturating_sub(column);
        if row.about.is_empty() {
            text.push('\n');
        } else if room < 24 || width(&row.kind) > kinds {
            for part in wrap(&row.about, screen.width().saturating_sub(indent.len() + 4)) {
                text += &format!("\n{indent}    {part}");
            }
            text.push('\n');
        } else {
            let parts = wrap(&row.about, room);
            let first = " ".repeat(kinds.saturating_sub(width(&row.kind)) + 2);
            text += &format!("{first}{}\n", parts[0]);
            for part in &parts[1..] {
                text += &format!("{}{part}\n", " ".repeat(column));
            }
        }
    }
    text
}

fn add_rows(view: &View, depth: usize, rows: &mut Vec<Row>) {
    for property in view.properties() {
        rows.push(Row {
            depth,
            name: line(&property.name),
            is_required: property.is_required,
            kind: kind(&property.view, 0),
            about: about(&property.view),
        });
        if depth + 1 < DEPTH {
            add_rows(&property.view.items().unwrap_or(property.view), depth + 1, rows);
        }
    }
}

/// The types of a value, in a few words.
pub(crate) fn kind(view: &View, depth: usize) -> String {
    if let Some(choices) = view.choices() {
        let shown = choices.iter().take(VALUES).map(|choice| line(&choice.value.to_string()));
        let mut words: Vec<String> = shown.collect();
        if choices.len() > VALUES {
            words.push(format!("… {} more", choices.len() - VALUES));
        }
        return words.join(" | ");
    }
    let leaves = view.leaves();
    if leaves.len() > 1 && depth < DEPTH {
        let shown = leaves.iter().take(VALUES).map(|leaf| kind(leaf, depth + 1));
        let mut words: Vec<String> = shown.collect();
        words.dedup();
        return words.join(" | ");
    }
    let kinds = view.kinds();
    if kinds == Kinds::ANY {
        return "any".to_owned();
    }
    let string = match view.text("format") {
        Some(format) => format!("string ({})", line(format)),
        None => "string".to_owned(),
    };
    let items = view.items().filter(|_| depth < DEPTH).map(|items| kind(&items, depth + 1));
    let array = match items.as_deref() {
        Some(items) if items.contains(' ') => format!("({items})[]"),
        items => format!("{}[]", items.unwrap_or("any")),
    };
    let number = if kinds.has(Kinds::NUMBER) { "number" } else { "integer" };
    let words = [
        (Kinds::STRING, string.as_str()),
        (Kinds::INTEGER, number),
        (Kinds::BOOLEAN, "boolean"),
        (Kinds::ARRAY, &array),
        (Kinds::OBJECT, "object"),
        (Kinds::NULL, "null"),
    ];
    let words: Vec<&str> =
        words.iter().filter(|(kind, _)| kinds.has(*kind)).map(|(_, word)| *word).collect();
    words.join(" | ")
}

/// The description of a property, its default and its bounds.
fn about(view: &View) -> String {
    let description = view.about().unwrap_or_default();
    let mut facts = Vec::new();
    if let Some(default) = view.get("default") {
        facts.push(format!("default {default}"));
    }
    let bound = |name: &str| view.get(name).map(Value::to_string);
    for (low, high, what) in [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " long"),
        ("minItems", "maxItems", " items"),
    ] {
        match (bound(low), bound(high)) {
            (Some(low), Some(high)) => facts.push(format!("{low} to {high}{what}")),
            (Some(low), None) => facts.push(format!("at least {low}{what}")),
            (None, Some(high)) => facts.push(format!("at most {high}{what}")),
            (None, None) => {}
        }
    }
    for (name, what) in [("exclusiveMinimum", "more than"), ("exclusiveMaximum", "less than")] {
        facts.extend(bound(name).filter(|it| it != "true").map(|it| format!("{what} {it}")));
    }
    facts.extend(view.text("pattern").map(|pattern| format!("matches {pattern}")));
    let facts = facts.join(", ");
    let text = match (description.is_empty(), facts.is_empty()) {
        (_, true) => description.to_owned(),
        (true, false) => format!("({facts})"),
        (false, false) => format!("{} ({facts})", description.trim_end()),
    };
    line(&text)
}
