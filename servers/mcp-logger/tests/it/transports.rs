//! What arrives over every transport.

use bowline_serve::testing::free_port;
use serde_json::json;

use crate::receiver::{Certificates, Datagrams, Stream, folder};
use crate::{call, client, fail};

const WHEN: &str = "2026-11-05T09:30:00+09:00";
const HEADER: &str = "<14>Nov  5 09:30:00 web1 mcp-logger: ";

#[tokio::test]
async fn datagrams_over_ipv4_ipv6_and_names() {
    let client = client("").await;
    for (address, server) in
        [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("127.0.0.1:0", "localhost")]
    {
        let receiver = Datagrams::listen(address).await;
        let arguments = json!({
            "server": server, "port": receiver.port(), "message": "hello", "timestamp": WHEN,
            "hostname": "web1",
        });
        // If localhost resolves to ::1 first, nothing listens there, and the call rightly fails.
        if server == "localhost" && resolves_to_ipv6() {
            continue;
        }
        let sent = call(&client, "send-syslog", arguments).await;
        assert_eq!(receiver.next().await, format!("{HEADER}hello").into_bytes());
        assert_eq!(sent["delivery"], "unconfirmed");
        assert_eq!(sent["bytes"], 42);
        assert_eq!(sent["pri"], 14);
    }
}

fn resolves_to_ipv6() -> bool {
    use std::net::ToSocketAddrs;
    ("localhost", 1).to_socket_addrs().unwrap().next().is_some_and(|it| it.is_ipv6())
}

#[tokio::test]
async fn a_rejected_datagram_is_an_error() {
    let client = client("").await;
    let port = Datagrams::listen("127.0.0.1:0").await.port();
    let arguments = json!({ "server": "127.0.0.1", "port": port, "message": "x" });
    let text = fail(&client, "send-syslog", arguments.clone()).await;
    assert!(text.starts_with("Failed to send syslog: 127.0.0.1:"), "{text}");
    assert!(text.contains("ICMP port unreachable"), "{text}");
    let text =
        fail(&client, "test-syslog-target", json!({"server": "127.0.0.1", "port": port})).await;
    assert!(text.starts_with("Target test failed: 127.0.0.1:"), "{text}");
}

#[tokio::test]
async fn connections_are_framed_as_asked() {
    let client = client("").await;
    for (framing, expected) in [
        (None, format!("42 {HEADER}hello")),
        (Some("octet-counting"), format!("42 {HEADER}hello")),
        (Some("lf"), format!("{HEADER}hello\n")),
    ] {
        let receiver = Stream::tcp().await;
        let mut arguments = json!({
            "server": "127.0.0.1", "port": receiver.port, "transport": "tcp", "message": "hello",
            "timestamp": WHEN, "hostname": "web1",
        });
        if let Some(framing) = framing {
            arguments["framing"] = framing.into();
        }
        let sent = call(&client, "send-syslog", arguments).await;
        assert_eq!(sent["bytes"], expected.len());
        assert_eq!(sent["delivery"], "written");
        assert_eq!(receiver.all().await, expected.into_bytes());
    }
}

#[tokio::test]
async fn a_line_feed_cannot_forge_a_message() {
    let client = client("[defaults]\ncontrol_characters = \"keep\"").await;
    let receiver = Stream::tcp().await;
    let mut arguments = json!({
        "server": "127.0.0.1", "port": receiver.port, "transport": "tcp", "framing": "lf",
        "message": "a\n<0>forged", "control_characters": "keep",
    });
    let text = fail(&client, "send-syslog", arguments.clone()).await;
    assert!(text.contains("framing octet-counting"), "{text}");
    arguments["control_characters"] = "escape".into();
    call(&client, "send-syslog", arguments).await;
    let received = receiver.all().await;
    assert!(received.ends_with(b"a#012<0>forged\n"));
    assert_eq!(received.iter().filter(|byte| **byte == b'\n').count(), 1);
}

