//! Session files: one JSON object per line, described in `docs/session-file.md`. What a tap sends
//! to its viewers is the same.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bowline_proto::json::Json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the format. It grows when older readers would misread the file.
pub const FORMAT: u32 = 1;

/// A line of a session file. Members that do not belong to its kind are left out.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Line {
    /// What the line records.
    pub kind: LineKind,
    /// Seconds since the session began.
    pub at: f64,
    /// Which way a message went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Way>,
    /// The number of the connection, where several were open at once; of the exchange, in a tap of
    /// HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    /// The exact message, if it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Json>,
    /// Anything that is not JSON: a line of standard error, a fault, noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How long the whole frame was, if `text` is only its beginning; how many observations were
    /// lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Seconds between a request and this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<f64>,
    /// The head of an HTTP message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpHead>,
    /// How the session began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Opening>,
}

impl Line {
    /// About how many bytes the line takes in memory.
    #[must_use]
    pub fn weight(&self) -> usize {
        let message = self.message.as_ref().map_or(0, |message| message.as_str().len());
        let headers = self.http.iter().flat_map(|http| &http.headers);
        let headers: usize = headers.map(|(name, value)| name.len() + value.len()).sum();
        let text = self.text.as_ref().map_or(0, String::len);
        size_of::<Self>() + message + headers + text
    }

    /// The line as text, with the line break that ends it.
    ///
    /// # Errors
    /// When the time is not a number.
    pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut text = serde_json::to_vec(self)?;
        text.retain(|byte| !matches!(byte, b'\n' | b'\r'));
        text.push(b'\n');
        Ok(text)
    }
}

/// What a line records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineKind {
    /// The beginning: always the first line.
    Session,
    /// A message, or what came in place of one.
    Message,
    /// The head of an HTTP message.
    Http,
    /// A line of the server's standard error.
    Stderr,
    /// Something unusable that the server sent, or a fault that was injected.
    Fault,
    /// Something is missing here, because it came faster than it could be written.
    Lost,
    /// The end.
    End,
    /// A kind from a later version.
    #[default]
    #[serde(other)]
    Other,
}

/// Which way something went, from the client's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// From the client to the server.
    Sent,
    /// From the server to the client.
    Received,
}

impl Way {
    /// The other way.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Sent => Self::Received,
            Self::Received => Self::Sent,
        }
    }
}

/// The head of an HTTP message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HttpHead {
    /// The same number for a request and its response.
    pub exchange: u64,
    /// The method of the request.
    pub method: String,
    /// The URL of the request.
    pub url: String,
    /// The status of a response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The headers, in order.
    pub headers: Vec<(String, String)>,
}

/// How a session began.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Opening {
    /// The version of the format.
    pub format: u32,
    /// The program that writes the file.
    pub program: String,
    /// When, as RFC 3339 in UTC.
    pub started: String,
    /// The server: a URL, or a command with its arguments.
    pub target: Value,
    /// What a tap knows about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tap: Option<TapOpening>,
}

/// What a tap knows about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapOpening {
    /// The server's name, for people.
    pub name: String,
    /// The tap's process.
    pub pid: u32,
    /// The program that started it: the client, as far as the system tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

impl Opening {
    /// A session that begins now.
    #[must_use]
    pub fn now(target: Value) -> Self {
        Self {
            format: FORMAT,
            program: format!("bowline {}", env!("CARGO_PKG_VERSION")),
            started: jiff::Timestamp::now().to_string(),
            target,
            tap: None,
        }
    }

    /// The server on one line.
    #[must_use]
    pub fn server(&self) -> String {
        if let Some(url) = self.target.get("url").and_then(Value::as_str) {
            return url.to_owned();
        }
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let command = self.target.get("command").into_iter();
        let args = self.target.get("args").and_then(Value::as_array).into_iter().flatten();
        command.chain(args).map(word).collect::<Vec<_>>().join(" ")
    }
}

