//! A gateway that tells a collector what it does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::Value;

use super::fixture::{Folder, PROGRAM, program, said, signal, until, wait_for};

/// A request: its first line with the headers, and its body.
type Got = (String, Value);

/// A collector; what it gets comes from the receiver.
fn collector() -> (String, Receiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (got, waiting) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let got = got.clone();
            std::thread::spawn(move || take(stream.unwrap(), &got));
        }
    });
    (url, waiting)
}

fn take(stream: TcpStream, got: &Sender<Got>) {
    let mut answers = stream.try_clone().unwrap();
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let head = head.to_lowercase();
        let length = head.split_once("content-length: ").unwrap().1;
        let length = length.split("\r\n").next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        answers.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        let _ = got.send((head, serde_json::from_slice(&body).unwrap()));
    }
}

#[test]
fn h_a_collector_gets_spans_and_metrics_with_its_key() {
    let home = Folder::new();
    let (url, got) = collector();
    home.write("key", "sekrit");
    let own = home.write(
        "gateway.toml",
        &format!(
            "
[gateway]
name = \"front\"
listen = \"127.0.0.1:0\"
[secrets]
KEY = {{ file = \"key\" }}
[telemetry]
otlp = \"{url}\"
otlp_headers = {{ x-key = \"${{KEY}}\" }}
[servers.counter]
command = {PROGRAM:?}
args = [\"serve\", \"counter\"]
"
        ),
    );
    let mut command = program(&home);
    command.arg("gateway").arg(own).stderr(Stdio::piped()).stdin(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let line = wait_for(&mut told, "the gateway is at");
    std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
    let at = line.trim().rsplit(' ').next().unwrap();
    // The gateway serves before slow servers have answered.
    until(|| said(program(&home).args(["call", at, "counter__increment"])).code == Some(0));
    let (mut has_spans, mut has_metrics, mut is_told) = (false, false, false);
    while !(has_spans && has_metrics) {
        if has_spans && !is_told {
            // What is still to be sent is sent before the end.
            signal(&child, "TERM");
            is_told = true;
        }
        let (head, body) = got.recv_timeout(Duration::from_secs(60)).expect("nothing more comes");
        assert!(head.contains("\r\nx-key: sekrit\r\n"), "{head}");
        let text = body.to_string();
        assert!(text.contains("\"stringValue\":\"front\""), "{text}");
        match head.split(' ').nth(1) {
            Some("/v1/traces") => has_spans |= text.contains("\"name\":\"tools/call increment\""),
            Some("/v1/metrics") => has_metrics |= text.contains("mcp.client.operation.duration"),
            other => panic!("{other:?}"),
        }
    }
    if !is_told {
        signal(&child, "TERM");
    }
    assert!(child.wait().unwrap().success());
}

#[test]
fn mistakes_about_the_collector_are_found_by_check() {
    let home = Folder::new();
    let servers = "[servers.one]\ncommand = \"x\"\n";
    for (telemetry, problem) in [
        ("otlp = \"localhost:4318\"", "telemetry.otlp: expected"),
        (
            "otlp = \"http://localhost:4318\"\notlp_headers = { \"a b\" = \"c\" }",
            "telemetry.otlp_headers.a b: not a name of a header",
        ),
        ("otlp = \"${NOWHERE_SET}\"", "telemetry.otlp: ${NOWHERE_SET} is neither"),
    ] {
        let file = home.write("gateway.toml", &format!("{servers}[telemetry]\n{telemetry}\n"));
        let checked = said(program(&home).args(["gateway", "check"]).arg(file));
        assert_ne!(checked.code, Some(0), "{telemetry}");
        assert!(checked.err.contains(problem), "{telemetry}: {}", checked.err);
    }
}
