//! The program in a pseudo-terminal: keys in, a screen out. Waits for what is shown, never for a
//! fixed time.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use pty_process::Size;
use pty_process::blocking::{Command, Pty};

use super::PROGRAM;

/// How long to wait for something to be shown: 2 minutes.
const PATIENCE: Duration = Duration::from_secs(120);

const ROWS: u16 = 40;
const COLUMNS: u16 = 100;

/// A program in a terminal. It is killed when this is dropped.
pub(crate) struct Terminal {
    child: Child,
    pty: Arc<Pty>,
    shown: Arc<Shown>,
}

/// What the terminal shows.
struct Shown {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    parser: vt100::Parser,
    /// Bytes that are not text yet.
    raw: Vec<u8>,
    /// Everything that was written, as text, and how much of it was matched. A sequence that erases
    /// the bottom of the screen begins a new line.
    written: String,
    seen: usize,
    is_over: bool,
}

impl Terminal {
    /// Starts `bowline debug`, with a state folder of its own.
    pub(crate) fn start(arguments: &[&str], home: &Home) -> Self {
        let words: Vec<&str> = ["debug"].iter().chain(arguments).copied().collect();
        Self::open(&words, home, (ROWS, COLUMNS))
    }

    /// Starts the program in a terminal of so many rows and columns.
    pub(crate) fn open(words: &[&str], home: &Home, (rows, columns): (u16, u16)) -> Self {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(Size::new(rows, columns)).unwrap();
        let child = Command::new(PROGRAM)
            .args(words)
            .current_dir(&home.0)
            .env("BOWLINE_RUNTIME_DIR", home.0.join("r"))
            .env("TERM", "xterm-256color")
            .env("NO_COLOR", "1")
            .env("HOME", &home.0)
            .env("XDG_STATE_HOME", home.0.join("state"))
            // What a shell exported long ago; the terminal knows better.
            .env("COLUMNS", "300")
            .env_remove("RUST_LOG")
            .spawn(pts)
            .unwrap();
        let (rows, columns) = (rows.try_into().unwrap(), columns.try_into().unwrap());
        let parser = vt100::Parser::new(rows, columns, 0);
        let state =
            State { parser, raw: Vec::new(), written: String::new(), seen: 0, is_over: false };
        let shown = Arc::new(Shown { state: Mutex::new(state), changed: Condvar::new() });
        let pty = Arc::new(pty);
        thread::spawn({
            let (pty, shown) = (Arc::clone(&pty), Arc::clone(&shown));
            move || watch(&pty, &shown)
        });
        Self { child, pty, shown }
    }

    /// Presses keys.
    pub(crate) fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the width of the terminal. The screen that the test sees keeps its width.
    pub(crate) fn resize(&self, columns: u16) {
        self.pty.resize(Size::new(ROWS, columns)).unwrap();
    }

    /// Types a line.
    pub(crate) fn enter(&self, line: &str) {
        self.press(&format!("{line}\r"));
    }

    /// Waits until text is written, after the last match.
    pub(crate) fn expect(&self, text: &str) {
        self.wait(text, |state| {
            let found = state.written[state.seen..].find(text);
            state.seen += found.map_or(0, |found| found + text.len());
            found.is_some()
        });
    }

    /// Waits until the last row that is not empty is this.
    pub(crate) fn expect_last_row(&self, text: &str) {
        self.wait(text, |state| last_row(state) == text);
    }

    /// Waits until text is on the screen.
    pub(crate) fn expect_shown(&self, text: &str) {
        self.wait(text, |state| state.parser.screen().contents().contains(text));
    }

    /// Waits until text is no longer on the screen.
    pub(crate) fn expect_gone(&self, text: &str) {
        self.wait(text, |state| !state.parser.screen().contents().contains(text));
    }

    /// Types a line and waits for its output.
    pub(crate) fn check(&self, line: &str, expected: &str) {
        self.enter(line);
        self.expect(expected);
    }

    /// Waits for the end; returns the exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.wait("the end", |state| state.is_over);
        self.child.wait().unwrap().code()
    }

    /// The contents of the screen.
    pub(crate) fn screen(&self) -> String {
        self.shown.state.lock().unwrap().parser.screen().contents()
    }

    fn wait(&self, what: &str, mut is_shown: impl FnMut(&mut State) -> bool) {
        let mut was_shown = false;
        let state = self.shown.state.lock().unwrap();
        let waited = self.shown.changed.wait_timeout_while(state, PATIENCE, |state| {
            was_shown = is_shown(state);
            !was_shown && !state.is_over
        });
        let (state, timeout) = waited.unwrap();
        let screen = state.parser.screen().contents();
        let is_over = state.is_over;
        drop(state);
        assert!(!timeout.timed_out(), "{what:?} is not shown:\n{screen}");
        assert!(was_shown, "it ended ({is_over}) without {what:?}:\n{screen}");
    }
}

fn last_row(state: &State) -> String {
    let screen = state.parser.screen();
    let rows = screen.rows(0, COLUMNS).map(|row| row.trim_end().to_owned());
    rows.filter(|row| !row.is_empty()).last().unwrap_or_default()
}

/// Reads what the program writes until it ends.
fn watch(pty: &Pty, shown: &Shown) {
    let mut buffer = [0; 4096];
    loop {
        let read = { pty }.read(&mut buffer);
        let mut state = shown.state.lock().unwrap();
        match read {
            Ok(length @ 1..) => {
                let bytes = &buffer[..length];
                state.parser.process(bytes);
                state.raw.extend_from_slice(bytes);
                let text = take_text(&mut state.raw);
                state.written.push_str(&text);
            }
            // Linux returns an error once no process has the terminal open.
            Ok(0) | Err(_) => state.is_over = true,
        }
        shown.changed.notify_all();
        if state.is_over {
            return;
        }
    }
}

/// Takes out complete text, without escape sequences.
fn take_text(raw: &mut Vec<u8>) -> String {
    let mut text = Vec::new();
    let mut used = 0;
    while let Some(byte) = raw.get(used) {
        match *byte {
            0x1b => {
                let Some(end) = raw[used + 1..].iter().position(u8::is_ascii_alphabetic) else {
                    break;
                };
                if raw[used + 1 + end] == b'J' && text.last() != Some(&b'\n') {
                    text.push(b'\n');
                }
                used += end + 2;
                continue;
            }
            b'\r' => {}
            other => text.push(other),
        }
        used += 1;
    }
    // An incomplete character stays.
    while used > 0 && text.last().is_some_and(|last| !last.is_ascii()) {
        if std::str::from_utf8(&text).is_ok() {
            break;
        }
        text.pop();
        used -= 1;
    }
    raw.drain(..used);
    String::from_utf8_lossy(&text).into_owned()
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A home folder, removed when this is dropped.
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bowline-debug-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
