//! Log levels, cancellation, progress.

use std::time::Duration;

use bowline::model::meta_key::LOG_LEVEL;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::calls::ToolCall;
use crate::frames::message::{self, plain_method};
use crate::observed::LEVELS;
use crate::probe::{Outcome, PASS, Probe, all_good, broken, problems_of, skip};
use crate::rule::{Rule, Transport, table};

const LOGGING: &str = "server/utilities/logging";
const PROGRESS: [&str; 2] = ["basic/utilities/progress", "basic/patterns/progress"];

table! { |probe| Rule::eras("basic/utilities/cancellation", "basic/patterns/cancellation");
    Must "logging.levels" [.legacy().page(LOGGING)] => levels(probe),
        "every log level can be set",
        "Answer logging/setLevel with {} for each of the eight levels, or do not declare logging.";
    Should "logging.bad-level" [.page(LOGGING)] => bad_level(probe),
        "an unknown log level is rejected with -32602",
        "Reject levels other than the eight of syslog with error -32602.";
    Must "cancel.unknown" => cancel_unknown(probe),
        "a cancellation of an unknown request is ignored",
        "Ignore notifications/cancelled for requests that are finished or unknown.";
    Should "cancel.malformed" => cancel_malformed(probe),
        "a cancellation without a request id is ignored",
        "Ignore malformed notifications/cancelled, and continue.";
    Should "cancel.running" [.on(&[Transport::Stdio, Transport::Sse])] => cancel_running(probe),
        "a cancelled call is not answered",
        "Stop what a cancelled request started, and send nothing more for it.";
    Must "progress.token" [.pages(PROGRESS[0], PROGRESS[1])] => progress(probe, wrong_token),
        "progress carries the token of its request",
        "Repeat _meta.progressToken of the request, unchanged, in each notification.";
    Must "progress.increases" [.pages(PROGRESS[0], PROGRESS[1])] => progress(probe, not_increasing),
        "progress increases",
        "Increase progress with each notification, whether there is a total or not.";
}

async fn levels(probe: &mut Probe) -> Outcome {
    probe.needs("logging").await?;
    let mut problems = Vec::new();
    // The quietest comes last and stays.
    for level in LEVELS {
        let reply = probe.ask("logging/setLevel", json!({"level": level})).await?;
        problems.extend(problems_of(reply.expect_result(&format!("level {level}")))?);
    }
    all_good(problems)
}

async fn bad_level(probe: &mut Probe) -> Outcome {
    let request = if probe.revision.is_modern() {
        (plain_method(probe.revision), json!({"_meta": {LOG_LEVEL: "loud"}}))
    } else {
        ("logging/setLevel", json!({"level": "loud"}))
    };
    probe.rejects("logging", request, "the log level \"loud\"").await
}

fn cancellation(params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string()
}

async fn cancel_unknown(probe: &mut Probe) -> Outcome {
    let params = json!({"requestId": "bowline-never-sent", "reason": "a check"});
    ignored(probe, &params, "a cancellation of an unknown request").await
}

async fn cancel_malformed(probe: &mut Probe) -> Outcome {
    ignored(probe, &json!({"reason": "a check"}), "a cancellation without requestId").await
}

async fn ignored(probe: &mut Probe, params: &Value, what: &str) -> Outcome {
    let received = probe.say(&cancellation(params), &[]).await?;
    let is_answer = |answer: &&Value| {
        received.status.is_none() || answer.get("id").is_some_and(|id| !id.is_null())
    };
    match received.responses().find(is_answer) {
        Some(answer) => broken(format!("{what} got {answer}")),
        None => PASS,
    }
}

async fn cancel_running(probe: &mut Probe) -> Outcome {
    /// A faster call may be finished before it is cancelled.
    const LONG: Duration = Duration::from_millis(300);
    /// A call may be faster the second time, when less runs beside it.
    const SOON: Duration = Duration::from_millis(50);
    let calls = probe.calls().await?;
    let is_long = |call: &&ToolCall| call.success().is_some() && call.took >= LONG;
    let Some(call) = calls.iter().find(is_long) else {
        return skip("no call takes long enough to be cancelled; --call names one that does");
    };
    let (revision, name) = (probe.revision, &call.name);
    let mut connection = probe.fresh().await?;
    if !revision.is_modern() {
        connection.shake_hands(revision.as_str()).await?;
    }
    connection.evidence.clear();
    let id = json!("bowline-cancelled");
    let params = json!({"name": name, "arguments": call.arguments});
    let request = message::request(revision, &id, "tools/call", params).to_string();
    connection.tell(&request).await?;
    sleep(SOON).await;
    connection.tell(&cancellation(&json!({"requestId": id, "reason": "a check"}))).await?;
    // The answer shows that the cancellation has been read.
    let read = connection.ask(revision, plain_method(revision), json!({})).await?;
    // By then the call would have finished, even if it takes somewhat longer this time.
    sleep(call.took * 3 / 2).await;
    let after = connection.ask(revision, plain_method(revision), json!({})).await;
    probe.finish(connection).await;
    let after = after?.received;
    let is_it = |answer: &&Value| answer.get("id") == Some(&id);
    let early = read.received.responses().find(is_it);
    match early.or_else(|| after.responses().find(is_it)) {
        None => PASS,
        Some(answer) if answer.get("result").is_none() => {
            broken(format!("{name} was cancelled, but got {}", answer["error"]))
        }
        Some(_) if early.is_some() => {
            skip(format!("{name} finished before its cancellation was read"))
        }
        Some(_) => broken(format!("{name} was cancelled, but got a result")),
    }
}

/// Judges the progress notifications of each call that has any.
async fn progress(probe: &mut Probe, judge: fn(&ToolCall, &[&Value]) -> Option<String>) -> Outcome {
    let judge = |call: &ToolCall| {
        let is_progress = |it: &&Value| it.get("method") == Some(&json!("notifications/progress"));
        let reports: Vec<&Value> =
            call.messages.iter().filter(is_progress).map(|it| &it["params"]).collect();
        (!reports.is_empty()).then(|| judge(call, &reports).into_iter().collect())
    };
    probe.judge_calls(Some("no call reported progress"), judge).await
}

fn wrong_token(call: &ToolCall, reports: &[&Value]) -> Option<String> {
    let wrong = reports.iter().find(|it| it["progressToken"] != call.token.as_str())?;
    Some(format!("the token is {}, not {:?}", wrong["progressToken"], call.token))
}

fn not_increasing(_: &ToolCall, reports: &[&Value]) -> Option<String> {
    let values: Option<Vec<f64>> = reports.iter().map(|it| it["progress"].as_f64()).collect();
    let Some(values) = values else { return Some("progress is not a number".to_owned()) };
    let pair = values.windows(2).find(|pair| pair[0] >= pair[1])?;
    Some(format!("progress {} after {}", pair[1], pair[0]))
}
