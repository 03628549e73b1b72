//! The program in a pseudo-terminal: a line is typed once the question for it is shown.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use pty_process::blocking::{Command, Pty};

use crate::fixture::{Folder, PROGRAM};

/// How long to wait for something to be shown: 2 minutes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program in a terminal. It is killed when this is dropped.
pub(crate) struct Typed {
    child: Child,
    pty: Arc<Pty>,
    parts: Receiver<Vec<u8>>,
    shown: String,
    seen: usize,
}

impl Typed {
    /// Starts the program with this home, in this folder.
    pub(crate) fn start(home: &Folder, folder: &Path, words: &[&str]) -> Self {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        let command = Command::new(PROGRAM)
            .args(words)
            .current_dir(folder)
            .env("HOME", home.path())
            .env("BOWLINE_DATA_DIR", home.path().join("data"))
            .env("NO_COLOR", "1")
            .env("TERM", "dumb")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("CODEX_HOME")
            .env_remove("RUST_LOG");
        let child = command.spawn(pts).unwrap();
        let pty = Arc::new(pty);
        let (sender, parts) = channel();
        let terminal = Arc::clone(&pty);
        thread::spawn(move || watch(&terminal, &sender));
        Self { child, pty, parts, shown: String::new(), seen: 0 }
    }

    /// Waits until this is shown, after what was waited for before.
    pub(crate) fn expect(&mut self, text: &str) {
        loop {
            if let Some(at) = self.shown[self.seen..].find(text) {
                self.seen += at + text.len();
                return;
            }
            let part = self.parts.recv_timeout(PATIENCE);
            let part = part.unwrap_or_else(|_| panic!("{text:?} is not shown:\n{}", self.shown));
            self.shown += &String::from_utf8_lossy(&part).replace('\r', "");
        }
    }

    pub(crate) fn enter(&self, line: &str) {
        (&*self.pty).write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Waits for the end; returns the exit code, and everything that was shown.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        while let Ok(part) = self.parts.recv_timeout(PATIENCE) {
            self.shown += &String::from_utf8_lossy(&part).replace('\r', "");
        }
        (self.child.wait().unwrap().code(), std::mem::take(&mut self.shown))
    }
}

impl Drop for Typed {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// Passes on what the program writes. A terminal without programs is an error to read.
fn watch(mut terminal: &Pty, sender: &Sender<Vec<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = terminal.read(&mut buffer) {
        if sender.send(buffer[..length].to_vec()).is_err() {
            return;
        }
    }
}
