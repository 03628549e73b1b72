//! Requests that wait for their answers.
//!
//! An answer belongs to the request with its id in the same HTTP exchange: real clients send
//! `id: 1` with every POST. But an answer may also come by another exchange: a client answers the
//! question of a legacy server in a POST of its own, HTTP+SSE sends every answer down one stream,
//! and a broken stream is resumed by a new one. Such an answer belongs to the only request with its
//! id that waits; where several do, nobody can tell.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Requests by what their answers repeat, and by exchange.
#[derive(Debug)]
pub(crate) struct Pairs<K, V> {
    waiting: HashMap<K, BTreeMap<u64, V>>,
    count: usize,
}

impl<K, V> Default for Pairs<K, V> {
    fn default() -> Self {
        Self { waiting: HashMap::new(), count: 0 }
    }
}

impl<K: Eq + Hash, V> Pairs<K, V> {
    /// Remembers a request. A request of the same exchange with the same key is forgotten.
    pub(crate) fn insert(&mut self, key: K, exchange: u64, value: V) {
        let replaced = self.waiting.entry(key).or_default().insert(exchange, value);
        self.count += usize::from(replaced.is_none());
    }

    /// The request that an answer in this exchange belongs to. It waits no longer.
    pub(crate) fn take(&mut self, key: &K, exchange: u64) -> Option<V> {
        let same = self.waiting.get_mut(key)?;
        let found = match same.remove(&exchange) {
            Some(value) => Some(value),
            None if same.len() == 1 => same.pop_first().map(|(_, value)| value),
            None => None,
        };
        if same.is_empty() {
            self.waiting.remove(key);
        }
        self.count -= usize::from(found.is_some());
        found
    }

    /// Forgets requests.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&V) -> bool) {
        self.waiting.retain(|_, same| {
            same.retain(|_, value| is_kept(value));
            !same.is_empty()
        });
        self.count = self.waiting.values().map(BTreeMap::len).sum();
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_belongs_to_its_exchange_or_else_to_the_only_request() {
        let mut pairs = Pairs::default();
        pairs.insert("1", 1, 'a');
        pairs.insert("1", 2, 'b');
        assert_eq!(pairs.take(&"1", 2), Some('b'));
        assert_eq!(pairs.take(&"1", 9), Some('a'));
        assert_eq!((pairs.take(&"1", 1), pairs.len()), (None, 0));
    }

    #[test]
    fn nobody_can_tell_which_of_several_requests_is_answered() {
        let mut pairs = Pairs::default();
        pairs.insert("1", 1, 'a');
        pairs.insert("1", 2, 'b');
        assert_eq!(pairs.take(&"1", 3), None);
        pairs.retain(|value| *value == 'b');
        assert_eq!((pairs.take(&"1", 3), pairs.len()), (Some('b'), 0));
    }
}
