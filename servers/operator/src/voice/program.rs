//! Runs programs, and kills them when the caller stops waiting.

use std::io::ErrorKind;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// How much of an error message is passed on, in characters.
const MAX_ERROR: usize = 300;

/// What a program wrote before it succeeded.
pub(super) struct Said {
    /// Its standard output.
    pub(super) output: Vec<u8>,
    /// The beginning of its standard error.
    pub(super) errors: String,
}

/// A program and its arguments.
pub(super) struct Program {
    name: String,
    arguments: Vec<String>,
}

impl Program {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), arguments: Vec::new() }
    }

    pub(super) fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Runs it to completion with this input, and returns what it wrote.
    ///
    /// # Errors
    /// If it is not installed or fails; the message names it and includes its error output.
    pub(super) async fn run(self, input: &[u8]) -> Result<Said, String> {
        let name = &self.name;
        // Our own standard streams are used for the protocol.
        let child = Command::new(name)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut child = child.map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!("{name} is not installed"),
            _ => format!("cannot start {name}: {error}"),
        })?;
        let stdin = child.stdin.take();
        let write = async {
            if let Some(mut stdin) = stdin {
                // A program that does not read its input may still succeed.
                let _ = stdin.write_all(input).await;
            }
        };
        let ((), ended) = tokio::join!(write, child.wait_with_output());
        let ended = ended.map_err(|error| format!("{name}: {error}"))?;
        let errors = String::from_utf8_lossy(&ended.stderr);
        let errors: String = errors.trim().chars().take(MAX_ERROR).collect();
        if ended.status.success() {
            return Ok(Said { output: ended.stdout, errors });
        }
        Err(format!("{name} failed ({}): {errors}", ended.status))
    }
}

/// Whether a program is in `PATH`.
pub(super) fn is_installed(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(name).is_file())
}
