//! Programs that are run for what they do. They are killed when nobody waits for them any more.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// How much of a complaint is passed on, in characters.
const MAX_COMPLAINT: usize = 300;

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

    /// Runs it to its end, with this input. Gives what it wrote.
    ///
    /// # Errors
    /// When it is not there, or fails; says which, and what it complained about.
    pub(super) async fn run(self, input: &[u8]) -> Result<String, String> {
        let name = &self.name;
        // Our own standard streams belong to the protocol.
        let child = Command::new(name)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut child = child.map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!("{name} is not installed"),
            _ => format!("{name} cannot be started: {error}"),
        })?;
        let stdin = child.stdin.take();
        let write = async {
            if let Some(mut stdin) = stdin {
                // One that does not read its input may still do its work.
                let _ = stdin.write_all(input).await;
            }
        };
        let ((), ended) = tokio::join!(write, child.wait_with_output());
        let ended = ended.map_err(|error| format!("{name}: {error}"))?;
        if ended.status.success() {
            return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
        }
        let complaint = String::from_utf8_lossy(&ended.stderr);
        let complaint: String = complaint.trim().chars().take(MAX_COMPLAINT).collect();
        Err(format!("{name} failed ({}): {complaint}", ended.status))
    }
}

/// Whether a program is where programs are.
pub(super) fn is_installed(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    folders.retain(|folder| folder.join(name).is_file());
    !folders.is_empty()
}
