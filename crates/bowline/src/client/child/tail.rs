//! The last lines of a child's standard error.
//!
//! Always drained: a child whose standard error is full would hang.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;

use crate::client::notification::OnStderr;
use crate::client::shared::{guarded, lock};

/// The last lines. Cheap to clone; clones share them.
#[derive(Debug, Clone)]
pub(super) struct Tail {
    lines: Arc<Mutex<VecDeque<String>>>,
    most_lines: usize,
    most_bytes: usize,
}

impl Tail {
    pub(super) fn new(most_lines: usize, most_bytes: usize) -> Self {
        Self { lines: Arc::default(), most_lines, most_bytes }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        lock(&self.lines).iter().cloned().collect()
    }

    /// Reads until the end.
    pub(super) async fn drain(
        self,
        mut stderr: ChildStderr,
        program: String,
        hook: Option<OnStderr>,
    ) {
        let mut chunk = vec![0; 64 << 10];
        let mut line = Vec::new();
        while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
            for piece in chunk[..count].split_inclusive(|byte| *byte == b'\n') {
                let room = self.most_bytes.saturating_sub(line.len());
                line.extend_from_slice(&piece[..piece.len().min(room)]);
                if piece.ends_with(b"\n") {
                    self.close(&mut line, &program, hook.as_ref());
                }
            }
        }
        if !line.is_empty() {
            self.close(&mut line, &program, hook.as_ref());
        }
    }

    fn close(&self, line: &mut Vec<u8>, program: &str, hook: Option<&OnStderr>) {
        let text = String::from_utf8_lossy(line).trim_end().to_owned();
        line.clear();
        tracing::debug!(target: "bowline::stderr", program, "{text}");
        if let Some(hook) = hook {
            guarded(|| hook(&text));
        }
        let mut lines = lock(&self.lines);
        if lines.len() >= self.most_lines {
            lines.pop_front();
        }
        if self.most_lines > 0 {
            lines.push_back(text);
        }
    }
}
