//! How many bytes each party makes a server hold, and what else counts against it.
//!
//! Whatever a peer can make grow draws on one budget of the server, and on the share of its party.
//! Short things are let in while long ones are refused already: a part of every budget is kept for
//! them.

#![cfg_attr(
    not(feature = "http"),
    expect(dead_code, reason = "without HTTP, every connection is a party by itself")
)]

pub(crate) mod places;
mod turns;

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use self::places::{Counts, Most};
use self::turns::{Turn, Turns};
use super::limits::Limits;
use super::principal::Principal;

/// The longest answer, body or arguments that do not count: a connection has buffers of that size
/// anyway.
pub(crate) const UNCOUNTED: usize = 4 << 10;

/// The longest thing that the last quarter of a budget is kept for, in bytes.
pub(crate) const SHORT: usize = 64 << 10;

/// The table of parties is pruned when it reaches this size, or twice what was left last time.
const FEW: usize = 64;

/// Whom a request counts against.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Party {
    /// An authenticated identity, by its unique name.
    Principal(Box<str>),
    /// An address where nobody is known; of IPv6 the network, which one host has to itself.
    Address(IpAddr),
    /// A connection that is all there is to know: standard input and output, or another stream.
    Connection,
    /// Everyone whose address another framework does not tell.
    Anyone,
}

impl Party {
    /// The party of a request that comes from this address.
    pub(crate) fn of(principal: Option<&Principal>, address: Option<IpAddr>) -> Self {
        match (principal, address) {
            (Some(principal), _) => Self::Principal(principal.as_str().into()),
            (None, Some(address)) => Self::Address(network(address)),
            (None, None) => Self::Anyone,
        }
    }

    /// Whether [`Party::of`] would return this one.
    fn is(&self, principal: Option<&Principal>, address: Option<IpAddr>) -> bool {
        match (self, principal, address) {
            (Self::Principal(name), Some(principal), _) => **name == *principal.as_str(),
            (Self::Address(known), None, Some(address)) => *known == network(address),
            (Self::Anyone, None, None) => true,
            _ => false,
        }
    }
}

/// The addresses that one host can choose from.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// The accounts of a server's parties. Those of parties with nothing open are forgotten.
pub(crate) struct Accounts {
    memory: Arc<Budget>,
    share: usize,
    anyone: Arc<Account>,
    common: Arc<Common>,
    open: Mutex<Open>,
}

/// What all parties have in common besides memory.
struct Common {
    counts: Counts,
    turns: Turns,
}

struct Open {
    by_party: HashMap<Party, Weak<Account>>,
    /// The size that the table is pruned at.
    prune_at: usize,
}

impl Accounts {
    pub(crate) fn new(limits: &Limits) -> Self {
        let memory = Arc::new(Budget::new(limits.memory));
        // Nobody's share: it would be one for all of them.
        let common = Arc::new(Common { counts: Counts::default(), turns: Turns::new() });
        let anyone = Account::new(Party::Anyone, limits.memory, &memory, &common);
        let open = Mutex::new(Open { by_party: HashMap::new(), prune_at: FEW });
        Self { share: limits.memory_per_party.min(limits.memory), anyone, common, open, memory }
    }

    /// The account of a connection that is a party by itself.
    pub(crate) fn alone(&self) -> Arc<Account> {
        Account::new(Party::Connection, self.share, &self.memory, &self.common)
    }

