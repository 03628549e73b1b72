//! Which rows are shown: `method:tools/call is:error echo`.

use super::{Model, Row, What};
use crate::session_file::Way;

/// A filter: all of its words must match.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq)]
enum Word {
    Method(String),
    Subject(String),
    Id(String),
    Server(String),
    Direction(Way),
    IsError,
    IsPending,
    /// At least so many seconds.
    Slow(f64),
    Text(String),
}

/// What `is:slow` means, in seconds.
const SLOW: f64 = 1.0;

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// When a word with a colon is not known.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words = text.split_whitespace().map(word).collect::<Result<_, _>>()?;
        Ok(Self { words })
    }

    /// Whether everything is shown.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether a row is shown. `now` is how long its session has lasted, in seconds.
    #[must_use]
    pub fn matches(&self, model: &Model, row: &Row, now: f64) -> bool {
        self.words.iter().all(|word| word.matches(model, row, now))
    }
}

fn word(text: &str) -> Result<Word, String> {
    let lower = text.to_lowercase();
    let Some((name, value)) = text.split_once(':') else { return Ok(Word::Text(lower)) };
    let value = value.to_owned();
    Ok(match (name, value.as_str()) {
        ("method", _) => Word::Method(value.to_lowercase()),
        ("tool" | "name" | "uri" | "task", _) => Word::Subject(value.to_lowercase()),
        ("id", _) => Word::Id(value),
        ("server", _) => Word::Server(value.to_lowercase()),
        ("dir", "sent") => Word::Direction(Way::Sent),
        ("dir", "received") => Word::Direction(Way::Received),
        ("is", "error") => Word::IsError,
        ("is", "pending") => Word::IsPending,
        ("is", "slow") => Word::Slow(SLOW),
        ("slow", _) => {
            let millis = value.trim_end_matches("ms").parse::<f64>();
            Word::Slow(millis.map_err(|_| format!("{text}: expected milliseconds"))? / 1000.0)
        }
        ("dir" | "is", _) => {
            return Err(format!(
                "{text}: expected dir:sent, dir:received, is:error, is:pending or is:slow"
            ));
        }
        _ => Word::Text(lower),
    })
}

impl Word {
    fn matches(&self, model: &Model, row: &Row, now: f64) -> bool {
        let has = |text: Option<&str>, part: &str| {
            text.is_some_and(|text| text.to_lowercase().contains(part))
        };
        match self {
            Self::Method(part) => has(row.method(), part),
            Self::Subject(part) => match &row.what {
                What::Request { subject, .. } => has(subject.as_deref(), part),
                _ => false,
            },
            Self::Id(wanted) => match &row.what {
                What::Request { id, .. } => id.trim_matches('"') == wanted,
                _ => false,
            },
            Self::Server(part) => {
                let session = model.sessions().get(row.session);
                session.is_some_and(|session| session.name().to_lowercase().contains(part))
            }
            Self::Direction(way) => row.line.direction == Some(*way),
            Self::IsError => row.is_error(),
            Self::IsPending => row.is_pending(),
            Self::Slow(seconds) => match &row.answer {
                Some(answer) => answer.took >= *seconds,
                None => row.is_pending() && now - row.line.at >= *seconds,
            },
            Self::Text(part) => {
                let lines =
                    std::iter::once(&row.line).chain(row.answer.as_ref().map(|it| &it.line));
                let mut texts = lines.flat_map(|line| {
                    let message = line.message.as_ref().map(bowline_proto::json::Json::as_str);
                    message.into_iter().chain(line.text.as_deref())
                });
                texts.any(|text| text.to_lowercase().contains(part))
            }
        }
    }
}
