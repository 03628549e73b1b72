//! `mcp-logger` as a program: the command, and what it is like as a process.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use bowline_serve::testing::free_port;

use crate::receiver::{Datagrams, Stream, folder};

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-logger"));
    command.args(arguments).env_remove("MCP_LOGGER_CONFIG").env_remove("RUST_LOG");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs to the end without blocking the receivers of this test.
async fn run(arguments: &[&str], input: &str) -> Output {
    let (mut command, input) = (program(arguments), input.to_owned());
    tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    })
    .await
    .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

#[tokio::test]
async fn a_message_is_sent() {
    let receiver = Datagrams::listen("127.0.0.1:0").await;
    let port = receiver.port().to_string();
    let output = run(
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
    assert!(output.status.success(), "{}", said(&output));
    assert!(output.stdout.is_empty());
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
    let output = run(&arguments, input).await;
    assert!(output.status.success(), "{}", said(&output));
    let received = String::from_utf8(receiver.all().await).unwrap();
    let lines: Vec<&str> = received.lines().collect();
    assert_eq!(lines.len(), 3, "{received}");
    assert!(lines[0].starts_with("<14>1 ") && lines[0].ends_with(" mcp-logger - - - one"));
    assert!(lines[1].starts_with("<8>1 ") && lines[1].ends_with(" - two"));
    assert!(lines[2].ends_with(" - three"));
}

#[tokio::test]
async fn nothing_is_sent_when_told_so() {
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
    let output = run(&arguments, "").await;
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "<14>1 2026-11-05T09:30:00.000000+00:00 h mcp-logger - M [a@1 k=\"v\" l=\"=\"][b@1] from a file\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), "from a file\n");
}

#[tokio::test]
async fn lines_that_cannot_be_sent_are_left_out_and_told() {
    let receiver = Stream::tcp().await;
    let port = receiver.port.to_string();
    let arguments =
        ["send", "127.0.0.1", "-P", &port, "-T", "--lf", "--encoding", "sjis", "-S", "60"];
    let input = format!("一\n🎌\n{}\n", "x".repeat(100));
    let output = run(&arguments, &input).await;
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(said.contains("mcp-logger: line 2: '🎌' (U+1F38C) does not exist"), "{said}");
    assert!(said.contains("mcp-logger: 1 of 3 lines were not sent"), "{said}");
    let received = receiver.all().await;
    let lines: Vec<&[u8]> = received.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].ends_with(b": \x88\xea\n"));
    assert!(lines[1].ends_with(b"x[...]\n") && lines[1].len() == 61);
}

#[tokio::test]
async fn failures_have_exit_codes() {
    let check = async |arguments: &[&str], code: i32, part: &str| {
        let output = run(arguments, "").await;
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(said(&output).contains(part), "{}", said(&output));
    };
    let closed = free_port().to_string();
    check(&["send", "127.0.0.1", "x", "-T", "-P", &closed], 1, "cannot connect over tcp").await;
    check(&["send", "127.0.0.1", "x", "-P", &closed], 1, "nothing listens").await;
    check(&["send", "127.0.0.1", "x", "-P", "70000"], 2, "70000").await;
    check(&["send", "127.0.0.1", "x", "-p", "loud"], 2, "severity \"loud\" is not known").await;
    check(&["send", "127.0.0.1", "x", "--oversize", "maybe"], 2, "truncate").await;
    check(&["send", "127.0.0.1", "x", "--sd-param", "a=b"], 2, "--sd-id").await;
    check(&["send", "127.0.0.1", "-f", "no/such/file"], 1, "no/such/file cannot be read").await;
    check(&["--config", "no/such/file"], 2, "no/such/file cannot be read").await;
    check(&["--allow", "a b"], 2, "cannot be allowed").await;
    check(&["--version"], 0, "2026-07-28").await;
    check(&["--help"], 0, "--http").await;
    check(&["send", "--help"], 0, "--rfc5424").await;
}

#[cfg(unix)]
#[tokio::test]
async fn it_ends_when_its_client_does() {
    let output = run(&[], "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await;
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["id"], 1);
}
