//! What an issuer said about tokens, for a while.
//!
//! Accepted and rejected tokens are kept apart: whoever invents tokens cannot drive out those that
//! are good. All entries live equally long, so the oldest is always the first to go.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

use super::IntrospectionLimits;
use crate::verify::Identity;

/// A digest of a token.
pub(super) type Name = [u8; 32];

/// The responses of an issuer.
#[derive(Default)]
pub(super) struct Memory {
    accepted: Entries,
    rejected: Entries,
    /// How many tokens the issuer has rejected lately.
    rejections: Rejections,
    /// The same for each address that they came from. **Invariant:** at most [`ADDRESSES`].
    by_address: HashMap<IpAddr, Rejections>,
}

#[derive(Default)]
struct Entries {
    by_name: HashMap<Name, Entry>,
    /// In the order in which they expire. **Invariant:** every entry has its place here.
    order: VecDeque<(Instant, Name)>,
    bytes: usize,
}

struct Entry {
    until: Instant,
    identity: Option<Identity>,
    bytes: usize,
}

/// A bucket that is emptied at a steady rate.
struct Rejections {
    level: f64,
    since: Instant,
}

impl Default for Rejections {
    fn default() -> Self {
        Self { level: 0.0, since: Instant::now() }
    }
}

/// How many seconds' worth of rejections may come at once.
const BURST: f64 = 10.0;

/// How much of it one address may use.
const SHARE: f64 = 0.25;

/// How many addresses are told apart.
const ADDRESSES: usize = 1_000;

impl Memory {
    /// What the issuer said about a token: `None` if that is not known.
    pub(super) fn find(&self, name: &Name) -> Option<Option<Identity>> {
        let now = Instant::now();
        [&self.accepted, &self.rejected].into_iter().find_map(|entries| {
            let entry = entries.by_name.get(name).filter(|entry| entry.until > now)?;
            Some(entry.identity.clone())
        })
    }

    /// Keeps what the issuer said about a token, in a response of so many bytes.
    pub(super) fn keep(
        &mut self,
        name: Name,
        (identity, bytes): (Option<Identity>, usize),
        time: Duration,
        limits: &IntrospectionLimits,
    ) {
        let until = Instant::now() + time;
        match &identity {
            Some(_) => {
                let entry = Entry { until, identity, bytes };
                self.accepted.insert(name, entry, limits.accepted, limits.accepted_bytes);
            }
            None => {
                let entry = Entry { until, identity, bytes: 0 };
                self.rejected.insert(name, entry, limits.rejected, usize::MAX);
            }
        }
    }

    /// Counts a token that the issuer has rejected.
    pub(super) fn reject(&mut self, from: Option<IpAddr>, limits: &IntrospectionLimits) {
        let rate = f64::from(limits.rejected_per_second);
        self.rejections.add(rate);
        let Some(from) = from else { return };
        if self.by_address.len() >= ADDRESSES && !self.by_address.contains_key(&from) {
            self.by_address.retain(|_, own| own.drain(rate * SHARE) > 0.0);
            self.by_address.shrink_to_fit();
        }
        if self.by_address.len() < ADDRESSES || self.by_address.contains_key(&from) {
            self.by_address.entry(from).or_default().add(rate * SHARE);
        }
    }

    /// Whether so many tokens were rejected lately that the issuer is not asked about another one
    /// from this address.
    pub(super) fn is_flooded(
        &mut self,
        from: Option<IpAddr>,
        limits: &IntrospectionLimits,
    ) -> bool {
        let rate = f64::from(limits.rejected_per_second);
        let is_flooded = self.rejections.drain(rate) >= rate * BURST;
        let Some(from) = from else { return is_flooded };
        match self.by_address.get_mut(&from).map(|own| own.drain(rate * SHARE)) {
            Some(own) => own >= rate * SHARE * BURST || is_flooded && own > 0.0,
            // Once there are too many to tell apart, it may be any of them.
            None => is_flooded && self.by_address.len() >= ADDRESSES,
        }
    }
}

impl Rejections {
    /// Empties it by so many a second, and returns how many are left.
    fn drain(&mut self, rate: f64) -> f64 {
        let now = Instant::now();
        let gone = now.saturating_duration_since(self.since).as_secs_f64();
        self.since = now;
        self.level = (self.level - gone * rate).max(0.0);
        self.level
    }

    fn add(&mut self, rate: f64) {
        self.level = self.drain(rate) + 1.0;
    }
}

