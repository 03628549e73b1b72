//! `bowline check` as people and build servers use it.

use std::collections::BTreeMap;
use std::time::Duration;

use bowline_serve::testing::{HttpReply, Service};
use serde_json::{Value, json};

use crate::fixture::{Folder, PROGRAM, program, said, url};

/// Runs the check; gives its exit code, output and complaints.
fn check(arguments: &[&str]) -> (Option<i32>, String, String) {
    let home = Folder::new();
    let output = program(&home).arg("check").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn our_servers_pass_on_every_transport() {
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
    let sse = url("counter").replace("/mcp", "/sse");
    let (code, out, err) = check(&[&sse, "--output", "json"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["transport"], "sse");
    assert_eq!(report["revisions"].as_array().unwrap().len(), 4);
    assert_eq!(report["summary"]["problems"]["must"], 0);
    assert_eq!(report["summary"]["problems"]["should"], 0);
    let (code, _, err) = check(&[&sse, "--revision", "2026-07-28"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("speaks HTTP+SSE, which 2026-07-28 does not have"), "{err}");
}

/// A program that notes each of its starts in a file, and is a server.
#[cfg(unix)]
fn counted(home: &Folder, before: &str) -> String {
    let log = home.path().join("starts");
    format!("echo start >> {}\n{before}\n{PROGRAM} serve counter", log.display())
}

#[cfg(unix)]
fn starts(home: &Folder) -> usize {
    std::fs::read_to_string(home.path().join("starts")).unwrap().lines().count()
}

/// A start of a program may take seconds. One for each revision to find it out, which also shows
/// how a connection begins and ends, and one that checks share; besides, in each legacy revision
/// one that is asked for the modern one first, five for what is the same in all of these, and two
/// in the modern revision.
#[cfg(unix)]
#[test]
fn a_program_is_started_no_more_often_than_needed() {
    let mut reports = Vec::new();
    for jobs in ["1", "4"] {
        let home = Folder::new();
        let script = counted(&home, "");
        // Whether there is a call to cancel depends on how long it takes.
        let arguments = ["--output", "json", "--skip", "cancel.running", "--jobs", jobs, "--"];
        let (code, out, err) = check(&[&arguments[..], &["sh", "-c", &script]].concat());
        assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
        assert_eq!(starts(&home), 5 + 5 + 4 + 5 + 2, "--jobs {jobs}");
        let report: Value = serde_json::from_str(&out).unwrap();
        let results = report["results"].as_array().unwrap().iter();
        let found = results.map(|it| ["id", "revision", "outcome"].map(|part| it[part].clone()));
        reports.push(found.collect::<Vec<_>>());
    }
    assert_eq!(reports[0], reports[1], "the results are the same however many run at once");
    let home = Folder::new();
    let script = counted(&home, "");
    let one = ["--revision", "2025-11-25", "--only", "lifecycle.ping", "--", "sh", "-c", &script];
    assert_eq!(check(&one).0, Some(0));
    assert_eq!(starts(&home), 5 + 1);
    let (code, _, err) = check(&["--jobs", "0", "--", PROGRAM, "serve", "counter"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("--jobs") && err.contains("1..=64"), "{err}");
}

#[cfg(unix)]
#[test]
fn a_program_that_cannot_run_twice_at_a_time_is_started_once_at_a_time() {
    let home = Folder::new();
    let lock = home.path().join("lock");
    let lock = lock.display();
    let alone = format!("mkdir {lock} 2>/dev/null || exit 5\ntrap 'rmdir {lock}' EXIT\nsleep 0.1");
    let script = counted(&home, &alone);
    let (code, out, err) = check(&["--jobs", "4", "--output", "json", "--", "sh", "-c", &script]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["revisions"].as_array().unwrap().len(), 5);
    assert_eq!(report["summary"]["problems"]["must"], 0);
    assert_eq!(report["summary"]["problems"]["should"], 0);
    // Those that were started too early came to nothing.
    assert!(starts(&home) > 21, "{}", starts(&home));
}

#[cfg(unix)]
#[test]
fn a_recording_tells_connections_apart() {
    let home = Folder::new();
    let file = home.path().join("session");
    let file = file.to_str().unwrap();
    let only = ["--only", "lifecycle", "--record", file, "--jobs", "4", "--"];
    let server = [PROGRAM, "serve", "counter"];
    assert_eq!(check(&[&only[..], &server[..]].concat()).0, Some(0));
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut connections: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for line in lines.filter(|line| line["kind"] == "message") {
        connections.entry(line["connection"].as_u64().unwrap()).or_default().push(line);
    }
    // In the modern era there is no handshake, and the survey has asked all that these ask.
    assert_eq!(connections.len(), 5 + 4 + 4 + 5);
    for (number, lines) in &connections {
        assert_eq!(
            (&lines[0]["direction"], &lines[0]["message"]["id"]),
            (&"sent".into(), &1.into())
        );
        assert_eq!(lines[1]["direction"], "received", "connection {number}");
        assert_eq!(lines[1]["message"]["id"], 1, "connection {number}");
    }
    let shown = said(program(&home).arg("show").arg(file)).out;
    assert!(shown.contains("#1   →") && shown.contains("#18  ←"), "{shown}");
}

/// How many processes have this command line.
#[cfg(target_os = "linux")]
fn running(command: &str) -> usize {
    let wanted = format!("{}\0", command.replace(' ', "\0"));
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|it| std::fs::read_to_string(it.path().join("cmdline")).ok());
    lines.filter(|line| *line == wanted).count()
}

/// Looks again and again, for a minute at least.
#[cfg(target_os = "linux")]
pub(crate) fn wait_until(is_so: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never comes to that");
}

/// A program that neither answers nor ends with its input, like its child, and what both are
/// called: nobody else sleeps for so many seconds.
#[cfg(target_os = "linux")]
fn hanging(digit: u8) -> (String, String) {
    let sleep = format!("sleep {digit}{}", std::process::id());
    (format!("trap '' TERM INT HUP\n{sleep} & {sleep}; exit 1"), sleep)
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_hangs_is_not_left_behind() {
    let (script, sleep) = hanging(7);
    let (code, _, err) = check(&["--timeout", "300ms", "--jobs", "4", "--", "sh", "-c", &script]);
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("no response within 300ms"), "{err}");
    wait_until(|| running(&sleep) == 0);
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_check_leaves_no_program_behind() {
    let (script, sleep) = hanging(8);
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let home = Folder::new();
        let mut command = program(&home);
        command.args(["check", "--jobs", "3", "--timeout", "10m", "--", "sh", "-c", &script]);
        let child = command.spawn().unwrap();
        wait_until(|| running(&sleep) == 6);
        crate::fixture::signal(&child, signal);
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{err}");
        assert!(err.contains("interrupted"), "{err}");
        // Killed before the program ended; what is dying still has its name for a moment.
        wait_until(|| running(&sleep) == 0);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_ends_is_noticed_whoever_holds_its_pipe() {
    // Nobody else sleeps as long as this.
    let sleep = format!("sleep 9{}", std::process::id());
    let script = format!("echo the reason >&2; {sleep} & exit 3");
    let (code, _, err) = check(&["--timeout", "10m", "--", "sh", "-c", &script]);
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("exit status: 3") && err.contains("the reason"), "{err}");
    assert_eq!(running(&sleep), 0);
}

/// A site that wants a token, and tells so with this challenge if there is one.
fn closed(challenge: Option<&'static str>) -> String {
    let service = Service::start(move |asked| {
        let base = asked.base();
        match asked.path() {
            "/mcp" => challenge.into_iter().fold(HttpReply::error(401, ""), |answer, challenge| {
                answer.with_header("www-authenticate", challenge.replace("HERE", &base))
            }),
            "/.well-known/oauth-protected-resource" => HttpReply::json(&json!({
                "resource": format!("{base}/mcp"), "authorization_servers": [base],
            })),
            "/.well-known/oauth-authorization-server" => HttpReply::json(&json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "code_challenge_methods_supported": ["S256"],
            })),
            _ => HttpReply::error(404, ""),
        }
    });
    format!("{}/mcp", service.url())
}

#[test]
fn a_server_that_wants_a_token_is_checked_as_far_as_it_can_be() {
    let good = closed(Some(
        "Bearer error=\"invalid_token\", \
         resource_metadata=\"HERE/.well-known/oauth-protected-resource\"",
    ));
    let (code, out, err) = check(&[&good]);
    assert_eq!(code, Some(3), "{out}{err}");
    assert!(out.contains("without a token") && out.contains("0 broken (must)"), "{out}");
    assert!(err.contains("401") && err.contains("bowline login"), "{err}");
    let (code, out, err) = check(&["--output", "json", &good]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["conclusion"]), (Some(3), &"unauthorized".into()), "{err}");
    let (code, _, err) = check(&["--token", "sesame-sesame", &good]);
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("the token is not accepted") && !err.contains("sesame"), "{err}");
    let (code, out, err) = check(&["--only", "tools", &good]);
    assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");
    // Nothing says how to log in.
    let (code, out, _) = check(&[&closed(None)]);
    assert_eq!(code, Some(9), "{out}");
    assert!(out.contains("FAIL auth.challenge (must)"), "{out}");
}

#[test]
fn the_exit_status_tells_how_bad_it_is() {
    let shout = format!("echo starting; exec {PROGRAM} serve counter");
    let pollution =
        ["--only", "lifecycle,stdio", "--revision", "2025-11-25", "--", "sh", "-c", &shout];
    let (code, out, _) = check(&pollution);
    assert_eq!(code, Some(9), "{out}");
    assert!(out.contains("FAIL stdio.pollution (must)") && out.contains("starting"), "{out}");
    let (undescribed, url) = (url("pages"), url("counter"));
    let portable = ["--only", "tools.descriptions", "--revision", "modern", &undescribed];
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
    assert!(out.lines().count() > 100 && out.contains("\nlifecycle.initialize"), "{out}");
    let (_, out, _) = check(&["--list", "--output", "json"]);
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(list["checks"][0]["severity"], "must");
}
