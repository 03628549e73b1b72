//! What the tools say.

use std::fmt;

use bowline::model::{CallToolResult, ContentBlock};
use bowline::with_causes;
use bowline::{Json, ToolOutcome, ToolOutput, schema_for};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::destination::Transport;
use crate::logger::{Delivery, Receipt, SendError};
use crate::schema::plain;

/// The answer to one message.
#[derive(Debug, Clone)]
pub struct Sent(pub Receipt);

/// The answer to many.
#[derive(Debug, Clone)]
pub struct SentBatch(pub BatchReceipt);

/// What became of many messages.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(transform = plain)]
pub struct BatchReceipt {
    /// Where they went.
    pub target: String,
    /// What carried them.
    pub transport: Transport,
    /// How many entries of the batch were sent: all of them.
    pub sent: usize,
    /// How many messages they became.
    pub messages: usize,
    /// How many bytes they took, frames included.
    pub bytes: usize,
    /// How many were cut short.
    pub truncated: usize,
    /// What is known of their delivery.
    pub delivery: Delivery,
}

/// Why a tool failed, for the model.
#[derive(Debug)]
pub struct Failed {
    what: &'static str,
    sent: Option<(usize, usize)>,
    cause: SendError,
}

impl Failed {
    /// A test failed.
    pub fn test(cause: SendError) -> Self {
        Self { what: "Target test failed", sent: None, cause }
    }

    /// Some of a batch had been sent.
    pub fn half_way(cause: SendError, sent: usize, of: usize) -> Self {
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
                write!(f, "{what}: {cause} (sent {sent} of {of} messages before)")
            }
        }
    }
}

impl ToolOutput for Sent {
    fn into_outcome(self) -> ToolOutcome {
        answer(self.text(), &self.0)
    }

    fn output_schema() -> Option<Value> {
        Some(schema_for::<Receipt>())
    }
}

impl ToolOutput for SentBatch {
    fn into_outcome(self) -> ToolOutcome {
        let BatchReceipt { sent, target, truncated, .. } = &self.0;
        let mut text = format!("Success: Sent {sent} messages to {target}");
        if *truncated > 0 {
            text += &format!(", {truncated} of them cut short");
        }
        answer(text, &self.0)
    }

    fn output_schema() -> Option<Value> {
        Some(schema_for::<BatchReceipt>())
    }
}

impl Sent {
    fn text(&self) -> String {
        let Receipt { target, encoding, messages, bytes, .. } = &self.0;
        if let Some(frames) = &self.0.frames {
            let lines = frames.iter().map(|frame| format!("\n{}\n{}", frame.text, frame.hex));
            let lines: String = lines.collect();
            return format!("Dry run: {bytes} bytes, not sent to {target}:{lines}");
        }
        let mut text = format!("Success: Sent to {target} (Encoding: {encoding})");
        if *messages > 1 {
            text += &format!(", split into {messages} messages");
        }
        if self.0.truncated {
            text += &format!(", cut to {bytes} bytes");
        }
        text
    }
}

fn answer(text: String, data: &impl Serialize) -> ToolOutcome {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    // What is sent without its data has still been sent.
    result.structured_content = Json::new(data).ok();
    Ok(result)
}
