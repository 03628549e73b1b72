//! The lists of a server: tools, resources, resource templates, prompts, skills and tasks. Fetched
//! page by page, read item by item, shown as a table.

use std::collections::{BTreeMap, HashSet};

use bowline::client::CallError;
use bowline::model::skill;
use bowline::{Client, Json};
use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::failure::{Code, Failure, malformed, parse};
use crate::render::content::size;
use crate::render::table;
use crate::screen::{OutputArgs, Screen};
use crate::session::{Invocation, Session};
use crate::target::TargetArgs;
use crate::text::{did_you_mean, line};

/// One of the protocol's lists.
pub(crate) struct List {
    /// What an item is called.
    noun: &'static str,
    pub(crate) method: &'static str,
    /// The member of the result that holds the items.
    pub(crate) member: &'static str,
    /// The table's columns: a heading, and the members of an item of which the first that is there
    /// fills the cell. The first column identifies the item.
    columns: &'static [(&'static str, &'static [&'static str])],
    /// Printed in place of an empty table.
    empty: &'static str,
}

pub(crate) const TOOLS: List = List {
    noun: "tool",
    method: "tools/list",
    member: "tools",
    columns: &[("TOOL", &["name"]), ("DESCRIPTION", &["description", "title"])],
    empty: "no tools\n",
};

pub(crate) const RESOURCES: List = List {
    noun: "resource",
    method: "resources/list",
    member: "resources",
    columns: &[
        ("URI", &["uri"]),
        ("NAME", &["title", "name"]),
        ("TYPE", &["mimeType"]),
        ("SIZE", &["size"]),
        ("DESCRIPTION", &["description"]),
    ],
    empty: "no resources; `bowline templates` may list families of them\n",
};

pub(crate) const TEMPLATES: List = List {
    noun: "resource template",
    method: "resources/templates/list",
    member: "resourceTemplates",
    columns: &[
        ("TEMPLATE", &["uriTemplate"]),
        ("NAME", &["title", "name"]),
        ("TYPE", &["mimeType"]),
        ("DESCRIPTION", &["description"]),
    ],
    empty: "no resource templates\n",
};

pub(crate) const PROMPTS: List = List {
    noun: "prompt",
    method: "prompts/list",
    member: "prompts",
    columns: &[
        ("PROMPT", &["name"]),
        ("ARGUMENTS (* REQUIRED)", &["arguments"]),
        ("DESCRIPTION", &["description", "title"]),
    ],
    empty: "no prompts\n",
};

pub(crate) const SKILLS: List = List {
    noun: "skill",
    method: "skills/list",
    member: "skills",
    columns: &[("URI", &["uri"]), ("DESCRIPTION", &["frontmatter"])],
    empty: "no skills\n",
};

pub(crate) const TASKS: List = List {
    noun: "task",
    method: "tasks/list",
    member: "tasks",
    columns: &[
        ("TASK", &["taskId"]),
        ("STATUS", &["status"]),
        ("CREATED", &["createdAt"]),
        ("MESSAGE", &["statusMessage"]),
    ],
    empty: "no tasks\n",
};

/// What a member of an item looks like in a table.
fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => line(text),
        // The one number is a size.
        Value::Number(number) => {
            let bytes = number.as_u64().and_then(|bytes| usize::try_from(bytes).ok());
            bytes.map(size).unwrap_or_default()
        }
        // The one array holds arguments.
        Value::Array(arguments) => {
            let arguments = arguments.iter().map(|argument| {
                let star = if argument["required"] == true { "*" } else { "" };
                format!("{}{star}", line(argument["name"].as_str().unwrap_or_default()))
            });
            arguments.collect::<Vec<_>>().join(", ")
        }
        // The one object is the front matter of a skill.
        Value::Object(members) => members.get("description").map(cell).unwrap_or_default(),
        _ => String::new(),
    }
}

/// A server, and what to list of it.
#[derive(Debug, Clone, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    filter: Filter,

    #[command(flatten)]
    target: TargetArgs,
}

