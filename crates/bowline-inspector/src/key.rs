//! Tickets, which open the page once, and keys, which a page uses from then on.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::time::Instant;

/// A secret, as its digest: comparing digests tells nothing about the secret.
type Digest = [u8; 32];

/// The tickets and keys of one run.
#[derive(Default)]
pub(crate) struct Keys {
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// Until when each is good, if not for the whole run.
    tickets: HashMap<Digest, Option<Instant>>,
    keys: HashSet<Digest>,
}

/// Tickets that nobody used yet, and keys: more are not handed out.
const MOST: usize = 256;

impl Keys {
    /// A ticket, good for one page, and for so long. `None` when there are too many.
    pub(crate) fn issue(&self, life: Option<Duration>) -> Option<String> {
        let (secret, now) = (secret(), Instant::now());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.tickets.retain(|_, end| end.is_none_or(|end| now < end));
        if open.tickets.len() >= MOST {
            return None;
        }
        open.tickets.insert(of(&secret), life.map(|life| now + life));
        Some(secret)
    }

    /// Takes a ticket, and gives a key for it.
    pub(crate) fn redeem(&self, ticket: &str) -> Option<String> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.keys.len() >= MOST {
            return None;
        }
        let end = open.tickets.remove(&of(ticket))?;
        if end.is_some_and(|end| end <= Instant::now()) {
            return None;
        }
        let key = secret();
        open.keys.insert(of(&key));
        Some(key)
    }

    /// Whether a key was given out.
    pub(crate) fn is_key(&self, key: &str) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).keys.contains(&of(key))
    }
}

fn of(secret: &str) -> Digest {
    let mut bytes = Digest::default();
    bytes.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
    bytes
}

/// 256 random bits as text.
pub(crate) fn secret() -> String {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).expect("the system has random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_works_once_and_its_key_goes_on_working() {
        let keys = Keys::default();
        let ticket = keys.issue(None).unwrap();
        assert!(!keys.is_key(&ticket), "a ticket is not a key");
        let key = keys.redeem(&ticket).unwrap();
        assert!(keys.is_key(&key));
        assert_eq!(keys.redeem(&ticket), None);
        assert!(keys.is_key(&key));
        assert!(!keys.is_key("") && keys.redeem("").is_none());
    }

    #[test]
    fn tickets_are_bounded() {
        let keys = Keys::default();
        assert_eq!((0..MOST + 5).filter_map(|_| keys.issue(None)).count(), MOST);
    }

    #[test]
    fn a_brief_ticket_ends_and_makes_room() {
        let keys = Keys::default();
        let late = keys.issue(Some(Duration::ZERO)).unwrap();
        assert_eq!(keys.redeem(&late), None);
        let soon = keys.issue(Some(Duration::from_secs(3600))).unwrap();
        assert!(keys.redeem(&soon).is_some());
        for _ in 0..2 * MOST {
            assert!(keys.issue(Some(Duration::ZERO)).is_some());
        }
    }
}
