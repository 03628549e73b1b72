//! Runs the program on a target.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::check::Check;

/// How long a command may take: longer than those that it sets itself.
const PATIENCE: Duration = Duration::from_secs(90);
/// What a command says that waits for others to do something.
const LISTENING: &str = "listening";

/// The program, and the server that it is put on.
pub(crate) struct Target {
    program: String,
    /// A URL, or `--` and a command.
    words: Vec<String>,
}

/// What came of a command.
#[derive(Debug, Default)]
pub(crate) struct Ran {
    /// Its exit code, if it ended by itself and in time.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Target {
    pub(crate) fn new(program: String, words: Vec<String>) -> Self {
        Self { program, words }
    }

    /// Runs a check's command to its end, and the other one meanwhile, which must go well.
    pub(crate) fn run(&self, check: &Check, mode: &str) -> Result<Ran, (String, Ran)> {
        let meanwhile = check.meanwhile.as_ref();
        let mut other = Ok(());
        let ran = wait(self.command(&check.command, mode), &check.stdin, || {
            let Some(words) = meanwhile else { return };
            other = match wait(self.command(words, mode), "", || {}) {
                Ok(ran) if ran.code == Some(0) => Ok(()),
                Ok(ran) => Err((format!("{words:?}, meanwhile, failed"), ran)),
                Err(error) => Err((error.to_string(), Ran::default())),
            };
        });
        other.and_then(|()| ran.map_err(|error| (error.to_string(), Ran::default())))
    }

    /// A URL comes right behind the command's name, a command at the end.
    fn command(&self, words: &[String], mode: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(&words[0]).args(["--revision", mode]);
        if self.words[0] == "--" {
            command.args(&words[1..]).args(&self.words);
        } else {
            command.args(&self.words).args(&words[1..]);
        }
        command
    }
}

/// Waits for a command to end; calls `listening` when it says that it listens.
fn wait(mut command: Command, stdin: &str, listening: impl FnOnce()) -> io::Result<Ran> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        // It is little, and whoever does not read it says more by what comes of it.
        let _ = pipe.write_all(stdin.as_bytes());
    }
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (said, heard) = channel();
    let stdout = thread::spawn(move || read_all(stdout));
    let stderr = thread::spawn(move || read_lines(stderr, &said));
    let is_in_time = attend(&heard, listening);
    let code = end(&mut child, is_in_time)?;
    let all = |reader: thread::JoinHandle<String>| reader.join().expect("no reader panics");
    Ok(Ran { code, stdout: all(stdout), stderr: all(stderr) })
}

/// Whether the command stopped speaking in time.
fn attend(heard: &Receiver<String>, listening: impl FnOnce()) -> bool {
    let mut listening = Some(listening);
    loop {
        match heard.recv_timeout(PATIENCE) {
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
    // What was said before it broke off is judged all the same.
    let _ = from.map(|mut from| from.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn read_lines(from: Option<impl Read>, said: &Sender<String>) -> String {
    let mut text = String::new();
    for line in from.into_iter().flat_map(|from| BufReader::new(from).lines()).map_while(Result::ok)
    {
        text += &line;
        text.push('\n');
        // Nobody may be listening any more.
        let _ = said.send(line);
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
