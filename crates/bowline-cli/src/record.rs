//! Session files: one JSON object per line, described in `docs/session-file.md`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use bowline::Json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;

/// The version of the format. It grows when older readers would misread the file.
pub(crate) const FORMAT: u32 = 1;

/// A line of a session file. Members that do not belong to its kind are left out.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) kind: LineKind,
    /// Seconds since the session began.
    pub(crate) at: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) direction: Option<Way>,
    /// The number of the connection, where several were open at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connection: Option<u64>,
    /// The exact message, if it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<Json>,
    /// Anything that is not JSON: a line of standard error, a fault, noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// Seconds between a request and this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) took: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) http: Option<HttpHead>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<Opening>,
}

/// What a line records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LineKind {
    /// The beginning: always the first line.
    Session,
    /// A message, or what came in place of one.
    Message,
    Http,
    Stderr,
    /// Something unusable that the server sent.
    Fault,
    End,
    /// A kind from a later version.
    #[default]
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Way {
    Sent,
    Received,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HttpHead {
    /// The same number for a request and its response.
    pub(crate) exchange: u64,
    pub(crate) method: String,
    pub(crate) url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    pub(crate) headers: Vec<(String, String)>,
}

/// How a session began.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Opening {
    pub(crate) format: u32,
    pub(crate) program: String,
    /// When, as RFC 3339 in UTC.
    pub(crate) started: String,
    /// The server: a URL, or a command with its arguments.
    pub(crate) target: Value,
}

#[derive(Debug)]
pub(crate) struct Recorder {
    file: Mutex<Option<File>>,
}

impl Recorder {
    /// Opens a file that only its owner can read; replaces it, or appends to it.
    pub(crate) fn create(path: &Path, appends: bool) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        options.create(true).append(appends).write(!appends).truncate(!appends);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path);
        let file = file.and_then(private);
        let file = file.map_err(|error| Failure::file("--record", path, error))?;
        Ok(Self { file: Mutex::new(Some(file)) })
    }

    /// Writes a line at once, so that it survives a crash. After a failure, which is returned once,
    /// nothing more is written.
    pub(crate) fn write(&self, line: &Line) -> Result<(), std::io::Error> {
        let mut text = serde_json::to_vec(line)?;
        text.retain(|byte| !matches!(byte, b'\n' | b'\r'));
        text.push(b'\n');
        let mut slot = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = slot.as_mut() else { return Ok(()) };
        file.write_all(&text).inspect_err(|_| *slot = None)
    }
}

/// Lets only its owner read a file that was there before, too.
fn private(file: File) -> std::io::Result<File> {
    #[cfg(unix)]
    if file.metadata()?.is_file() {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}
