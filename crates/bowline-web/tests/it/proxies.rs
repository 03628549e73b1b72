//! Proxies: tunnels for `https`, whole URLs for `http`, SOCKS, and the environment.

use std::process::Command;

use bowline_web::{Proxy, Reach, Web, WebError};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use crate::tls::Secure;
use crate::world::{Server, all_texts, direct, get, read_head};

fn through(proxy: &str) -> Proxy {
    Proxy::Url(proxy.parse().unwrap())
}

/// A proxy that opens a tunnel to one place, whatever it is asked for.
async fn tunnel_to(place: std::net::SocketAddr) -> Server {
    Server::with(move |mut stream| async move {
        stream.write_all(b"HTTP/1.1 200 Fine\r\n\r\n").await.unwrap();
        let mut target = TcpStream::connect(place).await.unwrap();
        let _ = copy_bidirectional(&mut stream, &mut target).await;
    })
    .await
}

#[tokio::test]
async fn https_goes_through_a_tunnel() {
    let secure = Secure::speaking(&["h2"]).await;
    let proxy = tunnel_to(secure.address).await;
    let web = direct()
        .ca_pem(secure.ca_pem.as_bytes())
        .proxy(through(&format!("http://me:hush@{}", proxy.address)))
        .build()
        .unwrap();
    let answer = web.fetch(get(&secure.url())).await.unwrap();
    assert_eq!(answer.body(), "/path");
    let host = format!("localhost:{}", secure.address.port());
    assert_eq!(
        proxy.heads(),
        [format!(
            "CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nProxy-Authorization: Basic bWU6aHVzaA==\r\n\r\n"
        )]
    );
}

#[tokio::test]
async fn http_goes_as_a_whole_url_with_the_proxys_credentials_alone() {
    let proxy = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
    let url = format!("http://me:hush@{}", proxy.address);
    let web = direct().proxy(through(&url)).build().unwrap();
    let mut request = get("http://some.invalid:81/path?q");
    request.headers_mut().insert("proxy-authorization", "Basic smuggled".parse().unwrap());
    assert_eq!(web.fetch(request).await.unwrap().body(), "hi");
    let head = &proxy.heads()[0];
    assert!(head.starts_with("GET http://some.invalid:81/path?q HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("proxy-authorization: Basic bWU6aHVzaA==\r\n"), "{head}");
    assert!(!head.contains("smuggled"), "{head}");
}

#[tokio::test]
async fn proxies_that_refuse() {
    for answer in ["HTTP/1.1 407 No\r\n\r\n", "HTTP/1.1 502 No\r\n\r\n", "", "nonsense\r\n\r\n"] {
        let proxy = Server::answering(answer).await;
        let url = format!("http://me:hush@{}", proxy.address);
        let web = direct().proxy(through(&url)).build().unwrap();
        let error = web.fetch(get("https://some.invalid/?hush")).await.unwrap_err();
        assert!(matches!(error, WebError::Proxy { .. }), "{error:?}");
        let text = all_texts(&error);
        assert!(text.contains("some.invalid:443"), "{text}");
        assert!(text.contains(&proxy.address.to_string()), "{text}");
        assert!(!text.contains("hush") && !text.contains("bWU6"), "{text}");
    }
}

#[tokio::test]
async fn socks_lets_the_proxy_resolve() {
    let proxy = socks().await;
    let web = direct().proxy(through(&format!("socks5h://{proxy}"))).build().unwrap();
    let answer = web.fetch(get("http://some.invalid:81/")).await.unwrap();
    assert_eq!(answer.body(), "some.invalid:81");
}

/// A SOCKS 5 server that answers by itself, with the host it was asked for.
async fn socks() -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut hello = vec![0; 2];
        stream.read_exact(&mut hello).await.unwrap();
        let mut methods = vec![0; hello[1].into()];
        stream.read_exact(&mut methods).await.unwrap();
        stream.write_all(&[5, 0]).await.unwrap();
        let mut ask = [0; 5];
        stream.read_exact(&mut ask).await.unwrap();
        assert_eq!(ask[..4], [5, 1, 0, 3]);
        let mut name = vec![0; ask[4].into()];
        stream.read_exact(&mut name).await.unwrap();
        let port = stream.read_u16().await.unwrap();
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        read_head(&mut stream).await;
        let name = format!("{}:{port}", String::from_utf8(name).unwrap());
        let length = name.len();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{name}");
        stream.write_all(answer.as_bytes()).await.unwrap();
        let _ = stream.read_u8().await;
    });
    address
}

#[tokio::test]
async fn the_guard_holds_in_front_of_a_proxy() {
    let proxy = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
    let web = direct()
        .proxy(through(&format!("http://{}", proxy.address)))
        .reach(Reach::Public { also: vec!["10.0.0.7:80".parse().unwrap()] })
        .build()
        .unwrap();
    let refused = ["http://127.0.0.1/", "http://localhost/", "http://[::1]/", "http://0x7f.1/"];
    for url in [&refused[..], &["https://169.254.169.254/", "http://x.internal/"]].concat() {
        let error = web.fetch(get(url)).await.unwrap_err();
        assert!(matches!(error, WebError::Forbidden { .. }), "{url}: {error:?}");
    }
    assert!(proxy.heads().is_empty());
    // What only the proxy can resolve, what is public, and what is allowed by name.
    for url in ["http://some.invalid/", "http://8.8.8.8/", "http://10.0.0.7/"] {
        assert_eq!(web.fetch(get(url)).await.unwrap().body(), "hi", "{url}");
    }
}

#[test]
fn invalid_proxy_urls_are_rejected() {
    for url in ["ftp://x:1", "/x"] {
        let error = direct().proxy(through(url)).build().unwrap_err();
        assert!(matches!(error, WebError::Settings { .. }), "{error:?}");
    }
    let debug = format!("{:?}", direct().proxy(through("http://me:hush@proxy.invalid:1")));
    assert!(debug.contains("proxy.invalid") && !debug.contains("hush"), "{debug}");
}

/// Runs itself as a child, because an environment is changed safely in no other way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_environment_names_the_proxy() {
    let proxy = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nproxy").await;
    let here = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhere").await;
    let (url, straight) = (format!("http://{}", proxy.address), here.url("/"));
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "proxies::child", "--ignored", "--nocapture"])
        .env("HTTP_PROXY", url)
        .env("NO_PROXY", "spared.invalid, 10.0.0.0/8")
        .env("BOWLINE_WEB_STRAIGHT", straight)
        .env_remove("REQUEST_METHOD");
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
    assert_eq!(proxy.heads().len(), 1);
    assert_eq!(here.heads().len(), 1);
}

#[tokio::test]
#[ignore = "started by the_environment_names_the_proxy"]
async fn child() {
    let web = Web::builder().only_given_roots().build().unwrap();
    assert_eq!(web.fetch(get("http://some.invalid/")).await.unwrap().body(), "proxy");
    let straight = std::env::var("BOWLINE_WEB_STRAIGHT").unwrap();
    assert_eq!(web.fetch(get(&straight)).await.unwrap().body(), "here");
    let error = web.fetch(get("http://spared.invalid/")).await.unwrap_err();
    assert!(matches!(error, WebError::Dns { .. }), "{error:?}");
}
