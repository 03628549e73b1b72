//! Repeats calls whose result is a question.

use bowline_proto::model::InputRequiredResult;

use super::error::CallError;
use super::limits::ClientLimit;
use super::outgoing::Round;
use super::restart::Backoff;
use super::shared::{Live, Shared};

/// How often a call was repeated because the server asked for answers or time.
pub(super) struct Rounds {
    rounds: u32,
    waits: Backoff,
}

impl Rounds {
    pub(super) fn new() -> Self {
        Self { rounds: 0, waits: Backoff::new() }
    }

    /// Answers what the server asks, or gives it time; then the call can be sent again.
    pub(super) async fn next(
        &mut self,
        shared: &Shared,
        method: &str,
        live: &Live,
        asked: InputRequiredResult,
    ) -> Result<Round, CallError> {
        self.rounds += 1;
        self.check(shared, method)?;
        if asked.input_requests.is_none() {
            tokio::time::sleep(self.waits.next()).await;
        }
        shared.answer(method, live, asked).await
    }

    fn check(&self, shared: &Shared, method: &str) -> Result<(), CallError> {
        let limits = &shared.profile.limits;
        let exceeded = |limit, most: u32| {
            Err(CallError::LimitExceeded { method: method.to_owned(), limit, most: most.into() })
        };
        let (rounds, waits) = (self.rounds, self.waits.failures());
        if rounds - waits > limits.rounds {
            return exceeded(ClientLimit::Rounds, limits.rounds);
        }
        if waits >= limits.waits && rounds > limits.waits {
            return exceeded(ClientLimit::Waits, limits.waits);
        }
        Ok(())
    }
}
