//! Values that belong to one client: to its session or, where there are no sessions, to its
//! principal.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::principal::Principal;
use super::state::{State, States};

/// The values of one client.
#[derive(Default)]
pub(crate) struct SessionStates(Mutex<States>);

impl SessionStates {
    /// The value of a type, made on first use. If two make it at the same time, the first one
    /// counts.
    pub(crate) fn get_or_make<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> State<T> {
        let found = States::find([&*lock(&self.0)].into_iter());
        found.unwrap_or_else(|_| {
            // Without the lock: it may take its time, panic, or want another value.
            let made = make();
            lock(&self.0).get_or_insert(made)
        })
    }
}

/// The values of each principal, as many as the limits allow.
#[derive(Default)]
pub(crate) struct Principals(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// Counts uses, to find the principal that was idle longest.
    uses: u64,
    by_name: HashMap<String, (u64, Arc<SessionStates>)>,
}

impl Principals {
    pub(crate) fn states(&self, principal: &Principal, limit: usize) -> Arc<SessionStates> {
        let mut inner = lock(&self.0);
        inner.uses += 1;
        let now = inner.uses;
        if let Some((used, states)) = inner.by_name.get_mut(principal.as_str()) {
            *used = now;
            return Arc::clone(states);
        }
        while inner.by_name.len() >= limit.max(1) {
            let idle = inner.by_name.iter().min_by_key(|(_, (used, _))| *used);
            let Some(idle) = idle.map(|(name, _)| name.clone()) else { break };
            inner.by_name.remove(&idle);
        }
        let states = Arc::<SessionStates>::default();
        inner.by_name.insert(principal.as_str().to_owned(), (now, Arc::clone(&states)));
        states
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_principal_that_was_idle_longest_makes_room() {
        let principals = Principals::default();
        let count = |name: &str| {
            let states = principals.states(&Principal::new(name), 2);
            let count = states.get_or_make(|| Mutex::new(0));
            let mut count = lock(&count);
            *count += 1;
            *count
        };
        assert_eq!([count("ada"), count("bob"), count("ada"), count("eve")], [1, 1, 2, 1]);
        assert_eq!([count("ada"), count("bob")], [3, 1]);
    }
}
