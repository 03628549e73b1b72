//! Notes by people who watched a server: what they sent, and what they saw come back.
//!
//! The notes are Markdown with blocks of JSON, written over many lines and with comments. What a
//! test sends is a line: the same bytes without line breaks and comments.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Process;

/// A note that is kept as test data, and the seed that it is from.
#[derive(Debug, Clone, Copy)]
pub struct Note {
    /// Messages of the client, a line each.
    pub sent: &'static str,
    /// Answers of the server, a line each.
    pub answers: &'static str,
    /// How the seed's name begins.
    pub seed: &'static str,
}

impl Note {
    /// Sends what the note sends to a program, and finds the note's answers in what comes back, but
    /// for `differences`: the id of an answer, where in it, and why. Gives all answers.
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
        let told: Vec<_> = differences.iter().map(|(id, at, _)| (*id, (*at).to_owned())).collect();
        assert_eq!(found, told, "{ours:#?}");
        ours
    }

    /// Where the seed is at hand, it shows the same.
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

/// What a note's client sends, and what comes back.
fn messages(text: &str) -> (Vec<String>, Vec<Value>) {
    let (mut sent, mut answers) = (Vec::new(), Vec::new());
    for block in text.split("```").skip(1).step_by(2) {
        let (_, json) = block.split_once('\n').unwrap_or_default();
        let line: String = json.lines().map(without_comment).collect();
        // Diagrams and code are no messages.
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        match message.get("method").and_then(Value::as_str) {
            // Servers say this, clients do not.
            Some("notifications/tools/list_changed") => {}
            Some(_) => sent.push(line),
            None if message.get("result").is_some() => answers.push(message),
            None => {}
        }
    }
    (sent, answers)
}

/// A line up to `//`, unless that is in a string. Without a comment, the line as it is.
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

/// Where the answer in a note says something that ours does not: JSON pointers. What ours says
/// besides is no difference. Things with a name are compared with those of the same name.
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
    fn comments_end_a_line_unless_they_are_text() {
        assert_eq!(without_comment(r#"  "a": 1,   // one"#), r#"  "a": 1,"#);
        assert_eq!(without_comment(r#""str:////Users/" "#), r#""str:////Users/" "#);
        assert_eq!(without_comment(r#""a\"//b" // c"#), r#""a\"//b""#);
    }

    #[test]
    fn only_what_a_note_says_can_differ() {
        let note = json!({ "tools": [{ "name": "b", "x": 1 }, { "name": "c" }], "y": {} });
        let ours = json!({ "tools": [{ "name": "a" }, { "name": "b", "x": 2 }], "y": { "z": 1 } });
        assert_eq!(compared(&note, &ours), ["/tools/0/x", "/tools/1/name"]);
        assert_eq!(compared(&note, &note), [""; 0]);
    }
}
