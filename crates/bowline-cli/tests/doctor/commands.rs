//! Commands: programs that do not exist, do not start, stay silent, or violate the protocol.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use bowline_serve::testing::run;

use super::world::{Folder, PROGRAM, doctor, doctor_for_people, left, mark, patient};

/// Long enough for anything that responds at all.
const LONG: &str = "120s";
/// For programs that never respond: all of it passes. It decides what is found, so the slowest
/// start of a program must fit in.
const SHORT: &str = "30s";
/// How many are examined at once. Most of them wait.
const AT_ONCE: usize = 6;

/// Examines a patient with this manner, and waits until no process of it is left.
fn examine(manner: &str, timeout: &str) -> super::world::Found {
    let mark = mark();
    let found = doctor(&["--timeout", timeout, "--", &patient(), manner, &mark]);
    for _ in 0..12_000 {
        if left(&mark) == 0 {
            return found;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{manner} is still running");
}

#[test]
fn an_exit_is_noticed_even_if_a_child_holds_the_pipe() {
    let script = "echo cannot open the database >&2; sleep 300 & exit 3";
    let found = doctor(&["--timeout", "10m", "--", "sh", "-c", script]);
    found.is("fail", "initialize", "(exit status: 3); its last words: cannot open", 4);
}

#[test]
fn a_traceback_is_shown_once_and_whole() {
    let traceback = "Traceback (most recent call last):\n  File \"a.py\", line 7, in <module>\n    \
                     run()\n\nValueError: three";
    let script = format!("printf '%s\\n' '{traceback}' >&2; exit 1");
    let command = ["--timeout", LONG, "--", "sh", "-c", &script];
    let found = doctor(&command);
    found.is("fail", "initialize", "a Python exception: ValueError: three", 4);
    assert_eq!(found.document["stderr"], serde_json::json!(traceback.lines().collect::<Vec<_>>()));
    let said = doctor_for_people(&command);
    let whole = traceback.replace('\n', "\n  ").replace("  \n", "\n");
    assert!(said.contains(&format!("\nStandard error:\n  {whole}\n")), "{said}");
    assert_eq!(said.matches("Traceback").count(), 1, "{said}");
    // The other commands show it as it comes, and start the program twice.
    let said = run(PROGRAM, &["info", "--", "sh", "-c", &script], "").err;
    let shown: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("stderr │")).collect();
    let whole: Vec<String> = traceback.lines().map(|line| format!(" {line}")).collect();
    assert_eq!(shown, whole.iter().map(|line| line.trim_end()).collect::<Vec<_>>(), "{said}");
    assert_eq!(said.matches("ValueError").count(), 1, "{said}");
}

#[test]
fn each_nasty_server_is_diagnosed() {
    let cases = [
        // How it writes.
        ("banner", LONG, "warn", "output", "a line on standard output is not a message", 0),
        ("chatty", LONG, "warn", "output", "a line on standard output is not a message", 0),
        ("latin", LONG, "warn", "output", "not UTF-8", 0),
        ("bom", LONG, "warn", "output", "byte order mark", 0),
        ("pretty", SHORT, "fail", "initialize", "spread over several lines", 9),
        ("lsp", SHORT, "fail", "initialize", "Content-Length", 9),
        ("unended", SHORT, "fail", "initialize", "not end with a line feed", 9),
        ("buffered", SHORT, "fail", "initialize", "nothing arrived until its input was closed", 4),
        ("mute", SHORT, "fail", "initialize", "wrote nothing to standard output", 4),
        ("web", SHORT, "fail", "initialize", "serves HTTP (http://127.0.0.1:3999/mcp)", 4),
        // How it answers the first request.
        ("silent", SHORT, "warn", "discover", "server/discover was not answered", 0),
        ("late", SHORT, "warn", "discover", "server/discover was not answered", 0),
        ("dies", LONG, "warn", "discover", "the program exited on server/discover", 0),
        ("malformed", LONG, "warn", "discover", "supportedVersions", 0),
        // How it answers the handshake.
        ("ends", LONG, "fail", "initialize", "its last words: cannot open the database", 4),
        ("stringid", LONG, "fail", "initialize", "its id is the string \"2\"", 9),
        ("otherid", SHORT, "fail", "initialize", "its id is 4711, which no request had", 9),
        ("oldest", LONG, "fail", "initialize", "the server 2023-01-01", 9),
        ("nameless", LONG, "fail", "initialize", "result.serverInfo is missing", 9),
        ("eager", LONG, "warn", "initialized", "sends roots/list before", 0),
        // What it does after that.
        ("hello", LONG, "fail", "tools", "ended mid-conversation (exit status: 5)", 4),
        ("hangs", SHORT, "fail", "tools", "did not answer tools/list", 4),
        ("exits", LONG, "fail", "tools", "not installed: Error: Cannot find module", 4),
        ("fails", LONG, "fail", "tools", "the database is closed", 7),
        ("endless", LONG, "fail", "tools", "is repeated", 9),
        ("sametool", LONG, "fail", "tools", "two tools have the name", 9),
        ("badschema", LONG, "fail", "tools", "inputSchema.type is \"string\"", 9),
        ("noschema", LONG, "fail", "tools", "inputSchema is missing", 9),
        ("lacks", LONG, "warn", "resources", "does not implement resources/list", 0),
        // How it exits.
        ("deaf", LONG, "warn", "shutdown", "must be killed", 0),
        ("stubborn", LONG, "warn", "shutdown", "must be killed", 0),
        ("leaves", LONG, "warn", "shutdown", "leaves processes behind", 0),
    ];
    let cases = Mutex::new(cases.into_iter());
    let next = || cases.lock().unwrap().next();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((manner, timeout, outcome, step, cause, code)) = next() {
                    examine(manner, timeout).is(outcome, step, cause, code);
                }
            });
        }
    });
}

