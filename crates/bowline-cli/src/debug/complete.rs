//! What Tab offers. Words, tools, arguments and URIs are known here; the values of prompts and
//! templates come from the server.

use bowline::model::{Prompt, Tool};
use serde_json::{Map, Value, json};

use super::log;
use super::words::{SETTINGS, WORDS};
use crate::commands::complete;
use crate::schema::{Property, View};

/// What a server has, as far as completion and calls need it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Catalog {
    pub(crate) tools: Vec<Tool>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) resources: Vec<String>,
    pub(crate) templates: Vec<String>,
}

/// What could stand at the cursor, in place of the text from `start` on.
#[derive(Debug, PartialEq)]
pub(crate) struct Offer {
    /// In bytes.
    pub(crate) start: usize,
    pub(crate) source: Source,
}

/// Where candidates come from.
#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    Known(Vec<String>),
    /// The answer to `completion/complete`; the prefix stands before each value.
    Server {
        params: Value,
        prefix: String,
    },
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
        ("call" | "describe" | "tools", []) => {
            known(spaced(catalog.tools.iter().map(|tool| tool.name.as_str())))
        }
        ("call", [tool, given @ ..]) => {
            argument(start, part, given, &catalog.arguments(tool)?, ("", "="))
        }
        ("prompt" | "complete", []) => {
            known(spaced(catalog.prompts.iter().map(|prompt| prompt.name.as_str())))
        }
        ("prompt" | "complete", [name, given @ ..]) => {
            catalog.prompt_argument(start, part, name, given)
        }
        ("read" | "subscribe" | "unsubscribe", []) => catalog.uri(start, part),
        ("help", []) => known(WORDS.iter().map(|word| word.0.to_owned()).collect()),
        ("set", []) => known(spaced(SETTINGS.iter().map(|setting| setting.0))),
        ("set", [name]) => {
            let setting = SETTINGS.iter().find(|setting| setting.0 == *name)?;
            known(setting.1.iter().map(|value| (*value).to_owned()).collect())
        }
        ("log", _) => known(log::WORDS.iter().map(|word| (*word).to_owned()).collect()),
        ("raw", []) => known(spaced(METHODS)),
        (tool, given) => argument(start, part, given, &catalog.arguments(tool)?, ("", "=")),
    }
}

/// What all candidates begin with.
pub(crate) fn common_start(candidates: &[String]) -> &str {
    let Some((first, rest)) = candidates.split_first() else { return "" };
    let mut end = first.len();
    for other in rest {
        let same = first.chars().zip(other.chars()).take_while(|(one, two)| one == two);
        end = end.min(same.map(|(letter, _)| letter.len_utf8()).sum());
    }
    &first[..end]
}

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
    let words = WORDS.iter().filter(|(name, _, _)| name.len() > 1);
    let words = words.map(|(name, usage, _)| match *usage {
        "" => (*name).to_owned(),
        _ => format!("{name} "),
    });
    let tools = catalog.tools.iter().map(|tool| {
        let is_empty = View::new(&tool.input_schema.to_value()).properties().is_empty();
        format!("{}({}", tool.name, if is_empty { ")" } else { "" })
    });
    words.chain(tools).collect()
}

/// The name of an argument or, behind its sign, a value.
fn argument(
    start: usize,
    part: &str,
    given: &[&str],
    all: &[Property],
    (quote, sign): (&str, &str),
) -> Option<Offer> {
    let name_of =
        |text: &str| text.split([':', '=']).next().map(|it| it.trim().trim_matches('"').to_owned());
    if let Some((name, value)) = part.split_once(sign.trim_end()) {
        let name = name.trim().trim_matches('"');
        let view = &all.iter().find(|property| property.name == name)?.view;
        let value = value.trim_start();
        let quote = if view.choices().is_some() { quote } else { "" };
        let values = view.suggestions().iter().map(|it| format!("{quote}{it}{quote}")).collect();
        return known(start + part.len() - value.len(), value, values);
    }
    let given: Vec<String> = given.iter().filter_map(|text| name_of(text)).collect();
    let free = all.iter().map(|property| &property.name).filter(|name| !given.contains(name));
    known(start, part, free.map(|name| format!("{quote}{name}{quote}{sign}")).collect())
}

/// Between the parenthesis or the brace of a call and its end.
fn inside_call(line: &str, catalog: &Catalog) -> Option<Offer> {
    let open = line.find(['(', '{'])?;
    let is_json = line.as_bytes()[open] == b'{' || line[open + 1..].trim_start().starts_with('{');
    let head = line[..open].trim();
    let all = catalog.arguments(head.strip_prefix("call ").unwrap_or(head).trim())?;
    let inner = line[open + 1..].trim_start().trim_start_matches('{');
    let given: Vec<&str> = inner.split(',').collect();
    let (last, before) = given.split_last()?;
    let part = last.trim_start();
    let quote = if is_json { "\"" } else { "" };
    argument(line.len() - part.len(), part, before, &all, (quote, ": "))
}

impl Catalog {
    pub(crate) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    fn arguments(&self, tool: &str) -> Option<Vec<Property>> {
        Some(View::new(&self.tool(tool)?.input_schema.to_value()).properties())
    }

    fn prompt_argument(
        &self,
        start: usize,
        part: &str,
        prompt: &str,
        given: &[&str],
    ) -> Option<Offer> {
        let known_prompt = self.prompts.iter().find(|known| known.name == prompt)?;
        let names = known_prompt.arguments.iter().flatten().map(|argument| &argument.name);
        let others = given.iter().filter_map(|word| word.split_once('='));
        let others: Map<String, Value> =
            others.map(|(name, value)| (name.to_owned(), value.into())).collect();
        let Some((argument, value)) = part.split_once('=') else {
            let free = names.filter(|name| !others.contains_key(*name));
            return known(start, part, free.map(|name| format!("{name}=")).collect());
        };
        let of = json!({ "type": "ref/prompt", "name": prompt });
        let params = complete::params(&of, (argument, value), &others);
        let source = Source::Server { params, prefix: String::new() };
        Some(Offer { start: start + argument.len() + 1, source })
    }

    /// A resource, the fixed start of a template, or what the server knows of a template's parts.
    fn uri(&self, start: usize, part: &str) -> Option<Offer> {
        for template in &self.templates {
            let Some((prefix, rest)) = template.split_once('{') else { continue };
            let Some(value) = part.strip_prefix(prefix) else { continue };
            let Some((argument, _)) = rest.split_once('}') else { continue };
            let argument = argument.trim_start_matches(['+', '#', '/', '?', '&']);
            let of = json!({ "type": "ref/resource", "uri": template });
            let params = complete::params(&of, (argument, value), &Map::new());
            let source = Source::Server { params, prefix: prefix.to_owned() };
            return Some(Offer { start, source });
        }
        let fixed = self.templates.iter().filter_map(|it| it.split('{').next());
        let all = self.resources.iter().map(String::as_str).chain(fixed);
        known(start, part, all.map(str::to_owned).collect())
    }
}

#[cfg(test)]
#[path = "complete/tests.rs"]
mod tests;
