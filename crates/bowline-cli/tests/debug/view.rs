//! Somebody watches taps, in terminals of three sizes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use super::PROGRAM;
use super::terminal::{Home, Terminal};

/// A tap in front of a shell script; ended when this is dropped.
struct Tap(Child);

impl Tap {
    fn start(home: &Home, name: &str, script: &str) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["tap", "--name", name, "--", "sh", "-c", script]);
        command.env("BOWLINE_RUNTIME_DIR", home.path().join("r")).current_dir(home.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    fn send(&mut self, line: &str) {
        self.0.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Waits for a line of the server.
    fn hear(&mut self) {
        let out = self.0.stdout.as_mut().unwrap();
        assert_ne!(BufReader::with_capacity(1, out).read_line(&mut String::new()).unwrap(), 0);
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Answers requests 1 and 2, the second with an error, and no other.
const SERVER: &str = r#"read a; echo '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
read b; echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no such tool"}}'
cat > /dev/null"#;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}"#;
const HANGS: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow"}}"#;

#[test]
fn everything_is_seen_in_a_terminal_of_any_size() {
    for size in [(14, 60), (30, 100), (50, 180)] {
        let home = Home::new();
        let mut first = Tap::start(&home, "first", SERVER);
        // What was said before anybody watched.
        first.send(LIST);
        first.hear();
        let terminal = Terminal::open(&["tap", "--view"], &home, size);
        terminal.expect_shown("1 of 1 taps running");
        terminal.expect_shown("→ tools/list #1");
        // What is said while somebody watches, and what hangs.
        first.send(CALL);
        first.hear();
        terminal.expect_shown("→ tools/call echo #2");
        terminal.expect_shown("error ");
        first.send(HANGS);
        terminal.expect_shown("→ tools/call slow #3");
        terminal.expect_shown("1 waiting, ");
        // Details of the row that is followed.
        terminal.press("\r");
        terminal.expect_shown("\"name\": \"slow\"");
        terminal.press("\r");
        terminal.expect_gone("\"name\": \"slow\"");
        // A filter, and a mistake in it.
        terminal.press("fis:dancing\r");
        terminal.expect_shown("is:dancing: expected");
        terminal.press(&format!("{}is:error\r", "\x7f".repeat("is:dancing".len())));
        terminal.expect_shown("filter: is:error");
        terminal.expect_gone("tools/list #1");
        terminal.expect_shown("tools/call echo #2");
        terminal.press("\x1b");
        terminal.expect_shown("tools/list #1");
        // A search goes there, and stops following.
        terminal.expect_shown("following");
        terminal.press("/tools/list\r");
        terminal.expect_gone("following");
        // The other tabs.
        terminal.press("2");
        terminal.expect_shown("P95");
        terminal.expect_shown("tools/call");
        terminal.press("3");
        terminal.expect_gone("tools/list #1");
        terminal.expect_shown("waits ");
        // A second tap, of another client.
        let mut second = Tap::start(&home, "second", "cat > /dev/null");
        second.send(LIST);
        terminal.press("4");
        terminal.expect_shown("2 of 2 taps running");
        terminal.expect_shown("second");
        drop(first);
        terminal.expect_shown("1 of 2 taps running");
        terminal.press("1\x1b[F");
        terminal.press("e");
        terminal.expect_shown("written: tap-");
        terminal.press("q");
        assert_eq!(terminal.end(), Some(0));
        let files = std::fs::read_dir(home.path()).unwrap().map(|it| it.unwrap().path());
        let exported = files.into_iter().find(|it| it.extension().is_some_and(|it| it == "jsonl"));
        let shown = Command::new(PROGRAM).arg("show").arg(exported.unwrap()).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.contains("tools/list") && shown.contains("1 messages"), "{shown}");
    }
}

#[test]
fn a_pipe_gets_lines() {
    let home = Home::new();
    let mut tap = Tap::start(&home, "piped", SERVER);
    tap.send(LIST);
    let mut command = Command::new(PROGRAM);
    command.args(["tap", "--view"]).env("BOWLINE_RUNTIME_DIR", home.path().join("r"));
    let mut viewer = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(viewer.stdout.take().unwrap()).lines();
    let line = lines.find(|line| line.as_ref().unwrap().contains("tools/list")).unwrap().unwrap();
    assert!(line.starts_with("piped ") && line.contains("→"), "{line}");
    viewer.kill().unwrap();
    viewer.wait().unwrap();
}
