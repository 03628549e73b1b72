//! One writer for a file.
//!
//! Only a lock that somebody else holds keeps a log from being written: not every file system has
//! locks. On Windows nothing is locked, because a log is opened again while it is open.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Locks a file for this handle, until it is unlocked or the process ends.
///
/// # Errors
/// When another one has locked it.
#[cfg(unix)]
pub(super) fn lock(file: &File) -> io::Result<()> {
    use rustix::fs::{FlockOperation, flock};
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let what = "another gateway writes this audit log; help: choose another file";
            Err(io::Error::new(io::ErrorKind::ResourceBusy, what))
        }
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
pub(super) fn lock(_: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
pub(super) fn unlock(file: &File) {
    // A file system without locks has nothing to unlock.
    let _ = rustix::fs::flock(file, rustix::fs::FlockOperation::Unlock);
}

#[cfg(not(unix))]
pub(super) fn unlock(_: &File) {}

/// Whether two paths lead to one file, also if it does not exist now.
pub(super) fn is_one_place(one: &Path, other: &Path) -> bool {
    one == other || place(one).is_some_and(|it| place(other) == Some(it))
}

/// What is the same for all spellings of a path.
fn place(path: &Path) -> Option<PathBuf> {
    if let Ok(place) = path.canonicalize() {
        return Some(place);
    }
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new(".")).canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}
