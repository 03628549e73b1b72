//! `espeak-ng`: a voice for almost every language, small and a little tinny.

use super::program::Program;
use super::{Engine, Operator, Speech, Style};

/// The program's name, looked up in `PATH`.
pub(super) const PROGRAM: &str = "espeak-ng";

/// Speaking styles: name, words per minute, and the suffix for the voice's name.
const STYLES: [(&str, f64, &str); 4] = [
    ("normal", 175.0, ""),
    ("slow", 120.0, ""),
    ("fast", 260.0, ""),
    ("whisper", 150.0, "+whisper"),
];

pub(super) struct Espeak {
    program: String,
}

impl Espeak {
    pub(super) fn new(program: String) -> Self {
        Self { program }
    }

    pub(super) async fn operators(&self) -> Result<Vec<Operator>, String> {
        let said = Program::new(&self.program).argument("--voices").run(b"").await?;
        let operators: Vec<_> = said.lines().skip(1).filter_map(operator).collect();
        if operators.is_empty() {
            return Err(format!("{} has no voices", self.program));
        }
        Ok(operators)
    }

    pub(super) async fn speak(&self, speech: Speech<'_>) -> Result<(), String> {
        let style = usize::try_from(speech.style.id).ok().and_then(|id| STYLES.get(id));
        let (_, words, variant) = style.unwrap_or(&STYLES[0]);
        // The text is passed on standard input: as an argument it could be taken for an option.
        Program::new(&self.program)
            .argument("-v")
            .argument(&format!("{}{variant}", speech.operator.id))
            .argument("-s")
            .argument(&format!("{:.0}", words * speech.speed))
            .argument("--stdin")
            .run(speech.text.as_bytes())
            .await
            .map(drop)
    }
}

/// A line of the table of voices: priority, language, age and gender, name, file.
fn operator(line: &str) -> Option<Operator> {
    let mut columns = line.split_whitespace().skip(1);
    let language = columns.next()?;
    let name = columns.nth(1)?;
    let styles = (0..).zip(STYLES);
    Some(Operator {
        name: name.replace('_', " "),
        id: language.to_owned(),
        styles: styles.map(|(id, (name, ..))| Style { name: name.to_owned(), id }).collect(),
        engine: Engine::Espeak,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voices_are_read_from_the_table() {
        let line = " 5  en-gb           --/M      English_(Great_Britain) gmw/en  (en 2)";
        let operator = operator(line).unwrap();
        assert_eq!(
            (operator.name.as_str(), operator.id.as_str()),
            ("English (Great Britain)", "en-gb")
        );
        assert_eq!(operator.styles[3].name, "whisper");
        assert!(super::operator("").is_none());
    }
}
