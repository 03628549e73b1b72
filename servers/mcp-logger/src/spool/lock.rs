//! One process per folder.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Held while the folder is used. The system releases it when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "it is held, not read")] File);

impl Lock {
    /// `None` if another process holds it.
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        {
            use rustix::fs::{FlockOperation, flock};
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let file = options.open(path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => Ok(Some(Self(file))),
                Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
                Err(error) => Err(error.into()),
            }
        }
        #[cfg(not(unix))]
        {
            #[cfg(windows)]
            std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 0);
            match options.open(path) {
                Ok(file) => Ok(Some(Self(file))),
                // A sharing violation.
                Err(error) if error.raw_os_error() == Some(32) => Ok(None),
                Err(error) => Err(error),
            }
        }
    }
}
