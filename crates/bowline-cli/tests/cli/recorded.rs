//! What is done with recordings: replayed, served, compared, exported.

use std::io::{BufReader, Write};
use std::process::Stdio;

use bowline::{Revision, Revisions, Server, Tool};
use serde_json::{Value, json};

use super::fixture::{Folder, PROGRAM, program, said, serve, signal, url, wait_for};

/// Records a client that increments a counter twice, in an era.
fn record(home: &Folder, era: &str) {
    let script = "call increment\ncall increment\ntools\n";
    let words = ["debug", "--revision", era, "--", PROGRAM, "tap", "--record", "s.jsonl", "--"];
    let mut command = program(home);
    command.args(words).args([PROGRAM, "serve", "counter"]).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn recordings_are_replayed_to_a_server() {
    for era in ["legacy", "modern"] {
        let home = Folder::new();
        record(&home, era);
        let words = ["replay", "s.jsonl", "--timing", "--", PROGRAM, "serve"];
        let same = said(program(&home).args(words).arg("counter"));
        assert_eq!((same.code, same.out.as_str()), (Some(0), "nothing differs\n"), "{}", same.err);
        let other = said(program(&home).args(words).arg("example"));
        assert_eq!(other.code, Some(11), "{era}: {}", other.err);
        assert!(other.out.contains("tools/call"), "{era}: {}", other.out);
        let ignored = said(
            program(&home)
                .args(["replay", "s.jsonl", "--ignore", "result", "--ignore", "error"])
                .args(["--", PROGRAM, "serve", "example"]),
        );
        assert_eq!(ignored.code, Some(0), "{era}: {}", ignored.out);
    }
}

#[test]
fn recordings_are_replayed_in_another_revision() {
    for (era, others) in
        [("legacy", &["modern", "2024-11-05"][..]), ("modern", &["legacy", "2025-03-26"])]
    {
        let home = Folder::new();
        record(&home, era);
        for other in others {
            let replay = |server: &str, more: &[&str]| {
                let words = ["replay", "s.jsonl", "--revision", other];
                let command = ["--", PROGRAM, "serve", server];
                said(program(&home).args(words).args(more).args(command))
            };
            for more in [&[][..], &["--timing"]] {
                let same = replay("counter", more);
                assert_eq!(same.code, Some(0), "{era} in {other}: {}{}", same.out, same.err);
                assert!(same.err.contains("recorded in 20"), "{}", same.err);
            }
            let different = replay("example", &[]);
            assert_eq!(different.code, Some(11), "{era} in {other}: {}", different.err);
            assert!(different.out.contains("tools/call"), "{}", different.out);
        }
    }
}

/// A call over HTTP, in which the server asks for roots; and who else can be asked now.
#[test]
fn questions_over_http_are_replayed_and_served() {
    for (era, other) in [("legacy", "modern"), ("modern", "legacy")] {
        let home = Folder::new();
        let server = url("asks");
        let mut command = program(&home);
        command.args(["tap", &server, "--http", "127.0.0.1:0", "--record", "s.jsonl"]);
        let mut tap = command.spawn().unwrap();
        let told = wait_for(&mut BufReader::new(tap.stderr.take().unwrap()), " is at ");
        let own = told.trim().rsplit(" is at ").next().unwrap();
        let call = |words: &[&str]| said(program(&home).args(["call", "--root", "."]).args(words));
        let called = call(&["--revision", era, own, "roots"]);
        assert_eq!(called.code, Some(0), "{era}: {}", called.err);
        signal(&tap, "TERM");
        assert_eq!(tap.wait().unwrap().code(), Some(0));
        for more in [&[][..], &["--revision", other]] {
            let words = ["replay", "s.jsonl", &server, "--timeout", "60"];
            let same = said(program(&home).args(words).args(more));
            assert_eq!(same.code, Some(0), "{era} {more:?}: {}{}", same.out, same.err);
        }
        for revision in [era, other] {
            let mock = ["--revision", revision, "roots", "--", PROGRAM, "mock", "s.jsonl"];
            let mocked = call(&mock);
            assert_eq!(mocked.code, Some(0), "{era} to {revision}: {}", mocked.err);
            assert_eq!(mocked.out, called.out);
        }
    }
}

/// A request that the recorded client cancelled has no answer: nothing waits for one.
#[test]
fn a_request_without_an_answer_is_begun_and_cancelled() {
    let waiting = Server::new("waiting", "1.0.0")
        .with(Tool::new("wait", std::future::pending::<String>))
        .revisions(Revisions::only(Revision::V2025_11_25));
    let address = serve(waiting.http());
    let home = Folder::new();
    let server = format!("http://{address}/mcp");
    let client = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    let sent = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "wait", "arguments": {} } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "wait", "arguments": {} } }),
        json!({ "jsonrpc": "2.0", "id": 4, "method": "ping" }),
    ];
    let line = |way: &str, message: &Value| {
        json!({ "kind": "message", "at": 0.1, "direction": way, "message": message }).to_string()
    };
    let opening = json!({ "format": 1, "program": "x", "started": "", "target": { "url": server, "headers": [] } });
    let mut lines = vec![json!({ "kind": "session", "at": 0.0, "session": opening }).to_string()];
    lines.extend(sent.iter().map(|message| line("sent", message)));
    for id in [1, 4] {
        lines.push(line("received", &json!({ "jsonrpc": "2.0", "id": id, "result": {} })));
    }
    home.write("s.jsonl", &(lines.join("\n") + "\n"));
    let words = ["replay", "s.jsonl", &server, "--timeout", "60", "--ignore", "result"];
    let replayed = said(program(&home).args(words));
    let found = (replayed.code, replayed.out.as_str());
    assert_eq!(found, (Some(0), "nothing differs\n"), "{}", replayed.err);
}

