//! The two kinds of connection: in memory, and over the standard streams of a child.

use std::env;
use std::process::Stdio;
use std::time::Duration;

use bowline::Server;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// A client's end of a connection.
pub(crate) struct Link {
    /// `None` once the client has closed its side.
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    reader: Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
    server: Running,
}

/// The server behind it.
enum Running {
    Task(JoinHandle<Result<(), bowline::ServeError>>),
    Child(Box<Child>),
}

impl Link {
    pub(crate) fn in_memory(server: Server) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let (reader, writer) = tokio::io::split(ours);
        let running = Running::Task(tokio::spawn(server.serve(theirs)));
        Self::new(Box::new(reader), Box::new(writer), running)
    }

    pub(crate) fn child(name: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .env(super::ROLE, name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        Self::new(Box::new(reader), Box::new(writer), Running::Child(Box::new(child)))
    }

    fn new(
        reader: Box<dyn AsyncRead + Send + Unpin>,
        writer: Box<dyn AsyncWrite + Send + Unpin>,
        server: Running,
    ) -> Self {
        Self { writer: Some(writer), reader: BufReader::new(reader).lines(), server }
    }

    pub(crate) async fn send(&mut self, frame: &str) -> Result<(), String> {
        let writer = self.writer.as_mut().ok_or("the client has closed its side")?;
        let line = format!("{frame}\n");
        writer.write_all(line.as_bytes()).await.map_err(|error| error.to_string())?;
        writer.flush().await.map_err(|error| error.to_string())
    }

    pub(crate) async fn close(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            let _ = writer.shutdown().await;
        }
    }

    /// The next message; `None` at the end.
    pub(crate) async fn receive(&mut self, within: Duration) -> Result<Option<Value>, String> {
        let line = tokio::time::timeout(within, self.reader.next_line());
        let line = line.await.map_err(|_| "nothing".to_owned())?;
        let Some(line) = line.map_err(|error| error.to_string())? else { return Ok(None) };
        serde_json::from_str(&line).map(Some).map_err(|error| format!("no JSON ({error}): {line}"))
    }

    /// Waits until the server has ended cleanly.
    pub(crate) async fn ended(self) -> Result<(), String> {
        match self.server {
            Running::Task(task) => match task.await {
                Ok(ended) => ended.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            },
            Running::Child(mut child) => {
                let status = child.wait().await.map_err(|error| error.to_string())?;
                if status.success() { Ok(()) } else { Err(status.to_string()) }
            }
        }
    }
}
