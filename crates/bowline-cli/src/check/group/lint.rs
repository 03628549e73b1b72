//! What is valid JSON Schema and yet makes clients or model providers choke: one function a habit,
//! over every subschema of every tool's input.

use serde_json::{Map, Value};

use super::tools::name;
use crate::check::probe::{Outcome, Probe, TOOLS, all_good};

/// A subschema and where it is.
pub(super) struct Place<'a> {
    schema: &'a Map<String, Value>,
    /// A JSON pointer; empty at the root.
    at: &'a str,
    /// How many objects and arrays it is inside of.
    depth: usize,
}

/// What is wrong with a subschema.
type Rule = fn(&Place<'_>) -> Option<String>;

/// Looks at all tools. The same problem in several tools is told once.
pub(super) async fn run(probe: &mut Probe, rule: Rule) -> Outcome {
    let tools = probe.list(&TOOLS).await?;
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for tool in &tools {
        let Some(Value::Object(schema)) = tool.get("inputSchema") else { continue };
        let mut problems = Vec::new();
        walk(&Place { schema, at: "", depth: 0 }, rule, &mut problems);
        for problem in problems {
            match found.iter_mut().find(|(known, _)| *known == problem) {
                Some((_, names)) => names.push(name(tool)),
                None => found.push((problem, vec![name(tool)])),
            }
        }
    }
    all_good(
        found.into_iter().map(|(problem, names)| format!("{}: {problem}", some(&names))).collect(),
    )
}

/// The first few names.
fn some(names: &[&str]) -> String {
    const MOST: usize = 6;
    let mut text = names.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
    if names.len() > MOST {
        text.push_str(&format!(" and {} more", names.len() - MOST));
    }
    text
}

/// Keywords whose value is a schema, a list of them, or a map of them.
const ONE: [&str; 11] = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "additionalItems",
    "unevaluatedProperties",
    "unevaluatedItems",
];
const MANY: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const NAMED: [&str; 5] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

fn walk(place: &Place<'_>, rule: Rule, problems: &mut Vec<String>) {
    /// Deeper schemas are the business of the check for validity.
    const DEEPEST: usize = 64;
    if place.depth > DEEPEST {
        return;
    }
    problems.extend(rule(place));
    let mut into = |key: String, value: &Value, deeper: usize| {
        if let Value::Object(schema) = value {
            let at = format!("{}/{key}", place.at);
            walk(&Place { schema, at: &at, depth: place.depth + deeper }, rule, problems);
        }
    };
    for (key, value) in place.schema {
        match (key.as_str(), value) {
            (key, value) if ONE.contains(&key) && value.is_object() => {
                into(key.to_owned(), value, 1);
            }
            (key, Value::Array(values)) if MANY.contains(&key) => {
                values
                    .iter()
                    .enumerate()
                    .for_each(|(at, value)| into(format!("{key}/{at}"), value, 0));
            }
            (key, Value::Object(values)) if NAMED.contains(&key) => {
                values.iter().for_each(|(name, value)| into(format!("{key}/{name}"), value, 1));
            }
            _ => {}
        }
    }
}

fn reference<'a>(place: &Place<'a>) -> Option<&'a str> {
    place.schema.get("$ref").or_else(|| place.schema.get("$dynamicRef"))?.as_str()
}

pub(super) fn remote_ref(place: &Place<'_>) -> Option<String> {
    let target = reference(place).filter(|target| !target.starts_with('#'))?;
    Some(format!("{}/$ref is {target:?}", place.at))
}

pub(super) fn local_ref(place: &Place<'_>) -> Option<String> {
    let target = reference(place).filter(|target| target.starts_with('#'))?;
    Some(format!("{}/$ref is {target:?}", place.at))
}

pub(super) fn root_union(place: &Place<'_>) -> Option<String> {
    let keyword = ["anyOf", "oneOf", "allOf", "not", "enum", "if"];
    let is_root = place.at.is_empty();
    let found = keyword.iter().find(|key| is_root && place.schema.contains_key(**key))?;
    Some(format!("{found} at the root"))
}

pub(super) fn no_properties(place: &Place<'_>) -> Option<String> {
    let lacks =
        place.at.is_empty() && !place.schema.get("properties").is_some_and(Value::is_object);
    lacks.then(|| "no properties at the root".to_owned())
}

pub(super) fn property_names(place: &Place<'_>) -> Option<String> {
    let Some(Value::Object(properties)) = place.schema.get("properties") else { return None };
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    let is_bad =
        |name: &&String| name.is_empty() || name.len() > 64 || !name.chars().all(is_allowed);
    let bad: Vec<_> = properties.keys().filter(is_bad).map(|name| format!("{name:?}")).collect();
    (!bad.is_empty()).then(|| format!("{}/properties has {}", place.at, bad.join(", ")))
}

pub(super) fn array_items(place: &Place<'_>) -> Option<String> {
    let is_array = place.schema.get("type").is_some_and(|kind| kind == "array");
    let lacks = is_array && !place.schema.contains_key("items");
    lacks.then(|| format!("{} is an array without items", place.at))
}

pub(super) fn keywords(place: &Place<'_>) -> Option<String> {
    const RARE: [&str; 12] = [
        "not",
        "if",
        "patternProperties",
        "dependentSchemas",
        "dependentRequired",
        "dependencies",
        "propertyNames",
        "contains",
        "prefixItems",
        "unevaluatedProperties",
        "unevaluatedItems",
        "$dynamicRef",
    ];
    let used: Vec<&str> =
        RARE.iter().filter(|key| place.schema.contains_key(**key)).copied().collect();
    (!used.is_empty()).then(|| format!("{} uses {}", root_or(place.at), used.join(", ")))
}

pub(super) fn type_list(place: &Place<'_>) -> Option<String> {
    let kinds = place.schema.get("type")?.as_array()?;
    Some(format!("{}/type is {}", place.at, Value::from(kinds.clone())))
}

pub(super) fn enums(place: &Place<'_>) -> Option<String> {
    let values = place.schema.get("enum")?.as_array()?;
    let odd = values.iter().find(|value| !value.is_string())?;
    Some(format!("{}/enum has {odd}", place.at))
}

pub(super) fn formats(place: &Place<'_>) -> Option<String> {
    const KNOWN: [&str; 9] =
        ["date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
    let format = place.schema.get("format")?.as_str()?;
    let is_known = KNOWN.contains(&format) || format == "uri";
    (!is_known).then(|| format!("{}/format is {format:?}", place.at))
}

pub(super) fn depth(place: &Place<'_>) -> Option<String> {
    const DEEP: usize = 5;
    const MANY: usize = 100;
    if place.depth == DEEP + 1 {
        return Some(format!("{} is more than {DEEP} levels deep", place.at));
    }
    let count = place.schema.get("properties")?.as_object()?.len();
    (count > MANY).then(|| format!("{} has {count} properties", root_or(place.at)))
}

pub(super) fn undescribed(place: &Place<'_>) -> Option<String> {
    if !place.at.is_empty() {
        return None;
    }
    let properties = place.schema.get("properties")?.as_object()?;
    let is_bare = |(_, schema): &(&String, &Value)| {
        let text =
            ["description", "title", "$ref"].iter().find_map(|key| schema.get(*key)?.as_str());
        text.is_none_or(|text| text.trim().is_empty())
    };
    let bare: Vec<&str> =
        properties.iter().filter(is_bare).map(|(name, _)| name.as_str()).collect();
    (!bare.is_empty()).then(|| format!("no description for {}", bare.join(", ")))
}

fn root_or(at: &str) -> &str {
    if at.is_empty() { "the root" } else { at }
}
