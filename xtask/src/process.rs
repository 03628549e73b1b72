//! Runs a program and keeps its output, standard error included, in order.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::process::Command;
use std::time::Duration;

/// A program that has ended.
pub(crate) struct Ran {
    pub(crate) ok: bool,
    /// The command line, then both outputs.
    pub(crate) output: String,
}

/// A command from words that contain no blanks.
pub(crate) fn command(line: &str) -> Command {
    let mut words = line.split_whitespace();
    let mut command = program(words.next().expect("a command names a program"));
    command.args(words);
    command
}

/// A program without arguments, in the environment that every step runs in.
pub(crate) fn program(path: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(path);
    // A backtrace of a handler that panics on purpose takes memory that other tests measure.
    command.env("CARGO_TERM_COLOR", "never").env("RUST_BACKTRACE", "0");
    command
}

/// Waits for the program to end. A program that cannot be started has failed.
pub(crate) fn run(command: Command) -> Ran {
    let line = display(&command);
    match capture(command) {
        Ok((ok, said)) => {
            Ran { ok, output: format!("$ {line}\n{}", String::from_utf8_lossy(&said)) }
        }
        Err(error) => Ran { ok: false, output: format!("$ {line}\ncannot be started: {error}\n") },
    }
}

fn capture(mut command: Command) -> io::Result<(bool, Vec<u8>)> {
    let (mut reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // It holds the pipe's writing ends; while they are open, reading does not end.
    drop(command);
    let mut said = Vec::new();
    reader.read_to_end(&mut said)?;
    Ok((child.wait()?.success(), said))
}

/// The processor time of all programs that have ended, where the system tells.
pub(crate) fn cpu_time() -> Option<Duration> {
    // Linux counts in hundredths of a second; the name, in parentheses, may contain blanks.
    let status = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = status.rsplit_once(") ")?;
    let ticks = fields.split(' ').skip(13).take(2).map(|field| field.parse::<u64>().ok());
    Some(Duration::from_millis(ticks.sum::<Option<u64>>()? * 10))
}

fn display(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line += &argument.to_string_lossy();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_has_failed() {
        let ran = run(command("no-such-program-here --loud"));
        assert!(!ran.ok);
        assert!(ran.output.starts_with("$ no-such-program-here --loud\n"));
    }
}
