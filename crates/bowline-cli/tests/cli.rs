//! The program as a person or a client meets it.

#![expect(clippy::unwrap_used, reason = "a test ends where something is missing")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn bowline(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bowline"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn help_and_version_are_answers() {
    for arguments in [&["--help"][..], &["-h"], &["help"], &[]] {
        let output = bowline(arguments, "");
        assert!(output.status.success());
        assert!(text(&output.stdout).contains("Usage: bowline serve [SERVER]"), "{arguments:?}");
    }
    let version = bowline(&["--version"], "");
    assert!(text(&version.stdout).starts_with("bowline 0."), "{version:?}");
    assert!(text(&version.stdout).contains("2026-07-28"));
}

#[test]
fn wrong_use_says_what_is_wrong() {
    let output = bowline(&["dance"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains(r#""dance" is no command"#));
    let output = bowline(&["serve", "tea"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains(r#"no server called "tea"; there is: counter"#));
}

#[test]
fn serve_speaks_the_protocol_and_ends_with_its_input() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let output = bowline(&["serve"], &format!("{ping}\n"));
    assert!(output.status.success());
    assert_eq!(text(&output.stdout), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
}
