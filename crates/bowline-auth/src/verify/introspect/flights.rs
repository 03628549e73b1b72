//! Questions to an issuer that are on their way: one for each token, however many requests wait for
//! its answer, and a bounded number of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::OnceCell;

use super::memory::Name;
use crate::verify::{Identity, VerifyError};

/// What an issuer says about a token, and the bytes of its response.
pub(super) type Said = Result<(Option<Identity>, usize), VerifyError>;

/// The questions that are on their way.
#[derive(Default)]
pub(super) struct Flights(Mutex<HashMap<Name, Booking>>);

/// An answer that is awaited, and where the question came from.
struct Booking {
    answer: Weak<OnceCell<Said>>,
    from: Option<IpAddr>,
}

/// One question. Dropped by the last that waits for it, it is forgotten.
struct Flight<'a> {
    flights: &'a Flights,
    name: Name,
    answer: Arc<OnceCell<Said>>,
}

impl Flights {
    /// Asks, or waits for the answer to the same question. `None` if `most` others are on their
    /// way, or half as many from the same address.
    ///
    /// # Cancel safety
    /// If the request that asks is dropped, another one that waits asks again.
    pub(super) async fn join(
        &self,
        (name, from): (Name, Option<IpAddr>),
        most: usize,
        ask: impl Future<Output = Said>,
    ) -> Option<Said> {
        let flight = self.board(name, from, most)?;
        Some(flight.answer.get_or_init(|| ask).await.clone())
    }

    fn board(&self, name: Name, from: Option<IpAddr>, most: usize) -> Option<Flight<'_>> {
        let mut flights = self.lock();
        let known = flights.get(&name).and_then(|booking| booking.answer.upgrade());
        let is_full = |flights: &HashMap<Name, Booking>| {
            // Nobody's share: it would be one for all of them.
            let own = flights.values().filter(|it| from.is_some() && it.from == from).count();
            flights.len() >= most || own >= most.div_ceil(2)
        };
        let answer = match known {
            Some(answer) => answer,
            None if is_full(&flights) => return None,
            None => {
                let answer = Arc::new(OnceCell::new());
                flights.insert(name, Booking { answer: Arc::downgrade(&answer), from });
                answer
            }
        };
        Some(Flight { flights: self, name, answer })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Booking>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut flights = self.flights.lock();
        // Under the lock, so that nobody boards in between.
        if Arc::strong_count(&self.answer) == 1 {
            flights.remove(&self.name);
        }
    }
}
