//! How the program behaves when it is interrupted, cut off or recorded.

use std::io::{BufReader, Read};
use std::process::{Command, Stdio};

use bowline::http::Tls;
use bowline_serve::testing::{Asked, HttpReply, Service};
use serde_json::{Value, json};

#[cfg(target_os = "linux")]
use crate::check::wait_until;
use crate::fixture::{Folder, PROGRAM, program, said, serve, url};
#[cfg(unix)]
use crate::fixture::{signal, wait_for};

/// A server of a few lines of shell: answers a legacy handshake, then runs `rest`.
fn shell_server(rest: &str) -> Vec<String> {
    let answer = r#"{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"1"}}}"#;
    let tools = r#"{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}"#;
    let script = format!(
        r#"while read -r line; do
            id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
            case "$line" in
                *'"initialize"'*) echo '{answer}' ;;
                *'"tools/list"'*) echo '{tools}' ;;
                *'"tools/call"'*) {rest} ;;
            esac
        done"#
    );
    ["--revision", "legacy", "--", "sh", "-c", &script].map(str::to_owned).into()
}

#[test]
fn the_inspector_does_not_record_over_its_recordings() {
    let home = Folder::new();
    let file = home.write("kept.jsonl", "kept");
    let mut command = program(&home);
    let told = said(command.args(["inspect", "--no-browser", "--record"]).arg(&file));
    assert_eq!(told.code, Some(1), "{}", told.err);
    assert!(told.err.contains("bowline inspect does not take --record"), "{}", told.err);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "kept");
}

