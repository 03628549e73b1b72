//! A command that does not respond: from what was observed to the cause.

use std::process::ExitStatus;
use std::time::Duration;

use super::output::Output;
use super::report::Diagnosis;
use super::seen::{plain, quoted, seconds};
use super::stderr;

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

/// What was observed of a command until the doctor gave up on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    pub(crate) output: Output,
    /// The last lines of standard error.
    pub(crate) stderr: Vec<String>,
    pub(crate) end: Option<End>,
    /// Messages arrived only once its input was closed.
    pub(crate) was_buffered: bool,
    /// How long the doctor waited.
    pub(crate) waited: Duration,
    /// The package runner it is, such as `npx`.
    pub(crate) runner: Option<&'static str>,
    /// How many requests it answered before.
    pub(crate) answered: u64,
    /// The request that it did not answer.
    pub(crate) method: String,
}

/// Programs that download what they start, by name.
const RUNNERS: [&str; 10] =
    ["npx", "uvx", "uv", "pipx", "docker", "podman", "bunx", "pnpm", "yarn", "deno"];

/// The package runner that a program is, if it is one.
pub(crate) fn runner(program: &str) -> Option<&'static str> {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name.split('.').next().unwrap_or(name);
    RUNNERS.into_iter().find(|runner| name.eq_ignore_ascii_case(runner))
}

impl Evidence {
    pub(crate) fn seen(&self) -> String {
        let mut parts = vec![match self.end {
            Some(End::Code(code)) => format!("the program exited with status {code}"),
            Some(End::Signal(signal)) => {
                format!("signal {signal} ({}) ended the program", name(signal))
            }
            None => format!("no response in {}", seconds(self.waited)),
        }];
        let stray = self.output.strays.first().map(|stray| &stray.line);
        let head = Some(&self.output.head).filter(|it| self.output.messages == 0 && !it.is_empty());
        parts.extend(stray.or(head).map(|line| format!("standard output: {}", quoted(line))));
        let telling = stderr::explain(&self.stderr).map(|(_, line)| line);
        let line = telling.or_else(|| self.stderr.last().map(String::as_str));
        parts.extend(line.map(|line| format!("standard error: {}", quoted(line.as_bytes()))));
        parts.join("; ")
    }

    /// Why there was no response.
    pub(crate) fn diagnose(&self) -> Diagnosis {
        if self.was_buffered {
            return Diagnosis::unreachable(
                "the program buffers its output: nothing arrived until its input was closed",
                "Flush standard output after every message (Python: flush=True, -u or \
                 PYTHONUNBUFFERED=1; C: fflush(stdout)).",
            );
        }
        if let Some((mut diagnosis, line)) = stderr::explain(&self.stderr)
            && self.end.is_some()
        {
            diagnosis.cause = format!("{}: {}", diagnosis.cause, plain(line));
            return diagnosis;
        }
        self.output.diagnose().unwrap_or_else(|| match self.end {
            Some(end) => self.ended(end),
            None => self.silent(),
        })
    }

    fn ended(&self, end: End) -> Diagnosis {
        let last_words = match self.stderr.last() {
            Some(line) => format!("; its last words: {}", plain(line)),
            None => " without a word".to_owned(),
        };
        const BY_HAND: &str = "See its standard error; run the command by hand in the same \
                               directory and environment.";
        let (cause, fix) = match end {
            End::Code(0) if self.answered == 0 => (
                "the program exited immediately without an error".to_owned(),
                "It may not be a stdio server, need another argument (such as `stdio` or \
                 `serve`), or exit because it does not wait for input.",
            ),
            End::Code(126) => ("a shell could not execute the program".to_owned(), BY_HAND),
            End::Code(127) => (
                "a shell did not find the program".to_owned(),
                "Install it, or give its full path.",
            ),
            End::Code(137) | End::Signal(9) => (
                "the program was killed, most often because memory ran out".to_owned(),
                "Check the system's log and the container's limits.",
            ),
            End::Code(139) | End::Signal(11) => {
                ("the program crashed: it accessed memory it must not".to_owned(), BY_HAND)
            }
            End::Code(134) | End::Signal(6) => ("the program aborted".to_owned(), BY_HAND),
            End::Signal(4) => (
                "the program uses instructions that this processor lacks".to_owned(),
                "Use a build for this machine.",
            ),
            End::Code(code) if self.answered > 0 => {
                (format!("the program exited mid-conversation with status {code}"), BY_HAND)
            }
            End::Code(code) => (format!("the program exited with status {code}"), BY_HAND),
            End::Signal(signal) => {
                (format!("signal {signal} ({}) ended the program", name(signal)), BY_HAND)
            }
        };
        Diagnosis::unreachable(format!("{cause}{last_words}"), fix)
    }

