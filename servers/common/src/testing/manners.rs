//! What every server must do.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use serde_json::json;

use super::{Process, golden, run};
use crate::long_version;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Checks a server's help, version, exit codes and shutdown. `command` comes before its arguments
/// and is empty for a program of its own; `help` is the golden file of its help.
pub fn check_manners(program: &str, command: &[&str], help: &Path) {
    let with = |more: &[&'static str]| -> Vec<String> {
        command.iter().chain(more).map(|it| (*it).to_owned()).collect()
    };
    let ran = |more: &[&'static str]| {
        let all = with(more);
        run(program, &all.iter().map(String::as_str).collect::<Vec<_>>(), "")
    };
    let started = |more: &[&'static str]| {
        let all = with(more);
        Process::start(program, &all.iter().map(String::as_str).collect::<Vec<_>>())
    };

    // `bowline` uses other exit codes than the programs that only serve.
    let misused = Some(if command.is_empty() { 2 } else { 1 });

    let said = ran(&["--help"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    golden(help, &said.out);

    if command.is_empty() {
        let name = Path::new(program).file_name().expect("a program has a name");
        let version = format!("{} {}\n", name.to_string_lossy(), long_version());
        assert_eq!(ran(&["--version"]).out, version);
    }

    let said = ran(&["--dance"]);
    assert_eq!((said.code, said.out.as_str()), (misused, ""));
    assert!(said.err.contains("unexpected argument '--dance'"), "{}", said.err);

    let said = ran(&["--http", "nowhere"]);
    assert_eq!(said.code, misused, "{}", said.err);

    // With piped input, it serves until the input ends.
    let mut process = started(&[]);
    process.send(PING);
    assert_eq!(process.receive(), json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    let said = process.close();
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{}", said.err);

    let mut process = started(&[]);
    process.send(PING);
    process.receive();
    assert_eq!(process.terminate().code, Some(0), "SIGTERM");

    let mut process = started(&["--http", "127.0.0.1:0"]);
    let address = process.http_address();
    assert!(health(address).starts_with("HTTP/1.1 200"), "{address}");
    assert_eq!(process.terminate().code, Some(0), "SIGTERM over HTTP");

    // Reachable from elsewhere only if that is meant.
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let said = ran(&["--http", address]);
        assert_eq!((said.code, said.out.as_str()), (misused, ""), "{}", said.err);
        let problem = "other machines could reach this server, which asks for no token";
        assert!(said.err.contains(problem), "{}", said.err);
        assert!(said.err.contains("--allow-unauthenticated"), "{}", said.err);
    }
    let mut process = started(&["--http", "0.0.0.0:0", "--allow-unauthenticated"]);
    let port = process.http_address().port();
    assert!(health(SocketAddr::from(([127, 0, 0, 1], port))).starts_with("HTTP/1.1 200"));
    assert_eq!(process.terminate().code, Some(0), "SIGTERM on all addresses");

    check_taken_address(program, command);

    let said = Process::start_with(program, command, &[("RUST_LOG", "=loud=")]).close();
    assert_eq!((said.code, said.out.as_str()), (misused, ""));
    assert!(said.err.contains("invalid RUST_LOG \"=loud=\""), "{}", said.err);
}

fn check_taken_address(program: &str, command: &[&str]) {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it is bound").to_string();
    let all: Vec<&str> = command.iter().copied().chain(["--http", &address]).collect();
    let said = run(program, &all, "");
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert!(said.err.contains(&format!("cannot listen on {address}: ")), "{}", said.err);
}

fn health(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET /health HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}