#[test]
#[cfg(unix)]
fn an_interrupt_ends_the_call_and_the_server() {
    let home = Folder::new();
    for (name, code) in [("HUP", 129), ("INT", 130), ("TERM", 143)] {
        let mark = home.path().join(name);
        let rest =
            format!("echo working >&2; trap 'touch {}' EXIT; read -r more; exit", mark.display());
        let mut child =
            program(&home).args(["call", "t"]).args(shell_server(&rest)).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        wait_for(&mut errors, "working");
        signal(&child, name);
        let mut rest = String::new();
        errors.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{name}: {rest}");
        assert!(rest.contains("bowline: interrupted"), "{rest}");
        assert!(mark.exists(), "the server did not end in good order");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupt_while_connecting_leaves_nothing_behind() {
    let home = Folder::new();
    let script = "sleep 300 & echo started $! >&2; wait";
    let mut child = program(&home).args(["info", "--", "sh", "-c", script]).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let line = wait_for(&mut errors, "started");
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let id = line.split_whitespace().last().unwrap();
    // Killed already, but it may not have run since; a dead process may wait to be reaped.
    wait_until(|| {
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    });
}

#[test]
fn any_certificate_is_accepted_only_on_demand() {
    let home = Folder::new();
    let key = rcgen::KeyPair::generate().unwrap();
    let chain = rcgen::CertificateParams::new(["other.example".to_owned()]).unwrap();
    let chain = chain.self_signed(&key).unwrap().pem();
    let tls = Tls::from_pem(chain.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    let server = bowline::Server::new("secret", "1.0.0");
    let url = format!("https://{}/mcp", serve(server.http().tls(tls)));

    let rejected = said(program(&home).args(["info", &url]));
    assert_eq!(rejected.code, Some(4), "{}", rejected.err);
    assert!(rejected.err.contains("certificate"), "{}", rejected.err);
    let accepted = said(program(&home).args(["info", "--insecure", &url]));
    assert_eq!(accepted.code, Some(0), "{}", accepted.err);
    assert!(accepted.out.contains("secret"), "{}", accepted.out);
    assert!(accepted.err.contains("certificates are not checked"), "{}", accepted.err);
}

#[test]
fn malformed_items_are_left_out_with_a_warning() {
    let home = Folder::new();
    let script = shell_server("true").pop().unwrap();
    let broken = script.replace(r#""tools":["#, r#""tools":[{"name":7},"#);
    let server = ["--revision", "legacy", "--", "sh", "-c", &broken];
    let told = said(program(&home).args(["tools"]).args(server));
    assert_eq!((told.code, told.out.as_str()), (Some(0), "TOOL\nt\n"), "{}", told.err);
    assert!(told.err.contains("warning: tools[0] is left out"), "{}", told.err);
}

#[test]
#[cfg(unix)]
fn an_interrupt_ends_listening_successfully() {
    let home = Folder::new();
    for command in ["watch", "listen"] {
        for signal_name in ["INT", "TERM"] {
            let mut child = program(&home).args([command, &url("works")]).spawn().unwrap();
            let mut errors = BufReader::new(child.stderr.take().unwrap());
            wait_for(&mut errors, "listening");
            signal(&child, signal_name);
            assert_eq!(child.wait().unwrap().code(), Some(0), "{command} {signal_name}");
        }
    }
}

#[test]
fn changes_are_reported_as_they_happen() {
    let home = Folder::new();
    for revision in ["modern", "legacy"] {
        let url = url("changes");
        let watched = ["--revision", revision, "-n", "3", "-o", "json"];
        let mut watch = program(&home);
        let mut watch = watch.args(["watch", &url, "--verbose"]).args(watched).spawn().unwrap();
        let mut errors = BufReader::new(watch.stderr.take().unwrap());
        // The last list that is read before it listens.
        wait_for(&mut errors, "\"resources/list\"");
        wait_for(&mut errors, "\"resources\":[");
        let drain = std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        assert_eq!(said(program(&home).args(["call", &url, "add"])).code, Some(0));
        let mut out = String::new();
        watch.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert_eq!(watch.wait().unwrap().code(), Some(0));
        drain.join().unwrap().unwrap();
        let lines: Vec<Value> = out.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        for (kind, name) in
            [("tools", "added"), ("prompts", "added"), ("resources", "test://added")]
        {
            let line = lines.iter().find(|line| line["changed"] == kind).unwrap();
            assert_eq!(line["came"], json!([name]), "{out}");
        }
        assert_eq!(said(program(&home).args(["call", &url, "remove"])).code, Some(0));
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let home = Folder::new();
    let rest = r#"i=0; printf '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"';
        head -c 3000000 /dev/zero | tr '\0' x; echo '"}]}}'"#;
    let mut child = program(&home).args(["call", "t"]).args(shell_server(rest)).spawn().unwrap();
    let mut first = [0; 10];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"xxxxxxxxxx");
    drop(out);
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!((child.wait().unwrap().code(), errors.as_str()), (Some(0), ""));
}

#[test]
fn a_huge_result_arrives_whole() {
    let home = Folder::new();
    let rest = r#"printf '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"';
        head -c 3000000 /dev/zero | tr '\0' x; echo '"}]}}'"#;
    let told = said(program(&home).args(["call", "t", "-o", "json"]).args(shell_server(rest)));
    assert_eq!(told.code, Some(0), "{}", told.err);
    let result: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(result["content"][0]["text"].as_str().unwrap().len(), 3_000_000);
    assert_eq!(told.out.lines().count(), 1);
}

#[test]
fn a_full_disk_is_reported() {
    let home = Folder::new();
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let mut command = program(&home);
    let told = said(command.args(["tools", &url("tools")]).stdout(full));
    assert_eq!(told.code, Some(1));
    assert!(told.err.contains("cannot write to standard output"), "{}", told.err);
}

#[test]
fn a_crash_of_the_server_is_reported_with_its_last_words() {
    let home = Folder::new();
    let rest = "echo 'out of memory' >&2; exit 9";
    let told = said(program(&home).args(["call", "t"]).args(shell_server(rest)));
    assert_eq!((told.code, told.out.as_str()), (Some(4), ""));
    for part in ["the connection ended", "exit status: 9", "out of memory"] {
        assert!(told.err.contains(part), "{}", told.err);
    }
}

#[test]
fn servers_cannot_control_the_terminal() {
    let home = Folder::new();
    let rest = r#"printf '\033[2Jnoise\n' >&2; printf '\033]0;title\007\n';
        echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"a\u001b[31mb\u009b"}]}}'"#;
    for format in ["human", "json"] {
        let told =
            said(program(&home).args(["call", "t", "-v", "-o", format]).args(shell_server(rest)));
        assert_eq!(told.code, Some(0), "{}", told.err);
        let is_bad = |letter: char| letter.is_control() && letter != '\n';
        assert!(!told.err.contains(is_bad), "{:?}", told.err);
        assert!(told.err.contains("noise") && told.err.contains("not a message"), "{}", told.err);
        assert!(!told.out.contains(is_bad), "{:?}", told.out);
    }
}

#[test]
#[cfg(unix)]
fn arguments_need_not_be_unicode() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let home = Folder::new();
    let odd = OsStr::from_bytes(b"caf\xe9");
    let script = r#"printf %s "$1" | od -An -tx1 >&2; exit 1"#;
    let mut command = program(&home);
    let told = said(command.args(["info", "--", "sh", "-c", script, "sh"]).arg(odd));
    assert!(told.err.contains("63 61 66 e9"), "{}", told.err);
    let mut command = program(&home);
    let told = said(command.args(["call", &url("features"), "sum"]).arg(odd));
    assert_eq!(told.code, Some(1));
    assert!(told.err.contains("invalid UTF-8"), "{}", told.err);
}

