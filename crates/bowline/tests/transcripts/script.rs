//! A transcript as a list of lines.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// A transcript.
pub(crate) struct Script {
    /// The file, from the folder of transcripts.
    pub(crate) name: String,
    pub(crate) server: String,
    pub(crate) client: Option<Client>,
    pub(crate) is_subset: bool,
    pub(crate) lines: Vec<Line>,
}

/// The client of a transcript.
pub(crate) struct Client {
    pub(crate) revision: String,
    pub(crate) capabilities: Value,
}

/// One line.
pub(crate) struct Line {
    pub(crate) number: usize,
    pub(crate) text: String,
    pub(crate) step: Step,
}

/// The meaning of a line.
pub(crate) enum Step {
    Send(String),
    Expect(Value),
    Let(String, Value),
    Unordered,
    Close,
    Blank,
    Note,
}

impl Script {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let name = path.strip_prefix(super::folder()).unwrap().display().to_string();
        let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        let mut script =
            Self { name, server: String::new(), client: None, is_subset: false, lines: Vec::new() };
        for (index, text) in text.lines().enumerate() {
            let number = index + 1;
            let step = script
                .read_line(text)
                .map_err(|reason| format!("{}:{number}: {reason}", script.name))?;
            script.lines.push(Line { number, text: text.to_owned(), step });
        }
        Ok(script)
    }

    fn read_line(&mut self, text: &str) -> Result<Step, String> {
        if text.is_empty() {
            return Ok(Step::Blank);
        }
        if let Some(frame) = text.strip_prefix("> ") {
            return Ok(Step::Send(frame.to_owned()));
        }
        if let Some(frame) = text.strip_prefix("< ") {
            return Ok(Step::Expect(json(frame)?));
        }
        let Some(note) = text.strip_prefix('#') else {
            return Err("begins with none of `>`, `<`, `#`".to_owned());
        };
        self.read_note(note.trim())
    }

    fn read_note(&mut self, note: &str) -> Result<Step, String> {
        if let Some(server) = note.strip_prefix("server: ") {
            server.clone_into(&mut self.server);
        } else if let Some(client) = note.strip_prefix("client: ") {
            let (revision, capabilities) = client.split_once(' ').unwrap_or((client, "{}"));
            let capabilities = json(capabilities)?;
            self.client = Some(Client { revision: revision.to_owned(), capabilities });
        } else if let Some(binding) = note.strip_prefix("let ") {
            let (name, value) = binding.split_once(" = ").ok_or("`# let name = value`")?;
            return Ok(Step::Let(name.to_owned(), json(value)?));
        } else if note == "subset" {
            self.is_subset = true;
        } else if note == "unordered" {
            return Ok(Step::Unordered);
        } else if note == "close" {
            return Ok(Step::Close);
        }
        Ok(Step::Note)
    }
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))
}
