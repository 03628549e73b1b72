//! A command that gives no connection: from what was seen of it to the cause.

use std::process::ExitStatus;
use std::time::Duration;

use super::output::{self, Output};
use super::report::Diagnosis;
use super::seen::{plain, quoted};
use super::words;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
}

impl From<ExitStatus> for End {
    #[cfg(unix)]
    fn from(status: ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt;
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or(0)),
        }
    }

    #[cfg(not(unix))]
    fn from(status: ExitStatus) -> Self {
        Self::Code(status.code().unwrap_or(-1))
    }
}

/// What was seen of a command until it was given up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    pub(crate) output: Output,
    /// The last lines of standard error.
    pub(crate) stderr: Vec<String>,
    pub(crate) end: Option<End>,
    /// Messages came as soon as its input was closed, and none before.
    pub(crate) was_buffered: bool,
    /// How long it was waited for.
    pub(crate) waited: Duration,
    /// `npx` and the like, which download what they start.
    pub(crate) runner: Option<&'static str>,
    /// How many questions were answered before.
    pub(crate) answered: u64,
    /// The question that was not.
    pub(crate) method: String,
}

/// Programs that fetch what they start, by name.
const RUNNERS: [&str; 10] =
    ["npx", "uvx", "uv", "pipx", "docker", "podman", "bunx", "pnpm", "yarn", "deno"];

/// The runner that a program is, if it is one.
pub(crate) fn runner(program: &str) -> Option<&'static str> {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name.split('.').next().unwrap_or(name);
    RUNNERS.into_iter().find(|runner| name.eq_ignore_ascii_case(runner))
}

impl Evidence {
    /// What there is to show: the end, and the first words that matter.
    pub(crate) fn seen(&self) -> String {
        let mut parts = Vec::new();
        match self.end {
            Some(End::Code(code)) => {
                parts.push(format!("the program ended with exit status {code}"));
            }
            Some(End::Signal(signal)) => {
                parts.push(format!("the program was ended by signal {signal} ({})", name(signal)));
            }
            None => parts.push(format!("no answer in {}", seconds(self.waited))),
        }
        if let Some(stray) = self.output.strays.first() {
            parts.push(format!("standard output: {}", quoted(&stray.line)));
        } else if self.output.messages == 0 && !self.output.head.is_empty() {
            parts.push(format!("standard output: {}", quoted(&self.output.head)));
        }
        let telling = words::explain(&self.stderr).map(|(_, line)| line);
        if let Some(line) = telling.or_else(|| self.stderr.last().map(String::as_str)) {
            parts.push(format!("standard error: {}", quoted(line.as_bytes())));
        }
        parts.join("; ")
    }
}

/// Why there was no answer.
pub(crate) fn diagnose(evidence: &Evidence) -> Diagnosis {
    if evidence.was_buffered {
        return Diagnosis::unreachable(
            "the program keeps its output in a buffer: nothing came until its input was closed",
            "Flush standard output after every message (Python: flush=True, -u or \
             PYTHONUNBUFFERED=1; C: fflush(stdout)).",
        );
    }
    if let Some(found) = words::explain(&evidence.stderr)
        && evidence.end.is_some()
    {
        let (mut diagnosis, line) = found;
        diagnosis.cause = format!("{}: {}", diagnosis.cause, plain(line));
        return diagnosis;
    }
    if let Some(diagnosis) = output::diagnose(&evidence.output) {
        return diagnosis;
    }
    match evidence.end {
        Some(end) => ended(end, evidence),
        None => silent(evidence),
    }
}

fn ended(end: End, evidence: &Evidence) -> Diagnosis {
    let said = match evidence.stderr.last() {
        Some(line) => format!("; its last words: {}", plain(line)),
        None => " without a word".to_owned(),
    };
    let read = "Its standard error says why; run the command by hand in the same directory and \
                environment.";
    let (cause, fix) = match end {
        End::Code(0) if evidence.answered == 0 => (
            "the program ended at once and without an error".to_owned(),
            "It may be no stdio server, want another argument (such as `stdio` or `serve`), or \
             stop because it does not wait for its input.",
        ),
        End::Code(126) => ("a shell could not execute the program".to_owned(), read),
        End::Code(127) => {
            ("a shell did not find the program".to_owned(), "Install it, or give its full path.")
        }
        End::Code(137) | End::Signal(9) => (
            "the program was killed, most often because memory ran out".to_owned(),
            "Look at the system's log, and at the limits of the container.",
        ),
        End::Code(139) | End::Signal(11) => {
            ("the program crashed: it used memory that is not its own".to_owned(), read)
        }
        End::Code(134) | End::Signal(6) => ("the program aborted".to_owned(), read),
        End::Signal(4) => (
            "the program uses instructions that this processor lacks".to_owned(),
            "Use a build for this machine.",
        ),
        End::Code(code) if evidence.answered > 0 => (
            format!("the program ended in the middle of the conversation, with exit status {code}"),
            read,
        ),
        End::Code(code) => (format!("the program ended with exit status {code}"), read),
        End::Signal(signal) => (format!("signal {signal} ({}) ended it", name(signal)), read),
    };
    Diagnosis::unreachable(format!("{cause}{said}"), fix)
}

