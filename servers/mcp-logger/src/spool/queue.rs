//! The messages that wait for one destination: a folder of small files.
//!
//! A file has up to [`GROUP`] messages, each after its length. It is written under another name,
//! flushed to the disk and renamed, so that it is there as a whole or not at all; it is deleted
//! once its messages were sent. Its name is its number and how many messages it has.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The most messages of one file, and those that one connection sends before it must be closed
/// without an error.
pub(super) const GROUP: usize = 100;

/// The file that says where the messages go.
const DESTINATION: &str = "destination.json";

/// Files that are being written end with this.
const UNFINISHED: &str = "tmp";

/// The messages for one destination.
#[derive(Debug)]
pub(super) struct Queue {
    folder: PathBuf,
    files: VecDeque<Stored>,
    next: u64,
}

#[derive(Debug, Clone, Copy)]
struct Stored {
    number: u64,
    messages: usize,
    bytes: u64,
}

/// The first messages of a queue.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) messages: Vec<Vec<u8>>,
    files: usize,
}

impl Queue {
    /// Makes an empty one.
    pub(super) fn create(folder: PathBuf, destination: &[u8]) -> io::Result<Self> {
        private_folder(&folder)?;
        write(&folder, DESTINATION, destination)?;
        if let Some(parent) = folder.parent() {
            sync(parent)?;
        }
        Ok(Self { folder, files: VecDeque::new(), next: 0 })
    }

    /// Opens one that an earlier process left, with the text that says where its messages go.
    /// `None` if it has no messages; then it is deleted.
    pub(super) fn open(folder: PathBuf) -> io::Result<Option<(Self, Vec<u8>)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(UNFINISHED) {
                fs::remove_file(entry.path())?;
            } else if let Some((number, messages)) = parse_name(&name) {
                files.push(Stored { number, messages, bytes: entry.metadata()?.len() });
            }
        }
        if files.is_empty() {
            fs::remove_dir_all(&folder)?;
            return Ok(None);
        }
        files.sort_unstable_by_key(|it| it.number);
        let next = files.last().map_or(0, |it| it.number + 1);
        let destination = fs::read(folder.join(DESTINATION))?;
        Ok(Some((Self { folder, files: files.into(), next }, destination)))
    }

    /// How many messages it has.
    pub(super) fn messages(&self) -> usize {
        self.files.iter().map(|it| it.messages).sum()
    }

    /// How many bytes its files have.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|it| it.bytes).sum()
    }

    /// Adds messages: all, or none if that fails.
    pub(super) fn add(&mut self, messages: &[Vec<u8>]) -> io::Result<()> {
        let before = self.files.len();
        for group in messages.chunks(GROUP) {
            if let Err(error) = self.add_file(group) {
                while self.files.len() > before {
                    self.delete_last();
                }
                return Err(error);
            }
        }
        sync(&self.folder)
    }

    fn add_file(&mut self, group: &[Vec<u8>]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(size(group));
        for message in group {
            let length = u32::try_from(message.len()).map_err(io::Error::other)?;
            bytes.extend(length.to_be_bytes());
            bytes.extend(message);
        }
        let stored = Stored {
            number: self.next,
            messages: group.len(),
            bytes: bytes.len().try_into().map_err(io::Error::other)?,
        };
        self.next += 1;
        write(&self.folder, &stored.name(), &bytes)?;
        self.files.push_back(stored);
        Ok(())
    }

    fn delete_last(&mut self) {
        if let Some(stored) = self.files.pop_back() {
            let _ = fs::remove_file(self.folder.join(stored.name()));
        }
    }

    /// Reads the messages of the first files.
    pub(super) fn head(&mut self) -> io::Result<Head> {
        let mut head = Head { messages: Vec::new(), files: 0 };
        while let Some(stored) = self.files.get(head.files) {
            if head.files > 0 && head.messages.len() + stored.messages > GROUP {
                break;
            }
            let path = self.folder.join(stored.name());
            let read = fs::read(&path)?;
            match split(&read).filter(|it| it.len() == stored.messages) {
                Some(messages) => head.messages.extend(messages),
                // Whoever did that was not us. Half a message is never sent.
                None => {
                    fs::rename(&path, path.with_extension("broken"))?;
                    tracing::error!(file = %path.display(), "a file of the spool is damaged and was set aside");
                    self.files.remove(head.files);
                    continue;
                }
            }
            head.files += 1;
        }
        Ok(head)
    }

    /// Deletes what was read and sent.
    pub(super) fn remove(&mut self, head: &Head) -> io::Result<()> {
        for _ in 0..head.files {
            let Some(stored) = self.files.front() else { break };
            fs::remove_file(self.folder.join(stored.name()))?;
            self.files.pop_front();
        }
        Ok(())
    }

    /// Deletes the folder of an empty queue, unless something that is not ours is in it.
    pub(super) fn delete(self) {
        let _ = fs::remove_file(self.folder.join(DESTINATION));
        let _ = fs::remove_dir(&self.folder);
    }
}

