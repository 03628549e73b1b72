//! Questions to an issuer that are on their way: one for each token, however many requests wait for
//! its answer, and a bounded number of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::OnceCell;

use super::memory::Name;
use crate::verify::{Identity, VerifyError};

/// What an issuer says about a token, and the bytes of its response.
pub(super) type Said = Result<(Option<Identity>, usize), VerifyError>;

/// The questions that are on their way.
#[derive(Default)]
pub(super) struct Flights(Mutex<HashMap<Name, Weak<OnceCell<Said>>>>);

/// One question. Dropped by the last that waits for it, it is forgotten.
struct Flight<'a> {
    flights: &'a Flights,
    name: Name,
    answer: Arc<OnceCell<Said>>,
}

impl Flights {
    /// Asks, or waits for the answer to the same question. `None` if `most` others are on their
    /// way.
    ///
    /// # Cancel safety
    /// If the request that asks is dropped, another one that waits asks again.
    pub(super) async fn join(
        &self,
        name: Name,
        most: usize,
        ask: impl Future<Output = Said>,
    ) -> Option<Said> {
        let flight = self.board(name, most)?;
        Some(flight.answer.get_or_init(|| ask).await.clone())
    }

    fn board(&self, name: Name, most: usize) -> Option<Flight<'_>> {
        let mut flights = self.lock();
        let known = flights.get(&name).and_then(Weak::upgrade);
        let answer = match known {
            Some(answer) => answer,
            None if flights.len() >= most => return None,
            None => {
                let answer = Arc::new(OnceCell::new());
                flights.insert(name, Arc::downgrade(&answer));
                answer
            }
        };
        Some(Flight { flights: self, name, answer })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Weak<OnceCell<Said>>>> {
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
