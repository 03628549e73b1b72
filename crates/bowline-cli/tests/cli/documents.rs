//! What the documents show: every fenced block of the book and of the README is read by what reads
//! it in life, and every command line of the program has words that the program knows.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use bowline_serve::testing::Said;
use serde_json::{Value, json};

use crate::fixture::{Folder, PROGRAM, program, said};
use crate::new::ROOT;

/// A fenced block of a page.
struct Block {
    page: String,
    line: usize,
    language: String,
    text: String,
}

impl Block {
    fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

/// The pages of the book and the README, by their paths from the root.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(ROOT);
    let mut paths = vec!["README.md".to_owned()];
    // The guides are those of the crate, whose examples are compiled.
    for folder in ["docs", "crates/bowline/src/guide"] {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let pages = names.filter(|name| name.ends_with(".md"));
        paths.extend(pages.map(|name| format!("{folder}/{name}")));
    }
    paths.sort();
    let read = |path: String| {
        let text = fs::read_to_string(root.join(&path)).unwrap();
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// The fenced blocks of a page.
fn blocks(page: &str, text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            is_open = !is_open;
            if is_open {
                let (page, language) = (page.to_owned(), language.to_owned());
                blocks.push(Block { page, line: at + 1, language, text: String::new() });
            }
        } else if let (true, Some(block)) = (is_open, blocks.last_mut()) {
            block.text += &format!("{line}\n");
        }
    }
    assert!(!is_open, "{page}: a fence is not closed");
    blocks
}

fn all_blocks() -> Vec<Block> {
    pages().iter().flat_map(|(page, text)| blocks(page, text)).collect()
}

