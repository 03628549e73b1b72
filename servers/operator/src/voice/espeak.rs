//! `espeak-ng`: a voice for almost every language, small and a little tinny.
//!
//! It only synthesises here. When it plays by itself and there is no sound device, it complains on
//! standard error and exits with 0: nobody could tell whether anything was heard.

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
        let said = String::from_utf8_lossy(&said.output);
        let operators: Vec<_> = said.lines().skip(1).filter_map(operator).collect();
        if operators.is_empty() {
            return Err(format!("{} has no voices", self.program));
        }
        Ok(operators)
    }

    pub(super) async fn synthesise(&self, speech: Speech<'_>) -> Result<Vec<u8>, String> {
        let style = usize::try_from(speech.style.id).ok().and_then(|id| STYLES.get(id));
        let (_, words, variant) = style.unwrap_or(&STYLES[0]);
        // The text is passed on standard input: as an argument it could be taken for an option.
        let said = Program::new(&self.program)
            .argument("-v")
            .argument(&format!("{}{variant}", speech.operator.id))
            .argument("-s")
            .argument(&format!("{:.0}", words * speech.speed))
            .argument("--stdin")
            .argument("--stdout")
            .run(speech.text.as_bytes())
            .await?;
        // It exits with 0 for a voice that it does not have.
        with_lengths(said.output)
            .ok_or_else(|| format!("{} made no sound: {}", self.program, said.errors))
    }
}

/// The sound with its true lengths: written to a pipe, it announces two gigabytes. `None` if it is
/// not WAV with samples.
fn with_lengths(mut wav: Vec<u8>) -> Option<Vec<u8>> {
    const HEAD: usize = 44;
    let is_wav = wav.len() > HEAD && wav.starts_with(b"RIFF") && wav[36..40] == *b"data";
    let length = u32::try_from(wav.len()).ok().filter(|_| is_wav)?;
    wav[4..8].copy_from_slice(&(length - 8).to_le_bytes());
    wav[40..44].copy_from_slice(&(length - 44).to_le_bytes());
    Some(wav)
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

    #[test]
    fn lengths_are_those_of_the_samples() {
        let mut wav = b"RIFF\0\xf0\xff\x7fWAVEfmt ".to_vec();
        wav.resize(36, 0);
        wav.extend(b"data\0\xf0\xff\x7f");
        assert_eq!(with_lengths(wav.clone()), None, "no samples");
        wav.extend([1, 2, 3, 4]);
        let wav = with_lengths(wav).unwrap();
        assert_eq!((&wav[4..8], &wav[40..44]), (&[40, 0, 0, 0][..], &[4, 0, 0, 0][..]));
        assert_eq!(
            with_lengths(b"Error: no such voice, and more words than a header".to_vec()),
            None
        );
    }
}
