//! A tap between a client and a server on stdio: nothing changes, whatever happens to the tap.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::fixture::{Folder, PROGRAM, program, said, signal, wait_for};

/// `bowline tap` with these words, and pipes.
fn tap(home: &Folder, words: &[&str]) -> Command {
    let mut command = program(home);
    command.arg("tap").args(words).stdin(Stdio::piped());
    command
}

/// Lines of every kind: valid, broken, long, not text, not even lines. The same every time.
fn hostile(length: usize) -> Vec<u8> {
    let mut random = 7u32;
    let mut next = move || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random >> 8
    };
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let number = next();
        match number % 9 {
            0 => bytes
                .extend(format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"ping"}}"#).bytes()),
            1 => bytes.extend(
                format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{"a":1.50}}}}"#).bytes(),
            ),
            2 => bytes.extend(br#"{"jsonrpc":"2.0","method":"#),
            3 => bytes.extend(b"\r"),
            4 => bytes.extend((0..number % 300).map(|at| at.to_le_bytes()[0])),
            5 => bytes.extend(b"\xff\xfe\x00\x1b[31m"),
            6 => bytes.extend("日本語 \u{202e}".bytes()),
            7 if number % 50 == 7 => bytes.extend(vec![b'x'; 1 << 21]),
            _ => {}
        }
        bytes.push(b'\n');
    }
    bytes.extend(b"no end of line");
    bytes
}

/// Sends bytes and returns what comes back until the end.
fn exchanged(child: &mut Child, bytes: &[u8]) -> Vec<u8> {
    let mut input = child.stdin.take().unwrap();
    let sent = bytes.to_vec();
    let writer = thread::spawn(move || input.write_all(&sent));
    let mut received = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut received).unwrap();
    // A tap that was killed has closed the pipe.
    let _ = writer.join().unwrap();
    received
}

/// The socket of the only tap, once it is there.
fn socket(home: &Folder) -> PathBuf {
    let folder = home.path().join("r/taps");
    until(|| {
        let found = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        found.map(|it| it.path()).find(|it| it.extension().is_some_and(|it| it == "sock"))
    })
}

/// Waits for something; a guard against hanging, nothing else depends on time.
#[allow(clippy::disallowed_methods, reason = "there is no runtime here")]
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "it never happens");
        thread::sleep(Duration::from_millis(10));
    }
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn not_one_byte_changes() {
    let home = Folder::new();
    let file = home.path().join("s.jsonl");
    let words = ["--record", "s.jsonl", "--", "cat"];
    let mut child = tap(&home, &words).spawn().unwrap();
    // A viewer that never reads.
    let stalled = UnixStream::connect(socket(&home)).unwrap();
    let sent = hostile(16 << 20);
    let received = exchanged(&mut child, &sent);
    assert!(received == sent, "{} of {} bytes, or other ones", received.len(), sent.len());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(stalled);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let lines = lines(&file);
    assert_eq!(lines[0]["kind"], "session");
    assert_eq!(lines.last().unwrap()["kind"], "end");
}

#[test]
fn the_end_of_the_server_is_the_end_of_the_tap() {
    let home = Folder::new();
    for (script, code, err) in [
        ("echo oops >&2; exit 7", Some(7), "oops\n"),
        ("kill -9 $$", Some(137), ""),
        ("kill -TERM $$", Some(143), ""),
        ("cat > /dev/null; exit 3", Some(3), ""),
        ("exec 1>&-; exit 4", Some(4), ""),
    ] {
        let said = said(tap(&home, &["--", "sh", "-c", script]).stdin(Stdio::null()));
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (code, "", err), "{script}");
    }
    let none = said(tap(&home, &["--", "there-is-no-such-program"]).stdin(Stdio::null()));
    assert_eq!(none.code, Some(127));
    assert!(none.err.contains("cannot start there-is-no-such-program"), "{}", none.err);
    let leftovers = std::fs::read_dir(home.path().join("r/taps")).unwrap().count();
    assert_eq!(leftovers, 0);
}

