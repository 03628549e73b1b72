//! A tap in front of a URL.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::json;

use super::fixture::{Folder, PROGRAM, program, said, signal, url, wait_for};

/// A tap in front of a URL, which is ended when this is dropped.
struct Tap(Child, String);

impl Tap {
    fn start(home: &Folder, url: &str, words: &[&str]) -> Self {
        let mut command = program(home);
        command.args(["tap", url, "--http", "127.0.0.1:0"]).args(words).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let told = wait_for(&mut err, " is at ");
        let own = told.trim().split(" is at ").nth(1).unwrap().to_owned();
        Self(child, own)
    }

    fn address(&self) -> &str {
        self.1.trim_start_matches("http://").split('/').next().unwrap()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_era_passes_and_is_recorded() {
    let home = Folder::new();
    let mut tap = Tap::start(&home, &url("counter"), &["--record", "s.jsonl"]);
    for era in ["legacy", "modern"] {
        let words = ["call", &tap.1, "increment", "--revision", era];
        let called = said(program(&home).args(words));
        assert_eq!(called.code, Some(0), "{}", called.err);
    }
    signal(&tap.0, "TERM");
    assert_eq!(tap.0.wait().unwrap().code(), Some(0));
    let text = std::fs::read_to_string(home.path().join("s.jsonl")).unwrap();
    for part in [
        r#""kind":"http""#,
        r#""status":200"#,
        r#""method":"tools/call""#,
        r#""name":"increment""#,
        r#""took":"#,
        r#"["mcp-session-id","[redacted]"]"#,
        r#""kind":"end""#,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_rejected_request_is_read_and_recorded() {
    let home = Folder::new();
    let fault = ["--fault", "status=503", "--record", "s.jsonl"];
    let mut tap = Tap::start(&home, &url("counter"), &fault);
    let call =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": "x".repeat(1 << 19) });
    let body = call.to_string();
    let head =
        format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
    assert_eq!(ask(tap.address(), &(head + &body)).0, "HTTP/1.1 503 Service Unavailable");
    signal(&tap.0, "TERM");
    assert_eq!(tap.0.wait().unwrap().code(), Some(0));
    let text = std::fs::read_to_string(home.path().join("s.jsonl")).unwrap();
    for part in [r#""method":"tools/call""#, r#""status":503"#, "rejected request #1 with 503"] {
        assert!(text.contains(part), "{part}");
    }
}

/// A request with these headers; the status line of the response and the connection.
fn ask(address: &str, request: &str) -> (String, BufReader<TcpStream>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut status = String::new();
    reader.read_line(&mut status).unwrap();
    (status.trim_end().to_owned(), reader)
}

#[test]
fn events_pass_one_by_one_and_heads_are_those_of_the_other_side() {
    let home = Folder::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let server_address = server.local_addr().unwrap();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let serving = thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut request = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while !request.ends_with("\r\n\r\n") {
            reader.read_line(&mut request).unwrap();
        }
        let head = "HTTP/1.1 200 Fine\r\ncontent-type: text/event-stream\r\nx-own: kept\r\n\
                    connection: close, x-hop\r\nx-hop: gone\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(b"data: {\"a\":1}\n\n").unwrap();
        may_go_on.recv().unwrap();
        stream.write_all(b"data: {\"a\":2}\n\n").unwrap();
        request
    });
    let tap = Tap::start(&home, &format!("http://{server_address}/mcp"), &[]);
    let (status, mut reader) = ask(
        tap.address(),
        "GET /mcp?x=1 HTTP/1.1\r\nhost: localhost\r\nx-mine: kept\r\naccept-encoding: gzip\r\n\
         te: trailers\r\n\r\n",
    );
    assert_eq!(status, "HTTP/1.1 200 Fine");
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head).unwrap();
    }
    assert!(head.contains("x-own: kept") && !head.contains("x-hop"), "{head}");
    // The second event is not sent before the first one has arrived.
    wait_for(&mut reader, "{\"a\":1}");
    go_on.send(()).unwrap();
    wait_for(&mut reader, "{\"a\":2}");
    let request = serving.join().unwrap();
    assert!(request.starts_with("GET /mcp?x=1 HTTP/1.1\r\n"), "{request}");
    for part in ["x-mine: kept", "accept-encoding: identity", &format!("host: {server_address}")] {
        assert!(request.contains(part), "{part}: {request}");
    }
    assert!(!request.contains("te: "), "{request}");
}

