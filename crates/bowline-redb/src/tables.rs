//! The tables of the file, and the five verbs on them.

use std::collections::HashMap;
use std::ops::Bound;

use bowline::tasks::{Quota, TaskRecord};
use redb::{ReadTransaction, ReadableTable, Table, TableDefinition};
use redb::{TableError, WriteTransaction};

use crate::error::Failure;

/// A task: its version, when it is due, when it was created, its owner, and the record. A write
/// never has to read a record, which may be of another release.
type Row = (u64, u64, u64, &'static [u8], &'static [u8]);

const TASKS: TableDefinition<'_, &str, Row> = TableDefinition::new("tasks 1");
/// By owner, in the order of pages.
const PAGES: TableDefinition<'_, (&[u8], u64, &str), ()> = TableDefinition::new("pages 1");
const DUE: TableDefinition<'_, (u64, &str), ()> = TableDefinition::new("due 1");
/// How many tasks an owner has, and their bytes.
const COUNTS: TableDefinition<'_, &[u8], (u64, u64)> = TableDefinition::new("counts 2");
/// The same without bytes.
const COUNTS_1: TableDefinition<'_, &[u8], u64> = TableDefinition::new("counts 1");
/// What stands for all owners among the counts.
const ALL: &[u8] = b"*";

/// A record with what the tables need of it.
pub(crate) struct Entry {
    id: String,
    version: u64,
    due: u64,
    created: u64,
    owner: Vec<u8>,
    bytes: Vec<u8>,
    /// The bytes by which it may grow in any case.
    spare: usize,
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
            spare: if record.has_ended() { Quota::ENDING } else { 0 },
        })
    }
}

#[cfg(test)]
impl Entry {
    pub(crate) fn example(id: &str) -> Self {
        let (owner, bytes) = (owner_key(None), b"{}".to_vec());
        Self { id: id.to_owned(), version: 0, due: 1, created: 1, owner, bytes, spare: 0 }
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
    counts: Table<'a, &'static [u8], (u64, u64)>,
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
        let [(tasks, bytes), (own, own_bytes)] = self.counts(&entry.owner)?;
        let size = entry.bytes.len();
        if tasks >= quota.all || own >= quota.each || !quota.has_room(bytes, own_bytes, size) {
            return Ok(Written::Full);
        }
        if self.tasks.get(entry.id.as_str())?.is_some() {
            return Ok(Written::Exists);
        }
        self.insert(entry)?;
        self.due.insert((entry.due, entry.id.as_str()), ())?;
        self.pages.insert((entry.owner.as_slice(), entry.created, entry.id.as_str()), ())?;
        self.add(&entry.owner, 1, signed(size))?;
        Ok(Written::Done)
    }

    pub(crate) fn swap(
        &mut self,
        id: &str,
        version: u64,
        next: Option<&Entry>,
        quota: Quota,
    ) -> Result<Written, Failure> {
        let (due, created, owner, before) = {
            let Some(found) = self.tasks.get(id)? else { return Ok(Written::Stale) };
            let (found, due, created, owner, bytes) = found.value();
            if found != version {
                return Ok(Written::Stale);
            }
            (due, created, owner.to_vec(), bytes.len())
        };
        let after = next.map_or(0, |next| next.bytes.len());
        if next.is_some_and(|next| after > before + next.spare) {
            let [(_, bytes), (_, own_bytes)] = self.counts(&owner)?;
            if !quota.has_room(bytes, own_bytes, after - before) {
                return Ok(Written::Full);
            }
        }
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
            }
        }
        self.add(&owner, if next.is_none() { -1 } else { 0 }, signed(after) - signed(before))?;
        Ok(Written::Done)
    }

    fn insert(&mut self, entry: &Entry) -> Result<(), Failure> {
        let Entry { version, due, created, owner, bytes, .. } = entry;
        let row = (*version, *due, *created, owner.as_slice(), bytes.as_slice());
        self.tasks.insert(entry.id.as_str(), row)?;
        Ok(())
    }

    /// How many tasks there are and their bytes: of all owners, and of one.
    fn counts(&self, owner: &[u8]) -> Result<[(usize, usize); 2], Failure> {
        let count = |owner: &[u8]| -> Result<(usize, usize), Failure> {
            let (tasks, bytes) = self.counts.get(owner)?.map_or((0, 0), |count| count.value());
            let number = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
            Ok((number(tasks), number(bytes)))
        };
        Ok([count(ALL)?, count(owner)?])
    }

    /// Counts tasks and bytes that an owner has more than before, or fewer.
    fn add(&mut self, owner: &[u8], tasks: i64, bytes: i64) -> Result<(), Failure> {
        if tasks == 0 && bytes == 0 {
            return Ok(());
        }
        for owner in [ALL, owner] {
            let (count, size) = self.counts.get(owner)?.map_or((0, 0), |count| count.value());
            let count = count.saturating_add_signed(tasks);
            let size = size.saturating_add_signed(bytes);
            match count {
                0 => self.counts.remove(owner)?.map(drop),
                count => self.counts.insert(owner, (count, size))?.map(drop),
            };
        }
        Ok(())
    }
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Counts again what earlier releases have counted without bytes.
pub(crate) fn recount(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    if !transaction.delete_table(COUNTS_1)? {
        return Ok(());
    }
    let mut counts: HashMap<Vec<u8>, (u64, u64)> = HashMap::new();
    for row in transaction.open_table(TASKS)?.iter()? {
        let (_, row) = row?;
        let (.., owner, bytes) = row.value();
        for owner in [ALL, owner] {
            let (count, size) = counts.entry(owner.to_vec()).or_default();
            (*count, *size) = (*count + 1, *size + bytes.len() as u64);
        }
    }
    let mut table = transaction.open_table(COUNTS)?;
    for (owner, count) in counts {
        table.insert(owner.as_slice(), count)?;
    }
    Ok(())
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

/// Tasks of an owner, as far as they can be read: those that cannot do not count.
pub(crate) fn page<T>(
    transaction: &ReadTransaction,
    owner: Option<&str>,
    after: Option<(u64, &str)>,
    limit: usize,
    read: impl Fn(&[u8]) -> Option<T>,
) -> Result<Vec<T>, Failure> {
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
        let record = load(transaction, id)?;
        found.extend(record.and_then(|(_, bytes)| read(&bytes)));
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
