//! Reading an audit log: whether it is whole, and where it ends.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{DIGEST, NONE, hex};

/// What is wrong with a log, and in which line.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// It cannot be read.
    #[error("cannot be read")]
    Read(#[from] io::Error),
    /// A line is not a record.
    #[error("line {0} is not an audit record")]
    NotARecord(u64),
    /// A line was changed.
    #[error("line {0} was changed: its digest is that of another text")]
    Changed(u64),
    /// Lines are missing, or others were inserted.
    #[error("the chain is broken before line {0}: a line was removed, inserted or moved")]
    Cut(u64),
}

/// Checks a whole log. Returns how many records it has, and the newest digest.
///
/// # Errors
/// See [`Broken`].
pub fn verify(path: &Path) -> Result<(u64, String), Broken> {
    let (mut previous, mut at) = (NONE.to_owned(), 0);
    for line in BufReader::new(File::open(path)?).split(b'\n') {
        let line = line?;
        at += 1;
        let line = std::str::from_utf8(&line).map_err(|_| Broken::NotARecord(at))?;
        let (tail, text, hash) = Tail::read(line).ok_or(Broken::NotARecord(at))?;
        if hex(digest(&SHA256, text.as_bytes()).as_ref()) != hash {
            return Err(Broken::Changed(at));
        }
        if tail.previous != previous || tail.number != at {
            return Err(Broken::Cut(at));
        }
        previous = hash;
    }
    Ok((at, previous))
}

/// Where the last record ends, its number and its digest.
pub(super) fn end(file: &mut File, length: u64) -> io::Result<(u64, u64, String)> {
    let Last { complete, line, rest } = last_line(file, length)?;
    let (number, digest) = match line {
        Some(line) => {
            let (tail, _, digest) = Tail::read(&line).ok_or_else(foreign)?;
            (tail.number, digest)
        }
        None => (0, NONE.to_owned()),
    };
    // Only what a crash has left of the next record may be removed: the path may be a mistake.
    let next = format!("{{\"number\":{},\"time\":\"", number + 1);
    let is_ours = next.bytes().zip(&rest).all(|(ours, byte)| ours == *byte);
    match is_ours && rest.len() as u64 <= LONGEST {
        true => Ok((complete, number, digest)),
        false => Err(foreign()),
    }
}

/// How long a record may be. Names are clipped far below it.
const LONGEST: u64 = 64 << 10;

fn foreign() -> io::Error {
    let what = "it does not end with an audit record; help: choose another file";
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The end of a file.
struct Last {
    /// Where the last complete line ends.
    complete: u64,
    /// Its text.
    line: Option<String>,
    /// What follows it; if there is no such line, the last bytes of the file.
    rest: Vec<u8>,
}

fn last_line(file: &mut File, length: u64) -> io::Result<Last> {
    let start = length.saturating_sub(2 * LONGEST);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(2 * LONGEST).read_to_end(&mut bytes)?;
    let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
        return Ok(Last { complete: 0, line: None, rest: bytes });
    };
    let begin = bytes[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = String::from_utf8_lossy(&bytes[begin..end]).into_owned();
    let rest = bytes.split_off(end + 1);
    Ok(Last { complete: start + end as u64 + 1, line: Some(line), rest })
}

/// What links a line to the one before it.
#[derive(Deserialize)]
struct Tail {
    number: u64,
    previous: String,
}

impl Tail {
    /// The links of a line, the text that its digest is of, and the digest.
    fn read(line: &str) -> Option<(Self, &str, String)> {
        serde_json::from_str::<&RawValue>(line).ok()?;
        let (text, digest) = line.rsplit_once(DIGEST)?;
        let digest = digest.strip_suffix("\"}")?;
        Some((serde_json::from_str(line).ok()?, text, digest.to_owned()))
    }
}
