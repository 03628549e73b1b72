//! `bowline check` as people and build servers use it.

use serde_json::Value;

use crate::fixture::{Folder, PROGRAM, program, url};

/// Runs the check; gives its exit code, output and complaints.
fn check(arguments: &[&str]) -> (Option<i32>, String, String) {
    let home = Folder::new();
    let output = program(&home).arg("check").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn our_servers_pass_on_both_transports() {
    for name in ["counter", "example", "mcp-logger"] {
        let (code, out, err) = check(&["--", PROGRAM, "serve", name]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
        assert!(out.contains("0 broken (must)") && !out.contains("(should)"), "{out}");
    }
    let (code, out, err) = check(&[&url("counter"), "--output", "json"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["transport"], "http");
    assert_eq!(report["revisions"].as_array().unwrap().len(), 5);
    assert_eq!(report["summary"]["problems"]["must"], 0);
    assert_eq!(report["summary"]["problems"]["should"], 0);
}

#[test]
fn the_exit_status_tells_how_bad_it_is() {
    let shout = format!("echo starting; exec {PROGRAM} serve counter");
    let pollution =
        ["--only", "lifecycle,stdio", "--revision", "2025-11-25", "--", "sh", "-c", &shout];
    let (code, out, _) = check(&pollution);
    assert_eq!(code, Some(9), "{out}");
    assert!(out.contains("FAIL stdio.pollution (must)") && out.contains("starting"), "{out}");
    let url = url("counter");
    let portable = ["--only", "schema.properties", "--revision", "modern", &url];
    assert_eq!(check(&portable).0, Some(0));
    assert_eq!(check(&[&["--strict"], &portable[..]].concat()).0, Some(6));
    let (code, _, err) = check(&["--", "no-such-program-anywhere"]);
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("no-such-program-anywhere"), "{err}");
    let (code, _, err) = check(&["--", "sh", "-c", "echo the reason >&2; exit 7"]);
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("the reason"), "{err}");
    let (code, _, err) = check(&["--only", "nonsense", &url]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("\"nonsense\" is neither a check nor a group"), "{err}");
    let (code, _, err) = check(&["--call", "sum", "{", &url]);
    assert_eq!((code, err.contains("--call sum: not JSON")), (Some(1), true), "{err}");
}

#[test]
fn build_servers_get_a_file() {
    let home = Folder::new();
    let file = home.path().join("report.xml");
    let url = url("counter");
    let path = file.to_str().unwrap();
    let (code, out, _) = check(&["--only", "jsonrpc", "--junit", path, "--format", "junit", &url]);
    assert_eq!(code, Some(0), "{out}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), out);
    assert!(out.contains("failures=\"0\"") && out.contains("jsonrpc.unknown-method"), "{out}");
}

#[test]
fn the_table_is_listed() {
    let (code, out, _) = check(&["--list"]);
    assert_eq!(code, Some(0));
    assert!(out.lines().count() > 100 && out.starts_with("lifecycle.initialize"), "{out}");
    let (_, out, _) = check(&["--list", "--output", "json"]);
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(list["checks"][0]["severity"], "must");
}