#[tokio::test]
async fn an_absent_receiver_is_an_error() {
    let client = client("").await;
    let port = free_port();
    let arguments =
        json!({ "server": "127.0.0.1", "port": port, "transport": "tcp", "message": "x" });
    let text = fail(&client, "send-syslog", arguments).await;
    assert!(text.contains("cannot connect over tcp"), "{text}");
    let arguments = json!({ "server": "no-such-host.invalid", "message": "x" });
    let text = fail(&client, "send-syslog", arguments).await;
    assert!(text.contains("cannot resolve no-such-host.invalid"), "{text}");
}

#[tokio::test]
async fn a_silent_receiver_times_out() {
    let client = client("").await;
    // Accepts connections, and never speaks TLS.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let arguments = json!({
        "server": "127.0.0.1", "port": silent.local_addr().unwrap().port(), "transport": "tls",
        "message": "x", "timeout_ms": 10_000,
    });
    let text = fail(&client, "send-syslog", arguments).await;
    assert!(text.contains("timed out after 10000 ms while negotiating TLS"), "{text}");
}

#[tokio::test]
async fn certificates_are_checked_by_name() {
    let certificates = Certificates::new("tls");
    let config = format!("ca_file = {:?}", certificates.file("ca.pem"));
    let client = client(&config).await;
    let receiver = Stream::tls(&certificates, false).await;
    let endpoint = json!({ "server": "127.0.0.1", "port": receiver.port, "transport": "tls" });
    let mut arguments = endpoint.clone();
    arguments["message"] = "hello".into();
    arguments["timestamp"] = WHEN.into();
    arguments["hostname"] = "web1".into();
    call(&client, "send-syslog", arguments).await;
    assert_eq!(receiver.all().await, format!("42 {HEADER}hello").into_bytes());

    let receiver = Stream::tls(&certificates, false).await;
    let endpoint = json!({ "server": "localhost", "port": receiver.port, "transport": "tls" });
    let found = call(&client, "test-syslog-target", endpoint).await;
    assert_eq!(found["tls"]["protocol"], "TLSv1_3");
    assert_eq!(found["tls"]["fingerprint"].as_str().unwrap().len(), 64);
}

#[tokio::test]
async fn untrusted_certificates_are_rejected() {
    let (certificates, others) = (Certificates::new("server"), Certificates::new("others"));
    let client = client(&format!("ca_file = {:?}", others.file("ca.pem"))).await;
    let receiver = Stream::tls(&certificates, false).await;
    let arguments = json!({
        "server": "127.0.0.1", "port": receiver.port, "transport": "tls", "message": "secret",
    });
    let text = fail(&client, "send-syslog", arguments).await;
    assert!(text.contains("TLS connection failed"), "{text}");
    assert!(text.contains("certificate"), "{text}");
    assert!(!String::from_utf8_lossy(&receiver.all().await).contains("secret"));
}

#[tokio::test]
async fn client_certificates_are_presented() {
    let certificates = Certificates::new("mutual");
    let receiver = Stream::tls(&certificates, true).await;
    let config = format!(
        "[targets.central]\nserver = \"127.0.0.1\"\nport = {}\ntransport = \"tls\"\n\
         server_name = \"localhost\"\nca_file = {:?}\nclient_cert = {:?}\nclient_key = {:?}",
        receiver.port,
        certificates.file("ca.pem"),
        certificates.file("cert.pem"),
        certificates.file("key.pem"),
    );
    let client = client(&config).await;
    let sent = call(&client, "send-syslog", json!({"server": "central", "message": "me"})).await;
    assert_eq!(sent["target"], format!("central (127.0.0.1:{})", receiver.port));
    assert!(receiver.all().await.ends_with(b": me"));
}

