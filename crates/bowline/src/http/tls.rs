//! `https`: certificates, and the handshake in front of a connection.

use std::fmt;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig, crypto::ring};
use tokio_rustls::server::TlsStream;

/// The TLS settings of a server.
///
/// Created from PEM text, or from a [`rustls::ServerConfig`] for more than that: client
/// certificates, or several names at one address.
#[derive(Clone)]
pub struct Tls(tokio_rustls::TlsAcceptor);

/// Why TLS settings are invalid.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The certificate chain is not PEM, or contains no certificate.
    #[error("invalid certificate chain")]
    Chain(#[source] pem::Error),
    /// The private key is not PEM, or contains no key.
    #[error("invalid private key")]
    Key(#[source] pem::Error),
    /// The two do not match, or are of an unsupported kind.
    #[error("the certificate and the key do not match or are not supported")]
    Unusable(#[from] rustls::Error),
}

bowline_proto::debug_as_sentence!(TlsError);

impl Tls {
    /// Creates settings from a certificate chain and its private key, as PEM.
    ///
    /// # Errors
    /// When one of them is invalid, or they do not match.
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

/// Offers HTTP/1.1 and, with the feature `http2`, HTTP/2, unless the settings name protocols.
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
