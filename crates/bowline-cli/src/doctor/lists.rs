//! What the server has: each list read to its end, and looked at for what clients choke on.

use std::collections::HashSet;

use bowline::Json;
use bowline::proto::decode::decode_result;
use bowline::proto::model::{ListPromptsResult, ListResourcesResult, ListToolsResult};
use serde_json::{Value, json};

use super::era::{Live, Want};
use super::report::{Diagnosis, Report, Step};
use super::seen::plain;
use super::wire::{Trouble, Wire};
use tokio::time::Instant;

/// One kind of things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tools,
    Resources,
    Prompts,
}

/// Most pages that are read of one list.
const PAGES: usize = 100;

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }

    /// The member that tells one from another.
    fn key(self) -> &'static str {
        if self == Self::Resources { "uri" } else { "name" }
    }

    fn check_page(self, method: &str, raw: &Json) -> Result<(), String> {
        let read = match self {
            Self::Tools => decode_result::<ListToolsResult>(method, raw.as_raw()).map(drop),
            Self::Resources => decode_result::<ListResourcesResult>(method, raw.as_raw()).map(drop),
            Self::Prompts => decode_result::<ListPromptsResult>(method, raw.as_raw()).map(drop),
        };
        read.map_err(|error| error.to_string())
    }
}

/// What the conversation can go on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Alive,
    Gone,
}

/// Asks for everything that the server says it has, and for a sign of life.
pub(crate) async fn walk(wire: &mut Wire, report: &mut Report, live: &Live, want: Want) -> Left {
    for kind in [Kind::Tools, Kind::Resources, Kind::Prompts] {
        if live.capabilities.get(kind.name()).is_none() {
            report.push(Step::skipped(kind.name(), "not among its capabilities"));
            continue;
        }
        if list(wire, report, (live, want), kind).await == Left::Gone {
            return Left::Gone;
        }
    }
    if live.revision.is_modern() {
        return Left::Alive;
    }
    let began = Instant::now();
    match wire.ask("ping", json!({}), live.revision, want.timeout).await {
        Ok(_) => report.push(Step::ok("ping", "answered", began)),
        Err(trouble) => {
            let (seen, diagnosis) = wire.explain("ping", &trouble).await;
            report.push(Step::ok("ping", seen, began).fail(diagnosis));
            return left(&trouble);
        }
    }
    Left::Alive
}

fn left(trouble: &Trouble) -> Left {
    match trouble {
        Trouble::Ended | Trouble::NoAnswer(_) | Trouble::Unreachable { .. } => Left::Gone,
        Trouble::Refused { .. } | Trouble::Malformed(_) | Trouble::Http(_) => Left::Alive,
    }
}

/// What a list gave until it ended or broke.
#[derive(Default)]
struct Read {
    items: Vec<Value>,
    pages: usize,
    fault: Option<Diagnosis>,
}

async fn list(
    wire: &mut Wire,
    report: &mut Report,
    (live, want): (&Live, Want),
    kind: Kind,
) -> Left {
    let began = Instant::now();
    let method = format!("{}/list", kind.name());
    match read(wire, (live, want), kind).await {
        Ok(read) => {
            let pages =
                if read.pages == 1 { String::new() } else { format!(" on {} pages", read.pages) };
            let seen = format!("{}{pages}{}", read.items.len(), examples(&read.items, kind));
            let step = Step::ok(kind.name(), seen, began);
            let fault = read.fault.or_else(|| check(kind, &read.items));
            report.push(match fault {
                None => step,
                Some(fault) => step.fail(fault),
            });
            Left::Alive
        }
        Err(Trouble::Refused { error, .. }) if error.code.0 == -32601 && kind != Kind::Tools => {
            let cause = format!("the server declares {} and does not know {method}", kind.name());
            let fix = "Answer it, with an empty list if there is none, or do not declare it.";
            let seen = format!("error {}: {}", error.code.0, plain(&error.message));
            report.push(Step::ok(kind.name(), seen, began).warn(Diagnosis::broken(cause, fix)));
            Left::Alive
        }
        Err(trouble) => {
            let (seen, diagnosis) = wire.explain(&method, &trouble).await;
            report.push(Step::ok(kind.name(), seen, began).fail(diagnosis));
            left(&trouble)
        }
    }
}