#[test]
fn foreign_pages_and_hosts_are_rejected() {
    let home = Folder::new();
    let mut tap = Tap::start(&home, &url("counter"), &["--record", "s.jsonl"]);
    for header in ["host: evil.example", "host: localhost\r\norigin: https://evil.example"] {
        let request = format!("GET /mcp HTTP/1.1\r\n{header}\r\n\r\n");
        assert_eq!(ask(tap.address(), &request).0, "HTTP/1.1 403 Forbidden", "{header}");
    }
    let open = said(program(&home).args(["tap", &tap.1, "--http", "0.0.0.0:0"]));
    assert_eq!(open.code, Some(1));
    assert!(open.err.contains("--allow-host"), "{}", open.err);
    // Whoever watches sees why.
    signal(&tap.0, "TERM");
    assert_eq!(tap.0.wait().unwrap().code(), Some(0));
    let text = std::fs::read_to_string(home.path().join("s.jsonl")).unwrap();
    for part in
        ["rejected request #2: ", "https://evil.example", r#""exchange":2"#, r#""status":403"#]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn faults_and_dead_servers_have_a_status() {
    let home = Folder::new();
    let request = "GET /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let tap = Tap::start(&home, &url("counter"), &["--fault", "status=503"]);
    assert_eq!(ask(tap.address(), request).0, "HTTP/1.1 503 Service Unavailable");
    let tap = Tap::start(&home, &url("counter"), &["--fault", "drop=1"]);
    let (status, mut reader) = ask(tap.address(), request);
    assert_eq!((status.as_str(), reader.read(&mut [0]).unwrap()), ("", 0));
    // The port is taken, and nobody listens there.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let gone = socket.local_addr().unwrap();
    let tap = Tap::start(&home, &format!("http://{gone}/mcp"), &[]);
    assert_eq!(ask(tap.address(), request).0, "HTTP/1.1 502 Bad Gateway");
}

/// A tap that runs out of files for a while takes connections again afterwards.
#[test]
fn a_tap_survives_what_it_cannot_accept() {
    let home = Folder::new();
    let mut command = Command::new("sh");
    let script =
        format!("ulimit -n 32; exec {PROGRAM} tap \"$0\" --http 127.0.0.1:0 --fault status=503");
    command
        .args(["-c", &script, &url("counter")])
        .env("BOWLINE_RUNTIME_DIR", home.path().join("r"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let told = wait_for(&mut BufReader::new(child.stderr.take().unwrap()), " is at ");
    let tap = Tap(child, told.trim().split(" is at ").nth(1).unwrap().to_owned());
    let many: Vec<_> = (0..64).map(|_| TcpStream::connect(tap.address()).unwrap()).collect();
    drop(many);
    let request = "GET /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!(ask(tap.address(), request).0, "HTTP/1.1 503 Service Unavailable");
}

/// Bytes of every kind, the same every time.
fn binary(length: usize, seed: u32) -> Vec<u8> {
    let mut random = seed;
    let mut next = move || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random.to_be_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}

/// In chunks of odd lengths, none of them at the end of a line or an event.
fn chunked(bytes: &[u8]) -> Vec<u8> {
    let (mut text, mut rest, mut length) = (Vec::new(), bytes, 1);
    while !rest.is_empty() {
        let (chunk, others) = rest.split_at(length.min(rest.len()));
        text.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        text.extend([chunk, b"\r\n"].concat());
        (rest, length) = (others, length * 3 % 70_001 + 1);
    }
    [text.as_slice(), b"0\r\n\r\n"].concat()
}

/// What follows a head: so many bytes, or chunks.
fn body(reader: &mut impl BufRead) -> Vec<u8> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
    }
    let head = head.to_lowercase();
    let mut found = Vec::new();
    if let Some(length) = head.split("content-length: ").nth(1) {
        found.resize(length.lines().next().unwrap().parse().unwrap(), 0);
        reader.read_exact(&mut found).unwrap();
        return found;
    }
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    loop {
        let mut length = String::new();
        reader.read_line(&mut length).unwrap();
        let length = usize::from_str_radix(length.trim(), 16).unwrap();
        let mut chunk = vec![0; length + 2];
        reader.read_exact(&mut chunk).unwrap();
        if length == 0 {
            return found;
        }
        found.extend(&chunk[..length]);
    }
}

/// A message with this head and body, with its length or in chunks.
fn framed(head: &str, bytes: &[u8], is_chunked: bool) -> Vec<u8> {
    let (framing, bytes) = match is_chunked {
        true => ("transfer-encoding: chunked".to_owned(), chunked(bytes)),
        false => (format!("content-length: {}", bytes.len()), bytes.to_vec()),
    };
    [format!("{head}\r\n{framing}\r\n\r\n").into_bytes(), bytes].concat()
}

#[test]
fn not_one_byte_of_a_body_changes() {
    let events = [&b"\xef\xbb\xbfdata: {\"a\":1}\r\n\r"[..], b"\n:\x00\xff\ndata: x\rdata:\n\n\n"];
    let events = [events.concat(), binary(100_000, 3), b"data: no end".to_vec()].concat();
    let cases = [
        ("application/json", binary(3 << 20, 1), binary(2 << 20, 2), false),
        ("application/json", binary(3 << 20, 1), binary(2 << 20, 2), true),
        ("text/event-stream", binary(1, 4), events.clone(), true),
        ("text/event-stream", b"{}".to_vec(), events, false),
        ("text/plain", Vec::new(), Vec::new(), false),
    ];
    let home = Folder::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let answers = cases.clone();
    let serving = thread::spawn(move || {
        answers.map(|(kind, _, answer, is_chunked)| {
            let (mut stream, _) = server.accept().unwrap();
            let heard = body(&mut BufReader::new(stream.try_clone().unwrap()));
            let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: {kind}");
            stream.write_all(&framed(&head, &answer, is_chunked)).unwrap();
            heard
        })
    });
    let tap = Tap::start(&home, &url, &["--record", "s.jsonl"]);
    let mut received = Vec::new();
    for (_, sent, answer, is_chunked) in &cases {
        let stream = TcpStream::connect(tap.address()).unwrap();
        let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
        let request = framed(head, sent, *is_chunked);
        let mut writer = stream.try_clone().unwrap();
        let writing = thread::spawn(move || writer.write_all(&request).unwrap());
        received.push(body(&mut BufReader::new(stream)) == *answer);
        writing.join().unwrap();
    }
    let heard = serving.join().unwrap();
    let sent: Vec<bool> = heard.iter().zip(&cases).map(|(heard, case)| *heard == case.1).collect();
    assert_eq!((sent, received), (vec![true; 5], vec![true; 5]));
}
