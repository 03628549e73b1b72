//! Events from a stream, however it is chunked.

use proptest::prelude::*;

use super::*;
use crate::buffer::cut;

/// An owned event, or the rejection of one.
#[derive(Debug, Clone, PartialEq, Default)]
struct Seen {
    id: Option<String>,
    event: Option<String>,
    retry: Option<u64>,
    data: Option<Vec<u8>>,
    rejected: Option<EventTooLong>,
}

impl Seen {
    fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    fn event(mut self, event: &str) -> Self {
        self.event = Some(event.to_owned());
        self
    }

    fn retry(mut self, retry: u64) -> Self {
        self.retry = Some(retry);
        self
    }

    fn as_event(&self) -> Event<'_> {
        Event {
            id: self.id.as_deref(),
            event: self.event.as_deref(),
            retry: self.retry,
            data: self.data.as_deref(),
        }
    }
}

fn bare() -> Seen {
    Seen::default()
}

fn data(data: impl AsRef<[u8]>) -> Seen {
    Seen { data: Some(data.as_ref().to_vec()), ..bare() }
}

fn rejected(limit: usize, prefix: &str) -> Seen {
    let prefix = prefix.as_bytes().to_vec();
    Seen { rejected: Some(EventTooLong { limit, prefix }), ..bare() }
}

fn seen(event: Result<Event<'_>, EventTooLong>) -> Seen {
    match event {
        Ok(event) => Seen {
            id: event.id.map(str::to_owned),
            event: event.event.map(str::to_owned),
            retry: event.retry,
            data: event.data.map(<[u8]>::to_vec),
            rejected: None,
        },
        Err(error) => Seen { rejected: Some(error), ..bare() },
    }
}

/// Passes chunks to a parser, and watches its memory.
fn feed<'a>(parser: &mut Parser, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Seen> {
    let most = parser.limit + 3 * MAX_FIELD + MARK.len();
    let mut events = Vec::new();
    for mut rest in chunks {
        while let Some(event) = parser.next_event(&mut rest) {
            events.push(seen(event));
            assert!(parser.buffered() <= most);
        }
        assert!(rest.is_empty());
        assert!(parser.buffered() <= most);
        assert!(parser.buffer.capacity() <= parser.limit.max(buffer::KEPT));
    }
    events
}

/// Checks for the same events from one chunk and from single bytes, and returns the parser.
fn check_within(limit: usize, stream: impl AsRef<[u8]>, expected: &[Seen]) -> Parser {
    let stream = stream.as_ref();
    let mut whole = Parser::new(limit);
    assert_eq!(feed(&mut whole, [stream]), expected, "in one chunk");
    let mut bytes = Parser::new(limit);
    assert_eq!(feed(&mut bytes, stream.chunks(1)), expected, "byte by byte");
    assert_eq!(whole.last_event_id, bytes.last_event_id);
    assert_eq!(whole.comments, bytes.comments);
    whole
}

fn check(stream: impl AsRef<[u8]>, expected: &[Seen]) -> Parser {
    check_within(DEFAULT_LIMIT, stream, expected)
}

#[test]
fn fields_of_an_event() {
    check("data: a\n\n", &[data("a")]);
    check(
        "event: message\nid: 7\nretry: 250\ndata: {}\n\ndata: b\n\n",
        &[data("{}").id("7").event("message").retry(250), data("b")],
    );
    check("event: a\nevent: b\n\n", &[bare().event("b")]);
}

#[test]
fn data_lines_are_joined_by_line_feeds() {
    check("data: a\ndata: b\ndata: c\n\n", &[data("a\nb\nc")]);
    check("data: a\nid: 1\ndata:\n\n", &[data("a\n").id("1")]);
    check("data\ndata\n\n", &[data("\n")]);
}

#[test]
fn one_space_after_the_colon_is_optional() {
    check("data:a\n\ndata: a\n\n", &[data("a"), data("a")]);
    check("data:  a \n\n", &[data(" a ")]);
    check("data:\ta\n\n", &[data("\ta")]);
    check("data:a:b\n\n", &[data("a:b")]);
}

#[test]
fn a_field_without_a_colon_is_empty() {
    check("data\n\n", &[data("")]);
    check("id: 1\n\nid\n\n", &[bare().id("1"), bare().id("")]);
}

#[test]
fn lines_end_in_three_ways() {
    for end in ["\n", "\r", "\r\n"] {
        let stream = format!("data: a{end}data: b{end}{end}{end}data: c{end}{end}");
        check(stream, &[data("a\nb"), data("c")]);
    }
    check("data: a\r\n\rdata: b\n\r\n", &[data("a"), data("b")]);
}