async fn read(wire: &mut Wire, (live, want): (&Live, Want), kind: Kind) -> Result<Read, Trouble> {
    let method = format!("{}/list", kind.name());
    let deadline = Instant::now() + want.timeout;
    let mut read = Read::default();
    let mut cursors = HashSet::new();
    let mut params = json!({});
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let asked = wire.ask(&method, params, live.revision, left).await;
        // What came in time counts: a list without an end is told as such.
        let raw = match asked {
            Err(Trouble::NoAnswer(_)) if read.pages > 0 => {
                read.fault =
                    Some(endless(kind, &format!("{} pages came within the time", read.pages)));
                return Ok(read);
            }
            asked => asked.map_err(|trouble| match trouble {
                Trouble::NoAnswer(_) => Trouble::NoAnswer(want.timeout),
                other => other,
            })?,
        };
        kind.check_page(&method, &raw).map_err(Trouble::Malformed)?;
        let page: Value = raw.to_value();
        read.pages += 1;
        read.items.extend(page[kind.name()].as_array().cloned().unwrap_or_default());
        let Some(cursor) = page["nextCursor"].as_str() else { return Ok(read) };
        if !cursors.insert(cursor.to_owned()) {
            let what = format!("the cursor {:?} comes a second time", plain(cursor));
            read.fault = Some(endless(kind, &what));
            return Ok(read);
        }
        if read.pages == PAGES {
            read.fault = Some(endless(kind, &format!("{PAGES} pages, and still another")));
            return Ok(read);
        }
        params = json!({ "cursor": cursor });
    }
}

fn endless(kind: Kind, what: &str) -> Diagnosis {
    Diagnosis::broken(
        format!("the list of {} does not end: {what}", kind.name()),
        "Leave nextCursor out of the last page, and let each cursor lead on.",
    )
}

fn examples(items: &[Value], kind: Kind) -> String {
    let names: Vec<String> =
        items.iter().take(5).filter_map(|item| item[kind.key()].as_str().map(plain)).collect();
    let more = if items.len() > 5 { ", …" } else { "" };
    if names.is_empty() { String::new() } else { format!(": {}{more}", names.join(", ")) }
}

/// The first thing in a list that clients choke on.
fn check(kind: Kind, items: &[Value]) -> Option<Diagnosis> {
    let mut known = HashSet::new();
    for item in items {
        let name = item[kind.key()].as_str().unwrap_or_default();
        let shown = plain(name);
        let one = kind.name().trim_end_matches('s');
        if name.is_empty() {
            let cause = format!("a {one} has an empty {}", kind.key());
            return Some(Diagnosis::broken(cause, "Give it one."));
        }
        if !known.insert(name) {
            let cause = format!("two {} have the {} {shown:?}", kind.name(), kind.key());
            return Some(Diagnosis::broken(
                cause,
                "Name each once: clients keep one, or refuse all.",
            ));
        }
        if kind == Kind::Tools
            && let Some(problem) = check_schema(&item["inputSchema"])
        {
            return Some(Diagnosis::broken(
                format!("the input schema of the tool {shown:?} is not valid: {problem}"),
                "A schema of arguments is a JSON Schema of \"type\": \"object\".",
            ));
        }
    }
    None
}

fn check_schema(schema: &Value) -> Option<String> {
    if !schema.is_object() {
        return Some("it is no JSON object".to_owned());
    }
    if schema["type"] != "object" {
        let told = schema.get("type").map_or_else(|| "missing".to_owned(), Value::to_string);
        return Some(format!("its type is {}, not \"object\"", plain(&told)));
    }
    bowline_schema::Schema::compile(schema).err().map(|error| plain(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_choke_on_is_named() {
        let tool = |name: &str, schema: Value| json!({ "name": name, "inputSchema": schema });
        let good = || json!({ "type": "object" });
        for (kind, items, cause) in [
            (
                Kind::Tools,
                vec![tool("a", good()), tool("a", good())],
                "two tools have the name \"a\"",
            ),
            (Kind::Tools, vec![tool("", good())], "a tool has an empty name"),
            (Kind::Tools, vec![tool("a", json!({ "type": "string" }))], "its type is \"string\""),
            (Kind::Tools, vec![tool("a", json!({}))], "its type is missing"),
            (Kind::Tools, vec![tool("a", json!([]))], "no JSON object"),
            (
                Kind::Tools,
                vec![tool("a", json!({ "type": "object", "properties": 5 }))],
                "not valid",
            ),
            (Kind::Resources, vec![json!({ "uri": "x" }), json!({ "uri": "x" })], "the uri \"x\""),
            (Kind::Prompts, vec![json!({ "name": "" })], "a prompt has an empty name"),
        ] {
            let found = check(kind, &items).unwrap_or_else(|| panic!("{items:?}"));
            assert!(found.cause.contains(cause), "{items:?}: {found:?}");
        }
        assert_eq!(check(Kind::Tools, &[tool("a", good()), tool("b", good())]), None);
        assert_eq!(check(Kind::Resources, &[json!({ "uri": "x" }), json!({ "uri": "y" })]), None);
    }
}
