//! A schema for people: one line to a field, with its type, default and bounds.

use serde_json::Value;

use crate::schema::View;
use crate::screen::{Screen, Style};
use crate::text::{line, width, wrap};

/// How deep fields within fields are shown.
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

/// The fields of an object, indented by two.
pub(crate) fn fields(schema: &Value, screen: &Screen) -> String {
    let mut rows = Vec::new();
    add_rows(View::new(schema), 0, &mut rows);
    if rows.is_empty() {
        return format!("  {}\n", screen.out.paint(Style::Cyan, &kind(View::new(schema), 0)));
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

fn add_rows(view: View<'_>, depth: usize, rows: &mut Vec<Row>) {
    for field in view.fields() {
        rows.push(Row {
            depth,
            name: line(field.name),
            is_required: field.is_required,
            kind: kind(field.view, 0),
            about: about(field.view),
        });
        if depth + 1 < DEPTH {
            let inner = field.view.items().unwrap_or(field.view);
            add_rows(inner, depth + 1, rows);
        }
    }
}

/// What a value can be, in a few words.
pub(crate) fn kind(view: View<'_>, depth: usize) -> String {
    if let Some(values) = view.values() {
        let mut words: Vec<String> =
            values.iter().take(VALUES).map(|value| line(&value.to_string())).collect();
        if values.len() > VALUES {
            words.push(format!("… {} more", values.len() - VALUES));
        }
        return words.join(" | ");
    }
    let choices = view.choices();
    if !choices.is_empty() && depth < DEPTH {
        let mut words: Vec<String> =
            choices.into_iter().map(|choice| kind(choice, depth + 1)).collect();
        words.dedup();
        return words.join(" | ");
    }
    let kinds = view.kinds();
    if kinds.is_any() {
        return "any".to_owned();
    }
    let mut words = Vec::new();
    if kinds.string {
        words.push(match view.text("format") {
            Some(format) => format!("string ({})", line(format)),
            None => "string".to_owned(),
        });
    }
    if kinds.number {
        words.push("number".to_owned());
    } else if kinds.integer {
        words.push("integer".to_owned());
    }
    if kinds.boolean {
        words.push("boolean".to_owned());
    }
    if kinds.array {
        let items = view.items().filter(|_| depth < DEPTH).map(|items| kind(items, depth + 1));
        let items = items.unwrap_or_else(|| "any".to_owned());
        words.push(if items.contains(' ') { format!("({items})[]") } else { format!("{items}[]") });
    }
    if kinds.object {
        words.push("object".to_owned());
    }
    if kinds.null {
        words.push("null".to_owned());
    }
    words.join(" | ")
}

/// What there is to say of a field: its description, default and bounds.
fn about(view: View<'_>) -> String {
    let description = view.text("description").or_else(|| view.text("title")).unwrap_or_default();
    let mut facts = Vec::new();
    if let Some(default) = view.schema.get("default") {
        facts.push(format!("default {default}"));
    }
    let bound = |name: &str| view.schema.get(name).map(Value::to_string);
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
