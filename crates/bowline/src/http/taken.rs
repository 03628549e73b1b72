//! The letters that a node has taken in lately, so that none is taken twice: whoever reads along
//! where nodes do not use https could send one again, and run a tool again.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use ring::digest::{SHA256, digest};

/// How many letters are remembered at most: more than a node takes in before they expire. Beyond it
/// the oldest is forgotten.
const MOST: usize = 100_000;

type Mark = [u8; 16];

/// The letters that were taken in and have not expired.
#[derive(Default)]
pub(super) struct Taken(Mutex<State>);

#[derive(Default)]
struct State {
    marks: HashSet<Mark>,
    /// In the order in which they came, with their ends.
    order: VecDeque<(u64, Mark)>,
}

impl Taken {
    /// Takes a sealed letter that is valid until a time. Returns whether it is the first time.
    ///
    /// A seal has one spelling, and two letters never have the same, whatever they say.
    pub(super) fn take(&self, sealed: &[u8], until: u64, now: u64) -> bool {
        let mut mark = Mark::default();
        mark.copy_from_slice(&digest(&SHA256, sealed).as_ref()[..16]);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { marks, order } = &mut *state;
        let is_first = !marks.contains(&mark);
        while let Some((end, oldest)) = order.front()
            && (*end < now || is_first && order.len() >= MOST)
        {
            marks.remove(oldest);
            order.pop_front();
        }
        if is_first {
            marks.insert(mark);
            order.push_back((until, mark));
        }
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_taken_once_while_it_is_valid() {
        let taken = Taken::default();
        assert!(taken.take(b"one", 30, 0));
        assert!(taken.take(b"two", 31, 1));
        assert!(!taken.take(b"one", 30, 30));
        assert!(taken.take(b"three", 61, 31));
        let state = taken.0.lock().unwrap();
        assert_eq!((state.order.len(), state.marks.len()), (2, 2), "what has expired is forgotten");
    }

    #[test]
    fn only_so_many_are_remembered() {
        let taken = Taken::default();
        for number in 0..=MOST {
            assert!(taken.take(&number.to_be_bytes(), 30, 0));
        }
        assert!(!taken.take(&MOST.to_be_bytes(), 30, 0));
        let state = taken.0.lock().unwrap();
        assert_eq!((state.order.len(), state.marks.len()), (MOST, MOST));
    }
}
