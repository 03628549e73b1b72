//! The bottom of the screen: a prompt with the line that is typed, drawn and erased again, so that
//! other output appears above it.

use unicode_width::UnicodeWidthChar;

/// What stands at the bottom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bottom {
    pub(crate) prompt: String,
    pub(crate) text: String,
    /// Where the cursor is in the text, in bytes.
    pub(crate) at: usize,
}

/// The size of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// Draws the bottom, and knows where it is.
#[derive(Debug, Default)]
pub(crate) struct Painter {
    /// The row of the cursor, from the first row that is drawn. `None`: nothing is drawn.
    cursor: Option<usize>,
}

impl Painter {
    /// Erases what is drawn.
    pub(crate) fn erase(&mut self, out: &mut String) {
        let Some(row) = self.cursor.take() else { return };
        if row > 0 {
            out.push_str(&format!("\x1b[{row}A"));
        }
        out.push_str("\r\x1b[J");
    }

    /// Leaves the bottom on the screen, and goes to the line after it.
    pub(crate) fn leave(&mut self, bottom: &Bottom, size: Size, out: &mut String) {
        self.erase(out);
        let end = Bottom { at: bottom.text.len(), ..bottom.clone() };
        self.draw(&end, size, out);
        self.cursor = None;
        out.push('\n');
    }

    /// The screen was cleared, or something else wrote on it.
    pub(crate) fn forget(&mut self) {
        self.cursor = None;
    }

    /// Draws the bottom. **Invariant:** nothing is drawn yet.
    pub(crate) fn draw(&mut self, bottom: &Bottom, size: Size, out: &mut String) {
        let columns = size.columns.max(4);
        let (text, at) = visible(bottom, columns * size.rows.max(2).saturating_sub(1));
        let mut place = Cursor { columns, row: 0, column: 0 };
        for letter in bottom.prompt.chars() {
            place.put(letter, out);
        }
        let mut cursor = (place.row, place.column);
        for (index, letter) in text.char_indices() {
            if index == at {
                cursor = (place.row, place.column);
            }
            place.put(letter, out);
        }
        if at == text.len() {
            cursor = (place.row, place.column);
        }
        // A full row leaves the cursor on it until something follows.
        if place.column == columns {
            out.push_str(" \r\x1b[K");
            place.row += 1;
        }
        let (mut row, mut column) = cursor;
        if column >= columns {
            (row, column) = (row + 1, 0);
        }
        if place.row > row {
            out.push_str(&format!("\x1b[{}A", place.row - row));
        }
        out.push('\r');
        if column > 0 {
            out.push_str(&format!("\x1b[{column}C"));
        }
        self.cursor = Some(row);
    }
}

/// Where the next character goes.
struct Cursor {
    columns: usize,
    row: usize,
    column: usize,
}

impl Cursor {
    fn put(&mut self, letter: char, out: &mut String) {
        if letter.is_control() {
            let caret = u8::try_from(u32::from(letter)).unwrap_or(b'?');
            self.put('^', out);
            return self.put(char::from((caret ^ 0x40) & 0x7f), out);
        }
        let width = letter.width().unwrap_or(0);
        if self.column + width > self.columns {
            // The terminal does the same.
            self.row += 1;
            self.column = 0;
        }
        self.column += width;
        out.push(letter);
    }
}

/// The part around the cursor of a line that is too long for the screen.
fn visible(bottom: &Bottom, cells: usize) -> (String, usize) {
    let room = cells.saturating_sub(bottom.prompt.chars().count() + 2) / 2;
    let Bottom { text, at, .. } = bottom;
    if text.len() <= room {
        return (text.clone(), *at);
    }
    let before: Vec<char> = text[..*at].chars().rev().take(room * 3 / 4).collect();
    let left: String = before.into_iter().rev().collect();
    let right: String = text[*at..].chars().take(room / 4).collect();
    let cut = if left.len() < *at { "…" } else { "" };
    let more = if left.len() + right.len() < text.len() && *at + right.len() < text.len() {
        "…"
    } else {
        ""
    };
    let at = cut.len() + left.len();
    (format!("{cut}{left}{right}{more}"), at)
}

#[cfg(test)]
#[path = "paint/tests.rs"]
mod tests;
