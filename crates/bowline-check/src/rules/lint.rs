//! Habits that are valid JSON Schema, but that clients or model providers do not accept: one
//! function per habit, over every subschema of every tool.

use serde_json::{Map, Value};

use super::name;
use crate::probe::{Outcome, Probe, TOOLS, all_good};

/// A subschema and its location.
pub(super) struct Subschema<'a> {
    schema: &'a Map<String, Value>,
    /// A JSON pointer; empty at the root.
    at: &'a str,
    /// How many objects and arrays enclose it.
    depth: usize,
}

/// What is wrong with a subschema.
type Lint = fn(&Subschema<'_>) -> Option<String>;

/// The schema that models fill in, and where problems in it are said to be.
pub(super) const INPUT: &[(&str, &str)] = &[("inputSchema", "")];
/// Also the one that clients validate results with.
pub(super) const BOTH: &[(&str, &str)] = &[("inputSchema", ""), ("outputSchema", "outputSchema")];

/// Looks at all tools. A problem that several tools share is reported once.
pub(super) async fn run(probe: &mut Probe, schemas: &[(&str, &str)], lint: Lint) -> Outcome {
    let tools = probe.list(TOOLS).await?;
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for (tool, (member, at)) in tools.iter().flat_map(|it| schemas.iter().map(move |at| (it, at))) {
        let Some(Value::Object(schema)) = tool.get(member) else { continue };
        let mut problems = Vec::new();
        walk(&Subschema { schema, at, depth: 0 }, lint, &mut problems);
        for problem in problems {
            match found.iter_mut().find(|(known, _)| *known == problem) {
                Some((_, names)) => names.push(name(tool)),
                None => found.push((problem, vec![name(tool)])),
            }
        }
    }
    all_good(found.into_iter().map(|(problem, names)| format!("{}: {problem}", some(&names))))
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
const ONE: &str = "items additionalProperties not if then else contains propertyNames \
     additionalItems unevaluatedProperties unevaluatedItems";
const MANY: &str = "anyOf oneOf allOf prefixItems";
const NAMED: &str = "properties patternProperties $defs definitions dependentSchemas";

fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|it| it == word)
}

fn walk(sub: &Subschema<'_>, lint: Lint, problems: &mut Vec<String>) {
    /// Deeper schemas are left to the check for validity.
    const DEEPEST: usize = 64;
    if sub.depth > DEEPEST {
        return;
    }
    problems.extend(lint(sub));
    let mut into = |key: String, value: &Value, deeper: usize| {
        if let Value::Object(schema) = value {
            let at = format!("{}/{key}", sub.at);
            walk(&Subschema { schema, at: &at, depth: sub.depth + deeper }, lint, problems);
        }
    };
    for (key, value) in sub.schema {
        match (key.as_str(), value) {
            (key, value) if has(ONE, key) && value.is_object() => {
                into(key.to_owned(), value, 1);
            }
            (key, Value::Array(values)) if has(MANY, key) => {
                values
                    .iter()
                    .enumerate()
                    .for_each(|(at, value)| into(format!("{key}/{at}"), value, 0));
            }
            (key, Value::Object(values)) if has(NAMED, key) => {
                values.iter().for_each(|(name, value)| into(format!("{key}/{name}"), value, 1));
            }
            _ => {}
        }
    }
}

fn reference<'a>(sub: &Subschema<'a>) -> Option<&'a str> {
    sub.schema.get("$ref").or_else(|| sub.schema.get("$dynamicRef"))?.as_str()
}

pub(super) fn remote_ref(sub: &Subschema<'_>) -> Option<String> {
    let target = reference(sub).filter(|target| !target.starts_with('#'))?;
    Some(format!("{}/$ref is {target:?}", sub.at))
}

pub(super) fn local_ref(sub: &Subschema<'_>) -> Option<String> {
    let target = reference(sub).filter(|target| target.starts_with('#'))?;
    Some(format!("{}/$ref is {target:?}", sub.at))
}

pub(super) fn root_union(sub: &Subschema<'_>) -> Option<String> {
    let keyword = ["anyOf", "oneOf", "allOf", "not", "enum", "if"];
    let is_root = sub.at.is_empty();
    let found = keyword.iter().find(|key| is_root && sub.schema.contains_key(**key))?;
    Some(format!("{found} at the root"))
}

