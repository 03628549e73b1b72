//! Log levels, cancellation, progress.

use std::time::Duration;

use bowline::Era;
use bowline::model::meta_key::LOG_LEVEL;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::jsonrpc::plain;
use crate::check::calls::Called;
use crate::check::probe::{Outcome, PASS, Probe, all_good, broken, skip};
use crate::check::seen::LEVELS;
use crate::check::table::Check;
use crate::check::wire::{Heard, Link, Lost, Until, request};

const LOGGING: &str = "server/utilities/logging";
const CANCEL: [&str; 2] = ["basic/utilities/cancellation", "basic/patterns/cancellation"];
const PROGRESS: [&str; 2] = ["basic/utilities/progress", "basic/patterns/progress"];

pub(super) const CHECKS: &[Check] = &[
    Check::must("logging.levels", "every level can be set", |probe| Box::pin(levels(probe)))
        .legacy()
        .page(LOGGING)
        .fix("Answer logging/setLevel with {} for each of the eight levels, or do not declare logging."),
    Check::should("logging.bad-level", "a level that does not exist is refused with -32602", |probe| {
        Box::pin(bad_level(probe))
    })
    .page(LOGGING)
    .fix("Refuse levels other than the eight of syslog with error -32602."),
    Check::must("cancel.unknown", "a cancellation of nothing is ignored", |probe| {
        Box::pin(cancel_unknown(probe))
    })
    .pages(CANCEL[0], CANCEL[1])
    .fix("Ignore notifications/cancelled for requests that are done or never were."),
    Check::should("cancel.malformed", "a cancellation without a request is ignored", |probe| {
        Box::pin(cancel_malformed(probe))
    })
    .pages(CANCEL[0], CANCEL[1])
    .fix("Ignore notifications/cancelled that cannot be read, and go on."),
    Check::should("cancel.running", "a call that is cancelled is not answered", |probe| {
        Box::pin(cancel_running(probe))
    })
    .streams()
    .pages(CANCEL[0], CANCEL[1])
    .fix("Stop what a cancelled request started, and send nothing more for it."),
    Check::must("progress.token", "progress carries the token of its request", |probe| {
        Box::pin(progress_token(probe))
    })
    .pages(PROGRESS[0], PROGRESS[1])
    .fix("Repeat _meta.progressToken of the request, as it is, in each notification."),
    Check::must("progress.increases", "progress increases", |probe| Box::pin(progress_increases(probe)))
        .pages(PROGRESS[0], PROGRESS[1])
        .fix("Let progress grow with each notification, whether there is a total or not."),
];

async fn levels(probe: &mut Probe) -> Outcome {
    probe.needs("logging").await?;
    let mut problems = Vec::new();
    // The quietest comes last and stays.
    for level in LEVELS {
        let reply = probe.ask("logging/setLevel", json!({"level": level})).await?;
        if !reply.is_result() {
            problems.push(format!("level {level} was answered with {}", reply.describe()));
        }
    }
    all_good(problems)
}

async fn bad_level(probe: &mut Probe) -> Outcome {
    probe.needs("logging").await?;
    let reply = match probe.revision.era() {
        Era::Legacy => probe.ask("logging/setLevel", json!({"level": "loud"})).await?,
        Era::Modern => {
            let method = plain(probe);
            probe.ask(method, json!({"_meta": {LOG_LEVEL: "loud"}})).await?
        }
    };
    reply.expect_code("the log level \"loud\"", &[-32602])
}

async fn cancel_unknown(probe: &mut Probe) -> Outcome {
    let params = json!({"requestId": "bowline-never-sent", "reason": "a check"});
    unanswered(probe, &params, "a cancellation of a request that never was").await
}

async fn cancel_malformed(probe: &mut Probe) -> Outcome {
    unanswered(probe, &json!({"reason": "a check"}), "a cancellation without requestId").await
}

