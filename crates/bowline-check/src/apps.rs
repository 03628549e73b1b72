//! The apps of a server, judged without a browser: what its tools say about them, and the
//! documents themselves. Each judge belongs to the rule with its name, and serves `bowline apps`.

mod origins;

use std::collections::{BTreeMap, BTreeSet};

use bowline::base64::STANDARD;
use bowline::model;
use bowline::model::ui::{FLAT_META_KEY, ID, MIME_TYPE, SCHEME, UiCsp, UiResourceMeta};
use serde_json::Value;

use crate::calls::{is_read_only, needs_arguments};
use crate::rule::{self, Rule};

/// Documents longer than this are worth a word: hosts load one for each result that they show.
const LONG: usize = 1 << 20;

/// Everything that a server says about its apps, as it was received.
#[derive(Debug, Clone, Default)]
pub struct Apps {
    /// Whether the server declares the extension; `None` if the revision has no extensions.
    pub is_declared: Option<bool>,
    /// Its tools, as listed.
    pub tools: Vec<Value>,
    /// The result of `resources/read` for each of [`uris`](Self::uris), or the error.
    pub documents: BTreeMap<String, Result<Value, String>>,
    /// The names of tools that were called, and their results.
    pub results: Vec<(String, Value)>,
}

/// A rule about apps that a server breaks.
#[derive(Debug, Clone)]
pub struct AppProblem {
    /// The rule.
    pub rule: &'static Rule,
    /// What is wrong, and with what.
    pub said: String,
}

impl Apps {
    /// The URIs of the apps that these tools name, each once.
    pub fn uris(tools: &[Value]) -> BTreeSet<String> {
        tools.iter().filter_map(uri_of).collect()
    }

    /// Tools that may be called to see what clients without apps get: those with an app that are
    /// marked read-only and need no arguments.
    pub fn callable(tools: &[Value]) -> impl Iterator<Item = &str> {
        let safe = tools.iter().filter(|it| is_read_only(it) && !needs_arguments(it));
        safe.filter(|it| uri_of(it).is_some()).map(name)
    }

    /// The names of the tools that have this app.
    pub fn tools_of<'a>(&'a self, uri: &'a str) -> impl Iterator<Item = &'a str> {
        let with_it = self.tools.iter().filter(move |it| uri_of(it).as_deref() == Some(uri));
        with_it.map(name)
    }

    /// The document of an app.
    pub fn document(&self, uri: &str) -> Option<Document> {
        let result = self.documents.get(uri)?.as_ref().ok()?;
        let all = result.get("contents")?.as_array()?;
        let contents = all.iter().find(|it| it["uri"] == uri).or_else(|| all.first())?;
        let html = match (&contents["text"], &contents["blob"]) {
            (Value::String(text), _) => text.clone(),
            (_, Value::String(blob)) => String::from_utf8(STANDARD.decode(blob)?).ok()?,
            _ => return None,
        };
        let mime_type = contents["mimeType"].as_str().map(str::to_owned);
        Some(Document { html, mime_type, ui: contents.pointer("/_meta/ui").cloned() })
    }

    /// All rules that the server breaks, in the order of the table.
    pub fn problems(&self) -> Vec<AppProblem> {
        let broken = |(id, judge): &(&str, Judge)| {
            let rule = rule::all().find(|rule| rule.id == *id);
            let said = judge(self);
            rule.into_iter().flat_map(move |rule| {
                said.clone().into_iter().map(move |said| AppProblem { rule, said })
            })
        };
        JUDGES.iter().flat_map(broken).collect()
    }

    /// What is wrong according to one rule.
    pub(crate) fn judge(&self, rule: &str) -> Vec<String> {
        let found = JUDGES.iter().find(|(id, _)| *id == rule);
        found.map_or_else(Vec::new, |(_, judge)| judge(self))
    }

    /// The documents that could be read.
    fn all_documents(&self) -> impl Iterator<Item = (&str, Document)> {
        self.documents.keys().filter_map(|uri| Some((uri.as_str(), self.document(uri)?)))
    }

    /// The tools that say anything about apps, with what they say.
    fn with_ui(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.tools.iter().filter_map(|it| Some((name(it), it.pointer("/_meta/ui")?)))
    }
}