#[test]
fn recordings_contain_everything_but_secrets() {
    let home = Folder::new();
    let file = home.path().join("session.ndjson");
    let recorded = |command: &mut Command| {
        let told = said(command.args(["--record"]).arg(&file));
        assert_eq!(told.code, Some(0), "{}", told.err);
        std::fs::read_to_string(&file).unwrap()
    };
    let address = url("features").replace("http://", "http://user:hunter2@") + "?api_key=k3y3";
    let text = recorded(program(&home).args([
        "call",
        &address,
        "text",
        "--token",
        "s3cr3t",
        "-H",
        "X-A: h34d",
    ]));
    for secret in ["hunter2", "k3y3", "s3cr3t", "h34d"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(lines[0]["session"]["format"], 1);
    let sent = lines.iter().find(|it| it["message"]["method"] == "tools/call").unwrap();
    assert_eq!((&sent["kind"], &sent["direction"]), (&json!("message"), &json!("sent")));
    let heads: Vec<_> = lines.iter().filter(|it| it["kind"] == "http").collect();
    let headers = heads[0]["http"]["headers"].as_array().unwrap();
    assert!(headers.contains(&json!(["authorization", "[redacted]"])), "{headers:?}");
    assert_eq!(lines.last().unwrap()["kind"], "end");

    let told = said(program(&home).args(["show"]).arg(&file));
    assert_eq!(told.code, Some(0), "{}", told.err);
    for part in ["→ POST", "← HTTP 200", "\"method\":\"tools/call\"", "1 × tools/call: median"]
    {
        assert!(told.out.contains(part), "{part}: {}", told.out);
    }
    let told =
        said(program(&home).args(["show", "--method", "tools/call", "-o", "json"]).arg(&file));
    assert_eq!(told.out.lines().count(), 2, "{}", told.out);

    let echo = ["call", "echo", "saying=t0ps3cret", "--env", "KEY=t0ps3cret"];
    let serve = ["--", PROGRAM, "serve", "counter"];
    let mut command = program(&home);
    command.args(echo).args(["--record"]).arg(&file).args(serve);
    assert_eq!(said(&mut command).out, "t0ps3cret\n");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("t0ps3cret") && text.contains("KEY"), "{text}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn commands_without_a_client_are_recorded() {
    let home = Folder::new();
    let file = home.path().join("session.ndjson");
    let only = ["--only", "jsonrpc", "--revision", "2025-11-25"];
    for (words, target) in [
        (&["doctor"][..], vec![url("features")]),
        (&["doctor"], ["--", PROGRAM, "serve", "counter"].map(str::to_owned).to_vec()),
        (&[&["check"], &only[..]].concat(), vec![url("features")]),
        (
            &[&["check"], &only[..]].concat(),
            ["--", PROGRAM, "serve", "counter"].map(str::to_owned).to_vec(),
        ),
    ] {
        let mut command = program(&home);
        let told = said(command.args(words).args(["--record"]).arg(&file).args(&target));
        assert_eq!(told.code, Some(0), "{words:?} {target:?}: {}", told.err);
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        assert_eq!(lines[0]["session"]["format"], 1);
        assert_eq!(lines.last().unwrap()["kind"], "end");
        for direction in ["sent", "received"] {
            let is_there = |it: &&Value| it["direction"] == direction && it["message"].is_object();
            assert!(lines.iter().any(|it| is_there(&it)), "{direction}: {words:?} {target:?}");
        }
    }
}

#[test]
fn an_unauthorized_user_learns_how_to_log_in() {
    let home = Folder::new();
    let service = Service::start(|_| HttpReply::error(401, "no"));
    let told = said(program(&home).args(["tools", &service.url()]));
    assert_eq!((told.code, told.out.as_str()), (Some(3), ""));
    let remedy = format!("bowline login {}", service.url());
    assert!(told.err.contains(&remedy), "{}", told.err);
    let told = said(program(&home).args(["tools", "-o", "json", &service.url()]));
    let error: Value = serde_json::from_str(&told.err).unwrap();
    assert_eq!(error["error"]["kind"], "unauthorized");
}

#[test]
fn a_server_without_a_login_is_reported() {
    let home = Folder::new();
    let told = said(program(&home).args(["login", "--no-browser", &url("features")]));
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.out.ends_with("does not require a login\n"), "{}", told.out);
    let told = said(program(&home).args(["logout", &url("features")]));
    assert_eq!(told.code, Some(0), "{}", told.err);
    let told = said(program(&home).args(["logout", "--all"]));
    assert_eq!(told.out, "logged out of all servers\n");
}

