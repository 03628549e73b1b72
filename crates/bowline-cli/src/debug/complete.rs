//! What Tab offers. Words, tools, arguments and URIs are known here; values of prompts and
//! templates are asked of the server.

use std::collections::BTreeMap;

use serde_json::Value;

use super::field::{Field, Kind, fields, plain};
use super::journal;
use super::words::{SETTINGS, WORDS};

/// What a server has, as far as completion needs it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Catalog {
    /// Tools: name and input schema.
    pub(crate) tools: Vec<(String, Value)>,
    /// What tools promise to answer: name and output schema.
    pub(crate) promises: BTreeMap<String, Value>,
    /// Prompts: name and the names of their arguments.
    pub(crate) prompts: Vec<(String, Vec<String>)>,
    /// The URIs of resources.
    pub(crate) resources: Vec<String>,
    /// The URI templates.
    pub(crate) templates: Vec<String>,
}

/// What the cursor stands behind, and what could stand there.
#[derive(Debug, PartialEq)]
pub(crate) struct Offer {
    /// Where the part begins that is replaced, in bytes.
    pub(crate) start: usize,
    /// Where the candidates come from.
    pub(crate) source: Source,
}

/// Where candidates come from.
#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    /// They are known.
    Known(Vec<String>),
    /// The server is to be asked.
    Server(Question),
}

/// What to ask the server.
#[derive(Debug, PartialEq)]
pub(crate) struct Question {
    /// Of what.
    pub(crate) of: Of,
    /// Which argument.
    pub(crate) argument: String,
    /// What was typed of it.
    pub(crate) value: String,
    /// Arguments that are there already.
    pub(crate) others: Vec<(String, String)>,
    /// What comes before each value.
    pub(crate) prefix: String,
}

/// What has arguments that a server completes.
#[derive(Debug, PartialEq)]
pub(crate) enum Of {
    /// A prompt, by name.
    Prompt(String),
    /// A template of resources.
    Template(String),
}

/// What could stand at the end of `line`, which ends at the cursor.
pub(crate) fn offer(line: &str, catalog: &Catalog) -> Option<Offer> {
    if let Some(offer) = inside_call(line, catalog) {
        return Some(offer);
    }
    let start = line.rfind(char::is_whitespace).map_or(0, |blank| blank + 1);
    let part = &line[start..];
    let mut before = line[..start].split_whitespace();
    let known = |all: Vec<String>| known(start, part, all);
    let Some(command) = before.next() else { return known(first_words(catalog)) };
    let others: Vec<&str> = before.collect();
    match (command, others.as_slice()) {
        ("call" | "describe" | "tools", []) => known(spaced(catalog.tool_names())),
        ("call", [tool, given @ ..]) => {
            let schema = catalog.schema(tool)?;
            argument(start, part, given, &fields(schema, schema))
        }
        ("prompt", []) => known(spaced(catalog.prompts.iter().map(|(name, _)| name.as_str()))),
        ("prompt", [name, given @ ..]) => catalog.prompt_argument(start, part, name, given),
        ("read" | "subscribe" | "unsubscribe", []) => catalog.uri(start, part),
        ("help", []) => known(WORDS.iter().map(|word| word.name.to_owned()).collect()),
        ("set", []) => known(spaced(SETTINGS.iter().map(|(name, _, _)| *name))),
        ("set", [name]) => {
            let setting = SETTINGS.iter().find(|setting| setting.0 == *name)?;
            known(setting.1.iter().map(|value| (*value).to_owned()).collect())
        }
        ("log", _) => known(journal::WORDS.iter().map(|word| (*word).to_owned()).collect()),
        ("raw", []) => known(spaced(METHODS.iter().copied())),
        _ => {
            let schema = catalog.schema(command)?;
            argument(start, part, &others, &fields(schema, schema))
        }
    }
}

/// What all candidates have in common at their start.
pub(crate) fn common_start(candidates: &[String]) -> &str {
    let Some((first, rest)) = candidates.split_first() else { return "" };
    let mut end = first.len();
    for other in rest {
        let same = first.char_indices().zip(other.chars());
        let differs = same.skip_while(|((_, a), b)| a == b).map(|((place, _), _)| place).next();
        end = end.min(differs.unwrap_or_else(|| first.len().min(other.len())));
    }
    &first[..end]
}

/// Requests that a person might want to send.
const METHODS: [&str; 13] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "server/discover",
    "tools/call",
    "tools/list",
    "tasks/get",
];

fn known(start: usize, part: &str, all: Vec<String>) -> Option<Offer> {
    let mut found: Vec<String> = all.into_iter().filter(|it| it.starts_with(part)).collect();
    found.sort();
    found.dedup();
    Some(Offer { start, source: Source::Known(found) })
}

fn spaced<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    names.into_iter().map(|name| format!("{name} ")).collect()
}