/// Which items to list.
#[derive(Debug, Clone, Args)]
pub(crate) struct Filter {
    /// List only items whose name, title or description contains this; with * or ?, items whose
    /// name matches
    #[arg(long, short, value_name = "PATTERN")]
    filter: Option<String>,
}

impl List {
    /// `bowline resources`, `bowline templates` and `bowline prompts`.
    pub(crate) async fn run(&self, args: &ListArgs, root: &OutputArgs) -> Result<(), Failure> {
        Invocation::new(&args.target, root)?
            .run(async |session| {
                let result = args.filter.apply(self, self.fetch(session).await?)?;
                let screen = &session.screen;
                screen.show(&result, || Ok(self.table(&self.items(&result, screen)?, screen)))
            })
            .await
    }

    /// All pages as one result: the members of the first page, the items of all.
    pub(super) async fn fetch(&self, session: &Session) -> Result<Json, Failure> {
        let capability = self.method.split('/').next().unwrap_or_default();
        let is_offered = session.client.peer().is_some_and(|peer| match capability {
            "tools" => peer.capabilities.tools.is_some(),
            "resources" => peer.capabilities.resources.is_some(),
            "skills" => peer.capabilities.has_extension(skill::ID),
            _ => peer.capabilities.prompts.is_some(),
        });
        if !is_offered {
            let failure = Failure::new(Code::Refused, format!("the server offers no {capability}"));
            let remedy = format!("`bowline raw` with {} asks anyway", self.method);
            return Err(failure.with_remedy(remedy));
        }
        let (all, cut) = all_pages(&session.client, self.method, self.member).await?;
        if let Some(why) = cut {
            session.screen.warn(&why);
        }
        Ok(all)
    }

    /// The items in a result. Those that nothing identifies are left out with a warning.
    pub(crate) fn items(&self, result: &Json, screen: &Screen) -> Result<Vec<Json>, Failure> {
        self.read_with(result, screen, |item| match self.key(&item) {
            Some(_) => Ok(item),
            None => Err(format!("it has no {}", self.columns[0].1[0])),
        })
    }

