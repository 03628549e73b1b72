//! Servers for the client to meet, each as simple as its test allows.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bowline_web::{Proxy, Web, WebBuilder, WebError};
use bytes::Bytes;
use http::Request;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A client that no environment sends elsewhere.
pub(crate) fn direct() -> WebBuilder {
    Web::builder().only_given_roots().proxy(Proxy::None)
}

pub(crate) fn get(url: &str) -> Request<Bytes> {
    Request::get(url).body(Bytes::new()).unwrap()
}

/// Everything an error says, its causes included.
pub(crate) fn all_texts(error: &WebError) -> String {
    let mut text = format!("{error} | {error:?}");
    let mut cause = std::error::Error::source(error);
    while let Some(level) = cause {
        text = format!("{text} | {level} | {level:?}");
        cause = level.source();
    }
    text
}

/// A server that answers each connection's first request with given bytes, then closes.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    /// Stops with the server.
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::with(move |mut stream| {
            let answer = answer.clone();
            async move {
                // The client may have gone before it has read everything.
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
            }
        })
        .await
    }

    /// Calls `next` when the head of a request has come.
    pub(crate) async fn with<F>(next: impl Fn(TcpStream) -> F + Send + Clone + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        let seen = Arc::clone(&heads);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (seen, next) = (Arc::clone(&seen), next.clone());
                connections.spawn(async move {
                    let head = read_head(&mut stream).await;
                    seen.lock().unwrap().push(head);
                    next(stream).await;
                });
            }
        });
        Self { address, heads, _tasks: tasks }
    }

    pub(crate) fn url(&self, rest: &str) -> String {
        format!("http://{}{rest}", self.address)
    }

    /// The heads of the requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

pub(crate) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}
