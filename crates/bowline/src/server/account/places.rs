//! What parties have open at a time: connections, sessions, streams, running calls.

#![cfg_attr(
    not(feature = "http"),
    expect(dead_code, reason = "without HTTP, every connection is a party by itself")
)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline_proto::method::{CallTool, Complete, GetPrompt, Method as _, ReadResource};

use super::Account;
use crate::server::failure::Failure;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Connections,
    Sessions,
    Streams,
    Calls,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Sessions => "sessions",
            Self::Streams => "streams",
            Self::Calls => "calls",
        }
    }
}

/// How many of each kind there are.
#[derive(Default)]
pub(crate) struct Counts([AtomicUsize; 4]);

impl Counts {
    fn of(&self, kind: Kind) -> &AtomicUsize {
        &self.0[kind as usize]
    }

    fn take(&self, kind: Kind, limit: usize) -> bool {
        let next = |count| (count < limit).then_some(count + 1);
        self.of(kind).fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }

    fn give_back(&self, kind: Kind) {
        self.of(kind).fetch_sub(1, Ordering::AcqRel);
    }
}

/// How many of a kind there may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    pub(crate) kind: Kind,
    /// Of all parties.
    pub(crate) all: usize,
    /// Of one of them.
    pub(crate) each: usize,
}

/// One of a limited number, given back when it is dropped.
pub(crate) struct Place {
    account: Arc<Account>,
    kind: Kind,
}

impl Place {
    /// # Errors
    /// When there are too many already.
    pub(crate) fn take(account: &Arc<Account>, most: Most) -> Result<Self, Full> {
        let (all, own) = account.counts();
        if !own.take(most.kind, account.limit(most)) {
            return Err(Full { most, is_own: true });
        }
        if !all.take(most.kind, most.all) {
            own.give_back(most.kind);
            return Err(Full { most, is_own: false });
        }
        Ok(Self { account: Arc::clone(account), kind: most.kind })
    }

    /// The same for something that runs already, whatever the limits say.
    pub(crate) fn claim(account: &Arc<Account>, kind: Kind) -> Self {
        let (all, own) = account.counts();
        all.of(kind).fetch_add(1, Ordering::AcqRel);
        own.of(kind).fetch_add(1, Ordering::AcqRel);
        Self { account: Arc::clone(account), kind }
    }

    /// Checks whether one more call may wait, before it starts. Requests that are answered at once
    /// always may.
    ///
    /// # Errors
    /// When too many wait already.
    pub(crate) fn check_call(account: &Account, most: Most, method: &str) -> Result<(), Failure> {
        let may_take_long = [CallTool::NAME, GetPrompt::NAME, ReadResource::NAME, Complete::NAME];
        Self::check(account, most).or_else(|full| match may_take_long.contains(&method) {
            true => Err(Failure::busy(method, full)),
            false => Ok(()),
        })
    }

    /// Whether there is a place.
    ///
    /// # Errors
    /// When there is none.
    fn check(account: &Account, most: Most) -> Result<(), Full> {
        let (all, own) = account.counts();
        if own.of(most.kind).load(Ordering::Relaxed) >= account.limit(most) {
            return Err(Full { most, is_own: true });
        }
        if all.of(most.kind).load(Ordering::Relaxed) >= most.all {
            return Err(Full { most, is_own: false });
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let (all, own) = self.account.counts();
        all.give_back(self.kind);
        own.give_back(self.kind);
    }
}

/// There are too many of a kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Full {
    most: Most,
    /// Whether it is the caller's own share that is used up.
    pub(crate) is_own: bool,
}

/// Names the limit.
impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Most { kind, all, each } = self.most;
        let kind = kind.as_str();
        if self.is_own {
            let each = each.min(all);
            write!(f, "this caller has {each} {kind} open, which is the limit for one caller")
        } else {
            write!(f, "the server has {all} {kind} open, which is its limit; try again later")
        }
    }
}
