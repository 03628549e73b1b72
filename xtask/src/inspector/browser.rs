//! Measures the page of `bowline inspect` and that of MCP Inspector in the same browser.

use super::ask::Asker;
use super::page::{figure, table};
use super::{INSPECTOR, ROUNDS, absolute};
use crate::browser;
use crate::process::{Ran, run};

/// What explores the counter, and its command line.
const PAGES: [(&str, &[&str]); 2] = [
    (
        "bowline",
        &["bowline", "inspect", "--port", "0", "--no-browser", "--", "bowline", "serve", "counter"],
    ),
    ("inspector", &["mcp-inspector", "bowline", "serve", "counter"]),
];

/// A figure among the lines of the script's output.
fn value(output: &str, name: &str) -> Option<f64> {
    let mut lines = output.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(of, _)| *of == name).and_then(|(_, value)| value.parse().ok())
}

/// A row: what was measured, its name in the script's output, and its unit.
const ROWS: [(&str, &str, Unit); 7] = [
    ("from a cold start to the first answer of a tool, by mouse", "call", Unit::Milliseconds),
    ("first contentful paint", "paint", Unit::Milliseconds),
    ("page weight, uncompressed", "weight", Unit::Kilobytes),
    ("foreign hosts that the page asks", "foreign", Unit::Count),
    ("memory of the program, without the server", "memory", Unit::Megabytes),
    ("longest frame while 100,000 messages scroll", "frame", Unit::Milliseconds),
    ("a search in 5,000 tools", "filter", Unit::Milliseconds),
];

#[derive(Clone, Copy)]
enum Unit {
    Milliseconds,
    Kilobytes,
    Megabytes,
    Count,
}

impl Unit {
    fn show(self, value: Option<f64>) -> String {
        match (self, value) {
            (_, None) => "–".to_owned(),
            (Self::Milliseconds, Some(it)) => format!("{} ms", figure(it)),
            (Self::Kilobytes, Some(it)) => format!("{:.0} KB", it / 1e3),
            (Self::Megabytes, Some(it)) => format!("{:.0} MB", it / 1e6),
            (Self::Count, Some(it)) => format!("{it:.0}"),
        }
    }
}

/// The table, with how it came about.
pub(super) fn measure(asker: &Asker, about: &str) -> Result<String, String> {
    browser::install()?;
    let script = absolute(&format!("{}/figures.mjs", browser::PLACE))?;
    let (script, rounds) = (script.to_string_lossy(), ROUNDS.to_string());
    let mut found = Vec::new();
    for (kind, line) in PAGES {
        let words = [&[&*script, browser::PROGRAM, kind, rounds.as_str()], line].concat();
        let Ran { ok, output } = run(asker.command("node", &words));
        if !ok {
            return Err(output);
        }
        found.push(output);
    }
    let rows: Vec<Vec<String>> = ROWS
        .iter()
        .map(|(title, name, unit)| {
            let cells = found.iter().map(|figures| unit.show(value(figures, name)));
            std::iter::once((*title).to_owned()).chain(cells).collect()
        })
        .collect();
    let heading =
        ["".to_owned(), "`bowline inspect`".to_owned(), format!("Inspector {} web", INSPECTOR.1)];
    Ok(format!("{about} In Debian's Chromium.\n\n{}", table(&heading, &rows)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_name() {
        let output = "$ node figures.mjs\ncall 812.5\nmemory 18000000\npaint NaN\n";
        assert_eq!(value(output, "call"), Some(812.5));
        assert_eq!(value(output, "frame"), None);
        assert_eq!(Unit::Megabytes.show(value(output, "memory")), "18 MB");
        assert_eq!(Unit::Milliseconds.show(None), "–");
    }
}
