//! TLS: the certificate that the host shows, and why it is not believed.

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
use super::ending::seconds;
use super::network::say_plainly;
use super::report::{Diagnosis, Report, Step};
use super::seen::{plain, quoted};

/// How long a second look at a port may take.
const LOOK: Duration = Duration::from_secs(3);

/// Whom to believe beside those whom the system believes, and how long to wait.
#[derive(Clone, Copy)]
pub(crate) struct Believed<'a> {
    pub(crate) ca_pem: Option<&'a [u8]>,
    pub(crate) patience: Duration,
}

/// Makes the handshake; says whether it was made.
pub(crate) async fn walk(
    report: &mut Report,
    address: &Address,
    at: SocketAddr,
    believed: Believed<'_>,
) -> bool {
    let began = Instant::now();
    if !address.is_secure {
        report.push(Step::skipped("tls", "the URL is plain http"));
        return true;
    }
    let shaken = shake(address, at, believed).await;
    match shaken.outcome {
        Ok(seen) => {
            report.push(Step::ok("tls", seen, began));
            true
        }
        Err(problem) => {
            let mut seen = problem.to_string();
            let mut diagnosis = diagnose(&problem, address, &shaken.certificates);
            if problem.may_be_plain() {
                let said = say_plainly(at, &address.host, LOOK).await;
                if said.starts_with(b"HTTP/") {
                    seen = format!(
                        "{seen}; in the clear it says {}",
                        quoted(&said[..said.len().min(24)])
                    );
                    diagnosis = plain_http(address);
                }
            }
            report.push(Step::ok("tls", seen, began).fail(diagnosis));
            false
        }
    }
}

/// Whether a port that a plain `http` URL names speaks TLS.
pub(crate) async fn is_spoken(address: &Address, at: SocketAddr) -> bool {
    let said = say_plainly(at, &address.host, LOOK).await;
    if matches!(said.as_slice(), [0x15, 0x03, ..]) {
        return true;
    }
    let believed = Believed { ca_pem: None, patience: LOOK };
    said.is_empty() && !shake(address, at, believed).await.certificates.is_empty()
}

/// Why a plain `http` URL does not lead to a server that speaks TLS.
pub(crate) fn wants_tls(address: &Address) -> Diagnosis {
    let url = address.uri.to_string();
    Diagnosis::unreachable(
        format!("port {} speaks TLS, and the URL says http", address.port),
        format!("Use https: {}", plain(&url.replacen("http://", "https://", 1))),
    )
}

fn plain_http(address: &Address) -> Diagnosis {
    let url = address.uri.to_string();
    Diagnosis::unreachable(
        format!("port {} speaks plain HTTP, and the URL says https", address.port),
        format!(
            "Use {}, or put TLS in front of the server.",
            plain(&url.replacen("https://", "http://", 1))
        ),
    )
}

/// Why there is no handshake.
#[derive(Debug)]
enum Problem {
    Tls(rustls::Error),
    Io(std::io::Error),
    Late(Duration),
    Host,
}

impl Problem {
    /// Whether the other side may not speak TLS at all.
    fn may_be_plain(&self) -> bool {
        !matches!(self, Self::Tls(rustls::Error::InvalidCertificate(_)) | Self::Host)
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tls(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::Late(after) => write!(f, "no handshake in {}", seconds(*after)),
            Self::Host => f.write_str("the host is neither a name nor an address"),
        }
    }
}

/// A handshake, and what was shown in it.
struct Shaken {
    outcome: Result<String, Problem>,
    certificates: Vec<CertificateDer<'static>>,
}

async fn shake(address: &Address, at: SocketAddr, believed: Believed<'_>) -> Shaken {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let outcome = shake_with(address, at, believed, &kept).await;
    let certificates = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
    Shaken { outcome, certificates }
}

type Kept = Arc<Mutex<Vec<CertificateDer<'static>>>>;

async fn shake_with(
    address: &Address,
    at: SocketAddr,
    believed: Believed<'_>,
    kept: &Kept,
) -> Result<String, Problem> {
    let patience = believed.patience;
    let name = ServerName::try_from(address.host.clone()).map_err(|_| Problem::Host)?;
    let connector = TlsConnector::from(Arc::new(config(believed.ca_pem, kept)?));
    let handshake = async {
        let stream = TcpStream::connect(at).await.map_err(Problem::Io)?;
        let stream = connector.connect(name, stream).await.map_err(unwrap)?;
        let session = stream.get_ref().1;
        let version =
            session.protocol_version().and_then(|version| version.as_str()).unwrap_or("TLS");
        let spoken = session.alpn_protocol().map(String::from_utf8_lossy);
        Ok(format!("{version}{}", spoken.map(|it| format!(", {}", plain(&it))).unwrap_or_default()))
    };
    timeout(patience, handshake).await.unwrap_or(Err(Problem::Late(patience)))
}

fn unwrap(error: std::io::Error) -> Problem {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(inner) => Problem::Tls(inner.clone()),
        None => Problem::Io(error),
    }
}