fn silent(evidence: &Evidence) -> Diagnosis {
    if let Some(url) = words::listens_at(&evidence.stderr) {
        return Diagnosis::unreachable(
            format!("the program serves HTTP ({}) and does not read its input", plain(&url)),
            format!("Connect to the URL ({}), or start it in its stdio mode.", plain(&url)),
        );
    }
    if let Some(runner) = evidence.runner {
        let why = format!("{runner} may still download or build what it starts");
        return Diagnosis::unreachable(
            why,
            "Run the command by hand once, or give it more time with --timeout; clients give up \
             as well.",
        );
    }
    let waited = seconds(evidence.waited);
    match evidence.answered {
        0 => Diagnosis::unreachable(
            format!("the program runs and says nothing on its standard output within {waited}"),
            "It may not be a stdio server, want another argument, still start up (--timeout), or \
             wait for something of its own.",
        ),
        _ => Diagnosis::unreachable(
            format!("the server does not answer {} within {waited}", evidence.method),
            "Its handler hangs, or blocks the loop that reads messages; more time: --timeout.",
        ),
    }
}

/// A time for people.
pub(crate) fn seconds(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

fn name(signal: i32) -> &'static str {
    match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        4 => "SIGILL",
        6 => "SIGABRT",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => "a signal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(end: Option<End>, stdout: &str, stderr: &str) -> Evidence {
        let mut output = Output::default();
        output.take_bytes(stdout.as_bytes());
        stdout.lines().for_each(|line| output.take_stray(line.as_bytes()));
        let stderr = stderr.lines().map(str::to_owned).collect();
        Evidence { output, stderr, end, waited: Duration::from_secs(2), ..Evidence::default() }
    }

    #[test]
    fn each_ending_has_its_cause() {
        let code = |code| Some(End::Code(code));
        for (end, stdout, stderr, cause) in [
            (code(0), "", "", "ended at once and without an error"),
            (code(1), "", "Error: Cannot find module 'x'", "not installed: Error: Cannot find"),
            (code(3), "", "odd", "exit status 3; its last words: odd"),
            (code(3), "", "", "exit status 3 without a word"),
            (code(127), "", "", "did not find the program"),
            (code(137), "", "", "memory ran out"),
            (Some(End::Signal(9)), "", "", "memory ran out"),
            (Some(End::Signal(11)), "", "", "crashed"),
            (Some(End::Signal(4)), "", "", "processor"),
            (Some(End::Signal(15)), "", "", "SIGTERM"),
            (code(1), "hello", "", "no message"),
            (None, "", "", "says nothing on its standard output within 2.0 s"),
            (None, "hello", "", "no message"),
            (
                None,
                "",
                "Listening on http://localhost:3000/mcp",
                "serves HTTP (http://localhost:3000/mcp)",
            ),
            // While it runs, an error that it survived explains nothing.
            (None, "", "warning: unhandled thing", "says nothing"),
        ] {
            let found = diagnose(&evidence(end, stdout, stderr));
            assert!(found.cause.contains(cause), "{end:?} {stdout} {stderr}: {found:?}");
        }
        let buffered = Evidence { was_buffered: true, ..evidence(None, "", "") };
        assert!(diagnose(&buffered).cause.contains("buffer"));
        let loading = Evidence { runner: runner("/usr/bin/npx"), ..evidence(None, "", "") };
        assert!(diagnose(&loading).cause.contains("npx may still download"));
        let method = "tools/list".to_owned();
        let hung = Evidence { answered: 2, method, ..evidence(None, "", "") };
        assert!(diagnose(&hung).cause.contains("does not answer tools/list"));
    }

    #[test]
    fn runners_are_known_by_name() {
        for (program, expected) in [
            ("npx", Some("npx")),
            ("C:\\nodejs\\npx.cmd", Some("npx")),
            ("/opt/uvx", Some("uvx")),
            ("node", None),
            ("npx2", None),
        ] {
            assert_eq!(runner(program), expected, "{program}");
        }
    }
}
