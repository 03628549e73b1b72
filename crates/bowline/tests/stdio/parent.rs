//! Sets up the child's streams, and checks what comes out of them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

/// The variable that makes this program a child.
pub(super) const ROLE: &str = "BOWLINE_TEST_ROLE";

type Case = (&'static str, fn());

pub(super) fn run() {
    let cases: [Case; 14] = [
        ("pipes", pipes),
        ("pipes_need_no_thread", pipes_need_no_thread),
        ("pipes_keep_blocking_for_others", pipes_keep_blocking_for_others),
        ("named_pipes", named_pipes),
        ("sockets", sockets),
        ("one_socket_for_all", one_socket_for_all),
        ("files", files),
        ("null", null),
        ("strays_go_to_standard_error", strays_go_to_standard_error),
        ("strays_vanish_when_errors_are_merged", strays_vanish_when_errors_are_merged),
        ("nobody_listens_to_a_pipe", nobody_listens_to_a_pipe),
        ("nobody_listens_to_a_socket", nobody_listens_to_a_socket),
        ("taken_twice", taken_twice),
        ("a_signal_ends_a_server_whose_input_has_ended", a_signal_ends_a_server),
    ];
    let filter = env::args().skip(1).find(|argument| !argument.starts_with('-'));
    for (name, case) in cases {
        if filter.as_ref().is_none_or(|filter| name.contains(filter.as_str())) {
            println!("test {name}");
            case();
        }
    }
}

fn command(role: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// One mebibyte of lines.
fn lines() -> Vec<u8> {
    (0..1 << 16).flat_map(|n| format!("{n:015}\n").into_bytes()).collect()
}

/// Sends all lines while reading the output, then closes the input.
fn exchange(input: impl Write + Send, mut output: impl Read, end: impl FnOnce() + Send) -> Vec<u8> {
    let mut received = Vec::new();
    thread::scope(|scope| {
        let mut input = input;
        scope.spawn(move || {
            input.write_all(&lines()).unwrap();
            drop(input);
            end();
        });
        output.read_to_end(&mut received).unwrap();
    });
    received
}

/// What the child wrote to standard error, after it ended cleanly.
fn errors(mut child: Child) -> String {
    let mut text = String::new();
    if let Some(mut errors) = child.stderr.take() {
        errors.read_to_string(&mut text).unwrap();
    }
    assert!(child.wait().unwrap().success(), "{text}");
    text
}

/// The rest of standard error after the first stray line.
fn early(text: &str) -> &str {
    text.strip_prefix("early,").unwrap()
}

fn pipes() {
    let mut child = command("echo").spawn().unwrap();
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    assert!(exchange(input, output, || ()) == lines());
    early(&errors(child));
}

fn pipes_need_no_thread() {
    let mut child = command("echo").spawn().unwrap();
    drop(child.stdin.take());
    assert_eq!(early(&errors(child)), "1 threads\n");
}

fn pipes_keep_blocking_for_others() {
    let (child_input, mut input) = io::pipe().unwrap();
    let (mut output, child_output) = io::pipe().unwrap();
    let mut command = command("echo");
    command.stdin(child_input.try_clone().unwrap()).stdout(child_output.try_clone().unwrap());
    let child = command.spawn().unwrap();
    input.write_all(b"once\n").unwrap();
    output.read_exact(&mut [0; 5]).unwrap();
    if cfg!(target_os = "linux") {
        assert!(!is_nonblocking(&child_input));
        assert!(!is_nonblocking(&child_output));
    }
    drop((input, command));
    errors(child);
}

fn is_nonblocking(file: &impl AsRawFd) -> bool {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).unwrap();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
    u32::from_str_radix(flags.trim(), 8).unwrap() & 0o4000 != 0
}

fn named_pipes() {
    let folder = Folder::new("named");
    let (input, child_input) = named_pipe(&folder.0.join("input"));
    let (child_output, output) = named_pipe(&folder.0.join("output"));
    let mut command = command("echo");
    let child = command.stdin(child_input).stdout(child_output).spawn().unwrap();
    drop(command);
    assert!(exchange(input, output, || ()) == lines());
    assert_eq!(early(&errors(child)), "1 threads\n");
}

/// Both ends of a new named pipe: the one to write to, the one to read from.
fn named_pipe(path: &Path) -> (File, File) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    // Opening either end alone would block.
    let _both = File::options().read(true).write(true).open(path).unwrap();
    (File::options().write(true).open(path).unwrap(), File::open(path).unwrap())
}

