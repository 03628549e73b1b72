//! The results of the tools, as text and as data.

use std::fmt;

use bowline::{Structured, ToolOutcome, ToolOutput, with_causes};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::destination::Transport;
use crate::logger::SendError;
use crate::receipt::{Delivery, Receipt, Waiting};
use crate::schema::plain;

/// The result of sending one message.
#[derive(Debug, Clone)]
pub struct Sent(pub Receipt);

/// The result of sending a batch.
#[derive(Debug, Clone)]
pub struct SentBatch(pub BatchReceipt);

/// What was sent of a batch.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(transform = plain)]
pub struct BatchReceipt {
    /// Where the messages went.
    pub target: String,
    /// The transport.
    pub transport: Transport,
    /// How many entries of the batch were sent: all of them, or none if they were spooled.
    pub sent: usize,
    /// How many syslog messages that took.
    pub messages: usize,
    /// How many bytes were sent, framing included.
    pub bytes: usize,
    /// How many were truncated.
    pub truncated: usize,
    /// How far delivery is known.
    pub delivery: Delivery,
    /// How many messages wait for this target, and why, if these were spooled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
}

/// Why a tool failed, in words for the model.
#[derive(Debug)]
pub struct Failed {
    what: &'static str,
    sent: Option<(usize, usize)>,
    cause: SendError,
}

impl Failed {
    /// A failed test of a target.
    pub fn test(cause: SendError) -> Self {
        Self { what: "Target test failed", sent: None, cause }
    }

    /// A batch that failed part of the way through.
    pub fn part_way(cause: SendError, sent: usize, of: usize) -> Self {
        Self { sent: Some((sent, of)), ..Self::from(cause) }
    }
}

impl From<SendError> for Failed {
    fn from(cause: SendError) -> Self {
        Self { what: "Failed to send syslog", sent: None, cause }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sent {
            None => write!(f, "{}: {}", self.what, with_causes(&self.cause)),
            Some((sent, of)) => {
                let (what, cause) = (self.what, with_causes(&self.cause));
                write!(f, "{what}: {cause} (sent {sent} of {of} messages before that)")
            }
        }
    }
}

impl std::error::Error for Failed {}

impl ToolOutput for Sent {
    fn into_outcome(self) -> ToolOutcome {
        let text = self.text();
        Structured(self.0).with_text(text).into_outcome()
    }

    fn output_schema() -> Option<Value> {
        Structured::<Receipt>::output_schema()
    }
}

impl ToolOutput for SentBatch {
    fn into_outcome(self) -> ToolOutcome {
        let BatchReceipt { sent, target, truncated, waiting, .. } = &self.0;
        let mut text = match waiting {
            None => format!("Success: Sent {sent} messages to {target}"),
            Some(waiting) => spooled(target, waiting),
        };
        if *truncated > 0 {
            text += &format!(", {truncated} of them truncated");
        }
        Structured(self.0).with_text(text).into_outcome()
    }

    fn output_schema() -> Option<Value> {
        Structured::<BatchReceipt>::output_schema()
    }
}

fn spooled(target: &str, Waiting { messages, reason }: &Waiting) -> String {
    format!(
        "Spooled: not sent to {target} yet ({reason}); {messages} messages are waiting and will be \
         sent in order. syslog://spool shows the spool"
    )
}

impl Sent {
    fn text(&self) -> String {
        let Receipt { target, encoding, messages, bytes, .. } = &self.0;
        if let Some(frames) = &self.0.frames {
            let lines = frames.iter().map(|frame| format!("\n{}\n{}", frame.text, frame.hex));
            let lines: String = lines.collect();
            return format!("Dry run: {bytes} bytes, not sent to {target}:{lines}");
        }
        if let Some(waiting) = &self.0.waiting {
            return spooled(target, waiting);
        }
        let mut text = format!("Success: Sent to {target} (Encoding: {encoding})");
        if *messages > 1 {
            text += &format!(", split into {messages} messages");
        }
        if self.0.truncated {
            text += &format!(", truncated to {bytes} bytes");
        }
        text
    }
}