    /// The account of a party. It lasts as long as something refers to it.
    pub(crate) fn find(&self, party: Party) -> Arc<Account> {
        match party {
            Party::Connection => return self.alone(),
            Party::Anyone => return Arc::clone(&self.anyone),
            Party::Principal(_) | Party::Address(_) => {}
        }
        let mut open = self.lock();
        if let Some(account) = open.by_party.get(&party).and_then(Weak::upgrade) {
            return account;
        }
        if open.by_party.len() >= open.prune_at {
            open.by_party.retain(|_, account| account.strong_count() > 0);
            open.by_party.shrink_to_fit();
            open.prune_at = FEW.max(2 * open.by_party.len());
        }
        let account = Account::new(party.clone(), self.share, &self.memory, &self.common);
        open.by_party.insert(party, Arc::downgrade(&account));
        account
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one party makes a server hold.
pub(crate) struct Account {
    party: Party,
    share: Budget,
    memory: Arc<Budget>,
    counts: Counts,
    turn: Turn,
    common: Arc<Common>,
}

impl Account {
    fn new(party: Party, share: usize, memory: &Arc<Budget>, common: &Arc<Common>) -> Arc<Self> {
        Arc::new(Self {
            party,
            share: Budget::new(share),
            memory: Arc::clone(memory),
            counts: Counts::default(),
            turn: common.turns.party(),
            common: Arc::clone(common),
        })
    }

    /// What is open: of all parties, and of this one.
    pub(crate) fn counts(&self) -> (&Counts, &Counts) {
        (&self.common.counts, &self.counts)
    }

    /// How many of a kind it may have.
    pub(crate) fn limit(&self, most: Most) -> usize {
        // Nobody's share: it would be one for all of them.
        if self.party == Party::Anyone { usize::MAX } else { most.each }
    }

    /// Whether a request must [wait](Self::wait) for those of other parties.
    pub(crate) fn must_wait(&self) -> bool {
        self.turn.must_wait(&self.common.turns)
    }

    /// The same for what is not a request yet.
    pub(crate) fn must_wait_outside(&self) -> bool {
        self.turn.must_wait_outside(&self.common.turns)
    }

    /// Waits for other parties.
    pub(crate) async fn wait(&self) {
        self.turn.wait().await;
    }

    /// Does work that takes long without keeping other parties from theirs.
    pub(crate) async fn work<F: Future>(&self, work: F) -> F::Output {
        self.turn.work(&self.common.turns, work).await
    }

    /// Whether requests of this sender count against it.
    pub(crate) fn is_of(&self, principal: Option<&Principal>, address: Option<IpAddr>) -> bool {
        self.party.is(principal, address)
    }

    /// Takes `more` bytes for something that has `length` bytes then.
    fn take(&self, more: usize, length: usize) -> Result<(), Spent> {
        self.take_of(more, length, |budget| budget.room_for(length))
    }

    /// Takes `more` bytes of what `room` says there is in each budget.
    fn take_of(
        &self,
        more: usize,
        length: usize,
        room: impl Fn(&Budget) -> usize,
    ) -> Result<(), Spent> {
        if !self.share.take(more, room(&self.share)) {
            return Err(Spent { is_too_long: length > self.share.most(), is_own: true });
        }
        if !self.memory.take(more, room(&self.memory)) {
            self.share.give_back(more);
            return Err(Spent { is_too_long: length > self.memory.most(), is_own: false });
        }
        Ok(())
    }

    /// Takes this many bytes for an answer. One is always sent, however long: it is what a handler
    /// has made, and its party holds little else.
    fn take_answer(&self, bytes: usize) -> Result<(), Spent> {
        let taken = self.take(bytes, bytes);
        if taken.is_err() && self.share.is_nearly_free() {
            self.share.overdraw(bytes);
            self.memory.overdraw(bytes);
            return Ok(());
        }
        taken
    }

    fn give_back(&self, bytes: usize) {
        self.memory.give_back(bytes);
        self.share.give_back(bytes);
    }
}

/// Bytes that may be held at a time.
pub(crate) struct Budget {
    limit: usize,
    held: AtomicUsize,
}

impl Budget {
    fn new(limit: usize) -> Self {
        Self { limit, held: AtomicUsize::new(0) }
    }

    /// The longest thing that can fit.
    fn most(&self) -> usize {
        (self.limit - self.limit / 4).max(SHORT.min(self.limit))
    }

    /// How much may be held once something of this length is.
    fn room_for(&self, length: usize) -> usize {
        if length <= SHORT { self.limit } else { self.limit - self.limit / 4 }
    }

    fn take(&self, more: usize, limit: usize) -> bool {
        let next = |held: usize| held.checked_add(more).filter(|held| *held <= limit);
        self.held.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }

    fn is_nearly_free(&self) -> bool {
        self.held.load(Ordering::Acquire) <= self.limit / 4
    }

    fn overdraw(&self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::AcqRel);
    }

    fn give_back(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::AcqRel);
    }
}

