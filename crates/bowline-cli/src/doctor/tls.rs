//! TLS: the certificate that the host presents, and why it is not trusted.

mod certificate;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    self, AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};

use super::address::Address;
use super::network::say_plainly;
use super::report::{Diagnosis, Report, Step};
use super::seen::{plain, quoted, seconds};

/// How long a second look at a port may take.
const LOOK: Duration = Duration::from_secs(3);

/// Certificates to trust beside those of the system, and how long to wait.
#[derive(Clone, Copy)]
pub(crate) struct Trust<'a> {
    pub(crate) ca_pem: Option<&'a [u8]>,
    pub(crate) patience: Duration,
}

/// Performs the handshake; returns whether it succeeded.
pub(crate) async fn walk(
    report: &mut Report,
    address: &Address,
    at: SocketAddr,
    trust: Trust<'_>,
) -> bool {
    let began = Instant::now();
    if !address.is_secure {
        report.push(Step::skipped("tls", "the URL is plain http"));
        return true;
    }
    let (outcome, presented) = handshake(address, at, trust).await;
    let problem = match outcome {
        Ok(seen) => {
            report.push(Step::ok("tls", seen, began));
            return true;
        }
        Err(problem) => problem,
    };
    let mut seen = problem.to_string();
    let mut diagnosis = diagnose(&problem, address, &presented);
    if problem.may_be_plain() {
        let said = say_plainly(at, &address.host, LOOK).await;
        if said.starts_with(b"HTTP/") {
            let said = quoted(&said[..said.len().min(24)]);
            seen = format!("{seen}; to plain HTTP it responds {said}");
            diagnosis = other_scheme(address);
        }
    }
    report.push(Step::ok("tls", seen, began).fail(diagnosis));
    false
}

/// Whether a port that a plain `http` URL names speaks TLS.
pub(crate) async fn is_spoken(address: &Address, at: SocketAddr) -> bool {
    let said = say_plainly(at, &address.host, LOOK).await;
    if let [0x15, 0x03, ..] = said.as_slice() {
        return true;
    }
    let trust = Trust { ca_pem: None, patience: LOOK };
    said.is_empty() && !handshake(address, at, trust).await.1.is_empty()
}

/// The port speaks TLS and the URL says http, or the reverse.
pub(crate) fn other_scheme(address: &Address) -> Diagnosis {
    let (port, url) = (address.port, address.uri.to_string());
    if address.is_secure {
        let url = plain(&url.replacen("https://", "http://", 1));
        Diagnosis::unreachable(
            format!("port {port} speaks plain HTTP, but the URL says https"),
            format!("Use {url}, or put TLS in front of the server."),
        )
    } else {
        let url = plain(&url.replacen("http://", "https://", 1));
        Diagnosis::unreachable(
            format!("port {port} speaks TLS, but the URL says http"),
            format!("Use {url}"),
        )
    }
}

/// Why the handshake failed.
#[derive(Debug)]
enum Problem {
    Tls(rustls::Error),
    Io(std::io::Error),
    TimedOut(Duration),
    Host,
}

impl Problem {
    /// Whether the peer may not speak TLS at all.
    fn may_be_plain(&self) -> bool {
        !matches!(self, Self::Tls(rustls::Error::InvalidCertificate(_)) | Self::Host)
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tls(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::TimedOut(after) => write!(f, "no handshake in {}", seconds(*after)),
            Self::Host => f.write_str("the host is neither a name nor an IP address"),
        }
    }
}

type Certificates = Vec<CertificateDer<'static>>;

/// The protocol that was negotiated, and the certificates that were presented in any case.
async fn handshake(
    address: &Address,
    at: SocketAddr,
    trust: Trust<'_>,
) -> (Result<String, Problem>, Certificates) {
    let presented = Arc::default();
    let outcome = async {
        let name = ServerName::try_from(address.host.clone()).map_err(|_| Problem::Host)?;
        let connector = TlsConnector::from(Arc::new(config(trust.ca_pem, &presented)?));
        let stream = TcpStream::connect(at).await.map_err(Problem::Io)?;
        let stream = connector.connect(name, stream).await.map_err(problem)?;
        let session = stream.get_ref().1;
        let version = session.protocol_version().and_then(|it| it.as_str()).unwrap_or("TLS");
        let protocol = session.alpn_protocol().map(String::from_utf8_lossy);
        let protocol = protocol.map(|it| format!(", {}", plain(&it))).unwrap_or_default();
        Ok(format!("{version}{protocol}"))
    };
    let outcome = timeout(trust.patience, outcome).await;
    let outcome = outcome.unwrap_or(Err(Problem::TimedOut(trust.patience)));
    let presented = std::mem::take(&mut *presented.lock().unwrap_or_else(PoisonError::into_inner));
    (outcome, presented)
}

fn problem(error: std::io::Error) -> Problem {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(inner) => Problem::Tls(inner.clone()),
        None => Problem::Io(error),
    }
}

