//! The progress of a call: one line of a terminal, redrawn in place.

use std::io::{self, Write};

use crate::text::cut;

#[derive(Debug, Default)]
pub(super) struct Bar {
    is_terminal: bool,
    is_shown: bool,
    /// The last line that was written where there is no terminal to draw in.
    said: String,
}

const LENGTH: usize = 24;

impl Bar {
    pub(super) fn new(is_terminal: bool) -> Self {
        Self { is_terminal, ..Self::default() }
    }

    /// Draws it; without a terminal, writes a line whenever it changes.
    pub(super) fn show(&mut self, done: f64, total: Option<f64>, message: &str, columns: usize) {
        if !self.is_terminal {
            let text = format!("progress │ {}\n", words(done, total, message));
            if text != self.said {
                let _ = io::stderr().write_all(text.as_bytes());
                self.said = text;
            }
            return;
        }
        let text = drawn(done, total, message, columns);
        let _ = write!(io::stderr(), "\r\u{1b}[K{text}");
        self.is_shown = true;
    }

    /// Erases it, so that something else can be written.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

/// Progress in words.
pub(crate) fn words(done: f64, total: Option<f64>, message: &str) -> String {
    let total = total.map(|total| format!("/{total}")).unwrap_or_default();
    let gap = if message.is_empty() { "" } else { " " };
    format!("{done}{total}{gap}{message}")
}

fn drawn(done: f64, total: Option<f64>, message: &str, columns: usize) -> String {
    let text = match total.filter(|total| *total > 0.0) {
        None => words(done, total, message),
        Some(total) => {
            let part = (done / total).clamp(0.0, 1.0);
            let eighths = eighths(part);
            let full = "█".repeat(eighths / 8);
            let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
            let (bar, percent) = (full + rest, part * 100.0);
            format!("{bar:LENGTH$} {percent:3.0}% {}", words(done, Some(total), message))
        }
    };
    cut(&text, columns.saturating_sub(1)).into_owned()
}

/// The filled part of the bar, in eighths of a column.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a fraction of a small number"
)]
fn eighths(part: f64) -> usize {
    (part * (LENGTH * 8) as f64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::width;

    #[test]
    fn a_bar_shows_the_part_and_fits() {
        let half = drawn(1.0, Some(2.0), "halfway", 80);
        assert_eq!(half, format!("{}{}  50% 1/2 halfway", "█".repeat(12), " ".repeat(12)));
        assert!(width(&drawn(1.0, Some(2.0), "a long message that does not fit", 40)) < 40);
        assert_eq!(drawn(3.0, None, "", 80), "3");
        assert!(drawn(9.0, Some(2.0), "", 80).contains("100%"));
        assert!(drawn(f64::NAN, Some(2.0), "", 80).contains("NaN"));
    }
}
