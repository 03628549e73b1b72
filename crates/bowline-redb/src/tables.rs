//! The tables of the file, and the five verbs on them.

use std::ops::Bound;

use bowline::tasks::{Quota, TaskRecord};
use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata, Table, TableDefinition};
use redb::{TableError, WriteTransaction};

use crate::error::Failure;

/// A task: its version, when it is due, when it was created, its owner, and the record. A write
/// never has to read a record, which may be of another release.
type Row = (u64, u64, u64, &'static [u8], &'static [u8]);

const TASKS: TableDefinition<'_, &str, Row> = TableDefinition::new("tasks 1");
/// By owner, in the order of pages.
const PAGES: TableDefinition<'_, (&[u8], u64, &str), ()> = TableDefinition::new("pages 1");
const DUE: TableDefinition<'_, (u64, &str), ()> = TableDefinition::new("due 1");
/// How many tasks an owner has.
const COUNTS: TableDefinition<'_, &[u8], u64> = TableDefinition::new("counts 1");

/// A record with what the tables need of it.
pub(crate) struct Entry {
    id: String,
    version: u64,
    due: u64,
    created: u64,
    owner: Vec<u8>,
    bytes: Vec<u8>,
}

impl Entry {
    pub(crate) fn new(record: &TaskRecord) -> Result<Self, Failure> {
        Ok(Self {
            id: record.id().to_owned(),
            version: record.version(),
            due: record.due(),
            created: record.created(),
            owner: owner_key(record.owner()),
            bytes: record.encode().map_err(|error| Failure::new(error.to_string()))?,
        })
    }
}

#[cfg(test)]
impl Entry {
    pub(crate) fn example(id: &str) -> Self {
        let (owner, bytes) = (owner_key(None), b"{}".to_vec());
        Self { id: id.to_owned(), version: 0, due: 1, created: 1, owner, bytes }
    }
}

/// An owner as a key. No owner is not an empty name.
fn owner_key(owner: Option<&str>) -> Vec<u8> {
    owner.map_or_else(Vec::new, |owner| [b"=", owner.as_bytes()].concat())
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Done,
    /// The task has another version, or does not exist.
    Stale,
    Full,
    /// A task with this id exists.
    Exists,
}

/// The tables in a transaction that writes.
pub(crate) struct Tables<'a> {
    tasks: Table<'a, &'static str, Row>,
    pages: Table<'a, (&'static [u8], u64, &'static str), ()>,
    due: Table<'a, (u64, &'static str), ()>,
    counts: Table<'a, &'static [u8], u64>,
}

impl<'a> Tables<'a> {
    /// Opens the tables, and creates those that do not exist.
    pub(crate) fn open(transaction: &'a WriteTransaction) -> Result<Self, TableError> {
        Ok(Self {
            tasks: transaction.open_table(TASKS)?,
            pages: transaction.open_table(PAGES)?,
            due: transaction.open_table(DUE)?,
            counts: transaction.open_table(COUNTS)?,
        })
    }

    pub(crate) fn create(&mut self, entry: &Entry, quota: Quota) -> Result<Written, Failure> {
        let own = self.count(&entry.owner)?;
        let is_full = |count: u64, most: usize| usize::try_from(count).is_ok_and(|it| it >= most);
        if is_full(self.tasks.len()?, quota.all) || is_full(own, quota.each) {
            return Ok(Written::Full);
        }
        if self.tasks.get(entry.id.as_str())?.is_some() {
            return Ok(Written::Exists);
        }
        self.insert(entry)?;
        self.due.insert((entry.due, entry.id.as_str()), ())?;
        self.pages.insert((entry.owner.as_slice(), entry.created, entry.id.as_str()), ())?;
        self.counts.insert(entry.owner.as_slice(), own + 1)?;
        Ok(Written::Done)
    }

    pub(crate) fn swap(
        &mut self,
        id: &str,
        version: u64,
        next: Option<&Entry>,
    ) -> Result<Written, Failure> {
        let (due, created, owner) = {
            let Some(found) = self.tasks.get(id)? else { return Ok(Written::Stale) };
            let (found, due, created, owner, _) = found.value();
            if found != version {
                return Ok(Written::Stale);
            }
            (due, created, owner.to_vec())
        };
        if next.is_none_or(|next| next.due != due) {
            self.due.remove((due, id))?;
        }
        match next {
            Some(next) => {
                self.insert(next)?;
                // In most changes this is the same as before.
                if next.due != due {
                    self.due.insert((next.due, id), ())?;
                }
            }
            None => {
                self.tasks.remove(id)?;
                self.pages.remove((owner.as_slice(), created, id))?;
                self.discount(&owner)?;
            }
        }
        Ok(Written::Done)
    }

    fn insert(&mut self, entry: &Entry) -> Result<(), Failure> {
        let Entry { version, due, created, owner, bytes, .. } = entry;
        let row = (*version, *due, *created, owner.as_slice(), bytes.as_slice());
        self.tasks.insert(entry.id.as_str(), row)?;
        Ok(())
    }

    fn count(&self, owner: &[u8]) -> Result<u64, Failure> {
        Ok(self.counts.get(owner)?.map_or(0, |count| count.value()))
    }

    fn discount(&mut self, owner: &[u8]) -> Result<(), Failure> {
        match self.count(owner)? {
            0 | 1 => self.counts.remove(owner)?.map(drop),
            count => self.counts.insert(owner, count - 1)?.map(drop),
        };
        Ok(())
    }
}

/// The version of a task, and its record.
pub(crate) fn load(
    transaction: &ReadTransaction,
    id: &str,
) -> Result<Option<(u64, Vec<u8>)>, Failure> {
    let tasks = transaction.open_table(TASKS)?;
    let found = tasks.get(id)?;
    Ok(found.map(|found| {
        let (version, _, _, _, bytes) = found.value();
        (version, bytes.to_vec())
    }))
}

pub(crate) fn page(
    transaction: &ReadTransaction,
    owner: Option<&str>,
    after: Option<(u64, &str)>,
    limit: usize,
) -> Result<Vec<(u64, Vec<u8>)>, Failure> {
    let pages = transaction.open_table(PAGES)?;
    let owner = owner_key(owner);
    let start = match after {
        Some((created, id)) => Bound::Excluded((owner.as_slice(), created, id)),
        None => Bound::Included((owner.as_slice(), 0, "")),
    };
    let mut found = Vec::new();
    for key in pages.range::<(&[u8], u64, &str)>((start, Bound::Unbounded))? {
        let (key, _) = key?;
        let (of, _, id) = key.value();
        if of != owner || found.len() == limit {
            break;
        }
        found.extend(load(transaction, id)?);
    }
    Ok(found)
}

pub(crate) fn due(
    transaction: &ReadTransaction,
    now: u64,
    limit: usize,
) -> Result<Vec<String>, Failure> {
    let due = transaction.open_table(DUE)?;
    let mut found = Vec::new();
    for key in due.iter()?.take(limit) {
        let (key, _) = key?;
        let (at, id) = key.value();
        if at > now {
            break;
        }
        found.push(id.to_owned());
    }
    Ok(found)
}
