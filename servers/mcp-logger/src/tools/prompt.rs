//! The prompt, and what its arguments could become.

use bowline::{Completing, Prompt};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::encoding::COMMON;
use crate::logger::Logger;
use crate::priority::{FACILITIES, SEVERITIES};

/// What there is to fill in.
#[derive(Debug, Deserialize, JsonSchema)]
struct Event {
    /// What happened.
    event: String,
    /// Where to log it: an address, a host name or a configured target.
    server: String,
    /// How bad it is.
    severity: Option<String>,
    /// Which part of the system speaks.
    facility: Option<String>,
    /// How the message is written.
    format: Option<String>,
    /// What carries it.
    transport: Option<String>,
    /// What the receiver expects it to be encoded in.
    encoding: Option<String>,
}

/// A prompt to log an event.
pub(super) fn log_event(logger: &Logger) -> Prompt {
    let targets: Vec<String> = logger.config().targets.keys().cloned().collect();
    Prompt::new("log-event", |event: Event| async move { event.text() })
        .title("Log an event")
        .description("Have an event logged: with the right words, severity and facility")
        .complete("server", move |typed| {
            let found = typed.among(&targets);
            async move { found }
        })
        .complete("severity", severities)
        .complete("facility", facilities)
        .complete("format", |typed| async move { typed.among(&["rfc3164", "rfc5424"]) })
        .complete("transport", |typed| async move { typed.among(&["udp", "tcp", "tls", "unix"]) })
        .complete("encoding", |typed| async move { typed.among(&COMMON) })
}

pub(super) async fn severities(typed: Completing) -> Vec<String> {
    typed.among(&SEVERITIES.each_ref().map(|word| word.name))
}

pub(super) async fn facilities(typed: Completing) -> Vec<String> {
    typed.among(&FACILITIES.each_ref().map(|word| word.name))
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
        let said = given.into_iter().filter_map(|(name, it)| Some(format!("{name} {}", it?)));
        let mut with = said.collect::<Vec<_>>().join(", ");
        if !with.is_empty() {
            with = format!(" with {with}");
        }
        let Self { event, server, .. } = self;
        format!(
            "Log this event to the syslog server {server}{with}:\n\n{event}\n\nWrite one line that \
             somebody who reads logs at night understands: what happened, to what, and why, if \
             that is known. Choose what is not given above by syslog://severities and \
             syslog://facilities. Send it with the tool send-syslog, and tell me what became of it."
        )
    }
}