#[test]
fn a_line_end_split_across_chunks_is_one() {
    let mut parser = Parser::default();
    let chunks: [&[u8]; 4] = [b"data: a\r", b"\ndata: b\r\n\r", b"\n", b"data: c\n\n"];
    assert_eq!(feed(&mut parser, chunks), [data("a\nb"), data("c")]);
}

#[test]
fn an_event_is_yielded_without_waiting_for_the_rest_of_its_line_end() {
    let mut parser = Parser::default();
    let chunk: &[u8] = b"data: a\r\n\r";
    assert_eq!(feed(&mut parser, [chunk]), [data("a")]);
}

#[test]
fn a_leading_byte_order_mark_is_skipped() {
    check("\u{FEFF}data: a\n\n", &[data("a")]);
    check("\u{FEFF}: hello\n\n", &[]);
    check("\u{FEFF}\u{FEFF}data: a\n\n", &[]);
    check("data: a\n\n\u{FEFF}data: b\n\n", &[data("a")]);
    check(b"\xEF\xBBdata: a\ndata: b\n\n", &[data("b")]);
}

#[test]
fn an_id_with_a_nul_is_ignored() {
    let parser = check("id: 1\n\nid: 2\0\ndata: a\n\n", &[bare().id("1"), data("a")]);
    assert_eq!(parser.last_event_id(), Some("1"));
}

#[test]
fn an_id_that_cannot_be_sent_back_is_ignored() {
    check(b"id: \xFF\ndata: a\n\n", &[data("a")]);
    check(format!("id: {}\ndata: a\n\n", "x".repeat(MAX_FIELD + 1)), &[data("a")]);
    let longest = "x".repeat(MAX_FIELD);
    check(format!("id: {longest}\n\n"), &[bare().id(&longest)]);
}

#[test]
fn an_invalid_event_name_matches_nothing() {
    check(b"event: \xFF\ndata: a\n\n", &[data("a").event("\u{FFFD}")]);
    check(
        format!("event: {}\ndata: a\n\n", "x".repeat(MAX_FIELD + 1)),
        &[data("a").event("\u{FFFD}")],
    );
}

#[test]
fn unknown_fields_are_ignored() {
    check("other: a\ndata: b\nDATA: c\n data: d\n\n", &[data("b")]);
    check("other: a\n\n", &[]);
}

#[test]
fn retry_takes_digits_only() {
    check("retry: 10\nretry: 1x\n\n", &[bare().retry(10)]);
    for bad in ["", "-1", "+1", "1.5", " 1", "99999999999999999999"] {
        check(format!("retry: {bad}\n\n"), &[]);
    }
}

#[test]
fn an_event_cut_short_by_the_end_is_discarded() {
    let parser = check("id: 1\ndata: a\n\nid: 2\ndata: b\n", &[data("a").id("1")]);
    assert_eq!(parser.last_event_id(), Some("1"));
}

#[test]
fn the_last_event_id_stays_until_another_comes() {
    let id_after = |stream: &str| {
        let mut parser = Parser::default();
        feed(&mut parser, [stream.as_bytes()]);
        parser.last_event_id().map(str::to_owned)
    };
    assert_eq!(id_after("data: a\n\n"), None);
    assert_eq!(id_after("id: 1\n\ndata: a\n\n").as_deref(), Some("1"));
    assert_eq!(id_after("id: 1\n\nid: 2\n\n").as_deref(), Some("2"));
    assert_eq!(id_after("id: 1\n\nid:\n\n"), None);
}

#[test]
fn a_priming_event_is_yielded() {
    let parser = check("id: 1\ndata:\n\n", &[data("").id("1")]);
    assert_eq!(parser.last_event_id(), Some("1"));
    check("id: 1\nretry: 5\n\n", &[bare().id("1").retry(5)]);
    check("retry: 5\n\n", &[bare().retry(5)]);
}

#[test]
fn comments_are_counted_and_never_kept() {
    let endless = "x".repeat(5000);
    let stream = format!(": a\n\ndata: b\n:{endless}\ndata: c\n\n:");
    let parser = check_within(20, stream, &[data("b\nc")]);
    assert_eq!(parser.comments(), 3);
    let keep_alive = check(KEEP_ALIVE, &[]);
    assert_eq!(keep_alive.comments(), 1);
}

#[test]
fn a_chunk_border_within_a_character_is_harmless() {
    check("data: äöü€😀\nid: é\n\n", &[data("äöü€😀").id("é")]);
}

#[test]
fn data_that_is_not_utf_8_is_not_repaired() {
    check(b"data: a\xFF\xC3\n\n", &[data(b"a\xFF\xC3")]);
}