#[test]
fn signals_reach_the_server() {
    let home = Folder::new();
    for (name, code) in [("TERM", 5), ("INT", 6), ("HUP", 7)] {
        let script = "trap 'exit 5' TERM; trap 'exit 6' INT; trap 'exit 7' HUP; echo ready; \
                      while :; do sleep 0.02; done";
        let mut child = tap(&home, &["--", "sh", "-c", script]).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut String::new()).unwrap();
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{name}");
    }
}

#[test]
fn closed_ends_are_closed_for_the_other_side() {
    let home = Folder::new();
    // The server closes its input: the client cannot write any more.
    let script = "exec 0<&-; echo closed; while :; do sleep 0.02; done";
    let mut child = tap(&home, &["--", "sh", "-c", script]).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    while input.write_all(b"x\n").is_ok() {}
    signal(&child, "KILL");
    child.wait().unwrap();
    // The client closes its end: the server cannot write any more.
    let mut child = tap(&home, &["--", "sh", "-c", "while echo x; do :; done"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_ne!(child.wait().unwrap().code(), Some(0));
    // The server closes its output and lives on: the client sees the end of it.
    let script = "exec 1>&-; cat >&2; exit 9";
    let mut child = tap(&home, &["--", "sh", "-c", script]).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let reading = thread::spawn(move || output.read_to_end(&mut Vec::new()).unwrap());
    until(|| reading.is_finished().then_some(()));
    assert_eq!(reading.join().unwrap(), 0);
    child.stdin.take().unwrap().write_all(b"still here\n").unwrap();
    let told = child.wait_with_output().unwrap();
    assert_eq!((told.status.code(), told.stderr.as_slice()), (Some(9), &b"still here\n"[..]));
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_tap_takes_the_server_with_it_and_doubles_nothing() {
    let home = Folder::new();
    let script = "trap '' TERM INT HUP; echo $$; exec cat";
    let mut child = tap(&home, &["--", "sh", "-c", script]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut pid = String::new();
    out.read_line(&mut pid).unwrap();
    let mut input = child.stdin.take().unwrap();
    let sent = hostile(4 << 20);
    let all = sent.clone();
    let writer = thread::spawn(move || input.write_all(&all));
    let mut received = vec![0; 1 << 20];
    out.read_exact(&mut received).unwrap();
    signal(&child, "KILL");
    out.read_to_end(&mut received).unwrap();
    assert!(sent.starts_with(&received), "{} bytes", received.len());
    assert!(writer.join().unwrap().is_err());
    child.wait().unwrap();
    let process = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
    let is_running = || {
        let stat = std::fs::read_to_string(&process).unwrap_or_default();
        // A process that nobody has waited for yet is dead as well.
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| !rest.trim_start().starts_with('Z') && !rest.is_empty())
    };
    until(|| (!is_running()).then_some(()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_the_recording_and_not_the_session() {
    let home = Folder::new();
    let sent = hostile(1 << 20);
    // Full from the beginning.
    let words = ["--record", "/dev/full", "--", "cat"];
    let mut child = tap(&home, &words).spawn().unwrap();
    assert!(exchanged(&mut child, &sent) == sent);
    let told = child.wait_with_output().unwrap();
    assert_eq!(told.status.code(), Some(0));
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(told.contains("the recording stops here, the session goes on"), "{told}");
    // Full after a while.
    let script = format!("trap '' XFSZ; ulimit -f 64; exec {PROGRAM} tap --record s.jsonl -- cat");
    let mut command = program(&home);
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(home.path()).stdin(Stdio::piped());
    shell.stdout(Stdio::piped()).stderr(Stdio::piped()).env_clear();
    shell.envs(
        command.stdin(Stdio::piped()).get_envs().filter_map(|(name, value)| Some((name, value?))),
    );
    shell.env("PATH", std::env::var_os("PATH").unwrap());
    let mut child = shell.spawn().unwrap();
    assert!(exchanged(&mut child, &sent) == sent);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(home.path().join("s.jsonl").metadata().unwrap().len() <= 64 * 1024);
    // A place that does not exist.
    let words = ["--record", "none/s.jsonl", "--", "cat"];
    let mut child = tap(&home, &words).spawn().unwrap();
    assert!(exchanged(&mut child, &sent) == sent);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn sessions_are_recorded_without_secrets() {
    let home = Folder::new();
    std::fs::create_dir(home.path().join("sessions")).unwrap();
    let words =
        ["--name", "a/b", "--record", "sessions", "--", "sh", "-c", "cat; echo $MY_TOKEN >&2"];
    let words: Vec<&str> = words.into_iter().chain(["--api-key=abcd1234"]).collect();
    let mut command = tap(&home, &words);
    let mut child = command.env("MY_TOKEN", "s3cr3t-value").spawn().unwrap();
    let asked =
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"s3cr3t-value","password":"p"}}"#;
    let answered = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let sent = format!("{asked}\n{answered}\nnot JSON abcd1234\n");
    assert_eq!(exchanged(&mut child, sent.as_bytes()), sent.as_bytes());
    child.wait().unwrap();
    let files: Vec<_> = std::fs::read_dir(home.path().join("sessions")).unwrap().collect();
    let file = files.into_iter().next().unwrap().unwrap().path();
    assert!(file.file_name().unwrap().to_str().unwrap().starts_with("a-b-2"), "{}", file.display());
    let text = std::fs::read_to_string(&file).unwrap();
    for secret in ["s3cr3t", "abcd1234", r#""password":"p""#] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let lines = lines(&file);
    assert_eq!(lines[0]["session"]["tap"]["name"], "a/b");
    let messages: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "message").collect();
    // Three each way: `cat` says what it hears.
    assert_eq!(messages.len(), 6, "{text}");
    assert!(lines.iter().any(|line| line["kind"] == "stderr" && line["text"] == "[redacted]"));
    let shown = said(program(&home).arg("show").arg(&file));
    assert_eq!(shown.code, Some(0));
    assert!(shown.out.contains("4 messages"), "{}", shown.out);
}

#[test]
fn recordings_are_rotated() {
    let home = Folder::new();
    let words = ["--record", "s.jsonl", "--record-size", "4k", "--record-files", "2", "--", "cat"];
    let mut child = tap(&home, &words).spawn().unwrap();
    let sent: String = (0..200)
        .map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\"}}\n"))
        .collect();
    exchanged(&mut child, sent.as_bytes());
    child.wait().unwrap();
    for name in ["s.jsonl", "s.jsonl.1", "s.jsonl.2"] {
        let file = home.path().join(name);
        assert!(file.metadata().unwrap().len() <= 4096, "{name}");
        assert_eq!(lines(&file)[0]["kind"], "session", "{name}");
    }
    assert!(!home.path().join("s.jsonl.3").exists());
}

#[test]
fn faults_are_injected_on_purpose() {
    let home = Folder::new();
    let sent: String = (0..100).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    let through = |faults: &str| {
        let words = ["--fault", faults, "--seed", "3", "--record", "s.jsonl", "--", "cat"];
        let mut child = tap(&home, &words).spawn().unwrap();
        let received = exchanged(&mut child, sent.as_bytes());
        (String::from_utf8(received).unwrap(), child.wait().unwrap().code())
    };
    let (some, code) = through("drop=0.5");
    assert_eq!(code, Some(0));
    assert!((20..80).contains(&some.lines().count()), "{some}");
    assert_eq!(through("drop=0.5").0, some);
    let faults = lines(&home.path().join("s.jsonl"));
    let faults = faults.iter().filter(|line| line["kind"] == "fault").count();
    assert_eq!(faults, 100 - some.lines().count());
    assert_eq!(through("delay=1ms").0, sent);
    // The server would go on: its input stays open.
    let mut child = tap(&home, &["--fault", "cut-after=3", "--", "cat"]).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(sent.as_bytes()).unwrap();
    let mut received = String::new();
    child.stdout.take().unwrap().read_to_string(&mut received).unwrap();
    assert_eq!(received, "{\"id\":0}\n{\"id\":1}\n{\"id\":2}\n");
    assert_eq!(child.wait().unwrap().code(), Some(137));
    drop(input);
    let wrong = said(tap(&home, &["--fault", "dance", "--", "cat"]).stdin(Stdio::null()));
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.err.contains("expected delay=200ms"), "{}", wrong.err);
}

/// What a server has written arrives after its end, however long that takes.
#[test]
fn the_last_words_of_a_server_are_not_lost() {
    let home = Folder::new();
    // More than the client's pipe holds, so that the tap has to wait for the client.
    let words = ["--", "sh", "-c", "head -c 150000 /dev/zero; exit 3"];
    let mut slow = tap(&home, &words).spawn().unwrap();
    let words = ["--fault", "delay=3s", "--", "sh", "-c", "echo one; echo two; exit 4"];
    let late = said(tap(&home, &words).stdin(Stdio::null()));
    assert_eq!((late.code, late.out.as_str()), (Some(4), "one\ntwo\n"));
    let mut received = Vec::new();
    slow.stdout.take().unwrap().read_to_end(&mut received).unwrap();
    assert_eq!((received.len(), slow.wait().unwrap().code()), (150_000, Some(3)));
}

/// A client may end a server that has ended already, and read what it has written only then.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_for_a_server_that_is_gone_drops_nothing() {
    let home = Folder::new();
    // More than the client's pipe holds, and less than that and the server's do.
    let script = "echo $$ >&2; head -c 100000 /dev/zero; exit 3";
    let mut child = tap(&home, &["--", "sh", "-c", script]).spawn().unwrap();
    let mut pid = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut pid).unwrap();
    let process = PathBuf::from(format!("/proc/{}", pid.trim()));
    until(|| (!process.exists()).then_some(()));
    signal(&child, "TERM");
    let mut received = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut received).unwrap();
    assert_eq!((received.len(), child.wait().unwrap().code()), (100_000, Some(3)));
}

