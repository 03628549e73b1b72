//! A small load test: one call, many times, and how long each took.

use std::collections::BTreeMap;
use std::time::Duration;

use bowline::{Client, Json};
use bowline_gateway::view::percentile;
use bowline_inspector::{Feed, Keep, Load};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::failure::{Code, Failure};

/// The most calls at once, and in all.
const MOST_AT_ONCE: usize = 256;
const MOST_CALLS: u32 = 100_000;
/// How often the page hears about it.
const OFTEN: Duration = Duration::from_millis(200);

/// Runs a test, and reports as it goes, also when it is stopped.
pub(super) async fn run(client: &Client, load: Load, feed: &Feed) {
    let params = load.params.clone().unwrap_or_else(Json::empty_object);
    let at_once = usize::try_from(load.at_once).unwrap_or(1).clamp(1, MOST_AT_ONCE);
    let calls = load.calls.clamp(1, MOST_CALLS);
    let pace = load.per_second.filter(|it| *it > 0.0);
    let method = load.method.clone();
    let begun = Instant::now();
    let (times, errors, feed) = (Vec::new(), BTreeMap::new(), feed.clone());
    let mut test = Test { begun, load, feed, times, errors, is_done: false };
    let mut running = JoinSet::new();
    let mut often = interval(OFTEN);
    often.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut started = 0;
    while started < calls || !running.is_empty() {
        let due = due(begun, pace, started);
        tokio::select! {
            () = sleep_until(due), if started < calls && running.len() < at_once => {
                started += 1;
                let call = client.call_json(method.clone(), params.clone());
                // A call that had to wait for its turn has waited: what a slow answer holds up
                // counts, or a server would look the faster the longer it stalls.
                let from = if pace.is_some() { due } else { Instant::now() };
                running.spawn_local(async move { (call.await, from.elapsed()) });
            }
            Some(Ok((outcome, took))) = running.join_next(), if !running.is_empty() => {
                test.add(outcome.map_err(Failure::from), took);
            }
            _ = often.tick() => test.report("running"),
        }
    }
    test.report("done");
}

/// When a call is due.
fn due(begun: Instant, pace: Option<f64>, number: u32) -> Instant {
    let after = pace.map(|pace| Duration::try_from_secs_f64(f64::from(number) / pace));
    begun + after.and_then(Result::ok).unwrap_or_default()
}

struct Test {
    begun: Instant,
    load: Load,
    feed: Feed,
    /// Milliseconds.
    times: Vec<f64>,
    errors: BTreeMap<String, u32>,
    is_done: bool,
}

impl Test {
    fn add(&mut self, outcome: Result<Json, Failure>, took: Duration) {
        self.times.push(took.as_secs_f64() * 1000.0);
        let error = match outcome {
            Ok(result) => Code::of_result(&result).map(|_| "the tool failed".to_owned()),
            Err(failure) => Some(failure.what),
        };
        if let Some(error) = error {
            // A server that words each error differently does not fill the memory.
            let is_known = self.errors.len() < 16 || self.errors.contains_key(&error);
            let key = if is_known { error } else { "other".to_owned() };
            *self.errors.entry(key).or_default() += 1;
        }
    }

    fn report(&mut self, state: &str) {
        self.is_done = state != "running";
        let mut event = self.figures();
        event["state"] = state.into();
        event["connection"] = self.load.connection.into();
        event["call"] = self.load.call.as_str().into();
        self.feed.publish(Keep::As(&format!("c{}/load", self.load.connection)), &event);
    }

    fn figures(&mut self) -> Value {
        self.times.sort_by(f64::total_cmp);
        let at = |share| percentile(&self.times, share);
        let seconds = self.begun.elapsed().as_secs_f64();
        let count = u32::try_from(self.times.len()).unwrap_or(u32::MAX);
        // A plot needs no more than a hundred points.
        let plot: Vec<f64> = (0..=100).map(|share| at(f64::from(share) / 100.0)).collect();
        json!({
            "event": "load", "done": count, "calls": self.load.calls, "errors": self.errors,
            "seconds": seconds, "perSecond": f64::from(count) / seconds.max(1e-9),
            "from": if self.load.per_second.is_some_and(|it| it > 0.0) { "due" } else { "sent" },
            "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1.0), "plot": plot,
        })
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        if !self.is_done {
            self.report("stopped");
        }
    }
}
