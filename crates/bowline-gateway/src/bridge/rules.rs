//! What becomes of each part of the protocol between two eras, and what cannot be translated.
//!
//! The table is what `bowline bridge --explain` prints. The rules themselves are in
//! `bowline_proto::revision` (what is written) and in `bowline::proxy` (what is passed on when);
//! every row here is tested against them, by its name, in `tests/bridge/rows.rs`.

use std::fmt::Write;

use bowline::proxy::{Loss as Counted, Losses};
use bowline_proto::revision::Era;

/// What becomes of one part of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Its name in tests.
    pub name: &'static str,
    /// The part of the protocol.
    pub topic: &'static str,
    /// For a legacy client of a modern server.
    pub legacy_to_modern: &'static str,
    /// For a modern client of a legacy server.
    pub modern_to_legacy: &'static str,
}

/// What cannot be translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Its name in tests.
    pub name: &'static str,
    /// What is lost.
    pub what: &'static str,
    /// The era of clients that it concerns; `None` for both.
    pub client: Option<Era>,
    /// The era of servers that it concerns; `None` for both.
    pub server: Option<Era>,
    /// What happens instead.
    pub instead: &'static str,
}

/// Every part of the protocol that differs.
pub const ROWS: &[Row] = &[
    Row {
        name: "opening",
        topic: "opening",
        legacy_to_modern: "`initialize` is answered from `server/discover`: the client's revision, the server's name, instructions and capabilities; `notifications/initialized` stops here",
        modern_to_legacy: "`server/discover` is answered from the server's `initialize` result; a call without it works as well",
    },
    Row {
        name: "capabilities",
        topic: "capabilities",
        legacy_to_modern: "what the client declared in `initialize` goes with every request",
        modern_to_legacy: "a client on stdio: the server hears what the client's first request declares; several clients: it hears that it may ask, and what its caller cannot answer is refused",
    },
    Row {
        name: "session",
        topic: "session",
        legacy_to_modern: "the bridge keeps the session; a restart of the server stays invisible, except for the requests it had not answered",
        modern_to_legacy: "one session to the server serves all clients; a session that the server forgot is opened again",
    },
    Row {
        name: "headers",
        topic: "HTTP headers",
        legacy_to_modern: "`Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` are made from the request and the tool's schema",
        modern_to_legacy: "checked as by every modern server, then left out",
    },
    Row {
        name: "questions",
        topic: "questions during a call",
        legacy_to_modern: "`input_required` becomes real requests to the client; the answers go back in the next round, with the server's state",
        modern_to_legacy: "the call waits at the bridge; the client gets `input_required` with a sealed state, and its retry brings the answers to the waiting call",
    },
    Row {
        name: "refusals",
        topic: "a client that refuses",
        legacy_to_modern: "a refused elicitation is declined; a refused sampling or roots request ends the call with the client's error",
        modern_to_legacy: "a refusal reaches the server as its client's error",
    },
    Row {
        name: "url",
        topic: "elicitation by URL",
        legacy_to_modern: "asked if the client's revision knows it (2025-11-25), else refused",
        modern_to_legacy: "asked as it is; the elicitation id stays at the bridge; a call that the server refuses until the user has visited a URL (-32042) asks for the visit, and is made when the user agrees",
    },
    Row {
        name: "forms",
        topic: "forms",
        legacy_to_modern: "written as the client's revision has them: enumerations with titles become `enumNames` up to 2025-06-18",
        modern_to_legacy: "as they are",
    },
    Row {
        name: "roots_change",
        topic: "change of roots",
        legacy_to_modern: "`notifications/roots/list_changed` stops here; the server asks for roots whenever it needs them",
        modern_to_legacy: "nothing announces a change; a server that asks during a call gets the roots of that moment; with `--root` it always gets those",
    },
    Row {
        name: "list_changed",
        topic: "changes of lists",
        legacy_to_modern: "one subscription of the bridge; each change is reported to every session",
        modern_to_legacy: "reported to every `subscriptions/listen` that wants it",
    },
    Row {
        name: "subscribe",
        topic: "subscriptions to resources",
        legacy_to_modern: "`resources/subscribe` becomes a part of the bridge's `subscriptions/listen`",
        modern_to_legacy: "`subscriptions/listen` becomes `resources/subscribe`, once per resource",
    },
    Row {
        name: "log",
        topic: "log messages",
        legacy_to_modern: "the level of `logging/setLevel` goes with every request",
        modern_to_legacy: "the server is set to the most verbose level that a caller wants; each caller gets what it asked for",
    },
    Row {
        name: "ping",
        topic: "ping",
        legacy_to_modern: "answered by the bridge, in both directions",
        modern_to_legacy: "answered by the bridge, in both directions",
    },
    Row {
        name: "progress",
        topic: "progress",
        legacy_to_modern: "passed on under the client's own token; never after the answer",
        modern_to_legacy: "passed on under the client's own token; never after the answer",
    },
    Row {
        name: "cancel",
        topic: "cancellation",
        legacy_to_modern: "`notifications/cancelled` cancels the request to the server",
        modern_to_legacy: "a closed stream or `notifications/cancelled` becomes `notifications/cancelled`; a late answer is dropped",
    },
    Row {
        name: "results",
        topic: "results of tools",
        legacy_to_modern: "`resultType` and cache hints go; structured content that is not an object is written as the client's revision can read it",
        modern_to_legacy: "`resultType` is added; everything else stays",
    },
    Row {
        name: "errors",
        topic: "errors",
        legacy_to_modern: "a missing resource: -32602 becomes -32002; a missing capability (-32021) becomes a failed result that names it, and -32602 where there are no such results; other codes stay",
        modern_to_legacy: "a missing resource: -32002 becomes -32602; codes that have another meaning since (-32020 to -32099) become -32603 with the original in `data`; other codes stay",
    },
    Row {
        name: "arguments",
        topic: "invalid arguments",
        legacy_to_modern: "passed on as they are; the server judges them",
        modern_to_legacy: "passed on as they are; the server judges them",
    },
    Row {
        name: "requests",
        topic: "everything else in a request",
        legacy_to_modern: "`_meta` of vendors, trace context, baggage and unknown members pass to the letter; methods that the protocol does not have pass, and so do reads of resources that no list has",
        modern_to_legacy: "`_meta` of vendors, trace context, baggage and unknown members pass to the letter; methods that the protocol does not have pass, and so do reads of resources that no list has",
    },
    Row {
        name: "extensions",
        topic: "extensions",
        legacy_to_modern: "those of the server are offered, and those of the client go with every request; the bridge itself deals with tasks",
        modern_to_legacy: "those of the server are offered; it hears those of a client on stdio; the bridge itself deals with tasks",
    },
    Row {
        name: "tasks",
        topic: "tasks",
        legacy_to_modern: "a call with `task` becomes a task of the bridge, and any tool of a server with tasks can be called so; the bridge waits for the task of the server",
        modern_to_legacy: "for clients with the extension, calls of tools that support tasks become tasks of the bridge; tools that require a task run as one at the server",
    },
    Row {
        name: "completion",
        topic: "completion",
        legacy_to_modern: "passed on",
        modern_to_legacy: "passed on",
    },
    Row {
        name: "lists",
        topic: "lists",
        legacy_to_modern: "read by the bridge whole, then served in pages of its own",
        modern_to_legacy: "read by the bridge whole, then served in pages of its own",
    },
];

