//! Runs a program and keeps its output, standard error included, in order.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How often to look whether a program with a deadline has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// A program that has ended.
pub(crate) struct Ran {
    pub(crate) ok: bool,
    /// The command line, then both outputs.
    pub(crate) output: String,
}

impl Ran {
    /// Both outputs, without the command line.
    pub(crate) fn said(&self) -> &str {
        self.output.split_once('\n').map_or("", |(_, said)| said)
    }
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
    run_by(command, capture)
}

/// The same, but after so long the program is ended with everything that it started, and has
/// failed. It reads nothing, and what it leaves behind may keep its output open.
pub(crate) fn run_within(command: Command, limit: Duration) -> Ran {
    run_by(command, |command| capture_within(command, limit))
}

fn run_by(command: Command, capture: impl FnOnce(Command) -> io::Result<(bool, Vec<u8>)>) -> Ran {
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

fn capture_within(mut command: Command, limit: Duration) -> io::Result<(bool, Vec<u8>)> {
    let mut file = scratch()?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?);
    let mut child = command.process_group(0).spawn()?;
    let mut ended = None;
    for _ in 0..limit.as_millis() / PAUSE.as_millis() {
        thread::sleep(PAUSE);
        ended = child.try_wait()?;
        if ended.is_some() {
            break;
        }
    }
    if ended.is_none() {
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        child.wait()?;
    }
    let mut said = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut said)?;
    if ended.is_none() {
        said.extend(format!("\nended after {} seconds\n", limit.as_secs()).bytes());
    }
    Ok((ended.as_ref().is_some_and(ExitStatus::success), said))
}

/// A file that nobody else can open.
fn scratch() -> io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("xtask-{}-{number}", std::process::id()));
    let file = File::options().read(true).append(true).create_new(true).open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
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

    #[test]
    fn a_program_ends_with_its_descendants_at_its_deadline() {
        let mut waits = program("sh");
        waits.args(["-c", "sleep 600 & echo $!; wait"]);
        let ran = run_within(waits, Duration::from_secs(1));
        assert!(!ran.ok && ran.said().ends_with("ended after 1 seconds\n"), "{}", ran.output);
        let left = ran.said().lines().next().unwrap();
        // Nobody may have asked yet how it ended.
        let has_ended = || {
            let status = fs::read_to_string(format!("/proc/{left}/stat")).unwrap_or_default();
            status.is_empty() || status.contains(") Z ")
        };
        for _ in 0..3000 {
            if has_ended() {
                return;
            }
            thread::sleep(PAUSE);
        }
        panic!("{left} lives on");
    }

    #[test]
    fn what_a_program_leaves_behind_is_not_waited_for() {
        let mut leaves = program("sh");
        leaves.args(["-c", "sleep 600 & echo $!; echo done >&2"]);
        let ran = run_within(leaves, Duration::from_secs(300));
        let (left, rest) = ran.said().split_once('\n').unwrap();
        let ended = Command::new("kill").arg(left).status();
        assert!(ran.ok && rest == "done\n" && ended.unwrap().success(), "{}", ran.output);
    }
}