/// Bytes that are held on an account, and given back when this is dropped.
pub(crate) struct Reservation {
    account: Arc<Account>,
    bytes: usize,
}

impl Reservation {
    /// Holds nothing yet.
    pub(crate) fn new(account: Arc<Account>) -> Self {
        Self { account, bytes: 0 }
    }

    /// Holds the bytes of an answer.
    ///
    /// # Errors
    /// When there is no room, and earlier answers wait.
    pub(crate) fn of_answer(account: Arc<Account>, bytes: usize) -> Result<Self, Spent> {
        account.take_answer(bytes)?;
        Ok(Self { account, bytes })
    }

    pub(crate) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// How many bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Holds this many bytes from now on.
    ///
    /// # Errors
    /// When there is no room for more; then nothing changes.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), Spent> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.account.take(more, bytes)?,
            None => self.account.give_back(self.bytes - bytes),
        }
        self.bytes = bytes;
        Ok(())
    }

    /// The same for answers that wait. One is always sent, however long it is.
    ///
    /// # Errors
    /// When there is no room for more; then nothing changes.
    pub(crate) fn resize_answers(&mut self, bytes: usize) -> Result<(), Spent> {
        let Some(more) = bytes.checked_sub(self.bytes) else { return self.resize(bytes) };
        self.account.take_answer(more)?;
        self.bytes = bytes;
        Ok(())
    }

    /// Makes another account hold it.
    ///
    /// # Errors
    /// When that one has no room for it.
    pub(crate) fn moved_to(self, account: &Arc<Account>) -> Result<Self, Spent> {
        if Arc::ptr_eq(&self.account, account) {
            return Ok(self);
        }
        let mut moved = Self::new(Arc::clone(account));
        moved.resize(self.bytes)?;
        Ok(moved)
    }

    /// Holds this many bytes of what can be forgotten: it leaves half of every budget to others.
    ///
    /// # Errors
    /// When there is no room for more; then nothing changes.
    pub(crate) fn resize_spare(&mut self, bytes: usize) -> Result<(), Spent> {
        let Some(more) = bytes.checked_sub(self.bytes) else { return self.resize(bytes) };
        self.account.take_of(more, bytes, |budget| budget.limit / 2)?;
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_empty() {
            self.account.give_back(self.bytes);
        }
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reservation").field(&self.account.party).field(&self.bytes).finish()
    }
}

/// There is no room for more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Whether there never will be, however little else is held.
    pub(crate) is_too_long: bool,
    /// Whether it is the share of the party that is spent, and not the whole budget.
    pub(crate) is_own: bool,
}