/// Everything that cannot be translated.
pub const LOSSES: &[Loss] = &[
    Loss {
        name: "question_outside_call",
        what: "a question outside any call",
        client: Some(Era::Modern),
        server: Some(Era::Legacy),
        instead: "refused with an error: no client can be asked",
    },
    Loss {
        name: "question_of_several",
        what: "the first question of a server on a pipe, over HTTP+SSE or outside the stream of its call, while calls of several clients are in flight",
        client: None,
        server: Some(Era::Legacy),
        instead: "refused with an error, because it could reach the wrong user; from then on, calls at the same time get connections of their own",
    },
    Loss {
        name: "log_outside_call",
        what: "a log message that belongs to no call",
        client: None,
        server: Some(Era::Legacy),
        instead: "left out",
    },
    Loss {
        name: "roots_push",
        what: "the announcement of changed roots",
        client: None,
        server: None,
        instead: "left out; roots are asked for anew",
    },
    Loss {
        name: "parked_call",
        what: "a call that waits for its client when the bridge ends, or longer than the state is valid",
        client: Some(Era::Modern),
        server: Some(Era::Legacy),
        instead: "it is cancelled",
    },
    Loss {
        name: "late_answer",
        what: "an answer for a call that no longer waits",
        client: Some(Era::Modern),
        server: Some(Era::Legacy),
        instead: "-32603, which says that the call may have had effects; it is never run a second time",
    },
    Loss {
        name: "visits",
        what: "the notification that a user has finished at a URL (`notifications/elicitation/complete`)",
        client: None,
        server: None,
        instead: "left out; the user says when to go on",
    },
    Loss {
        name: "old_elicitation",
        what: "a question that the client cannot answer: elicitation before 2025-06-18 or by URL before 2025-11-25, or a capability that it does not declare",
        client: None,
        server: Some(Era::Legacy),
        instead: "the server is told that the client cannot answer; if the call then fails, a modern client hears which capability is missing",
    },
    Loss {
        name: "multi_select",
        what: "a form with a choice of several, for a client of 2025-06-18",
        client: Some(Era::Legacy),
        server: None,
        instead: "cancelled, as if the user had closed the form",
    },
    Loss {
        name: "structured",
        what: "structured content that is not an object, before 2026-07-28",
        client: Some(Era::Legacy),
        server: Some(Era::Modern),
        instead: "text instead",
    },
    Loss {
        name: "lasting_task",
        what: "a task that outlives the bridge",
        client: None,
        server: None,
        instead: "tasks are kept in the memory of the bridge; one that ends with it is unknown to the next",
    },
    Loss {
        name: "process_state",
        what: "state that a legacy server keeps between calls of several clients that it asks",
        client: None,
        server: Some(Era::Legacy),
        instead: "calls at the same time run in processes or sessions of their own; a client that calls alone always meets the same one",
    },
    Loss {
        name: "subscription",
        what: "a subscription to a resource that the server refuses, or that is one of more than 1,024",
        client: None,
        server: None,
        instead: "the client hears of no changes; what the server refuses is asked for again",
    },
    Loss {
        name: "replay",
        what: "replay of a modern stream that broke",
        client: None,
        server: Some(Era::Modern),
        instead: "the call fails; it may have been executed",
    },
];

