//! Encrypted connections to Postgres: `sslmode` and `sslrootcert` as libpq has them.

use std::fs;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bowline_web::Web;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, crypto::ring};

/// Makes encrypted connections. Certificates are read at the first one.
#[derive(Clone)]
pub(crate) struct Tls(Arc<Trust>);

struct Trust {
    web: Web,
    config: OnceLock<Arc<ClientConfig>>,
}

/// What an address says about encryption, and the rest of it.
pub(crate) struct Wanted {
    pub(crate) url: String,
    pub(crate) mode: Option<SslMode>,
    pub(crate) tls: Tls,
}

impl Wanted {
    /// Reads an address. Postgres' own client knows only some of the modes.
    ///
    /// # Errors
    /// When a mode does not exist, or a file cannot be read.
    pub(crate) fn read(url: &str) -> Result<Self, String> {
        let (url, mode, root) = take_out(url);
        let is_checked = match mode.as_deref() {
            None | Some("disable" | "prefer") => false,
            Some("require") => root.is_some(),
            Some("verify-ca" | "verify-full") => true,
            Some(other) => {
                return Err(format!(
                    "sslmode={other} does not exist; expected disable, prefer, require, verify-ca \
                     or verify-full"
                ));
            }
        };
        let mut web = Web::builder();
        if let Some(path) = root.as_deref().filter(|path| *path != "system") {
            let pem = fs::read(path).map_err(|error| format!("sslrootcert={path}: {error}"))?;
            web = web.ca_pem(&pem).only_given_roots();
        }
        if !is_checked {
            web = web.danger_accept_any_certificate();
        }
        let web = web.build().map_err(|error| bowline::with_causes(&error))?;
        let mode = mode.map(|mode| match &*mode {
            "disable" => SslMode::Disable,
            "prefer" => SslMode::Prefer,
            _ => SslMode::Require,
        });
        Ok(Self { url, mode, tls: Tls(Arc::new(Trust { web, config: OnceLock::new() })) })
    }
}

/// Takes `sslmode` and `sslrootcert` out of an address, a URL or a list of settings.
fn take_out(url: &str) -> (String, Option<String>, Option<String>) {
    let (mut mode, mut root) = (None, None);
    let mut keep = |pair: &&str| match pair.split_once('=') {
        Some(("sslmode", value)) => {
            mode = Some(value.to_owned());
            false
        }
        Some(("sslrootcert", value)) => {
            root = Some(decoded(value));
            false
        }
        _ => true,
    };
    let rest = match (url.split_once('?'), url.contains("://")) {
        (Some((start, query)), true) => {
            let query: Vec<_> = query.split('&').filter(&mut keep).collect();
            if query.is_empty() { start.to_owned() } else { format!("{start}?{}", query.join("&")) }
        }
        (None, true) => url.to_owned(),
        (_, false) => url.split(' ').filter(&mut keep).collect::<Vec<_>>().join(" "),
    };
    (rest, mode, root)
}

/// Text with `%2F` for `/`, as it is in URLs.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let digits = more.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Trust {
    fn config(&self) -> io::Result<Arc<ClientConfig>> {
        if let Some(made) = self.config.get() {
            return Ok(Arc::clone(made));
        }
        let verifier = self.web.certificate_verifier();
        let verifier = verifier.map_err(|error| io::Error::other(bowline::with_causes(&error)))?;
        let made = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Arc::clone(self.config.get_or_init(|| Arc::new(made))))
    }
}

/// A handshake with one host.
pub(crate) struct Handshake {
    trust: Arc<Trust>,
    host: String,
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        Ok(Handshake { trust: Arc::clone(&self.0), host: host.to_owned() })
    }
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name = ServerName::try_from(self.host).map_err(io::Error::other)?;
            let connector = TlsConnector::from(self.trust.config()?);
            connector.connect(name, stream).await.map(Encrypted)
        })
    }
}

/// An encrypted connection.
pub(crate) struct Encrypted<S>(client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, rest: &str, mode: Option<&str>, root: Option<&str>) {
        let found = take_out(url);
        let expected = (rest.to_owned(), mode.map(str::to_owned), root.map(str::to_owned));
        assert_eq!(found, expected, "{url}");
    }

    #[test]
    fn modes_are_taken_out_of_addresses() {
        check("postgres://db/x", "postgres://db/x", None, None);
        check("postgres://db/x?sslmode=require", "postgres://db/x", Some("require"), None);
        check(
            "postgres://db/x?connect_timeout=3&sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem",
            "postgres://db/x?connect_timeout=3",
            Some("verify-full"),
            Some("/etc/ca.pem"),
        );
        check("host=db sslmode=disable user=a", "host=db user=a", Some("disable"), None);
        assert!(Wanted::read("postgres://db/x?sslmode=allow").is_err());
        assert!(Wanted::read("postgres://db/x?sslmode=require&sslrootcert=/no/such").is_err());
    }
}