impl Entries {
    fn insert(&mut self, name: Name, entry: Entry, most: usize, most_bytes: usize) {
        if most == 0 || entry.bytes > most_bytes {
            return;
        }
        let (until, bytes) = (entry.until, entry.bytes);
        self.bytes += bytes;
        if let Some(before) = self.by_name.insert(name, entry) {
            self.bytes -= before.bytes;
        }
        self.order.push_back((until, name));
        let now = Instant::now();
        while self.order.len() > most
            || self.bytes > most_bytes
            || self.order.front().is_some_and(|(until, _)| *until <= now)
        {
            let Some((until, name)) = self.order.pop_front() else { return };
            // A newer response about the same token has its own place in the order.
            if self.by_name.get(&name).is_some_and(|entry| entry.until == until) {
                let gone = self.by_name.remove(&name);
                self.bytes -= gone.map_or(0, |entry| entry.bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(30);

    fn name(number: u32) -> Name {
        let mut name = [0; 32];
        name[..4].copy_from_slice(&number.to_be_bytes());
        name
    }

    fn alice() -> Option<Identity> {
        Some(Identity::new("alice"))
    }

    #[tokio::test(start_paused = true)]
    async fn invented_tokens_drive_out_only_each_other() {
        let limits =
            IntrospectionLimits { accepted: 10, rejected: 10, ..IntrospectionLimits::default() };
        let mut memory = Memory::default();
        memory.keep(name(0), (alice(), 100), TIME, &limits);
        for number in 1..1000 {
            memory.keep(name(number), (None, 20), TIME, &limits);
        }
        assert_eq!(memory.find(&name(0)), Some(alice()));
        assert_eq!(memory.find(&name(1)), None);
        assert_eq!(memory.find(&name(999)), Some(None));
        assert_eq!((memory.rejected.by_name.len(), memory.rejected.order.len()), (10, 10));
        tokio::time::advance(TIME).await;
        assert_eq!(memory.find(&name(0)), None);
        assert_eq!(memory.find(&name(999)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn it_holds_no_more_bytes_than_it_may() {
        let limits = IntrospectionLimits { accepted_bytes: 1000, ..IntrospectionLimits::default() };
        let mut memory = Memory::default();
        for number in 0..100 {
            memory.keep(name(number), (alice(), 90), TIME, &limits);
            assert!(memory.accepted.bytes <= 1000);
        }
        assert_eq!(memory.accepted.by_name.len(), 11);
        memory.keep(name(7), (alice(), 1001), TIME, &limits);
        assert_eq!(memory.find(&name(7)), None);
        // The same token again takes the place of what was known about it.
        for _ in 0..100 {
            memory.keep(name(99), (alice(), 90), TIME, &limits);
        }
        assert!(memory.accepted.bytes <= 1000 && memory.find(&name(99)).is_some());
        for number in 0..50 {
            tokio::time::advance(TIME).await;
            memory.keep(name(number), (alice(), 90), TIME, &limits);
            assert_eq!((memory.accepted.by_name.len(), memory.accepted.bytes), (1, 90));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_invented_tokens_is_noticed_and_forgiven() {
        let limits =
            IntrospectionLimits { rejected_per_second: 2, ..IntrospectionLimits::default() };
        let mut memory = Memory::default();
        for number in 0..20 {
            assert!(!memory.is_flooded(None, &limits), "{number}");
            memory.reject(None, &limits);
        }
        assert!(memory.is_flooded(None, &limits));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!memory.is_flooded(None, &limits));
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_does_not_use_up_what_is_for_all() {
        let limits =
            IntrospectionLimits { rejected_per_second: 40, ..IntrospectionLimits::default() };
        let at = |last| Some(IpAddr::from([10, 0, 0, last]));
        let mut memory = Memory::default();
        for _ in 0..100 {
            assert!(!memory.is_flooded(at(1), &limits));
            memory.reject(at(1), &limits);
        }
        assert!(memory.is_flooded(at(1), &limits));
        assert!(!memory.is_flooded(at(2), &limits) && !memory.is_flooded(None, &limits));
        // Others join in: the issuer is asked only for those that had nothing rejected.
        for _ in 0..100 {
            for last in 2..5 {
                memory.reject(at(last), &limits);
            }
        }
        memory.reject(at(5), &limits);
        assert!(memory.is_flooded(None, &limits) && memory.is_flooded(at(5), &limits));
        assert!(!memory.is_flooded(at(6), &limits));
        tokio::time::advance(Duration::from_secs(11)).await;
        assert!((1..7).all(|last| !memory.is_flooded(at(last), &limits)));
    }

    #[tokio::test(start_paused = true)]
    async fn it_tells_only_so_many_addresses_apart() {
        let limits = IntrospectionLimits::default();
        let mut memory = Memory::default();
        for number in 0..5_000_u32 {
            memory.reject(Some(IpAddr::V4(number.into())), &limits);
        }
        assert_eq!(memory.by_address.len(), ADDRESSES);
        assert!(memory.is_flooded(Some(IpAddr::from([10, 0, 0, 1])), &limits));
        tokio::time::advance(Duration::from_secs(100)).await;
        memory.reject(Some(IpAddr::from([10, 0, 0, 1])), &limits);
        assert_eq!(memory.by_address.len(), 1);
    }
}
