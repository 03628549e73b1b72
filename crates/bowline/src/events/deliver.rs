//! Sends events to one webhook, one after another and each until it has arrived.

use std::sync::Arc;
use std::time::Duration;

use bowline_proto::causes::with_causes;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::log::Occurrence;
use super::secret;
use super::shared::Shared;
use super::subscription::{State, Subscription};
use crate::{clock, random};

/// How often a receiver is asked whether it wants to be one: nobody has said so yet.
const CHALLENGES: u32 = 10;

/// What became of an attempt.
enum Attempt {
    Done,
    Failed(String),
    /// There will never be another answer.
    Over(String),
}

/// Delivers until the subscription ends.
pub(super) async fn run(shared: Arc<Shared>, subscription: Arc<Subscription>) {
    let why = deliver(&shared, &subscription).await;
    tracing::info!(subscription = %subscription.id, why, "a subscription of events has ended");
    shared.forget(&subscription, |_| true).await;
}

/// Returns why it ended.
async fn deliver(shared: &Shared, subscription: &Subscription) -> String {
    loop {
        let left = time_left(&subscription.state());
        if left.is_zero() {
            // Its client may renew it right now.
            if shared.forget(subscription, |state| time_left(state).is_zero()).await {
                return "it has expired".to_owned();
            }
            continue;
        }
        let is_verified = subscription.state().is_verified;
        let attempt = match is_verified {
            false => verify(shared, subscription).await,
            true => match next(shared, subscription) {
                Ok(event) => send(shared, subscription, &event).await,
                Err(position) => {
                    // It may be renewed meanwhile, so this only looks again.
                    let _ = tokio::time::timeout(left, shared.log.reach(position)).await;
                    continue;
                }
            },
        };
        let pause = match attempt {
            Attempt::Over(why) => return why,
            Attempt::Done => {
                subscription.state().succeed();
                continue;
            }
            Attempt::Failed(problem) => {
                tracing::debug!(subscription = %subscription.id, problem, "a webhook failed");
                subscription.state().fail(problem, &shared.limits)
            }
        };
        let Some(pause) = pause else { return "its receiver has failed for too long".to_owned() };
        if !is_verified && subscription.state().failures >= CHALLENGES {
            return "its receiver has not returned the challenge".to_owned();
        }
        tokio::time::sleep(pause.min(left)).await;
    }
}

fn time_left(state: &State) -> Duration {
    Duration::from_millis(state.expires.saturating_sub(clock::unix_millis()))
}

/// The next event to send, or the position of the one to wait for.
fn next(shared: &Shared, subscription: &Subscription) -> Result<Arc<Occurrence>, u64> {
    let (position, max_age) = {
        let state = subscription.state();
        (state.position, state.max_age)
    };
    let mut page = shared.log.read(position, 1, |it| subscription.wants(it, max_age));
    let mut state = subscription.state();
    state.is_truncated |= page.is_truncated;
    page.events.pop().ok_or_else(|| {
        state.position = state.position.max(page.next);
        state.position
    })
}

/// Sends an event, and goes on to the next one if it has arrived.
async fn send(shared: &Shared, subscription: &Subscription, event: &Occurrence) -> Attempt {
    let body = json!(shared.log.told(event));
    let (attempt, _) = post(shared, subscription, &event.id, &body).await;
    if matches!(attempt, Attempt::Done) {
        let mut state = subscription.state();
        state.position = state.position.max(event.position + 1);
    }
    attempt
}

/// Asks whether the receiver wants to be one.
async fn verify(shared: &Shared, subscription: &Subscription) -> Attempt {
    #[derive(Deserialize)]
    struct Echo {
        challenge: String,
    }
    let challenge = random::token();
    let body = json!({ "type": "verification", "challenge": challenge });
    let id = format!("msg_{}", random::token());
    let (attempt, answer) = post(shared, subscription, &id, &body).await;
    if !matches!(attempt, Attempt::Done) {
        return attempt;
    }
    let echo = serde_json::from_slice::<Echo>(&answer);
    let known = subscription.state().secret.clone();
    if echo.is_ok_and(|echo| known.is_same(&echo.challenge, &challenge)) {
        subscription.state().is_verified = true;
        shared.changed.notify_one();
        shared.try_to_keep(subscription).await;
        return Attempt::Done;
    }
    Attempt::Failed("the receiver did not return the challenge".to_owned())
}

/// Sends one message. Returns the body of the answer, too.
async fn post(
    shared: &Shared,
    subscription: &Subscription,
    id: &str,
    body: &Value,
) -> (Attempt, Bytes) {
    let failed = |problem: String| (Attempt::Failed(problem), Bytes::new());
    let Ok(_permit) = shared.deliveries.acquire().await else {
        return failed("the server is shutting down".to_owned());
    };
    let body = Bytes::from(body.to_string());
    let time = clock::unix_seconds();
    let signature = subscription.state().secret.sign(id, time, &body);
    let request = Request::post(&subscription.key.url)
        .header(CONTENT_TYPE, "application/json")
        .header(secret::ID, id)
        .header(secret::TIME, time)
        .header(secret::SIGNATURE, signature)
        .header("x-mcp-subscription-id", &subscription.id)
        .body(body);
    let request = match request {
        Ok(request) => request,
        Err(error) => return (Attempt::Over(error.to_string()), Bytes::new()),
    };
    let web = match shared.web() {
        Ok(web) => web,
        Err(error) => return failed(with_causes(&error)),
    };
    match web.fetch(request).await {
        Ok(answer) if answer.status().is_success() => (Attempt::Done, answer.into_body()),
        Ok(answer) if answer.status() == StatusCode::GONE => {
            (Attempt::Over("its receiver is gone (HTTP 410)".to_owned()), Bytes::new())
        }
        Ok(answer) => failed(format!("HTTP {}", answer.status().as_u16())),
        Err(error) => failed(with_causes(&error)),
    }
}
