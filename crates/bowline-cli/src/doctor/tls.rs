//! TLS: the certificate that the host presents, and why it is not trusted.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline::with_causes;
use bowline_web::{Host, Url, Web};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    self, AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};

use super::network::say_plainly;
use super::report::{Diagnosis, Step, unreachable};
use super::seen::{plain, quoted, seconds};

/// How long a second look at a port may take.
const LOOK: Duration = Duration::from_secs(3);

/// Performs the handshake, if the URL wants one.
pub(crate) async fn walk(
    url: &Url,
    at: SocketAddr,
    web: &Web,
    patience: Duration,
) -> Result<(Step, ()), Step> {
    let began = Instant::now();
    if !url.is_https() {
        return Ok((Step::skipped("tls", "the URL is plain http"), ()));
    }
    let (outcome, presented) = handshake(url, at, web, patience).await;
    let error = match outcome {
        Ok(seen) => return Ok((Step::ok("tls", seen, began), ())),
        Err(error) => error,
    };
    if presented.is_empty() {
        let said = say_plainly(at, url.host(), LOOK).await;
        if said.starts_with(b"HTTP/") {
            let said = quoted(&said[..said.len().min(24)]);
            let seen = format!("{error}; to plain HTTP it responds {said}");
            return Err(Step::ok("tls", seen, began).fail(other_scheme(url)));
        }
    }
    let diagnosis = diagnose(&error, url, &presented);
    Err(Step::ok("tls", error.to_string(), began).fail(diagnosis))
}

/// Whether a port that a plain `http` URL names speaks TLS.
pub(crate) async fn is_spoken(url: &Url, at: SocketAddr) -> bool {
    let said = say_plainly(at, url.host(), LOOK).await;
    if let [0x15, 0x03, ..] = said.as_slice() {
        return true;
    }
    let Ok(web) = Web::builder().build() else { return false };
    said.is_empty() && !handshake(url, at, &web, LOOK).await.1.is_empty()
}

/// The port speaks TLS and the URL says http, or the reverse.
pub(crate) fn other_scheme(url: &Url) -> Diagnosis {
    let port = url.port();
    let (_, rest) = url.as_str().split_once("://").unwrap_or_default();
    let rest = plain(rest);
    if url.is_https() {
        unreachable(format!("port {port} speaks plain HTTP, but the URL says https"))
            .fix(format!("Use http://{rest}, or put TLS in front of the server."))
    } else {
        unreachable(format!("port {port} speaks TLS, but the URL says http"))
            .fix(format!("Use https://{rest}"))
    }
}

type Certificates = Vec<CertificateDer<'static>>;

/// The protocol that was negotiated, and the certificates that were presented in any case.
async fn handshake(
    url: &Url,
    at: SocketAddr,
    web: &Web,
    patience: Duration,
) -> (io::Result<String>, Certificates) {
    let presented = Arc::default();
    let exchange = async {
        let name = ServerName::try_from(url.host().bare()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::new(config(web, &presented)?));
        let stream = connector.connect(name, TcpStream::connect(at).await?).await?;
        let session = stream.get_ref().1;
        let version = session.protocol_version().and_then(|it| it.as_str()).unwrap_or("TLS");
        let protocol = session.alpn_protocol().map(String::from_utf8_lossy);
        let protocol = protocol.map(|it| format!(", {}", plain(&it))).unwrap_or_default();
        Ok(format!("{version}{protocol}"))
    };
    let outcome = timeout(patience, exchange).await.unwrap_or_else(|_| {
        let what = format!("no handshake in {}", seconds(patience));
        Err(io::Error::new(ErrorKind::TimedOut, what))
    });
    let presented = std::mem::take(&mut *presented.lock().unwrap_or_else(PoisonError::into_inner));
    (outcome, presented)
}

fn config(web: &Web, presented: &Arc<Mutex<Certificates>>) -> io::Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let inner = web.certificate_verifier();
    let inner = inner.map_err(|error| io::Error::other(with_causes(&error)))?;
    let verifier = Arc::new(Recorder { inner, presented: Arc::clone(presented) });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Verifies as usual, and records the certificates that were presented.
#[derive(Debug)]
struct Recorder {
    inner: Arc<dyn ServerCertVerifier>,
    presented: Arc<Mutex<Certificates>>,
}

impl ServerCertVerifier for Recorder {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let all = std::iter::once(end_entity).chain(intermediates);
        *self.presented.lock().unwrap_or_else(PoisonError::into_inner) =
            all.map(|certificate| certificate.clone().into_owned()).collect();
        self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Why the handshake failed.
fn diagnose(error: &io::Error, url: &Url, presented: &[CertificateDer<'_>]) -> Diagnosis {
    use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage};
    let host = url.host();
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(InvalidCertificate(error)) => distrusted(error, host, presented),
        Some(AlertReceived(AlertDescription::UnrecognisedName)) => {
            unreachable(format!("the server does not know the name {host}"))
                .fix("Use the name in its certificate.")
        }
        Some(AlertReceived(AlertDescription::CertificateRequired)) => {
            unreachable("the server requires a client certificate")
                .fix("Client certificates are not supported here: use a proxy that has one.")
        }
        Some(AlertReceived(alert)) => {
            unreachable(format!("the server aborts the handshake: {alert:?}"))
                .fix("Its TLS versions or ciphers may be too old: it needs TLS 1.2 or 1.3.")
        }
        Some(InvalidMessage(_)) => unreachable(format!("port {} does not speak TLS", url.port()))
            .fix("Check the port, and whether the URL should say http."),
        None if error.kind() == ErrorKind::TimedOut => {
            unreachable(format!("the port accepts connections, but not TLS: {error}"))
                .fix("Check the port; a firewall or proxy in between may block the handshake.")
        }
        _ => unreachable(format!("the TLS handshake breaks off: {error}"))
            .fix("Check the port, and whether something in between intercepts TLS."),
    }
}

