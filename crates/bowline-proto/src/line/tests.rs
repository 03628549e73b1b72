//! Frames from a stream of lines, however it is chunked.

use proptest::prelude::*;

use super::*;
use crate::buffer::cut;

type Frame = Result<Vec<u8>, LineTooLong>;

fn frame(text: impl AsRef<[u8]>) -> Frame {
    Ok(text.as_ref().to_vec())
}

fn rejected(limit: usize, prefix: impl AsRef<[u8]>) -> Frame {
    let prefix = prefix.as_ref().to_vec();
    Err(LineTooLong { limit, prefix })
}

/// All frames of a stream, the last line included.
fn read<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Frame> {
    let mut parser = Parser::new(limit);
    let mut frames = Vec::new();
    for mut rest in chunks {
        while let Some(frame) = parser.next_frame(&mut rest) {
            frames.push(frame.map(<[u8]>::to_vec));
            assert!(parser.buffered() <= limit);
        }
        assert!(rest.is_empty());
        assert!(parser.buffered() <= limit);
        assert!(parser.partial.capacity() <= limit.max(buffer::KEPT));
    }
    frames.extend(parser.finish().map(frame));
    assert_eq!(parser.finish(), None);
    frames
}

/// The same, reading directly into long lines.
fn read_on(limit: usize, mut stream: &[u8], chunk: usize) -> Vec<Frame> {
    let (mut parser, mut rest) = (Parser::new(limit), Vec::new());
    let mut frames = Vec::new();
    while !stream.is_empty() {
        let (piece, behind) = stream.split_at(chunk.min(stream.len()));
        stream = behind;
        if let Some(line) = parser.long_line() {
            let before = line.len();
            line.extend_from_slice(piece);
            frames.extend(parser.take_appended(before, &mut rest).err().map(Err));
        } else {
            rest = piece.to_vec();
        }
        let mut rest = &rest[..];
        while let Some(frame) = parser.next_frame(&mut rest) {
            frames.push(frame.map(<[u8]>::to_vec));
        }
        assert!(!parser.has_frame() && rest.is_empty() && parser.buffered() <= limit);
        assert!(parser.partial.capacity() <= limit.max(buffer::KEPT) + LONG);
    }
    frames.extend(parser.finish().map(frame));
    frames
}

#[test]
fn reading_directly_into_long_lines_yields_the_same_frames() {
    let long = |length: usize, end: &str| "x".repeat(length) + end;
    let streams = [
        long(LONG, "\nshort\n") + &long(LONG + 1, "\r\n"),
        long(3 * LONG, "\n") + &long(LONG - 1, "\n\n{}\n") + &long(5 * LONG, ""),
        " ".repeat(2 * LONG) + "\n{}\n" + &" ".repeat(2 * LONG),
        long(7 * LONG, "\nshort\n") + &long(7 * LONG, ""),
        long(6 * LONG, "\r\n") + &long(6 * LONG - 1, "\r"),
    ];
    for stream in streams {
        for chunk in [1000, LONG - 1, LONG, LONG + 1, 4 * LONG] {
            for limit in [6 * LONG, 2 * LONG + 7, LONG, 100] {
                let expected = read(limit, stream.as_bytes().chunks(chunk));
                assert_eq!(read_on(limit, stream.as_bytes(), chunk), expected, "{chunk} {limit}");
            }
        }
    }
}

/// The same frames from one chunk and from single bytes.
fn check(limit: usize, stream: &str, expected: &[Frame]) {
    let stream = stream.as_bytes();
    assert_eq!(read(limit, [stream]), expected, "in one chunk");
    assert_eq!(read(limit, stream.chunks(1)), expected, "byte by byte");
}

#[test]
fn lines_are_frames() {
    check(9, "", &[]);
    check(9, "a\n", &[frame("a")]);
    check(9, "a\nb b\nc\n", &[frame("a"), frame("b b"), frame("c")]);
}

#[test]
fn carriage_returns_before_the_line_feed_are_dropped() {
    check(9, "a\r\nb\r\n", &[frame("a"), frame("b")]);
    check(9, "a\rb\n", &[frame("a\rb")]);
    check(9, "a\r", &[frame("a")]);
}

#[test]
fn blank_lines_are_skipped() {
    check(9, "\n\r\n \t \n\na\n\n", &[frame("a")]);
    check(9, " \r", &[]);
}

#[test]
fn the_last_line_needs_no_line_feed() {
    check(9, "a\nb", &[frame("a"), frame("b")]);
}

#[test]
fn a_line_of_exactly_the_limit_is_accepted() {
    check(4, "1234\n1234", &[frame("1234"), frame("1234")]);
}

#[test]
fn a_long_line_is_rejected_once_and_the_next_is_read() {
    let expected = [frame("a"), rejected(4, "1234"), frame("b")];
    check(4, "a\n12345\nb\n", &expected);
    check(4, "a\n123456789012345\nb\n", &expected);
    check(4, "12345", &[rejected(4, "1234")]);
    check(0, "1\n\n2\n", &[rejected(0, ""), rejected(0, "")]);
}

