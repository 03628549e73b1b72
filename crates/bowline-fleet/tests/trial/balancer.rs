//! A load balancer: it asks `/ready`, gives each request to the next node that is, and never tries
//! again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::http;

/// How often it asks. Nodes that stop must drain for longer.
pub const PROBE: Duration = Duration::from_millis(50);

/// One load balancer, until it is dropped.
pub struct Balancer {
    pub port: u16,
    targets: Arc<Mutex<Vec<Target>>>,
    _work: JoinSet<()>,
}

#[derive(Clone)]
struct Target {
    port: u16,
    is_ready: Arc<AtomicBool>,
}

impl Balancer {
    pub async fn start(ports: impl IntoIterator<Item = u16>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let targets: Arc<Mutex<Vec<Target>>> = Arc::default();
        let mut work = JoinSet::new();
        work.spawn(probe(Arc::clone(&targets)));
        work.spawn(balance(listener, Arc::clone(&targets)));
        let balancer = Self { port, targets, _work: work };
        for port in ports {
            balancer.add(port).await;
        }
        balancer
    }

    /// Adds a node that is ready.
    pub async fn add(&self, port: u16) {
        let is_ready = Arc::new(AtomicBool::new(http::get(port, "/ready").await == Some(200)));
        self.targets.lock().unwrap().push(Target { port, is_ready });
    }

    pub fn remove(&self, port: u16) {
        self.targets.lock().unwrap().retain(|target| target.port != port);
    }
}

async fn probe(targets: Arc<Mutex<Vec<Target>>>) {
    loop {
        let all = targets.lock().unwrap().clone();
        // All at once, so that none waits for another one that hangs.
        let asked = all.iter().map(async |target| {
            let is_ready = http::get(target.port, "/ready").await == Some(200);
            target.is_ready.store(is_ready, Ordering::Release);
        });
        futures_util::future::join_all(asked).await;
        tokio::time::sleep(PROBE).await;
    }
}

async fn balance(listener: TcpListener, targets: Arc<Mutex<Vec<Target>>>) {
    let next = AtomicUsize::new(0);
    let mut passing = JoinSet::new();
    while let Ok((near, _)) = listener.accept().await {
        while passing.try_join_next().is_some() {}
        let ready: Vec<u16> = targets
            .lock()
            .unwrap()
            .iter()
            .filter(|target| target.is_ready.load(Ordering::Acquire))
            .map(|target| target.port)
            .collect();
        if !ready.is_empty() {
            let turn = next.fetch_add(1, Ordering::Relaxed) % ready.len();
            passing.spawn(async move {
                let _ = pass(near, ready[turn]).await;
            });
        }
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
