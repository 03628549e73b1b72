//! A: a client whose requests reach several gateways.

use std::sync::atomic::{AtomicUsize, Ordering};

use bowline::client::{Client, Preference};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{call, get, names, plan, serve, simple, soon, start, until};

/// A load balancer that sends each connection to the next of the gateways.
async fn balanced(urls: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let next = AtomicUsize::new(0);
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let at = next.fetch_add(1, Ordering::SeqCst) % urls.len();
            let address = urls[at].trim_start_matches("http://").trim_end_matches("/mcp");
            let mut to = TcpStream::connect(address).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut from, &mut to).await });
        }
    });
    url
}

#[tokio::test]
async fn a1_a_modern_client_uses_two_gateways_as_one() {
    let (mut gateways, mut urls) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let (gateway, server) = start(plan(vec![simple("one", &["a"])])).await;
        urls.push(serve(&gateway, server).await);
        gateways.push(gateway);
    }
    let url = balanced(urls).await;
    // Each client has connections of its own.
    for _ in 0..4 {
        let client = Client::builder("test", "1").preference(Preference::Modern);
        let client = client.connect(url.as_str()).await.unwrap();
        assert_eq!(names(&client).await, ["one__a"]);
        let calls = [call(&client, "one__a"), call(&client, "one__a"), call(&client, "one__a")];
        for called in calls {
            assert_eq!(called.await.unwrap(), "one a");
        }
    }
    for gateway in &gateways {
        let counted = "mcp_method_name=\"tools/call\"";
        until(async || gateway.metrics().contains(counted)).await;
    }
}

#[tokio::test]
async fn probes_answer_whatever_the_host() {
    let (gateway, server) = start(plan(vec![simple("one", &["a"])])).await;
    let url = serve(&gateway, server).await;
    for path in ["/live", "/ready"] {
        let told = soon(get(&url, path, "host: pod.example:8080\r\n")).await;
        assert!(told.starts_with("HTTP/1.1 200"), "{path}: {told}");
        let page = "host: pod.example\r\norigin: http://evil.example\r\n";
        let told = soon(get(&url, path, page)).await;
        assert!(told.starts_with("HTTP/1.1 403"), "{path}: {told}");
    }
}