impl Stored {
    fn name(&self) -> String {
        format!("{:016}.{}", self.number, self.messages)
    }
}

/// How many bytes a file takes.
pub(super) fn size(messages: &[Vec<u8>]) -> usize {
    messages.iter().map(|message| 4 + message.len()).sum()
}

/// Makes a folder that only its owner can read.
pub(super) fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

fn parse_name(name: &str) -> Option<(u64, usize)> {
    let (number, messages) = name.split_once('.')?;
    Some((number.parse().ok()?, messages.parse().ok()?))
}

/// The messages of a file; `None` if it is damaged.
fn split(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (message, rest) =
            rest.split_at_checked(u32::from_be_bytes(*length).try_into().ok()?)?;
        messages.push(message.to_vec());
        bytes = rest;
    }
    Some(messages)
}

/// Writes a whole file, or none.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let unfinished = folder.join(format!("{name}.{UNFINISHED}"));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&unfinished).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&unfinished, folder.join(name)));
    if renamed.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    renamed
}

/// Flushes the names in a folder to the disk, where that is possible.
fn sync(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let name = format!("mcp-logger-queue-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    fn numbered(numbers: std::ops::Range<usize>) -> Vec<Vec<u8>> {
        numbers.map(|number| format!("{number}\0\n").into_bytes()).collect()
    }

    #[test]
    fn messages_come_back_in_order_after_a_restart() {
        let folder = folder("order");
        let mut queue = Queue::create(folder.clone(), b"{}").unwrap();
        queue.add(&numbered(0..250)).unwrap();
        queue.add(&numbered(250..251)).unwrap();
        // What a crash can leave behind, and what only damage can.
        fs::write(folder.join("0000000000000099.1.tmp"), [0, 0]).unwrap();
        fs::write(folder.join("0000000000000098.1"), [0, 0, 0, 9, b'x']).unwrap();
        let (mut queue, destination) = Queue::open(folder.clone()).unwrap().unwrap();
        assert_eq!((queue.messages(), destination.as_slice()), (252, b"{}".as_slice()));
        let mut all = Vec::new();
        loop {
            let head = queue.head().unwrap();
            if head.messages.is_empty() {
                break;
            }
            assert!(head.messages.len() <= GROUP);
            all.extend(head.messages.clone());
            queue.remove(&head).unwrap();
        }
        assert_eq!(all, numbered(0..251));
        assert!(folder.join("0000000000000098.broken").exists());
        assert!(!folder.join("0000000000000099.1.tmp").exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn files_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = folder("private");
        let mut queue = Queue::create(folder.clone(), b"{}").unwrap();
        queue.add(&numbered(0..1)).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        for entry in fs::read_dir(&folder).unwrap() {
            assert_eq!(mode(&entry.unwrap().path()), 0o600);
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_empty_queue_leaves_nothing() {
        let folder = folder("empty");
        let mut queue = Queue::create(folder.clone(), b"{}").unwrap();
        assert!(Queue::open(folder.clone()).unwrap().is_none());
        assert!(!folder.exists());
        queue = Queue::create(queue.folder, b"{}").unwrap();
        queue.delete();
        assert!(!folder.exists());
    }
}
