//! The server, and how to reach it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline::client::{Command, Target};

use crate::check::Outcome;

/// Records the exit status of a server.
const WITNESS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../witness.sh");

/// The exit status of a process that SIGTERM ended.
const TERMINATED: &str = "143";

/// How to reach the server, from the command line.
pub(crate) enum Address {
    /// A process that the client starts.
    Command(Vec<String>),
    /// A running server.
    Url(String),
}

/// A server that is connected to repeatedly.
pub(crate) struct Site<'a> {
    address: &'a Address,
    /// The file that the witness writes.
    status: PathBuf,
}

impl<'a> Site<'a> {
    pub(crate) fn new(address: &'a Address) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bowline-walk-{}-{number}", std::process::id());
        Self { address, status: std::env::temp_dir().join(name) }
    }

    pub(crate) fn is_process(&self) -> bool {
        matches!(self.address, Address::Command(_))
    }

    pub(crate) fn target(&self) -> Target {
        match self.address {
            Address::Url(url) => url.as_str().into(),
            Address::Command(words) => {
                Command::new("sh").arg(WITNESS).arg(&self.status).args(words).into()
            }
        }
    }

    /// Discards the status of an earlier process.
    pub(crate) fn begin(&self) {
        let _ = std::fs::remove_file(&self.status);
    }

    /// Waits for the process to exit: on its own or, if it was busy, on SIGTERM.
    pub(crate) async fn end(&self, was_busy: bool) -> Outcome {
        if !self.is_process() {
            return Ok(());
        }
        let status = read(&self.status).await;
        self.begin();
        match status.as_deref() {
            Some("0") => Ok(()),
            Some(TERMINATED) if was_busy => Ok(()),
            Some(status) => Err(format!("the server exited with {status}").into()),
            None => Err("the server was killed or is still running".into()),
        }
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        self.begin();
    }
}

/// Reads what the witness wrote, which may take a moment.
async fn read(file: &Path) -> Option<String> {
    const LOOKS: u32 = 6_000;
    for _ in 0..LOOKS {
        if let Ok(text) = tokio::fs::read_to_string(file).await
            && !text.is_empty()
        {
            return Some(text.trim().to_owned());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    None
}