/// A folder that is removed with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("bowline-stdio-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn sockets() {
    let (input, child_input) = UnixStream::pair().unwrap();
    let (output, child_output) = UnixStream::pair().unwrap();
    let child = command("echo")
        .stdin(OwnedFd::from(child_input))
        .stdout(OwnedFd::from(child_output))
        .spawn()
        .unwrap();
    assert!(exchange(input, output, || ()) == lines());
    assert_eq!(early(&errors(child)), "1 threads\n");
}

fn one_socket_for_all() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let theirs = OwnedFd::from(theirs);
    let child = command("echo")
        .stdin(theirs.try_clone().unwrap())
        .stdout(theirs.try_clone().unwrap())
        .stderr(theirs)
        .spawn()
        .unwrap();
    let end = || ours.shutdown(Shutdown::Write).unwrap();
    let received = exchange(&ours, &ours, end);
    errors(child);
    let rest = received.strip_prefix(&lines()[..]).expect("what was sent comes back first");
    assert_eq!(String::from_utf8_lossy(rest), "3 threads\n");
}

fn files() {
    let folder = Folder::new("files");
    let (input, output) = (folder.0.join("input"), folder.0.join("output"));
    fs::write(&input, lines()).unwrap();
    let child = command("echo")
        .stdin(File::open(&input).unwrap())
        .stdout(File::create(&output).unwrap())
        .spawn()
        .unwrap();
    early(&errors(child));
    assert!(fs::read(&output).unwrap() == lines());
}

fn null() {
    let child = command("echo").stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    early(&errors(child));
}

fn strays_go_to_standard_error() {
    let mut child = command("stray").spawn().unwrap();
    let _input = child.stdin.take();
    let mut received = String::new();
    child.stdout.take().unwrap().read_to_string(&mut received).unwrap();
    assert_eq!(received, "protocol\n");
    assert_eq!(errors(child), "early,stray\nchild\n");
}

fn strays_vanish_when_errors_are_merged() {
    let (mut output, child_output) = io::pipe().unwrap();
    let mut command = command("stray");
    command.stdout(child_output.try_clone().unwrap()).stderr(child_output);
    let child = command.spawn().unwrap();
    drop(command);
    let mut received = String::new();
    output.read_to_string(&mut received).unwrap();
    errors(child);
    assert_eq!(received, "protocol\n");
}

fn nobody_listens_to_a_pipe() {
    let mut child = command("shout").spawn().unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 10]).unwrap();
    assert_eq!(early(&errors(child)), "BrokenPipe\n");
}

fn nobody_listens_to_a_socket() {
    let (mut output, child_output) = UnixStream::pair().unwrap();
    let mut command = command("shout");
    let child = command.stdout(OwnedFd::from(child_output)).spawn().unwrap();
    drop(command);
    output.read_exact(&mut [0; 10]).unwrap();
    drop(output);
    let kind = errors(child);
    assert!(["BrokenPipe\n", "ConnectionReset\n"].contains(&early(&kind)), "{kind}");
}

fn taken_twice() {
    let child = command("twice").spawn().unwrap();
    assert_eq!(early(&errors(child)), "standard input and output are taken already\n");
}

/// Clients close the input, wait two seconds, and then send the signal. A running request must not
/// delay the server until they kill it.
fn a_signal_ends_a_server() {
    let mut child = command("serve").spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#,
    ] {
        writeln!(input, "{message}").unwrap();
    }
    for id in [1, 3] {
        line.clear();
        output.read_line(&mut line).unwrap();
        assert!(line.contains(&format!("\"id\":{id}")), "{line}");
    }
    drop(input);
    // It must be idle once before it handles signals.
    for _ in 0..12_000 {
        if handles_term(child.id()) {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    Command::new("kill").arg(child.id().to_string()).status().unwrap();
    let mut patience = 12_000;
    while child.try_wait().unwrap().is_none() {
        if patience == 0 {
            child.kill().unwrap();
        }
        patience -= 1;
        thread::sleep(Duration::from_millis(10));
    }
    errors(child);
    line.clear();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "", "nobody waits for the answer");
}

/// Whether a process has a handler for SIGTERM. Without `/proc`, it has had a second to get one.
fn handles_term(id: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{id}/status")) else {
        thread::sleep(Duration::from_secs(1));
        return true;
    };
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << 14) != 0
}