fn first_words(catalog: &Catalog) -> Vec<String> {
    let words = WORDS.iter().filter(|word| word.name.len() > 1);
    let mut all: Vec<String> = words
        .map(|word| match word.usage {
            "" => word.name.to_owned(),
            _ => format!("{} ", word.name),
        })
        .collect();
    all.extend(catalog.tools.iter().map(|(name, schema)| {
        let has_fields = !fields(schema, schema).is_empty();
        format!("{name}({}", if has_fields { "" } else { ")" })
    }));
    all
}

/// `key=` or, behind it, a value.
fn argument(start: usize, part: &str, given: &[&str], fields: &[Field]) -> Option<Offer> {
    if let Some((name, value)) = part.split_once('=') {
        let field = fields.iter().find(|field| field.name == name)?;
        return known(start + name.len() + 1, value, values(field));
    }
    let is_given = |field: &&Field| {
        given.iter().any(|it| it.split(['=', ':']).next() == Some(field.name.as_str()))
    };
    let free = fields.iter().filter(|field| !is_given(field));
    known(start, part, free.map(|field| format!("{}=", field.name)).collect())
}

/// The values that are known of a field.
fn values(field: &Field) -> Vec<String> {
    match field.kind {
        Kind::Boolean => vec!["true".to_owned(), "false".to_owned()],
        _ => field.kind.choices().iter().map(|choice| plain(&choice.value)).collect(),
    }
}

/// Between the parenthesis or the brace of a call and its end.
fn inside_call(line: &str, catalog: &Catalog) -> Option<Offer> {
    let open = line.find(['(', '{'])?;
    let is_json = line.as_bytes()[open] == b'{' || line[open + 1..].trim_start().starts_with('{');
    let head = line[..open].trim();
    let tool = head.strip_prefix("call ").unwrap_or(head).trim();
    let schema = catalog.schema(tool)?;
    let fields = fields(schema, schema);
    let inner = line[open + 1..].trim_start().trim_start_matches('{');
    let given: Vec<&str> = inner.split(',').collect();
    let (last, before) = given.split_last()?;
    let name_of = |text: &str| {
        text.split([':', '=']).next().unwrap_or_default().trim().trim_matches('"').to_owned()
    };
    if let Some((name, value)) = last.split_once(':') {
        let name = name_of(name);
        let field = fields.iter().find(|field| field.name == name)?;
        let part = value.trim_start();
        let quoted = |value: String| match is_json && field.kind != Kind::Boolean {
            true => format!("\"{value}\""),
            false => value,
        };
        let all = values(field).into_iter().map(quoted).collect();
        return known(line.len() - part.len(), part, all);
    }
    let used: Vec<String> = before.iter().map(|text| name_of(text)).collect();
    let free = fields.iter().filter(|field| !used.contains(&field.name));
    let part = last.trim_start();
    let named = |field: &Field| match is_json {
        true => format!("\"{}\": ", field.name),
        false => format!("{}: ", field.name),
    };
    known(line.len() - part.len(), part, free.map(named).collect())
}

impl Catalog {
    /// The input schema of a tool.
    pub(crate) fn schema(&self, tool: &str) -> Option<&Value> {
        self.tools.iter().find(|(name, _)| name == tool).map(|(_, schema)| schema)
    }

    fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|(name, _)| name.as_str())
    }

    fn prompt_argument(
        &self,
        start: usize,
        part: &str,
        prompt: &str,
        given: &[&str],
    ) -> Option<Offer> {
        let (_, names) = self.prompts.iter().find(|(name, _)| name == prompt)?;
        let others = given.iter().filter_map(|word| word.split_once('='));
        let others: Vec<(String, String)> =
            others.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let Some((argument, value)) = part.split_once('=') else {
            let is_given = |name: &&String| others.iter().any(|(given, _)| given == *name);
            let free = names.iter().filter(|name| !is_given(name));
            return known(start, part, free.map(|name| format!("{name}=")).collect());
        };
        let question = Question {
            of: Of::Prompt(prompt.to_owned()),
            argument: argument.to_owned(),
            value: value.to_owned(),
            others,
            prefix: String::new(),
        };
        let start = start + argument.len() + 1;
        Some(Offer { start, source: Source::Server(question) })
    }

    /// A resource, the fixed start of a template, or what the server knows of a template's parts.
    fn uri(&self, start: usize, part: &str) -> Option<Offer> {
        for template in &self.templates {
            let Some((prefix, rest)) = template.split_once('{') else { continue };
            let Some(value) = part.strip_prefix(prefix) else { continue };
            let Some((argument, _)) = rest.split_once('}') else { continue };
            let question = Question {
                of: Of::Template(template.clone()),
                argument: argument.trim_start_matches(['+', '#', '/', '?', '&']).to_owned(),
                value: value.to_owned(),
                others: Vec::new(),
                prefix: prefix.to_owned(),
            };
            return Some(Offer { start, source: Source::Server(question) });
        }
        let fixed = self.templates.iter().filter_map(|it| it.split('{').next());
        let all = self.resources.iter().map(String::as_str).chain(fixed);
        known(start, part, all.map(str::to_owned).collect())
    }
}

#[cfg(test)]
#[path = "complete/tests.rs"]
mod tests;