#[test]
fn good_servers_pass() {
    for manner in ["bowline", "legacy", "modern", "error-32600", "error-32000"] {
        examine(manner, LONG).is_well();
    }
    let command = ["--revision", "modern", "--", &patient(), "legacy"];
    doctor(&command).is("fail", "discover", "does not support the modern era", 7);
    for (revision, era) in [("auto", "modern"), ("modern", "modern"), ("legacy", "legacy")] {
        let command = ["--revision", revision, "--", PROGRAM, "serve", "counter"];
        let found = doctor(&command);
        found.is_well();
        let seen = found.step("era")["seen"].as_str().unwrap().to_owned();
        assert!(seen.starts_with(era), "{revision}: {seen}");
        assert_eq!(found.step("shutdown")["outcome"], "ok");
    }
}

#[test]
fn programs_that_do_not_start() {
    let folder = Folder::new();
    let orphan = folder.put("orphan", b"#!/no/such/interpreter\n", true);
    let windows = folder.put("crlf", b"#!/bin/sh\r\necho\r\n", true);
    let foreign = folder.put("foreign", b"MZ\x90\0", true);
    let plain = folder.put("server.py", b"print()\n", false);
    let here = folder.0.to_str().unwrap().to_owned();
    for (command, step, cause) in [
        (&["--", "no-such-program-anywhere"][..], "program", "does not exist"),
        (&["--", "/no/such/program"], "program", "does not exist"),
        (&["--", &here], "program", "is a directory"),
        (&["--", &orphan], "program", "/no/such/interpreter, does not exist"),
        (&["--", &windows], "program", "Windows line end"),
        (&["--", &foreign], "program", "built for Windows"),
        (&["--", &plain], "program", "not marked as executable"),
        (&["--", "sh -c true"], "program", "are one word"),
        (&["--env", "PATH=/nonexistent", "--", "sh"], "program", "which is not in PATH"),
        (&["--cwd", "/no/such/folder", "--", "sh"], "directory", "does not exist"),
    ] {
        doctor(command).is("fail", step, cause, 4);
    }
}

#[test]
fn programs_that_exit_immediately() {
    for (script, cause) in [
        ("exit 0", "exited immediately without an error"),
        (
            "echo 'Error: Cannot find module x' >&2; exit 1",
            "one of the program's modules is not installed",
        ),
        (
            "echo 'ModuleNotFoundError: No module named mcp' >&2; exit 1",
            "a Python module is not installed",
        ),
        ("echo 'API_KEY environment variable is required' >&2; exit 1", "environment variable"),
        ("echo 'listen EADDRINUSE: address already in use' >&2; exit 1", "already in use"),
        ("kill -SEGV $$", "crashed"),
        ("kill -KILL $$", "killed"),
        ("echo odd >&2; exit 9", "ended (exit status: 9); its last words: odd"),
    ] {
        let script = format!("read line; {script}");
        doctor(&["--timeout", LONG, "--", "sh", "-c", &script]).is("fail", "initialize", cause, 4);
    }
}

#[test]
fn people_read_steps_a_cause_and_a_fix_but_no_secret() {
    let command =
        ["--env", "SECRET=open-sesame", "--", "sh", "-c", "read a; echo $SECRET >&2; exit 3"];
    let said = doctor_for_people(&command);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("  ok      program             /"), "{said}");
    assert!(said.contains("\nFailed at: initialize\n"), "{said}");
    assert!(
        said.contains("  Cause: the program ended (exit status: 3); its last words: [redacted]"),
        "{said}"
    );
    assert!(said.contains("  Fix:   "), "{said}");
    assert!(!said.contains("open-sesame") && !said.contains('\u{1b}'), "{said}");
    assert!(!said.contains("skipped tools"), "{said}");
}