#[test]
fn an_event_of_exactly_the_limit_is_accepted() {
    check_within(8, "data: ab\n\n", &[data("ab")]);
    check_within(16, "data: ab\ndata: cd\n\n", &[data("ab\ncd")]);
    check_within(8, "o: 56789\n\no: 56789\n\ndata:678\n\n", &[data("678")]);
}

#[test]
fn a_long_event_is_rejected_once_and_the_next_is_read() {
    let next = "data: ok\n\n";
    for long in ["data: abc", "data: abcdefghijkl\nid: 1\n:\ndata: more"] {
        let expected = [rejected(8, "ab"), data("ok")];
        check_within(8, format!("{long}\n\n{next}"), &expected);
        check_within(8, format!("{long}\r\n\r\n{next}"), &expected);
    }
    let expected = [rejected(10, "abcd\n"), data("ok")];
    check_within(10, format!("data: abcd\ndata: e\n\n{next}"), &expected);
    let expected = [rejected(13, ""), data("ok")];
    check_within(13, format!("event: abcdefg\ndata: e\n\n{next}"), &expected);
}

#[test]
fn a_rejected_event_leaves_a_prefix_with_its_id() {
    let json = format!(r#"{{"id":7,"text":"{}"}}"#, "x".repeat(5000));
    check_within(4000, format!("data: {json}\n\n"), &[rejected(4000, &json[..PREFIX])]);
}

#[test]
fn a_rejected_event_is_not_requested_again() {
    let parser = check_within(8, "id: 1\ndata: abcdef\n\n", &[rejected(8, "")]);
    assert_eq!(parser.last_event_id(), Some("1"));
}

#[test]
fn the_error_states_the_limit() {
    let mut parser = Parser::new(4);
    let error = parser.next_event(&mut &b"data: a"[..]);
    assert_eq!(error.unwrap().unwrap_err().to_string(), "an event is longer than 4 bytes");
}

#[test]
fn an_endless_event_takes_no_memory() {
    for endless in [&[b'x'; 999][..], &b"data: x\n".repeat(100), &b"id: xx\n".repeat(100)] {
        let mut parser = Parser::new(1000);
        let events = feed(&mut parser, std::iter::repeat_n(endless, 10_000));
        assert_eq!(events.len(), 1);
        assert!(events[0].rejected.is_some());
        assert!(parser.buffer.capacity() <= 1024);
    }
}

#[test]
fn memory_of_a_huge_event_is_released() {
    let mut parser = Parser::default();
    let giant = "x".repeat(5 * buffer::KEPT);
    let stream = format!("data: {giant}\n\n");
    let events = feed(&mut parser, stream.as_bytes().chunks(65536));
    assert_eq!(events, [data(&giant)]);
    assert_eq!(parser.next_event(&mut &b"\n"[..]), None);
    assert!(parser.buffer.capacity() <= buffer::KEPT);
}

#[test]
fn whole_events_lend_their_data_from_the_chunk() {
    let chunk: &[u8] = b"event: message\ndata: first\nid: 1\n\ndata: second\r\n\r\ndata: th";
    let mut parser = Parser::default();
    let mut rest = chunk;
    for _ in 0..2 {
        let event = parser.next_event(&mut rest).unwrap().unwrap();
        assert!(chunk.as_ptr_range().contains(&event.data.unwrap().as_ptr()));
    }
    assert_eq!(parser.buffer.capacity(), 0);
    assert_eq!(parser.next_event(&mut rest), None);
    assert_eq!(parser.buffer, b"data: th");
}

#[test]
fn stopping_halfway_through_a_chunk_loses_nothing() {
    let mut parser = Parser::default();
    let mut rest: &[u8] = b"data: a\n\ndata: b\n\n";
    assert!(parser.next_event(&mut rest).is_some());
    assert_eq!(rest, b"data: b\n\n");
    assert_eq!(feed(&mut parser, [rest]), [data("b")]);
}

#[test]
fn another_stream_goes_on_with_the_last_event_id() {
    let mut parser = Parser::default();
    let first: &[u8] = b"id: 1\n\ndata: lost\ndata: los\r";
    let second = "\u{FEFF}data: a\n\n".as_bytes();
    feed(&mut parser, [first]);
    parser.restart();
    assert_eq!(feed(&mut parser, [second]), [data("a")]);
    assert_eq!(parser.last_event_id(), Some("1"));
}

fn encoded(event: &Seen) -> Result<String, EncodeError> {
    let mut out = b"before".to_vec();
    let outcome = event.as_event().encode(&mut out);
    let text = String::from_utf8(out).unwrap();
    let written = text.strip_prefix("before").unwrap().to_owned();
    assert!(outcome.is_ok() || written.is_empty());
    outcome.map(|()| written)
}

#[test]
fn events_are_written_as_blocks() {
    let write = |event: Seen| encoded(&event).unwrap();
    assert_eq!(write(bare()), "");
    assert_eq!(write(data("{}")), "data: {}\n\n");
    assert_eq!(
        write(data("{}").id("1").event("message").retry(5)),
        "event: message\nid: 1\nretry: 5\ndata: {}\n\n"
    );
    assert_eq!(write(data("").id("1")), "id: 1\ndata: \n\n");
}

#[test]
fn data_with_line_breaks_becomes_several_lines() {
    let write = |text: &str| encoded(&data(text)).unwrap();
    assert_eq!(write("a\nb"), "data: a\ndata: b\n\n");
    assert_eq!(write("a\r\nb\rc\n"), "data: a\ndata: b\ndata: c\ndata: \n\n");
}

#[test]
fn values_that_would_break_the_framing_are_rejected() {
    let long = "x".repeat(MAX_FIELD + 1);
    for bad in ["a\nb", "\r", "a\0", &long] {
        assert_eq!(encoded(&bare().id(bad)), Err(EncodeError::Id));
    }
    for bad in ["a\nb", "\r", &long] {
        assert_eq!(encoded(&bare().event(bad)), Err(EncodeError::Event));
    }
    assert_eq!(
        EncodeError::Id.to_string(),
        "the id contains a line break or NUL, or is over 1024 bytes"
    );
}

#[test]
fn comments_are_written_as_blocks() {
    let mut out = Vec::new();
    encode_comment(&mut out, "still\nhere");
    assert_eq!(out, b": still\n: here\n\n");
    assert_eq!(check(out, &[]).comments(), 2);
}

/// The events of a stream that is available as a whole, without limits.
fn model(stream: &str) -> Vec<Seen> {
    let stream = stream.strip_prefix('\u{FEFF}').unwrap_or(stream);
    let lines = stream.replace("\r\n", "\n").replace('\r', "\n");
    let Some((closed, _)) = lines.rsplit_once('\n') else {
        return Vec::new();
    };
    let mut events = Vec::new();
    let mut event = bare();
    for line in closed.split('\n') {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            _ if line.is_empty() => events.push(mem::take(&mut event)),
            "data" => match &mut event.data {
                Some(before) => before.extend([b"\n", value.as_bytes()].concat()),
                None => event.data = Some(value.into()),
            },
            "id" if !value.contains('\0') => event.id = Some(value.to_owned()),
            "event" => event.event = Some(value.to_owned()),
            "retry" if !value.contains('+') => event.retry = value.parse().ok().or(event.retry),
            _ => {}
        }
    }
    events.retain(|event| *event != bare());
    events
}

