//! Lines: whatever the chunks, the frames are those that a naive splitter finds in the whole
//! stream.
//!
//! An input is the limit, the lengths of chunks, and the stream.

#![no_main]

use bowline_fuzz::{Bytes, cut};
use bowline_proto::line::{LineTooLong, PREFIX, Parser, finish_frame};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

type Frame = Result<Vec<u8>, LineTooLong>;

fuzz_target!(|input: &[u8]| {
    let mut bytes = Bytes::new(input);
    let limit = usize::from(bytes.byte());
    let lengths = bytes.lengths();
    let stream = bytes.rest();
    let expected = naive(stream, limit);
    let mut parser = Parser::new(limit);
    assert_eq!(feed(&mut parser, &cut(stream, &lengths), limit), expected);
    // The end of a stream resets the parser.
    assert_eq!(feed(&mut parser, &[stream], limit), expected);
    written(stream, &lengths);
});

fn feed(parser: &mut Parser, chunks: &[&[u8]], limit: usize) -> Vec<Frame> {
    let mut frames = Vec::new();
    for chunk in chunks {
        let mut rest = *chunk;
        while let Some(frame) = parser.next_frame(&mut rest) {
            frames.push(frame.map(<[u8]>::to_vec));
            assert!(parser.buffered() <= limit);
        }
        assert!(rest.is_empty(), "bytes are left but no frame");
        assert!(parser.buffered() <= limit);
    }
    frames.extend(parser.finish().map(|frame| Ok(frame.to_vec())));
    frames
}

fn naive(stream: &[u8], limit: usize) -> Vec<Frame> {
    let mut frames = Vec::new();
    for line in stream.split(|byte| *byte == b'\n') {
        if line.len() > limit {
            let prefix = line[..limit.min(PREFIX)].to_vec();
            frames.push(Err(LineTooLong { limit, prefix }));
        } else if !line.iter().all(u8::is_ascii_whitespace) {
            frames.push(Ok(line.strip_suffix(b"\r").unwrap_or(line).to_vec()));
        }
    }
    frames
}

/// A finished frame is one line, and means the same if it is JSON.
fn written(frame: &[u8], lengths: &[usize]) {
    const BEFORE: &[u8] = b"{}\r\n\n";
    let mut out = [BEFORE, frame].concat();
    finish_frame(&mut out, BEFORE.len());
    let line = out.strip_prefix(BEFORE).expect("what was there stays");
    assert_eq!(line.len(), frame.len() + 1);
    let mut parser = Parser::default();
    let frames = feed(&mut parser, &cut(line, lengths), line.len());
    let is_blank = frame.iter().all(u8::is_ascii_whitespace);
    assert_eq!(frames.len(), usize::from(!is_blank));
    let Some(Ok(read)) = frames.first() else {
        return;
    };
    assert_eq!(read.len(), frame.len());
    assert!(!read.contains(&b'\r'));
    if let Ok(tree) = serde_json::from_slice::<Value>(frame) {
        assert_eq!(serde_json::from_slice::<Value>(read).ok(), Some(tree));
    }
}
