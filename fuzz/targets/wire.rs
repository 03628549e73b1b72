//! Frames: what is parsed is written back the same, and what is rejected can be answered.

#![no_main]

use bowline_proto::error::ErrorCode;
use bowline_proto::wire::{
    BatchError, Message, ParseError, Response, encode_error, encode_fault, parse_batch,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|frame: &[u8]| {
    let alone = Message::parse(frame);
    let together = parse_batch(frame, usize::MAX);
    assert!(alone.is_err() || together.is_err(), "both one message and a batch");
    match &alone {
        Ok(message) => {
            round_trip(message, frame);
            by_the_book(message, frame);
        }
        Err(error) => refusal(error, frame),
    }
    match &together {
        Ok(messages) => batch(messages, frame),
        Err(BatchError::Whole(error)) => refusal(error, frame),
        Err(BatchError::Parts(errors)) => {
            assert!(!errors.is_empty());
            errors.iter().for_each(|error| refusal(error, frame));
        }
    }
});

fn round_trip(message: &Message<'_>, frame: &[u8]) {
    let bytes = encode(message);
    let again = Message::parse(&bytes).expect("what we write we can read");
    assert_eq!(*message, again);
    assert_eq!(bytes, encode(&again));
    // White space inside `params` is kept verbatim; any other line break would be ours.
    assert!(!bytes.contains(&b'\n') || frame.contains(&b'\n'));
}

/// The fast path agrees with `serde_json`, which parses the messages of a batch.
fn by_the_book(message: &Message<'_>, frame: &[u8]) {
    let frame = frame.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(frame);
    let batch = [b"[", frame, b"]"].concat();
    if let Ok(messages) = parse_batch(&batch, 1) {
        assert_eq!(messages, std::slice::from_ref(message));
    }
}

fn batch(messages: &[Message<'_>], frame: &[u8]) {
    assert!(!messages.is_empty());
    let asks = |message: &Message<'_>| message.method().is_some();
    assert!(messages.iter().all(asks) || !messages.iter().any(asks));
    for message in messages {
        assert_ne!(message.method(), Some("initialize"));
        round_trip(message, frame);
    }
}

fn refusal(error: &ParseError, frame: &[u8]) {
    assert!(!error.message.is_empty());
    match error.code {
        ErrorCode::INVALID_REQUEST => {}
        ErrorCode::PARSE_ERROR => {
            let tree = serde_json::from_slice::<Value>(frame);
            assert!(tree.is_err(), "this is JSON: {error}");
        }
        code => panic!("{code} for an invalid frame"),
    }
    let mut answer = Vec::new();
    let object = error.to_error_object();
    match &error.id {
        Some(id) => encode_error(&mut answer, id, &object),
        None => encode_fault(&mut answer, &object),
    }
    let expected = match error.id.clone() {
        Some(id) => Message::Response(Response { id, outcome: Err(object) }),
        None => Message::Fault(object),
    };
    assert_eq!(Message::parse(&answer), Ok(expected));
    plausible(error, frame);
}

/// What is salvaged from a broken frame appears in it.
fn plausible(error: &ParseError, frame: &[u8]) {
    if error.has_method {
        assert!(contains(frame, b"\"method\""));
    }
    let Some(id) = &error.id else { return };
    assert!(contains(frame, b"\"id\""));
    match id.as_str() {
        // Escapes can be written in several ways.
        Some(_) if frame.contains(&b'\\') => {}
        Some(text) => assert!(contains(frame, format!("\"{text}\"").as_bytes())),
        None => assert!(frame.iter().any(u8::is_ascii_digit)),
    }
}

fn encode(message: &Message<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes).expect("a parsed message can be written as JSON");
    bytes
}

fn contains(frame: &[u8], part: &[u8]) -> bool {
    frame.windows(part.len()).any(|window| window == part)
}
