//! What was sent and what came back, shortened for people and for files.

use http::header::{LOCATION, WWW_AUTHENTICATE};
use serde_json::{Value, json};

use super::wire::{Changes, Heard, Lost};

/// How much of a message is kept.
const MOST: usize = 600;

/// One exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Evidence {
    /// The frame, or the HTTP verb. Over HTTP the headers that differ from the usual come first.
    pub(super) sent: String,
    /// Over HTTP the status comes first.
    pub(super) received: Vec<String>,
}

impl Evidence {
    /// An exchange of which nothing has been heard yet.
    pub(super) fn sent(frame: &str, changes: Changes<'_>) -> Self {
        let mut sent = String::new();
        for (name, value) in changes {
            sent.push_str(&match value {
                Some(value) => format!("{name}: {value} "),
                None => format!("(no {name}) "),
            });
        }
        sent.push_str(&shorten(frame, MOST));
        Self { sent, received: Vec::new() }
    }

    /// The exchange with its end.
    pub(super) fn heard(mut self, heard: &Result<Heard, Lost>) -> Self {
        match heard {
            Err(lost) => self.received.push(format!("({lost})")),
            Ok(heard) => {
                self.received.extend(heard.status.map(|status| status.to_string()));
                for name in [WWW_AUTHENTICATE, LOCATION] {
                    for value in heard.headers.get_all(&name) {
                        let value = String::from_utf8_lossy(value.as_bytes());
                        self.received.push(shorten(&format!("{name}: {value}"), MOST));
                    }
                }
                let messages = heard.messages.iter();
                self.received.extend(messages.map(|message| shorten(&message.to_string(), MOST)));
                if !heard.other.is_empty() {
                    self.received.push(shorten(&heard.other, MOST));
                }
            }
        }
        self
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"sent": self.sent, "received": self.received})
    }
}

/// At most this many characters, in one line, with nothing that moves a cursor.
pub(super) fn shorten(text: &str, most: usize) -> String {
    let clean = |character: char| if character.is_control() { ' ' } else { character };
    let mut short: String = text.chars().take(most).map(clean).collect();
    let left = text.chars().count().saturating_sub(most);
    if left > 0 {
        short.push_str(&format!("… ({left} more)"));
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_odd_texts_become_short_lines() {
        assert_eq!(shorten("plain", 10), "plain");
        assert_eq!(shorten("a\nb\x1b[2J", 10), "a b [2J");
        assert_eq!(shorten("äöüß", 2), "äö… (2 more)");
    }
}
