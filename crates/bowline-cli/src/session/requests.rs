//! The requests of a session and what became of them, as far as `info` and error messages report
//! it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use bowline::client::{Direction, WireMessage};
use bowline_check::text::shorten;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

/// Requests, by the messages on the wire.
#[derive(Default)]
pub(super) struct Requests {
    /// Unanswered requests by id.
    waiting: HashMap<String, Waiting>,
    /// The first of them.
    pub(super) steps: Vec<SentRequest>,
    /// Whether the response that is being read has an error status, and what its body says.
    is_refused: bool,
    pub(super) refusal: Option<String>,
}

/// A request that has no answer yet.
struct Waiting {
    since: Instant,
    /// Which of the first requests it is.
    step: Option<usize>,
    /// The HTTP exchange that carries it.
    exchange: Option<u64>,
}

/// A request of this client, and its outcome. The first few are remembered.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentRequest {
    pub(crate) method: String,
    pub(crate) took: Option<Duration>,
    /// The error's code, if the server refused it.
    pub(crate) refused: Option<i64>,
    /// The HTTP status, if that is how the server refused it.
    pub(crate) status: Option<u16>,
    /// Whether the next request was sent before the answer came.
    pub(crate) is_late: bool,
}

/// How many requests are remembered.
const STEPS: usize = 8;
/// How many unanswered requests are remembered.
const WAITING: usize = 1024;

/// The part of a message that tells what it is.
#[derive(Deserialize)]
struct MessageHead<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    error: Option<ErrorHead>,
}

#[derive(Deserialize)]
struct ErrorHead {
    #[serde(default)]
    code: i64,
}

impl Requests {
    /// Remembers requests and their answers. Returns how long an answer took.
    pub(super) fn remember(&mut self, message: &WireMessage<'_>) -> Option<Duration> {
        self.note_status(message);
        let head: MessageHead<'_> = serde_json::from_slice(message.bytes).ok()?;
        let id = head.id?.get().to_owned();
        match (message.direction, head.method) {
            (Direction::Sent, Some(method)) => {
                let method = method.into_owned();
                let step = (self.steps.len() < STEPS).then_some(self.steps.len());
                if step.is_some() {
                    for step in self.steps.iter_mut().filter(|step| step.took.is_none()) {
                        step.is_late = true;
                    }
                    self.steps.push(SentRequest { method, ..SentRequest::default() });
                }
                if self.waiting.len() < WAITING {
                    let exchange = message.http.map(|http| http.exchange);
                    self.waiting.insert(id, Waiting { since: Instant::now(), step, exchange });
                }
                None
            }
            (Direction::Received, None) => {
                let Waiting { since, step, .. } = self.waiting.remove(&id)?;
                let took = since.elapsed();
                if let Some(step) = step.and_then(|step| self.steps.get_mut(step)) {
                    step.took = Some(took);
                    step.refused = head.error.map(|error| error.code);
                }
                Some(took)
            }
            _ => None,
        }
    }

    /// Remembers error statuses: the step that ends with one, and what its body says in place of a
    /// message.
    fn note_status(&mut self, message: &WireMessage<'_>) {
        const LONGEST: usize = 400;
        if message.direction == Direction::Sent {
            (self.is_refused, self.refusal) = (false, None);
            return;
        }
        if let Some(http) = message.http {
            let status = http.status.filter(|status| *status >= 400);
            self.is_refused = status.is_some();
            let ended = self.waiting.values().find(|it| it.exchange == Some(http.exchange));
            if let (Some(ended), true) = (ended, status.is_some())
                && let Some(step) = ended.step.and_then(|step| self.steps.get_mut(step))
            {
                (step.status, step.took) = (status, Some(ended.since.elapsed()));
            }
        }
        let is_message = || {
            let head = serde_json::from_slice::<MessageHead<'_>>(message.bytes).ok();
            head.is_some_and(|head| head.error.is_some() || head.method.is_some())
        };
        if self.is_refused && !message.bytes.is_empty() && !is_message() {
            let text = String::from_utf8_lossy(message.bytes);
            self.refusal = Some(shorten(text.trim(), LONGEST));
        }
    }
}
