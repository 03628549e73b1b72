//! The terminal: raw mode while a session runs, its keys as they are typed, its size.

use std::io::{self, Read, Write};

use tokio::sync::mpsc;

use super::paint::Size;

/// Chunks of keys that wait to be looked at: 64. More stay in the terminal.
const MOST_CHUNKS: usize = 64;

/// Marks pasted text as such.
const PASTE_ON: &str = "\x1b[?2004h";
const PASTE_OFF: &str = "\x1b[?2004l";

/// A terminal in raw mode. It is itself again when this is dropped.
#[derive(Debug)]
pub(crate) struct Terminal {
    #[cfg(unix)]
    before: rustix::termios::Termios,
}

impl Terminal {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// When standard input is none.
    pub(crate) fn open() -> io::Result<Self> {
        #[cfg(unix)]
        {
            let before = rustix::termios::tcgetattr(io::stdin())?;
            let terminal = Self { before };
            terminal.enter()?;
            Ok(terminal)
        }
        #[cfg(not(unix))]
        Err(io::Error::other("line editing needs a Unix terminal; use --no-interactive"))
    }

    /// Every key as it is pressed, and none of them a signal. Output is left as it was, so that
    /// a line break still goes to the first column.
    #[cfg(unix)]
    fn enter(&self) -> io::Result<()> {
        use rustix::termios::{OptionalActions, OutputModes, tcsetattr};
        let mut raw = self.before.clone();
        raw.make_raw();
        raw.output_modes |= self.before.output_modes & OutputModes::all();
        tcsetattr(io::stdin(), OptionalActions::Drain, &raw)?;
        write(PASTE_ON);
        Ok(())
    }

    #[cfg(unix)]
    fn leave(&self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        write(PASTE_OFF);
        // Nothing better can be done on the way out.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.before);
    }

    /// Stops this process as Ctrl-Z does elsewhere, and goes on when the shell says so.
    pub(crate) fn suspend(&self) {
        #[cfg(unix)]
        {
            use rustix::process::{Signal, kill_current_process_group};
            self.leave();
            let _ = kill_current_process_group(Signal::TSTP);
            let _ = self.enter();
        }
    }

    /// How big it is.
    pub(crate) fn size() -> Size {
        #[cfg(unix)]
        if let Ok(found) = rustix::termios::tcgetwinsize(io::stderr())
            && found.ws_col > 0
            && found.ws_row > 0
        {
            return Size { columns: found.ws_col.into(), rows: found.ws_row.into() };
        }
        Size { columns: 80, rows: 24 }
    }

    /// What is typed. The thread that reads ends with the process: nothing else can wake it.
    pub(crate) fn keys() -> mpsc::Receiver<Vec<u8>> {
        let (sink, keys) = mpsc::channel(MOST_CHUNKS);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                match io::stdin().read(&mut buffer) {
                    Ok(0) => return,
                    Ok(length) if sink.blocking_send(buffer[..length].to_vec()).is_err() => return,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        });
        keys
    }
}

#[cfg(unix)]
impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Writes to the terminal.
pub(crate) fn write(text: &str) {
    let mut out = io::stderr().lock();
    // A terminal that is gone will end the session by its own means.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
