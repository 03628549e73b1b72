//! A server whose every word is meant for the terminal: no command and no report passes it on.

use std::fmt::Write as _;

use bowline_check::text::marked;
use bowline_serve::testing::{Asked, HttpReply, Said, Service};
use serde_json::{Value, json};

use crate::fixture::{Folder, program, said};

/// Clears the screen, reverses text, hides letters, breaks lines.
const EVIL: &str = "x\u{1b}[2J\u{202e}r\u{200b}\u{61c}\u{2028}\u{2029}\u{e0041}\u{9b}31m\u{7f}y";

/// Answers every method of the legacy era with hostile text.
fn answer(asked: &Asked) -> HttpReply {
    let Ok(message) = serde_json::from_str::<Value>(&asked.body) else {
        return HttpReply::error(405, EVIL);
    };
    let Some(id) = message.get("id") else { return HttpReply::error(202, "") };
    let schema = json!({ "type": "object", "properties": { EVIL: { "type": "string",
        "description": EVIL, "enum": [EVIL], "default": EVIL } } });
    let text = json!({ "type": "text", "text": EVIL });
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({ "protocolVersion": "2025-11-25", "instructions": EVIL,
            "capabilities": { "tools": {}, "resources": {}, "prompts": {}, "completions": {},
                "experimental": { EVIL: {} } },
            "serverInfo": { "name": EVIL, "version": EVIL, "title": EVIL, "websiteUrl": EVIL } }),
        "ping" => json!({}),
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
        _ => {
            let error = json!({ "code": -32601, "message": EVIL, "data": { EVIL: EVIL } });
            return reply(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    reply(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
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
    ] {
        let told = said(program(&home).arg(command).args(legacy).args(words));
        assert_eq!(raw(&told), "", "{command} {words:?} {}", told.err);
        let shown = format!("{}{}", told.out, told.err);
        assert!(shown.contains("202e"), "{command} {words:?} {shown}");
    }
    let told = said(program(&home).args(["show", "session.jsonl"]));
    assert_eq!((told.code, raw(&told).as_str()), (Some(0), ""));
    assert!(told.out.contains("\\u202e"), "{}", told.out);
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
    let told = said(program(&home).args(["servers", "--config", name]));
    assert_eq!((told.code, raw(&told).as_str()), (Some(0), ""));
    assert!(told.out.contains("\\u{202e}"), "{}", told.out);
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
