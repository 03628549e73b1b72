//! What a real rsyslogd writes, field by field.
//!
//! `cargo xtask test` unpacks Debian's rsyslogd below `target` and passes its path. Without that,
//! or an earlier run of it, these tests are skipped.

mod daemon;

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

use bowline::Client;
use serde_json::{Value, json};

use self::daemon::{Daemon, Record};
use crate::client;
#[cfg(unix)]
use crate::spool::Program;

/// A message, and the records it must become.
struct Case {
    name: &'static str,
    port: Port,
    /// In addition to server, port, tag and timestamp.
    arguments: Value,
    expected: Vec<Expected>,
}

#[derive(Clone, Copy)]
enum Port {
    Udp,
    Tcp,
    Tls,
    Unix,
}

/// The fields of a record; the tag is the name of the case.
struct Expected {
    pri: &'static str,
    version: &'static str,
    host: &'static str,
    procid: &'static str,
    msgid: &'static str,
    data: String,
    text: Vec<u8>,
}

/// A record in the old format. For rsyslogd, the space after the tag belongs to the text.
fn old(pri: &'static str, text: &[u8]) -> Expected {
    Expected {
        pri,
        version: "0",
        host: "web1",
        procid: "-",
        msgid: "-",
        data: "-".to_owned(),
        text: [b" ", text].concat(),
    }
}

fn new(pri: &'static str, text: &[u8]) -> Expected {
    Expected { version: "1", text: text.to_vec(), ..old(pri, b"") }
}

const BOM: &str = "\u{feff}";
const JAPANESE: &str = "デプロイ失敗：表示が10時～に停止";

