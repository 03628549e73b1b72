//! Frames become lines of a session file: secrets removed, answers with the time they took.

use std::sync::Arc;
use std::time::Duration;

use bowline_proto::json::Json;
use bowline_proto::wire::{Id, Message};

use super::assemble::Frame;
use crate::pairs::Pairs;
use crate::redact::Redactor;
use crate::session_file::{Line, LineKind, Way};

/// The most unanswered requests that are remembered.
const REQUESTS: usize = 10_000;

pub(super) struct Encoder {
    redactor: Arc<Redactor>,
    /// When requests went which way, by id.
    asked: Pairs<(Way, Id), Duration>,
}

impl Encoder {
    pub(super) fn new(redactor: &Arc<Redactor>) -> Self {
        Self { redactor: Arc::clone(redactor), asked: Pairs::default() }
    }

    /// The line for a frame.
    pub(super) fn encode(&mut self, frame: &Frame) -> Vec<u8> {
        let line = match frame {
            Frame::Ready(line) => self.clean(line),
            Frame::Raw { at, channel, bytes, length } => {
                let text = String::from_utf8_lossy(bytes);
                let at_seconds = at.as_secs_f64();
                let line = Line { at: at_seconds, length: *length, ..Line::default() };
                let Some(way) = channel.way else {
                    let text = Some(self.redactor.text(&text));
                    return encoded(&Line { kind: LineKind::Stderr, text, ..line });
                };
                let took = self.took(way, channel.exchange, bytes, *at);
                let connection = Some(channel.exchange).filter(|exchange| *exchange > 0);
                let text = self.redactor.json(&text);
                let (message, text) = match Json::from_text(text.clone()) {
                    Ok(message) if length.is_none() => (Some(message), None),
                    _ => (None, Some(text)),
                };
                let (kind, direction) = (LineKind::Message, Some(way));
                Line { kind, direction, connection, message, text, took, ..line }
            }
        };
        encoded(&line)
    }

    fn clean(&self, line: &Line) -> Line {
        let mut line = line.clone();
        line.text = line.text.map(|text| self.redactor.text(&text));
        if let Some(http) = &mut line.http {
            http.url = self.redactor.text(&http.url);
            for (_, value) in &mut http.headers {
                *value = self.redactor.text(value);
            }
        }
        line
    }

    /// Remembers a request; for an answer, how long it took.
    fn took(&mut self, way: Way, exchange: u64, bytes: &[u8], at: Duration) -> Option<f64> {
        match Message::parse(bytes).ok()? {
            Message::Request(request) => {
                if self.asked.len() >= REQUESTS {
                    self.asked = Pairs::default();
                }
                self.asked.insert((way, request.id), exchange, at);
                None
            }
            Message::Response(response) => {
                let asked = self.asked.take(&(way.opposite(), response.id), exchange)?;
                Some(at.saturating_sub(asked).as_secs_f64())
            }
            _ => None,
        }
    }
}

fn encoded(line: &Line) -> Vec<u8> {
    line.encode().unwrap_or_default()
}