/// A document, as it was read.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its text.
    pub html: String,
    /// Its type.
    pub mime_type: Option<String>,
    /// What it needs from its host, as received.
    ui: Option<Value>,
}

impl Document {
    /// What it needs from its host.
    pub fn ui(&self) -> UiResourceMeta {
        let read = self.ui.as_ref().and_then(|it| serde_json::from_value(it.clone()).ok());
        read.unwrap_or_default()
    }
}

type Judge = fn(&Apps) -> Vec<String>;

const JUDGES: &[(&str, Judge)] = &[
    ("apps.metadata", metadata),
    ("apps.resource", resource),
    ("apps.mime-type", mime_type),
    ("apps.csp", csp),
    ("apps.document", document),
    ("apps.declared", declared),
    ("apps.origins", undeclared_origins),
    ("apps.text", text),
    ("apps.reachable", reachable),
    ("apps.misplaced", misplaced),
    ("apps.spellings", spellings),
    ("apps.size", size),
];

fn name(tool: &Value) -> &str {
    tool["name"].as_str().unwrap_or("(no name)")
}

/// The app of a tool.
fn uri_of(tool: &Value) -> Option<String> {
    let meta = tool.get("_meta")?;
    let nested = meta.pointer("/ui/resourceUri").or_else(|| meta.get(FLAT_META_KEY))?;
    nested.as_str().map(str::to_owned)
}

fn metadata(apps: &Apps) -> Vec<String> {
    let mut problems = Vec::new();
    for tool in &apps.tools {
        let of = |what: String| format!("tool {:?}: {what}", name(tool));
        if let Some(uri) = uri_of(tool).filter(|uri| !uri.starts_with(SCHEME)) {
            problems.push(of(format!("resourceUri {uri:?} does not begin with {SCHEME}")));
        }
        let Some(ui) = tool.pointer("/_meta/ui") else { continue };
        if !ui.is_object() {
            problems.push(of("_meta.ui is not an object".to_owned()));
        }
        if ui.get("resourceUri").is_some_and(|it| !it.is_string()) {
            problems.push(of("_meta.ui.resourceUri is not a string".to_owned()));
        }
        let is_known = |who: &Value| who == "model" || who == "app";
        let is_good = |it: &Value| it.as_array().is_some_and(|all| all.iter().all(is_known));
        if let Some(wrong) = ui.get("visibility").filter(|it| !is_good(it)) {
            problems.push(of(format!("visibility {wrong} is not a list of \"model\" and \"app\"")));
        }
    }
    problems
}

fn resource(apps: &Apps) -> Vec<String> {
    let problem = |(uri, read): (&String, &Result<Value, String>)| match read {
        Err(error) => Some(format!("{uri}: it cannot be read: {error}")),
        Ok(_) if apps.document(uri).is_none() => {
            Some(format!("{uri}: its contents are neither text nor base64 of UTF-8"))
        }
        Ok(_) => None,
    };
    apps.documents.iter().filter_map(problem).collect()
}

fn mime_type(apps: &Apps) -> Vec<String> {
    let wrong = apps.all_documents().filter(|(_, it)| it.mime_type.as_deref() != Some(MIME_TYPE));
    let said = |(uri, document): (&str, Document)| match document.mime_type {
        Some(found) => format!("{uri}: its type is {found:?}, not {MIME_TYPE:?}"),
        None => format!("{uri}: it has no type, and should have {MIME_TYPE:?}"),
    };
    wrong.map(said).collect()
}

fn csp(apps: &Apps) -> Vec<String> {
    let mut problems = Vec::new();
    for (uri, document) in apps.all_documents() {
        let Some(ui) = &document.ui else { continue };
        match serde_json::from_value::<UiResourceMeta>(ui.clone()) {
            Ok(read) => {
                let found = read.csp.iter().flat_map(UiCsp::problems);
                problems.extend(found.map(|problem| format!("{uri}: {problem}")));
            }
            Err(error) => problems.push(format!("{uri}: _meta.ui cannot be read: {error}")),
        }
    }
    problems
}

fn document(apps: &Apps) -> Vec<String> {
    let is_html = |html: &str| {
        let mut rest = html.trim_start_matches('\u{feff}').trim_start();
        while let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after).trim_start();
        }
        let start = rest.get(..14).unwrap_or_default();
        start.eq_ignore_ascii_case("<!doctype html")
    };
    let wrong = apps.all_documents().filter(|(_, it)| !is_html(&it.html));
    wrong.map(|(uri, _)| format!("{uri}: it does not begin with <!doctype html>")).collect()
}

