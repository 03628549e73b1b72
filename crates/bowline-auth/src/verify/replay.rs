//! Proofs that were used, so that none is valid twice.
//!
//! One principal cannot fill the memory of all: each has a share. Principals are spread over shards
//! with a lock each, and what has expired is found by its date: nothing is scanned.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ring::digest::{SHA256, digest};

/// The proofs that were used and are still valid.
pub(super) struct Used {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    /// How many proofs all shards remember.
    count: AtomicUsize,
}

const SHARDS: usize = 64;

/// The proofs of some principals.
#[derive(Default)]
struct Shard {
    proofs: HashMap<Name, Owner>,
    /// How many proofs each principal has here.
    shares: HashMap<Owner, usize>,
    /// The proofs, by the second in which they expire.
    ends: BTreeMap<u64, Vec<Name>>,
}

/// A digest of a proof's key, id and principal, whatever their length.
type Name = [u8; 16];

/// A principal, as a number. Two that share one share their part of the memory, no more.
type Owner = u64;

/// A proof that is used now.
pub(super) struct Proof<'a> {
    pub(super) principal: &'a str,
    /// The thumbprint of its key.
    pub(super) key: &'a str,
    pub(super) id: &'a str,
    pub(super) now: u64,
    /// Until when it is valid.
    pub(super) end: u64,
}

/// Why a proof cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UseError {
    /// It was used before.
    Again,
    /// As many as may be remembered are still valid.
    Full,
}

impl Used {
    pub(super) fn new() -> Self {
        let shards = std::array::from_fn(|_| Mutex::default());
        Self { shards, hasher: RandomState::new(), count: AtomicUsize::new(0) }
    }

    /// Uses a proof, if it was not used before: at most `most` of all principals and `share` of one
    /// are remembered.
    pub(super) fn insert(
        &self,
        proof: &Proof<'_>,
        most: usize,
        share: usize,
    ) -> Result<(), UseError> {
        let owner = self.hasher.hash_one(proof.principal);
        let name = name(proof);
        let place = usize::from(owner.to_le_bytes()[0]) % SHARDS;
        let mut shard = lock(&self.shards[place]);
        self.expire(&mut shard, proof.now);
        if shard.proofs.contains_key(&name) {
            return Err(UseError::Again);
        }
        if shard.shares.get(&owner).is_some_and(|count| *count >= share) {
            return Err(UseError::Full);
        }
        if self.count.load(Ordering::Relaxed) >= most {
            drop(shard);
            for other in &self.shards {
                self.expire(&mut lock(other), proof.now);
            }
            if self.count.load(Ordering::Relaxed) >= most {
                return Err(UseError::Full);
            }
            shard = lock(&self.shards[place]);
            // Another thread may have used it in between.
            if shard.proofs.contains_key(&name) {
                return Err(UseError::Again);
            }
        }
        shard.proofs.insert(name, owner);
        *shard.shares.entry(owner).or_default() += 1;
        shard.ends.entry(proof.end).or_default().push(name);
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Forgets proofs that are no longer valid.
    fn expire(&self, shard: &mut Shard, now: u64) {
        while let Some(oldest) = shard.ends.first_entry().filter(|entry| *entry.key() < now) {
            for name in oldest.remove() {
                let Some(owner) = shard.proofs.remove(&name) else { continue };
                self.count.fetch_sub(1, Ordering::Relaxed);
                shard.give_back(owner);
            }
        }
    }
}

impl Shard {
    fn give_back(&mut self, owner: Owner) {
        let Some(count) = self.shares.get_mut(&owner) else { return };
        *count -= 1;
        if *count == 0 {
            self.shares.remove(&owner);
        }
    }
}

fn name(proof: &Proof<'_>) -> Name {
    // A proof names its token, so the same proof is always of the same principal. Thumbprints have
    // one length and no dots.
    let text = format!("{}.{}.{}", proof.key, proof.id, proof.principal);
    let hash = digest(&SHA256, text.as_bytes());
    *hash.as_ref().first_chunk().expect("SHA-256 has 32 bytes")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof<'a>(principal: &'a str, id: &'a str, now: u64) -> Proof<'a> {
        Proof { principal, key: "k", id, now, end: now + 10 }
    }

    #[test]
    fn a_proof_is_used_once_while_it_is_valid() {
        let used = Used::new();
        let insert = |proof: Proof<'_>| used.insert(&proof, 100, 100);
        assert_eq!(insert(proof("alice", "1", 0)), Ok(()));
        assert_eq!(insert(proof("alice", "1", 10)), Err(UseError::Again));
        assert_eq!(insert(proof("alice", "2", 10)), Ok(()));
        assert_eq!(insert(proof("alice", "1", 11)), Ok(()));
    }

    #[test]
    fn one_principal_cannot_take_the_place_of_another() {
        let used = Used::new();
        let insert = |proof: Proof<'_>| used.insert(&proof, 100, 10);
        for number in 0..10 {
            assert_eq!(insert(proof("mallory", &number.to_string(), 0)), Ok(()));
        }
        assert_eq!(insert(proof("mallory", "more", 0)), Err(UseError::Full));
        assert_eq!(insert(proof("alice", "1", 0)), Ok(()));
        // Full is not a reason to forget.
        assert_eq!(insert(proof("mallory", "0", 0)), Err(UseError::Again));
        assert_eq!(insert(proof("mallory", "more", 11)), Ok(()));
    }

    #[test]
    fn all_of_them_have_a_limit_and_everything_expires() {
        let used = Used::new();
        let names: Vec<_> = (0..300).map(|number| number.to_string()).collect();
        for name in &names[..100] {
            assert_eq!(used.insert(&proof(name, "1", 0), 100, 10), Ok(()));
        }
        assert_eq!(used.insert(&proof("late", "1", 10), 100, 10), Err(UseError::Full));
        for name in &names[100..200] {
            assert_eq!(used.insert(&proof(name, "1", 11), 100, 10), Ok(()));
        }
        assert_eq!(used.insert(&proof("last", "1", 22), 100, 10), Ok(()));
        used.shards.iter().for_each(|shard| used.expire(&mut lock(shard), 33));
        assert_eq!(used.count.load(Ordering::Relaxed), 0);
        let is_empty = |shard: &Mutex<Shard>| {
            let shard = lock(shard);
            shard.proofs.is_empty() && shard.shares.is_empty() && shard.ends.is_empty()
        };
        assert!(used.shards.iter().all(is_empty));
    }
}
