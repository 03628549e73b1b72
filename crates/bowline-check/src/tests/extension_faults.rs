//! What servers do wrong with skills and apps, one fault per row.

use bowline::{Resource, Revision, Server, Tool};
use serde_json::{Value, json};

use super::rewrite::{Rewrite, Way};
use super::{check, good, not_found, settings};

const SKILLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/skills");
const APP: &str = "ui://shown/view";
const HTML: &str = "<!doctype html><title>Shown</title>";

/// A server with skills and an app.
pub(super) fn extended() -> Server {
    good()
        .skills(SKILLS)
        .with(Resource::app(APP, HTML))
        .with(Tool::new("shown", || async { "shown" }).description("Shows").read_only().ui(APP))
}

/// The rule, and what happens to the answer of a request.
type Row = (&'static str, fn(&Value, &mut Value, &mut Vec<Vec<u8>>));

const ROWS: &[Row] = &[
    ("skills.resources", |q, a, _| {
        if is(q, "server/discover") {
            a["result"]["capabilities"].as_object_mut().unwrap().remove("resources");
        }
    }),
    ("skills.list", |q, a, _| in_skill(q, a, |it| it["resources"] = json!("static"))),
    ("skills.entries", |q, a, _| in_skill(q, a, |it| it["uri"] = json!("skill://x"))),
    ("skills.names-unique", |q, a, _| {
        if is(q, "skills/list") {
            let skills = a["result"]["skills"].as_array_mut().unwrap();
            skills.push(skills[0].clone());
        }
    }),
    ("skills.files", |q, a, _| {
        if is_main(q) {
            let text = a["result"]["contents"][0]["text"].as_str().unwrap().to_owned() + "!";
            a["result"]["contents"][0]["text"] = json!(text);
        }
    }),
    ("skills.front-matter", |q, a, _| {
        in_skill(q, a, |it| it["frontmatter"]["license"] = json!("?"));
    }),
    ("skills.metadata", |q, a, _| {
        in_skill(q, a, |it| it["frontmatter"]["metadata"] = json!({ "version": 1 }));
    }),
    ("skills.mime-type", |q, a, _| {
        if is_main(q) {
            a["result"]["contents"][0]["mimeType"] = json!("text/plain");
        }
    }),
    ("skills.get", |q, a, _| {
        if is(q, "skills/get") && a.get("result").is_some() {
            a["result"]["skill"]["uri"] = json!("skill://other/SKILL.md");
        }
    }),
    ("skills.directory", |q, a, _| {
        if is(q, "resources/directory/read") && a.get("result").is_some() {
            a["result"]["resources"][0]["uri"] = json!("skill://elsewhere/a.md");
        }
    }),
    ("skills.unknown", |q, a, _| {
        if is(q, "skills/get") && a.get("error").is_some() {
            a["error"]["code"] = json!(-32603);
        }
    }),
    ("apps.metadata", |q, a, _| in_tool(q, a, |ui| ui["visibility"] = json!("app"))),
    ("apps.resource", |q, a, _| in_app(q, a, |it| it["text"] = Value::Null)),
    ("apps.mime-type", |q, a, _| in_app(q, a, |it| it["mimeType"] = json!("text/html"))),
    ("apps.csp", |q, a, _| {
        in_app(q, a, |it| it["_meta"] = json!({"ui": {"csp": {"frameDomains": ["*"]}}}));
    }),
    ("apps.document", |q, a, _| in_app(q, a, |it| it["text"] = json!("<p>Shown"))),
    ("apps.declared", |q, a, _| {
        if is(q, "server/discover") {
            a["result"]["capabilities"]["extensions"] = json!({});
        }
    }),
    ("apps.origins", |q, a, _| {
        in_app(q, a, |it| it["text"] = json!("<!doctype html><img src=https://a.example/i>"));
    }),
    ("apps.text", |q, a, _| {
        if is(q, "tools/call") && q["params"]["name"] == "shown" {
            a["result"]["content"] = json!([]);
        }
    }),
    ("apps.reachable", |q, a, _| in_tool(q, a, |ui| ui["visibility"] = json!([]))),
    ("apps.misplaced", |q, a, _| in_tool(q, a, |ui| ui["csp"] = json!({}))),
    ("apps.spellings", |q, a, _| in_tool(q, a, |ui| ui["resourceUri"] = Value::Null)),
    ("apps.size", |q, a, _| {
        in_app(q, a, |it| it["text"] = json!(format!("{HTML}{}", " ".repeat(1 << 20))));
    }),
];

/// The rules of this file.
pub(super) fn ids() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|(id, _)| *id)
}

fn is(request: &Value, method: &str) -> bool {
    request["method"] == method
}

/// Whether a request reads the first skill.
fn is_main(request: &Value) -> bool {
    let uri = request["params"]["uri"].as_str().unwrap_or_default();
    is(request, "resources/read") && uri.ends_with("/SKILL.md")
}

/// Changes the first skill of the list.
fn in_skill(request: &Value, reply: &mut Value, change: fn(&mut Value)) {
    if is(request, "skills/list") {
        change(&mut reply["result"]["skills"][0]);
    }
}

/// Changes what the tool says about its app.
fn in_tool(request: &Value, reply: &mut Value, change: fn(&mut Value)) {
    let tools = reply.pointer_mut("/result/tools").and_then(Value::as_array_mut);
    for tool in tools.into_iter().flatten().filter(|_| is(request, "tools/list")) {
        if tool["name"] == "shown" {
            change(&mut tool["_meta"]["ui"]);
        }
    }
}

/// Changes the contents of the app.
fn in_app(request: &Value, reply: &mut Value, change: fn(&mut Value)) {
    if is(request, "resources/read") && request["params"]["uri"] == APP {
        change(&mut reply["result"]["contents"][0]);
    }
}

#[tokio::test]
async fn each_fault_is_found() {
    let mut missed = Vec::new();
    for (id, message) in ROWS {
        let (frame, message) = (|_: &str| Way::Pass, *message);
        let rewrite = Rewrite { make: extended, frame, message, stays: false, ticks: false };
        let settings = settings(rewrite.target());
        let findings = check(&settings, id, &[Revision::LATEST]).await;
        missed.extend(not_found(id, &findings));
    }
    assert_eq!(missed, [""; 0]);
}
