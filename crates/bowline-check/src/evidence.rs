//! What was sent and what came back, shortened for people and for files.

use http::header::{LOCATION, WWW_AUTHENTICATE};
use serde_json::{Value, json};

use crate::frames::{HeaderChanges, HttpRequest, Lost};
use crate::reply::Received;
use crate::text::shorten;

/// How many characters of a message are kept.
const MOST: usize = 600;

/// One exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The frame, or the HTTP method. Headers that differ from the usual ones come first.
    pub sent: String,
    /// Over HTTP, the status comes first.
    pub received: Vec<String>,
}

impl Evidence {
    /// An exchange without its end.
    pub(crate) fn sent(frame: &str, changes: HeaderChanges<'_>) -> Self {
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

    /// The same for any HTTP request.
    pub(crate) fn request(request: &HttpRequest<'_>) -> Self {
        Self::sent(request.frame.unwrap_or(request.method.as_str()), request.changes)
    }

    /// The exchange with its end.
    pub(crate) fn with(mut self, received: &Result<Received, Lost>) -> Self {
        let received = match received {
            Err(lost) => {
                self.received.push(format!("({lost})"));
                return self;
            }
            Ok(received) => received,
        };
        self.received.extend(received.status.map(|status| status.to_string()));
        for name in [WWW_AUTHENTICATE, LOCATION] {
            for value in received.headers.get_all(&name) {
                let value = String::from_utf8_lossy(value.as_bytes());
                self.received.push(shorten(&format!("{name}: {value}"), MOST));
            }
        }
        let messages = received.messages.iter();
        self.received.extend(messages.map(|message| shorten(&message.to_string(), MOST)));
        self.received.extend(Some(received.other()).filter(|other| !other.is_empty()));
        self
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({"sent": self.sent, "received": self.received})
    }
}
