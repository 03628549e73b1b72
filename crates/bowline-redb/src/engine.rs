//! The database in the file: opened, used by several threads, and opened again after a failure.

use std::fs::{File, OpenOptions};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bowline::with_causes;
use redb::{Builder, Database, ReadTransaction, ReadableDatabase, WriteTransaction};

use crate::error::{Failure, OpenError};
use crate::tables::{self, Tables};

/// The bytes of the file that are kept in memory.
const CACHE: usize = 32 << 20;

type Open = Box<dyn Fn() -> Result<Database, OpenError> + Send + Sync>;

/// A database that is opened again after a failure: redb does nothing any more once the disk has
/// failed, because it cannot know what was written.
pub(crate) struct Engine {
    open: Open,
    database: Mutex<Option<Arc<Database>>>,
}

impl Engine {
    /// Opens the file. The panics of redb, which a damaged file can cause, are errors here.
    pub(crate) fn new(path: &Path) -> Result<Self, OpenError> {
        let path = path.to_owned();
        Self::with(Box::new(move || {
            let opened = catch_unwind(AssertUnwindSafe(|| open(&path)));
            opened.unwrap_or_else(|_| Err(OpenError::damaged(&path, "its content is inconsistent")))
        }))
    }

    fn with(open: Open) -> Result<Self, OpenError> {
        let database = Mutex::new(Some(Arc::new(open()?)));
        Ok(Self { open, database })
    }

    /// Reads, on a thread that may wait.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&ReadTransaction) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.contained(|database| work(&database.begin_read()?))
    }

    /// Writes, on a thread that may wait: all of it or nothing, and it is durable. `work` returns
    /// whether there is anything to write.
    pub(crate) fn write<T>(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<(T, bool), Failure>,
    ) -> Result<T, Failure> {
        self.contained(|database| {
            let transaction = database.begin_write()?;
            let (value, has_changed) = work(&transaction)?;
            if has_changed {
                transaction.commit()?;
            } else {
                transaction.abort()?;
            }
            Ok(value)
        })
    }

    /// Uses the database. After a failure or a panic it is opened again by whoever comes next.
    fn contained<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let database = self.database()?;
        let done = catch_unwind(AssertUnwindSafe(|| work(&database)));
        let done = done.unwrap_or_else(|_| Err(Failure::new("the file is damaged")));
        if done.is_err() {
            let mut kept = self.database.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, &database)) {
                *kept = None;
            }
        }
        done
    }

    fn database(&self) -> Result<Arc<Database>, Failure> {
        let mut kept = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(database) = &*kept {
            return Ok(Arc::clone(database));
        }
        let database = Arc::new((self.open)().map_err(|error| Failure::new(with_causes(&error)))?);
        *kept = Some(Arc::clone(&database));
        Ok(database)
    }
}

fn open(path: &Path) -> Result<Database, OpenError> {
    let file = open_file(path).map_err(|error| OpenError::unusable(path, error))?;
    let created = Builder::new().set_cache_size(CACHE).create_file(file);
    created.map_err(Into::into).and_then(prepare).map_err(|error| OpenError::new(path, error))
}

/// Opens or creates the file, which only its owner can read, and makes its name durable.
fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or_else(|| Path::new(".")))?.sync_all()?;
    }
    Ok(file)
}

/// Creates the tables, so that readers find them.
fn prepare(database: Database) -> Result<Database, redb::Error> {
    let transaction = database.begin_write()?;
    drop(Tables::open(&transaction)?);
    tables::recount(&transaction)?;
    transaction.commit()?;
    Ok(database)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use bowline::tasks::Quota;
    use redb::StorageBackend;

    use super::*;
    use crate::tables::{Entry, Written};

    /// A disk that can be full.
    #[derive(Debug, Clone, Default)]
    struct Disk(Arc<(Mutex<Vec<u8>>, AtomicBool)>);

    impl Disk {
        fn set_full(&self, is_full: bool) {
            self.0.1.store(is_full, Ordering::SeqCst);
        }

        fn change<T>(&self, change: impl FnOnce(&mut Vec<u8>) -> T) -> io::Result<T> {
            match self.0.1.load(Ordering::SeqCst) {
                true => Err(io::ErrorKind::StorageFull.into()),
                false => Ok(change(&mut self.0.0.lock().unwrap())),
            }
        }
    }

    impl StorageBackend for Disk {
        fn len(&self) -> io::Result<u64> {
            Ok(self.0.0.lock().unwrap().len() as u64)
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            let start = usize::try_from(offset).unwrap();
            out.copy_from_slice(&self.0.0.lock().unwrap()[start..start + out.len()]);
            Ok(())
        }

        fn set_len(&self, length: u64) -> io::Result<()> {
            self.change(|bytes| bytes.resize(usize::try_from(length).unwrap(), 0))
        }

        fn sync_data(&self) -> io::Result<()> {
            self.change(|_| ())
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            let start = usize::try_from(offset).unwrap();
            self.change(|bytes| bytes[start..start + data.len()].copy_from_slice(data))
        }
    }

    fn create(engine: &Engine, id: &str) -> Result<Written, Failure> {
        engine.write(|transaction| {
            let mut tables = Tables::open(transaction)?;
            let written = tables.create(&Entry::example(id), Quota::of(9, 9))?;
            Ok((written, true))
        })
    }

    #[test]
    fn a_full_disk_is_an_error_until_there_is_room() {
        let disk = Disk::default();
        let backend = disk.clone();
        let path = Path::new("tasks.redb");
        let engine = Engine::with(Box::new(move || {
            let created = Builder::new().create_with_backend(backend.clone());
            created
                .map_err(Into::into)
                .and_then(prepare)
                .map_err(|error| OpenError::new(path, error))
        }))
        .unwrap();
        assert_eq!(create(&engine, "before").unwrap(), Written::Done);
        disk.set_full(true);
        for _ in 0..3 {
            create(&engine, "meanwhile").unwrap_err();
        }
        disk.set_full(false);
        assert_eq!(create(&engine, "after").unwrap(), Written::Done);
        let ids = engine.read(|transaction| tables::due(transaction, u64::MAX, 9)).unwrap();
        assert_eq!(ids, ["after", "before"]);
    }
}
