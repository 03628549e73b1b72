//! The rules, each a function from text to problems.

use super::{File, Problem};

const MAX_LINES: usize = 400;
const MAX_COLUMNS: usize = 100;
const MAX_ARCHITECTURE: usize = 300;

/// Left behind by somebody who meant to come back.
const LEFT_BEHIND: &[&str] = &["dbg!", "todo!", "unimplemented!", "FIXME", "XXX"];

/// Phrases that a native reader stumbles over, with what engineers write. The list can grow.
const STUMBLES: &[(&str, &str)] = &[
    ("that is none", "say what it is not: `an invalid date`"),
    ("that are none", "say what they are not: `invalid dates`"),
    ("who brings", "`requests with`, `callers that send`"),
    ("let in only", "`admit only`"),
    ("comes of it", "`results`, `follows`"),
    ("came of it", "`resulted`, `happened`"),
    ("told of", "`notified of`, `reported`"),
    ("worth while", "`worthwhile`"),
    ("has no say in", "`does not affect`"),
    ("nothing of it", "`none of it`"),
    ("anyone on the way", "`anyone between you and the server`"),
    ("everything count", "`also count`"),
    ("what they come to", "`the result`"),
];

/// `is no` reads as translated, except in these: `it is no longer there`.
const IS_NO: &[&str] = &["is no ", "are no ", "was no ", "were no "];
const BEFORE_IS_NO: &[&str] = &["there ", "here "];
const AFTER_IS_NO: &[&str] =
    &["longer", "more", "need", "way", "other", "such", "reason", "less", "later", "one", "better"];

/// Folders of one machine.
const MACHINE_PATHS: &[&str] = &["/work/", "/root/", "/home/"];

/// Where packages come from is the reader's choice, not the repository's.
const REGISTRIES: &[&str] = &[
    "crates.io-index",
    "index.crates.io",
    "static.crates.io",
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "pypi.org",
    "files.pythonhosted.org",
];

/// What would make the protocol crate wait, look at a clock, or touch the world.
const IMPURE: &[&str] =
    &["tokio", "std::io", "std::net", "std::fs", "Instant::now", "SystemTime::now", "println!"];

/// Where a revision may be named: its own module, the table of methods, and the checks, each of
/// which states the revisions it holds in. Everything else asks for a feature.
const REVISIONS: &[&str] = &[
    "crates/bowline-proto/src/revision",
    "crates/bowline-proto/src/method.rs",
    "crates/bowline-check/src/",
    "crates/bowline-cli/src/check/",
];

/// The two commands that a newcomer needs.
const COMMANDS: &[&str] = &["cargo run --release -- serve", "cargo xtask test"];

/// What is true of the repository as a whole.
pub(super) fn repository(files: &[File]) -> Vec<Problem> {
    let mut found = Vec::new();
    let text = |path: &str| {
        let file = files.iter().find(|file| file.path == path);
        file.map_or("", |file| file.text.as_str())
    };
    let mut report = |path: &str, rule, message| found.push(problem(path, 0, rule, message));

    let readme = text("README.md");
    for command in COMMANDS.iter().filter(|&&command| !readme.contains(command)) {
        report("README.md", "readme", format!("does not mention `{command}`"));
    }
    let architecture = text("ARCHITECTURE.md");
    let lines = architecture.lines().count();
    if lines > MAX_ARCHITECTURE {
        let message = format!("{lines} lines, {MAX_ARCHITECTURE} are allowed");
        report("ARCHITECTURE.md", "architecture", message);
    }
    for file in files {
        let folder = file.path.strip_suffix("/Cargo.toml");
        let Some(name) = folder.and_then(|folder| folder.rsplit('/').next()) else {
            continue;
        };
        if !architecture.contains(&format!("`{name}`")) {
            report("ARCHITECTURE.md", "architecture", format!("does not name `{name}`"));
        }
    }
    found
}

/// What is true of every file.
pub(super) fn file(file: &File, found: &mut Vec<Problem>) {
    let path = file.path.as_str();
    for (index, line) in file.text.lines().enumerate() {
        let mut report =
            |rule, message: String| found.push(problem(path, index + 1, rule, message));
        any_line(line, &mut report);
        if path.ends_with(".rs") || path.ends_with(".md") {
            english_line(line, &mut report);
        }
        if path.ends_with(".rs") {
            rust_line(line, &mut report);
        }
    }
    if path.ends_with(".rs") {
        rust_file(file, found);
    }
}

