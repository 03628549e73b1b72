//! A command that does not respond: from what was observed to the cause.

use std::process::ExitStatus;
use std::time::Duration;

use bowline_check::Strays;

use super::output::Output;
use super::report::{Diagnosis, unreachable};
use super::seen::{plain, quoted, seconds};
use super::stderr;

/// The exit code as shells give it: 128 plus the signal, if one ended the program.
fn shell_code(status: ExitStatus) -> Option<i32> {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    status.code().or_else(|| Some(128 + signal?))
}

/// What was observed of a command until the doctor gave up on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    pub(crate) output: Output,
    /// The last lines of standard error.
    pub(crate) stderr: Vec<String>,
    pub(crate) status: Option<ExitStatus>,
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
        let mut parts = vec![match self.status {
            Some(status) => format!("the program ended ({status})"),
            None => format!("no response in {}", seconds(self.waited)),
        }];
        let Strays { first, messages, .. } = &self.output.strays;
        let stray = first.as_ref().map(|(line, _)| line);
        let head = Some(&self.output.head).filter(|it| *messages == 0 && !it.is_empty());
        parts.extend(stray.or(head).map(|line| format!("standard output: {}", quoted(line))));
        let telling = stderr::explain(&self.stderr).map(|(_, line)| line);
        let line = telling.or_else(|| self.last_line());
        parts.extend(line.map(|line| format!("standard error: {}", quoted(line.as_bytes()))));
        parts.join("; ")
    }

    /// Why there was no response.
    pub(crate) fn diagnose(&self) -> Diagnosis {
        if self.was_buffered {
            return unreachable(
                "the program buffers its output: nothing arrived until its input was closed",
            )
            .fix(
                "Flush standard output after every message (Python: flush=True, -u or \
                 PYTHONUNBUFFERED=1; C: fflush(stdout)).",
            );
        }
        if let (None, 0, Some(url)) = (self.status, self.answered, self.listening_url()) {
            let url = plain(&url);
            return unreachable(format!(
                "the program serves HTTP ({url}) and does not read its input"
            ))
            .fix(format!("Connect to {url}, or start the program in its stdio mode."));
        }
        if let Some((mut diagnosis, line)) = stderr::explain(&self.stderr)
            && self.status.is_some()
        {
            diagnosis.cause = format!("{}: {}", diagnosis.cause, plain(line));
            return diagnosis;
        }
        self.output.diagnose().unwrap_or_else(|| match self.status {
            Some(status) => self.ended(status),
            None => self.silent(),
        })
    }

    fn last_line(&self) -> Option<&str> {
        self.stderr.iter().map(String::as_str).rfind(|line| !line.is_empty())
    }

    /// Where the program says that it listens, on either stream.
    fn listening_url(&self) -> Option<String> {
        let output = String::from_utf8_lossy(&self.output.head);
        let lines = self.stderr.iter().cloned().chain(output.lines().map(str::to_owned));
        stderr::listening_url(&lines.collect::<Vec<_>>())
    }

    fn ended(&self, status: ExitStatus) -> Diagnosis {
        const BY_HAND: &str = "See its standard error; run the command by hand in the same \
                               directory and environment.";
        let last_words = match self.last_line() {
            Some(line) => format!("; its last words: {}", plain(line)),
            None => " without a word".to_owned(),
        };
        let found = match shell_code(status) {
            Some(0) if self.answered == 0 => {
                unreachable("the program exited immediately without an error").fix(
                    "It may not be a stdio server, need another argument (such as `stdio` or \
                     `serve`), or exit because it does not wait for input.",
                )
            }
            Some(126) => unreachable("a shell could not execute the program").fix(BY_HAND),
            Some(127) => unreachable("a shell did not find the program")
                .fix("Install it, or give its full path."),
            Some(132) => unreachable("the program uses instructions that this processor lacks")
                .fix("Use a build for this machine."),
            Some(134) => unreachable("the program aborted").fix(BY_HAND),
            Some(137) => unreachable("the program was killed, most often because memory ran out")
                .fix("Check the system's log and the container's limits."),
            Some(139) => {
                unreachable("the program crashed: it accessed memory it must not").fix(BY_HAND)
            }
            _ if self.answered > 0 => {
                unreachable(format!("the program ended mid-conversation ({status})")).fix(BY_HAND)
            }
            _ => unreachable(format!("the program ended ({status})")).fix(BY_HAND),
        };
        Diagnosis { cause: format!("{}{last_words}", found.cause), ..found }
    }

    fn silent(&self) -> Diagnosis {
        let waited = seconds(self.waited);
        if let Some(runner) = self.runner {
            unreachable(format!("{runner} may still be downloading what it starts")).fix(
                "Run the command by hand once, or allow more time with --timeout; other clients \
                 give up, too.",
            )
        } else if self.answered == 0 {
            let cause =
                format!("the program runs but wrote nothing to standard output in {waited}");
            unreachable(cause).fix(
                "It may not be a stdio server, need another argument, still be starting \
                 (--timeout), or be waiting for something else.",
            )
        } else {
            unreachable(format!("the server did not answer {} in {waited}", self.method)).fix(
                "Its handler hangs or blocks the loop that reads messages; --timeout allows more \
                 time.",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn evidence(status: Option<ExitStatus>, stdout: &str, stderr: &str) -> Evidence {
        let mut output = Output { head: stdout.into(), ..Output::default() };
        stdout.lines().for_each(|line| output.strays.take(line.as_bytes()));
        let stderr = stderr.lines().map(str::to_owned).collect();
        Evidence { output, stderr, status, waited: Duration::from_secs(2), ..Evidence::default() }
    }

    #[test]
    fn each_ending_has_its_cause() {
        let code = |code: i32| Some(ExitStatus::from_raw(code << 8));
        let signal = |signal| Some(ExitStatus::from_raw(signal));
        for (status, stdout, stderr, cause) in [
            (code(0), "", "", "exited immediately without an error"),
            (code(1), "", "Error: Cannot find module 'x'", "not installed: Error: Cannot find"),
            (code(3), "", "odd", "ended (exit status: 3); its last words: odd"),
            (code(3), "", "", "ended (exit status: 3) without a word"),
            (code(127), "", "", "did not find the program"),
            (code(137), "", "", "memory ran out"),
            (signal(9), "", "", "memory ran out"),
            (signal(11), "", "", "crashed"),
            (signal(4), "", "", "processor"),
            (signal(15), "", "", "SIGTERM"),
            (code(1), "hello", "", "is not a message"),
            (None, "", "", "wrote nothing to standard output in 2.0 s"),
            (None, "hello", "", "is not a message"),
            (
                None,
                "",
                "Listening on http://localhost:3000/mcp",
                "serves HTTP (http://localhost:3000/mcp)",
            ),
            (
                None,
                "Starting Streamable HTTP server...",
                "MCP Streamable HTTP Server listening on port 3001",
                "serves HTTP (http://localhost:3001/mcp)",
            ),
            (None, "Server is listening on port 3001", "", "http://localhost:3001/mcp"),
            // An error that a running program survived explains nothing.
            (None, "", "warning: unhandled thing", "wrote nothing"),
        ] {
            let found = evidence(status, stdout, stderr).diagnose();
            assert!(found.cause.contains(cause), "{status:?} {stdout} {stderr}: {found:?}");
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
