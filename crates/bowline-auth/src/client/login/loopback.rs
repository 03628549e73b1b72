//! A loopback port that waits for one redirect.
//!
//! Just enough HTTP for a browser's GET. Browsers open connections in advance and request icons,
//! and any page may connect: requests without the right state are rejected, and the wait continues.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::client::form;

/// The most bytes in a request's head.
const MAX_HEAD: usize = 32 * 1024;
/// The most connections at once; more wait.
const MAX_CONNECTIONS: usize = 16;
/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(10);
const PATH: &str = "/callback";

/// A listening port.
#[derive(Debug)]
pub(super) struct Catcher {
    listener: TcpListener,
    redirect: String,
    authority: String,
}

impl Catcher {
    /// Listens; zero means any free port.
    pub(super) async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let authority = format!("127.0.0.1:{}", listener.local_addr()?.port());
        let redirect = format!("http://{authority}{PATH}");
        Ok(Self { listener, redirect, authority })
    }

    pub(super) fn redirect_uri(&self) -> &str {
        &self.redirect
    }

    /// Waits for the first redirect with this state, and returns its query.
    pub(super) async fn catch(self, state: String) -> io::Result<String> {
        let (this, state) = (Arc::new(self), Arc::<str>::from(state));
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                accepted = this.listener.accept(), if open.len() < MAX_CONNECTIONS => {
                    let (this, state) = (Arc::clone(&this), Arc::clone(&state));
                    match accepted {
                        Ok((stream, _)) => {
                            open.spawn(async move { this.serve(stream, &state).await });
                        }
                        // The client left before it was accepted.
                        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                        Err(error) => return Err(error),
                    }
                }
                Some(served) = open.join_next() => {
                    if let Ok(Some(query)) = served {
                        return Ok(query);
                    }
                }
            }
        }
    }

    async fn serve(&self, mut stream: TcpStream, state: &str) -> Option<String> {
        let exchange = async {
            let head = read_head(&mut stream).await?;
            let (answer, query) = self.judge(&head, state);
            stream.write_all(answer.as_bytes()).await.ok()?;
            stream.shutdown().await.ok();
            query
        };
        timeout(PATIENCE, exchange).await.ok().flatten()
    }

    /// The response to a request, and its query if it is the awaited redirect.
    fn judge(&self, head: &str, state: &str) -> (String, Option<String>) {
        let mut lines = head.lines();
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let hosts = lines.filter_map(|line| line.split_once(':'));
        let mut hosts = hosts.filter(|(name, _)| name.eq_ignore_ascii_case("host"));
        let is_ours = hosts.next().is_some_and(|(_, host)| host.trim() == self.authority);
        if !is_ours || hosts.next().is_some() {
            return (page("421 Misdirected Request", "This is not the page you asked for."), None);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if method != "GET" || path != PATH {
            return (page("404 Not Found", "There is nothing here."), None);
        }
        let pairs = form::decode(query).unwrap_or_default();
        let of = |name: &str| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        if of("state").map(String::as_str) != Some(state) {
            return (
                page(
                    "400 Bad Request",
                    "This is not the login that the application is waiting for.",
                ),
                None,
            );
        }
        let text = match of("error") {
            Some(_) => "The login failed. You can close this page.",
            None => "You are logged in. You can close this page and return to the application.",
        };
        (page("200 OK", text), Some(query.to_owned()))
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > MAX_HEAD || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    String::from_utf8(head).ok()
}

/// A page that never depends on the query, runs no script, and sends no referrer.
fn page(status: &str, text: &str) -> String {
    let body = format!("<!doctype html><meta charset=utf-8><title>Login</title><p>{text}</p>\n");
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(redirect: &str, request: &str) -> String {
        let authority = redirect.strip_prefix("http://").unwrap().split('/').next().unwrap();
        let mut stream = TcpStream::connect(authority).await.unwrap();
        let request = request.replace('@', authority);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn only_the_right_redirect_ends_the_wait() {
        let catcher = Catcher::bind(0).await.unwrap();
        let redirect = catcher.redirect_uri().to_owned();
        let authority =
            redirect.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
        let waiting = tokio::spawn(catcher.catch("s1".to_owned()));
        // A browser that opens connections in advance.
        let idle = TcpStream::connect(&authority).await.unwrap();
        for (request, status) in [
            ("GET /favicon.ico HTTP/1.1\r\nHost: @\r\n\r\n", "404"),
            ("GET /callback?code=c&state=other HTTP/1.1\r\nHost: @\r\n\r\n", "400"),
            ("GET /callback?code=c HTTP/1.1\r\nHost: @\r\n\r\n", "400"),
            ("GET /callback?code=c&state=s1 HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421"),
            ("GET /callback?code=c&state=s1 HTTP/1.1\r\n\r\n", "421"),
            ("GET /callback?code=c&state=s1 HTTP/1.1\r\nHost: @\r\nHost: @\r\n\r\n", "421"),
            ("POST /callback?code=c&state=s1 HTTP/1.1\r\nHost: @\r\n\r\n", "404"),
        ] {
            let answer = ask(&redirect, request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {answer}");
            assert!(!waiting.is_finished());
        }
        let request = "GET /callback?code=%3Cb%3E&state=s1 HTTP/1.1\r\nHost: @\r\n\r\n";
        let answer = ask(&redirect, request).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        for part in ["default-src 'none'", "no-referrer", "no-store"] {
            assert!(answer.contains(part), "{answer}");
        }
        assert!(!answer.contains("<b>"));
        assert_eq!(waiting.await.unwrap().unwrap(), "code=%3Cb%3E&state=s1");
        drop(idle);
    }
}
