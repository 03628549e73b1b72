//! Where the server is.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline::client::{Command, Target};

use crate::check::Outcome;

/// Writes the exit status of a server down.
const WITNESS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../witness.sh");

/// The exit status of what ends by TERM.
const TERMINATED: &str = "143";

/// What was named on the command line.
pub(crate) enum Place {
    /// A process that the client starts.
    Command(Vec<String>),
    /// A server that runs already.
    Url(String),
}

/// One server, to be connected to again and again.
pub(crate) struct Site<'a> {
    place: &'a Place,
    /// Where the witness writes.
    status: PathBuf,
}

impl<'a> Site<'a> {
    pub(crate) fn new(place: &'a Place) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bowline-walk-{}-{number}", std::process::id());
        Self { place, status: std::env::temp_dir().join(name) }
    }

    pub(crate) fn is_process(&self) -> bool {
        matches!(self.place, Place::Command(_))
    }

    pub(crate) fn target(&self) -> Target {
        match self.place {
            Place::Url(url) => url.as_str().into(),
            Place::Command(words) => {
                Command::new("sh").arg(WITNESS).arg(&self.status).args(words).into()
            }
        }
    }

    /// Forgets processes that were tried out before.
    pub(crate) fn begin(&self) {
        let _ = std::fs::remove_file(&self.status);
    }

    /// The process is gone: of its own accord, or, if it was busy, when it was told to.
    pub(crate) async fn end(&self, was_busy: bool) -> Outcome {
        if !self.is_process() {
            return Ok(());
        }
        let status = read(&self.status).await;
        self.begin();
        match status.as_deref() {
            Some("0") => Ok(()),
            Some(TERMINATED) if was_busy => Ok(()),
            Some(status) => Err(format!("the server ended with {status}").into()),
            None => Err("the server was killed, or still runs".into()),
        }
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        self.begin();
    }
}

/// What the witness wrote. It is a process of its own, and may be a moment late.
async fn read(file: &Path) -> Option<String> {
    const LOOKS: u32 = 100;
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