#[test]
fn a_rejected_line_leaves_a_prefix_with_its_id() {
    let line = format!(r#"{{"id":7,"text":"{}"}}"#, "x".repeat(5000));
    check(4000, &format!("{line}\n{{}}\n"), &[rejected(4000, &line[..PREFIX]), frame("{}")]);
}

#[test]
fn the_error_states_the_limit() {
    let mut rest: &[u8] = b"12345";
    let mut parser = Parser::new(4);
    let error = parser.next_frame(&mut rest).unwrap().unwrap_err();
    assert_eq!(error.to_string(), "a line is longer than 4 bytes");
}

#[test]
fn whole_lines_are_borrowed_from_the_chunk() {
    let chunk: &[u8] = b"first\nsecond\r\nthi";
    let mut parser = Parser::default();
    let mut rest = chunk;
    for _ in 0..2 {
        let frame = parser.next_frame(&mut rest).unwrap().unwrap();
        assert!(chunk.as_ptr_range().contains(&frame.as_ptr()));
    }
    assert_eq!(parser.partial.capacity(), 0);
    assert_eq!(parser.next_frame(&mut rest), None);
    assert_eq!(parser.buffered(), 3);
}

#[test]
fn stopping_halfway_through_a_chunk_loses_nothing() {
    let mut parser = Parser::default();
    let mut rest: &[u8] = b"a\nb\nc";
    assert_eq!(parser.next_frame(&mut rest), Some(Ok(&b"a"[..])));
    assert_eq!(rest, b"b\nc");
    assert_eq!(parser.next_frame(&mut rest), Some(Ok(&b"b"[..])));
    assert_eq!(parser.next_frame(&mut rest), None);
    assert_eq!(parser.finish(), Some(&b"c"[..]));
}

#[test]
fn memory_of_a_huge_line_is_released_and_that_of_a_normal_one_kept() {
    let mut parser = Parser::new(8 * buffer::KEPT);
    let capacity_after = |parser: &mut Parser, length: usize| {
        let start = vec![b'x'; length];
        assert_eq!(parser.next_frame(&mut &start[..]), None);
        assert!(parser.next_frame(&mut &b"\n"[..]).unwrap().is_ok());
        assert_eq!(parser.next_frame(&mut &b""[..]), None);
        parser.partial.capacity()
    };
    assert!(capacity_after(&mut parser, 7 * buffer::KEPT) <= buffer::KEPT);
    let usual = capacity_after(&mut parser, 5000);
    assert!(usual >= 5000);
    assert_eq!(capacity_after(&mut parser, 5000), usual);
}

#[test]
fn an_endless_line_takes_no_memory() {
    let mut parser = Parser::new(1000);
    let mut errors = 0;
    for _ in 0..10_000 {
        let mut rest = &[b'x'; 999][..];
        while let Some(frame) = parser.next_frame(&mut rest) {
            errors += usize::from(frame.is_err());
        }
        assert!(parser.partial.capacity() <= 1024);
    }
    assert_eq!((errors, parser.buffered()), (1, 0));
    assert_eq!(parser.finish(), None);
    assert_eq!(parser.next_frame(&mut &b"a\n"[..]), Some(Ok(&b"a"[..])), "as new after the end");
}

#[test]
fn a_frame_is_finished_as_one_line() {
    let finish = |before: &str, frame: &str| {
        let mut out = format!("{before}{frame}").into_bytes();
        finish_frame(&mut out, before.len());
        String::from_utf8(out).unwrap()
    };
    assert_eq!(finish("", "{}"), "{}\n");
    assert_eq!(finish("", ""), "\n");
    assert_eq!(finish("{}\n", "{\r\n \"a\":\"\\n\"\n}\r"), "{}\n{   \"a\":\"\\n\" } \n");
}

/// The frames of a stream that is available as a whole.
fn model(limit: usize, stream: &[u8]) -> Vec<Frame> {
    let lines = stream.split(|&byte| byte == b'\n');
    lines
        .filter_map(|line| match line {
            _ if line.len() > limit => Some(rejected(limit, &line[..limit.min(PREFIX)])),
            _ if is_blank(line) => None,
            _ => Some(frame(without_return(line))),
        })
        .collect()
}

proptest! {
    #[test]
    fn any_chunks_yield_the_frames_of_the_whole(
        stream in "[ab \r\n]{0,200}",
        lengths in prop::collection::vec(0_usize..20, 0..30),
        limit in 0_usize..12,
    ) {
        let expected = model(limit, stream.as_bytes());
        prop_assert_eq!(read(limit, cut(stream.as_bytes(), &lengths)), expected);
    }

    #[test]
    fn finished_frames_read_back(
        texts in prop::collection::vec("[a-z][ a-z\r\n]{0,20}[a-z]", 0..10),
        lengths in prop::collection::vec(0_usize..20, 0..30),
    ) {
        let mut out = Vec::new();
        for text in &texts {
            let start = out.len();
            out.extend_from_slice(text.as_bytes());
            finish_frame(&mut out, start);
        }
        let expected: Vec<_> = texts.iter().map(|text| frame(text.replace(['\r', '\n'], " "))).collect();
        prop_assert_eq!(read(DEFAULT_LIMIT, cut(&out, &lengths)), expected);
    }
}
