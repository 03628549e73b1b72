//! A modern server for many clients that only tells of changes, and counts who listens.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::web::{Request, read};
use super::wire::discovered;

/// The server, which can be stopped and started again under the same address.
pub(crate) struct Crowd {
    address: SocketAddr,
    /// Keeps the port from others while the server is stopped.
    _reserved: TcpSocket,
    book: Arc<Book>,
    /// Changes when all streams are to end.
    ending: watch::Sender<u32>,
    tasks: Option<JoinSet<()>>,
}

#[derive(Default)]
struct Book {
    attempts: AtomicUsize,
    doubles: AtomicUsize,
    listening: Mutex<HashMap<String, usize>>,
}

impl Crowd {
    pub(crate) async fn start() -> Self {
        let reserved = bound("127.0.0.1:0".parse().unwrap());
        let address = reserved.local_addr().unwrap();
        let (book, ending) = (Arc::default(), watch::Sender::new(0));
        let mut crowd = Self { address, _reserved: reserved, book, ending, tasks: None };
        crowd.start_again().await;
        crowd
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    fn serve(&mut self, listener: TcpListener) {
        let mut tasks = JoinSet::new();
        let (book, ending) = (Arc::clone(&self.book), self.ending.clone());
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                book.attempts.fetch_add(1, Ordering::Relaxed);
                while open.try_join_next().is_some() {}
                let (book, ending) = (Arc::clone(&book), ending.subscribe());
                open.spawn(book.serve(stream, ending));
            }
        });
        self.tasks = Some(tasks);
    }

    /// Ends everything at once.
    pub(crate) async fn stop(&mut self) {
        if let Some(mut tasks) = self.tasks.take() {
            tasks.shutdown().await;
        }
    }

    pub(crate) async fn start_again(&mut self) {
        let listener = bound(self.address).listen(8192).unwrap();
        self.serve(listener);
    }

    /// Ends every stream in good order.
    pub(crate) fn end_streams(&self) {
        self.ending.send_modify(|count| *count += 1);
    }

    /// How many connections were opened, ever.
    pub(crate) fn attempts(&self) -> usize {
        self.book.attempts.load(Ordering::Relaxed)
    }

    /// How often a client listened that listened already.
    pub(crate) fn doubles(&self) -> usize {
        self.book.doubles.load(Ordering::Relaxed)
    }

    /// How many clients listen.
    pub(crate) fn listening(&self) -> usize {
        self.book.listening.lock().unwrap().len()
    }
}

/// A socket that shares its address with others of this user.
fn bound(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.set_reuseport(true).unwrap();
    socket.bind(address).unwrap();
    socket
}

impl Book {
    async fn serve(self: Arc<Self>, stream: TcpStream, ending: watch::Receiver<u32>) {
        if let Some(request) = read(stream).await {
            self.handle(request, ending).await;
        }
    }

    async fn handle(self: Arc<Self>, request: Request, mut ending: watch::Receiver<u32>) {
        match request.body["method"].as_str() {
            Some("server/discover") => request.answer(discovered()).await,
            Some("subscriptions/listen") => {
                let who = &request.body["params"]["_meta"]["io.modelcontextprotocol/clientInfo"];
                let who = who["name"].as_str().unwrap().to_owned();
                let place = Place::take(Arc::clone(&self), who);
                let id = request.body["id"].clone();
                let mut events = request.events().await;
                events.event("", &acknowledged(&id)).await;
                let ended = ending.changed();
                tokio::select! {
                    () = events.gone() => {}
                    _ = ended => {
                        drop(place);
                        events.answer_event(&id, json!({ "resultType": "complete" })).await;
                    }
                }
            }
            _ => request.status(404).await,
        }
    }
}

fn acknowledged(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
        "_meta": { "io.modelcontextprotocol/subscriptionId": id },
        "notifications": { "toolsListChanged": true } } })
}

/// Somebody listens.
struct Place {
    book: Arc<Book>,
    who: String,
}

impl Place {
    fn take(book: Arc<Book>, who: String) -> Self {
        let mut listening = book.listening.lock().unwrap();
        let count = listening.entry(who.clone()).or_default();
        *count += 1;
        if *count > 1 {
            book.doubles.fetch_add(1, Ordering::Relaxed);
        }
        drop(listening);
        Self { book, who }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut listening = self.book.listening.lock().unwrap();
        if let Some(count) = listening.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                listening.remove(&self.who);
            }
        }
    }
}
