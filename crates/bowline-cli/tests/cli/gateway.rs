//! The gateway as operators use it: pasted files, a reload, an end.

use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use bowline_serve::testing::Said;

use super::fixture::{Folder, PROGRAM, program, said, signal, until, wait_for};

const SECRET: &str = "sekrit-4711";

/// A secret that looks like what is expanded.
const ODD: &str = "${KEY}$HOME${HOME}";

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
            "env": { "API_KEY": "${KEY}" }, "autoApprove": ["x"], "disabledTools": ["echo"],
        },
        "dead": { "command": "/nonexistent/program", "comand": "x" },
    }});
    let own = "
[gateway]
listen = \"127.0.0.1:0\"
[secrets]
KEY = { file = \"key\" }
ODD = { file = \"odd\" }
[telemetry]
audit = \"audit\"
metrics = \"METRICS\"
[tools.show]
run = [\"printenv\", \"SHOWN\"]
env = { SHOWN = \"${ODD}\" }
[tools.say]
run = [\"printf\", \"%s\", \"{what}\"]
[servers.counter]
alias = \"c\"
";
    home.write("key", &format!("{SECRET}\n"));
    home.write("odd", ODD);
    // A port that is taken is trouble for the metrics, and for nothing else.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let own = own.replace("METRICS", &taken.local_addr().unwrap().to_string());
    std::mem::forget(taken);
    [home.write("mcp.json", &servers.to_string()), home.write("gateway.toml", &own)]
}

fn start() -> Running {
    let home = Folder::new();
    let files = files(&home);
    start_with(home, |command| command.arg("gateway").args(&files))
}

fn start_with(home: Folder, words: impl Fn(&mut Command) -> &mut Command) -> Running {
    // The path of a socket is short.
    let socket = PathBuf::from(format!("/tmp/bowline-gw-{}-{:p}.sock", std::process::id(), &home));
    let mut command = program(&home);
    words(&mut command).arg("--socket").arg(&socket);
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

#[test]
fn a_gateway_from_its_start_to_its_end() {
    let mut running = start();
    // Everything is there, although one server is dead.
    let said = running.call(&running.url, &["tools__say", "what=$(id)"]);
    assert_eq!(said.out.trim(), "$(id)", "{}", said.err);
    let said = running.call(&running.url, &["tools__show"]);
    assert_eq!(said.out.trim(), ODD, "{}", said.err);
    // The gateway serves before slow servers have answered.
    until(|| running.status()["servers"][0]["state"] == "up");
    until(|| running.status()["servers"][1]["state"] == "down");
    until(|| running.call(&running.url, &["c__increment"]).code == Some(0));
    let said = running.call(&running.url, &["c__echo", "saying=x"]);
    assert!(said.err.contains("there is no tool"), "{} {}", said.out, said.err);
    let status = running.status();
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
        told.err.contains("line 16") && told.err.contains("did you mean alias"),
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

#[test]
fn the_example_of_a_gateway_does_what_it_says() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gateway.toml");
    let home = Folder::new();
    let checked = said_of(&home, &["gateway", "check", example]);
    assert_eq!((checked.code, checked.err.as_str()), (Some(0), ""), "{}", checked.out);
    let programs = PathBuf::from(PROGRAM).parent().unwrap().display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let running = start_with(home, |command| {
        command.env("PATH", &path).args(["gateway", example, "--listen", "127.0.0.1:0"])
    });
    for (words, out) in [
        (&["counter__increment"][..], "1\n"),
        (&["counter__decrement", "--accept"], "0\n"),
        (&["math__calculator_arithmetic", "expression=20 + 22"], "42"),
        (&["tools__disk", "path=/"], "Filesystem"),
    ] {
        let said = running.call(&running.url, words);
        assert!(said.code == Some(0) && said.out.contains(out), "{words:?}: {said:?}");
    }
    let said = running.call(&running.url, &["counter__decrement"]);
    assert!(said.out.contains("only when the user agrees"), "{said:?}");
    let said = running.call(&running.url, &["math__weather_current", "location=x"]);
    assert!(said.err.contains("there is no tool"), "{said:?}");
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

#[cfg(unix)]
#[test]
fn f_servers_inherit_what_they_need_and_what_the_file_says() {
    let home = Folder::new();
    let run =
        |name: &str| format!("env > {name}; touch {name}.done; exec '{PROGRAM}' serve counter");
    let own = format!(
        "
[servers.plain]
command = \"sh\"
args = [\"-c\", {:?}]
[servers.told]
command = \"sh\"
args = [\"-c\", {:?}]
inherit = [\"GATEWAY_*\"]
",
        run(home.path().join("plain").to_str().unwrap()),
        run(home.path().join("told").to_str().unwrap()),
    );
    let file = home.write("gateway.toml", &own);
    let mut command = program(&home);
    command.env("GATEWAY_TOKEN", SECRET).arg("gateway").arg(file);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let seen = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap_or_default();
    until(|| ["plain.done", "told.done"].iter().all(|it| home.path().join(it).exists()));
    // It ends with its input.
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(seen("plain").contains("PATH=") && !seen("plain").contains(SECRET));
    assert!(seen("told").contains(SECRET));
}

#[cfg(unix)]
#[test]
fn what_servers_write_loses_secrets_and_not_the_names_of_levels() {
    let home = Folder::new();
    let own = "
[servers.one]
command = \"sh\"
args = [\"-c\", \"echo \\\"error: $DB_PASS is wrong\\\" >&2; exit 3\"]
env = { LOG_LEVEL = \"error\", DB_PASS = \"hunter\" }
";
    let file = home.write("g.toml", own);
    let mut command = program(&home);
    let mut child = command.arg("gateway").arg(file).stdin(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    wait_for(&mut told, "one: error: [redacted] is wrong");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn mistakes_in_names_are_found_before_anything_starts() {
    let home = Folder::new();
    let check = |json: &Value, own: &str| {
        let files = [home.write("mcp.json", &json.to_string()), home.write("gateway.toml", own)];
        let files = files.map(|it| it.to_str().unwrap().to_owned());
        said_of(&home, &["gateway", "check", &files[0], &files[1]])
    };
    let server = || json!({ "command": "x" });
    let two = json!({ "mcpServers": { "a b": server(), "a-b": server() } });
    let told = check(&two, "");
    assert!(told.err.contains("are both called \"a-b\" here"), "{}", told.err);
    let two = json!({ "mcpServers": { "one": server(), "two": server() } });
    let told = check(&two, "[servers.one]\nalias = \"two\"\n");
    assert!(told.err.contains("are both called \"two\""), "{}", told.err);
    let tools = json!({ "mcpServers": { "tools": server() } });
    let told = check(&tools, "[servers.tools]\nalias = \"t\"\n");
    assert!(told.err.contains("a server cannot be called \"tools\""), "{}", told.err);
    let told = check(&two, "[servers.one]\nalias = \"a__b\"\n");
    assert!(told.err.contains("without __"), "{}", told.err);
    let off = json!({ "mcpServers": { "one": { "command": "x", "disabled": true } } });
    let told = check(&off, "[servers.one]\ndisabled = false\n");
    assert!(told.out.contains("one__*"), "{} {}", told.out, told.err);
}

#[test]
fn check_shows_who_rules_are_about_and_what_can_match_nothing() {
    let home = Folder::new();
    let own = home.write(
        "g.toml",
        "
[servers.github]
url = \"https://github.example/mcp\"
headers = { X-Key = \"sekrit-4711\" }
limits = { calls = \"60/min\", running = 8, timeout = \"60s\" }
[[access]]
name = \"ops\"
who = { group = [\"ops\", \"admins\"], client = \"robot\" }
allow = [\"github/*\", \"*/get\"]
confirm = [\"githb/merge\", \"hub\"]
",
    );
    let checked = said_of(&home, &["gateway", "check", own.to_str().unwrap()]);
    for part in [
        "headers: X-Key\n",
        "limits: 60/min, 8 at a time, 60s each",
        "rule ops for group ops or admins, client robot",
        "rule ops: no server is called \"githb\" (githb/merge); did you mean github?",
        "rule ops: no server is called \"hub\" (hub)",
    ] {
        assert!(checked.out.contains(part), "{part}: {} {}", checked.out, checked.err);
    }
    assert!(!checked.out.contains("4711") && !checked.out.contains("(*/get)"), "{}", checked.out);
}

#[test]
fn what_a_later_file_does_not_say_about_a_server_stays() {
    let home = Folder::new();
    let first = home.write(
        "first.toml",
        "
[servers.far]
url = \"http://far.example/mcp\"
headers = { X-Key = \"k\" }
alias = \"f\"
insecure_http = true
limits = { calls = \"60/min\", running = 8 }
tools = { allow = [\"get_*\"], rename = { get_a = \"a\" } }
",
    );
    let second = home.write(
        "second.toml",
        "
[servers.far]
limits = { running = 2, timeout = \"9s\" }
tools = { deny = [\"get_b\"], rename = { get_c = \"c\" } }
",
    );
    let [first, second] = [first, second].map(|it| it.to_str().unwrap().to_owned());
    let checked = said_of(&home, &["gateway", "check", &first, &second]);
    assert_eq!(checked.code, Some(0), "{}", checked.err);
    for part in [
        "names: f__*",
        "limits: 60/min, 2 at a time, 9s each",
        "allow: get_*\n",
        "deny: get_b\n",
        "rename: get_a to a, get_c to c\n",
    ] {
        assert!(checked.out.contains(part), "{part}: {}", checked.out);
    }
    let third = home.write("third.toml", "[servers.far]\ninsecure_http = false\n");
    let third = third.to_str().unwrap();
    let checked = said_of(&home, &["gateway", "check", &first, &second, third]);
    assert!(checked.err.contains("unencrypted"), "{} {}", checked.out, checked.err);
}

#[test]
fn mistakes_in_commands_tokens_and_secrets_are_found_before_anything_starts() {
    let home = Folder::new();
    home.write("long", &"x".repeat(2 << 20));
    let check = |own: &str| {
        let told =
            said_of(&home, &["gateway", "check", home.write("g.toml", own).to_str().unwrap()]);
        (told.code == Some(0), told.err)
    };
    for (own, expected) in [
        ("[tools.a]\nrun = [\"a\", \"{b}\"]\narguments = { b = { pattern = \"(\" } }", "tools.a:"),
        ("[tools.a]\nrun = [\"a\"]\nlimits = { calls = \"often\" }", "is not a rate"),
        ("[tools.a]\nrun = [\"a\"]\nlimits = { calls = \"5/s\", running = 2 }", ""),
        ("[gateway]\nhosts = [\"a b\"]\n[tools.a]\nrun = [\"a\"]", "hosts: a b"),
        ("[secrets]\nA = { file = \"long\" }\n[tools.a]\nrun = [\"a\"]", "longer than 1 MiB"),
        ("[servers.a]\nurl = \"http://a.example/mcp\"\nheaders = { X-Key = \"k\" }", "unencrypted"),
        (
            "[servers.a]\nurl = \"http://a.example/mcp\"\nheaders = { X-Key = \"k\" }\n\
             insecure_http = true",
            "",
        ),
        ("[servers.a]\nurl = \"http://bob:pass@a.example/mcp\"", "unencrypted"),
        ("[servers.a]\nurl = \"https://bob:pass@a.example/mcp\"", ""),
        ("[servers.a]\nurl = \"http://a.example/mcp\"", ""),
    ] {
        let (is_good, told) = check(own);
        assert_eq!(is_good, expected.is_empty(), "{own}: {told}");
        assert!(told.contains(expected) && !told.contains("pass"), "{own}: {told}");
    }
}

#[test]
fn a_client_calls_through_a_gateway_on_stdio() {
    let home = Folder::new();
    let own = home.write("g.toml", "[tools.say]\nrun = [\"printf\", \"%s\", \"{what}\"]\n");
    let own = own.to_str().unwrap();
    let told = said_of(&home, &["call", "tools__say", "what=$(id)", "--", PROGRAM, "gateway", own]);
    assert_eq!((told.out.trim(), told.code), ("$(id)", Some(0)), "{}", told.err);
}

#[cfg(unix)]
#[test]
fn servers_may_clean_up_however_the_gateway_ends() {
    for (is_http, how) in [(false, "eof"), (false, "TERM"), (true, "TERM"), (true, "drain")] {
        let home = Folder::new();
        let ended = home.path().join("ended");
        let script = format!(
            "trap 'echo told > {0}; exit 0' TERM; {PROGRAM} serve counter; echo closed > {0}",
            ended.display()
        );
        let own = format!("[servers.one]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n");
        let file = home.write("g.toml", &own);
        let mut child = if is_http {
            let mut running = start_with(home, |command| {
                command.arg("gateway").arg(&file).args(["--listen", "127.0.0.1:0"])
            });
            until(|| running.status()["servers"][0]["state"] == "up");
            if how == "drain" {
                assert_eq!(running.ask(&["drain"]).code, Some(0));
            } else {
                signal(&running.child, how);
            }
            assert!(running.child.wait().unwrap().success(), "{how}");
            assert!(ended.exists(), "{how}");
            continue;
        } else {
            let mut command = program(&home);
            let command = command.arg("gateway").arg(&file).stdin(Stdio::piped());
            command.stderr(Stdio::piped()).spawn().unwrap()
        };
        let mut told = BufReader::new(child.stderr.take().unwrap());
        wait_for(&mut told, "one: is up");
        let input = child.stdin.take();
        if how == "eof" {
            drop(input);
        } else {
            signal(&child, how);
        }
        assert!(child.wait().unwrap().success(), "{how}");
        assert!(ended.exists(), "{how}");
    }
}

#[test]
fn f_names_of_hosts_and_tokens_close_what_loopback_opens() {
    for (settings, is_open) in [
        ("", true),
        ("hosts = [\"localhost\"]", true),
        ("hosts = [\"localhost:8080\", \"127.0.0.2\", \"[::1]:9\", \"mcp.localhost\"]", true),
        ("hosts = [\"mcp.example.com\"]", false),
        ("auth = { issuer = \"https://a.example\", resource = \"https://b.example/mcp\" }", false),
    ] {
        let home = Folder::new();
        let own = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n{settings}\n[tools.say]\nrun = [\"true\"]\n"
        );
        let file = home.write("gateway.toml", &own);
        let mut command = program(&home);
        let mut child = command.arg("gateway").arg(file).stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut lines = String::new();
        while !lines.contains("the gateway is at") {
            assert!(std::io::BufRead::read_line(&mut told, &mut lines).unwrap() > 0, "{lines}");
        }
        assert_eq!(!lines.contains("callers may use nothing"), is_open, "{settings}: {lines}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