fn config(
    ca_pem: Option<&[u8]>,
    presented: &Arc<Mutex<Certificates>>,
) -> Result<ClientConfig, Problem> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    // The HTTP client has read these already, and would have rejected a bad file.
    let given = CertificateDer::pem_slice_iter(ca_pem.unwrap_or_default()).flatten();
    roots.add_parsable_certificates(given);
    let inner =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
    let inner = inner.map_err(|error| {
        let what = format!("this system has no trusted certificates: {error}");
        Problem::Tls(rustls::Error::General(what))
    })?;
    let verifier = Arc::new(Recorder { inner, presented: Arc::clone(presented) });
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(Problem::Tls)?;
    let mut config =
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Verifies as usual, and records the certificates that were presented.
#[derive(Debug)]
struct Recorder {
    inner: Arc<WebPkiServerVerifier>,
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

fn diagnose(problem: &Problem, address: &Address, presented: &[CertificateDer<'_>]) -> Diagnosis {
    use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage};
    let host = &address.host;
    let (cause, fix) = match problem {
        Problem::Tls(InvalidCertificate(error)) => distrusted(error, host, presented),
        Problem::Tls(AlertReceived(AlertDescription::UnrecognisedName)) => (
            format!("the server does not know the name {host}"),
            "Use the name in its certificate.",
        ),
        Problem::Tls(AlertReceived(AlertDescription::CertificateRequired)) => (
            "the server requires a client certificate".to_owned(),
            "Client certificates are not supported here: use a proxy that has one.",
        ),
        Problem::Tls(AlertReceived(alert)) => (
            format!("the server aborts the handshake: {alert:?}"),
            "Its TLS versions or ciphers may be too old: it needs TLS 1.2 or 1.3.",
        ),
        Problem::Tls(InvalidMessage(_)) => (
            format!("port {} does not speak TLS", address.port),
            "Check the port, and whether the URL should say http.",
        ),
        Problem::TimedOut(after) => (
            format!(
                "the port accepts connections but completes no TLS handshake within {}",
                seconds(*after)
            ),
            "Check the port; a firewall or proxy in between may block the handshake.",
        ),
        other => (
            format!("the TLS handshake breaks off: {other}"),
            "Check the port, and whether something in between intercepts TLS.",
        ),
    };
    Diagnosis::unreachable(cause, fix)
}

/// Why a certificate is not trusted.
fn distrusted(
    error: &CertificateError,
    host: &str,
    presented: &[CertificateDer<'_>],
) -> (String, &'static str) {
    const NAME: &str = "Use a name in the certificate, or get a certificate for this one.";
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => (
            format!("the certificate of {host} has expired"),
            "Renew it, and check this machine's clock.",
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            (format!("the certificate of {host} is not valid yet"), "Check this machine's clock.")
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names = plain(&presented.join(", "));
            (format!("the certificate is not for {host} but for {names}"), NAME)
        }
        CertificateError::NotValidForName => (format!("the certificate is not for {host}"), NAME),
        CertificateError::Revoked => {
            (format!("the certificate of {host} was revoked"), "Get a new one.")
        }
        _ if certificate::is_self_signed(presented) => (
            format!("the certificate of {host} is self-signed"),
            "Get one from an authority that clients trust, or pass a file that contains it with \
             --ca.",
        ),
        CertificateError::UnknownIssuer => (
            format!(
                "the certificate of {host} is not signed by an authority that this system trusts"
            ),
            "Make the server send its intermediate certificates, too; for an authority of your \
             own, pass a file with its certificate: --ca.",
        ),
        other => (format!("the certificate of {host} cannot be used: {other}"), "Get another one."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_has_its_cause() {
        let address = Address::parse("https://a.example/").unwrap();
        let bad = |error| Problem::Tls(rustls::Error::InvalidCertificate(error));
        let alert = |alert| Problem::Tls(rustls::Error::AlertReceived(alert));
        for (problem, cause) in [
            (bad(CertificateError::Expired), "has expired"),
            (bad(CertificateError::NotValidYet), "not valid yet"),
            (bad(CertificateError::NotValidForName), "not for a.example"),
            (bad(CertificateError::UnknownIssuer), "not signed by an authority"),
            (bad(CertificateError::Revoked), "revoked"),
            (bad(CertificateError::BadSignature), "cannot be used"),
            (alert(AlertDescription::UnrecognisedName), "does not know"),
            (alert(AlertDescription::CertificateRequired), "client certificate"),
            (alert(AlertDescription::HandshakeFailure), "aborts the handshake"),
            (Problem::Tls(rustls::InvalidMessage::InvalidContentType.into()), "does not speak TLS"),
            (Problem::TimedOut(LOOK), "no TLS handshake within"),
            (Problem::Io(std::io::ErrorKind::ConnectionReset.into()), "breaks off"),
        ] {
            let found = diagnose(&problem, &address, &[]);
            assert!(found.cause.contains(cause), "{problem:?}: {found:?}");
        }
    }
}
