//! Small samples, good and bad: one line a case.

use super::*;

/// Which rules a file breaks, on which lines.
fn broken(path: &str, text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let file = sample(path, text);
    rules::file(&file, &mut found);
    found.iter().map(|problem| (problem.line, problem.rule)).collect()
}

fn sample(path: &str, text: &str) -> File {
    let (path, text) = (path.to_owned(), text.to_owned());
    File { path, text }
}

/// A line of a Rust file, below a proper opening.
fn line(text: &str) -> Vec<&'static str> {
    let found = broken("a/src/a.rs", &format!("//! A.\n{text}\n"));
    assert!(found.iter().all(|&(line, _)| line == 2), "{text}: {found:?}");
    found.into_iter().map(|(_, rule)| rule).collect()
}

#[test]
fn lines_that_pass() {
    for good in [
        "let dbg = todo;",
        "// TODO(#12): later.",
        "// XXXL is a size.",
        "// mktemp name.XXXXXX",
        "let path = \"frame/work/x\";",
        "// See ../home/x.",
        "// There is no frame, and the session is no longer open.",
        "// The user told offers apart.",
        "let code = \"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\";",
        "// https://example.com/0123456789012345678901234567890123456789012345678901234567890123456789012345678901",
    ] {
        assert_eq!(line(good), [""; 0], "{good}");
    }
}

#[test]
fn lines_that_do_not() {
    for (bad, rule) in [
        ("dbg!(x);", "word"),
        ("todo!()", "word"),
        ("unimplemented!()", "word"),
        ("// FIXME: x.", "word"),
        ("// XXX", "word"),
        ("// TODO: x.", "word"),
        ("// TODO(#x): x.", "word"),
        ("// TODO(#1), TODO", "word"),
        ("let x; ", "blank"),
        ("\tlet x;", "blank"),
        ("// The value is no object.", "english"),
        ("// A date that is none.", "english"),
        ("// Clients are told of it.", "english"),
        ("// Everyone else sees nothing of it.", "english"),
        ("// In /work/x.", "machine-path"),
        ("let x = \"/home/x\";", "machine-path"),
        ("// file:///root/x", "machine-path"),
        ("// https://pypi.org/simple", "registry"),
        (
            "/// 01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567",
            "columns",
        ),
    ] {
        assert_eq!(line(bad), [rule], "{bad}");
    }
}

#[test]
fn files_open_with_what_they_hold() {
    assert_eq!(broken("a.rs", "//! A.\n"), []);
    assert_eq!(broken("a.rs", "use b;\n"), [(1, "opening")]);
    assert_eq!(broken("a.rs", ""), [(1, "opening")]);
    assert_eq!(broken("a/mod.rs", "//! A.\n"), [(0, "mod-rs")]);
}

#[test]
fn files_are_short_and_tests_do_not_count() {
    let lines = |count: usize| format!("//! A.\n{}", "x\n".repeat(count - 1));
    let tests = "#[cfg(test)]\nmod tests {\nx\n}\n";
    assert_eq!(broken("src/a.rs", &lines(400)), []);
    assert_eq!(broken("src/a.rs", &lines(401)), [(0, "length")]);
    assert_eq!(broken("src/a.rs", &(lines(400) + tests)), []);
    assert_eq!(broken("src/a.rs", &(lines(401) + tests)), [(0, "length")]);
    assert_eq!(broken("src/a/tests.rs", &lines(401)), []);
    assert_eq!(broken("a/tests/it.rs", &lines(401)), []);
}

#[test]
fn the_protocol_crate_is_pure() {
    let proto = |text: &str| broken("crates/bowline-proto/src/a.rs", text);
    for bad in ["use std::io;", "use std::fs::File;", "Instant::now()", "println!()", "tokio::x"] {
        assert_eq!(proto(&format!("//! A.\n{bad}\n")), [(2, "pure")], "{bad}");
    }
    assert_eq!(proto("//! Names no tokio.\nuse std::iota;\n"), []);
    assert_eq!(proto("//! A.\n#[cfg(test)]\nmod tests {\nuse std::fs;\n}\n"), []);
    assert_eq!(broken("crates/bowline/src/a.rs", "//! A.\nuse std::io;\n"), []);
    assert_eq!(broken("crates/bowline-proto/tests/a.rs", "//! A.\nuse std::fs;\n"), []);
}

fn whole(architecture: &str, readme: &str) -> Vec<String> {
    let files = [
        sample("ARCHITECTURE.md", architecture),
        sample("README.md", readme),
        sample("crates/knot/Cargo.toml", ""),
    ];
    check(&files, &[]).iter().map(Problem::to_string).collect()
}

#[test]
fn documents_keep_up() {
    let readme = "`cargo run --release -- serve` and `cargo xtask test`";
    assert_eq!(whole("`knot` ties.", readme), [""; 0]);
    let found = whole(&"x\n".repeat(301), "`cargo xtask test`");
    assert_eq!(
        found,
        [
            "ARCHITECTURE.md: 301 lines, 300 are allowed [architecture]",
            "ARCHITECTURE.md: does not name `knot` [architecture]",
            "README.md: does not mention `cargo run --release -- serve` [readme]",
        ]
    );
}

#[test]
fn an_exception_excuses_one_rule_of_one_file_and_must_be_needed() {
    let files = [
        sample("ARCHITECTURE.md", ""),
        sample("README.md", "cargo run --release -- serve, cargo xtask test"),
        sample("a.md", "FIXME\n/work/\n"),
    ];
    let rules = |rule| {
        let (path, reason) = ("a.md", "a test");
        let exceptions = [Exception { path, rule, reason }];
        let found = check(&files, &exceptions);
        found.iter().map(|problem| problem.rule).collect::<Vec<_>>()
    };
    assert_eq!(rules("word"), ["machine-path"]);
    assert_eq!(rules("machine-path"), ["word"]);
    assert_eq!(rules("length"), ["exceptions", "word", "machine-path"]);
}

#[test]
fn only_the_revision_module_names_revisions() {
    let named = "//! A.\nlet revision = Revision::V2025_11_25;\n";
    let tests = "//! A.\n#[cfg(test)]\nmod tests {\nuse Revision::V2025_11_25;\n}\n";
    assert_eq!(broken("crates/bowline/src/a.rs", named), [(2, "revision")]);
    assert_eq!(broken("servers/a/src/a.rs", named), [(2, "revision")]);
    assert_eq!(broken("crates/bowline/src/a.rs", "//! A.\n// Since V2025_11_25.\n"), []);
    assert_eq!(broken("crates/bowline/src/a.rs", "//! A.\nlet it = V20_000;\n"), []);
    assert_eq!(broken("crates/bowline/src/a.rs", tests), []);
    assert_eq!(broken("crates/bowline/tests/a.rs", named), []);
    assert_eq!(broken("crates/bowline-proto/src/revision.rs", named), []);
    assert_eq!(broken("crates/bowline-proto/src/revision/a.rs", named), []);
    assert_eq!(broken("crates/bowline-cli/src/check/a.rs", named), []);
    assert_eq!(broken("interop/walk/src/main.rs", named), []);
}
