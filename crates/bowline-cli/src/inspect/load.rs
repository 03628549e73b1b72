//! A small load test: one call, many times, and how long each took.

use std::collections::BTreeMap;
use std::time::Duration;

use bowline::{Client, Json};
use bowline_gateway::view::percentile;
use bowline_inspector::{Feed, Keep, Load};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::failure::{Code, Failure};

/// The most calls at once, and in all.
const MOST_AT_ONCE: usize = 256;
const MOST_CALLS: u32 = 100_000;
/// How often the page hears about it.
const OFTEN: Duration = Duration::from_millis(200);

/// Runs a test, and reports as it goes.
pub(super) async fn run(client: &Client, load: Load, feed: &Feed) {
    let params = load.params.clone().unwrap_or_else(Json::empty_object);
    let at_once = usize::try_from(load.at_once).unwrap_or(1).clamp(1, MOST_AT_ONCE);
    let calls = load.calls.clamp(1, MOST_CALLS);
    let pause = load.per_second.filter(|it| *it > 0.0).map(|rate| 1.0 / rate);
    let begun = Instant::now();
    let (mut test, mut running, mut told) = (Test::default(), JoinSet::new(), begun);
    let mut started = 0;
    while started < calls || !running.is_empty() {
        if started < calls && running.len() < at_once {
            if let Some(pause) = pause {
                let due = Duration::try_from_secs_f64(pause * f64::from(started));
                tokio::time::sleep_until(begun + due.unwrap_or_default()).await;
            }
            started += 1;
            let call = client.call_json(load.method.clone(), params.clone());
            running.spawn_local(async move {
                let begun = Instant::now();
                (call.await, begun.elapsed())
            });
            continue;
        }
        let Some(Ok((outcome, took))) = running.join_next().await else { continue };
        test.add(outcome.map_err(Failure::from), took);
        if told.elapsed() > OFTEN {
            told = Instant::now();
            publish(feed, &load, test.report(begun, "running"));
        }
    }
    publish(feed, &load, test.report(begun, "done"));
}

fn publish(feed: &Feed, load: &Load, mut event: Value) {
    let (connection, call) = (load.connection, &load.call);
    event["connection"] = connection.into();
    event["call"] = call.as_str().into();
    feed.publish(Keep::As(&format!("c{connection}/load")), &event);
}

#[derive(Default)]
struct Test {
    /// Milliseconds.
    times: Vec<f64>,
    errors: BTreeMap<String, u32>,
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
            let key = if self.errors.len() < 16 { error } else { "other".to_owned() };
            *self.errors.entry(key).or_default() += 1;
        }
    }

    fn report(&mut self, begun: Instant, state: &str) -> Value {
        self.times.sort_by(f64::total_cmp);
        let at = |share| percentile(&self.times, share);
        let seconds = begun.elapsed().as_secs_f64();
        let count = u32::try_from(self.times.len()).unwrap_or(u32::MAX);
        // A plot needs no more than a hundred points.
        let plot: Vec<f64> = (0..=100).map(|share| at(f64::from(share) / 100.0)).collect();
        json!({
            "event": "load", "state": state, "done": count, "errors": self.errors,
            "seconds": seconds, "perSecond": f64::from(count) / seconds.max(1e-9),
            "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1.0), "plot": plot,
        })
    }
}
