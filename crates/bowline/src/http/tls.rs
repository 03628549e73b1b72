//! `https`: certificates, and the handshake in front of a connection.

use std::fmt;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig, crypto::ring};
use tokio_rustls::server::TlsStream;

/// What a server shows to clients of `https`.
///
/// Made of PEM text, or of a [`rustls::ServerConfig`] for whoever wants more than that: client
/// certificates, names that share an address.
#[derive(Clone)]
pub struct Tls(tokio_rustls::TlsAcceptor);

/// Why a certificate cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The certificate chain is not PEM, or there is none in it.
    #[error("the certificate chain cannot be read")]
    Chain(#[source] pem::Error),
    /// The private key is not PEM, or there is none in it.
    #[error("the private key cannot be read")]
    Key(#[source] pem::Error),
    /// The two do not fit each other, or are of a kind that is not known.
    #[error("the certificate and its key cannot be used")]
    Unusable(#[from] rustls::Error),
}

impl Tls {
    /// A certificate with those it is signed by, and its private key, as PEM.
    ///
    /// # Errors
    /// When one of them cannot be read, or they do not fit each other.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(TlsError::Chain)?;
        if chain.is_empty() {
            return Err(TlsError::Chain(pem::Error::NoItemsFound));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Key)?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(config.into())
    }

    pub(super) async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}

/// Offers HTTP/1.1 and, with the feature `http2`, HTTP/2, unless the settings name protocols
/// themselves.
impl From<ServerConfig> for Tls {
    fn from(mut config: ServerConfig) -> Self {
        if config.alpn_protocols.is_empty() {
            if cfg!(feature = "http2") {
                config.alpn_protocols.push(b"h2".to_vec());
            }
            config.alpn_protocols.push(b"http/1.1".to_vec());
        }
        Self(Arc::new(config).into())
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