/// Streams composed of parts that matter to the parser.
fn streams() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "\n",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "data",
        "data: ",
        "data:",
        "id: ",
        "event: ",
        "retry: 1",
        ":",
        " ",
        "a",
        "€",
        "\0",
        "\u{FEFF}",
        "long long long",
        "7",
    ]);
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

fn events() -> impl Strategy<Value = Seen> {
    let name = || prop::option::of("[a-z€ :]{0,9}");
    let data = prop::option::of("[a-z€ :\n]{0,30}");
    (name(), name(), prop::option::of(any::<u64>()), data).prop_map(|(id, event, retry, data)| {
        Seen { id, event, retry, data: data.map(String::into_bytes), rejected: None }
    })
}

proptest! {
    #[test]
    fn any_chunks_yield_the_events_of_the_whole(
        stream in streams(),
        lengths in prop::collection::vec(0_usize..20, 0..30),
        limit in 0_usize..40,
    ) {
        let stream = stream.as_bytes();
        let mut whole = Parser::new(limit);
        let mut parts = Parser::new(limit);
        let expected = feed(&mut whole, [stream]);
        prop_assert_eq!(feed(&mut parts, cut(stream, &lengths)), expected);
        prop_assert_eq!(parts.last_event_id, whole.last_event_id);
        prop_assert_eq!(parts.comments, whole.comments);
    }

    #[test]
    fn without_rejections_the_events_match_the_standard(stream in streams()) {
        let mut parser = Parser::default();
        prop_assert_eq!(feed(&mut parser, [stream.as_bytes()]), model(&stream));
    }

    #[test]
    fn encoded_events_read_back(
        events in prop::collection::vec(events(), 0..9),
        lengths in prop::collection::vec(0_usize..20, 0..30),
    ) {
        let mut out = Vec::new();
        for event in &events {
            event.as_event().encode(&mut out).unwrap();
            out.extend_from_slice(KEEP_ALIVE);
        }
        let expected: Vec<_> = events.into_iter().filter(|event| *event != bare()).collect();
        prop_assert_eq!(feed(&mut Parser::default(), cut(&out, &lengths)), expected);
    }
}