impl Loss {
    /// Whether it concerns this pair.
    #[must_use]
    pub fn concerns(&self, client: Era, server: Era) -> bool {
        self.client.is_none_or(|era| era == client) && self.server.is_none_or(|era| era == server)
    }
}

/// The table for clients and servers of these eras, for people.
#[must_use]
pub fn explain(client: Era, server: Era) -> String {
    let mut text = format!("{} client, {} server\n\n", name(client), name(server));
    let mut add = |topic: &str, what: &str| {
        let _ = writeln!(text, "  {topic}\n    {what}");
    };
    match (client, server) {
        (Era::Legacy, Era::Modern) => {
            ROWS.iter().for_each(|row| add(row.topic, row.legacy_to_modern));
        }
        (Era::Modern, Era::Legacy) => {
            ROWS.iter().for_each(|row| add(row.topic, row.modern_to_legacy));
        }
        _ => add(
            "everything",
            "passes as it is; a client and a server on stdio exchange the very same bytes",
        ),
    }
    let losses: Vec<_> = LOSSES.iter().filter(|loss| loss.concerns(client, server)).collect();
    if !losses.is_empty() {
        text += "\n  What cannot be translated, and what happens instead\n\n";
        for Loss { what, instead, .. } in losses {
            let _ = writeln!(text, "  {what}\n    {instead}");
        }
    }
    text
}

/// What counts each loss. A task that ends with the bridge is not there to be counted.
const COUNTERS: &[(&str, Counted)] = &[
    ("question_outside_call", Counted::QuestionOutsideCall),
    ("question_of_several", Counted::AmbiguousQuestion),
    ("log_outside_call", Counted::LogOutsideCall),
    ("roots_push", Counted::RootsPush),
    ("parked_call", Counted::ExpiredCall),
    ("late_answer", Counted::LateAnswer),
    ("old_elicitation", Counted::UnansweredQuestion),
    ("multi_select", Counted::MultiSelect),
    ("structured", Counted::StructuredContent),
    ("process_state", Counted::SeparateConnection),
    ("subscription", Counted::Subscription),
    ("replay", Counted::BrokenCall),
];

/// What could not be translated, and how often, for people. `None` if there was nothing.
#[must_use]
pub fn sum_up(losses: &Losses) -> Option<String> {
    let counts = COUNTERS.iter().map(|(name, loss)| (*name, losses.count(*loss)));
    let what = |name: &str| LOSSES.iter().find(|loss| loss.name == name).map(|loss| loss.what);
    let said = counts.filter(|(_, count)| *count > 0);
    let said: Vec<_> =
        said.filter_map(|(name, count)| Some(format!("{} ({count})", what(name)?))).collect();
    (!said.is_empty()).then(|| format!("not translated: {}", said.join("; ")))
}

fn name(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy (2024-11-05 to 2025-11-25)",
        Era::Modern => "modern (2026-07-28)",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let mut seen = HashSet::new();
        let names = ROWS.iter().map(|row| row.name).chain(LOSSES.iter().map(|loss| loss.name));
        for name in names {
            assert!(seen.insert(name), "{name} twice");
        }
    }

    #[test]
    fn the_table_of_a_pair_has_its_column_and_its_losses() {
        let text = explain(Era::Legacy, Era::Modern);
        assert!(text.contains(ROWS[0].legacy_to_modern));
        assert!(!text.contains(ROWS[0].modern_to_legacy));
        for loss in LOSSES {
            let is_there = text.contains(loss.what);
            assert_eq!(is_there, loss.concerns(Era::Legacy, Era::Modern), "{}", loss.name);
        }
        assert!(explain(Era::Legacy, Era::Legacy).contains("very same bytes"));
    }
}
