//! The weather over `https`, from a service that the system trusts because it is told to.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test ends where something is missing")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use bowline_serve::testing::Process;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::json;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

const CURRENT: &str = r#"{"current":{"temperature_2m":21.0,"relative_humidity_2m":50,"weather_code":0,"wind_speed_10m":5.0,"wind_direction_10m":90}}"#;

/// Answers every request with the same weather. Gives the port.
fn serve(key: &CertifiedKey<rcgen::KeyPair>) -> u16 {
    let private = PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], private)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(connection, stream));
            let lines = stream.by_ref().lines().map_while(Result::ok);
            // Whoever does not trust us sends nothing.
            if lines.take_while(|line| !line.is_empty()).count() == 0 {
                continue;
            }
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", CURRENT.len());
            let stream = stream.get_mut();
            let _ = stream.write_all(format!("{head}{CURRENT}").as_bytes());
        }
    });
    port
}

/// The text of a call for the weather on the equator.
fn ask(port: u16, variables: &[(&str, &str)]) -> String {
    let url = format!("https://localhost:{port}");
    let arguments = ["--weather", "open-meteo", "--weather-url", &url];
    let program = env!("CARGO_BIN_EXE_example-server");
    let mut process = Process::start_with(program, &arguments, variables);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call =
        json!({ "name": "weather_current", "arguments": { "location": "0,0" }, "_meta": meta });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call });
    process.send(&request.to_string());
    let answer = process.answer(&json!(1));
    answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn certificates_are_checked() {
    let key = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let port = serve(&key);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("example-https.pem");
    std::fs::write(&file, key.cert.pem()).unwrap();
    let trusted = ask(port, &[("SSL_CERT_FILE", file.to_str().unwrap())]);
    assert!(
        trusted.starts_with("Current weather in 0, 0: 21°C, clear with light winds"),
        "{trusted}"
    );
    let other = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&file, other.cert.pem()).unwrap();
    let untrusted = ask(port, &[("SSL_CERT_FILE", file.to_str().unwrap())]);
    assert!(
        untrusted.starts_with("the weather service failed: cannot fetch https://localhost:"),
        "{untrusted}"
    );
    assert!(untrusted.contains("certificate"), "{untrusted}");
    std::fs::remove_file(&file).unwrap();
}
