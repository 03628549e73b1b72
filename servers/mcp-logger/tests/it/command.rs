//! `mcp-logger` as a program: the command, its output and its exit codes.

use bowline_serve::testing::{self, Said, free_port};

use crate::receiver::{Datagrams, Stream, folder};

/// Runs to the end without blocking the receivers of this test.
async fn run(arguments: &[&str], input: &str) -> Said {
    let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
    let input = input.to_owned();
    tokio::task::spawn_blocking(move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        testing::run(env!("CARGO_BIN_EXE_mcp-logger"), &arguments, &input)
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_message_is_sent() {
    let receiver = Datagrams::listen("127.0.0.1:0").await;
    let port = receiver.port().to_string();
    let said = run(
        &[
            "send",
            "127.0.0.1",
            "disk",
            "full",
            "-P",
            &port,
            "-p",
            "local0.err",
            "-t",
            "cron",
            "--id=7",
        ],
        "",
    )
    .await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(said.out, "");
    let packet = String::from_utf8(receiver.next().await).unwrap();
    assert!(packet.starts_with("<131>") && packet.ends_with(" cron[7]: disk full"), "{packet}");
}

#[tokio::test]
async fn lines_of_standard_input_are_sent_over_one_connection() {
    let receiver = Stream::tcp().await;
    let port = receiver.port.to_string();
    let input = "one\r\n\n<8>two\nthree";
    let arguments =
        ["send", "127.0.0.1", "-P", &port, "-T", "--lf", "-e", "--prio-prefix", "--rfc5424"];
    let said = run(&arguments, input).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let received = String::from_utf8(receiver.all().await).unwrap();
    let lines: Vec<&str> = received.lines().collect();
    assert_eq!(lines.len(), 3, "{received}");
    assert!(lines[0].starts_with("<14>1 ") && lines[0].ends_with(" mcp-logger - - - one"));
    assert!(lines[1].starts_with("<8>1 ") && lines[1].ends_with(" - two"));
    assert!(lines[2].ends_with(" - three"));
}

#[tokio::test]
async fn no_act_sends_nothing() {
    let folder = folder("command");
    let file = folder.join("lines");
    std::fs::write(&file, "from a file\n").unwrap();
    let file = file.display().to_string();
    let arguments = [
        "send",
        "192.0.2.1",
        "--no-act",
        "--stderr",
        "-f",
        &file,
        "--rfc5424",
        "--hostname",
        "h",
        "--timestamp",
        "2026-11-05T09:30:00Z",
        "--sd-id",
        "a@1",
        "--sd-param",
        "k=\"v\"",
        "--sd-param",
        "l==",
        "--sd-id",
        "b@1",
        "--msgid",
        "M",
    ];
    let said = run(&arguments, "").await;
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(
        said.out,
        "<14>1 2026-11-05T09:30:00.000000+00:00 h mcp-logger - M [a@1 k=\"v\" l=\"=\"][b@1] from a file\n"
    );
    assert_eq!(said.err, "from a file\n");
}

#[tokio::test]
async fn lines_that_cannot_be_sent_are_reported_and_skipped() {
    let receiver = Stream::tcp().await;
    let port = receiver.port.to_string();
    let arguments =
        ["send", "127.0.0.1", "-P", &port, "-T", "--lf", "--encoding", "sjis", "-S", "60"];
    let input = format!("一\n🎌\n{}\n", "x".repeat(100));
    let said = run(&arguments, &input).await;
    assert_eq!(said.code, Some(1));
    let errors = said.err;
    assert!(errors.contains("mcp-logger: line 2: '🎌' (U+1F38C) does not exist"), "{errors}");
    assert!(errors.contains("mcp-logger: 1 of 3 lines were not sent"), "{errors}");
    let received = receiver.all().await;
    let lines: Vec<&[u8]> = received.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].ends_with(b": \x88\xea\n"));
    assert!(lines[1].ends_with(b"x[...]\n") && lines[1].len() == 61);
}

#[tokio::test]
async fn failures_have_exit_codes() {
    let check = async |arguments: &[&str], code: i32, part: &str| {
        let said = run(arguments, "").await;
        assert_eq!(said.code, Some(code), "{said:?}");
        assert!(format!("{}{}", said.out, said.err).contains(part), "{said:?}");
    };
    let closed = free_port().to_string();
    check(&["send", "127.0.0.1", "x", "-T", "-P", &closed], 1, "cannot connect over tcp").await;
    check(&["send", "127.0.0.1", "x", "-P", &closed], 1, "nothing is listening").await;
    check(&["send", "127.0.0.1", "x", "-P", "70000"], 2, "70000").await;
    check(&["send", "127.0.0.1", "x", "-p", "loud"], 2, "unknown severity \"loud\"").await;
    check(&["send", "127.0.0.1", "x", "--oversize", "maybe"], 2, "truncate").await;
    check(&["send", "127.0.0.1", "x", "--sd-param", "a=b"], 2, "--sd-id").await;
    check(&["send", "127.0.0.1", "-f", "no/such/file"], 1, "cannot read no/such/file").await;
    check(&["--config", "no/such/file"], 2, "cannot read no/such/file").await;
    check(&["--allow", "a b"], 2, "cannot be allowed").await;
    check(&["--spool", "x", "send", "127.0.0.1", "x"], 2, "--spool is for the server").await;
    check(&["--version"], 0, "2026-07-28").await;
    check(&["--help"], 0, "--http").await;
    check(&["send", "--help"], 0, "--rfc5424").await;
}

#[cfg(unix)]
#[tokio::test]
async fn it_exits_when_its_client_does() {
    let said = run(&[], "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let answer: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(answer["id"], 1);
}
