//! Receivers on loopback, for tests without rsyslogd.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto::ring};

/// How long a test waits for something that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A receiver of UDP datagrams.
pub(crate) struct Datagrams {
    socket: UdpSocket,
}

impl Datagrams {
    pub(crate) async fn listen(address: &str) -> Self {
        Self { socket: UdpSocket::bind(address).await.unwrap() }
    }

    pub(crate) fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    pub(crate) async fn next(&self) -> Vec<u8> {
        let mut buffer = vec![0; 70_000];
        let length = timeout(PATIENCE, self.socket.recv(&mut buffer)).await.unwrap().unwrap();
        buffer.truncate(length);
        buffer
    }
}

/// A receiver of everything sent over one connection.
pub(crate) struct Stream {
    pub(crate) port: u16,
    received: JoinHandle<Vec<u8>>,
}

impl Stream {
    pub(crate) async fn tcp() -> Self {
        let (port, listener) = listener().await;
        let received = tokio::spawn(async move { read(listener.accept().await.unwrap().0).await });
        Self { port, received }
    }

    pub(crate) async fn tls(certificates: &Certificates, wants_client: bool) -> Self {
        let (port, listener) = listener().await;
        let acceptor = certificates.acceptor(wants_client);
        let received = tokio::spawn(async move {
            let stream = listener.accept().await.unwrap().0;
            match acceptor.accept(stream).await {
                Ok(stream) => read(stream).await,
                Err(error) => error.to_string().into_bytes(),
            }
        });
        Self { port, received }
    }

    pub(crate) async fn all(self) -> Vec<u8> {
        timeout(PATIENCE, self.received).await.unwrap().unwrap()
    }
}

async fn listener() -> (u16, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    (listener.local_addr().unwrap().port(), listener)
}

async fn read(mut stream: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.unwrap();
    all
}

/// A certificate authority and a certificate for loopback, as files that are deleted on drop.
pub(crate) struct Certificates {
    folder: PathBuf,
    ca: CertifiedIssuer<'static, KeyPair>,
    chain: rcgen::Certificate,
    key: KeyPair,
}

impl Certificates {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let chain = CertificateParams::new(names).unwrap().signed_by(&key, &ca).unwrap();
        let folder = folder(name);
        std::fs::write(folder.join("ca.pem"), ca.pem()).unwrap();
        std::fs::write(folder.join("cert.pem"), chain.pem()).unwrap();
        std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
        Self { folder, ca, chain, key }
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn acceptor(&self, wants_client: bool) -> TlsAcceptor {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if wants_client {
            let mut roots = RootCertStore::empty();
            roots.add(self.ca.der().clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).unwrap();
        let config = builder.with_single_cert(vec![self.chain.der().clone()], key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// An empty folder for this process. Not below `target`: the paths of sockets must be short.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("mcp-logger-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
