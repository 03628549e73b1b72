//! A stream of server-sent events, one at a time, with the time of the first.

use std::collections::VecDeque;
use std::time::Duration;

use bowline::proto::sse::Parser;
use bowline_web::Body;
use tokio::time::Instant;

/// One event: its kind, and what it carries.
pub(crate) type Event = (Option<String>, Vec<u8>);

/// A stream that is read.
pub(crate) struct Events {
    body: Body,
    parser: Parser,
    ready: VecDeque<Event>,
    opened: Instant,
    /// From the head of the answer to the first bytes.
    pub(crate) first: Option<Duration>,
}

impl Events {
    /// The events of an answer whose head has just come.
    pub(crate) fn new(body: Body) -> Self {
        let parser = Parser::new(bowline::proto::sse::DEFAULT_LIMIT);
        Self { body, parser, ready: VecDeque::new(), opened: Instant::now(), first: None }
    }

    /// The next event; `None` when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let chunk = self.body.chunk().await?.ok()?;
            let opened = self.opened;
            self.first.get_or_insert_with(|| opened.elapsed());
            let mut rest = &chunk[..];
            while let Some(event) = self.parser.next_event(&mut rest) {
                let Ok(event) = event else { continue };
                let data = event.data.unwrap_or_default().to_vec();
                self.ready.push_back((event.event.map(str::to_owned), data));
            }
        }
    }
}
