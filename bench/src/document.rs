//! `docs/performance.md`: a page whose sections are replaced one by one.

use std::fs;

use crate::machine;
use crate::peers::BUILD;

/// What one part found out.
pub(crate) struct Section {
    pub(crate) text: String,
    /// Plots, by file name.
    pub(crate) plots: Vec<(String, String)>,
}

impl Section {
    pub(crate) fn new(text: String) -> Self {
        Self { text, plots: Vec::new() }
    }
}

/// The page, with what it said before.
pub(crate) struct Document {
    folder: String,
    sections: Vec<(String, String)>,
}

const OPENING: &str = "\
# Performance

Written by `cargo xtask bench`; `cargo xtask bench PART` measures one section anew, `--quick` takes
less than five minutes and writes to `target/bench` instead.

How it measures: programs are built as they are released (fat LTO, one codegen unit, the system's
allocator, no `target-cpu`) and run with default settings; `crates/bowline/examples/probe.rs` is the
server, `bench/src/drive.rs` the client. Everything runs on one machine, over pipes and loopback. The
load generator is one thread that does not block: over stdio it keeps a window of calls in flight,
over HTTP one call on each of a number of connections that stay open. It checks every answer for its
id and its payload. One call at a time shares a core between the two sides; of more, the load has the
last core and the server the others, and clients and their servers are where the scheduler puts them.
After a warm-up it calls for a span of time, and takes the CPU time and memory of the measured process
from the kernel. In a round everybody is measured once, one after the other;
ratios are taken within a round, before their median. `rmcp` is the official Rust SDK, version 3.8.0
(`bench/rmcp`): *default* as its documentation shows it, *tuned* on one thread, with non-blocking
pipes, plain JSON answers where it can, and connections that are used again. Times depend on the
machine and what else it does; ratios less so; instructions, counted by callgrind, hardly at all.
";

impl Document {
    /// Reads the page. Quick figures go elsewhere, so that they do not replace good ones.
    pub(crate) fn open(is_quick: bool, names: &[&str]) -> Result<Self, String> {
        let folder = if is_quick { BUILD } else { "docs" }.to_owned();
        fs::create_dir_all(format!("{folder}/performance"))
            .map_err(|error| format!("{folder}: {error}"))?;
        let text = fs::read_to_string(format!("{folder}/performance.md")).unwrap_or_default();
        let before = names.iter().map(|name| ((*name).to_owned(), section(&text, name)));
        Ok(Self { sections: before.collect(), folder })
    }

    pub(crate) fn path(&self) -> String {
        format!("{}/performance.md", self.folder)
    }

    /// Replaces a section, and writes the page.
    pub(crate) fn put(&mut self, name: &str, title: &str, new: &Section) -> Result<(), String> {
        for (file, svg) in &new.plots {
            let path = format!("{}/performance/{file}", self.folder);
            fs::write(&path, svg).map_err(|error| format!("{path}: {error}"))?;
        }
        let body = new.text.trim_end();
        let text = format!("\n## {title}\n\n{}.\n\n{body}\n", machine::describe());
        for (known, section) in &mut self.sections {
            if known == name {
                section.clone_from(&text);
            }
        }
        let path = self.path();
        fs::write(&path, self.page()).map_err(|error| format!("{path}: {error}"))
    }

    fn page(&self) -> String {
        let mut page = OPENING.to_owned();
        for (name, text) in self.sections.iter().filter(|(_, text)| !text.is_empty()) {
            page += &format!("\n{}{text}{}\n", begin(name), end(name));
        }
        page
    }
}

fn begin(name: &str) -> String {
    format!("<!-- {name} -->\n")
}

fn end(name: &str) -> String {
    format!("\n<!-- end of {name} -->")
}

fn section(page: &str, name: &str) -> String {
    let found = page.split_once(&begin(name)).and_then(|(_, rest)| rest.split_once(&end(name)));
    found.map(|(text, _)| text.to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_found_again() {
        let sections = vec![("a".to_owned(), "\n## A\n\none\n".to_owned())];
        let document = Document { folder: String::new(), sections };
        let page = document.page();
        assert_eq!(section(&page, "a"), "\n## A\n\none\n");
        assert_eq!(section(&page, "b"), "");
    }
}
