//! `bowline config` edits the files of clients.

use super::fixture::{Folder, PROGRAM, program, said, url};

const CURSOR: &str = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": { \"command\": \"echo\", \"args\": [\"hi\"] }, // first\n    \"far\": { \"url\": \"https://a.b/mcp\" }\n  }\n}\n";
const CODEX: &str = "# mine\n[mcp_servers.c]\ncommand = \"cat\" # plain\n";

#[test]
fn a_tap_is_put_in_and_taken_out() {
    let home = Folder::new();
    let cursor = home.write(".cursor/mcp.json", CURSOR);
    let codex = home.write(".codex/config.toml", CODEX);
    for (name, file, before) in [("a", &cursor, CURSOR), ("codex/c", &codex, CODEX)] {
        let read = || std::fs::read_to_string(file).unwrap();
        let wrapped = said(program(&home).args(["config", "wrap", name]));
        assert_eq!((wrapped.code, wrapped.out.as_str()), (Some(0), ""), "{}", wrapped.err);
        assert!(wrapped.err.contains("put a tap in front of it in"), "{}", wrapped.err);
        let between = read();
        assert!(between.contains(&format!("{PROGRAM:?}")), "{between}");
        let backup = format!("{}.bowline-backup", file.display());
        assert_eq!(std::fs::read_to_string(backup).unwrap(), before);
        let again = said(program(&home).args(["config", "wrap", name]));
        assert_eq!(again.code, Some(1));
        assert!(again.err.contains("there is a tap in front of"), "{}", again.err);
        let listed = said(program(&home).args(["config", "list"]));
        assert!(listed.out.contains(" (tapped)"), "{}", listed.out);
        let unwrapped = said(program(&home).args(["config", "unwrap", name]));
        assert_eq!(unwrapped.code, Some(0), "{}", unwrapped.err);
        assert_eq!(read(), before);
    }
}

