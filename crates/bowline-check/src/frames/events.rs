//! Server-sent events.

use bowline::proto::sse::Parser;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// Its name; an event without one is a `message`.
    pub name: Option<String>,
    /// Its data, which may be empty.
    pub data: Vec<u8>,
}

impl Event {
    /// Whether clients read it as a message.
    #[must_use]
    pub fn is_message(&self) -> bool {
        self.name.as_deref().is_none_or(|name| name == "message")
    }
}

/// The events that a chunk completes. Events over the limit are dropped.
pub(super) fn parse(parser: &mut Parser, chunk: &[u8]) -> Vec<Event> {
    let mut rest = chunk;
    let mut found = Vec::new();
    while let Some(event) = parser.next_event(&mut rest) {
        let Ok(event) = event else { continue };
        let data = event.data.unwrap_or_default().to_vec();
        found.push(Event { name: event.event.map(str::to_owned), data });
    }
    found
}
