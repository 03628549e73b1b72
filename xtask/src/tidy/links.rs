//! Pages lead somewhere: every page of the book is in its summary, every link to a file of the
//! repository has one, and a guide that a page of the book includes finds its links there.

use std::path::{Component, Path, PathBuf};

use super::{File, Problem};

const SUMMARY: &str = "docs/SUMMARY.md";

/// Checks all pages. `exists` tells whether a path, from the root, is there.
pub(super) fn check(files: &[File], exists: impl Fn(&Path) -> bool) -> Vec<Problem> {
    let pages = files.iter().filter(|file| file.path.ends_with(".md"));
    let summary = files.iter().find(|file| file.path == SUMMARY);
    let listed: Vec<&str> = summary.map_or(Vec::new(), |file| links(&file.text).collect());
    let mut found = Vec::new();
    for page in pages {
        let mut report = |message| {
            let path = page.path.clone();
            found.push(Problem { path, line: 0, rule: "links", message });
        };
        let in_book = page.path.strip_prefix("docs/");
        if in_book.is_some_and(|name| page.path != SUMMARY && !listed.contains(&name)) {
            report(format!("is not in {SUMMARY}"));
        }
        for link in links(&page.text) {
            match target(&page.path, link) {
                Some(file) if in_book.is_some() && !file.starts_with("docs") => {
                    report(format!("{link:?} leads out of the book; write its whole URL"));
                }
                Some(file) if exists(&file) => {}
                _ => report(format!("{link:?} leads nowhere")),
            }
        }
        for included in included(page, files) {
            let has = |name: &str| page.text.contains(&format!("\n[{name}]: "));
            for name in names(&included.text).filter(|name| !has(name)) {
                report(format!("{}: [{name}] is not defined in the page", included.path));
            }
        }
    }
    found
}

/// The links to files in a page, without the place in a file.
fn links(text: &str) -> impl Iterator<Item = &str> {
    // Code shows links that are not meant.
    let parts = text.split("```").step_by(2);
    let links = parts.flat_map(|part| part.split("](").skip(1));
    let links = links.map(|rest| rest.split([')', '#', ' ']).next().unwrap_or_default());
    links.filter(|link| !link.is_empty() && !link.contains("://") && !link.contains("::"))
}

/// The files that a page of the book includes.
fn included<'f>(page: &File, files: &'f [File]) -> impl Iterator<Item = &'f File> {
    let parts = page.text.split("{{#include ").skip(1);
    let paths = parts.filter_map(|part| part.split("}}").next());
    let paths = paths.filter_map(|path| target(&page.path, path)).collect::<Vec<_>>();
    files.iter().filter(move |file| paths.iter().any(|path| Path::new(&file.path) == path))
}

/// The names of links whose targets stand elsewhere: `[text][name]`.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split("```").step_by(2);
    let names = parts.flat_map(|part| part.split("][").skip(1));
    names.filter_map(|rest| rest.split(']').next())
}

/// The path from the root; `None` outside of it.
fn target(page: &str, link: &str) -> Option<PathBuf> {
    let mut path = Path::new(page).parent()?.to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir if path.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(pages: &[(&str, &str)]) -> Vec<String> {
        let file = |&(path, text): &(&str, &str)| File { path: path.into(), text: text.into() };
        let files: Vec<_> = pages.iter().map(file).collect();
        let is_there = |path: &Path| files.iter().any(|file| Path::new(&file.path) == path);
        check(&files, is_there).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn pages_are_listed_and_links_lead_somewhere() {
        let summary = ("docs/SUMMARY.md", "- [A](a.md)");
        let good =
            "[b](b.md#part), [c](https://c.example), [d](#d), [e](crate::e)\n```\n[f](f)\n```";
        assert_eq!(problems(&[("README.md", good), ("b.md", "")]), [""; 0]);
        assert_eq!(problems(&[summary, ("docs/a.md", "[s](../docs/SUMMARY.md)")]), [""; 0]);
        for (pages, problem) in [
            (&[("README.md", "[b](b.md)")][..], "\"b.md\" leads nowhere"),
            (&[("README.md", "[b](../b.md)")], "leads nowhere"),
            (&[summary], "\"a.md\" leads nowhere"),
            (&[summary, ("docs/a.md", ""), ("docs/b.md", "")], "docs/b.md: is not in"),
            (&[summary, ("docs/a.md", ""), ("docs/b/c.md", "")], "docs/b/c.md: is not in"),
            (&[summary, ("docs/a.md", "[r](../README.md)"), ("README.md", "")], "out of the book"),
            (
                &[
                    summary,
                    ("docs/a.md", "{{#include ../g.md}}\n[y]: z"),
                    ("g.md", "[a][x] [b][y]"),
                ],
                "g.md: [x] is not defined",
            ),
        ] {
            let found = problems(pages);
            assert!(found.len() == 1 && found[0].contains(problem), "{found:?}");
        }
    }
}