    /// The items in a result as their type, each with its exact JSON. Malformed ones are left out
    /// with a warning.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        result: &Json,
        screen: &Screen,
    ) -> Result<Vec<(T, Json)>, Failure> {
        self.read_with(result, screen, |exact| {
            Ok((exact.parse().map_err(|error| error.to_string())?, exact))
        })
    }

    fn read_with<T>(
        &self,
        result: &Json,
        screen: &Screen,
        read: impl Fn(Json) -> Result<T, String>,
    ) -> Result<Vec<T>, Failure> {
        let list = parse::<BTreeMap<String, Json>>(result)?.remove(self.member);
        let missing = || malformed(&format!("the server's answer has no {:?}", self.member));
        let items = parse::<Vec<Json>>(&list.ok_or_else(missing)?)?.into_iter().enumerate();
        let warn = |(at, problem)| {
            screen.warn(&format!("{}[{at}] is left out: {problem}", self.member));
        };
        let read = items.map(|(at, item)| read(item).map_err(|problem| (at, problem)));
        Ok(read.filter_map(|item| item.map_err(warn).ok()).collect())
    }

    /// What identifies an item.
    pub(crate) fn key(&self, item: &Json) -> Option<String> {
        Some(item.to_value().get(self.columns[0].1[0])?.as_str()?.to_owned())
    }

    /// Whether an item has the text in it, or is named like a pattern with `*` or `?`.
    fn is_like(&self, item: &Json, pattern: &str) -> bool {
        let pattern = pattern.to_lowercase();
        let item = item.to_value();
        let text = |member: &str| item.get(member).and_then(Value::as_str).map(str::to_lowercase);
        let key = self.columns[0].1[0];
        if !pattern.contains(['*', '?']) {
            let mut members = [key, "name", "title", "description"].into_iter();
            return members.any(|member| text(member).is_some_and(|it| it.contains(&pattern)));
        }
        let pattern: Vec<char> = pattern.chars().collect();
        let is_named = |name: String| matches(&name.chars().collect::<Vec<_>>(), &pattern);
        [key, "name"].into_iter().filter_map(text).any(is_named)
    }

    /// Items as a table.
    pub(crate) fn table<'a>(
        &self,
        items: impl IntoIterator<Item = &'a Json>,
        screen: &Screen,
    ) -> String {
        let rows = items.into_iter().map(|item| {
            let item = item.to_value();
            let cells = self.columns.iter().map(|(_, members)| {
                members.iter().find_map(|member| item.get(member).map(cell)).unwrap_or_default()
            });
            cells.collect()
        });
        let rows: Vec<Vec<String>> = rows.collect();
        if rows.is_empty() {
            return self.empty.to_owned();
        }
        let head: Vec<&str> = self.columns.iter().map(|(heading, _)| *heading).collect();
        table::render(&head, rows, screen)
    }

    /// The item with this name.
    pub(super) fn find<'a, T>(
        &self,
        items: &'a [(T, Json)],
        name: &str,
    ) -> Result<&'a (T, Json), Failure> {
        let keys: Vec<_> = items.iter().map(|(_, exact)| self.key(exact)).collect();
        let at = keys.iter().position(|key| key.as_deref() == Some(name));
        let unknown = || self.unknown(name, keys.iter().flatten().map(String::as_str));
        at.map(|at| &items[at]).ok_or_else(unknown)
    }

    /// The failure to find an item by name, with similar names as a hint.
    pub(crate) fn unknown<'a>(&self, name: &str, names: impl Iterator<Item = &'a str>) -> Failure {
        let remedy = did_you_mean(name, names)
            .unwrap_or_else(|| format!("`bowline {}` lists them", self.member));
        Failure::usage(format!("there is no {} {name:?}", self.noun)).with_remedy(remedy)
    }
}

impl Filter {
    /// The result with the items that are wanted, each as it came.
    pub(super) fn apply(&self, list: &List, result: Json) -> Result<Json, Failure> {
        let Some(pattern) = &self.filter else { return Ok(result) };
        let missing = || malformed(&format!("the server's answer has no {:?}", list.member));
        let all = parse::<BTreeMap<String, Json>>(&result)?.remove(list.member);
        let all = parse::<Vec<Json>>(&all.ok_or_else(missing)?)?;
        let wanted = all.iter().filter(|item| list.is_like(item, pattern));
        let wanted: Vec<&str> = wanted.map(Json::as_str).collect();
        if wanted.is_empty() && !all.is_empty() {
            let what = format!("no {} of {} matches {pattern:?}", list.noun, all.len());
            return Err(Failure::usage(what));
        }
        Ok(rebuilt(&result, list.member, &wanted.join(",")))
    }
}

/// Whether a name is like a pattern, where `*` is anything and `?` any letter.
fn matches(name: &[char], pattern: &[char]) -> bool {
    // Where to go on after the last `*` when the rest does not fit.
    let (mut at, mut of, mut retry) = (0, 0, None);
    while at < name.len() {
        match pattern.get(of) {
            Some('*') => {
                retry = Some((at, of));
                of += 1;
            }
            Some(letter) if *letter == '?' || *letter == name[at] => (at, of) = (at + 1, of + 1),
            _ => {
                let Some((from, star)) = retry else { return false };
                retry = Some((from + 1, star));
                (at, of) = (from + 1, star + 1);
            }
        }
    }
    pattern[of..].iter().all(|letter| *letter == '*')
}

