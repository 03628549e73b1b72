//! Why a file cannot be used, or a request to it failed.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use bowline::tasks::StoreError;

/// Why a file of tasks cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It is open already.
    #[error(
        "{}: another process uses this file, or this one has it open already; help: stop the other \
         process, or choose another file", .0.display()
    )]
    InUse(PathBuf),
    /// It is not a file of tasks, or its content is damaged.
    #[error(
        "{}: the file is damaged, or does not contain tasks ({reason}); help: restore it from a \
         backup, or move it away to begin without tasks", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// It cannot be created, read or written.
    #[error(
        "{}: cannot be opened for reading and writing; help: check that the folder exists, that \
         this user may write to it, and that the disk has room", path.display()
    )]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn unusable(path: &Path, source: io::Error) -> Self {
        Self::Unusable { path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }

    pub(crate) fn new(path: &Path, error: impl Into<redb::Error>) -> Self {
        match error.into() {
            redb::Error::DatabaseAlreadyOpen => Self::InUse(path.to_owned()),
            // What is not a database, or ends too early.
            redb::Error::Io(error)
                if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) =>
            {
                Self::damaged(path, error.to_string())
            }
            redb::Error::Io(error) => Self::unusable(path, error),
            other => Self::damaged(path, other.to_string()),
        }
    }
}

/// Why a request failed. Several may fail of the same cause.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

/// Any error of the database.
impl<E: Into<redb::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into().to_string())
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        Self::failed(failure)
    }
}
