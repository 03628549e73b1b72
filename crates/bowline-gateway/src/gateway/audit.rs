//! The audit log: one JSON text per line, each with the digest of the one before it.
//!
//! A line that is changed, removed or inserted breaks the chain. Lines that are removed at the end
//! do not: keep the newest digest, which `bowline gateway status` shows, somewhere else.
//!
//! One gateway writes a log, or the chain would have two ends: it is locked where files can be.

mod reading;
mod sole;

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ring::digest::{SHA256, digest};
use serde::Serialize;
use tokio::time::Instant;

pub use self::reading::{Broken, verify};

/// An audit log that is open.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    chain: Mutex<Chain>,
}

#[derive(Debug)]
struct Chain {
    file: File,
    number: u64,
    last: String,
    /// How long the file is, as far as it is complete.
    length: u64,
    trouble: Option<Trouble>,
}

impl Drop for Chain {
    fn drop(&mut self) {
        // Closing is not enough while a process that is being started still has the file.
        sole::unlock(&self.file);
    }
}

/// What could not be written, and why.
#[derive(Debug)]
struct Trouble {
    why: String,
    tried: Instant,
    /// In order, with their times.
    waiting: Vec<(String, Record)>,
}

/// How many records wait for a log that cannot be written. No call begins while one waits, so only
/// calls that run already can add to them.
const WAITING: usize = 4096;

/// How often a log that cannot be written is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// One record.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Record {
    /// What happened: `call`, or `opened`.
    pub event: &'static str,
    /// The user, as the token names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Who says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// A name for people, from the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
    /// The client program, as it introduces itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Where the request came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The server's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The server's own name of what was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name in the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The SHA-256 of the arguments. The arguments themselves are not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_sha256: Option<String>,
    /// `allow` or `deny`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<&'static str>,
    /// The rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microseconds: Option<u64>,
    /// The caller's trace context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The newest digest of the file that this one follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// Bytes of a line that a crash cut off, which were removed when the log was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_bytes: Option<u64>,
}

/// What surrounds a record in its line.
#[derive(Serialize)]
struct Envelope<'a> {
    number: u64,
    time: &'a str,
    #[serde(flatten)]
    record: &'a Record,
    previous: &'a str,
}

/// The first line has no line before it.
const NONE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The member that ends a line, with the digest of everything before it.
const DIGEST: &str = ",\"sha256\":\"";

impl Audit {
    /// Opens a log, or begins one. Only its owner can read it.
    ///
    /// # Errors
    /// When the file cannot be read or written, does not end with a record, or is the log of
    /// another gateway that runs.
    pub fn open(path: &Path) -> io::Result<Self> {
        let chain = Mutex::new(Chain::open(path, None)?);
        Ok(Self { path: path.to_owned(), chain })
    }

    /// Appends a record. One that cannot be written is kept, and written first when the log can be
    /// written again.
    ///
    /// # Errors
    /// When it cannot be written now.
    pub fn write(&self, record: &Record) -> io::Result<()> {
        let mut chain = self.lock();
        let time = jiff::Timestamp::now().to_string();
        if let Some(trouble) = &mut chain.trouble {
            trouble.keep(time, record);
            return Err(trouble.error());
        }
        let Err(error) = chain.append(&time, record) else { return Ok(()) };
        let why = error.to_string();
        let waiting = vec![(time, record.clone())];
        chain.trouble = Some(Trouble { why, tried: Instant::now(), waiting });
        Err(error)
    }

    /// Whether records can be written. A log that could not is opened again, at most once a second.
    ///
    /// # Errors
    /// Why they cannot.
    pub fn ready(&self) -> io::Result<()> {
        let mut chain = self.lock();
        let Some(trouble) = &chain.trouble else { return Ok(()) };
        if trouble.tried.elapsed() < AGAIN {
            return Err(trouble.error());
        }
        self.recover(&mut chain)
    }