/// All pages of a list as one result, and why the rest is left out, if it is. A single page stays
/// exactly as it came.
pub(crate) async fn all_pages(
    client: &Client,
    method: &str,
    member: &str,
) -> Result<(Json, Option<String>), CallError> {
    #[derive(Deserialize)]
    struct Cursor {
        #[serde(rename = "nextCursor")]
        next: Option<String>,
    }
    // A single page has the limit of a message.
    let limits = client.limits();
    let (mut pages, mut cursors, mut bytes, mut items) = (Vec::new(), HashSet::new(), 0, 0);
    let mut params = Json::empty_object();
    let cut = loop {
        let page = client.call_json(method, params).await?;
        let next = page.parse::<Cursor>().ok().and_then(|cursor| cursor.next);
        bytes += page.as_str().len();
        items += items_of(&page, member).len() as u64;
        pages.push(page);
        let Some(cursor) = next else { break None };
        let reached = [
            (pages.len() as u64 >= limits.list_pages, format!("{} pages", limits.list_pages)),
            (bytes >= limits.list_bytes, format!("{} MiB", limits.list_bytes >> 20)),
            (items >= limits.list_items, format!("{} items", limits.list_items)),
        ];
        if let Some((_, most)) = reached.iter().find(|(is_reached, _)| *is_reached) {
            break Some(format!("{method}: more than {most}; the rest is left out"));
        }
        params = json!({ "cursor": cursor }).into();
        if let Some(repeated) = cursors.replace(cursor) {
            break Some(format!("{method}: nextCursor {repeated:?} repeats; the list never ends"));
        }
    };
    let all = if pages.len() == 1 { pages.remove(0) } else { joined(&pages, member) };
    Ok((all, cut))
}

/// The members of the first page as they came, with the items of all pages.
fn joined(pages: &[Json], member: &str) -> Json {
    let items = pages.iter().flat_map(|page| items_of(page, member));
    let items = items.map(|item| item.get().to_owned()).collect::<Vec<_>>().join(",");
    pages.first().map_or_else(Json::empty_object, |first| rebuilt(first, member, &items))
}

/// The items of a page; none if it has another shape.
fn items_of(page: &Json, member: &str) -> Vec<Box<RawValue>> {
    let mut members: BTreeMap<String, Json> = page.parse().unwrap_or_default();
    let items = members.remove(member).and_then(|items| items.parse().ok());
    items.unwrap_or_default()
}

/// A page with other items; everything else as it came, except the cursor.
fn rebuilt(page: &Json, member: &str, items: &str) -> Json {
    let first: Map<String, Value> = page.parse().unwrap_or_default();
    let members = first.iter().filter(|(name, _)| *name != "nextCursor").map(|(name, value)| {
        let value = if name == member { format!("[{items}]") } else { value.to_string() };
        format!("{}:{value}", Value::from(name.as_str()))
    });
    let text = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
    Json::from_text(text).unwrap_or_else(|_| Json::empty_object())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_filtered_by_text_and_by_pattern() {
        let page = json!({ "tools": [
            { "name": "read_file", "description": "Reads a FILE" },
            { "name": "list", "title": "List files" },
            { "name": "ping" },
        ], "x": 1, "nextCursor": "c" });
        for (pattern, names) in [
            ("file", &["read_file", "list"][..]),
            ("PING", &["ping"]),
            ("*_file", &["read_file"]),
            ("?i*", &["list", "ping"]),
            ("p*i*g", &["ping"]),
            ("*", &["read_file", "list", "ping"]),
        ] {
            let filter = Filter { filter: Some(pattern.to_owned()) };
            let found = filter.apply(&TOOLS, Json::from(&page)).unwrap().to_value();
            let tools = found["tools"].as_array().unwrap();
            let found: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
            assert_eq!(found, names, "{pattern}");
        }
        let filter = Filter { filter: Some("pin".to_owned()) };
        let found = filter.apply(&TOOLS, Json::from(&page)).unwrap();
        assert_eq!(found.as_str(), r#"{"tools":[{"name":"ping"}],"x":1}"#);
        let filter = Filter { filter: Some("?".to_owned()) };
        let told = filter.apply(&TOOLS, Json::from(&page)).unwrap_err().what;
        assert_eq!(told, "no tool of 3 matches \"?\"");
    }
}
