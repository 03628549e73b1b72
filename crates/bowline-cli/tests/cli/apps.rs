//! `bowline apps`: what it lists and finds, and its exit status.

use bowline_serve::testing::{Asked, HttpReply, Service};
use serde_json::{Value, json};

use crate::fixture::{Folder, PROGRAM, program, said};

const HTML: &str = "<!doctype html><img src=\"https://img.example/a.png\">";

/// A server whose app has the given contents.
fn answer(asked: &Asked, contents: &Value) -> HttpReply {
    let Ok(message) = serde_json::from_str::<Value>(&asked.body) else {
        return HttpReply::error(405, "");
    };
    let Some(id) = message.get("id") else { return HttpReply::error(202, "") };
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "serverInfo": { "name": "s", "version": "1" },
            "capabilities": { "tools": {}, "resources": {} },
        }),
        "tools/list" => json!({ "tools": [{
            "name": "show", "inputSchema": { "type": "object" },
            "_meta": { "ui": { "resourceUri": "ui://s/view" }, "ui/resourceUri": "ui://s/view" },
        }] }),
        "resources/read" => json!({ "contents": [contents] }),
        _ => return HttpReply::error(404, ""),
    };
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    HttpReply::json(&answer).with_header("content-type", "application/json")
}

#[test]
fn the_counter_has_a_good_app() {
    let home = Folder::new();
    let told = said(program(&home).args(["apps", "--strict", "--", PROGRAM, "serve", "counter"]));
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""));
    let words: Vec<&str> = told.out.split_whitespace().collect();
    assert_eq!(words[..4], ["APP", "TOOLS", "SIZE", "ui://counter/app"], "{}", told.out);
    let told = said(program(&home).args(["apps", "--", PROGRAM, "serve", "example"]));
    assert_eq!((told.code, told.out.as_str()), (Some(0), "no apps\n"));
}

#[test]
fn problems_decide_the_exit_status() {
    const MIME: &str = "text/html;profile=mcp-app";
    for (contents, options, code, rules) in [
        (json!({ "mimeType": MIME, "text": HTML }), &[][..], 0, &["apps.origins"][..]),
        (json!({ "mimeType": MIME, "text": HTML }), &["--strict"], 9, &["apps.origins"]),
        (
            json!({ "mimeType": "text/html", "text": "<!doctype html>" }),
            &[],
            9,
            &["apps.mime-type"],
        ),
        (json!({ "mimeType": MIME }), &[], 9, &["apps.resource"]),
    ] {
        let mut contents = contents;
        contents["uri"] = json!("ui://s/view");
        let service = Service::start(move |asked| answer(asked, &contents));
        let home = Folder::new();
        let url = service.url();
        let told = said(program(&home).args(["apps", "--revision", "legacy", &url]).args(options));
        assert_eq!(told.code, Some(code), "{} {}", told.out, told.err);
        for rule in rules {
            assert!(told.out.contains(&format!(" {rule}: ui://s/view: ")), "{}", told.out);
        }
        let json = ["apps", "--revision", "legacy", "--output", "json", &url];
        let told = said(program(&home).args(json).args(options));
        let report: Value = serde_json::from_str(&told.out).unwrap();
        let problems = report["problems"].as_array().unwrap();
        let found: Vec<&str> = problems.iter().map(|it| it["rule"].as_str().unwrap()).collect();
        assert_eq!((found.as_slice(), told.code), (rules, Some(code)));
        assert_eq!(report["apps"][0]["tools"], json!(["show"]));
    }
}
