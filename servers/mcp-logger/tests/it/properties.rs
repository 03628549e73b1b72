//! Generated messages, parsed by independent parsers.

use encoding_rs::Encoding;
use mcp_logger::Config;
use mcp_logger::allow::AllowEntry;
use mcp_logger::arguments::{Endpoint, MessageOptions};
use mcp_logger::destination::{Framing, Host, Transport};
use mcp_logger::encoding::{Bom, COMMON, Charset, OnUnmappable};
use mcp_logger::escape::{ControlCharacters, escape, is_control};
use mcp_logger::message::{Fields, Format};
use mcp_logger::packet::{Oversize, Rendering};
use mcp_logger::plan;
use mcp_logger::priority::Priority;
use mcp_logger::structured_data::StructuredData;
use mcp_logger::timestamp::Timestamp;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use syslog_loose::Variant;

/// Texts with awkward parts: controls, direction marks, other scripts, PRIs.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        Just("\n<0>forged".to_owned()),
        Just("表示〜日本語".to_owned()),
        Just("\u{feff}\u{202e}\u{2028}\u{85}\u{1b}[2J\0".to_owned()),
        "[ -~]{0,40}",
    ];
    vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    let date = (1970..2100_i32, 1..=12, 1..=28, 0..24, 0..60);
    let rest = (0..60, 0..1_000_000, -12..=12);
    (date, rest).prop_map(|((year, month, day, hour, minute), (second, micro, zone))| {
        let sign = if zone < 0 { '-' } else { '+' };
        let text = format!(
            "{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micro:06}{sign}{:02}:00",
            i32::abs(zone)
        );
        text.parse().unwrap()
    })
}

fn priority() -> impl Strategy<Value = Priority> {
    (0..=191_u8).prop_map(|pri| Priority::from_pri(pri).unwrap())
}

fn data() -> impl Strategy<Value = StructuredData> {
    btree_map("[a-z]{1,10}@[1-9][0-9]{0,5}", btree_map("[a-zA-Z]{1,8}", text(), 0..3), 0..3)
}

prop_compose! {
    fn fields(format: Format)(
        priority in priority(),
        timestamp in timestamp(),
        hostname in "[a-z][a-z0-9-]{0,20}",
        tag in "[a-zA-Z][a-zA-Z0-9_/.-]{0,20}",
        procid in option::of("[0-9]{1,6}"),
        msgid in option::of("[A-Z][A-Z0-9]{0,20}"),
        structured_data in data(),
    ) -> Fields {
        let is_new = format == Format::Rfc5424;
        Fields {
            format,
            priority,
            timestamp: Some(timestamp),
            hostname: Some(hostname),
            tag,
            procid,
            msgid: msgid.filter(|_| is_new),
            structured_data: if is_new { structured_data } else { StructuredData::new() },
            caller: StructuredData::new(),
        }
    }
}

fn rendering() -> Rendering {
    Rendering {
        charset: Charset::UTF_8,
        on_unmappable: OnUnmappable::Error,
        control_characters: ControlCharacters::Escape,
        bom: Bom::Never,
        max_size: 1 << 20,
        oversize: Oversize::Error,
    }
}

fn written(fields: &Fields, text: &str) -> String {
    let packets = rendering().pack(&fields.header().unwrap(), text).unwrap().packets;
    String::from_utf8(packets.concat()).unwrap()
}

