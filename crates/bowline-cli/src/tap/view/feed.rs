//! Finds taps, those that run already and those that start, and reads what they say.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use bowline_gateway::hub;
use bowline_gateway::session_file::Line;

/// How often to look for new taps.
const LOOK: Duration = Duration::from_millis(200);
/// The most lines that wait to be shown.
const WAITING: usize = 4_096;

/// Something about a tap, which goes by a number.
pub(super) enum Heard {
    Line(u64, Box<Line>),
    Gone(u64),
}

pub(super) struct Feed(Receiver<Heard>);

impl Feed {
    /// Looks for taps in a folder from now on.
    ///
    /// # Errors
    /// When the folder belongs to another user.
    pub(super) fn start(folder: PathBuf) -> std::io::Result<Self> {
        hub::running(&folder)?;
        let (tell, heard) = sync_channel(WAITING);
        thread::Builder::new().name("hub".to_owned()).spawn(move || look(&folder, &tell))?;
        Ok(Self(heard))
    }

    /// What comes next, unless nothing comes in time.
    pub(super) fn next(&self, patience: Duration) -> Option<Heard> {
        self.0.recv_timeout(patience).ok()
    }
}

fn look(folder: &Path, tell: &SyncSender<Heard>) {
    let mut known = HashSet::new();
    let mut number = 0;
    loop {
        let sockets = hub::running(folder).unwrap_or_default();
        // A process may get the number of one that has ended.
        known.retain(|path| sockets.contains(path));
        for path in sockets {
            if known.contains(&path) {
                continue;
            }
            if let Ok(Some(stream)) = hub::connect(&path) {
                known.insert(path);
                number += 1;
                let tell = tell.clone();
                thread::spawn(move || read(number, stream, &tell));
            }
        }
        thread::sleep(LOOK);
    }
}

fn read(tap: u64, stream: impl std::io::Read, tell: &SyncSender<Heard>) {
    for text in BufReader::new(stream).lines() {
        let Ok(text) = text else { break };
        let Ok(line) = serde_json::from_str::<Line>(&text) else { continue };
        if tell.send(Heard::Line(tap, Box::new(line))).is_err() {
            return;
        }
    }
    // If the view is over, nobody wants to know.
    let _ = tell.send(Heard::Gone(tap));
}
