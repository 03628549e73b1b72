//! The gateway as operators use it: pasted files, a reload, an end.

use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use bowline_serve::testing::Said;

use super::fixture::{Folder, PROGRAM, program, said, signal, wait_for};

const SECRET: &str = "sekrit-4711";

/// A gateway that runs, and ends with the test.
struct Running {
    home: Folder,
    socket: PathBuf,
    url: String,
    child: Child,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client's file, pasted as it is, with a server that does not start; and the gateway's own.
fn files(home: &Folder) -> [PathBuf; 2] {
    let servers = json!({ "mcpServers": {
        "counter": {
            "command": PROGRAM, "args": ["serve", "counter"],
            "env": { "API_KEY": "${KEY}" }, "autoApprove": ["x"],
        },
        "dead": { "command": "/nonexistent/program", "comand": "x" },
    }});
    let own = "
[gateway]
listen = \"127.0.0.1:0\"
[secrets]
KEY = { file = \"key\" }
[telemetry]
audit = \"AUDIT\"
[tools.say]
run = [\"printf\", \"%s\", \"{what}\"]
[servers.counter]
alias = \"c\"
";
    home.write("key", &format!("{SECRET}\n"));
    let own = own.replace("AUDIT", home.path().join("audit").to_str().unwrap());
    [home.write("mcp.json", &servers.to_string()), home.write("gateway.toml", &own)]
}

fn start() -> Running {
    let home = Folder::new();
    let files = files(&home);
    // The path of a socket is short.
    let socket = PathBuf::from(format!("/tmp/bowline-gw-{}-{:p}.sock", std::process::id(), &home));
    let mut command = program(&home);
    command.arg("gateway").args(&files).arg("--socket").arg(&socket);
    let mut child = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let line = wait_for(&mut told, "the gateway is at");
    std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
    let url = line.trim().rsplit(' ').next().unwrap().to_owned();
    Running { home, socket, url, child }
}

impl Running {
    fn ask(&self, words: &[&str]) -> Said {
        let mut command = program(&self.home);
        said(command.arg("gateway").args(words).arg("--socket").arg(&self.socket))
    }

    fn status(&self) -> Value {
        let status = self.ask(&["status"]);
        assert_eq!(status.code, Some(0), "{}", status.err);
        serde_json::from_str(&status.out).unwrap()
    }

    fn call(&self, url: &str, words: &[&str]) -> Said {
        said(program(&self.home).arg("call").arg(url).args(words))
    }
}

fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it never happens");
}

#[test]
fn a_gateway_from_its_start_to_its_end() {
    let mut running = start();
    // Everything is there, although one server is dead.
    let said = running.call(&running.url, &["tools__say", "what=$(id)"]);
    assert_eq!(said.out.trim(), "$(id)", "{}", said.err);
    let status = running.status();
    assert_eq!(status["servers"][1]["state"], "down", "{status}");
    let own = running.url.replace("/mcp", "/servers/counter/mcp");
    for (url, name) in [(&running.url, "c__increment"), (&own, "increment")] {
        let said = running.call(url, &[name]);
        assert_eq!(said.code, Some(0), "{name}: {} {}", said.out, said.err);
    }

    // B: a child that is killed comes back.
    let process = status["servers"][0]["process"].as_u64().unwrap();
    assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
    until(|| running.status()["servers"][0]["process"].as_u64().is_some_and(|it| it != process));
    until(|| running.call(&running.url, &["c__increment"]).code == Some(0));

    // G: a bad file changes nothing and says so; a good one counts.
    let own = running.home.path().join("gateway.toml");
    let good = std::fs::read_to_string(&own).unwrap();
    std::fs::write(&own, good.replace("alias", "alais")).unwrap();
    let told = running.ask(&["reload"]);
    assert_ne!(told.code, Some(0));
    assert!(
        told.err.contains("line 11") && told.err.contains("did you mean alias"),
        "{}",
        told.err
    );
    assert_eq!(running.call(&running.url, &["c__increment"]).code, Some(0));
    std::fs::write(&own, good.replace("alias = \"c\"", "alias = \"d\"")).unwrap();
    assert_eq!(running.ask(&["reload"]).code, Some(0));
    assert_eq!(running.call(&running.url, &["d__increment"]).code, Some(0));

    // The rules are explained; the end is orderly; the record is whole.
    let explained = running.ask(&["explain", "-", "d__increment"]);
    assert!(explained.out.contains("counter/increment"), "{}", explained.out);
    assert_eq!(running.ask(&["drain"]).code, Some(0));
    assert!(running.child.wait().unwrap().success());
    let audit = running.home.path().join("audit");
    let verified = said_of(&running.home, &["gateway", "verify", audit.to_str().unwrap()]);
    assert_eq!(verified.code, Some(0), "{}", verified.err);
    let text = std::fs::read_to_string(&audit).unwrap();
    assert!(text.contains("\"name\":\"increment\"") && !text.contains(SECRET), "{text}");
    std::fs::write(&audit, text.lines().skip(1).map(|it| format!("{it}\n")).collect::<String>())
        .unwrap();
    let cut = said_of(&running.home, &["gateway", "verify", audit.to_str().unwrap()]);
    assert!(cut.code != Some(0) && cut.err.contains("a line was removed"), "{}", cut.err);
}

fn said_of(home: &Folder, words: &[&str]) -> Said {
    said(program(home).args(words))
}

#[test]
fn check_shows_origins_and_no_secrets() {
    let home = Folder::new();
    let [servers, own] = files(&home).map(|it| it.to_str().unwrap().to_owned());
    let checked = said_of(&home, &["gateway", "check", &servers, &own]);
    assert_eq!(checked.code, Some(0), "{}", checked.err);
    for part in ["mcp.json", "c__*", "tools__say", "comand is not understood; did you mean"] {
        assert!(checked.out.contains(part), "{part}: {}", checked.out);
    }
    assert!(!checked.out.contains(SECRET));
    std::fs::remove_file(home.path().join("key")).unwrap();
    let checked = said_of(&home, &["gateway", "check", &servers, &own]);
    assert!(checked.err.contains("secrets.KEY"), "{}", checked.err);
    let schema = said_of(&home, &["gateway", "schema"]);
    assert!(
        serde_json::from_str::<Value>(&schema.out).unwrap()["properties"]["servers"].is_object()
    );
}

#[test]
fn g24_a_killed_gateway_leaves_no_secret_in_a_file() {
    let running = start();
    signal(&running.child, "KILL");
    for entry in std::fs::read_dir(running.home.path()).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(path.ends_with("key") || !text.contains(SECRET), "{path:?}");
    }
}
