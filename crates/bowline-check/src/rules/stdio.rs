//! Standard input and output: how lines are read, and how a server ends.

use serde_json::{Value, json};

use super::lifecycle::OPENING;
use crate::connection::{Ending, Until};
use crate::frames::message::plain_method;
use crate::probe::{Outcome, PASS, Probe, broken, ensure, skip};
use crate::rule::{Rule, Transport, table};

table! { |probe| Rule::eras("basic/transports", "basic/transports/stdio").on(&[Transport::Stdio]);
    Portability "stdio.crlf" => answered(probe, "", "\r", json!({})),
        "lines that end with CR LF are read",
        "Ignore a carriage return before the line feed: clients on Windows send it.";
    Portability "stdio.blank-lines" => answered(probe, "\n\n", "\n", json!({})),
        "blank lines do no harm",
        "Skip blank lines; neither answer them nor exit.";
    Portability "stdio.large-message" => large_message(probe),
        "a message of one megabyte is read",
        "Read lines of any reasonable length: contents and arguments get large.";
    Should "stdio.end" [.apart(OPENING).pages("basic/lifecycle", "basic/transports/stdio")] => end(probe),
        "the server exits when its input is closed",
        "Exit when standard input is closed; otherwise processes stay behind, or are killed.";
    Portability "stdio.left-behind" [.apart(OPENING).pages("basic/lifecycle", "basic/transports/stdio")] => left_behind(probe),
        "processes that the server started exit with it",
        "Stop children before exiting; a wrapper script should exec the server.";
    Info "stdio.exit-status" [.apart(OPENING).pages("basic/lifecycle", "basic/transports/stdio")] => exit_status(probe),
        "the server exits with status 0",
        "Exit with 0 when the client has closed standard input: that is not a failure.";
}

/// A request that must be answered whatever surrounds it.
async fn answered(probe: &mut Probe, before: &str, after: &str, params: Value) -> Outcome {
    let message = probe.request(plain_method(probe.revision), params).await?;
    let frame = format!("{before}{message}{after}");
    let connection = probe.connection().await?;
    let received = connection.exchange(&frame, Until::Answer(&message["id"]), &[]).await?;
    ensure(received.has_result(), || "the request got no result".to_owned())
}

async fn large_message(probe: &mut Probe) -> Outcome {
    let padding = "x".repeat(1 << 20);
    answered(probe, "", "", json!({"_meta": {"com.example/padding": padding}})).await
}

async fn end(probe: &mut Probe) -> Outcome {
    let ending = probe.opening().await?.ending;
    ensure(ending != Some(Ending::Running), || {
        "it kept running after its input was closed, and was killed".to_owned()
    })
}

async fn left_behind(probe: &mut Probe) -> Outcome {
    match probe.opening().await?.ending {
        Some(Ending::Exited { left, .. }) if !left.is_empty() => {
            broken(format!("still running after it exited: {}", left.join(", ")))
        }
        Some(Ending::Running) => skip("the server itself did not exit"),
        _ => PASS,
    }
}

async fn exit_status(probe: &mut Probe) -> Outcome {
    match probe.opening().await?.ending {
        Some(Ending::Exited { status, .. }) if !status.success() => {
            broken(format!("it ended with {status}"))
        }
        _ => PASS,
    }
}