/// The lines that are typed into a shell: in a console all that follow a `$`.
fn typed(block: &Block) -> Vec<String> {
    let lines = block.text.lines();
    match block.language.as_str() {
        "sh" => lines.map(str::to_owned).collect(),
        "console" => lines.filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect(),
        "ini" => {
            lines.filter_map(|line| line.strip_prefix("ExecStart=")).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// The arguments of each call of the program in a line of a shell: as its command, or behind a
/// `--`, where other programs take what they start.
fn calls(line: &str) -> Vec<Vec<String>> {
    let words = shlex::split(line).unwrap_or_else(|| panic!("a shell cannot read: {line}"));
    let commands = words.split(|word| ["|", "&", "&&", ";"].contains(&word.as_str()));
    let mut calls = Vec::new();
    for command in commands {
        let is_program = |word: &String| word == "bowline" || word.ends_with("/bowline");
        let is_set = |word: &String| word.contains('=') && !word.starts_with('-');
        let first = command.iter().position(|word| !is_set(word));
        let behind = command.iter().position(|word| word == "--").map(|at| at + 1);
        let starts = [first, behind].into_iter().flatten();
        let starts = starts.filter(|at| command.get(*at).is_some_and(is_program));
        calls.extend(starts.map(|at| command[at + 1..].to_vec()));
    }
    calls
}

/// Why the program does not know these words; nothing is started.
fn misfit(home: &Folder, arguments: &[String]) -> Option<String> {
    // It reads its words up to here, and reports the first that it does not know.
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let Said { code, err, .. } = said(program(home).args(&arguments[..end]).arg("--help"));
    (code != Some(0)).then_some(err)
}

#[test]
fn every_command_line_has_words_that_the_program_knows() {
    let mut lines = BTreeSet::new();
    for block in all_blocks() {
        lines.extend(typed(&block).into_iter().map(|line| (block.page.clone(), line)));
    }
    // And those within sentences; what stands for something else there is a word like any other.
    for (page, text) in pages() {
        let prose = text.split("```").step_by(2);
        let spans = prose.flat_map(|part| part.split('`').skip(1).step_by(2));
        let spans =
            spans.filter(|span| span.starts_with("bowline ") && !span.contains("COMMAND --"));
        let meant = |span: &str| span.replace('\n', " ").replace("serve NAME", "serve counter");
        lines.extend(spans.map(|span| (page.clone(), meant(span))));
    }
    let home = Folder::new();
    let mut seen = BTreeSet::new();
    let mut wrong = String::new();
    for (page, line) in lines {
        for arguments in calls(&line).into_iter().filter(|call| seen.insert(call.clone())) {
            if let Some(why) = misfit(&home, &arguments) {
                wrong += &format!("{page}: {line}\n{why}\n");
            }
        }
    }
    assert!(seen.len() > 60, "only {} command lines were found", seen.len());
    assert_eq!(wrong, "");
}

#[test]
fn an_unknown_word_is_found() {
    let home = Folder::new();
    for (line, count, part) in [
        ("X=1 bowline info --loud URL # words", 1, "--loud"),
        ("cd x && bowline chekc | jq .", 1, "chekc"),
        ("claude mcp add x -- bowline serve tea", 1, "tea"),
        ("bowline check --output xml --", 1, "xml"),
        ("bowline apps -- bowline no", 2, "no"),
        ("echo bowline", 0, ""),
    ] {
        let calls = calls(line);
        assert_eq!(calls.len(), count, "{line}");
        if let Some(last) = calls.last() {
            let why = misfit(&home, last).unwrap_or_else(|| panic!("{line}"));
            assert!(why.contains(part), "{why}");
        }
    }
    assert_eq!(misfit(&home, &["info".into(), "-v".into(), "--".into(), "--loud".into()]), None);
}

const PETSTORE: &str = r#"{ "openapi": "3.1.0", "info": { "title": "Pets", "version": "1" },
    "paths": { "/pets": { "get": { "operationId": "listPets", "responses": {} } } } }"#;

/// Has the program read a file.
fn read_by_program(home: &Folder, arguments: &[&str]) -> Said {
    let keys = [("OTLP_KEY", "x"), ("SECRET", "y"), ("PETS", "z")];
    said(program(home).args(arguments).envs(keys))
}

/// Checks a gateway's file, of its own or of a client.
fn check_gateway(home: &Folder, block: &Block, name: &str, text: &str) {
    home.write(".cursor/mcp.json", r#"{ "mcpServers": { "notes": { "command": "notes" } } }"#);
    home.write("secret", "hush");
    home.write("petstore.json", PETSTORE);
    // What only exists where it is deployed.
    let text = text.replace("/run/secrets/", "").replace("file = \"github\"", "file = \"secret\"");
    home.write(name, &text);
    let Said { code, out, err } = read_by_program(home, &["gateway", "check", name]);
    assert_eq!(code, Some(0), "{}: {err}", block.place());
    assert!(!err.contains("note:") && !out.contains("note:"), "{}: {err}{out}", block.place());
}

fn check_json(home: &Folder, block: &Block) {
    let reader = serde_json::Deserializer::from_str(&block.text).into_iter();
    let values: Vec<Value> = reader
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{}: {error}", block.place()));
    let has = |name: &str| values.iter().any(|value| value.get(name).is_some());
    let counter = ["--", PROGRAM, "serve", "counter"];
    let arguments = if has("mcpServers") || has("servers") {
        return check_gateway(home, block, "mcp.json", &block.text);
    } else if has("forms") {
        [&["call", "--answer", "shown.json", "get_value"], &counter[..]].concat()
    } else if has("kind") {
        vec!["show", "shown.json"]
    } else {
        return;
    };
    home.write("shown.json", &block.text);
    let Said { code, err, .. } = read_by_program(home, &arguments);
    assert_eq!(code, Some(0), "{}: {err}", block.place());
}

/// Checks that the examples of a page are examples in the documentation of a crate, too: there
/// they are compiled.
fn check_rust(block: &Block) {
    if block.page.starts_with("crates/bowline/src/guide/") {
        return;
    }
    let crates = ["bowline", "bowline-fleet"].map(|name| format!("crates/{name}/src/lib.rs"));
    let included = format!("#[doc = include_str!(\"../../../{}\")]", block.page);
    let is_compiled = crates
        .iter()
        .any(|file| fs::read_to_string(Path::new(ROOT).join(file)).unwrap().contains(&included));
    assert!(is_compiled, "{}: no crate has {included}", block.place());
}

#[test]
fn every_block_is_read_by_what_reads_it_in_life() {
    let home = Folder::new();
    let mut read = BTreeSet::new();
    for block in all_blocks() {
        let language = block.language.split(',').next().unwrap_or_default();
        match language {
            "json" => check_json(&home, &block),
            "toml" => check_gateway(&home, &block, "gateway.toml", &block.text),
            "rust" => check_rust(&block),
            // `every_command_line_…` reads them.
            "sh" | "console" => assert!(!typed(&block).is_empty(), "{}", block.place()),
            "ini" => assert!(block.text.contains("[Service]"), "{}", block.place()),
            // Read by programs that are not here, and by people.
            "nginx" | "text" => {}
            other => panic!("{}: what reads {other:?}?", block.place()),
        }
        read.insert(language.to_owned());
    }
    for language in ["json", "toml", "rust", "sh", "console"] {
        assert!(read.contains(language), "no block of {language} was found");
    }
}

#[test]
fn a_block_that_is_wrong_is_found() {
    let home = Folder::new();
    let block = |language: &str, text: &str| Block {
        page: "docs/x.md".to_owned(),
        line: 1,
        language: language.to_owned(),
        text: text.to_owned(),
    };
    let good = json!({ "mcpServers": { "x": { "command": "x" } } }).to_string();
    check_json(&home, &block("json", &good));
    let refused = |check: &dyn Fn()| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).expect_err("it was accepted");
    };
    refused(&|| check_json(&home, &block("json", "{ \"a\": }")));
    refused(&|| check_json(&home, &block("json", r#"{ "forms": [{ "whenn": "x" }] }"#)));
    refused(&|| check_json(&home, &block("json", r#"{ "mcpServers": { "x": {} } }"#)));
    refused(&|| check_rust(&block("rust", "fn main() {}")));
    let odd = "[gateway]\nlisten = 7\n";
    refused(&|| check_gateway(&home, &block("toml", odd), "gateway.toml", odd));
}