#[test]
fn config_files_are_read_only_for_names() {
    let home = Folder::new();
    home.write(".mcp.json", "{ broken");
    let told = said(program(&home).args(["ping", "-q", &url("features")]));
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""));
    let told = said(program(&home).args(["ping", "name"]));
    assert!(told.err.contains(".mcp.json"), "{}", told.err);
}

#[test]
fn values_come_from_files_and_from_standard_input() {
    let home = Folder::new();
    home.write("note.txt", "from a file");
    home.write("all.json", r#"{ "saying": "whole" }"#);
    let serve = ["--", PROGRAM, "serve", "counter"];
    for (words, input, expected) in [
        (&["saying=@note.txt"][..], "", "from a file\n"),
        (&["saying=-"], "from a pipe", "from a pipe\n"),
        (&["saying:=@note.json"], "", "quoted\n"),
        (&["--file", "all.json"], "", "whole\n"),
        (&["--file", "-"], r#"{"saying":"piped"}"#, "piped\n"),
    ] {
        home.write("note.json", "\"quoted\"");
        home.write("input", input);
        let mut command = program(&home);
        command.args(["call", "echo"]).args(words).args(serve);
        let input = std::fs::File::open(home.path().join("input")).unwrap();
        let told = said(command.stdin(Stdio::from(input)));
        assert_eq!((told.out.as_str(), told.code), (expected, Some(0)), "{words:?} {}", told.err);
    }
    let mut command = program(&home);
    let told = said(command.args(["call", "echo", "saying=@none"]).args(serve));
    assert_eq!(told.code, Some(1));
    assert!(told.err.contains("saying: none: No such file"), "{}", told.err);
}

#[test]
fn output_fits_the_terminal_and_has_colour_on_request() {
    let home = Folder::new();
    let told = said(program(&home).env("COLUMNS", "40").args(["tools", &url("features")]));
    assert!(told.out.lines().all(|line| line.chars().count() <= 40), "{}", told.out);
    let told = said(program(&home).args(["tools", "--color", "always", &url("features")]));
    assert!(told.out.contains("\u{1b}[1m"), "{:?}", told.out);
    let told = said(program(&home).args(["tools", &url("features")]));
    assert!(!told.out.contains('\u{1b}'), "{:?}", told.out);
}

#[test]
fn completions_and_manual_pages_are_generated() {
    let home = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let told = said(program(&home).args(["completions", shell]));
        assert_eq!(told.code, Some(0));
        assert!(told.out.contains("templates"), "{shell}");
    }
    let told = said(program(&home).args(["man"]));
    assert!(told.out.contains(".TH bowline 1"), "{}", told.out);
    assert_eq!(said(program(&home).args(["man", "--dir", "pages"])).code, Some(0));
    let pages = std::fs::read_dir(home.path().join("pages")).unwrap().count();
    assert!(pages > 15, "{pages} pages");
}

#[test]
fn waiting_has_an_end() {
    let home = Folder::new();
    let mut command = program(&home);
    let begun = command.args(["listen", "--for", "50ms", &url("works")]);
    assert_eq!(said(begun).code, Some(0));
    let mut command = program(&home);
    let told = said(command.args(["info", "--connect-timeout", "300ms", "--", "sleep", "60"]));
    assert_eq!(told.code, Some(8), "{}", told.err);
}

/// A server of the legacy era that answers everything else with a status and a body.
fn statuses(status: u16, body: &'static str) -> Service {
    Service::start(move |asked| {
        let message: Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let result = match message["method"].as_str() {
            Some("initialize") => json!({ "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} }, "serverInfo": { "name": "s", "version": "1" } }),
            Some("ping") => json!({}),
            Some("notifications/initialized") => return HttpReply::error(202, ""),
            _ => return HttpReply::error(status, body),
        };
        let reply = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        HttpReply::json(&reply).with_header("content-type", "application/json")
    })
}

#[test]
fn what_came_in_place_of_an_answer_is_shown() {
    let home = Folder::new();
    let broken = statuses(500, "Traceback: \u{1b}[31mdivision by zero");
    let told = said(program(&home).args(["raw", "--revision", "legacy", &broken.url(), "x/y"]));
    assert_eq!(told.code, Some(4), "{}", told.err);
    let shown = "HTTP 500 without a message; it says: Traceback: \\u{1b}[31mdivision by zero";
    assert!(told.err.contains(shown), "{}", told.err);
    let old = statuses(400, "unknown method");
    let told = said(program(&home).args(["info", &old.url()]));
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.out.contains("server/discover refused (HTTP 400) in "), "{}", told.out);
}

#[test]
fn a_path_without_a_server_has_one_exit_code() {
    let home = Folder::new();
    let service = Service::start(|_| HttpReply::error(404, "nothing here"));
    for command in ["info", "doctor"] {
        let told = said(program(&home).args([command, &service.url()]));
        assert_eq!(told.code, Some(4), "{command} {} {}", told.out, told.err);
    }
    let told = said(program(&home).args(["info", &service.url()]));
    assert!(told.err.contains("HTTP 404; it says: nothing here"), "{}", told.err);
}

#[test]
fn data_of_an_error_is_shown() {
    let home = Folder::new();
    let service = Service::start(|asked| {
        let message: Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let error = json!({ "code": -32602, "message": "no", "data": { "why": "\u{65e5}" } });
        let text = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string();
        // As Python writes it.
        let text = text.replace('\u{65e5}', "\\u65e5");
        HttpReply::bytes(text).with_header("content-type", "application/json")
    });
    let told = said(program(&home).args(["info", "--revision", "legacy", &service.url()]));
    assert_eq!(told.code, Some(7));
    assert!(told.err.contains("  data: {\"why\":\"\u{65e5}\"}\n"), "{}", told.err);
}

#[test]
#[cfg(unix)]
fn secrets_of_a_command_line_are_not_recorded_and_recordings_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = Folder::new();
    let file = home.write("session.jsonl", "old");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut server = shell_server("true");
    server.extend(["sh", "--token", "hunter22", "API_KEY=hunter33"].map(str::to_owned));
    let command = ["tools", "--env", "X=hunter44", "-v", "--record", "session.jsonl"];
    let told = said(program(&home).args(command).args(&server));
    assert_eq!(told.code, Some(0), "{}", told.err);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.contains("[redacted]") && kept.contains("--token"), "{kept}");
    assert!(!kept.contains("hunter") && !told.err.contains("hunter"), "{kept}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let config = json!({ "mcpServers": { "a": { "command": "npx",
        "args": ["s", "--token", "hunter22", "https://u:hunter33@a.b/?key=hunter44"] } } });
    home.write("c.json", &config.to_string());
    for format in ["human", "json"] {
        let told = said(program(&home).args(["servers", "--config", "c.json", "-o", format]));
        assert!(told.out.contains("npx s --token [redacted] https://"), "{}", told.out);
        assert!(!told.out.contains("hunter"), "{}", told.out);
    }
}

