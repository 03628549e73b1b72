//! A server in this process, with a proxy in between that changes messages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline::Server;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use crate::check::Target;
use crate::frames::{Reader, Writer};

/// What happens to a frame from the client.
pub(super) enum Way {
    /// The server gets it.
    Pass,
    /// The server does not, and the client gets these answers instead.
    Instead(Vec<String>),
    /// The server exits.
    Die,
}

/// The proxy.
#[derive(Clone, Copy)]
pub(super) struct Rewrite {
    pub(super) make: fn() -> Server,
    pub(super) frame: fn(&str) -> Way,
    /// Changes a message from the server, given the request that it answers, if any. May send
    /// more before it.
    pub(super) message: fn(&Value, &mut Value, &mut Vec<Vec<u8>>),
    /// Whether the server keeps running when the client closes its side.
    pub(super) stays: bool,
    /// Whether it sends log messages all the time.
    pub(super) ticks: bool,
}

impl Rewrite {
    pub(super) fn none<F: Fn() -> Server + Copy>(make: F) -> Untouched<F> {
        Untouched(make)
    }

    pub(super) fn target(self) -> Target {
        Target::streams(move || self.open())
    }

    fn open(self) -> (Reader, Writer) {
        let (reader, writer, input, output) = pipes();
        let (from_server, to_server, servers_input, servers_output) = pipes();
        let make = self.make;
        let stream = tokio::io::join(servers_input, servers_output);
        tokio::spawn(async move { make().serve(stream).await });
        tokio::spawn(self.stand_between((input, output), (from_server, to_server)));
        (Box::new(reader), Box::new(writer))
    }

    async fn stand_between(
        self,
        (from_client, to_client): (DuplexStream, DuplexStream),
        (from_server, to_server): (DuplexStream, DuplexStream),
    ) {
        let asked = Arc::new(Mutex::new(HashMap::new()));
        let to_client = Arc::new(tokio::sync::Mutex::new(to_client));
        if self.ticks {
            tokio::spawn(tick(Arc::clone(&to_client)));
        }
        let backward = self.backward(from_server, Arc::clone(&to_client), Arc::clone(&asked));
        let forward = self.forward((from_client, to_server), Arc::clone(&to_client), asked);
        tokio::pin!(backward);
        tokio::select! {
            () = &mut backward => {}
            lives = forward => {
                if lives {
                    backward.await;
                }
            }
        }
    }

    /// Returns whether the server is still there.
    async fn forward(
        self,
        (from_client, mut to_server): (DuplexStream, DuplexStream),
        to_client: Arc<tokio::sync::Mutex<DuplexStream>>,
        asked: Asked,
    ) -> bool {
        let mut lines = BufReader::new(from_client);
        loop {
            let mut line = Vec::new();
            if lines.read_until(b'\n', &mut line).await.unwrap_or(0) == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&line);
            match (self.frame)(text.trim_end_matches('\n')) {
                Way::Pass => {
                    remember(&asked, &text);
                    if to_server.write_all(&line).await.is_err() {
                        return false;
                    }
                }
                Way::Die => return false,
                Way::Instead(answers) => {
                    for answer in answers {
                        let answer = format!("{answer}\n");
                        let _ = to_client.lock().await.write_all(answer.as_bytes()).await;
                    }
                }
            }
        }
        if self.stays {
            std::future::pending::<()>().await;
        }
        drop(to_server);
        true
    }

    async fn backward(
        self,
        from_server: DuplexStream,
        to_client: Arc<tokio::sync::Mutex<DuplexStream>>,
        asked: Asked,
    ) {
        let mut lines = BufReader::new(from_server);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).await.unwrap_or(0) > 0 {
            let mut message: Value = serde_json::from_slice(&line).unwrap();
            let id = message["id"].to_string();
            let request = asked.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
            let request = request.filter(|_| message.get("method").is_none()).unwrap_or_default();
            let mut extra = Vec::new();
            (self.message)(&request, &mut message, &mut extra);
            extra.push(message.to_string().into_bytes());
            for mut out in extra {
                out.push(b'\n');
                if to_client.lock().await.write_all(&out).await.is_err() {
                    return;
                }
            }
            line.clear();
        }
    }
}

/// Sends log messages until the client is gone.
async fn tick(to_client: Arc<tokio::sync::Mutex<DuplexStream>>) {
    let tick =
        br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    let tick = [&tick[..], b"\n"].concat();
    while to_client.lock().await.write_all(&tick).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Two pipes: the ends to read from and to write to here, and the other side's input and output.
fn pipes() -> (DuplexStream, DuplexStream, DuplexStream, DuplexStream) {
    let (reader, output) = tokio::io::duplex(1 << 16);
    let (writer, input) = tokio::io::duplex(1 << 16);
    (reader, writer, input, output)
}

type Asked = Arc<Mutex<HashMap<String, Value>>>;

fn remember(asked: &Asked, text: &str) {
    if let Ok(request @ Value::Object(_)) = serde_json::from_str::<Value>(text) {
        let id = request["id"].to_string();
        asked.lock().unwrap_or_else(PoisonError::into_inner).insert(id, request);
    }
}

/// A server without changes.
pub(super) struct Untouched<F>(F);

impl<F: Fn() -> Server + Send + Sync + Copy + 'static> Untouched<F> {
    pub(super) fn target(self) -> Target {
        self.slow_target(Duration::ZERO)
    }

    /// A server that takes some time to start.
    pub(super) fn slow_target(self, start: Duration) -> Target {
        Target::streams(move || {
            let (reader, writer, input, output) = pipes();
            let server = (self.0)();
            let stream = tokio::io::join(input, output);
            tokio::spawn(async move {
                tokio::time::sleep(start).await;
                server.serve(stream).await
            });
            (Box::new(reader), Box::new(writer))
        })
    }
}