#[test]
fn recordings_are_served() {
    for era in ["legacy", "modern"] {
        let home = Folder::new();
        record(&home, era);
        let call =
            |target: &[&str]| said(program(&home).args(["call", "--revision", era]).args(target));
        let served = call(&["increment", "--", PROGRAM, "mock", "s.jsonl"]);
        assert_eq!((served.code, served.out.trim()), (Some(0), "1"), "{era}: {}", served.err);
        // Over HTTP, and to several clients: the second gets what the second call got.
        let mut command = program(&home);
        command.args(["mock", "s.jsonl", "--http", "127.0.0.1:0"]);
        let mut mock = command.spawn().unwrap();
        let told = wait_for(&mut BufReader::new(mock.stderr.take().unwrap()), "http://");
        let url = told.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
        for expected in ["1", "2", "2"] {
            let served = call(&[url, "increment"]);
            assert_eq!(
                (served.code, served.out.trim()),
                (Some(0), expected),
                "{era}: {}",
                served.err
            );
        }
        let replayed = said(program(&home).args(["replay", "s.jsonl", url, "--ignore", "result"]));
        assert_eq!(replayed.code, Some(0), "{era}: {}{}", replayed.out, replayed.err);
        let unknown = call(&[url, "decrement"]);
        assert_ne!(unknown.code, Some(0));
        mock.kill().unwrap();
        mock.wait().unwrap();
    }
}

#[test]
fn recordings_are_compared() {
    let home = Folder::new();
    record(&home, "modern");
    let text = std::fs::read_to_string(home.path().join("s.jsonl")).unwrap();
    assert!(text.contains(r#""text":"2""#), "{text}");
    home.write(
        "t.jsonl",
        &text.replace(r#""text":"2""#, r#""text":"7""#).replace("decrement", "dec"),
    );
    let same = said(program(&home).args(["diff", "s.jsonl", "s.jsonl"]));
    assert_eq!((same.code, same.out.as_str()), (Some(0), "nothing differs\n"), "{}", same.err);
    let other = said(program(&home).args(["diff", "s.jsonl", "t.jsonl"]));
    assert_eq!(other.code, Some(11));
    for part in ["- tools.decrement: ", "+ tools.dec: ", "\"2\" → \"7\""] {
        assert!(other.out.contains(part), "{part}: {}", other.out);
    }
    let json = said(program(&home).args(["diff", "s.jsonl", "t.jsonl", "--output", "json"]));
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert!(json["differences"].as_array().unwrap().len() >= 3, "{json}");
    let none = said(program(&home).args(["diff", "s.jsonl", "none.jsonl"]));
    assert_eq!(none.code, Some(1));
}

#[test]
fn drift_from_a_baseline_is_reported() {
    let home = Folder::new();
    let against = |words: &[&str], server: &str| {
        let words = ["diff", "--baseline", "b.json"].iter().chain(words).copied();
        said(program(&home).args(words.collect::<Vec<_>>()).args(["--", PROGRAM, "serve", server]))
    };
    let missing = against(&[], "counter");
    assert_eq!(missing.code, Some(1));
    assert!(missing.err.contains("--pin writes it"), "{}", missing.err);
    let pinned = against(&["--pin"], "counter");
    assert_eq!(pinned.code, Some(0), "{}", pinned.err);
    let same = against(&[], "counter");
    assert_eq!((same.code, same.out.as_str()), (Some(0), "nothing differs\n"), "{}", same.err);
    let other = against(&[], "example");
    assert_eq!(other.code, Some(11));
    assert!(other.out.contains("- tools.increment"), "{}", other.out);
}

#[test]
fn recordings_are_exported() {
    let home = Folder::new();
    record(&home, "legacy");
    let export = |to: &str| {
        let said = said(program(&home).args(["export", "s.jsonl", "--to", to]));
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{to}");
        said.out
    };
    let har: Value = serde_json::from_str(&export("har")).unwrap();
    let entries = har["log"]["entries"].as_array().unwrap();
    assert!(
        entries.iter().any(|it| it["request"]["url"] == "stdio://localhost/initialize"),
        "{har}"
    );
    let otlp: Value = serde_json::from_str(&export("otlp")).unwrap();
    let spans = otlp["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert!(spans.iter().any(|it| it["name"] == "tools/call increment"), "{otlp}");
    let page = export("html");
    assert!(page.starts_with("<!doctype html>") && page.contains("tools/call increment"), "{page}");
    assert!(!page.contains("<script"), "{page}");
}
