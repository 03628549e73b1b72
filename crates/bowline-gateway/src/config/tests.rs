//! Samples of every client's file: edits are exact, and everything else stays.

use serde_json::json;

use super::*;

fn path(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn tap() -> Vec<String> {
    ["/opt/bowline", "tap", "--name", "a b", "--"].map(str::to_owned).to_vec()
}

/// Wraps and unwraps; returns what is between.
fn there_and_back(text: &str, syntax: Syntax, at: &[&str]) -> String {
    let wrapped = wrap(text, syntax, &path(at), &tap()).unwrap();
    assert_ne!(wrapped, text);
    let again = wrap(&wrapped, syntax, &path(at), &tap());
    assert!(matches!(again, Err(EditError::Wrapped(_))), "{again:?}");
    assert_eq!(unwrap(&wrapped, syntax, &path(at)).unwrap(), text);
    wrapped
}

/// Files of all clients, each with the path to its servers.
const SAMPLES: [(&str, &str, &[&str]); 10] = [
    ("antigravity", include_str!("../../testdata/config/antigravity.json"), &["mcpServers"]),
    ("claude-code", include_str!("../../testdata/config/claude-code.json"), &["mcpServers"]),
    ("claude-desktop", include_str!("../../testdata/config/claude-desktop.json"), &["mcpServers"]),
    ("cline", include_str!("../../testdata/config/cline.json"), &["mcpServers"]),
    ("copilot", include_str!("../../testdata/config/copilot.json"), &["mcpServers"]),
    ("gemini", include_str!("../../testdata/config/gemini.json"), &["mcpServers"]),
    ("lm-studio", include_str!("../../testdata/config/lm-studio.json"), &["mcpServers"]),
    ("opencode", include_str!("../../testdata/config/opencode.jsonc"), &["mcp"]),
    ("vscode", include_str!("../../testdata/config/vscode.jsonc"), &["servers"]),
    ("windsurf", include_str!("../../testdata/config/windsurf.json"), &["mcpServers"]),
];

const COMMENTED: &str = include_str!("../../testdata/config/cursor.jsonc");

#[test]
fn json_is_wrapped_and_restored() {
    for name in ["a", "bare", "empty", "many"] {
        there_and_back(COMMENTED, Syntax::Json, &["mcpServers", name]);
    }
    let wrapped = there_and_back(COMMENTED, Syntax::Json, &["mcpServers", "a"]);
    let expected = COMMENTED.replace(
        r#""a": { "command": "npx", "args": ["-y","#,
        r#""a": { "command": "/opt/bowline", "args": ["tap", "--name", "a b", "--", "npx", "-y","#,
    );
    assert_eq!(wrapped, expected);
    let wrapped = there_and_back(COMMENTED, Syntax::Json, &["mcpServers", "bare"]);
    assert!(wrapped.contains(
        r#"{ "command":"/opt/bowline", "args": ["tap", "--name", "a b", "--", "C:\\tools\\x.exe"] }"#
    ));
    let none = wrap(COMMENTED, Syntax::Json, &path(&["mcpServers", "none"]), &tap());
    assert_eq!(none, Err(EditError::Missing("none".to_owned())));
    let bare = unwrap(COMMENTED, Syntax::Json, &path(&["mcpServers", "bare"]));
    assert_eq!(bare, Err(EditError::NotWrapped("bare".to_owned())));
}

#[test]
fn urls_are_wrapped_and_restored() {
    for (text, syntax, at, part) in [
        (
            COMMENTED,
            Syntax::Json,
            &["mcpServers", "far"][..],
            r#""bridge", "https://example.com/mcp"]"#,
        ),
        (
            r#"{"servers":{"x":{"type" : "http", "url":"https://a.b", "keep": 1}}}"#,
            Syntax::Json,
            &["servers", "x"],
            r#"{"type" : "stdio", "command": "/opt/bowline", "args": ["tap", "--name", "a b", "--entry", "#,
        ),
        (
            r#"{"mcp":{"x":{"url" : "https://a.b","enabled":true,"type":"remote"}}}"#,
            Syntax::Json,
            &["mcp", "x"],
            r#""enabled":true,"type":"local""#,
        ),
        (
            "[mcp_servers.x]\n# far\nurl = 'https://a.b' # away\nstartup_timeout_sec = 20\n",
            Syntax::Toml,
            &["mcp_servers", "x"],
            "\nargs = [\"tap\", ",
        ),
        (
            "[mcp_servers]\nx = { url = \"https://a.b\" }\n",
            Syntax::Toml,
            &["mcp_servers", "x"],
            "x = { command = \"/opt/bowline\", args = [",
        ),
    ] {
        let wrapped = there_and_back(text, syntax, at);
        assert!(wrapped.contains(part), "{wrapped}");
    }
    let secret = r#"{"servers":{"x":{"url":"https://a.b","headers":{"X-Key":"k"}}}}"#;
    let refused = wrap(secret, Syntax::Json, &path(&["servers", "x"]), &tap()).unwrap_err();
    assert!(refused.to_string().contains("headers"), "{refused}");
    let neither = r#"{"servers":{"x":{"disabled":true}}}"#;
    let neither = wrap(neither, Syntax::Json, &path(&["servers", "x"]), &tap());
    assert_eq!(neither, Err(EditError::NoCommand("x".to_owned())));
}

#[test]
fn every_shape_is_wrapped_and_restored() {
    for (text, at) in [
        (r#"{"servers":{"x":{"type":"stdio","command":"x","args":["1"]}}}"#, &["servers", "x"][..]),
        (r#"{"mcp":{"x":{"type":"local","command":["x", "1"],"enabled":true}}}"#, &["mcp", "x"]),
        (r#"{"mcp":{"x":{"type":"local","command":["x"]}}}"#, &["mcp", "x"]),
        ("{\"mcp\": {\"servers\": {\"x\": {\"command\": \"x\"}}}}", &["mcp", "servers", "x"]),
        (
            "\u{feff}{\r\n  \"projects\": {\r\n    \"/p\": { \"mcpServers\": { \"x\": {\r\n\"command\": \"x\" } } } } }",
            &["projects", "/p", "mcpServers", "x"],
        ),
    ] {
        there_and_back(text, Syntax::Json, at);
    }
}

#[test]
fn what_cannot_be_edited_is_left_alone() {
    let at = path(&["mcp_servers", "x"]);
    for text in [
        "mcp_servers.x.command = \"x\"\n",
        "[mcp_servers]\nx.command = \"x\"\nx.env.A = \"1\"\n",
        "\"a{b\".x.command = \"x\"\n",
        "mcp_servers.x.url = \"https://a.b\"\n",
    ] {
        let at = if text.contains('{') { path(&["a{b", "x"]) } else { at.clone() };
        let wrapped = wrap(text, Syntax::Toml, &at, &tap());
        assert!(matches!(wrapped, Err(EditError::Unsupported(..))), "{wrapped:?}");
    }
}

const CODEX: &str = include_str!("../../testdata/config/codex.toml");

#[test]
fn toml_is_wrapped_and_restored() {
    for name in ["a", "b c", "b2", "e"] {
        there_and_back(CODEX, Syntax::Toml, &["mcp_servers", name]);
    }
    let wrapped = there_and_back(CODEX, Syntax::Toml, &["mcp_servers", "a"]);
    assert!(wrapped.contains(
        "command = \"/opt/bowline\"  # literal\n\
         args = [\"tap\", \"--name\", \"a b\", \"--\", 'C:\\tools\\npx', \"-y\", \"x\"] # and more\n"
    ));
    let wrapped = there_and_back(CODEX, Syntax::Toml, &["tools", "inline"]);
    let expected =
        r#"inline = { command = "/opt/bowline", args = ["tap", "--name", "a b", "--", "x"] }"#;
    assert!(wrapped.contains(expected), "{wrapped}");
    let end = "[mcp_servers.x]\ncommand = \"x\"";
    there_and_back(end, Syntax::Toml, &["mcp_servers", "x"]);
}

/// Adds and removes; returns what is between.
fn added(text: &str, syntax: Syntax, at: &[&str]) -> String {
    let entry = json!({ "command": "new", "args": ["1"] });
    let added = add(text, syntax, &path(at), "new", &entry).unwrap();
    let again = add(&added, syntax, &path(at), "new", &entry);
    assert_eq!(again, Err(EditError::Present("new".to_owned())));
    let mut whole = path(at);
    whole.push("new".to_owned());
    let node = parse(&added, syntax).unwrap();
    assert!(lookup(&node, &whole).is_some(), "{added}");
    if lookup(&parse(text, syntax).unwrap(), &path(at)).is_some() {
        assert_eq!(remove(&added, syntax, &whole).unwrap(), text);
    }
    added
}

#[test]
fn servers_are_added_in_the_style_of_the_file() {
    let found = added(COMMENTED, Syntax::Json, &["mcpServers"]);
    let expected = "\t\t\"far\": { \"url\": \"https://example.com/mcp\" },\n\t\t\"new\": {\n\t\t\t\"command\": \
                    \"new\",\n\t\t\t\"args\": [\n\t\t\t\t\"1\"\n\t\t\t]\n\t\t},\n\t},\n";
    assert!(found.contains(expected), "{found}");
    let one = "{\n  \"mcpServers\": {\n    \"a\": {} // note\n  }\n}\n";
    let found = added(one, Syntax::Json, &["mcpServers"]);
    assert!(
        found.starts_with("{\n  \"mcpServers\": {\n    \"a\": {}, // note\n    \"new\": {\n"),
        "{found}"
    );
    let flat = r#"{"mcpServers":{"a":{}}}"#;
    let found = added(flat, Syntax::Json, &["mcpServers"]);
    assert_eq!(found, r#"{"mcpServers":{"a":{}, "new": {"command":"new","args":["1"]}}}"#);
    assert!(
        added("", Syntax::Json, &["mcpServers"]).starts_with("{\n  \"mcpServers\": {\n    \"new\"")
    );
    let found = added("{\n}\n", Syntax::Json, &["mcpServers"]);
    assert!(found.starts_with("{\n  \"mcpServers\": {\n    \"new\": {\n"), "{found}");
    added("{ \"x\": 1 }", Syntax::Json, &["mcpServers"]);
    let found = added(CODEX, Syntax::Toml, &["mcp_servers"]);
    assert!(
        found.ends_with("\n\n[mcp_servers.new]\ncommand = \"new\"\nargs = [\"1\"]\n"),
        "{found}"
    );
}

#[test]
fn servers_are_removed_alone() {
    let removed =
        |name: &str| remove(COMMENTED, Syntax::Json, &path(&["mcpServers", name])).unwrap();
    assert_eq!(
        removed("bare"),
        COMMENTED.replace("\n\t\t\"bare\" : { \"command\":\"C:\\\\tools\\\\x.exe\" },", "")
    );
    assert!(removed("a").contains(": { // mine\n\t\t\"bare\""), "{}", removed("a"));
    let last = "{\"s\":{\"a\":{},\n \"b\":{}}}";
    assert_eq!(remove(last, Syntax::Json, &path(&["s", "b"])).unwrap(), "{\"s\":{\"a\":{}}}");
    let found = remove(CODEX, Syntax::Toml, &path(&["mcp_servers", "b2"])).unwrap();
    let start = CODEX.find("[mcp_servers.b2]").unwrap();
    let end = CODEX.find("[mcp_servers.e]").unwrap();
    assert_eq!(found, format!("{}{}", &CODEX[..start], &CODEX[end..]));
    let found = remove(CODEX, Syntax::Toml, &path(&["mcp_servers", "a"])).unwrap();
    assert!(
        found.contains("TOKEN = \"\"\"\n[mcp_servers.a]\n\"\"\"") && !found.contains("npx"),
        "{found}"
    );
}

#[test]
fn added_lines_end_as_those_of_the_file() {
    let text = "{\r\n  \"mcpServers\": {\r\n    \"a\": { \"command\": \"x\" }\r\n  }\r\n}\r\n";
    let entry = json!({ "url": "u" });
    let added = add(text, Syntax::Json, &path(&["mcpServers"]), "b", &entry).unwrap();
    assert!(added.contains("\"b\""), "{added:?}");
    assert_eq!(added.matches('\n').count(), added.matches("\r\n").count(), "{added:?}");
}

#[test]
fn clients_get_entries_that_they_read() {
    let command = ["npx".to_owned(), "-y".to_owned()];
    let env = [("A".to_owned(), "b".to_owned())];
    for (client, expected, url) in [
        (
            "cursor",
            json!({ "command": "npx", "args": ["-y"], "env": { "A": "b" } }),
            json!({ "url": "u" }),
        ),
        (
            "vscode",
            json!({ "type": "stdio", "command": "npx", "args": ["-y"], "env": { "A": "b" } }),
            json!({ "type": "http", "url": "u" }),
        ),
        (
            "opencode",
            json!({ "type": "local", "command": ["npx", "-y"], "environment": { "A": "b" } }),
            json!({ "type": "remote", "url": "u" }),
        ),
        (
            "gemini",
            json!({ "command": "npx", "args": ["-y"], "env": { "A": "b" } }),
            json!({ "httpUrl": "u" }),
        ),
        (
            "windsurf",
            json!({ "command": "npx", "args": ["-y"], "env": { "A": "b" } }),
            json!({ "serverUrl": "u" }),
        ),
    ] {
        assert_eq!(Shape::of(client).command(&command, &env), expected, "{client}");
        assert_eq!(Shape::of(client).url("u", &[]), url, "{client}");
    }
    let headers = [("X-Key".to_owned(), "k".to_owned())];
    for (client, expected) in [
        ("cline", json!({ "type": "streamableHttp", "url": "u", "headers": { "X-Key": "k" } })),
        ("codex", json!({ "url": "u", "http_headers": { "X-Key": "k" } })),
    ] {
        assert_eq!(Shape::of(client).url("u", &headers), expected, "{client}");
    }
    assert!(!Shape::of("claude-desktop").takes_urls);
}

#[test]
fn files_of_every_client_keep_everything_else() {
    for (client, text, at) in SAMPLES {
        let root = parse(text, Syntax::Json).unwrap();
        let Kind::Object(servers) = &lookup(&root, &path(at)).unwrap().kind else { panic!() };
        let stdio = servers.iter().filter(|server| match &server.value.kind {
            Kind::Object(members) => member(members, "command").is_some(),
            _ => false,
        });
        let mut count = 0;
        for server in stdio {
            let whole: Vec<&str> = at.iter().copied().chain([server.key.as_str()]).collect();
            let wrapped = there_and_back(text, Syntax::Json, &whole);
            // All lines but those of the command and its arguments are the same.
            let changed = text.lines().zip(wrapped.lines()).filter(|(old, new)| old != new);
            assert!((1..=2).contains(&changed.count()), "{client}: {wrapped}");
            count += 1;
        }
        assert!(count > 0, "{client}");
        added(text, Syntax::Json, at);
        assert_eq!(Shape::of(client).member, *at.last().unwrap(), "{client}");
    }
}