/// Why a certificate is not trusted.
fn distrusted(
    error: &CertificateError,
    host: &Host,
    presented: &[CertificateDer<'_>],
) -> Diagnosis {
    use CertificateError as E;
    const NAME: &str = "Use a name in the certificate, or get a certificate for this one.";
    let (problem, fix) = match error {
        E::Expired | E::ExpiredContext { .. } => {
            ("has expired".to_owned(), "Renew it, and check this machine's clock.")
        }
        E::NotValidYet | E::NotValidYetContext { .. } => {
            ("is not valid yet".to_owned(), "Check this machine's clock.")
        }
        E::NotValidForNameContext { presented, .. } => {
            (format!("is for {}, not for that name", plain(&presented.join(", "))), NAME)
        }
        E::NotValidForName => ("is not for that name".to_owned(), NAME),
        E::Revoked => ("was revoked".to_owned(), "Get a new one."),
        _ if is_self_signed(presented) => (
            "is self-signed".to_owned(),
            "Get one from an authority that clients trust, or pass it in a file: --ca.",
        ),
        E::UnknownIssuer => (
            "is signed by no authority that this system trusts".to_owned(),
            "Make the server send its intermediate certificates, too; for an authority of your \
             own, pass its certificate in a file: --ca.",
        ),
        other => (format!("cannot be used: {other}"), "Get another one."),
    };
    unreachable(format!("the certificate of {host} {problem}")).fix(fix)
}

/// Whether the host presented a single certificate, signed with its own key.
fn is_self_signed(presented: &[CertificateDer<'_>]) -> bool {
    let [only] = presented else { return false };
    let Ok(parsed) = ParsedCertificate::try_from(only) else { return false };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates([only.clone().into_owned()]);
    let algorithms = ring::default_provider().signature_verification_algorithms.all;
    let now = UnixTime::now();
    let verified = verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], now, algorithms);
    let Err(rustls::Error::InvalidCertificate(error)) = verified else { return true };
    !matches!(error, CertificateError::UnknownIssuer | CertificateError::BadSignature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_self_signed_certificates_are() {
        let own = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let own = own.cert.der();
        assert!(is_self_signed(std::slice::from_ref(own)));
        assert!(!is_self_signed(&[own.clone(), own.clone()]));
        assert!(!is_self_signed(&[]));
        for bytes in [&b""[..], b"0", b"0\x84\xff\xff\xff\xff", b"0\x03\x02\x01\x01", &own[..40]] {
            assert!(!is_self_signed(&[bytes.to_vec().into()]), "{bytes:?}");
        }
        let key = rcgen::KeyPair::generate().unwrap();
        let mut authority = rcgen::CertificateParams::new([]).unwrap();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = rcgen::Issuer::new(authority, rcgen::KeyPair::generate().unwrap());
        let leaf = rcgen::CertificateParams::new(["a.example".to_owned()]).unwrap();
        assert!(!is_self_signed(&[leaf.signed_by(&key, &issuer).unwrap().der().clone()]));
    }

    #[test]
    fn each_problem_has_its_cause() {
        let url = Url::parse("https://a.example/").unwrap();
        let tls = |error: rustls::Error| io::Error::new(ErrorKind::InvalidData, error);
        let bad = |error| tls(rustls::Error::InvalidCertificate(error));
        let alert = |alert| tls(rustls::Error::AlertReceived(alert));
        for (error, cause) in [
            (bad(CertificateError::Expired), "has expired"),
            (bad(CertificateError::NotValidYet), "not valid yet"),
            (bad(CertificateError::NotValidForName), "not for that name"),
            (
                bad(CertificateError::UnknownIssuer),
                "signed by no authority that this system trusts",
            ),
            (bad(CertificateError::Revoked), "revoked"),
            (bad(CertificateError::BadSignature), "cannot be used"),
            (alert(AlertDescription::UnrecognisedName), "does not know"),
            (alert(AlertDescription::CertificateRequired), "client certificate"),
            (alert(AlertDescription::HandshakeFailure), "aborts the handshake"),
            (tls(rustls::InvalidMessage::InvalidContentType.into()), "does not speak TLS"),
            (ErrorKind::TimedOut.into(), "but not TLS"),
            (ErrorKind::ConnectionReset.into(), "breaks off"),
        ] {
            let found = diagnose(&error, &url, &[]);
            assert!(found.cause.contains(cause), "{error:?}: {found:?}");
        }
    }
}