    /// Opens the file again, which may have been moved away or cut: another file begins with the
    /// digest of the one that it follows.
    ///
    /// # Errors
    /// When it cannot be opened. Records go where they went before.
    pub fn reopen(&self) -> io::Result<()> {
        let mut chain = self.lock();
        if chain.trouble.is_some() || !chain.is_at(&self.path) {
            self.recover(&mut chain)
        } else {
            Ok(())
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a path leads to it, however it is spelled.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        sole::is_one_place(&self.path, path)
    }

    /// Goes on in the file that is at the path now, with what waits.
    fn recover(&self, chain: &mut Chain) -> io::Result<()> {
        let follows = (!chain.is_at(&self.path)).then(|| chain.last.clone());
        // It may be the same file.
        sole::unlock(&chain.file);
        let opened = Chain::open(&self.path, follows).and_then(|mut opened| {
            let waiting = chain.trouble.as_ref().map(|it| it.waiting.as_slice());
            for (time, record) in waiting.unwrap_or_default() {
                opened.append(time, record)?;
            }
            Ok(opened)
        });
        match opened {
            Ok(opened) => *chain = opened,
            Err(error) => {
                let _ = sole::lock(&chain.file);
                if let Some(trouble) = &mut chain.trouble {
                    (trouble.why, trouble.tried) = (error.to_string(), Instant::now());
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Chain> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many records there are, and the newest digest.
    #[must_use]
    pub fn head(&self) -> (u64, String) {
        let chain = self.lock();
        (chain.number, chain.last.clone())
    }

    /// From now on, nothing can be written.
    #[cfg(test)]
    pub(super) fn fail(&self) {
        let mut chain = self.lock();
        sole::unlock(&chain.file);
        chain.file = File::open(&self.path).unwrap();
    }
}

impl Trouble {
    fn error(&self) -> io::Error {
        io::Error::other(format!("an earlier record could not be written: {}", self.why))
    }

    fn keep(&mut self, time: String, record: &Record) {
        if self.waiting.len() < WAITING {
            self.waiting.push((time, record.clone()));
        }
    }
}

fn file(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    sole::lock(&file)?;
    let length = file.seek(SeekFrom::End(0))?;
    Ok((file, length))
}

impl Chain {
    fn open(path: &Path, follows: Option<String>) -> io::Result<Self> {
        let (mut file, length) = file(path)?;
        let end = reading::end(&mut file, length).inspect_err(|_| sole::unlock(&file));
        let (complete, number, last) = end?;
        if complete < length {
            file.set_len(complete)?;
        }
        let mut chain = Self { file, number, last, length: complete, trouble: None };
        let removed_bytes = Some(length - complete).filter(|bytes| *bytes > 0);
        let opened = Record { event: "opened", follows, removed_bytes, ..Record::default() };
        chain.append(&jiff::Timestamp::now().to_string(), &opened)?;
        Ok(chain)
    }

    fn append(&mut self, time: &str, record: &Record) -> io::Result<()> {
        let number = self.number + 1;
        let envelope = Envelope { number, time, record, previous: &self.last };
        let mut line = serde_json::to_string(&envelope)?;
        line.pop();
        let hash = hex(digest(&SHA256, line.as_bytes()).as_ref());
        line = format!("{line}{DIGEST}{hash}\"}}\n");
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // What was written of it is removed when the file is opened again, at the latest.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        (self.number, self.last) = (number, hash);
        self.length += line.len() as u64;
        Ok(())
    }

    /// Whether the file is still the one at a path, and as long as it was.
    fn is_at(&self, path: &Path) -> bool {
        let Ok(there) = std::fs::metadata(path) else { return false };
        there.len() >= self.length && self.is_same(&there)
    }

    #[cfg(unix)]
    fn is_same(&self, there: &std::fs::Metadata) -> bool {
        use std::os::unix::fs::MetadataExt;
        let ours = self.file.metadata();
        ours.is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
    }

    #[cfg(not(unix))]
    fn is_same(&self, _: &std::fs::Metadata) -> bool {
        true
    }
}

/// Bytes as hexadecimal text.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        use std::fmt::Write as _;
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("bowline-audit-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join(name);
        let _ = std::fs::remove_file(&path);
        path
    }

    fn filled(path: &Path) -> Vec<String> {
        let audit = Audit::open(path).unwrap();
        for name in ["a", "b", "c"] {
            let record = Record { event: "call", name: Some(name.to_owned()), ..Record::default() };
            audit.write(&record).unwrap();
        }
        std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_removed_changed_or_moved_line_is_detected() {
        let path = log("chain");
        let lines = filled(&path);
        assert_eq!(verify(&path).unwrap().0, 4);
        let check = |lines: &[&str]| {
            std::fs::write(&path, lines.join("\n") + "\n").unwrap();
            verify(&path).unwrap_err().to_string()
        };
        let [one, two, three, four] = [0, 1, 2, 3].map(|at| lines[at].as_str());
        assert!(check(&[one, three, four]).contains("before line 2"));
        assert!(check(&[two, three, four]).contains("before line 1"));
        assert!(check(&[one, three, two, four]).contains("before line 2"));
        let changed = two.replace("\"a\"", "\"x\"");
        assert!(check(&[one, &changed, three]).contains("line 2 was changed"));
        assert!(check(&[one, "{}"]).contains("line 2 is not"));
    }

    #[test]
    fn what_could_not_be_written_is_written_first_when_that_works_again() {
        let path = log("trouble");
        filled(&path);
        let audit = Audit::open(&path).unwrap();
        audit.fail();
        let named =
            |name: &str| Record { event: "call", name: Some(name.to_owned()), ..Record::default() };
        assert!(audit.write(&named("lost")).is_err());
        assert!(audit.write(&named("late")).is_err());
        assert!(audit.ready().unwrap_err().to_string().contains("could not be written"));
        audit.reopen().unwrap();
        audit.ready().unwrap();
        audit.write(&named("after")).unwrap();
        assert_eq!(verify(&path).unwrap().0, 9);
        let text = std::fs::read_to_string(&path).unwrap();
        let at = ["lost", "late", "after"].map(|name| text.find(name).unwrap());
        assert!(at.is_sorted(), "{text}");
    }

    #[cfg(unix)]
    #[test]
    fn a_log_that_was_moved_or_cut_goes_on_in_a_new_file_that_names_the_old_one() {
        let (path, old) = (log("moved"), log("moved-old"));
        filled(&path);
        let audit = Audit::open(&path).unwrap();
        let last = audit.head().1;
        std::fs::rename(&path, &old).unwrap();
        audit.reopen().unwrap();
        assert_eq!(verify(&old).unwrap(), (5, last.clone()));
        assert_eq!(verify(&path).unwrap().0, 1);
        assert!(std::fs::read_to_string(&path).unwrap().contains(&last));
        // Nothing has changed: nothing is added.
        audit.reopen().unwrap();
        assert_eq!(verify(&path).unwrap().0, 1);
        std::fs::write(&path, "").unwrap();
        audit.reopen().unwrap();
        assert_eq!(verify(&path).unwrap().0, 1);
    }

    #[test]
    fn a_log_goes_on_after_a_crash_in_the_middle_of_a_line() {
        let path = log("crash");
        let lines = filled(&path);
        std::fs::write(&path, format!("{}\n{}\n{{\"num", lines[0], lines[1])).unwrap();
        Audit::open(&path).unwrap();
        assert_eq!(verify(&path).unwrap().0, 3);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("\"removed_bytes\":5"), "{text}");
        for cut in ["", "{\"number\":1,\"time\":\"2026"] {
            std::fs::write(&path, cut).unwrap();
            Audit::open(&path).unwrap();
            assert_eq!(verify(&path).unwrap().0, 1);
        }
    }

    #[test]
    fn a_file_that_is_not_a_log_stays_as_it_is() {
        let path = log("precious");
        let lines = filled(&path);
        let record = format!("{}\n", lines[0]);
        for precious in [
            "something else\n",
            "no line end",
            "{\"number\": 1}",
            &format!("{record}and notes"),
            &format!("{record}{{\"number\":1,\"time\":\""),
            &"x".repeat(300 << 10),
            &format!("{record}{{\"number\":2,\"time\":\"{}", "x".repeat(300 << 10)),
        ] {
            std::fs::write(&path, precious).unwrap();
            let told = Audit::open(&path).unwrap_err().to_string();
            assert!(told.contains("does not end with an audit record"), "{told}");
            assert!(std::fs::read_to_string(&path).unwrap() == precious);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_log_has_one_writer_however_its_path_is_spelled() {
        let path = log("sole");
        let other = path.with_file_name(".").join("sole");
        let audit = Audit::open(&path).unwrap();
        let told = Audit::open(&other).unwrap_err();
        assert_eq!(told.kind(), io::ErrorKind::ResourceBusy);
        assert!(audit.is_at(&other) && !audit.is_at(&path.with_file_name("another")));
        std::fs::rename(&path, path.with_file_name("sole-old")).unwrap();
        assert!(audit.is_at(&other));
        audit.reopen().unwrap();
        // After trouble the same file is opened again, and stays locked.
        audit.fail();
        assert!(audit.write(&Record { event: "call", ..Record::default() }).is_err());
        audit.reopen().unwrap();
        assert!(Audit::open(&path).is_err());
        drop(audit);
        Audit::open(&path).unwrap();
        assert_eq!(verify(&path).unwrap().0, 4);
    }
}