#[test]
fn answers_of_any_size_can_be_allowed() {
    let home = Folder::new();
    let url = url("features");
    let told = said(program(&home).args(["tools", "--max-size", "1k", &url]));
    assert_eq!(told.code, Some(10), "{}", told.err);
    assert!(told.err.contains("longer than 1024 bytes, a limit of this client"), "{}", told.err);
    assert!(told.err.contains("--max-size SIZE accepts more"), "{}", told.err);
    assert_eq!(said(program(&home).args(["tools", "--max-size", "32M", &url])).code, Some(0));
}

/// A list without an end, in pages of half a mebibyte with three tools each.
fn endless(asked: &Asked) -> HttpReply {
    let Ok(message) = serde_json::from_str::<Value>(&asked.body) else {
        return HttpReply::error(405, "");
    };
    let Some(id) = message.get("id") else { return HttpReply::error(202, "") };
    let tool = |name: &str| {
        json!({ "name": format!("{id}{name}"), "description": "x".repeat(512 << 10),
            "inputSchema": { "type": "object" } })
    };
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "endless", "version": "1" } }),
        _ => json!({ "tools": [tool("a"), tool("b"), tool("c")], "nextCursor": id.to_string() }),
    };
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    HttpReply::json(&answer).with_header("content-type", "application/json")
}

#[test]
fn lists_of_any_size_can_be_allowed() {
    let (home, service) = (Folder::new(), Service::start(endless));
    for (options, expected, why) in [
        (&[][..], 66, "more than 32 MiB"),
        (&["--max-size", "48M"], 96, "more than 48 MiB"),
        (&["--max-items", "4"], 6, "more than 4 items"),
    ] {
        let mut command = program(&home);
        command.args(["tools", "-o", "json", "--revision", "2025-11-25", &service.url()]);
        let told = said(command.args(options));
        assert_eq!(told.code, Some(0), "{options:?} {}", told.err);
        assert!(told.err.contains(&format!("{why}; the rest is left out")), "{}", told.err);
        let list: Value = serde_json::from_str(&told.out).unwrap();
        assert_eq!(list["tools"].as_array().unwrap().len(), expected, "{options:?}");
    }
}
