//! `bowline bridge` as clients start it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::fixture::{Folder, PROGRAM, program, said, signal, url, wait_for};

/// A server of both eras, as a program.
const COUNTER: [&str; 4] = ["--", PROGRAM, "serve", "counter"];

/// Ends a program with the value that owns it.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `bowline bridge` with these words, and a pipe to its input.
fn bridge(home: &Folder, words: &[&str]) -> Command {
    let mut command = program(home);
    command.arg("bridge").args(words).stdin(Stdio::piped());
    command
}

/// A bridge over HTTP, its URL, and what it says on standard error from then on.
fn over_http(
    home: &Folder,
    words: &[&str],
) -> (Ends, String, BufReader<std::process::ChildStderr>) {
    let mut command = bridge(home, &[&["--http", "127.0.0.1:0"][..], words].concat());
    let mut child = Ends(command.spawn().unwrap());
    let mut err = BufReader::new(child.0.stderr.take().unwrap());
    let told = wait_for(&mut err, "the bridge is at ");
    let url = told.trim().split("the bridge is at ").nth(1).unwrap().to_owned();
    (child, url, err)
}

/// A tool call through a bridge over HTTP; what the tool says.
fn called(home: &Folder, words: &[&str]) -> String {
    let said = said(program(home).arg("call").args(words));
    assert_eq!(said.code, Some(0), "{words:?}: {}", said.err);
    said.out.trim().to_owned()
}

#[test]
fn clients_of_each_era_reach_a_program_over_http() {
    let home = Folder::new();
    for server in ["legacy", "modern"] {
        let words = [&["--revision", server][..], &COUNTER].concat();
        let (mut child, url, _err) = over_http(&home, &words);
        let sse = url.replace("/mcp", "/sse");
        for (count, (url, era)) in
            (1..).zip([(&url, "legacy"), (&url, "modern"), (&sse, "2024-11-05")])
        {
            let said = called(&home, &[url, "increment", "--revision", era]);
            assert_eq!(said, count.to_string(), "{era} to {server}");
        }
        signal(&child.0, "TERM");
        assert_eq!(child.0.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn https_is_served_with_a_certificate() {
    let home = Folder::new();
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    home.write("cert.pem", &own.cert.pem());
    home.write("key.pem", &own.signing_key.serialize_pem());
    let words = [&["--cert", "cert.pem", "--key", "key.pem"][..], &COUNTER].concat();
    let (_child, url, _err) = over_http(&home, &words);
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let url = url.replace("127.0.0.1", "localhost");
    assert_eq!(called(&home, &[&url, "increment", "--ca", "cert.pem"]), "1");
    let alone = said(&mut bridge(&home, &["--http", "127.0.0.1:0", "--cert", "cert.pem", "x"]));
    assert_eq!(alone.code, Some(1));
    assert!(alone.err.contains("--key"), "{}", alone.err);
}

#[test]
fn what_cannot_be_translated_is_explained_without_a_server() {
    let home = Folder::new();
    let told =
        said(&mut bridge(&home, &["--explain", "--offer", "legacy", "--revision", "modern"]));
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(
        told.out.starts_with("legacy (2024-11-05 to 2025-11-25) client, modern"),
        "{}",
        told.out
    );
    let all = said(&mut bridge(&home, &["--explain"]));
    assert_eq!(all.out.matches(" client, ").count(), 4, "{}", all.out);
}

#[test]
fn options_without_a_meaning_are_rejected() {
    let home = Folder::new();
    for (words, problem) in [
        (&["--record", "x"][..], "bowline bridge does not take --record"),
        (&["--timeout", "5"], "bowline bridge does not take --timeout"),
        (&["--accept"], "bowline bridge does not take --accept"),
        (&["--fault", "status=503"], "breaks HTTP"),
        (&["--http", "127.0.0.1:0", "--fault", "drop=1"], "cannot be used with"),
        (&["--http", "0.0.0.0:0"], "--allow-unauthenticated"),
        (&["--allow-host", "a.b"], "--http"),
        (&["--rename", "x"], "expected TOOL=NAME"),
    ] {
        let said = said(&mut bridge(&home, &[words, &COUNTER].concat()));
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{words:?}");
        assert!(said.err.contains(problem), "{words:?}: {}", said.err);
    }
}

/// A client on standard input and output.
struct Pipe {
    child: Ends,
    output: BufReader<std::process::ChildStdout>,
}

impl Pipe {
    fn open(mut command: Command) -> Self {
        let mut child = Ends(command.spawn().unwrap());
        let output = BufReader::new(child.0.stdout.take().unwrap());
        let mut pipe = Self { child, output };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "x", "version": "1" },
        });
        pipe.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }));
        let opened = pipe.answer(1);
        assert_eq!(opened["result"]["protocolVersion"], "2025-11-25", "{opened}");
        pipe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        pipe
    }

    fn send(&mut self, message: &Value) {
        let input = self.child.0.stdin.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// The answer to a request; everything else is skipped.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "it ended before {id}");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.answer(id)
    }

    fn call(&mut self, id: u64, tool: &str) -> Value {
        self.ask(id, "tools/call", &json!({ "name": tool, "arguments": {} }))
    }
}