#[tokio::test]
async fn a_receiver_that_rejects_us_is_an_error() {
    let certificates = Certificates::new("nobody");
    let receiver = Stream::tls(&certificates, true).await;
    let client = client(&format!("ca_file = {:?}", certificates.file("ca.pem"))).await;
    let arguments = json!({
        "server": "127.0.0.1", "port": receiver.port, "transport": "tls", "message": "me",
    });
    let text = fail(&client, "send-syslog", arguments).await;
    assert!(text.contains("the receiver reset the connection"), "{text}");
    receiver.all().await;
}

#[tokio::test]
async fn nothing_that_ends_a_record_is_kept_inside_one() {
    let client = client("[defaults]\ncontrol_characters = \"keep\"").await;
    let check = async |transport: &str, framing: &str, message: &str, part: Option<&str>| {
        let server = if transport == "unix" { "/dev/log" } else { "192.0.2.1" };
        let asked = json!({ "server": server, "transport": transport, "framing": framing,
                            "message": message, "dry_run": true });
        match part {
            Some(part) => {
                let text = fail(&client, "send-syslog", asked).await;
                assert!(text.contains(part), "{transport} {framing}: {text}");
            }
            None => drop(call(&client, "send-syslog", asked).await),
        }
    };
    for transport in ["tcp", "tls"] {
        check(transport, "lf", "a\0<0>forged", Some("contains a NUL")).await;
        check(transport, "lf", "a\n<0>forged", Some("contains a line feed")).await;
        // Counted, both are text.
        check(transport, "octet-counting", "a\0b\n", None).await;
    }
    check("unix", "octet-counting", "a\0<0>forged", Some("contains a NUL")).await;
    check("udp", "octet-counting", "a\0b\n", None).await;
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_is_forged_on_a_local_stream() {
    use tokio::io::AsyncReadExt;
    let folder = folder("forged");
    let client = client("[defaults]\ncontrol_characters = \"keep\"").await;
    let path = folder.join("log");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    for message in ["a\0<0>forged", "a\n<0>forged"] {
        let asked = json!({ "server": path, "transport": "unix", "message": message });
        let accepting = async {
            let mut all = Vec::new();
            listener.accept().await.unwrap().0.read_to_end(&mut all).await.unwrap();
            all
        };
        if message.contains('\0') {
            let text = fail(&client, "send-syslog", asked).await;
            assert!(text.contains("contains a NUL"), "{text}");
            continue;
        }
        let (all, text) = tokio::join!(accepting, fail(&client, "send-syslog", asked));
        assert!(all.is_empty() && text.contains("may end a record on a local stream"), "{text}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn local_sockets_of_both_kinds() {
    use tokio::io::AsyncReadExt;
    use tokio::net::{UnixDatagram, UnixListener};
    let folder = folder("unix");
    let client = client("").await;
    let path = folder.join("log");
    let arguments = json!({
        "server": path, "transport": "unix", "message": "hello", "timestamp": WHEN, "procid": "7",
    });
    let expected = b"<14>Nov  5 09:30:00 mcp-logger[7]: hello";

    let datagrams = UnixDatagram::bind(&path).unwrap();
    call(&client, "send-syslog", arguments.clone()).await;
    let mut buffer = [0; 100];
    let length = datagrams.recv(&mut buffer).await.unwrap();
    assert_eq!(&buffer[..length], expected);
    std::fs::remove_file(&path).unwrap();

    let listener = UnixListener::bind(&path).unwrap();
    let accepting = async {
        let mut all = Vec::new();
        listener.accept().await.unwrap().0.read_to_end(&mut all).await.unwrap();
        all
    };
    let (all, _) = tokio::join!(accepting, call(&client, "send-syslog", arguments.clone()));
    assert_eq!(all, [expected.as_slice(), b"\0"].concat());
    std::fs::remove_dir_all(&folder).unwrap();

    let text = fail(&client, "send-syslog", arguments).await;
    assert!(text.contains("cannot connect over unix"), "{text}");
}
