//! Letters that somebody reads on their way.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use bowline_fleet::Fleet;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::http;
use crate::nodes::{Plan, eventually, node, open, request};
use crate::stores::Postgres;

/// Passes connections on, and keeps what they say.
async fn listen_in(listener: TcpListener, to: Arc<AtomicU16>, heard: Arc<Mutex<Vec<u8>>>) {
    while let Ok((mut near, _)) = listener.accept().await {
        let (to, heard) = (Arc::clone(&to), Arc::clone(&heard));
        tokio::spawn(async move {
            let port = to.load(Ordering::Acquire);
            let mut far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let ((mut near_in, mut near_out), (mut far_in, mut far_out)) =
                (near.split(), far.split());
            let there = async {
                let mut some = vec![0; 16 << 10];
                while let Ok(length @ 1..) = near_in.read(&mut some).await {
                    heard.lock().unwrap().extend(&some[..length]);
                    far_out.write_all(&some[..length]).await.unwrap();
                }
            };
            tokio::join!(there, async { drop(tokio::io::copy(&mut far_in, &mut near_out).await) });
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_is_taken_in_once() {
    let postgres = Postgres::start();
    let database = postgres.database();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (to, heard) = (Arc::new(AtomicU16::new(0)), Arc::new(Mutex::new(Vec::new())));
    tokio::spawn(listen_in(listener, Arc::clone(&to), Arc::clone(&heard)));
    let one = Plan::usual(Fleet::builder(&database).address(address)).start().await;
    to.store(one.port, Ordering::Release);
    let two = node(&database, None).await;
    eventually("the node is known", async || (two.fleet.metrics().others == 1).then_some(())).await;
    let session = open(one.port).await;
    let call = request(7, "tools/call", json!({ "name": "ask" }));
    let mut asked = http::legacy(one.port, "ada", Some(&session), call).await.unwrap();
    let mut rest = String::new();
    let question = asked.event(&mut rest).await.unwrap();
    let content = json!({ "action": "accept", "content": { "confirmed": true } });
    let given = json!({ "jsonrpc": "2.0", "id": question["id"], "result": content });
    let accepted = http::legacy(two.port, "ada", Some(&session), given).await.unwrap();
    assert_eq!(accepted.status, 202);
    let heard = String::from_utf8(heard.lock().unwrap().clone()).unwrap();
    let (head, letter) = heard.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with(&format!("POST {}", bowline::fleet::PATH)), "{head}");
    let again = format!("POST {} HTTP/1.1\r\n", bowline::fleet::PATH);
    assert_eq!(http::send(one.port, &again, letter).await.unwrap().status, 403);
}