#[test]
fn tools_are_left_out_and_renamed() {
    let home = Folder::new();
    let rules = ["--deny", "dec*", "--rename", "increment=count", "--rename", "none=more"];
    let mut pipe = Pipe::open(bridge(&home, &[&rules[..], &COUNTER].concat()));
    let listed = pipe.ask(2, "tools/list", &json!({}));
    let names = |listed: &Value| -> Vec<String> {
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let names = names(&listed);
    assert!(names.contains(&"count".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name == "increment" || name.starts_with("dec")), "{names:?}");
    assert_eq!(pipe.call(3, "count")["result"]["content"][0]["text"], "1");
    assert!(pipe.call(4, "increment")["error"].is_object());
    drop(pipe.child.0.stdin.take());
    let mut err = BufReader::new(pipe.child.0.stderr.take().unwrap());
    wait_for(&mut err, "none");
    assert_eq!(pipe.child.0.wait().unwrap().code(), Some(0));
    let (_child, url, _err) = over_http(&home, &[&["--allow", "increment"][..], &COUNTER].concat());
    let tools = said(program(&home).args(["tools", &url, "--output", "json"]));
    assert!(tools.out.contains("increment"), "{}{}", tools.out, tools.err);
    assert_eq!(tools.out.matches(r#""inputSchema""#).count(), 1, "{}", tools.out);
}

/// What is late on purpose arrives, also when the client has said everything.
#[test]
fn the_last_answers_are_late_and_not_lost() {
    let home = Folder::new();
    let mut pipe = Pipe::open(bridge(&home, &[&["--fault", "delay=500ms"][..], &COUNTER].concat()));
    for id in 2..20 {
        pipe.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
    }
    drop(pipe.child.0.stdin.take());
    for id in 2..20 {
        assert_eq!(pipe.answer(id)["result"], json!({}));
    }
    assert_eq!(pipe.child.0.wait().unwrap().code(), Some(0));
}

/// A server that notes how it ended, whether it sees the end of its input or a signal first.
fn cleaning(home: &Folder) -> String {
    let file = home.path().join("ended");
    format!(
        "trap 'echo told > {0}; exit 0' TERM; {PROGRAM} serve counter; echo closed > {0}",
        file.display()
    )
}

#[test]
fn a_translated_server_may_clean_up_however_the_bridge_ends() {
    for is_signal in [false, true] {
        let home = Folder::new();
        let script = cleaning(&home);
        let words = ["--revision", "modern", "--", "sh", "-c", &script];
        let mut pipe = Pipe::open(bridge(&home, &words));
        assert_eq!(pipe.call(2, "increment")["result"]["content"][0]["text"], "1");
        if is_signal {
            signal(&pipe.child.0, "TERM");
        } else {
            drop(pipe.child.0.stdin.take());
        }
        assert_eq!(pipe.child.0.wait().unwrap().code(), Some(0), "{is_signal}");
        assert!(home.path().join("ended").exists(), "{is_signal}");
    }
    let home = Folder::new();
    let script = cleaning(&home);
    let (mut child, url, _err) = over_http(&home, &["--", "sh", "-c", &script]);
    assert_eq!(called(&home, &[&url, "increment"]), "1");
    signal(&child.0, "TERM");
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    assert!(home.path().join("ended").exists());
}

/// Over HTTP a server that dies is started again, also by a program whose file is gone since.
#[cfg(target_os = "linux")]
#[test]
fn a_server_that_dies_is_started_again() {
    let home = Folder::new();
    let script = format!("echo $$ > pid; exec {PROGRAM} serve counter");
    let (_child, url, mut err) = over_http(&home, &["--", "sh", "-c", &script]);
    assert_eq!(called(&home, &[&url, "increment"]), "1");
    kill(&home);
    wait_for(&mut err, "the server is back");
    assert_eq!(called(&home, &[&url, "increment"]), "1");
    // The same on standard input and output, where our own program starts the server.
    let own = home.path().join("bowline");
    std::fs::hard_link(PROGRAM, &own).unwrap();
    let mut command = Command::new(&own);
    let usual = bridge(&home, &["--", "sh", "-c", &script]);
    command.args(usual.get_args()).current_dir(home.path());
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut pipe = Pipe::open(command);
    assert_eq!(pipe.call(2, "increment")["result"]["content"][0]["text"], "1");
    std::fs::remove_file(&own).unwrap();
    kill(&home);
    let mut err = BufReader::new(pipe.child.0.stderr.take().unwrap());
    wait_for(&mut err, "the server is back");
    assert_eq!(pipe.call(3, "increment")["result"]["content"][0]["text"], "1");
}

/// Kills the server that has written its number.
#[cfg(target_os = "linux")]
fn kill(home: &Folder) {
    let pid = std::fs::read_to_string(home.path().join("pid")).unwrap();
    assert!(Command::new("kill").args(["-KILL", pid.trim()]).status().unwrap().success());
}

#[test]
fn a_server_that_cannot_be_reached_fails_the_bridge() {
    let home = Folder::new();
    let gone =
        said(&mut bridge(&home, &["--http", "127.0.0.1:0", "--", "there-is-no-such-program"]));
    assert_ne!(gone.code, Some(0));
    assert_eq!(gone.out, "");
    // A server of the other era behind a URL needs no option.
    let url = url("counter");
    let mut pipe = Pipe::open(bridge(&home, &["--revision", "modern", &url]));
    assert!(pipe.call(2, "increment")["result"].is_object());
}
