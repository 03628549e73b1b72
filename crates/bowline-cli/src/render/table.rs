//! Tables: columns as wide as what is in them, the last one cut to the terminal.

use crate::screen::{Paint, Screen, Style};
use crate::text::{cut, width};

/// Rows of cells, each on one line.
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row. Its cells must be safe and on one line.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The whole, for standard output. Columns with nothing in them are left out.
    pub(crate) fn render(mut self, screen: &Screen) -> String {
        for at in (0..self.head.len()).rev() {
            if self.rows.iter().all(|row| row.get(at).is_none_or(String::is_empty)) {
                self.head.remove(at);
                for row in self.rows.iter_mut().filter(|row| at < row.len()) {
                    row.remove(at);
                }
            }
        }
        self.render_with(screen.out, screen.columns)
    }

    fn render_with(&self, paint: Paint, columns: Option<usize>) -> String {
        let widths = self.widths(columns);
        let mut text = String::new();
        let head: Vec<String> = self.head.iter().map(|it| (*it).to_owned()).collect();
        let rows = std::iter::once(&head).chain(&self.rows);
        for (number, row) in rows.enumerate() {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let room = widths.get(at).copied().unwrap_or(0);
                let shown = cut(cell, room.max(1)).into_owned();
                let is_last = at + 1 == row.len();
                let gap = if is_last { 0 } else { room - width(&shown).min(room) + 2 };
                let style = match (number, at) {
                    (0, _) => Some(Style::Dim),
                    (_, 0) => Some(Style::Bold),
                    _ => None,
                };
                line += &style.map_or_else(|| shown.clone(), |style| paint.paint(style, &shown));
                line.extend(std::iter::repeat_n(' ', gap));
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }

    /// As wide as the widest cell; in a narrow terminal, the widest columns give way.
    fn widths(&self, columns: Option<usize>) -> Vec<usize> {
        const NARROWEST: usize = 8;
        let mut widths: Vec<usize> = self.head.iter().map(|it| width(it)).collect();
        for row in &self.rows {
            for (at, cell) in row.iter().enumerate() {
                widths[at] = widths[at].max(width(cell));
            }
        }
        let Some(columns) = columns else { return widths };
        let gaps = 2 * widths.len().saturating_sub(1);
        loop {
            let all: usize = widths.iter().sum::<usize>() + gaps;
            let widest = (0..widths.len()).max_by_key(|at| (widths[*at], *at));
            match widest {
                Some(at) if all > columns && widths[at] > NARROWEST => {
                    widths[at] = NARROWEST.max(widths[at].saturating_sub(all - columns));
                }
                _ => return widths,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_fit_the_terminal() {
        let mut table = Table::new(&["NAME", "ABOUT"]);
        table.row(["one".to_owned(), "a long sentence about it".to_owned()]);
        table.row(["another".to_owned(), "表".to_owned()]);
        let wide = table.render_with(Paint(false), None);
        assert_eq!(wide, "NAME     ABOUT\none      a long sentence about it\nanother  表\n");
        let narrow = table.render_with(Paint(false), Some(20));
        assert_eq!(narrow, "NAME     ABOUT\none      a long sen…\nanother  表\n");
        for line in table.render_with(Paint(false), Some(4)).lines() {
            assert!(width(line) <= 8 + 2 + 8, "{line}");
        }
    }
}
