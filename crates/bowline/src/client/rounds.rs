//! Repeats calls whose result is a question, and answers questions.

use bowline_proto::json::Json;
use bowline_proto::members::Members;
use bowline_proto::model::{InputRequest, InputRequiredResult};

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

impl Shared {
    /// Answers the questions of one round, one after another: a person can only read one.
    async fn answer(
        &self,
        method: &str,
        live: &Live,
        asked: InputRequiredResult,
    ) -> Result<Round, CallError> {
        let InputRequiredResult { input_requests, request_state, .. } = asked;
        let mut answers = Members::new();
        let has_questions = input_requests.is_some();
        for (key, question) in input_requests.unwrap_or_default() {
            answers.insert(key, self.answer_one(method, live, question).await?);
        }
        Ok(Round { answers: has_questions.then_some(answers), state: request_state })
    }

    /// Answers one question.
    pub(super) async fn answer_one(
        &self,
        method: &str,
        live: &Live,
        question: InputRequest,
    ) -> Result<Json, CallError> {
        let name = question.method();
        let answer = self.handlers.answer(live.peer.revision, question).await;
        answer.map_err(|error| CallError::CannotAnswer {
            method: method.to_owned(),
            asked: name.to_owned(),
            problem: error.message,
        })
    }
}
