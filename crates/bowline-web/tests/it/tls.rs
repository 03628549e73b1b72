//! `https`, with certificates made for the occasion.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bowline_web::{Web, WebError};
use bytes::Bytes;
use http::{Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
    date_time_ymd,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto::ring};

use crate::world::{all_texts, direct, get};

/// A server of `https` for `localhost`, and the CA that vouches for it.
pub(crate) struct Secure {
    pub(crate) address: SocketAddr,
    pub(crate) ca_pem: String,
    _tasks: JoinSet<()>,
}

impl Secure {
    pub(crate) async fn speaking(protocols: &[&str]) -> Self {
        let mut ca = CertificateParams::default();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["localhost".to_owned()])
            .unwrap()
            .signed_by(&key, &ca)
            .unwrap();
        Self::presenting(certificate.der().to_vec(), &key, protocols, ca.pem()).await
    }

    /// Presents this certificate.
    async fn presenting(
        certificate: Vec<u8>,
        key: &KeyPair,
        protocols: &[&str],
        ca_pem: String,
    ) -> Self {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(certificate)], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(acceptor.clone(), stream));
            }
        });
        Self { address, ca_pem, _tasks: tasks }
    }

    /// Presents a certificate that is signed with its own key and says that it may sign others, as
    /// those of `openssl req -x509` do. It is valid until `year`.
    async fn self_signed(names: &[&str], common_name: &str, year: i32) -> Self {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut made = CertificateParams::new(names).unwrap();
        made.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        made.distinguished_name = DistinguishedName::new();
        made.distinguished_name.push(DnType::CommonName, common_name);
        made.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let made = made.self_signed(&key).unwrap();
        Self::presenting(made.der().to_vec(), &key, &["h2"], made.pem()).await
    }

    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}/path", self.address.port())
    }

    fn web(&self) -> Web {
        direct().ca_pem(self.ca_pem.as_bytes()).build().unwrap()
    }
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let _ = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await;
}

async fn answer(request: Request<Incoming>) -> Result<Response<String>, Infallible> {
    Ok(Response::new(request.uri().path().to_owned()))
}

#[tokio::test]
async fn http2_where_it_is_offered() {
    let server = Secure::speaking(&["h2", "http/1.1"]).await;
    let web = server.web();
    let many: Vec<_> = (0..8).map(|_| web.fetch(get(&server.url()))).collect();
    for answer in many {
        let answer = answer.await.unwrap();
        assert_eq!(answer.version(), Version::HTTP_2);
        assert_eq!(answer.body(), &Bytes::from_static(b"/path"));
    }
}

#[tokio::test]
async fn http1_where_it_is_not() {
    for protocols in [&["http/1.1"][..], &[]] {
        let server = Secure::speaking(protocols).await;
        let answer = server.web().fetch(get(&server.url())).await.unwrap();
        assert_eq!(answer.version(), Version::HTTP_11);
    }
}

#[tokio::test]
async fn strangers_are_not_believed() {
    let server = Secure::speaking(&["h2"]).await;
    let other = Secure::speaking(&["h2"]).await;
    let error = other.web().fetch(get(&server.url())).await.unwrap_err();
    assert!(matches!(error, WebError::Tls { .. }), "{error:?}");
    assert!(all_texts(&error).contains("InvalidCertificate"), "{error:?}");

    let system = Web::builder().proxy(bowline_web::Proxy::None).build().unwrap();
    let error = system.fetch(get(&server.url())).await.unwrap_err();
    assert!(matches!(error, WebError::Tls { .. }), "{error:?}");

    let by_address = format!("https://{}/", server.address);
    let error = server.web().fetch(get(&by_address)).await.unwrap_err();
    assert!(all_texts(&error).contains("NotValidForName"), "{error:?}");
}

#[tokio::test]
async fn a_given_certificate_is_trusted_itself() {
    async fn check(names: &[&str], common_name: &str, year: i32, problem: Option<&str>) {
        let server = Secure::self_signed(names, common_name, year).await;
        let outcome = server.web().fetch(get(&server.url())).await;
        match (outcome, problem) {
            (Ok(answer), None) => assert_eq!(answer.body(), &Bytes::from_static(b"/path")),
            (Err(error), Some(problem)) => {
                assert!(all_texts(&error).contains(problem), "{problem}: {error:?}");
            }
            (outcome, _) => panic!("{names:?} {common_name:?} {year}: {outcome:?}"),
        }
    }
    check(&["localhost"], "x", 4000, None).await;
    check(&[], "localhost", 4000, None).await;
    check(&[], "LocalHost", 4000, None).await;
    check(&["localhost"], "x", 2001, Some("Expired")).await;
    check(&[], "localhost", 2001, Some("Expired")).await;
    check(&["a.example"], "localhost", 4000, Some("NotValidForName")).await;
    check(&[], "a.example", 4000, Some("NotValidForName")).await;
    // Another one for the same name does not count.
    let server = Secure::self_signed(&["localhost"], "localhost", 4000).await;
    let other = Secure::self_signed(&["localhost"], "localhost", 4000).await;
    let error = other.web().fetch(get(&server.url())).await.unwrap_err();
    assert!(matches!(error, WebError::Tls { .. }), "{error:?}");
}

#[tokio::test]
async fn any_certificate_is_accepted_only_where_that_was_asked_for() {
    for server in [
        Secure::self_signed(&["a.example"], "x", 2001).await,
        Secure::speaking(&["http/1.1"]).await,
    ] {
        let careless = direct().danger_accept_any_certificate().build().unwrap();
        assert!(careless.fetch(get(&server.url())).await.is_ok());
        let careful = Web::builder().proxy(bowline_web::Proxy::None).build().unwrap();
        let error = careful.fetch(get(&server.url())).await.unwrap_err();
        assert!(matches!(error, WebError::Tls { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn without_any_trust_there_is_a_reason() {
    let server = Secure::speaking(&["h2"]).await;
    let error = direct().build().unwrap().fetch(get(&server.url())).await.unwrap_err();
    assert!(all_texts(&error).contains("no trusted certificates"), "{error:?}");
}

#[tokio::test]
async fn invalid_certificates_are_rejected() {
    for pem in ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let error = direct().ca_pem(pem.as_bytes()).build().unwrap_err();
        assert!(matches!(error, WebError::Settings { .. }), "{error:?}");
    }
}