/// What a bridge breaks on purpose is in the view, as with a tap.
#[test]
fn the_faults_of_a_bridge_are_seen() {
    let home = Folder::new();
    let mut command = program(&home);
    let words = ["bridge", "--fault", "cut-after=1", "--", PROGRAM, "serve", "counter"];
    let mut bridge = command.args(words).stdin(Stdio::piped()).spawn().unwrap();
    let socket = socket(&home);
    let mut viewer = BufReader::new(UnixStream::connect(&socket).unwrap());
    wait_for(&mut viewer, r#""kind":"session""#);
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    let mut input = bridge.stdin.take().unwrap();
    input.write_all(format!("{initialize}\n{ping}\n").as_bytes()).unwrap();
    wait_for(&mut viewer, "serverInfo");
    wait_for(&mut viewer, r#""id":2,"result":{}"#);
    let told = wait_for(&mut viewer, r#""kind":"fault""#);
    assert!(told.contains("broke the connection before the message above"), "{told}");
    let mut received = String::new();
    bridge.stdout.take().unwrap().read_to_string(&mut received).unwrap();
    assert_eq!(received.lines().count(), 1, "{received}");
    drop(input);
    bridge.wait().unwrap();
}

#[test]
fn a_bridge_is_seen_like_a_tap() {
    let home = Folder::new();
    let mut command = program(&home);
    command.args(["bridge", "--", PROGRAM, "serve", "counter"]).stdin(Stdio::piped());
    let mut bridge = command.spawn().unwrap();
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
    let mut input = bridge.stdin.take().unwrap();
    input.write_all(format!("{initialize}\n").as_bytes()).unwrap();
    let mut output = BufReader::new(bridge.stdout.take().unwrap());
    wait_for(&mut output, "serverInfo");
    let socket = socket(&home);
    let mut viewer = BufReader::new(UnixStream::connect(&socket).unwrap());
    let opening = wait_for(&mut viewer, r#""kind":"session""#);
    assert!(opening.contains("(bridge)"), "{opening}");
    wait_for(&mut viewer, r#""method":"initialize""#);
    let answer = wait_for(&mut viewer, "serverInfo");
    assert!(answer.contains(r#""took":"#), "{answer}");
    drop(input);
    wait_for(&mut viewer, r#""kind":"end""#);
    assert!(bridge.wait().unwrap().success());
    assert!(!socket.exists());
}
