//! A store in a folder that only its owner can read.
//!
//! There is one file per key, named by a hash of it. It is written beside and moved into place, so
//! that readers and crashes see the old or the new one. A lock is a lock of the operating system on
//! a separate file: it ends with the process that holds it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::{Store, StoreError, StoreLock, Stored};
use crate::client::pkce::unguessable;
use crate::client::secret::{self, Secret};

/// Stores credentials in files. Programs of one user can share a folder.
#[derive(Debug, Clone)]
pub struct FileStore {
    folder: PathBuf,
    patience: Duration,
}

/// The most bytes in one file.
const MAX_FILE: u64 = 1024 * 1024;
/// The pause between attempts to take a lock.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Serialize, Deserialize)]
struct StoredFile {
    /// In plain text, for people who look into the folder, and in case two hashes collide.
    key: String,
    #[serde(serialize_with = "secret::write")]
    value: Secret,
}

impl FileStore {
    /// How long to wait for a lock by default: see [`lock_timeout`](Self::lock_timeout).
    pub const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

    /// A store in this folder, which is created if necessary.
    ///
    /// # Errors
    /// When the folder cannot be created, or other users can read it.
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        make_private(&folder)?;
        Ok(Self { folder, patience: Self::LOCK_TIMEOUT })
    }

    /// How long to wait for a lock that another program holds.
    #[must_use]
    pub fn lock_timeout(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    fn path(&self, key: &str, ending: &str) -> PathBuf {
        let hash = digest(&SHA256, key.as_bytes());
        let name: String = hash.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{name}.{ending}"))
    }

    fn read(&self, key: &str) -> Result<Option<Secret>, StoreError> {
        let path = self.path(key, "json");
        let at = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(&error).into()),
            Ok(metadata) if metadata.len() > MAX_FILE => return Err(at(&"too large").into()),
            Ok(_) => {}
        }
        let text = fs::read(&path).map_err(|error| at(&error))?;
        // A damaged file is ignored: the next login replaces it.
        let entry: Option<StoredFile> = serde_json::from_slice(&text).ok();
        Ok(entry.filter(|entry| entry.key == key).map(|entry| entry.value))
    }

    fn write(&self, key: &str, value: &Secret) -> Result<(), StoreError> {
        let entry = StoredFile { key: key.to_owned(), value: value.clone() };
        let text = serde_json::to_vec(&entry)?;
        let beside = self.folder.join(format!("{}.new", unguessable()));
        let written = create_private(&beside).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        });
        let moved = written.and_then(|()| fs::rename(&beside, self.path(key, "json")));
        moved.map_err(|error| {
            // Best effort: nothing can be done if this fails as well.
            drop(fs::remove_file(&beside));
            format!("{}: {error}", self.folder.display()).into()
        })
    }

    async fn wait_for_lock(&self, key: &str) -> Result<StoreLock, StoreError> {
        let path = self.path(key, "lock");
        let deadline = Instant::now() + self.patience;
        loop {
            if let Some(lock) = try_lock(&path).map_err(|e| format!("{}: {e}", path.display()))? {
                return Ok(lock);
            }
            if Instant::now() >= deadline {
                let (path, seconds) = (path.display(), self.patience.as_secs());
                return Err(format!("{path}: held by another program for {seconds} s").into());
            }
            sleep(PAUSE).await;
        }
    }
}

impl Store for FileStore {
    fn load<'a>(&'a self, key: &'a str) -> Stored<'a, Option<Secret>> {
        Box::pin(async move { self.read(key) })
    }

    fn save<'a>(&'a self, key: &'a str, value: &'a Secret) -> Stored<'a, ()> {
        Box::pin(async move { self.write(key, value) })
    }

    fn remove<'a>(&'a self, key: &'a str) -> Stored<'a, ()> {
        Box::pin(async move {
            match fs::remove_file(self.path(key, "json")) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
                _ => Ok(()),
            }
        })
    }

    fn lock<'a>(&'a self, key: &'a str) -> Stored<'a, StoreLock> {
        Box::pin(self.wait_for_lock(key))
    }
}

#[cfg(unix)]
fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mode = fs::metadata(folder)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let message = format!(
            "{}: other users can read this folder (permissions {mode:03o}); expected 700",
            folder.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(())
}

#[cfg(not(unix))]
fn make_private(folder: &Path) -> io::Result<()> {
    // Folders of a user's profile are private by inheritance.
    fs::create_dir_all(folder)
}

fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
fn try_lock(path: &Path) -> io::Result<Option<StoreLock>> {
    use rustix::fs::{FlockOperation, flock};
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Box::new(file))),
        Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// On Windows, opening the file can exclude all others; elsewhere nothing is excluded.
#[cfg(not(unix))]
fn try_lock(path: &Path) -> io::Result<Option<StoreLock>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(windows)]
    std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 0);
    match options.open(path) {
        Ok(file) => Ok(Some(Box::new(file))),
        // A sharing violation.
        Err(error) if error.raw_os_error() == Some(32) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            Self(std::env::temp_dir().join(format!("bowline-store-{}", unguessable())))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn only_the_owner_can_read() {
        let folder = Folder::new();
        let store = FileStore::open(&folder.0).unwrap();
        store.save("tokens https://a", &Secret::new("s")).await.unwrap();
        drop(store.lock("tokens https://a").await.unwrap());
        assert_eq!(mode(&folder.0), 0o700);
        let files: Vec<_> =
            fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 2);
        assert!(files.iter().all(|file| mode(file) == 0o600), "{files:?}");
    }

    #[test]
    fn an_open_folder_is_refused() {
        let folder = Folder::new();
        fs::create_dir(&folder.0).unwrap();
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).unwrap();
        let error = FileStore::open(&folder.0).unwrap_err().to_string();
        assert!(error.contains("755") && error.contains("expected 700"), "{error}");
    }

    #[tokio::test]
    async fn what_is_saved_is_loaded() {
        let folder = Folder::new();
        let store = FileStore::open(&folder.0).unwrap();
        assert_eq!(store.load("a").await.unwrap(), None);
        store.save("a", &Secret::new("1")).await.unwrap();
        store.save("a", &Secret::new("2")).await.unwrap();
        store.save("b", &Secret::new("3")).await.unwrap();
        assert_eq!(store.load("a").await.unwrap(), Some(Secret::new("2")));
        store.remove("a").await.unwrap();
        store.remove("a").await.unwrap();
        assert_eq!(store.load("a").await.unwrap(), None);
        fs::write(store.path("b", "json"), "torn").unwrap();
        assert_eq!(store.load("b").await.unwrap(), None);
    }

    #[tokio::test]
    async fn one_at_a_time() {
        let folder = Folder::new();
        let store = FileStore::open(&folder.0).unwrap();
        let held = store.lock("a").await.unwrap();
        let impatient = store.clone().lock_timeout(Duration::from_millis(50));
        let error = impatient.lock("a").await.err().unwrap().to_string();
        assert!(error.contains("held by another program"), "{error}");
        drop(impatient.lock("b").await.unwrap());
        drop(held);
        drop(impatient.lock("a").await.unwrap());
    }
}