#[tokio::test]
async fn rsyslogd_writes_what_was_sent() {
    let Some(folder) = unpacked() else { return };
    let daemon = Daemon::start(&folder, "rsyslog-fields").await;
    let client =
        client(&format!("messages_per_second = 0\nca_file = {:?}\n{KEEP}", daemon.ca_file())).await;
    let mut failures = Vec::new();
    for case in old_cases().into_iter().chain(new_cases()).chain(stream_cases()) {
        send(&client, &daemon, &case).await;
        let records = daemon.records(case.name, case.expected.len()).await;
        for (record, expected) in records.iter().zip(&case.expected) {
            failures.extend(differences(case.name, record, expected));
        }
    }
    drop(daemon);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// Lets callers keep control characters; without their wish, `send` escapes them.
const KEEP: &str = "[defaults]\ncontrol_characters = \"keep\"";

/// How many hostile messages are sent; a hundred times as many with `BOWLINE_FULL`.
const HOSTILE: usize = 2_000;

/// Texts that try to end a message, forge another, or repaint a screen.
const HARM: [&str; 8] = [
    "\r\n<0>Nov  5 09:30:00 root kernel: forged",
    "\n130 <0>1 - - forged - - - counted",
    "\0\u{1b}[2J\u{1b}]0;title\u{7}",
    "a\u{85}b\u{2028}c\u{2029}d",
    "\u{202e}detrever\u{202c}",
    "\u{feff}mark",
    "100%s%n%d",
    "\t",
];

#[tokio::test]
async fn every_message_becomes_one_record() {
    let Some(folder) = unpacked() else { return };
    let daemon = Daemon::start(&folder, "rsyslog-hostile").await;
    let client = client("messages_per_second = 0").await;
    let count = if env::var_os("BOWLINE_FULL").is_some() { 100 * HOSTILE } else { HOSTILE };
    for framing in ["octet-counting", "lf"] {
        for from in (0..count).step_by(1_000) {
            let message = |number: usize| {
                let harm = HARM[number % HARM.len()].repeat(1 + number % 20);
                json!({ "message": format!("{number} {harm}"), "bom": "never" })
            };
            let messages: Vec<Value> = (from..from + 1_000).map(message).collect();
            let batch = json!({
                "server": "127.0.0.1", "port": daemon.tcp, "transport": "tcp", "tag": framing,
                "framing": framing, "messages": messages,
            });
            client.call_tool("send-syslog-batch", batch).text().await.unwrap();
        }
        let records = daemon.records(framing, count).await;
        for (number, record) in records.iter().enumerate() {
            let harm = HARM[number % HARM.len()].repeat(1 + number % 20);
            let expected = format!(" {number} {}", mcp_logger::escape::escape(&harm));
            assert_eq!(
                record.field("text").escape_ascii().to_string(),
                expected.as_bytes().escape_ascii().to_string()
            );
        }
    }
    assert!(daemon.is_free_of(b"forged"), "a record was forged");
}

#[cfg(unix)]
#[tokio::test]
async fn what_was_spooled_arrives_once_and_in_order() {
    let Some(folder) = unpacked() else { return };
    let mut daemon = Daemon::start(&folder, "rsyslog-spool").await;
    let place = crate::receiver::folder("rsyslog-spool-dir");
    let config = place.join("config.toml");
    let text = format!(
        "messages_per_second = 0\n[targets.central]\nserver = \"127.0.0.1\"\nport = {}\n\
         transport = \"tcp\"\n[spool]\ndir = \"spool\"\nretry_ms = 10\nmax_retry_ms = 100",
        daemon.tcp
    );
    std::fs::write(&config, text).unwrap();
    let send = |program: &mut Program, number: usize| {
        let message = json!({ "server": "central", "tag": "spool", "message": number.to_string() });
        let sent = program.call("send-syslog", &message);
        sent["structuredContent"]["delivery"].as_str().unwrap().to_owned()
    };
    let mut program = Program::start(&config);
    for number in 0..3 {
        assert_eq!(send(&mut program, number), "written");
    }
    daemon.records("spool", 3).await;
    daemon.stop();
    for number in 3..8 {
        assert_eq!(send(&mut program, number), "spooled");
    }
    let entries: Vec<Value> =
        (8..258).map(|number| json!({ "message": number.to_string() })).collect();
    let batch = json!({ "server": "central", "tag": "spool", "messages": entries });
    let batch = program.call("send-syslog-batch", &batch);
    assert_eq!(batch["structuredContent"]["waiting"]["messages"], 255);
    // Killed, and started again.
    drop(program);
    let mut program = Program::start(&config);
    assert_eq!(program.waiting(), 255);
    assert_eq!(send(&mut program, 258), "spooled");
    daemon.restart(&folder).await;
    while program.waiting() > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(send(&mut program, 259), "written");
    let records = daemon.records("spool", 260).await;
    for (number, record) in records.iter().enumerate() {
        assert_eq!(record.field("text"), format!(" {number}").as_bytes());
    }
    assert_eq!(program.close(), Some(0));
    std::fs::remove_dir_all(place).unwrap();
}

async fn send(client: &Client, daemon: &Daemon, case: &Case) {
    let over = |port, transport| json!({ "server": "127.0.0.1", "port": port, "transport": transport, "hostname": "web1" });
    let mut arguments = match case.port {
        Port::Udp => over(daemon.udp, "udp"),
        Port::Tcp => over(daemon.tcp, "tcp"),
        Port::Tls => over(daemon.tls, "tls"),
        // On its local socket, rsyslogd fills in the host name.
        Port::Unix => json!({ "server": daemon.socket(), "transport": "unix" }),
    };
    arguments["tag"] = case.name.into();
    arguments["control_characters"] = "escape".into();
    arguments["timestamp"] = "2026-11-05T09:30:00.25+09:00".into();
    for (name, value) in case.arguments.as_object().unwrap() {
        arguments[name] = value.clone();
    }
    let tool =
        if arguments.get("messages").is_some() { "send-syslog-batch" } else { "send-syslog" };
    client.call_tool(tool, arguments).text().await.unwrap();
}

fn differences(case: &str, record: &Record, expected: &Expected) -> Vec<String> {
    let field = |name: &str| String::from_utf8_lossy(record.field(name)).into_owned();
    let mut found = Vec::new();
    for (name, expected) in [
        ("pri", expected.pri),
        ("version", expected.version),
        ("host", expected.host),
        ("tag", case),
        ("procid", expected.procid),
        ("msgid", expected.msgid),
        ("data", &expected.data),
    ] {
        if field(name) != expected {
            found.push(format!("{case}: {name} is {:?}, not {expected:?}", field(name)));
        }
    }
    // The old format has neither year nor zone.
    let time = field("time");
    if !time.contains("-11-05T09:30:00")
        || (expected.version == "1" && !time.ends_with(".250000+09:00"))
    {
        found.push(format!("{case}: time is {time}"));
    }
    let (text, expected) = (record.field("text"), &expected.text);
    if text != expected {
        let same = text.iter().zip(expected).take_while(|(one, other)| one == other).count();
        let shown = |text: &[u8]| {
            let rest = &text[same..];
            format!("{} bytes, …{}", text.len(), rest[..rest.len().min(60)].escape_ascii())
        };
        found.push(format!(
            "{case}: text is {}, not {}; {same} bytes are the same",
            shown(text),
            shown(expected)
        ));
    }
    found
}

fn encoded(label: &str, text: &str) -> Vec<u8> {
    encoding_rs::Encoding::for_label(label.as_bytes()).unwrap().encode(text).0.into_owned()
}

fn old_cases() -> Vec<Case> {
    let case = |name, arguments, text: &[u8]| Case {
        name,
        port: Port::Udp,
        arguments,
        expected: vec![old("14", text)],
    };
    let marked = format!("{BOM}{JAPANESE}");
    vec![
        case("plain", json!({"message": "hello"}), b"hello"),
        Case {
            expected: vec![Expected { procid: "77", ..old("131", b"timeout") }],
            ..case(
                "fields",
                json!({"message": "timeout", "facility": "local0", "severity": "error", "procid": "77"}),
                b"",
            )
        },
        Case {
            expected: vec![old("0", b"worst"), old("191", b"least"), old("123", b"clock")],
            ..case(
                "priorities",
                json!({"messages": [
                    {"message": "worst", "facility": "kern", "severity": "emerg"},
                    {"message": "least", "facility": "23", "severity": "7"},
                    {"message": "clock", "facility": "solaris-cron", "severity": "err"},
                ]}),
                b"",
            )
        },
        case("utf8", json!({"message": JAPANESE}), marked.as_bytes()),
        case("nomark", json!({"message": JAPANESE, "bom": "never"}), JAPANESE.as_bytes()),
        case("always", json!({"message": "a", "bom": "always"}), format!("{BOM}a").as_bytes()),
        case(
            "sjis",
            json!({"message": JAPANESE, "encoding": "cp932"}),
            &encoded("shift_jis", JAPANESE),
        ),
        case(
            "eucjp",
            json!({"message": JAPANESE, "encoding": "euc-jp"}),
            &encoded("euc-jp", JAPANESE),
        ),
        case(
            "control",
            json!({"message": "a\r\n<0>b\tc\u{1b}[31m\u{85}"}),
            format!("{BOM}a#015#012<0>b#011c#033[31m<U+0085>").trim_start_matches(BOM).as_bytes(),
        ),
        // rsyslogd escapes what we did not, in the same way.
        case(
            "kept",
            json!({"message": "a\nb\tc\u{7}", "control_characters": "keep"}),
            b"a#012b#011c#007",
        ),
    ]
}

fn new_cases() -> Vec<Case> {
    let case = |name, mut arguments: Value, expected| {
        arguments["format"] = "rfc5424".into();
        Case { name, port: Port::Udp, arguments, expected: vec![expected] }
    };
    let long = "x".repeat(9_000);
    vec![
        case("new", json!({"message": "hello"}), new("14", b"hello")),
        case(
            "new-utf8",
            json!({"message": JAPANESE}),
            new("14", format!("{BOM}{JAPANESE}").as_bytes()),
        ),
        case(
            "new-sjis",
            json!({"message": JAPANESE, "encoding": "shift_jis"}),
            new("14", &encoded("shift_jis", JAPANESE)),
        ),
        case(
            "new-data",
            json!({
                "message": "m", "procid": "p-1", "msgid": "ID47", "severity": "notice",
                "structured_data": {
                    "deploy@32473": {"stage": "本番", "quoted": "a \"b\" ] \\ c\n"},
                    "origin": {"software": "mcp-logger"},
                },
            }),
            Expected {
                procid: "p-1",
                msgid: "ID47",
                data: "[deploy@32473 quoted=\"a \\\"b\\\" \\] \\\\ c#012\" stage=\"本番\"]\
                       [origin software=\"mcp-logger\"]"
                    .to_owned(),
                ..new("13", b"m")
            },
        ),
        // rsyslogd truncates messages at its configured maximum.
        case(
            "new-long",
            json!({"message": long, "max_size": 10_000}),
            new("14", &b"x".repeat(daemon::MAX_MESSAGE - 59)),
        ),
        case(
            "new-cut",
            json!({"message": long, "max_size": 480, "oversize": "truncate"}),
            new("14", &[b"x".repeat(480 - 58 - 5).as_slice(), b"[...]"].concat()),
        ),
    ]
}

fn stream_cases() -> Vec<Case> {
    let case = |name, port, arguments, expected| Case { name, port, arguments, expected };
    let half = "語".repeat(60);
    vec![
        case("tcp", Port::Tcp, json!({"message": "counted"}), vec![old("14", b"counted")]),
        case(
            "tcp-lf",
            Port::Tcp,
            json!({"framing": "lf", "messages": [{"message": "one\n"}, {"message": "two"}]}),
            vec![old("14", b"one#012"), old("14", b"two")],
        ),
        // A counted frame may contain a line feed and still be one message.
        case(
            "tcp-kept",
            Port::Tcp,
            json!({"message": "a\nb", "control_characters": "keep", "format": "rfc5424"}),
            vec![new("14", b"a#012b")],
        ),
        case(
            "tcp-split",
            Port::Tcp,
            json!({
                "message": format!("{half}{half}"), "oversize": "split", "bom": "never",
                "max_size": 36 + 6 + 180, "format": "rfc3164",
            }),
            vec![
                old("14", format!("[1/2] {half}").as_bytes()),
                old("14", format!("[2/2] {half}").as_bytes()),
            ],
        ),
        case(
            "tls",
            Port::Tls,
            json!({"message": JAPANESE, "format": "rfc5424", "encoding": "euc-jp"}),
            vec![new("14", &encoded("euc-jp", JAPANESE))],
        ),
        case(
            "unix",
            Port::Unix,
            json!({"message": JAPANESE, "procid": "77"}),
            vec![Expected { procid: "77", ..old("14", format!("{BOM}{JAPANESE}").as_bytes()) }],
        ),
        case(
            "tls-many",
            Port::Tls,
            json!({"messages": [{"message": "1"}, {"message": "2"}, {"message": "3"}]}),
            vec![old("14", b"1"), old("14", b"2"), old("14", b"3")],
        ),
    ]
}

/// The folder that contains rsyslogd.
fn unpacked() -> Option<PathBuf> {
    if let Ok(reason) = env::var("BOWLINE_RSYSLOG_MISSING") {
        panic!("{reason}");
    }
    let earlier = || {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
        let folder = target.join("rsyslog");
        folder.join(".unpacked").is_file().then_some(folder)
    };
    let folder = env::var_os("BOWLINE_RSYSLOG").map(PathBuf::from).or_else(earlier);
    if folder.is_none() {
        // Not `println!`, whose output the test harness captures.
        let reason = "skipped: rsyslogd is not installed; `cargo xtask unit` downloads it";
        let _ = writeln!(std::io::stderr(), "{reason}");
    }
    folder
}