/// Completes a sentence that begins with a method.
impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.is_too_long {
            true => "longer than the server's memory allows",
            false => "the server has no memory left for requests; try again later",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(memory: usize, memory_per_party: usize) -> Accounts {
        Accounts::new(&Limits { memory, memory_per_party, ..Limits::default() })
    }

    fn at(address: &str) -> Party {
        Party::of(None, Some(address.parse().expect("an address")))
    }

    #[test]
    fn a_party_is_a_name_or_a_network() {
        let ada = Principal::new("ada");
        let local: IpAddr = [127, 0, 0, 1].into();
        assert_eq!(Party::of(Some(&ada), Some(local)), Party::Principal("ada".into()));
        assert_eq!(Party::of(None, None), Party::Anyone);
        assert_eq!(at("::ffff:127.0.0.1"), at("127.0.0.1"));
        assert_ne!(at("127.0.0.2"), at("127.0.0.1"));
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:0:0:2"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        let account = accounts(1, 1).find(at("2001:db8::1"));
        assert!(account.is_of(None, "2001:db8::2".parse().ok()));
        assert!(!account.is_of(Some(&ada), "2001:db8::2".parse().ok()));
        assert!(!account.is_of(None, None));
    }

    #[test]
    fn what_is_held_is_given_back() {
        let accounts = accounts(4 << 20, 2 << 20);
        let (one, other) = (accounts.find(at("::1")), accounts.find(at("127.0.0.1")));
        let mut body = Reservation::new(Arc::clone(&one));
        assert_eq!(body.resize(1 << 20), Ok(()));
        assert_eq!(body.resize(2 << 20), Err(Spent { is_too_long: true, is_own: true }));
        let mut second = Reservation::new(Arc::clone(&one));
        assert_eq!(second.resize(1 << 20), Err(Spent { is_too_long: false, is_own: true }));
        // The last quarter is for short ones.
        assert_eq!(second.resize(SHORT), Ok(()));
        assert_eq!(Reservation::new(other).resize(3 << 19), Ok(()));
        assert_eq!(body.resize(0), Ok(()));
        assert_eq!(second.resize(3 << 19), Ok(()));
        drop((body, second));
        assert_eq!(accounts.memory.held.load(Ordering::Relaxed), 0);
        assert_eq!(one.share.held.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_can_be_forgotten_leaves_half_to_others() {
        let accounts = accounts(4 << 20, 4 << 20);
        let [mut spare, mut body] =
            ["::1", "127.0.0.1"].map(|address| Reservation::new(accounts.find(at(address))));
        assert_eq!(spare.resize_spare(2 << 20), Ok(()));
        assert_eq!(spare.resize_spare((2 << 20) + 1).map_err(|it| it.is_too_long), Err(false));
        assert_eq!(body.resize(1 << 20), Ok(()));
        assert_eq!(spare.resize_spare(0), Ok(()));
        assert_eq!(spare.resize_spare(1 << 20), Ok(()));
        assert_eq!(spare.resize_spare((1 << 20) + 1).map_err(|it| it.is_own), Err(false));
    }

    #[test]
    fn one_budget_bounds_all_parties() {
        let accounts = accounts(4 << 20, 4 << 20);
        let mut held: Vec<_> =
            [at("10.0.0.1"), at("10.0.0.2"), Party::Connection, Party::Connection, Party::Anyone]
                .into_iter()
                .map(|party| Reservation::new(accounts.find(party)))
                .collect();
        let fit = held.iter_mut().filter_map(|it| it.resize(1 << 20).ok()).count();
        assert_eq!(fit, 3);
        assert_eq!(held[4].resize(5 << 20), Err(Spent { is_too_long: true, is_own: true }));
        assert_eq!(held[4].resize(SHORT), Ok(()));
    }

    #[test]
    fn one_answer_is_sent_however_long() {
        let accounts = accounts(4 << 20, 1 << 20);
        let one = accounts.find(at("::1"));
        let first = Reservation::of_answer(Arc::clone(&one), 8 << 20).expect("the first");
        let next = |account| Reservation::of_answer(account, 8 << 20).map(drop);
        assert_eq!(next(Arc::clone(&one)), Err(Spent { is_too_long: true, is_own: true }));
        assert_eq!(next(accounts.find(at("127.0.0.1"))), Ok(()));
        drop(first);
        assert_eq!(next(one), Ok(()));
    }

    #[test]
    fn parties_with_nothing_open_are_forgotten() {
        let accounts = accounts(1 << 20, 1 << 20);
        let known = accounts.find(at("10.0.0.1"));
        for number in 0..10_000_u32 {
            drop(accounts.find(Party::Address(IpAddr::V4(number.into()))));
        }
        assert!(accounts.lock().by_party.len() <= 2 * FEW);
        assert!(Arc::ptr_eq(&known, &accounts.find(at("10.0.0.1"))));
    }
}
