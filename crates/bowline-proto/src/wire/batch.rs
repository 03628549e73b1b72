//! Batches: arrays of messages, which only revision 2025-03-26 has.
//!
//! A batch contains requests and notifications, or responses, never both. It cannot open a session:
//! `initialize` must be sent alone (2025-03-26, basic/lifecycle).

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

/// Parses an array of messages.
///
/// # Errors
/// If the frame is not a batch. A batch with an invalid part is not executed at all, because its
/// sender's intent is unclear.
pub fn parse_batch(frame: &[u8]) -> Result<Vec<Message<'_>>, BatchError> {
    let parts = split(frame).map_err(BatchError::Whole)?;
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

fn split(frame: &[u8]) -> Result<Vec<Raw<'_>>, ParseError> {
    let text = read_text(frame)?;
    let parts: Vec<Raw<'_>> = serde_json::from_str(text).map_err(|error| {
        if error.is_data() {
            ParseError::shape(format!("a batch must be an array: {}", describe(&error)))
        } else {
            ParseError::syntax(format!("not JSON: {error}"))
        }
    })?;
    if parts.is_empty() {
        return Err(ParseError::shape("an empty batch"));
    }
    Ok(parts)
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
