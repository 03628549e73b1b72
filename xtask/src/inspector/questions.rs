//! The questions, read from `questions.txt`.

use super::ask::Typed;

/// What one has to find out, and how.
pub(super) struct Question {
    pub(super) asks: &'static str,
    pub(super) ours: Typed,
    pub(super) theirs: Typed,
    /// Whether Inspector cannot do it, and its line shows just that.
    pub(super) is_ours_alone: bool,
}

/// What our lines begin with, and theirs.
pub(super) const OURS: &str = "bowline";
pub(super) const THEIRS: &str = "mcp-inspector --cli";

/// The head of the table.
pub(super) const HEADING: &[&str] =
    &["question", "`bowline`", "`mcp-inspector --cli`", "keys", "lines out", "ms", "ratio"];

/// Files that the lines name.
pub(super) const FILES: [(&str, &str); 2] = [
    ("noisy.sh", "echo starting up\nexec bowline serve counter\n"),
    (
        "counter.json",
        r#"{ "mcpServers": { "counter": { "command": "bowline", "args": ["serve", "counter"] } } }"#,
    ),
];

/// All questions.
///
/// # Panics
/// When the file is malformed.
pub(super) fn questions() -> Vec<Question> {
    let text = include_str!("questions.txt");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
    let questions = lines.chunks(3).map(|chunk| {
        let [asks, ours, theirs] = chunk else { panic!("{chunk:?} is not a question") };
        let alone = theirs.strip_prefix("cannot ");
        Question {
            asks,
            ours: typed(ours),
            theirs: typed(alone.unwrap_or(theirs)),
            is_ours_alone: alone.is_some(),
        }
    });
    questions.collect()
}

fn typed(text: &'static str) -> Typed {
    let (line, expected) = text.split_once(" => ").expect("a line has an outcome");
    let (exit, says) = expected.split_once(' ').expect("an outcome has a code and a text");
    Typed { line, exit: exit.parse().expect("a code is a number"), says }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_begins_with_its_program() {
        for question in questions() {
            assert!(question.ours.line.starts_with(OURS), "{}", question.asks);
            assert!(question.theirs.line.starts_with(THEIRS), "{}", question.asks);
        }
    }
}