/// How much of a session is kept on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// The most bytes in one file.
    pub bytes: u64,
    /// How many files are kept beside the current one: `FILE.1` is the latest of them.
    pub kept: usize,
}

/// Writes a session file.
#[derive(Debug)]
pub struct Recorder {
    open: Mutex<Option<Open>>,
    rotation: Option<(PathBuf, Rotation)>,
}

#[derive(Debug)]
struct Open {
    file: File,
    written: u64,
    /// The first line, which every file repeats.
    opening: Vec<u8>,
}

impl Recorder {
    /// Opens a file that only its owner can read; replaces it, or appends to it.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn create(path: &Path, appends: bool) -> io::Result<Self> {
        let file = private(path, appends)?;
        let open = Open { file, written: 0, opening: Vec::new() };
        Ok(Self { open: Mutex::new(Some(open)), rotation: None })
    }

    /// Replaces a file, and begins another one whenever it is full.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn rotating(path: &Path, rotation: Rotation) -> io::Result<Self> {
        let recorder = Self::create(path, false)?;
        Ok(Self { rotation: Some((path.to_owned(), rotation)), ..recorder })
    }

    /// Writes a line at once, so that it survives a crash. After a failure, which is returned once,
    /// nothing more is written.
    ///
    /// # Errors
    /// When the line cannot be written.
    pub fn write(&self, line: &Line) -> io::Result<()> {
        self.write_text(&line.encode()?, line.kind == LineKind::Session)
    }

    /// The same for lines that are encoded already; `is_opening` marks the first one.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write_text(&self, text: &[u8], is_opening: bool) -> io::Result<()> {
        let mut slot = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = slot.as_mut() else { return Ok(()) };
        if is_opening {
            open.opening = text.to_vec();
        }
        open.write(text, self.rotation.as_ref()).inspect_err(|_| *slot = None)
    }
}

impl Open {
    fn write(&mut self, text: &[u8], rotation: Option<&(PathBuf, Rotation)>) -> io::Result<()> {
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let opening = u64::try_from(self.opening.len()).unwrap_or(u64::MAX);
        if let Some((path, Rotation { bytes, kept })) = rotation
            && self.written.saturating_add(length) > *bytes
            && self.written > opening
        {
            shift(path, *kept)?;
            self.file = private(path, false)?;
            self.file.write_all(&self.opening)?;
            self.written = opening;
        }
        self.file.write_all(text)?;
        self.written += length;
        Ok(())
    }
}

/// Renames `FILE` to `FILE.1`, `FILE.1` to `FILE.2` and so on; the oldest is overwritten.
fn shift(path: &Path, kept: usize) -> io::Result<()> {
    let numbered = |number: usize| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    for number in (1..kept).rev().filter(|number| numbered(*number).exists()) {
        std::fs::rename(numbered(number), numbered(number + 1))?;
    }
    if kept > 0 { std::fs::rename(path, numbered(1)) } else { Ok(()) }
}

/// Opens a file that only its owner can read, also if it was there before.
fn private(path: &Path, appends: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(appends).write(!appends).truncate(!appends);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    if file.metadata()?.is_file() {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_files_are_rotated_and_each_begins_with_the_session() {
        let folder = std::env::temp_dir().join(format!("bowline-rotation-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("s.jsonl");
        let recorder = Recorder::rotating(&path, Rotation { bytes: 30, kept: 2 }).unwrap();
        recorder.write_text(b"opening\n", true).unwrap();
        for number in 0..8 {
            recorder.write_text(format!("line {number}...\n").as_bytes(), false).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(read("s.jsonl"), "opening\nline 6...\nline 7...\n");
        assert_eq!(read("s.jsonl.1"), "opening\nline 4...\nline 5...\n");
        assert_eq!(read("s.jsonl.2"), "opening\nline 2...\nline 3...\n");
        assert!(!folder.join("s.jsonl.3").exists());
        // A line that is longer than a file gets one of its own.
        recorder.write_text(&[b'x'; 100], false).unwrap();
        assert_eq!(read("s.jsonl").len(), 108);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
