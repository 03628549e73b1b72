//! Three nodes of another program behind a balancer, for somebody else to test.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::http;
use crate::stores::{Postgres, Redis, free_port};

/// The variable with the program.
pub const PROGRAM: &str = "BOWLINE_STAGE";

/// Opens the stage, says where it is, and closes it at the end of standard input.
pub async fn open(program: &str) {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let database = postgres.database();
    let ports = [(); 3].map(|()| free_port());
    let mut nodes = Vec::new();
    for port in ports {
        let mut node = Command::new(program);
        node.args(["--http", &format!("127.0.0.1:{port}"), "--fleet", &database, &redis.url()]);
        nodes.push(node.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
    }
    for port in ports {
        let mut looks = 0;
        while http::get(port, "/ready").await != Some(200) {
            looks += 1;
            assert!(looks < 600, "a node does not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    // Until each node has heard of the others.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    println!("stage: http://{}/mcp", listener.local_addr().unwrap());
    let balancing = tokio::spawn(balance(listener, ports));
    let _ = tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin())).await;
    balancing.abort();
    for node in &mut nodes {
        let _ = node.kill();
        let _ = node.wait();
    }
}

/// Gives each request to the next node.
async fn balance(listener: TcpListener, ports: [u16; 3]) {
    let next = Arc::new(AtomicUsize::new(0));
    while let Ok((near, _)) = listener.accept().await {
        let port = ports[next.fetch_add(1, Ordering::Relaxed) % ports.len()];
        tokio::spawn(pass(near, port));
    }
}

/// Passes one request on. Its connection closes after it, so that the next one is another's turn.
async fn pass(mut near: TcpStream, port: u16) -> Option<()> {
    let mut head = Vec::new();
    let end = loop {
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        let length = near.read_buf(&mut head).await.ok()?;
        if length == 0 {
            return None;
        }
    };
    let rest = head.split_off(end);
    let text = String::from_utf8(head).ok()?;
    let lines =
        text.split("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let head = lines.chain(["connection: close"]).collect::<Vec<_>>().join("\r\n");
    let mut far = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    far.write_all(head.as_bytes()).await.ok()?;
    far.write_all(&rest).await.ok()?;
    copy_bidirectional(&mut near, &mut far).await.ok()?;
    Some(())
}
