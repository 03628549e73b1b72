//! Batches: arrays of messages, which only revision 2025-03-26 has.
//!
//! A batch contains requests and notifications, or responses, never both. It cannot open a session:
//! `initialize` must be sent alone (2025-03-26, basic/lifecycle).

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, SeqAccess, Visitor};

use crate::raw::Raw;

use super::{Message, ParseError, describe, parse_one, read_text};

/// Why an array is not a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum BatchError {
    /// The array as a whole is invalid. Answer it once.
    Whole(ParseError),
    /// Some of its messages are invalid. There is one error for each of those, and one for each
    /// valid request, because its sender waits. Answer each under its id, and execute none.
    Parts(Vec<ParseError>),
}

/// Parses an array of at most this many messages.
///
/// # Errors
/// If the frame is not a batch, or has more messages. A batch with an invalid part is not executed
/// at all, because its sender's intent is unclear.
pub fn parse_batch(frame: &[u8], most: usize) -> Result<Vec<Message<'_>>, BatchError> {
    let parts = split(frame, most).map_err(BatchError::Whole)?;
    let parts: Vec<_> = parts.into_iter().map(|part| (part, parse_part(part.get()))).collect();
    if parts.iter().any(|(_, parsed)| parsed.is_err()) {
        return Err(BatchError::Parts(parts.into_iter().filter_map(rejection).collect()));
    }
    let messages: Vec<_> = parts.into_iter().filter_map(|(_, parsed)| parsed.ok()).collect();
    let asking = messages.iter().filter(|message| message.method().is_some()).count();
    if asking != 0 && asking != messages.len() {
        let error = ParseError::shape("a batch of both requests and responses");
        return Err(BatchError::Whole(error));
    }
    Ok(messages)
}

/// The error for one part of a batch that is partly invalid.
fn rejection((part, parsed): (Raw<'_>, Result<Message<'_>, ParseError>)) -> Option<ParseError> {
    let error = match parsed {
        Ok(Message::Request(_)) => {
            ParseError::shape("not executed: another message in the batch is invalid")
        }
        Ok(_) => return None,
        Err(error) => error,
    };
    Some(error.salvaged(part.get().as_bytes()))
}

fn split(frame: &[u8], most: usize) -> Result<Vec<Raw<'_>>, ParseError> {
    let text = read_text(frame)?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let mut parts = Vec::new();
    let read = Parts { parts: &mut parts, most }.deserialize(&mut reader);
    match read.and_then(|()| reader.end()) {
        Ok(()) => {}
        // What follows was not looked at: it may be a million messages.
        Err(_) if parts.len() > most => {
            return Err(ParseError::shape(format!(
                "a batch of more than {most} messages; send them in several batches"
            )));
        }
        Err(error) if error.is_data() => {
            let message = format!("a batch must be an array: {}", describe(&error));
            return Err(ParseError::shape(message));
        }
        Err(error) => return Err(ParseError::syntax(format!("not JSON: {error}"))),
    }
    if parts.is_empty() {
        return Err(ParseError::shape("an empty batch"));
    }
    Ok(parts)
}

/// Reads the elements of an array, at most one more than allowed.
struct Parts<'p, 'a> {
    parts: &'p mut Vec<Raw<'a>>,
    most: usize,
}

impl<'a> DeserializeSeed<'a> for Parts<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'a> Visitor<'a> for Parts<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(part) = elements.next_element()? {
            self.parts.push(part);
            if self.parts.len() > self.most {
                return Err(A::Error::custom("too many"));
            }
        }
        Ok(())
    }
}

fn parse_part(text: &str) -> Result<Message<'_>, ParseError> {
    if text.starts_with('[') {
        return Err(ParseError::shape("a batch within a batch"));
    }
    let message = parse_one(text)?;
    if message.method() == Some("initialize") {
        return Err(ParseError::shape("initialize: not allowed in a batch"));
    }
    Ok(message)
}
