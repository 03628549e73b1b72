//! The viewers of a tap. One that does not read loses lines, and slows nothing down.

use std::io::{ErrorKind, Write};

use super::ViewerStream;
use crate::session_file::{Line, LineKind};

/// The most viewers of one tap.
const VIEWERS: usize = 4;
/// The most bytes that wait for one viewer, beside the past.
const WAITING: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Viewers {
    all: Vec<Viewer>,
}

struct Viewer {
    stream: ViewerStream,
    waiting: Vec<u8>,
    /// How much of `waiting` is written.
    written: usize,
    lost: u64,
}

impl Viewers {
    /// Adds a viewer that first receives `past`. One too many replaces the oldest.
    pub(super) fn add(&mut self, stream: ViewerStream, past: Vec<u8>) {
        if self.all.len() >= VIEWERS {
            self.all.remove(0);
        }
        self.all.push(Viewer { stream, waiting: past, written: 0, lost: 0 });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether something waits to be written.
    pub(super) fn are_behind(&self) -> bool {
        self.all.iter().any(|viewer| viewer.written < viewer.waiting.len())
    }

    pub(super) fn push(&mut self, text: &[u8]) {
        for viewer in &mut self.all {
            viewer.push(text);
        }
    }

    /// Writes what can be written; drops viewers that are gone.
    pub(super) fn flush(&mut self) {
        self.all.retain_mut(Viewer::flush);
    }
}

impl Viewer {
    fn push(&mut self, text: &[u8]) {
        if self.waiting.len() - self.written + text.len() > WAITING {
            self.lost += 1;
            return;
        }
        if self.lost > 0 {
            let length = Some(std::mem::take(&mut self.lost));
            let line = Line { kind: LineKind::Lost, length, ..Line::default() };
            self.waiting.extend(line.encode().unwrap_or_default());
        }
        self.waiting.extend_from_slice(text);
    }

    /// Whether the viewer is still there.
    fn flush(&mut self) -> bool {
        while self.written < self.waiting.len() {
            match self.stream.write(&self.waiting[self.written..]) {
                Ok(0) => return false,
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        self.waiting.drain(..self.written);
        self.written = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Takes so many bytes, and then none until there is room again.
    #[derive(Clone, Default)]
    struct Stalled(Arc<Mutex<(usize, Vec<u8>)>>);

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (room, taken) = &mut *self.0.lock().unwrap();
            let count = bytes.len().min(*room);
            if count == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            *room -= count;
            taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stalled_viewer_loses_whole_lines_and_is_told() {
        let stalled = Stalled::default();
        let mut viewers = Viewers::default();
        viewers.add(Box::new(stalled.clone()), b"past\n".to_vec());
        let line = [vec![b'x'; WAITING / 2], vec![b'\n']].concat();
        for _ in 0..4 {
            viewers.push(&line);
            viewers.flush();
        }
        assert!(viewers.are_behind());
        stalled.0.lock().unwrap().0 = usize::MAX;
        viewers.flush();
        viewers.push(b"next\n");
        viewers.flush();
        let taken = String::from_utf8(stalled.0.lock().unwrap().1.clone()).unwrap();
        let lines: Vec<&str> = taken.lines().collect();
        assert_eq!(lines.len(), 4);
        assert_eq!((lines[0], lines[3]), ("past", "next"));
        assert_eq!(lines[2], r#"{"kind":"lost","at":0.0,"length":3}"#);
    }
}
