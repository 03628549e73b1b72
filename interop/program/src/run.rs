//! Runs the program on a target.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::check::Check;

/// The time limit of a command: longer than its own limits.
const PATIENCE: Duration = Duration::from_secs(240);
/// How long it may wait for a server: an interpreter takes a while to start on a busy machine.
const CONNECT: &str = "180s";
/// What a command prints when it waits for events.
const LISTENING: &str = "listening";

/// The program, and the server to run it on.
pub(crate) struct Target {
    program: String,
    /// A URL, or `--` and a command.
    words: Vec<String>,
}

/// The outcome of a command.
#[derive(Debug, Default)]
pub(crate) struct Ran {
    /// Its exit code, if it exited in time and without a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Target {
    pub(crate) fn new(program: String, words: Vec<String>) -> Self {
        Self { program, words }
    }

    /// Runs a check's command to completion, and in the meantime the other one, which must succeed.
    pub(crate) fn run(&self, check: &Check, mode: &str) -> Result<Ran, (String, Ran)> {
        let meanwhile = check.meanwhile.as_ref();
        let mut other = Ok(());
        let ran = wait(self.command(&check.command, mode), &check.stdin, || {
            let Some(words) = meanwhile else { return };
            other = match wait(self.command(words, mode), "", || {}) {
                Ok(ran) if ran.code == Some(0) => Ok(()),
                Ok(ran) => Err((format!("the other command, {words:?}, failed"), ran)),
                Err(error) => Err((error.to_string(), Ran::default())),
            };
        });
        other.and_then(|()| ran.map_err(|error| (error.to_string(), Ran::default())))
    }

    /// A URL comes right after the command's name, a command at the end.
    fn command(&self, words: &[String], mode: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(&words[0]).args(["--revision", mode, "--connect-timeout", CONNECT]);
        if self.words[0] == "--" {
            command.args(&words[1..]).args(&self.words);
        } else {
            command.args(&self.words).args(&words[1..]);
        }
        command
    }
}

/// Waits for a command to exit; calls `listening` when it reports that it is listening.
fn wait(mut command: Command, stdin: &str, listening: impl FnOnce()) -> io::Result<Ran> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        // The input is short, and a command that does not read it shows that in its outcome.
        let _ = pipe.write_all(stdin.as_bytes());
    }
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (sender, lines) = channel();
    let stdout = thread::spawn(move || read_all(stdout));
    let stderr = thread::spawn(move || read_lines(stderr, &sender));
    let is_in_time = attend(&lines, listening);
    let code = end(&mut child, is_in_time)?;
    let all = |reader: thread::JoinHandle<String>| reader.join().expect("no reader panics");
    Ok(Ran { code, stdout: all(stdout), stderr: all(stderr) })
}

/// Whether the command closed its standard error in time.
fn attend(lines: &Receiver<String>, listening: impl FnOnce()) -> bool {
    let mut listening = Some(listening);
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) if line.contains(LISTENING) => {
                if let Some(listening) = listening.take() {
                    listening();
                }
            }
            Ok(_) => {}
            Err(RecvTimeoutError::Disconnected) => return true,
            Err(RecvTimeoutError::Timeout) => return false,
        }
    }
}

fn end(child: &mut Child, is_in_time: bool) -> io::Result<Option<i32>> {
    if !is_in_time {
        child.kill()?;
    }
    let status = child.wait()?;
    Ok(status.code().filter(|_| is_in_time))
}

fn read_all(from: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    // Judges what was written before an error.
    let _ = from.map(|mut from| from.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn read_lines(from: Option<impl Read>, sender: &Sender<String>) -> String {
    let mut text = String::new();
    for line in from.into_iter().flat_map(|from| BufReader::new(from).lines()).map_while(Result::ok)
    {
        text += &line;
        text.push('\n');
        // The receiver may be gone.
        let _ = sender.send(line);
    }
    text
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (mark, text) in [(" >", &self.stdout), (" !", &self.stderr)] {
            for line in text.lines() {
                writeln!(f, "{mark} {line}")?;
            }
        }
        Ok(())
    }
}
