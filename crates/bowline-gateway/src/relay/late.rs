//! Lines that arrive later, without keeping those behind them from being read.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::Flow;

/// The most bytes under way; more are not read meanwhile.
const MOST: usize = 16 << 20;

/// Lines under way, each with the time at which it arrives.
#[derive(Default)]
pub(super) struct Late {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
    /// Whether no more lines come, or nobody takes them.
    is_over: bool,
}

impl Late {
    /// Sends a line, once there is room. Whether anybody takes it.
    pub(super) fn send(&self, at: Instant, line: Vec<u8>) -> bool {
        let is_full = |state: &mut State| !state.is_over && state.bytes >= MOST;
        let waited = self.changed.wait_while(self.lock(), is_full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            return false;
        }
        state.bytes += line.len();
        state.lines.push_back((at, line));
        self.changed.notify_all();
        true
    }

    /// Sends no more lines; those under way still arrive.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Writes each line when its time has come, until they end or nobody reads.
    pub(super) fn deliver(&self, mut to: impl Write, flow: &Flow) {
        while let Some((at, line)) = self.next() {
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            let written = super::write(&mut to, &line);
            flow.give();
            if written.is_err() {
                self.end();
                while self.next().is_some() {
                    flow.give();
                }
                return;
            }
        }
    }

    fn next(&self) -> Option<(Instant, Vec<u8>)> {
        let is_empty = |state: &mut State| !state.is_over && state.lines.is_empty();
        let waited = self.changed.wait_while(self.lock(), is_empty);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let (at, line) = state.lines.pop_front()?;
        state.bytes -= line.len();
        self.changed.notify_all();
        Some((at, line))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_delay_does_not_limit_how_many_lines_pass() {
        const DELAY: Duration = Duration::from_secs(1);
        let flow = Flow::default();
        let (late, mut out) = (Late::default(), Vec::new());
        let begun = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| late.deliver(&mut out, &flow));
            for number in 0..100 {
                flow.take();
                assert!(late.send(Instant::now() + DELAY, format!("{number}\n").into_bytes()));
            }
            late.end();
        });
        let expected: String = (0..100).map(|number| format!("{number}\n")).collect();
        assert_eq!(out, expected.as_bytes());
        let took = begun.elapsed();
        // One after the other they would have taken a hundred seconds.
        assert!((DELAY..60 * DELAY).contains(&took), "{took:?}");
        assert!(flow.is_empty());
    }

    #[test]
    fn a_reader_that_is_gone_ends_the_delivery() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let (late, flow) = (Late::default(), Flow::default());
        flow.take();
        assert!(late.send(Instant::now(), vec![0; MOST]));
        std::thread::scope(|scope| {
            // There is no room until the delivery ends.
            flow.take();
            let waits = scope.spawn(|| late.send(Instant::now(), vec![0; MOST]));
            late.deliver(Gone, &flow);
            waits.join().unwrap();
        });
        assert!(!late.send(Instant::now(), Vec::new()));
    }
}
