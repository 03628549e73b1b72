//! `https`: with a certificate of our own, over HTTP/1.1 and HTTP/2.

use std::sync::Arc;
use std::time::Duration;

use bowline::http::rustls::pki_types::{CertificateDer, ServerName};
use bowline::http::rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::ring};
use bowline::http::{HttpLimits, Tls};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::client::{call, soon};
use super::socket::{Running, read_to_end, wire};

fn certificate() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(["localhost".to_owned()]).unwrap()
}

async fn connect(
    server: &Running,
    trusted: CertificateDer<'static>,
    protocol: &[u8],
) -> TlsStream<tokio::net::TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    let stream = server.connect().await;
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    let stream = soon("a handshake", connecting).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
    stream
}

#[tokio::test]
async fn both_versions_of_http_are_spoken() {
    let CertifiedKey { cert, signing_key } = certificate();
    let tls = Tls::from_pem(cert.pem().as_bytes(), signing_key.serialize_pem().as_bytes()).unwrap();
    let server = Running::start(|http| http.tls(tls)).await;

    let mut stream = connect(&server, cert.der().clone(), b"http/1.1").await;
    let ask = call(1, "who").with("connection", "close");
    stream.write_all(wire(&ask).as_bytes()).await.unwrap();
    let mut answer = String::new();
    // The connection may end without a TLS closure alert.
    let _ = soon("an answer", stream.read_to_string(&mut answer)).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("nobody"), "{answer}");

    let stream = connect(&server, cert.der().clone(), b"h2").await;
    let (mut send, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    let connection = tokio::spawn(connection);
    let request = call(1, "who").path("https://localhost/mcp").into_request();
    assert_eq!(soon("an answer", send.send_request(request)).await.unwrap().status(), 200);
    drop(send);
    soon("the end", connection).await.unwrap().unwrap();
    server.end().await;
}

#[tokio::test]
async fn a_handshake_must_come_in_time() {
    let CertifiedKey { cert, signing_key } = certificate();
    let tls = Tls::from_pem(cert.pem().as_bytes(), signing_key.serialize_pem().as_bytes()).unwrap();
    let limits = HttpLimits { head: Duration::from_millis(200), ..HttpLimits::default() };
    let server = Running::start(|http| http.limits(limits).tls(tls)).await;
    for beginning in [&b""[..], b"\x16\x03\x01", b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"] {
        let mut stream = server.connect().await;
        stream.write_all(beginning).await.unwrap();
        assert!(!read_to_end(&mut stream).await.contains("HTTP/1.1 200"));
    }
    server.end().await;
}

#[test]
fn invalid_certificates_are_reported() {
    let one = certificate();
    let other = certificate();
    let (chain, key) = (one.cert.pem(), one.signing_key.serialize_pem());
    for (chain, key, expected) in [
        ("", key.as_str(), "invalid certificate chain"),
        (chain.as_str(), "", "invalid private key"),
        (chain.as_str(), &other.signing_key.serialize_pem(), "the certificate and the key"),
    ] {
        let error = Tls::from_pem(chain.as_bytes(), key.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[tokio::test]
async fn settings_of_rustls_are_taken_as_they_are() {
    let CertifiedKey { cert, signing_key } = certificate();
    let key =
        bowline::http::rustls::pki_types::PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .unwrap();
    let server = Running::start(|http| http.tls(config)).await;
    connect(&server, cert.der().clone(), b"h2").await;
    server.end().await;
}