pub(super) fn no_properties(sub: &Subschema<'_>) -> Option<String> {
    let lacks = sub.at.is_empty() && !sub.schema.get("properties").is_some_and(Value::is_object);
    lacks.then(|| "no properties at the root".to_owned())
}

pub(super) fn property_names(sub: &Subschema<'_>) -> Option<String> {
    let Some(Value::Object(properties)) = sub.schema.get("properties") else { return None };
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    let is_bad =
        |name: &&String| name.is_empty() || name.len() > 64 || !name.chars().all(is_allowed);
    let bad: Vec<_> = properties.keys().filter(is_bad).map(|name| format!("{name:?}")).collect();
    (!bad.is_empty()).then(|| format!("{}/properties has {}", sub.at, bad.join(", ")))
}

pub(super) fn array_items(sub: &Subschema<'_>) -> Option<String> {
    let is_array = sub.schema.get("type").is_some_and(|kind| kind == "array");
    let lacks = is_array && !sub.schema.contains_key("items");
    lacks.then(|| format!("{} is an array without items", sub.at))
}

pub(super) fn keywords(sub: &Subschema<'_>) -> Option<String> {
    const RARE: &str = "not if patternProperties dependentSchemas dependentRequired dependencies \
         propertyNames contains prefixItems unevaluatedProperties unevaluatedItems $dynamicRef";
    let used: Vec<&str> = RARE.split(' ').filter(|key| sub.schema.contains_key(*key)).collect();
    (!used.is_empty()).then(|| format!("{} uses {}", root_or(sub.at), used.join(", ")))
}

pub(super) fn type_list(sub: &Subschema<'_>) -> Option<String> {
    let kinds = sub.schema.get("type")?.as_array()?;
    Some(format!("{}/type is {}", sub.at, Value::from(kinds.clone())))
}

pub(super) fn enums(sub: &Subschema<'_>) -> Option<String> {
    let values = sub.schema.get("enum")?.as_array()?;
    let odd = values.iter().find(|value| !value.is_string())?;
    Some(format!("{}/enum has {odd}", sub.at))
}

pub(super) fn const_union(sub: &Subschema<'_>) -> Option<String> {
    let is_const = |it: &Value| it.get("const").is_some();
    let is_choice = |values: &&Vec<Value>| !values.is_empty() && values.iter().all(is_const);
    let mut unions = ["oneOf", "anyOf"].into_iter();
    let found = unions
        .find(|key| sub.schema.get(*key).and_then(Value::as_array).filter(is_choice).is_some())?;
    Some(format!("{}/{found} lists values as const", sub.at))
}

/// Formats that model providers know.
const COMMON: &str = "date-time date time duration email hostname ipv4 ipv6 uuid uri";
/// The others that JSON Schema defines.
const DEFINED: &str = "idn-email idn-hostname uri-reference iri iri-reference uri-template \
     json-pointer relative-json-pointer regex";

fn format<'a>(sub: &Subschema<'a>) -> Option<&'a str> {
    sub.schema.get("format")?.as_str()
}

pub(super) fn undefined_format(sub: &Subschema<'_>) -> Option<String> {
    let format = format(sub).filter(|it| !has(COMMON, it) && !has(DEFINED, it))?;
    Some(format!("{}/format is {format:?}", sub.at))
}

pub(super) fn rare_format(sub: &Subschema<'_>) -> Option<String> {
    let format = format(sub).filter(|it| has(DEFINED, it))?;
    Some(format!("{}/format is {format:?}", sub.at))
}

pub(super) fn depth(sub: &Subschema<'_>) -> Option<String> {
    const DEEP: usize = 5;
    const MANY: usize = 100;
    if sub.depth == DEEP + 1 {
        return Some(format!("{} is more than {DEEP} levels deep", sub.at));
    }
    let count = sub.schema.get("properties")?.as_object()?.len();
    (count > MANY).then(|| format!("{} has {count} properties", root_or(sub.at)))
}

pub(super) fn undescribed(sub: &Subschema<'_>) -> Option<String> {
    if !sub.at.is_empty() {
        return None;
    }
    let properties = sub.schema.get("properties")?.as_object()?;
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