fn declared(apps: &Apps) -> Vec<String> {
    let is_missing = apps.is_declared == Some(false) && !apps.documents.is_empty();
    is_missing.then(|| format!("capabilities.extensions has no {ID:?}")).into_iter().collect()
}

fn undeclared_origins(apps: &Apps) -> Vec<String> {
    let mut problems = Vec::new();
    for (uri, document) in apps.all_documents() {
        let csp = document.ui().csp.unwrap_or_default();
        for (list, origin) in origins::undeclared(&document.html, &csp) {
            problems.push(format!("{uri}: it uses {origin}, which is not in csp.{list}"));
        }
    }
    problems
}

/// Whether a result has something for models and for clients without apps.
fn text(apps: &Apps) -> Vec<String> {
    let is_silent = |result: &Value| {
        let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let says = |it: &Value| it["text"].as_str().is_some_and(|text| !text.trim().is_empty());
        result["isError"] != true && !blocks.iter().any(says)
    };
    let silent = apps.results.iter().filter(|(_, result)| is_silent(result));
    silent.map(|(name, _)| format!("tool {name:?}: its result has no text")).collect()
}

fn reachable(apps: &Apps) -> Vec<String> {
    let mut problems = Vec::new();
    for tool in &apps.tools {
        let read: Option<model::Tool> = serde_json::from_value(tool.clone()).ok();
        let Some(ui) = read.and_then(|it| it.ui()) else { continue };
        if ui.is_for_model() {
            continue;
        }
        if !ui.is_for_app() {
            problems
                .push(format!("tool {:?}: its visibility allows nobody to call it", name(tool)));
        } else if apps.documents.is_empty() {
            problems.push(format!("tool {:?}: it is for apps only, and there is none", name(tool)));
        }
    }
    problems
}

fn misplaced(apps: &Apps) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, ui) in apps.with_ui() {
        let misplaced = ["csp", "permissions", "domain", "prefersBorder"].iter();
        for member in misplaced.filter(|it| ui.get(**it).is_some()) {
            problems.push(format!("tool {name:?}: _meta.ui.{member} has no effect on a tool"));
        }
    }
    problems
}

fn spellings(apps: &Apps) -> Vec<String> {
    let mut problems = Vec::new();
    for tool in &apps.tools {
        let meta = &tool["_meta"];
        let (nested, flat) = (meta.pointer("/ui/resourceUri"), meta.get(FLAT_META_KEY));
        let said = match (nested, flat) {
            (None, None) => continue,
            (Some(nested), Some(flat)) if nested == flat => continue,
            (Some(_), Some(_)) => "name two different apps",
            (Some(_), None) => "lack the second: hosts of before 2026 read only that",
            (None, Some(_)) => "lack the first, which the specification names",
        };
        let both = format!("_meta.ui.resourceUri and _meta[{FLAT_META_KEY:?}]");
        problems.push(format!("tool {:?}: {both} {said}", name(tool)));
    }
    problems
}

