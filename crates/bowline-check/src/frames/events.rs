//! Server-sent events, one at a time.

use std::collections::VecDeque;

use bowline::proto::sse::Parser;
use bowline_web::Body;

use super::{Direction, LIMIT, Tap};

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

/// An event stream that is being read.
pub struct Events {
    body: Body,
    parser: Parser,
    ready: VecDeque<Event>,
    pub(super) tap: Tap,
}

impl Events {
    /// The events of a response whose head has just arrived.
    pub fn new(body: Body, tap: Tap) -> Self {
        let parser = Parser::new(LIMIT);
        Self { body, parser, ready: VecDeque::new(), tap }
    }

    /// The next event, or `None` once the stream has ended.
    ///
    /// # Cancel safety
    /// No event is lost.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                if event.is_message() {
                    self.tap.hear(Direction::Received, &event.data);
                }
                return Some(event);
            }
            let chunk = self.body.chunk().await?.ok()?;
            self.ready.extend(parse(&mut self.parser, &chunk));
        }
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
