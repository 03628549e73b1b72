//! What became of a message, as callers are told.

use schemars::JsonSchema;
use serde::Serialize;

use crate::destination::Transport;
use crate::message::Format;
use crate::schema::plain;

/// How far delivery is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Delivery {
    /// Sent over UDP, and not rejected. It may still be lost.
    Unconfirmed,
    /// Written to a connection or local socket. Syslog has no acknowledgements beyond that.
    Written,
    /// Not sent yet: it waits on the disk of this machine, and is sent when the receiver is back.
    Spooled,
    /// Nothing was sent: a dry run.
    None,
}

/// What was sent of a message.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(transform = plain)]
pub struct Receipt {
    /// Where it went: host and port or the path of a socket, after the name of the target if there
    /// is one.
    pub target: String,
    /// The transport.
    pub transport: Transport,
    /// The message format.
    pub format: Format,
    /// How many bytes were sent, framing included.
    pub bytes: usize,
    /// How many syslog messages it took.
    pub messages: usize,
    /// Facility times eight plus severity.
    pub pri: u8,
    /// The facility's name.
    pub facility: &'static str,
    /// The severity's name.
    pub severity: &'static str,
    /// The encoding's name.
    pub encoding: &'static str,
    /// Whether the text was truncated.
    pub truncated: bool,
    /// How far delivery is known.
    pub delivery: Delivery,
    /// How many messages wait for this target, and why, if this one was spooled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// The exact bytes, in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Vec<Frame>>,
}

/// What waits for a target in the spool.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Waiting {
    /// How many messages, these included.
    pub messages: usize,
    /// Why they were not sent.
    pub reason: String,
}

/// The bytes of one message as they are sent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Frame {
    /// In hexadecimal.
    pub hex: String,
    /// As text; bytes that are not UTF-8 appear as U+FFFD.
    pub text: String,
}

/// A past send. It never contains the text, because other clients can read it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Record {
    /// The time.
    pub time: String,
    /// The destination.
    pub target: String,
    /// The transport.
    pub transport: Transport,
    /// Facility and severity.
    pub priority: String,
    /// The name of the program.
    pub tag: String,
    /// The number of messages.
    pub messages: usize,
    /// The number of bytes, without framing.
    pub bytes: usize,
    /// `sent`, `spooled`, or the error.
    pub outcome: String,
}