fn size(apps: &Apps) -> Vec<String> {
    let long = apps.all_documents().filter(|(_, it)| it.html.len() > LONG);
    long.map(|(uri, it)| format!("{uri}: it has {} bytes", it.html.len())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const URI: &str = "ui://a/view";

    fn contents() -> Value {
        json!({ "uri": URI, "mimeType": MIME_TYPE, "text": "<!doctype html><title>A</title>" })
    }

    fn tool() -> Value {
        json!({
            "name": "show",
            "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true },
            "_meta": { "ui": { "resourceUri": URI }, "ui/resourceUri": URI },
        })
    }

    fn apps(tool: Value, contents: &Value) -> Apps {
        let tools = vec![tool];
        let read = |uri: String| (uri, Ok(json!({ "contents": [contents] })));
        Apps {
            is_declared: Some(true),
            documents: Apps::uris(&tools).into_iter().map(read).collect(),
            results: vec![("show".to_owned(), json!({ "content": [{ "text": "shown" }] }))],
            tools,
        }
    }

    fn broken(apps: &Apps) -> Vec<&'static str> {
        apps.problems().iter().map(|it| it.rule.id).collect()
    }

    #[test]
    fn a_good_app_breaks_no_rule() {
        let good = apps(tool(), &contents());
        assert!(good.problems().is_empty(), "{:?}", good.problems());
        assert_eq!(good.tools_of(URI).collect::<Vec<_>>(), ["show"]);
        assert_eq!(Apps::callable(&good.tools).collect::<Vec<_>>(), ["show"]);
    }

    #[test]
    fn each_mistake_in_a_tool_breaks_its_rule() {
        for (path, value, expected) in [
            ("/_meta/ui", json!(3), "apps.metadata"),
            ("/_meta/ui/resourceUri", json!(3), "apps.metadata"),
            ("/_meta/ui/visibility", json!("app"), "apps.metadata"),
            ("/_meta/ui/visibility", json!(["human"]), "apps.metadata"),
            ("/_meta/ui/visibility", json!([]), "apps.reachable"),
            ("/_meta/ui/csp", json!({}), "apps.misplaced"),
            ("/_meta/ui~1resourceUri", json!("ui://other"), "apps.spellings"),
        ] {
            let mut tool = tool();
            match tool.pointer_mut(path) {
                Some(place) => *place = value,
                None => drop(
                    tool["_meta"]["ui"]
                        .as_object_mut()
                        .unwrap()
                        .insert(path.rsplit('/').next().unwrap().to_owned(), value),
                ),
            }
            let broken = broken(&apps(tool, &contents()));
            assert!(broken.contains(&expected), "{path}: {broken:?}");
        }
    }

    #[test]
    fn each_mistake_in_a_document_breaks_its_rule() {
        let long = format!("<!doctype html>{}", "x".repeat(LONG));
        for (member, value, expected) in [
            ("mimeType", json!("text/html; profile=mcp-app"), "apps.mime-type"),
            ("mimeType", json!(null), "apps.mime-type"),
            ("text", json!("<title>A</title>"), "apps.document"),
            ("text", json!(null), "apps.resource"),
            ("text", json!(long), "apps.size"),
            (
                "text",
                json!("<!doctype html><script src=\"https://cdn.example/a.js\"></script>"),
                "apps.origins",
            ),
            ("_meta", json!({ "ui": { "csp": { "connectDomains": ["a.example"] } } }), "apps.csp"),
            ("_meta", json!({ "ui": { "csp": { "connectDomains": "a.example" } } }), "apps.csp"),
        ] {
            let mut contents = contents();
            contents[member] = value;
            assert_eq!(broken(&apps(tool(), &contents)), [expected], "{member}");
        }
    }

    #[test]
    fn each_mistake_elsewhere_breaks_its_rule() {
        let good = || apps(tool(), &contents());
        let silent = vec![("show".to_owned(), json!({ "content": [] }))];
        let gone = BTreeMap::from([(URI.to_owned(), Err("not found".to_owned()))]);
        let hidden =
            json!({ "name": "b", "inputSchema": {}, "_meta": { "ui": { "visibility": ["app"] } } });
        for (apps, expected) in [
            (Apps { is_declared: Some(false), ..good() }, "apps.declared"),
            (Apps { results: silent, ..good() }, "apps.text"),
            (Apps { documents: gone, ..good() }, "apps.resource"),
            (apps(hidden, &contents()), "apps.reachable"),
        ] {
            assert_eq!(broken(&apps), [expected]);
        }
        assert!(Apps { is_declared: None, ..good() }.problems().is_empty());
    }

    #[test]
    fn judges_and_rules_have_the_same_names() {
        let judges: BTreeSet<&str> = JUDGES.iter().map(|(id, _)| *id).collect();
        let rules = rule::all().filter(|rule| rule.group_name() == "apps");
        assert_eq!(rules.map(|rule| rule.id).collect::<BTreeSet<_>>(), judges);
    }

    #[test]
    fn a_blob_and_comments_before_the_document_are_read() {
        let mut blob = contents();
        blob["text"] = Value::Null;
        blob["blob"] = json!(STANDARD.encode(b"\xef\xbb\xbf<!-- hi --> <!DOCTYPE HTML><p>"));
        assert!(broken(&apps(tool(), &blob)).is_empty());
    }
}