fn config(ca_pem: Option<&[u8]>, kept: &Kept) -> Result<ClientConfig, Problem> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    // The client of HTTP has read them already, and complained if there was reason to.
    let given = CertificateDer::pem_slice_iter(ca_pem.unwrap_or_default()).flatten();
    roots.add_parsable_certificates(given);
    let believes =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
    let other = |error: String| Problem::Tls(rustls::Error::General(error));
    let verifier: Arc<dyn ServerCertVerifier> = match believes {
        Ok(believes) => Arc::new(Keep { believes, kept: Arc::clone(kept) }),
        Err(error) => {
            return Err(other(format!("this system has no certificates to believe: {error}")));
        }
    };
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(Problem::Tls)?;
    let mut config =
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Believes what the system believes, and keeps what was shown.
#[derive(Debug)]
struct Keep {
    believes: Arc<WebPkiServerVerifier>,
    kept: Kept,
}

impl ServerCertVerifier for Keep {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let mut all = vec![end_entity.clone().into_owned()];
        all.extend(intermediates.iter().map(|certificate| certificate.clone().into_owned()));
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = all;
        self.believes.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.believes.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.believes.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.believes.supported_verify_schemes()
    }
}

/// Why the handshake failed.
fn diagnose(problem: &Problem, address: &Address, shown: &[CertificateDer<'_>]) -> Diagnosis {
    let host = &address.host;
    let (cause, fix) = match problem {
        Problem::Tls(rustls::Error::InvalidCertificate(error)) => {
            return certificate(error, host, shown);
        }
        Problem::Tls(rustls::Error::AlertReceived(alert)) => match alert {
            AlertDescription::UnrecognisedName => (
                format!("{host} is a name that the server does not know"),
                "Use the name that its certificate has.",
            ),
            AlertDescription::CertificateRequired => (
                "the server wants a certificate of the client".to_owned(),
                "Client certificates are not supported here: use a proxy that has one.",
            ),
            alert => (
                format!("the server ends the handshake: {alert:?}"),
                "Its TLS versions or ciphers may be too old: it needs TLS 1.2 or 1.3.",
            ),
        },
        Problem::Tls(rustls::Error::InvalidMessage(_)) => (
            format!("port {} does not speak TLS", address.port),
            "Check the port, and whether the URL should say http.",
        ),
        Problem::Late(after) => (
            format!(
                "the port takes connections and makes no TLS handshake within {}",
                seconds(*after)
            ),
            "Check the port; a firewall or proxy in between may hold the handshake back.",
        ),
        other => (
            format!("the TLS handshake breaks off: {other}"),
            "Check the port, and whether something in between intercepts TLS.",
        ),
    };
    Diagnosis::unreachable(cause, fix)
}

fn certificate(error: &CertificateError, host: &str, shown: &[CertificateDer<'_>]) -> Diagnosis {
    let (cause, fix) = match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => (
            format!("the certificate of {host} has expired"),
            "Renew it, and check this machine's clock.",
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            (format!("the certificate of {host} is not valid yet"), "Check this machine's clock.")
        }
        CertificateError::NotValidForNameContext { presented, .. } => (
            format!("the certificate is not for {host} but for {}", plain(&presented.join(", "))),
            "Use a name that the certificate has, or get one for this name.",
        ),
        CertificateError::NotValidForName => (
            format!("the certificate is not for {host}"),
            "Use a name that the certificate has, or get one for this name.",
        ),
        CertificateError::Revoked => {
            (format!("the certificate of {host} was revoked"), "Get a new one.")
        }
        _ if certificate::is_self_signed(shown) => (
            format!("the certificate of {host} is signed by itself, and nobody vouches for it"),
            "Get one from an authority that clients believe, or name a file that holds it \
             with --ca.",
        ),
        CertificateError::UnknownIssuer => (
            format!("nobody whom this system believes has signed the certificate of {host}"),
            "Let the server send its intermediate certificates too; for an authority of your own, \
             name a file with its certificate: --ca.",
        ),
        other => (format!("the certificate of {host} cannot be used: {other}"), "Get another one."),
    };
    Diagnosis::unreachable(cause, fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_have_causes() {
        let address = Address::parse("https://a.example/").unwrap();
        let bad = |error| Problem::Tls(rustls::Error::InvalidCertificate(error));
        let alert = |alert| Problem::Tls(rustls::Error::AlertReceived(alert));
        for (problem, cause) in [
            (bad(CertificateError::Expired), "has expired"),
            (bad(CertificateError::NotValidYet), "not valid yet"),
            (bad(CertificateError::NotValidForName), "not for a.example"),
            (bad(CertificateError::UnknownIssuer), "nobody whom this system believes"),
            (bad(CertificateError::Revoked), "revoked"),
            (bad(CertificateError::BadSignature), "cannot be used"),
            (alert(AlertDescription::UnrecognisedName), "does not know"),
            (alert(AlertDescription::CertificateRequired), "certificate of the client"),
            (alert(AlertDescription::HandshakeFailure), "ends the handshake"),
            (Problem::Tls(rustls::InvalidMessage::InvalidContentType.into()), "does not speak TLS"),
            (Problem::Late(LOOK), "no TLS handshake within"),
            (Problem::Io(std::io::ErrorKind::ConnectionReset.into()), "breaks off"),
        ] {
            let found = diagnose(&problem, &address, &[]);
            assert!(found.cause.contains(cause), "{problem:?}: {found:?}");
        }
    }
}
