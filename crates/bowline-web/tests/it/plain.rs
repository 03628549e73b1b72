//! What is sent and given back, to the byte; and what is not done on the way.

use bowline_web::WebError;
use bytes::Bytes;
use http::{Request, StatusCode};

use crate::world::{Server, all_texts, direct, get};

#[tokio::test]
async fn redirects_cookies_and_encodings_are_left_alone() {
    let server = Server::answering(
        "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\nset-cookie: a=b\r\ncontent-encoding: gzip\r\n\
         content-length: 4\r\n\r\n\x1f\x01ab",
    )
    .await;
    let web = direct().build().unwrap();
    for _ in 0..2 {
        let answer = web.fetch(get(&server.url("/x?q=1"))).await.unwrap();
        assert_eq!(answer.status(), StatusCode::FOUND);
        assert_eq!(answer.body().as_ref(), b"\x1f\x01ab");
    }
    let heads = server.heads();
    assert_eq!(heads.len(), 2);
    for head in heads {
        assert_eq!(head, format!("GET /x?q=1 HTTP/1.1\r\nhost: {}\r\n\r\n", server.address));
    }
}

#[tokio::test]
async fn a_body_is_sent_whole_and_streams_come_in_pieces() {
    let server = Server::answering(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nx: y\r\n\r\n",
    )
    .await;
    let web = direct().build().unwrap();
    let request = Request::post(server.url("/")).body(Bytes::from_static(b"{}")).unwrap();
    let mut body = web.send(request).await.unwrap().into_body();
    let mut all = Vec::new();
    while let Some(chunk) = body.chunk().await {
        all.extend_from_slice(&chunk.unwrap());
    }
    assert_eq!(all, b"abcde");
    assert!(server.heads()[0].contains("content-length: 2\r\n"));
}

#[tokio::test]
async fn errors_name_the_host_and_nothing_that_may_be_secret() {
    let closing = Server::answering("").await;
    let noise = Server::answering("SSH-2.0-OpenSSH\r\n\r\n").await;
    let half = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc").await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = listener.local_addr().unwrap();
    drop(listener);
    let web = direct().build().unwrap();
    let refused = |url: String| {
        let web = web.clone();
        async move { web.fetch(get(&url)).await.unwrap_err() }
    };
    let secret = "/hush/?token=hush#hush";

    let error = refused(closing.url(secret)).await;
    assert!(matches!(error, WebError::Closed { .. }), "{error:?}");
    assert!(all_texts(&error).contains(&closing.address.to_string()));
    assert!(!all_texts(&error).contains("hush"), "{error:?}");

    let error = refused(noise.url(secret)).await;
    assert!(matches!(error, WebError::Protocol { .. }), "{error:?}");
    assert!(!all_texts(&error).contains("hush"), "{error:?}");

    let error = refused(half.url(secret)).await;
    assert!(matches!(error, WebError::Closed { .. }), "{error:?}");

    let error = refused(format!("http://{gone}{secret}")).await;
    assert!(matches!(error, WebError::Connect { .. }), "{error:?}");
    assert!(error.is_before_sending());
    assert!(all_texts(&error).contains(&gone.to_string()) && !all_texts(&error).contains("hush"));

    let error = refused(format!("http://me:hush@{gone}{secret}")).await;
    assert!(matches!(error, WebError::Url { .. }), "{error:?}");
    assert!(!all_texts(&error).contains("hush"), "{error:?}");

    let error = refused(format!("https://no-such-host.invalid{secret}")).await;
    assert!(matches!(error, WebError::Dns { .. }), "{error:?}");
    assert!(
        all_texts(&error).contains("no-such-host.invalid:443")
            && !all_texts(&error).contains("hush")
    );
}

#[tokio::test]
async fn only_http_is_sent() {
    let web = direct().build().unwrap();
    for url in ["ftp://example.com/", "file:///etc/passwd", "/relative", "http:", "example.com:80"]
    {
        let Ok(uri) = url.parse::<http::Uri>() else { continue };
        let mut request = get("http://x/");
        *request.uri_mut() = uri;
        let error = web.send(request).await.unwrap_err();
        assert!(matches!(error, WebError::Url { .. }), "{url}: {error:?}");
    }
}