fn any_line(line: &str, report: &mut impl FnMut(&'static str, String)) {
    if line.ends_with([' ', '\t']) {
        report("blank", "white space at the end".to_owned());
    }
    for word in LEFT_BEHIND.iter().filter(|word| has_word(line, word)) {
        report("word", format!("`{word}`"));
    }
    if has_word(line, "TODO") && !names_an_issue(line) {
        report("word", "`TODO` without an issue, as in `TODO(#12)`".to_owned());
    }
    for folder in MACHINE_PATHS.iter().filter(|folder| has_path(line, folder)) {
        report("machine-path", format!("`{folder}` is a folder of one machine"));
    }
    for host in REGISTRIES.iter().filter(|&&host| line.contains(host)) {
        report("registry", format!("`{host}` is a package registry"));
    }
}

fn english_line(line: &str, report: &mut impl FnMut(&'static str, String)) {
    let line = line.to_lowercase();
    for (phrase, better) in STUMBLES.iter().filter(|(phrase, _)| has_word(&line, phrase)) {
        report("english", format!("`{phrase}`: write {better}"));
    }
    let is_odd = |at: usize, phrase: &str| {
        let (before, after) = (&line[..at], &line[at + phrase.len()..]);
        let is_word = !before.chars().next_back().is_some_and(is_part_of_word);
        is_word
            && !BEFORE_IS_NO.iter().any(|fine| before.ends_with(fine))
            && !AFTER_IS_NO.iter().any(|fine| after.starts_with(fine))
    };
    for phrase in IS_NO {
        if line.match_indices(phrase).any(|(at, _)| is_odd(at, phrase)) {
            report("english", format!("`{}`: write `is not a`, or `has no`", phrase.trim()));
        }
    }
}

fn rust_line(line: &str, report: &mut impl FnMut(&'static str, String)) {
    if line.contains('\t') {
        report("blank", "a tab".to_owned());
    }
    let columns = line.chars().count();
    // Code is rustfmt's business, and an address cannot be broken.
    if is_comment(line) && columns > MAX_COLUMNS && !cannot_be_wrapped(line) {
        report("columns", format!("{columns} columns, {MAX_COLUMNS} are allowed"));
    }
}

fn rust_file(file: &File, found: &mut Vec<Problem>) {
    let path = file.path.as_str();
    let mut report = |line, rule, message| found.push(problem(path, line, rule, message));
    if !file.text.starts_with("//!") {
        report(1, "opening", "does not open with `//!`: say what the file holds".to_owned());
    }
    if path.ends_with("/mod.rs") {
        report(0, "mod-rs", "`mod.rs`: name it after its folder, beside it".to_owned());
    }
    if is_test(path) {
        return;
    }
    let code = lines_without_tests(&file.text);
    if code > MAX_LINES {
        let message = format!("{code} lines without tests, {MAX_LINES} are allowed");
        report(0, "length", message);
    }
    let is_proto = path.starts_with("crates/bowline-proto/src/");
    let is_product = path.starts_with("crates/") || path.starts_with("servers/");
    let may_name_revisions =
        !is_product || REVISIONS.iter().any(|allowed| path.starts_with(allowed));
    for (index, line) in file.text.lines().take(code).enumerate() {
        if is_comment(line) {
            continue;
        }
        for name in IMPURE.iter().filter(|name| is_proto && has_word(line, name)) {
            report(index + 1, "pure", format!("`{name}` in the crate without I/O and clock"));
        }
        if !may_name_revisions && names_a_revision(line) {
            let message = "names a revision: ask for a feature of `Revision` instead".to_owned();
            report(index + 1, "revision", message);
        }
    }
}

/// Whether a line has the name of a revision in it, such as `V2025_11_25`.
fn names_a_revision(line: &str) -> bool {
    line.match_indices("V20").any(|(at, _)| {
        let name = line[at + 1..].chars().take_while(|character| is_part_of_word(*character));
        let name: String = name.collect();
        let is_date = name.len() == 10 && name.split('_').all(|part| part.parse::<u16>().is_ok());
        is_date && !line[..at].chars().next_back().is_some_and(is_part_of_word)
    })
}

fn problem(path: &str, line: usize, rule: &'static str, message: String) -> Problem {
    Problem { path: path.to_owned(), line, rule, message }
}

/// Addresses, rows of tables and quoted messages.
fn cannot_be_wrapped(line: &str) -> bool {
    let text = line.trim_start().trim_start_matches(['/', '!']).trim_start();
    line.contains("://") || text.starts_with('|') || text.starts_with("br#")
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Lines above the tests at a file's end.
fn lines_without_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    lines.windows(2).position(|pair| pair == ["#[cfg(test)]", "mod tests {"]).unwrap_or(lines.len())
}

/// Whether the word stands there by itself, and not as a part of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let part = |character: Option<char>| character.is_some_and(is_part_of_word);
    line.match_indices(word).any(|(at, _)| {
        let after = &line[at + word.len()..];
        let inside = !word.ends_with('!') && part(after.chars().next());
        !inside && !part(line[..at].chars().next_back())
    })
}

fn is_part_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Whether the folder stands there as an absolute path, and not within a relative one.
fn has_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|before| is_part_of_word(before) || ".-~*}".contains(before))
    })
}

fn names_an_issue(line: &str) -> bool {
    line.match_indices("TODO").all(|(at, word)| {
        let number = line[at + word.len()..]
            .strip_prefix("(#")
            .and_then(|rest| rest.split_once(')'))
            .map(|(number, _)| number);
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    })
}
