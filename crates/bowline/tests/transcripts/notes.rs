//! Checks handwritten notes on the protocol against the transcripts of `seeds`.
//!
//! The notes are not part of this repository. They are read from `shared` beside it, or from
//! wherever `BOWLINE_SHARED` points: every message in them must then be a line of its transcript,
//! and requests must match exactly. Without the notes only the transcripts are played.

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

use crate::script::{Script, Step};

/// A note, by the beginning of its file name, and its transcript.
struct Note {
    number: &'static str,
    transcript: &'static str,
    /// What the note shows although no server should send it: where, and why not.
    wrong: &'static [(&'static str, &'static str)],
}

const NOTES: &[Note] = &[
    Note { number: "000", transcript: "calculator_and_weather", wrong: &[] },
    Note { number: "001", transcript: "mcp_logger", wrong: &[] },
    Note {
        number: "002",
        transcript: "counter",
        wrong: &[
            (
                "/result/tools/0/annotations",
                "annotations came with 2025-03-26, after this handshake",
            ),
            ("/result/resources/0/metadata", "no revision has it; the open member is _meta"),
            ("/result/metadata", "no revision has it; the open member is _meta"),
        ],
    },
    Note { number: "003", transcript: "operator", wrong: &[] },
    Note { number: "004", transcript: "handshake", wrong: &[] },
];

/// Reports messages of the notes that are not played, and exceptions that are outdated.
pub(crate) fn check() -> Vec<String> {
    let Some(folder) = notes() else { return Vec::new() };
    NOTES.iter().flat_map(|note| check_note(note, &folder)).collect()
}

fn check_note(note: &Note, folder: &Path) -> Vec<String> {
    let path = super::folder().join("seeds").join(note.transcript).with_extension("jsonl");
    let script = Script::read(&path).unwrap();
    let (sent, expected): (Vec<_>, Vec<_>) = (
        script.lines.iter().filter_map(|line| sent(&line.step)).collect(),
        script.lines.iter().filter_map(|line| expected(&line.step)).collect(),
    );
    let mut failures = Vec::new();
    let mut seen = vec![false; note.wrong.len()];
    for text in messages(note, folder) {
        let mut message: Value = serde_json::from_str(&text).unwrap();
        for (place, (pointer, _)) in note.wrong.iter().enumerate() {
            seen[place] |= remove(&mut message, pointer);
        }
        if !sent.contains(&text.as_str()) && !expected.contains(&&message) {
            failures
                .push(format!("{}: not in seeds/{}.jsonl: {text}", note.number, note.transcript));
        }
    }
    let unseen = note.wrong.iter().zip(seen).filter(|(_, seen)| !seen);
    failures.extend(unseen.map(|((pointer, _), _)| format!("{}: no {pointer}", note.number)));
    failures
}

fn sent(step: &Step) -> Option<&str> {
    if let Step::Send(frame) = step { Some(frame) } else { None }
}

fn expected(step: &Step) -> Option<&Value> {
    if let Step::Expect(message) = step { Some(message) } else { None }
}

fn notes() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = env::var_os("BOWLINE_SHARED").map_or_else(beside, PathBuf::from).join("seeds");
    folder.is_dir().then_some(folder)
}

/// The messages in the fenced blocks of a note, each on one line.
fn messages(note: &Note, folder: &Path) -> Vec<String> {
    let is_it = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(note.number))
    };
    let mut paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text = fs::read_to_string(paths.find(is_it).unwrap()).unwrap();
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let block = lines.by_ref().take_while(|line| *line != "```");
            let text: String = block.map(without_blanks).collect();
            let message = serde_json::from_str::<Value>(&text).ok();
            found.extend(message.filter(|it| it.get("jsonrpc").is_some()).map(|_| text));
        }
    }
    found
}

/// A line without white space and `// …`, except in texts.
fn without_blanks(line: &str) -> String {
    let mut is_text = false;
    let mut kept = String::new();
    for (at, character) in line.char_indices() {
        is_text ^= character == '"';
        if !is_text && line[at..].starts_with("//") {
            break;
        }
        if is_text || !character.is_whitespace() {
            kept.push(character);
        }
    }
    kept
}

/// Removes a member. Returns whether it was present.
fn remove(message: &mut Value, pointer: &str) -> bool {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = message.pointer_mut(parent).and_then(Value::as_object_mut);
    parent.is_some_and(|members| members.remove(name).is_some())
}