/// The text as it arrives.
fn arrives(text: &str) -> String {
    escape(text.strip_prefix('\u{feff}').unwrap_or(text)).into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_strict_parser_reads_rfc_5424(fields in fields(Format::Rfc5424), text in text()) {
        let message = written(&fields, &text);
        let read = syslog_rfc5424::parse_message(&message).unwrap();
        let number = |priority: Priority| (priority.facility.number(), priority.severity.number());
        prop_assert_eq!((read.facility as u8, read.severity as u8), number(fields.priority));
        prop_assert_eq!(read.hostname, fields.hostname);
        prop_assert_eq!(read.appname, Some(fields.tag));
        let procid = read.procid.map(|procid| match procid {
            syslog_rfc5424::message::ProcId::PID(number) => number.to_string(),
            syslog_rfc5424::message::ProcId::Name(name) => name,
        });
        let expected = fields.procid.map(|it| it.parse::<i32>().unwrap().to_string());
        prop_assert_eq!(procid, expected);
        prop_assert_eq!(read.msgid, fields.msgid);
        let mut escaped = fields.structured_data;
        for value in escaped.values_mut().flat_map(|it| it.values_mut()) {
            *value = escape(value).into_owned();
        }
        prop_assert_eq!(&*read.sd, &escaped);
        let arrived = arrives(&text);
        prop_assert_eq!(read.msg.trim(), arrived.trim());
        prop_assert!(read.timestamp.is_some());
    }

    #[test]
    fn a_loose_parser_reads_both(
        (fields, text) in prop_oneof![fields(Format::Rfc3164), fields(Format::Rfc5424)]
            .prop_flat_map(|fields| (Just(fields), text()))
    ) {
        // It takes a leading dash or bracket for structured data, even in the old format.
        let text = format!("m {text}");
        let message = written(&fields, &text);
        let variant = match fields.format {
            Format::Rfc3164 => Variant::RFC3164,
            Format::Rfc5424 => Variant::RFC5424,
        };
        let read = syslog_loose::parse_message(&message, variant);
        prop_assert_eq!(read.facility.unwrap() as i32, i32::from(fields.priority.facility.number()));
        prop_assert_eq!(read.severity.unwrap() as i32, i32::from(fields.priority.severity.number()));
        prop_assert_eq!(read.hostname, fields.hostname.as_deref());
        prop_assert_eq!(read.appname, Some(fields.tag.as_str()));
        prop_assert!(read.timestamp.is_some());
        let arrived = arrives(&text);
        prop_assert_eq!(read.msg.trim(), arrived.trim());
    }

    #[test]
    fn nothing_in_a_text_can_pass_for_a_second_message(
        fields in fields(Format::Rfc5424), text in text()
    ) {
        let message = written(&fields, &text);
        prop_assert!(!message.contains(is_control), "{message:?}");
    }

    #[test]
    fn parts_are_small_enough_and_make_up_the_whole(
        text in text(), max in 40..200_usize, label in prop::sample::select(&COMMON)
    ) {
        let charset: Charset = label.parse().unwrap();
        let rendering = Rendering {
            charset, max_size: max, oversize: Oversize::Split, on_unmappable: OnUnmappable::Replace,
            ..rendering()
        };
        let packets = rendering.pack("<14>H: ", &text).unwrap().packets;
        let mut all = String::new();
        for (index, packet) in packets.iter().enumerate() {
            prop_assert!(packet.len() <= max);
            let (body, _) = Encoding::for_label(charset.name().as_bytes())
                .unwrap()
                .decode_without_bom_handling(packet);
            let mark = format!("<14>H: [{}/{}] ", index + 1, packets.len());
            let body = body.strip_prefix("<14>H: ").or_else(|| body.strip_prefix("<14>H:")).unwrap();
            all += match packets.len() {
                1 => body,
                _ => body.strip_prefix(&mark["<14>H: ".len()..]).unwrap(),
            };
        }
        let whole = charset.encode(&arrives(&text), OnUnmappable::Replace).unwrap();
        let (whole, _) = Encoding::for_label(charset.name().as_bytes())
            .unwrap()
            .decode_without_bom_handling(&whole);
        prop_assert_eq!(all, whole);
    }

    #[test]
    fn cut_messages_keep_their_beginning(text in text(), max in 20..100_usize) {
        let rendering = Rendering { max_size: max, oversize: Oversize::Truncate, ..rendering() };
        let packets = rendering.pack("<14>H: ", &text).unwrap();
        let packet = String::from_utf8(packets.packets.concat()).unwrap();
        prop_assert!(packet.len() <= max);
        let whole = arrives(&text);
        if packets.truncated {
            let kept = packet.strip_prefix("<14>H: ").and_then(|it| it.strip_suffix("[...]"));
            prop_assert!(whole.starts_with(kept.unwrap()));
        } else {
            prop_assert!(packet.trim_end().ends_with(whole.trim_end()));
        }
    }

    #[test]
    fn counted_frames_can_be_taken_apart(messages in vec(vec(any::<u8>(), 0..50), 0..5)) {
        let framed: Vec<u8> =
            messages.iter().flat_map(|it| Framing::OctetCounting.frame(it).unwrap()).collect();
        let (mut rest, mut read) = (framed.as_slice(), Vec::new());
        while !rest.is_empty() {
            let space = rest.iter().position(|byte| *byte == b' ').unwrap();
            let length: usize = std::str::from_utf8(&rest[..space]).unwrap().parse().unwrap();
            read.push(rest[space + 1..][..length].to_vec());
            rest = &rest[space + 1 + length..];
        }
        prop_assert_eq!(read, messages);
    }

    /// Every request yields messages within their limits, or an error with a text.
    #[test]
    fn no_request_panics(
        server in prop_oneof![any::<String>(), Just("127.0.0.1".to_owned())],
        words in vec(option::of(prop_oneof![any::<String>(), "[a-z0-9@./:-]{0,12}"]), 8),
        (port, max_size, message) in (option::of(any::<u16>()), option::of(0..2000_u32), text()),
        structured_data in option::of(btree_map(any::<String>(), btree_map(any::<String>(), text(), 0..2), 0..2)),
        choices in any::<u8>(),
    ) {
        let transports = [Transport::Udp, Transport::Tcp, Transport::Tls, Transport::Unix];
        let endpoint = Endpoint {
            server, port, transport: Some(transports[usize::from(choices & 3)]), ..Endpoint::default()
        };
        let mut words = words.into_iter();
        let mut word = || words.next().flatten();
        let options = MessageOptions {
            severity: word(), facility: word(), tag: word(), encoding: word(), hostname: word(),
            procid: word(), msgid: word(), timestamp: word(), structured_data, max_size,
            format: Some(if choices & 4 == 0 { Format::Rfc3164 } else { Format::Rfc5424 }),
            oversize: Some([Oversize::Error, Oversize::Truncate, Oversize::Split][usize::from(choices >> 4) % 3]),
            ..MessageOptions::default()
        };
        let config = Config::default();
        let made = plan::destination(&config, &endpoint).and_then(|to| {
            let layout = plan::layout(&config, &to, options, ("host", None))?;
            Ok((layout.packets(&message)?, layout.rendering.max_size))
        });
        match made {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok((packets, max)) => {
                for packet in packets.packets {
                    prop_assert!(packet.len() <= max);
                    prop_assert!(packet.starts_with(b"<"));
                    prop_assert!(!packet.contains(&b'\n'));
                }
            }
        }
    }

    #[test]
    fn parsers_never_panic(text in any::<String>()) {
        for transport in [Transport::Udp, Transport::Unix] {
            let _ = Host::parse(&text, transport);
        }
        let _ = text.parse::<AllowEntry>();
        let _ = text.parse::<Timestamp>();
        let _ = text.parse::<Priority>();
        let _ = text.parse::<Charset>();
        let _ = Config::parse(&text);
    }
}
