//! A client that speaks to the server line by line, and survives it.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;

use serde_json::{Value, json};

use crate::cases::GUARD;
use crate::child;

/// A server, and the way to it.
pub(crate) struct Server {
    child: Child,
    input: ChildStdin,
    /// Its lines.
    output: Receiver<String>,
}

impl Server {
    /// Starts a server that kills itself at a step; 0 for never.
    pub(crate) fn start(folder: &Path, step: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(child::FOLDER, folder)
            .env(child::STEP, step.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (line, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut read = BufReader::new(output).lines().map_while(Result::ok);
            read.try_for_each(|it| line.send(it))
        });
        Self { child, input, output: lines }
    }

    /// The answer to a request.
    ///
    /// # Errors
    /// When the server is dead.
    pub(crate) fn ask(&mut self, method: &str, mut params: Value) -> io::Result<Value> {
        let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
        let capabilities = json!({ "elicitation": { "form": {} }, "extensions": extensions });
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "survivor", "version": "1.0.0" },
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.input.write_all(format!("{request}\n").as_bytes())?;
        match self.output.recv_timeout(GUARD) {
            Ok(line) => Ok(serde_json::from_str(&line).unwrap()),
            Err(RecvTimeoutError::Disconnected) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(RecvTimeoutError::Timeout) => panic!("no answer to {method}"),
        }
    }

    /// Kills it, and waits for its end.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// When to kill a server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kill {
    Never,
    /// It kills itself at this step.
    AtStep(u64),
    /// We kill it after this news from it.
    AfterNews(u64),
}

/// A client that brings a task to its end, over any number of dead servers.
pub(crate) struct Survivor {
    folder: PathBuf,
    server: Server,
    /// What happens to the servers to come, the last one first.
    kills: Vec<Kill>,
    now: Kill,
    news: u64,
    pub(crate) deaths: usize,
}

impl Survivor {
    pub(crate) fn new(folder: &Path, mut kills: Vec<Kill>) -> Self {
        let now = kills.pop().unwrap_or(Kill::Never);
        let server = Server::start(folder, now.step());
        Self { folder: folder.to_owned(), server, kills, now, news: 0, deaths: 0 }
    }

    /// The answer of the server, or `None` if it has died and there is another one now.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Option<Value> {
        if let Ok(answer) = self.server.ask(method, params) {
            return Some(answer);
        }
        self.restart();
        None
    }

    /// Something has happened that a client waits for.
    pub(crate) fn has_news(&mut self) {
        self.news += 1;
        if matches!(self.now, Kill::AfterNews(news) if news == self.news) {
            self.restart();
        }
    }

    pub(crate) fn restart(&mut self) {
        self.server.kill();
        self.deaths += 1;
        self.news = 0;
        self.now = self.kills.pop().unwrap_or(Kill::Never);
        self.server = Server::start(&self.folder, self.now.step());
    }
}

impl Kill {
    fn step(self) -> u64 {
        match self {
            Self::AtStep(step) => step,
            Self::Never | Self::AfterNews(_) => 0,
        }
    }
}
