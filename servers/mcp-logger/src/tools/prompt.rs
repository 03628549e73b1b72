//! The prompt, and completions for its arguments.

use bowline::{Completing, Prompt};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::encoding::COMMON;
use crate::logger::Logger;
use crate::priority::{FACILITIES, SEVERITIES};

/// The arguments of the prompt.
#[derive(Debug, Deserialize, JsonSchema)]
struct Event {
    /// What happened.
    event: String,
    /// Where to log it: an address, a host name or a configured target.
    server: String,
    /// Its severity.
    severity: Option<String>,
    /// The part of the system it concerns.
    facility: Option<String>,
    /// The message format.
    format: Option<String>,
    /// The transport.
    transport: Option<String>,
    /// The encoding the receiver expects.
    encoding: Option<String>,
}

/// The prompt that asks the model to log an event.
pub(super) fn log_event(logger: &Logger) -> Prompt {
    let targets: Vec<String> = logger.config().targets.keys().cloned().collect();
    Prompt::new("log-event", |event: Event| async move { event.text() })
        .title("Log an event")
        .description("Ask the model to log an event with a clear message, severity and facility")
        .complete("server", move |typed| {
            let found = typed.matching(&targets);
            async move { found }
        })
        .complete("severity", severities)
        .complete("facility", facilities)
        .complete("format", |typed| async move { typed.matching(&["rfc3164", "rfc5424"]) })
        .complete(
            "transport",
            |typed| async move { typed.matching(&["udp", "tcp", "tls", "unix"]) },
        )
        .complete("encoding", |typed| async move { typed.matching(&COMMON) })
}

pub(super) async fn severities(typed: Completing) -> Vec<String> {
    typed.matching(&SEVERITIES.each_ref().map(|word| word.name))
}

pub(super) async fn facilities(typed: Completing) -> Vec<String> {
    typed.matching(&FACILITIES.each_ref().map(|word| word.name))
}

impl Event {
    fn text(self) -> String {
        let given = [
            ("severity", self.severity),
            ("facility", self.facility),
            ("format", self.format),
            ("transport", self.transport),
            ("encoding", self.encoding),
        ];
        let words = given.into_iter().filter_map(|(name, it)| Some(format!("{name} {}", it?)));
        let mut with = words.collect::<Vec<_>>().join(", ");
        if !with.is_empty() {
            with = format!(" with {with}");
        }
        let Self { event, server, .. } = self;
        format!(
            "Log this event to the syslog server {server}{with}:\n\n{event}\n\nWrite one line that \
             an on-call engineer understands at 3 a.m.: what happened, to what, and why, if \
             known. Choose a severity and facility that are not given above from \
             syslog://severities and syslog://facilities. Send it with the send-syslog tool, and \
             report the result."
        )
    }
}
