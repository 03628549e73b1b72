//! Notes on a server: what a client sent, and what came back.
//!
//! The notes are Markdown with blocks of JSON, which span several lines and contain comments. Tests
//! send each block as one line, without line breaks and comments.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Process;

/// A note stored as test data, and the seed it comes from.
#[derive(Debug, Clone, Copy)]
pub struct Note {
    /// The client's messages, one per line.
    pub sent: &'static str,
    /// The server's responses, one per line.
    pub answers: &'static str,
    /// The prefix of the seed's file name.
    pub seed: &'static str,
}

impl Note {
    /// Sends the note's messages to a program, and checks that the responses contain what the note
    /// shows, except for `differences`: the id of a response, a JSON pointer, and the reason.
    /// Returns all responses.
    pub fn check(
        self,
        program: &str,
        arguments: &[&str],
        differences: &[(u64, &str, &str)],
    ) -> Vec<Value> {
        self.check_seed();
        let mut process = Process::start(program, arguments);
        let ours = process.play(self.sent);
        assert_eq!(process.close().code, Some(0));
        let mut found = Vec::new();
        for line in self.answers.lines() {
            let note: Value = serde_json::from_str(line).expect("a line of JSON");
            let same = ours.iter().find(|it| it["id"] == note["id"]).expect("all are answered");
            let id = note["id"].as_u64().expect("ids in notes are numbers");
            found.extend(compared(&note, same).into_iter().map(|at| (id, at)));
        }
        let expected: Vec<_> =
            differences.iter().map(|(id, at, _)| (*id, (*at).to_owned())).collect();
        assert_eq!(found, expected, "{ours:#?}");
        ours
    }

    /// If the seed is available, checks the test data against it.
    fn check_seed(self) {
        let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
        let shared = std::env::var_os("BOWLINE_SHARED").map_or_else(beside, PathBuf::from);
        let Ok(files) = std::fs::read_dir(shared.join("seeds")) else { return };
        let is_it = |file: &DirEntry| file.file_name().to_string_lossy().starts_with(self.seed);
        let Some(file) = files.flatten().find(is_it) else { return };
        let text = std::fs::read_to_string(file.path()).expect("the seed is text");
        let (sent, answers) = messages(&text);
        assert_eq!(self.sent.lines().collect::<Vec<_>>(), sent);
        let kept = self.answers.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        assert_eq!(kept.collect::<Vec<Value>>(), answers);
    }
}

/// The messages that a note's client sends, and the responses.
fn messages(text: &str) -> (Vec<String>, Vec<Value>) {
    let (mut sent, mut answers) = (Vec::new(), Vec::new());
    for block in text.split("```").skip(1).step_by(2) {
        let (_, json) = block.split_once('\n').unwrap_or_default();
        let line: String = json.lines().map(without_comment).collect();
        // Diagrams and code are not messages.
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        match message.get("method").and_then(Value::as_str) {
            // Sent by servers, not by clients.
            Some("notifications/tools/list_changed") => {}
            Some(_) => sent.push(line),
            None if message.get("result").is_some() => answers.push(message),
            None => {}
        }
    }
    (sent, answers)
}

/// A line without its comment. `//` inside a string is not a comment.
fn without_comment(line: &str) -> &str {
    let mut is_string = false;
    let mut before = ' ';
    for (at, letter) in line.char_indices() {
        match letter {
            '"' if before != '\\' => is_string = !is_string,
            '/' if !is_string && before == '/' => return line[..at - 1].trim_end(),
            _ => {}
        }
        before = letter;
    }
    line
}

/// The JSON pointers at which the note's response differs from ours. Extra members of ours do not
/// count. Array items with a name are compared with the item of the same name.
fn compared(note: &Value, ours: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", note, ours, &mut found);
    found
}

fn compare(at: &str, note: &Value, ours: &Value, found: &mut Vec<String>) {
    match (note, ours) {
        (Value::Object(note), Value::Object(ours)) => {
            for (key, value) in note {
                let at = format!("{at}/{key}");
                compare(&at, value, ours.get(key).unwrap_or(&Value::Null), found);
            }
        }
        (Value::Array(note), Value::Array(ours)) => {
            for (index, value) in note.iter().enumerate() {
                let named = value.get("name");
                let same = ours.iter().find(|it| named.is_some() && it.get("name") == named);
                let other = same.or_else(|| ours.get(index)).unwrap_or(&Value::Null);
                compare(&format!("{at}/{index}"), value, other, found);
            }
        }
        (note, ours) if note == ours => {}
        _ => found.push(at.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_are_removed_unless_they_are_text() {
        assert_eq!(without_comment(r#"  "a": 1,   // one"#), r#"  "a": 1,"#);
        assert_eq!(without_comment(r#""str:////Users/" "#), r#""str:////Users/" "#);
        assert_eq!(without_comment(r#""a\"//b" // c"#), r#""a\"//b""#);
    }

    #[test]
    fn extra_members_are_not_differences() {
        let note = json!({ "tools": [{ "name": "b", "x": 1 }, { "name": "c" }], "y": {} });
        let ours = json!({ "tools": [{ "name": "a" }, { "name": "b", "x": 2 }], "y": { "z": 1 } });
        assert_eq!(compared(&note, &ours), ["/tools/0/x", "/tools/1/name"]);
        assert_eq!(compared(&note, &note), [""; 0]);
    }
}
