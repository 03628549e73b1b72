//! TLS connections: trusted certificates, our own certificate, and what was negotiated.

use std::fmt::Write as _;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ring::digest::{SHA256, digest};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, crypto::ring as provider};

use crate::destination::{Destination, Host, Trust};

pub(super) type Stream = tokio_rustls::client::TlsStream<TcpStream>;

/// Why a TLS connection failed.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A certificate or key file cannot be read.
    #[error("cannot read {}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        cause: pem::Error,
    },
    /// There are no trusted certificates.
    #[error("this system has no trusted certificates; provide some with --ca-file or ca_file")]
    NoRoots,
    /// The server's name cannot appear in a certificate.
    #[error("{0:?} is not a valid name for a certificate; set server_name")]
    Name(String),
    /// The certificates do not fit each other.
    #[error("the certificates cannot be used")]
    Unusable(#[from] rustls::Error),
    /// The handshake failed, usually because the certificate is not trusted.
    #[error("the handshake failed")]
    Handshake(#[source] io::Error),
}

/// What was negotiated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Handshake {
    /// The TLS version, such as `TLSv1_3`.
    pub protocol: String,
    /// The cipher suite.
    pub cipher_suite: String,
    /// How many certificates the server presented.
    pub certificates: usize,
    /// The SHA-256 fingerprint of the server's own certificate, in hexadecimal.
    pub fingerprint: String,
}

/// Starts TLS on a connection.
pub(super) async fn connect(
    to: &Destination,
    stream: TcpStream,
) -> Result<(Stream, Handshake), TlsError> {
    let config = config(&to.trust)?;
    let name = server_name(to)?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(TlsError::Handshake)?;
    let handshake = handshake(&stream);
    Ok((stream, handshake))
}

fn server_name(to: &Destination) -> Result<ServerName<'static>, TlsError> {
    let name = match (&to.trust.server_name, &to.host) {
        (Some(name), _) | (None, Host::Name(name)) => name.clone(),
        (None, host) => host.to_string(),
    };
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(ServerName::IpAddress(address.into()));
    }
    ServerName::try_from(name.clone()).map_err(|_| TlsError::Name(name))
}

fn config(trust: &Trust) -> Result<ClientConfig, TlsError> {
    let mut roots = system_roots().clone();
    if let Some(file) = &trust.ca_file {
        for certificate in certificates(file)? {
            roots.add(certificate)?;
        }
    }
    if roots.is_empty() {
        return Err(TlsError::NoRoots);
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    Ok(match &trust.identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let file = key;
            let key = PrivateKeyDer::from_pem_file(file)
                .map_err(|cause| TlsError::File { file: file.clone(), cause })?;
            builder.with_client_auth_cert(certificates(chain)?, key)?
        }
    })
}

/// Loaded once: there are hundreds of them.
fn system_roots() -> &'static RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        // Some systems have invalid certificates; skip those.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    })
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |cause| TlsError::File { file: file.to_owned(), cause };
    let read: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(file).map_err(unreadable)?.collect();
    match read.map_err(unreadable)? {
        none if none.is_empty() => Err(unreadable(pem::Error::NoItemsFound)),
        some => Ok(some),
    }
}

fn handshake(stream: &Stream) -> Handshake {
    let (_, session) = stream.get_ref();
    let shown = session.peer_certificates().unwrap_or_default();
    let mut fingerprint = String::new();
    if let Some(first) = shown.first() {
        for byte in digest(&SHA256, first).as_ref() {
            // Writing to a string cannot fail.
            let _ = write!(fingerprint, "{byte:02x}");
        }
    }
    let suite = session.negotiated_cipher_suite();
    Handshake {
        protocol: session.protocol_version().map(|it| format!("{it:?}")).unwrap_or_default(),
        cipher_suite: suite.map(|it| format!("{:?}", it.suite())).unwrap_or_default(),
        certificates: shown.len(),
        fingerprint,
    }
}
