//! The terminal: raw mode while a session runs, and what is typed.

use std::io::{self, Write};

use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste};
use crossterm::{execute, terminal};
use tokio::sync::mpsc;

use super::paint::Size;

/// Events that wait to be handled: 64. More stay in the terminal.
const MOST_EVENTS: usize = 64;

/// A terminal in raw mode, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Terminal;

impl Terminal {
    /// Takes over the terminal.
    ///
    /// # Errors
    /// When standard input is not a terminal.
    pub(crate) fn open() -> io::Result<Self> {
        Self::enter()?;
        Ok(Self)
    }

    fn enter() -> io::Result<()> {
        terminal::enable_raw_mode()?;
        // A terminal without it pastes text key by key.
        let _ = execute!(io::stderr(), EnableBracketedPaste);
        // Old consoles of Windows obey escape sequences only when asked to.
        #[cfg(windows)]
        crossterm::ansi_support::supports_ansi();
        Ok(())
    }

    fn leave() {
        let _ = execute!(io::stderr(), DisableBracketedPaste);
        let _ = terminal::disable_raw_mode();
    }

    /// Stops this process as Ctrl-Z does elsewhere, until the shell continues it.
    pub(crate) fn suspend() {
        #[cfg(unix)]
        {
            use rustix::process::{Signal, kill_current_process_group};
            Self::leave();
            let _ = kill_current_process_group(Signal::TSTP);
            let _ = Self::enter();
        }
    }

    pub(crate) fn size() -> Size {
        match terminal::size() {
            Ok((columns @ 1.., rows @ 1..)) => Size { columns: columns.into(), rows: rows.into() },
            _ => Size { columns: 80, rows: 24 },
        }
    }

    /// What is typed. Read by a thread of its own, since a read blocks in the middle of a key, and
    /// never returns once the terminal is gone. The thread ends with the process.
    pub(crate) fn events() -> mpsc::Receiver<event::Event> {
        let (sink, events) = mpsc::channel(MOST_EVENTS);
        std::thread::spawn(move || {
            while let Ok(event) = event::read() {
                if sink.blocking_send(event).is_err() {
                    return;
                }
            }
        });
        events
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        Self::leave();
    }
}

/// Writes to the terminal. In raw mode a line feed does not return to the first column.
pub(crate) fn write(text: &str) {
    let mut out = io::stderr().lock();
    // If the terminal is gone, the session ends by a signal.
    let _ = out.write_all(text.replace('\n', "\r\n").as_bytes()).and_then(|()| out.flush());
}