async fn cancel_running(probe: &mut Probe) -> Outcome {
    /// What is faster may be done before it is cancelled.
    const LONG: Duration = Duration::from_millis(300);
    /// What took so long once may be faster now, when less runs beside it.
    const SOON: Duration = Duration::from_millis(50);
    let calls = probe.calls().await?;
    let is_long = |called: &&Called| called.success().is_some() && called.took >= LONG;
    let Some(called) = calls.iter().find(is_long) else {
        return skip("no call takes long enough to be cancelled; --call names one that does");
    };
    let mut link = probe.fresh().await?;
    if probe.revision.era() == Era::Legacy {
        link.shake_hands(probe.revision.as_str()).await?;
    }
    let id = json!("bowline-cancelled");
    let params = json!({"name": called.name, "arguments": called.arguments});
    let call = request(probe.revision, &id, "tools/call", params).to_string();
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": id, "reason": "a check"}});
    link.evidence.clear();
    link.tell(&call, &[]).await?;
    sleep(SOON).await;
    link.tell(&cancel.to_string(), &[]).await?;
    // Its answer shows that the cancellation has been read.
    let read = ask(probe, &mut link, "read").await?;
    // By then it would have been done, even if it takes somewhat longer this time.
    sleep(called.took * 3 / 2).await;
    let after = ask(probe, &mut link, "after").await;
    probe.finish(link).await;
    let after = after?;
    let name = &called.name;
    let is_it = |answer: &&Value| answer.get("id") == Some(&id);
    let early = read.responses().find(is_it);
    match early.or_else(|| after.responses().find(is_it)) {
        None => PASS,
        Some(answer) if answer.get("result").is_none() => {
            broken(format!("{name} was cancelled, and answered with {}", answer["error"]))
        }
        Some(_) if early.is_some() => {
            skip(format!("{name} was done before its cancellation was read"))
        }
        Some(_) => broken(format!("{name} was cancelled, and answered with a result")),
    }
}

/// What comes up to the answer to a plain request.
async fn ask(probe: &Probe, link: &mut Link, id: &str) -> Result<Heard, Lost> {
    let frame = request(probe.revision, &json!(id), plain(probe), json!({})).to_string();
    link.exchange(&frame, Until::Answer(&json!(id)), &[]).await
}

async fn unanswered(probe: &mut Probe, params: &Value, what: &str) -> Outcome {
    let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    let heard = probe.say(&message.to_string(), &[]).await?;
    let is_answer = |answer: &&Value| {
        heard.status.is_none() || answer.get("id").is_some_and(|id| !id.is_null())
    };
    match heard.responses().find(is_answer) {
        Some(answer) => broken(format!("{what} was answered with {answer}")),
        None => PASS,
    }
}

/// Progress notifications of each call that was made.
fn reports(messages: &[Value]) -> Vec<&Value> {
    let is_progress =
        |message: &&Value| message.get("method") == Some(&json!("notifications/progress"));
    messages.iter().filter(is_progress).filter_map(|message| message.get("params")).collect()
}

async fn progress_token(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    let mut count = 0;
    for called in &probe.calls().await? {
        for report in reports(&called.messages) {
            count += 1;
            if report.get("progressToken") != Some(&json!(called.token)) {
                let token = report.get("progressToken").cloned().unwrap_or_default();
                problems
                    .push(format!("{}: the token is {token}, not {:?}", called.name, called.token));
                probe.show(called);
            }
        }
    }
    match count {
        0 => skip("no call reported progress"),
        _ => all_good(problems),
    }
}

async fn progress_increases(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    let mut count = 0;
    for called in &probe.calls().await? {
        let values: Vec<Option<f64>> =
            reports(&called.messages).iter().map(|it| it.get("progress")?.as_f64()).collect();
        count += values.len();
        if values.iter().any(Option::is_none) {
            problems.push(format!("{}: progress is not a number", called.name));
            probe.show(called);
        } else if let Some(pair) = values.windows(2).find(|pair| pair[0] >= pair[1]) {
            let [before, after] = [pair[0], pair[1]].map(Option::unwrap_or_default);
            problems.push(format!("{}: progress {after} after {before}", called.name));
            probe.show(called);
        }
    }
    match count {
        0 => skip("no call reported progress"),
        _ => all_good(problems),
    }
}