#[test]
fn a_server_at_a_url_is_wrapped_too() {
    let home = Folder::new();
    let file = format!(r#"{{"mcpServers":{{"far":{{"url":"{}"}}}}}}"#, url("counter"));
    let cursor = home.write(".cursor/mcp.json", &file);
    let wrapped = said(program(&home).args(["config", "wrap", "far"]));
    assert_eq!(wrapped.code, Some(0), "{}", wrapped.err);
    // What the client starts now reaches the server.
    let called = said(program(&home).args(["call", "far", "increment"]));
    assert_eq!(called.code, Some(0), "{}", called.err);
    let unwrapped = said(program(&home).args(["config", "unwrap", "far"]));
    assert_eq!(unwrapped.code, Some(0), "{}", unwrapped.err);
    assert_eq!(std::fs::read_to_string(cursor).unwrap(), file);
    for keyed in [
        r#"{"mcpServers":{"far":{"url":"https://a.b","headers":{"X":"y"}}}}"#,
        r#"{"mcpServers":{"far":{"url":"https://a.b?token=y"}}}"#,
    ] {
        home.write(".cursor/mcp.json", keyed);
        let refused = said(program(&home).args(["config", "wrap", "far"]));
        assert_eq!(refused.code, Some(1));
        assert!(refused.err.contains("bowline tap URL --http"), "{}", refused.err);
    }
}

#[test]
fn clients_that_only_start_commands_get_a_bridge() {
    let home = Folder::new();
    let run = |words: &[&str]| said(program(&home).arg("config").arg("add").args(words));
    let desktop = ".config/Claude/claude_desktop_config.json";
    let cursor = ".cursor/mcp.json";
    let of_cursor = ["--client", "cursor"];
    for (words, file, part) in [
        (&["a", "https://a.b", "--client", "claude-desktop"][..], desktop, r#""bridge","#),
        (
            &["c", "https://a.b", of_cursor[0], of_cursor[1], "--header", "X-Key: k"],
            cursor,
            r#""X-Key": "k""#,
        ),
        (
            &[
                "e",
                "https://a.b",
                "--bridge",
                of_cursor[0],
                of_cursor[1],
                "--token-env",
                "T",
                "-e",
                "T=s3cr3t",
            ],
            cursor,
            r#""T": "s3cr3t""#,
        ),
        (
            &["f", "https://a.b", "--bridge", of_cursor[0], of_cursor[1], "--header-file", "h"],
            cursor,
            r#"/h""#,
        ),
    ] {
        let added = run(words);
        assert_eq!(added.code, Some(0), "{}", added.err);
        let text = std::fs::read_to_string(home.path().join(file)).unwrap();
        assert!(text.contains(part), "{text}");
    }
    // Other users can read a command line.
    for (words, problem) in [
        (&["d", "https://a.b", "--header", "nonsense"][..], "expected NAME: VALUE"),
        (&["d", "https://a.b", "--bridge", "--header", "X-Key: k"], "use --header-file FILE"),
        (&["d", "https://a.b?api_key=k", "--bridge"], "the URL contains a secret"),
        (&["d", "https://u:p@a.b", "--bridge"], "the URL contains a secret"),
        (&["d", "https://a.b", "--token-env", "T"], "add --bridge"),
    ] {
        let wrong = run(&[words, &of_cursor].concat());
        assert_eq!(wrong.code, Some(1), "{words:?}");
        assert!(wrong.err.contains(problem), "{}", wrong.err);
    }
}

#[test]
fn the_default_client_is_the_only_one_and_files_in_yaml_are_left_to_the_user() {
    let home = Folder::new();
    let run = |words: &[&str]| said(program(&home).arg("config").arg("add").args(words));
    let own = run(&["a", "https://a.b"]);
    assert_eq!(own.code, Some(0), "{}", own.err);
    assert!(own.err.contains("for `bowline` itself; --client adds it for "), "{}", own.err);
    home.write(".codex/config.toml", CODEX);
    let only = run(&["a", "https://a.b"]);
    assert!(only.err.contains("added for codex in "), "{}", only.err);
    for (client, file, part) in [
        ("goose", "config.yaml", "    uri: \"https://a.b\"\n"),
        ("continue", "config.yaml", "  - name: \"a\"\n"),
    ] {
        let told = run(&["a", "https://a.b", "--client", client]);
        assert_eq!(told.code, Some(1));
        assert!(told.err.contains(file) && told.err.contains(part), "{}", told.err);
    }
}

#[test]
fn servers_are_added_and_removed() {
    let home = Folder::new();
    let cursor = home.write(".cursor/mcp.json", CURSOR);
    let run = |words: &[&str]| said(program(&home).arg("config").args(words));
    let added = run(&["add", "new", "--client", "cursor", "-e", "A=b", "--", "npx", "-y", "x"]);
    assert_eq!(added.code, Some(0), "{}", added.err);
    let text = std::fs::read_to_string(&cursor).unwrap();
    assert!(text.starts_with(&CURSOR[..CURSOR.len() - 8]), "{text}");
    assert!(text.contains("\"command\": \"npx\""), "{text}");
    assert_eq!(run(&["remove", "new"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(&cursor).unwrap(), CURSOR);
    // Files that are not there yet.
    for (client, file, part) in [
        ("bowline", ".config/bowline/mcp.json", "\"url\": \"https://a.b\""),
        ("codex", ".codex/config.toml", "[mcp_servers.new]\nurl = \"https://a.b\"\n"),
        ("windsurf", ".codeium/windsurf/mcp_config.json", "\"serverUrl\": \"https://a.b\""),
        ("opencode", ".config/opencode/opencode.json", "\"type\": \"remote\""),
    ] {
        let added = run(&["add", "new", "https://a.b", "--client", client]);
        assert_eq!(added.code, Some(0), "{client}: {}", added.err);
        let text = std::fs::read_to_string(home.path().join(file)).unwrap();
        assert!(text.contains(part), "{client}: {text}");
        let name = format!("{client}/new");
        assert_eq!(run(&["remove", &name]).code, Some(0), "{client}");
    }
    for (words, problem) in [
        (&["add", "x", "--client", "cursr", "https://a.b"][..], "did you mean cursor?"),
        (&["add", "a", "--client", "cursor", "https://a.b"], "there is a server \"a\" already"),
        (&["add", "x"], "give a URL, or a command after --"),
        (&["remove", "none"], "there is no server \"none\""),
    ] {
        let said = run(words);
        assert_eq!(said.code, Some(1), "{words:?}");
        assert!(said.err.contains(problem), "{}", said.err);
    }
}
