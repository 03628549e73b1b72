//! `docs/inspector.md`: prose, and generated tables between marks.

use std::fs;

pub(super) const PATH: &str = "docs/inspector.md";

/// Replaces the text between the marks with this name.
pub(super) fn put(name: &str, text: &str) -> Result<(), String> {
    let page = fs::read_to_string(PATH).map_err(|error| format!("{PATH}: {error}"))?;
    let page = replaced(&page, name, text)
        .ok_or_else(|| format!("{PATH} has no `<!-- {name} -->` with an end"))?;
    fs::write(PATH, page).map_err(|error| format!("{PATH}: {error}"))
}

fn replaced(page: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{}\n\n{end}{after}", text.trim()))
}

/// A table in Markdown.
pub(super) fn table<S: AsRef<str>>(heading: &[S], rows: &[Vec<String>]) -> String {
    let row = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let head = row(heading.iter().map(AsRef::as_ref).collect());
    let rule = format!("|{}\n", "---|".repeat(heading.len()));
    let rows = rows.iter().map(|cells| row(cells.iter().map(String::as_str).collect()));
    format!("{head}{rule}{}", rows.collect::<String>())
}

/// A figure with two significant digits at least.
pub(super) fn figure(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_stays_as_it_is() {
        let page = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n";
        let new = replaced(page, "x", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- x -->\n\nnew\n\n<!-- end of x -->\nb\n");
        assert_eq!(replaced(&new, "x", "new").as_ref(), Some(&new));
        assert_eq!(replaced(page, "y", "new"), None);
    }

    #[test]
    fn a_table_is_markdown() {
        let rows = [vec!["1".to_owned(), "2".to_owned()]];
        assert_eq!(table(&["a", "b"], &rows), "| a | b |\n|---|---|\n| 1 | 2 |\n");
        assert_eq!((figure(9.94), figure(10.4)), ("9.9".to_owned(), "10".to_owned()));
    }
}
