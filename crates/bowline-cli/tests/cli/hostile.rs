//! A server whose every word is meant for the terminal: no command and no report passes it on.

use std::fmt::Write as _;
#[cfg(unix)]
use std::io::BufReader;
#[cfg(unix)]
use std::process::Stdio;

use bowline_check::text::marked;
use bowline_serve::testing::{Asked, HttpReply, Said, Service};
use serde_json::{Value, json};

#[cfg(unix)]
use crate::fixture::wait_for;
use crate::fixture::{Folder, program, said};

/// Clears the screen, reverses text, hides letters, breaks lines.
const EVIL: &str = "x\u{1b}[2J\u{202e}r\u{200b}\u{61c}\u{2028}\u{2029}\u{e0041}\u{9b}31m\u{7f}y";

/// Answers every method of the legacy era with hostile text, and sends notifications of it.
fn answer(asked: &Asked) -> HttpReply {
    if asked.method() == "GET" {
        return notifications();
    }
    let Ok(message) = serde_json::from_str::<Value>(&asked.body) else {
        return HttpReply::error(405, EVIL);
    };
    let Some(id) = message.get("id") else { return HttpReply::error(202, "") };
    let schema = json!({ "type": "object", "properties": { EVIL: { "type": "string",
        "description": EVIL, "enum": [EVIL], "default": EVIL } } });
    let text = json!({ "type": "text", "text": EVIL });
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({ "protocolVersion": "2025-11-25", "instructions": EVIL,
            "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true },
                "prompts": {}, "completions": {}, "logging": {},
                "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } },
                "extensions": { "io.modelcontextprotocol/skills": {} },
                "experimental": { EVIL: {} } },
            "serverInfo": { "name": EVIL, "version": EVIL, "title": EVIL, "websiteUrl": EVIL } }),
        "ping" | "resources/subscribe" => json!({}),
        "tools/list" => json!({ "tools": [{ "name": EVIL, "description": EVIL, "title": EVIL,
            "inputSchema": schema, "outputSchema": schema,
            "_meta": { "ui": { "resourceUri": EVIL, "visibility": [EVIL], EVIL: EVIL } } }] }),
        "tools/call" => json!({ "content": [text, { "type": EVIL, EVIL: EVIL },
            { "type": "image", "mimeType": EVIL, "data": "AA==" },
            { "type": "resource_link", "uri": EVIL, "name": EVIL }],
            "structuredContent": { EVIL: EVIL } }),
        "resources/list" => json!({ "resources": [{ "uri": EVIL, "name": EVIL, "mimeType": EVIL,
            "description": EVIL }] }),
        "resources/templates/list" => {
            json!({ "resourceTemplates": [{ "uriTemplate": EVIL, "name": EVIL }] })
        }
        "resources/read" => json!({ "contents": [{ "uri": EVIL, "text": EVIL },
            { "uri": EVIL, "mimeType": EVIL, "blob": "AA==" }] }),
        "prompts/list" => json!({ "prompts": [{ "name": EVIL, "description": EVIL,
            "arguments": [{ "name": EVIL, "description": EVIL }] }] }),
        "prompts/get" => json!({ "description": EVIL,
            "messages": [{ "role": "user", "content": text }] }),
        "completion/complete" => json!({ "completion": { "values": [EVIL] } }),
        "skills/list" => json!({ "skills": [{ "uri": EVIL, "resources": [{ "uri": EVIL }],
            "frontmatter": { "name": EVIL, "description": EVIL, EVIL: EVIL } }] }),
        "tasks/list" => json!({ "tasks": [task()] }),
        "tasks/get" | "tasks/cancel" => task(),
        "tasks/result" => json!({ "content": [text] }),
        _ => {
            let error = json!({ "code": -32601, "message": EVIL, "data": { EVIL: EVIL } });
            return reply(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    reply(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

fn task() -> Value {
    json!({ "taskId": EVIL, "status": "completed", "statusMessage": EVIL, "createdAt": EVIL,
        "lastUpdatedAt": EVIL, "ttl": null })
}

/// A stream that ends at once: clients open it again.
fn notifications() -> HttpReply {
    let events = [
        ("message", json!({ "level": "error", "logger": EVIL, "data": { EVIL: EVIL } })),
        ("resources/updated", json!({ "uri": EVIL })),
        ("tools/list_changed", json!({ EVIL: EVIL })),
    ];
    let events = events.map(|(name, params)| {
        let method = format!("notifications/{name}");
        let event = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        format!("data: {event}\n\n")
    });
    HttpReply::bytes(events.concat()).with_header("content-type", "text/event-stream")
}

fn reply(message: &Value) -> HttpReply {
    HttpReply::json(message).with_header("content-type", "application/json")
}

/// What reached the terminal raw, if anything did.
fn raw(told: &Said) -> String {
    let mut found = String::new();
    for (letter, is_hidden) in marked(&told.out).chain(marked(&told.err)) {
        if is_hidden && letter != '\n' {
            let _ = write!(found, "{} ", letter.escape_unicode());
        }
    }
    found
}

#[test]
fn nothing_hostile_reaches_the_terminal() {
    let (home, service) = (Folder::new(), Service::start(answer));
    let url = service.url();
    let legacy = ["--revision", "legacy", "-v", "--record", "session.jsonl", url.as_str()];
    // Whether the server's words are in the output at all, so that there is something to test.
    for (words, says) in [
        (&["info"][..], true),
        (&["tools"], true),
        (&["tools", "--long"], true),
        (&["resources"], true),
        (&["templates"], true),
        (&["prompts"], true),
        (&["ping"], false),
    ] {
        let told = said(program(&home).args(words).args(legacy));
        assert_eq!((told.code, raw(&told).as_str()), (Some(0), ""), "{words:?} {}", told.err);
        assert!(!says || told.out.contains("\\u{202e}"), "{words:?} {}", told.out);
    }
    for (command, words) in [
        ("tools", &[EVIL][..]),
        ("call", &[EVIL]),
        ("call", &["nothing"]),
        ("read", &[EVIL]),
        ("prompt", &[EVIL]),
        ("prompt", &["nothing"]),
        ("complete", &[EVIL, "a=b"]),
        ("apps", &[]),
        ("raw", &["tools/list"]),
        ("raw", &[EVIL]),
        ("tasks list", &[]),
        ("tasks show", &[EVIL]),
        ("tasks wait", &[EVIL]),
        ("tasks wait", &["another"]),
        ("tasks cancel", &[EVIL]),
        ("tasks resume", &["another"]),
        ("skills", &[]),
        ("skills", &[EVIL]),
        ("listen", &["-n", "3"]),
        ("watch", &["-n", "2", EVIL]),
    ] {
        let told = said(program(&home).args(command.split(' ')).args(legacy).args(words));
        assert_eq!(raw(&told), "", "{command} {words:?} {}", told.err);
        let shown = format!("{}{}", told.out, told.err);
        assert!(shown.contains("202e"), "{command} {words:?} {shown}");
    }
    let told = said(program(&home).args(["show", "session.jsonl"]));
    assert_eq!((told.code, raw(&told).as_str()), (Some(0), ""));
    assert!(told.out.contains("\\u202e"), "{}", told.out);
}

#[test]
fn nothing_hostile_in_a_recording_reaches_the_terminal() {
    let (home, service) = (Folder::new(), Service::start(answer));
    let (url, legacy) = (service.url(), ["--revision", "2025-11-25"]);
    for words in [["info", url.as_str()], ["tools", url.as_str()]] {
        let mut command = program(&home);
        let told = said(command.args(words).args(legacy).args(["--record", "one.jsonl"]));
        assert_eq!(told.code, Some(0), "{}", told.err);
    }
    let recorded = std::fs::read_to_string(home.path().join("one.jsonl")).unwrap();
    home.write("other.jsonl", &recorded.replace("[2J", "[3J"));
    for words in [["diff", "one.jsonl", "other.jsonl"], ["replay", "other.jsonl", url.as_str()]] {
        let told = said(program(&home).args(words));
        assert_eq!((told.code, raw(&told).as_str()), (Some(11), ""), "{words:?} {}", told.err);
        assert!(told.out.contains("202e"), "{words:?} {}", told.out);
    }
}

/// What is tapped, and the name of the tap.
#[test]
#[cfg(unix)]
fn nothing_hostile_in_the_traffic_reaches_the_view() {
    let home = Folder::new();
    let message = json!({ "jsonrpc": "2.0", "method": EVIL, "params": { EVIL: EVIL } });
    let script = format!("printf '%s\\n' '{message}' '{EVIL}'; printf '%s\\n' '{EVIL}' >&2; cat");
    let mut tap = program(&home);
    tap.args(["tap", "--name", EVIL, "--", "sh", "-c", &script]);
    let mut tap = tap.stdin(Stdio::piped()).spawn().unwrap();
    let mut view = program(&home).args(["tap", "--view"]).spawn().unwrap();
    let mut reader = BufReader::new(view.stdout.take().unwrap());
    // A message, a line of anything else, and standard error.
    let out = (0..3).map(|_| wait_for(&mut reader, "202e")).collect();
    assert_eq!(raw(&Said { code: None, out, err: String::new() }), "");
    drop(tap.stdin.take());
    tap.wait().unwrap();
    view.kill().unwrap();
    view.wait().unwrap();
}

#[test]
fn nothing_hostile_reaches_a_report() {
    let (home, service) = (Folder::new(), Service::start(answer));
    for (command, options) in [
        ("check", &["--format", "human"][..]),
        ("check", &["--format", "human", "-v"]),
        ("check", &["--format", "junit"]),
        ("doctor", &[]),
        ("doctor", &["-v"]),
    ] {
        let url = service.url();
        let told =
            said(program(&home).args([command, &url, "--revision", "2025-11-25"]).args(options));
        assert_eq!(raw(&told), "", "{command} {options:?}");
        assert!(told.out.contains("\\u{202e}"), "{command} {options:?} {}", told.out);
    }
    let (config, name) = (json!({ "mcpServers": { EVIL: { "command": EVIL } } }), "evil.json");
    home.write(name, &config.to_string());
    for words in [
        &["servers", "--config", name][..],
        &["config", "list", "--config", name],
        &["gateway", "check", name],
    ] {
        let told = said(program(&home).args(words));
        assert_eq!((told.code, raw(&told).as_str()), (Some(0), ""), "{words:?} {}", told.err);
        assert!(told.out.contains("\\u{202e}"), "{words:?} {}", told.out);
    }
}

/// A list without an end, in pages of eight million letters, in a few lines of shell.
#[test]
#[cfg(unix)]
fn a_list_that_grows_without_end_is_cut() {
    let home = Folder::new();
    let script = r#"while read -r line; do
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        case "$line" in
            *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}' ;;
            *'"tools/list"'*)
                printf '{"jsonrpc":"2.0","id":%s,"result":{"nextCursor":"%s","tools":[{"name":"t%s","inputSchema":{"type":"object"},"description":"' $id $id $id
                head -c 8000000 /dev/zero | tr '\0' x
                echo '"}]}}' ;;
        esac
    done"#;
    let mut command = program(&home);
    command.args(["tools", "-o", "json", "--revision", "legacy", "--", "sh", "-c", script]);
    let said = said(&mut command);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.err.contains("tools/list: more than 32 MiB; the rest is left out"),
        "{}",
        said.err
    );
    let list: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(list["tools"].as_array().unwrap().len(), 5);
}
