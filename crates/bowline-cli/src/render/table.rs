//! Tables: columns as wide as their contents, cut to fit the terminal, except the first: it is what
//! people copy.

use crate::screen::{Paint, Screen, Style};
use crate::text::{cut, width};

/// A table for standard output, without empty columns. Cells must be safe for a terminal and on one
/// line.
pub(crate) fn render(head: &[&str], rows: Vec<Vec<String>>, screen: &Screen) -> String {
    let used = |at: usize| rows.iter().any(|row| !row[at].is_empty());
    let used: Vec<bool> = (0..head.len()).map(used).collect();
    let head: Vec<String> = head.iter().map(|&it| it.to_owned()).collect();
    let rows = std::iter::once(head).chain(rows);
    let rows = rows.map(|row| {
        let cells = row.into_iter().zip(&used);
        cells.filter(|(_, used)| **used).map(|(cell, _)| cell).collect()
    });
    render_rows(&rows.collect::<Vec<_>>(), screen.out, screen.columns)
}

/// The first row is the head.
fn render_rows(rows: &[Vec<String>], paint: Paint, columns: Option<usize>) -> String {
    let widths = widths(rows, columns);
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (at, (cell, &room)) in row.iter().zip(&widths).enumerate() {
            let shown = cut(cell, room.max(1));
            let gap = room.saturating_sub(width(&shown)) + 2;
            line += &match (number, at) {
                (0, _) => paint.paint(Style::Dim, &shown),
                (_, 0) => paint.paint(Style::Bold, &shown),
                _ => shown.into_owned(),
            };
            line.extend(std::iter::repeat_n(' ', gap));
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// As wide as the widest cell; in a narrow terminal, the widest columns after the first give way.
fn widths(rows: &[Vec<String>], columns: Option<usize>) -> Vec<usize> {
    const NARROWEST: usize = 8;
    let count = rows.first().map_or(0, Vec::len);
    let widest = |at: usize| rows.iter().map(|row| width(&row[at])).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..count).map(widest).collect();
    let Some(columns) = columns else { return widths };
    let gaps = 2 * widths.len().saturating_sub(1);
    loop {
        let all: usize = widths.iter().sum::<usize>() + gaps;
        match (1..widths.len()).max_by_key(|at| (widths[*at], *at)) {
            Some(at) if all > columns && widths[at] > NARROWEST => {
                widths[at] = NARROWEST.max(widths[at].saturating_sub(all - columns));
            }
            _ => return widths,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_fit_the_terminal() {
        let rows = [["NAME", "ABOUT"], ["one", "a long sentence about it"], ["another", "表"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let wide = render_rows(&rows, Paint(false), None);
        assert_eq!(wide, "NAME     ABOUT\none      a long sentence about it\nanother  表\n");
        let narrow = render_rows(&rows, Paint(false), Some(20));
        assert_eq!(narrow, "NAME     ABOUT\none      a long sen…\nanother  表\n");
        for line in render_rows(&rows, Paint(false), Some(4)).lines() {
            assert!(width(line) <= 7 + 2 + 8, "{line}");
        }
        let uris = [["URI", "NAME"], ["file:///a/very/long/path.txt", "a file"]];
        let uris = uris.map(|row| row.map(str::to_owned).to_vec());
        let narrow = render_rows(&uris, Paint(false), Some(20));
        assert!(narrow.contains("file:///a/very/long/path.txt  a file"), "{narrow}");
    }
}
