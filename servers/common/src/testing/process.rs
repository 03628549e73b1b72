//! A child process: lines in, lines out, and how it exited.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// A program that has not exited by then never will: 2 minutes.
const PATIENCE: Duration = Duration::from_secs(120);

/// The output of a program, and how it exited.
#[derive(Debug)]
pub struct Said {
    /// Its exit code; `None` if a signal killed it.
    pub code: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

/// Runs a program to completion with this input.
pub fn run(program: &str, arguments: &[&str], input: &str) -> Said {
    let mut process = Process::start(program, arguments);
    process.input.as_mut().expect("is open").write_all(input.as_bytes()).expect("it reads");
    process.close()
}

/// A running program. It is killed on drop.
#[derive(Debug)]
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
    /// Dropping this stops the watchdog.
    _watched: Sender<()>,
}

impl Process {
    /// Starts a program with piped streams.
    pub fn start(program: &str, arguments: &[&str]) -> Self {
        Self::start_with(program, arguments, &[])
    }

    /// Starts a program with piped streams and extra environment variables.
    pub fn start_with(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .env_remove("RUST_LOG")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let errors = BufReader::new(child.stderr.take().expect("it is piped"));
        let watched = watch(child.id());
        Self { child, input, output, errors, _watched: watched }
    }

    /// Writes a line.
    pub fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("is open");
        writeln!(input, "{line}").and_then(|()| input.flush()).expect("it reads");
    }

    /// Reads a message.
    pub fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it writes");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    /// Reads a line of standard output; `None` at its end.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let length = self.output.read_line(&mut line).expect("it writes");
        (length > 0).then(|| line.trim_end().to_owned())
    }

    /// Reads messages up to the response to a request. Skips notifications before it.
    pub fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.receive();
            if message.get("method").is_none() && message.get("id") == Some(id) {
                return message;
            }
        }
    }

    /// Sends lines in order, each after the response to the previous one, and returns the
    /// responses.
    pub fn play(&mut self, lines: &str) -> Vec<Value> {
        let mut answers = Vec::new();
        for line in lines.lines() {
            self.send(line);
            let sent: Value = serde_json::from_str(line).expect("a line of JSON");
            if let Some(id) = sent.get("id") {
                answers.push(self.answer(id));
            }
        }
        answers
    }

    /// The address that it prints on standard error when it serves over HTTP.
    pub fn http_address(&mut self) -> SocketAddr {
        let mut line = String::new();
        while !line.contains("http://") {
            line.clear();
            assert_ne!(self.errors.read_line(&mut line).expect("it speaks"), 0, "it has exited");
        }
        let (_, rest) = line.split_once("http://").expect("it was found above");
        rest.split('/').next().expect("there is a first part").parse().expect("an address")
    }

    /// Sends SIGTERM and waits for the process to exit.
    pub fn terminate(self) -> Said {
        signal("TERM", self.child.id());
        self.wait()
    }

    /// Closes its input and waits for the process to exit.
    pub fn close(mut self) -> Said {
        drop(self.input.take());
        self.wait()
    }

    fn wait(mut self) -> Said {
        // Tests write little to standard error, so its pipe does not fill up in the meantime.
        let (mut out, mut err) = (String::new(), String::new());
        self.output.read_to_string(&mut out).expect("it is text");
        self.errors.read_to_string(&mut err).expect("it is text");
        Said { code: self.child.wait().expect("it ends").code(), out, err }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Kills a process that does not exit, so that the test waiting for it fails instead of hanging.
fn watch(id: u32) -> Sender<()> {
    let (watched, ended) = channel::<()>();
    thread::spawn(move || {
        if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            signal("KILL", id);
        }
    });
    watched
}

fn signal(name: &str, id: u32) {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {id}")]).status();
    assert!(status.expect("a shell runs").success(), "kill -{name} {id}");
}
