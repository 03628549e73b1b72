//! TLS: which certificates to trust.

mod verifier;

use std::sync::{Arc, LazyLock, OnceLock};

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use self::verifier::{AnyCertificate, GivenOrVerified};

use crate::WebError;
use crate::error::Cause;
use crate::stream::Io;

/// Performs TLS handshakes. The system's certificates are read at the first one, so that clients
/// without TLS do not wait for them.
#[derive(Clone)]
pub(crate) struct Tls(Arc<Trust>);

/// The trusted certificates, and the connectors built from them at first use.
struct Trust {
    given: Vec<CertificateDer<'static>>,
    basis: Basis,
    connectors: OnceLock<Connectors>,
}

/// What is trusted besides the certificates that were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// The system's certificates.
    System,
    /// Nothing.
    Nothing,
    /// Everything: certificates are not checked at all.
    Anything,
}

struct Connectors {
    /// Offers HTTP/2 and HTTP/1.1.
    any: TlsConnector,
    /// Offers only HTTP/1.1, for proxies.
    plain: TlsConnector,
}

/// An encrypted connection, and the protocol that the host chose.
pub(crate) struct Encrypted {
    pub(crate) io: Box<dyn Io>,
    pub(crate) is_http2: bool,
}

impl Tls {
    pub(crate) fn new(pems: &[Vec<u8>], basis: Basis) -> Result<Self, WebError> {
        let mut given = Vec::new();
        for pem in pems {
            add_pem(&mut given, pem)?;
        }
        Ok(Self(Arc::new(Trust { given, basis, connectors: OnceLock::new() })))
    }

    /// What checks the certificates of hosts.
    pub(crate) fn verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, Cause> {
        self.0.verifier()
    }

    /// The handshake with the request's host.
    pub(crate) async fn with_host(&self, host: &str, io: Box<dyn Io>) -> Result<Encrypted, Cause> {
        handshake(&self.0.connectors()?.any, host, io).await
    }

    /// The handshake with a proxy.
    pub(crate) async fn with_proxy(&self, host: &str, io: Box<dyn Io>) -> Result<Encrypted, Cause> {
        handshake(&self.0.connectors()?.plain, host, io).await
    }
}

impl Trust {
    fn connectors(&self) -> Result<&Connectors, Cause> {
        if let Some(made) = self.connectors.get() {
            return Ok(made);
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Arc::new(error) as Cause)?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier()?)
            .with_no_client_auth();
        let with = |protocols: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            TlsConnector::from(Arc::new(config))
        };
        let made = Connectors { any: with(&[b"h2", b"http/1.1"]), plain: with(&[b"http/1.1"]) };
        Ok(self.connectors.get_or_init(|| made))
    }

    fn verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, Cause> {
        let mut roots = match self.basis {
            Basis::Anything => {
                tracing::warn!(
                    "certificates are not checked: anyone between here and the server can read along"
                );
                return Ok(Arc::new(AnyCertificate::new()));
            }
            Basis::System => system_roots(),
            Basis::Nothing => Arc::new(RootCertStore::empty()),
        };
        if !self.given.is_empty() {
            Arc::make_mut(&mut roots).add_parsable_certificates(self.given.iter().cloned());
        }
        if roots.is_empty() {
            let problem = "this system has no trusted certificates, and none were given";
            return Err(Arc::new(std::io::Error::other(problem)));
        }
        let provider = Arc::new(ring::default_provider());
        let usual = WebPkiServerVerifier::builder_with_provider(roots, provider)
            .build()
            .map_err(|error| Arc::new(error) as Cause)?;
        Ok(Arc::new(GivenOrVerified::new(self.given.clone(), usual)))
    }
}

/// The system's certificates, read once per process because that takes a while.
fn system_roots() -> Arc<RootCertStore> {
    static ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "some of the system's certificates cannot be read");
        }
        let mut roots = RootCertStore::empty();
        // Systems carry old certificates that rustls rejects; the others still work.
        roots.add_parsable_certificates(found.certs);
        Arc::new(roots)
    });
    Arc::clone(&ROOTS)
}

async fn handshake(tls: &TlsConnector, host: &str, io: Box<dyn Io>) -> Result<Encrypted, Cause> {
    let name = ServerName::try_from(host.to_owned()).map_err(|error| Arc::new(error) as Cause)?;
    let stream = tls.connect(name, io).await.map_err(|error| Arc::new(error) as Cause)?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok(Encrypted { io: Box::new(stream), is_http2 })
}

fn add_pem(given: &mut Vec<CertificateDer<'static>>, pem: &[u8]) -> Result<(), WebError> {
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate
            .map_err(|error| bad("the given CA certificates are not PEM", Some(Arc::new(error))))?;
        RootCertStore::empty().add(certificate.clone()).map_err(|error| {
            bad("one of the given CA certificates cannot be used", Some(Arc::new(error)))
        })?;
        given.push(certificate);
        count += 1;
    }
    match count {
        0 => Err(bad("the given CA certificates are empty: expected BEGIN CERTIFICATE", None)),
        _ => Ok(()),
    }
}

fn bad(what: &'static str, source: Option<Cause>) -> WebError {
    WebError::Settings { what, source }
}
