//! Standard input and output: how lines are read, and how a server ends.

use serde_json::{Value, json};

use super::jsonrpc::plain;
use super::lifecycle::OPENING;
use crate::check::probe::{Outcome, PASS, Probe, Trouble, broken, skip};
use crate::check::table::Check;
use crate::check::wire::{Ending, Until, request};

const PAGES: [&str; 2] = ["basic/transports", "basic/transports/stdio"];

pub(super) const CHECKS: &[Check] = &[
    Check::portability("stdio.crlf", "lines that end with CR LF are read", |probe| {
        Box::pin(crlf(probe))
    })
    .stdio()
    .pages(PAGES[0], PAGES[1])
    .fix("Ignore a carriage return before the line feed: clients on Windows send it."),
    Check::portability("stdio.blank-lines", "blank lines do no harm", |probe| {
        Box::pin(blank_lines(probe))
    })
    .stdio()
    .pages(PAGES[0], PAGES[1])
    .fix("Skip blank lines; neither answer them nor end."),
    Check::portability("stdio.large-message", "a message of a megabyte is read", |probe| {
        Box::pin(large_message(probe))
    })
    .stdio()
    .pages(PAGES[0], PAGES[1])
    .fix("Read lines of any reasonable length: contents and arguments get large."),
    Check::should("stdio.end", "the server ends when its input is closed", |probe| {
        Box::pin(end(probe))
    })
    .stdio()
    .apart(OPENING)
    .pages("basic/lifecycle", PAGES[1])
    .fix("End when standard input is closed; otherwise processes stay behind, or are killed."),
    Check::portability("stdio.left-behind", "what the server started ends with it", |probe| {
        Box::pin(left_behind(probe))
    })
    .stdio()
    .apart(OPENING)
    .pages("basic/lifecycle", PAGES[1])
    .fix("End children before ending; a wrapper script should exec the server."),
    Check::info("stdio.exit-status", "the server ends with status 0", |probe| {
        Box::pin(exit_status(probe))
    })
    .stdio()
    .apart(OPENING)
    .pages("basic/lifecycle", PAGES[1])
    .fix("Exit with 0 when the client has closed standard input: that is not a failure."),
];

/// A request that must be answered whatever surrounds it.
async fn answered(probe: &mut Probe, before: &str, after: &str, params: Value) -> Outcome {
    let id = probe.link().await?.next_id();
    let message = request(probe.revision, &id, plain(probe), params);
    let frame = format!("{before}{message}{after}");
    let link = probe.link().await?;
    let heard = link.exchange(&frame, Until::Answer(&id), &[]).await?;
    match heard.answer(&id).and_then(|answer| answer.get("result")) {
        Some(_) => PASS,
        None => broken("the request got no result"),
    }
}

async fn crlf(probe: &mut Probe) -> Outcome {
    answered(probe, "", "\r", json!({})).await
}

async fn blank_lines(probe: &mut Probe) -> Outcome {
    answered(probe, "\n\n", "\n", json!({})).await
}

async fn large_message(probe: &mut Probe) -> Outcome {
    let padding = "x".repeat(1 << 20);
    answered(probe, "", "", json!({"_meta": {"com.example/padding": padding}})).await
}

/// How the server ends when its input is closed.
async fn ended(probe: &mut Probe) -> Result<Option<Ending>, Trouble> {
    Ok(probe.opened().await?.ending)
}

async fn end(probe: &mut Probe) -> Outcome {
    match ended(probe).await? {
        Some(Ending::Killed) => {
            broken("it went on running after its input was closed, and was killed")
        }
        _ => PASS,
    }
}

async fn left_behind(probe: &mut Probe) -> Outcome {
    match ended(probe).await? {
        Some(Ending::Exited { left, .. }) if !left.is_empty() => {
            broken(format!("after it had ended, these ran on: {}", left.join(", ")))
        }
        Some(Ending::Killed) => skip("the server itself did not end"),
        _ => PASS,
    }
}

async fn exit_status(probe: &mut Probe) -> Outcome {
    match ended(probe).await? {
        Some(Ending::Exited { status, .. }) if status != "0" => {
            broken(format!("the exit status was {status}"))
        }
        _ => PASS,
    }
}
