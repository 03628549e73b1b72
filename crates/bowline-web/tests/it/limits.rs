//! Hosts that never answer, or never stop.

use std::time::Duration;

use bowline_web::{FetchLimits, WebError};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::world::{Server, direct, get};

const SOON: Duration = Duration::from_millis(200);

#[tokio::test]
async fn a_head_that_does_not_come() {
    let silent = Server::with(|stream| async move {
        let _open = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let web = direct().header_timeout(Some(SOON)).build().unwrap();
    let error = web.send(get(&silent.url("/"))).await.unwrap_err();
    assert!(matches!(&error, WebError::TimedOut { what: "the response", .. }), "{error:?}");
    assert!(!error.is_before_sending());
}

#[tokio::test]
async fn a_handshake_that_does_not_come() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let web = direct().danger_accept_any_certificate().connect_timeout(SOON).build().unwrap();
    let error = web.send(get(&url)).await.unwrap_err();
    assert!(matches!(&error, WebError::TimedOut { what: "connecting", .. }), "{error:?}");
    assert!(error.is_before_sending());
}

#[tokio::test]
async fn a_body_without_end() {
    let endless = Server::with(|mut stream| async move {
        let mut bytes = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        while stream.write_all(&bytes).await.is_ok() {
            bytes = vec![b'x'; 4096];
        }
    })
    .await;
    let limits = FetchLimits { bytes: 100_000, total: Duration::from_secs(60) };
    let web = direct().fetch_limits(limits).build().unwrap();
    let error = web.fetch(get(&endless.url("/"))).await.unwrap_err();
    assert!(matches!(&error, WebError::TooLarge { limit: 100_000, .. }), "{error:?}");
}

#[tokio::test]
async fn a_body_that_announces_too_much() {
    let server = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 1048577\r\n\r\n").await;
    let web = direct().build().unwrap();
    let error = web.fetch(get(&server.url("/"))).await.unwrap_err();
    assert!(matches!(&error, WebError::TooLarge { limit: 1_048_576, .. }), "{error:?}");
    // To a HEAD it only says how much there would be.
    let mut head = get(&server.url("/"));
    *head.method_mut() = http::Method::HEAD;
    assert_eq!(web.fetch(head).await.unwrap().into_body(), "");
}

#[tokio::test]
async fn a_body_of_exactly_the_limit() {
    let server = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd").await;
    let limits = FetchLimits { bytes: 4, ..FetchLimits::default() };
    let web = direct().fetch_limits(limits).build().unwrap();
    assert_eq!(web.fetch(get(&server.url("/"))).await.unwrap().into_body(), "abcd");
}

#[tokio::test]
async fn a_body_that_drips() {
    let dripping = Server::with(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let limits = FetchLimits { total: SOON, ..FetchLimits::default() };
    let web = direct().fetch_limits(limits).build().unwrap();
    let error = web.fetch(get(&dripping.url("/"))).await.unwrap_err();
    assert!(matches!(&error, WebError::TimedOut { what: "the whole response", .. }), "{error:?}");
}

#[tokio::test]
async fn a_head_without_end() {
    let endless = Server::with(|mut stream| async move {
        let mut bytes = b"HTTP/1.1 200 OK\r\n".to_vec();
        while stream.write_all(&bytes).await.is_ok() {
            bytes = format!("x: {}\r\n", "y".repeat(4096)).into_bytes();
        }
    })
    .await;
    let error = direct().build().unwrap().send(get(&endless.url("/"))).await.unwrap_err();
    assert!(matches!(&error, WebError::Protocol { .. } | WebError::Closed { .. }), "{error:?}");
}