    fn silent(&self) -> Diagnosis {
        let waited = seconds(self.waited);
        let (cause, fix) = if let Some(url) = stderr::listening_url(&self.stderr) {
            let url = plain(&url);
            return Diagnosis::unreachable(
                format!("the program serves HTTP ({url}) and does not read its input"),
                format!("Connect to {url}, or start the program in its stdio mode."),
            );
        } else if let Some(runner) = self.runner {
            (
                format!("{runner} may still be downloading or building what it starts"),
                "Run the command by hand once, or allow more time with --timeout; other clients \
                 give up, too.",
            )
        } else if self.answered == 0 {
            (
                format!("the program runs but wrote nothing to standard output within {waited}"),
                "It may not be a stdio server, need another argument, still be starting \
                 (--timeout), or be waiting for something else.",
            )
        } else {
            (
                format!("the server did not answer {} within {waited}", self.method),
                "Its handler hangs or blocks the loop that reads messages; --timeout allows more \
                 time.",
            )
        };
        Diagnosis::unreachable(cause, fix)
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
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(end: Option<End>, stdout: &str, stderr: &str) -> Evidence {
        let mut output = Output { head: stdout.into(), ..Output::default() };
        stdout.lines().for_each(|line| output.take_stray(line.as_bytes()));
        let stderr = stderr.lines().map(str::to_owned).collect();
        Evidence { output, stderr, end, waited: Duration::from_secs(2), ..Evidence::default() }
    }

    #[test]
    fn each_ending_has_its_cause() {
        let code = |code| Some(End::Code(code));
        for (end, stdout, stderr, cause) in [
            (code(0), "", "", "exited immediately without an error"),
            (code(1), "", "Error: Cannot find module 'x'", "not installed: Error: Cannot find"),
            (code(3), "", "odd", "exited with status 3; its last words: odd"),
            (code(3), "", "", "exited with status 3 without a word"),
            (code(127), "", "", "did not find the program"),
            (code(137), "", "", "memory ran out"),
            (Some(End::Signal(9)), "", "", "memory ran out"),
            (Some(End::Signal(11)), "", "", "crashed"),
            (Some(End::Signal(4)), "", "", "processor"),
            (Some(End::Signal(15)), "", "", "SIGTERM"),
            (code(1), "hello", "", "is not a message"),
            (None, "", "", "wrote nothing to standard output within 2.0 s"),
            (None, "hello", "", "is not a message"),
            (
                None,
                "",
                "Listening on http://localhost:3000/mcp",
                "serves HTTP (http://localhost:3000/mcp)",
            ),
            // An error that a running program survived explains nothing.
            (None, "", "warning: unhandled thing", "wrote nothing"),
        ] {
            let found = evidence(end, stdout, stderr).diagnose();
            assert!(found.cause.contains(cause), "{end:?} {stdout} {stderr}: {found:?}");
        }
        let buffered = Evidence { was_buffered: true, ..evidence(None, "", "") };
        assert!(buffered.diagnose().cause.contains("buffer"));
        let loading = Evidence { runner: runner("/usr/bin/npx"), ..evidence(None, "", "") };
        assert!(loading.diagnose().cause.contains("npx may still be downloading"));
        let method = "tools/list".to_owned();
        let hung = Evidence { answered: 2, method, ..evidence(None, "", "") };
        assert!(hung.diagnose().cause.contains("did not answer tools/list"));
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
