//! The arguments of the tools, as types and as schemas.
//!
//! Everything but the server and the message is optional. What is left out comes from the
//! configuration, or else from the defaults documented here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::destination::{Framing, Transport};
use crate::encoding::{Bom, OnUnmappable};
use crate::escape::ControlCharacters;
use crate::message::Format;
use crate::packet::Oversize;
use crate::schema::{brief, plain};
use crate::structured_data::StructuredData;

/// Where to send.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Endpoint {
    /// IP address (IPv4 or IPv6) or host name of the syslog server, or the name of a configured
    /// target. With transport unix, the path of a socket such as /dev/log.
    pub server: String,
    /// Port of the syslog server. With transport tls the default is 6514.
    #[schemars(range(min = 1, max = 65535), extend("default" = 514))]
    pub port: Option<u16>,
    /// udp sends datagrams, without confirmation of delivery; tcp and tls connect; unix is a local
    /// socket.
    #[schemars(extend("default" = "udp"))]
    pub transport: Option<Transport>,
    /// How messages are delimited over tcp and tls.
    #[schemars(extend("default" = "octet-counting"))]
    pub framing: Option<Framing>,
    /// Time limit in milliseconds for name resolution, connecting and writing together.
    #[schemars(range(min = 1, max = 60000), extend("default" = 5000))]
    pub timeout_ms: Option<u32>,
}

/// All options of a message; its text is separate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MessageOptions {
    /// Severity: emerg, alert, crit, error, warning, notice, info or debug, an alias such as err,
    /// or a number from "0" (most severe) to "7".
    #[schemars(extend("default" = "info"))]
    pub severity: Option<String>,
    /// Part of the system that logs the message: kern, user, mail, daemon, auth, syslog, lpr, news,
    /// uucp, cron, authpriv, ftp, ntp, audit, alert, clock, local0 to local7, or a number from "0"
    /// to "23".
    #[schemars(extend("default" = "user"))]
    pub facility: Option<String>,
    /// Name of the program that logs the message; APP-NAME in rfc5424.
    #[schemars(extend("default" = "mcp-logger"))]
    pub tag: Option<String>,
    /// Encoding of the text, such as utf-8, `shift_jis`, euc-jp, iso-2022-jp, gbk, windows-1252.
    /// The receiver must expect it.
    #[schemars(extend("default" = "utf-8"))]
    pub encoding: Option<String>,
    /// Message format.
    #[schemars(extend("default" = "rfc3164"))]
    pub format: Option<Format>,
    /// Host name to report instead of this machine's; "-" for none in rfc5424.
    pub hostname: Option<String>,
    /// Process id or name.
    pub procid: Option<String>,
    /// Message type, such as TCPIN. rfc5424 only.
    pub msgid: Option<String>,
    /// Parameters by element, such as {"deploy@32473": {"stage": "prod"}}. rfc5424 only.
    pub structured_data: Option<StructuredData>,
    /// Time of the event in RFC 3339 with an offset, instead of "now"; "none" for none in rfc5424.
    pub timestamp: Option<String>,
    /// Whether to mark the text as UTF-8 with a byte order mark; auto does so if it is not plain
    /// ASCII.
    #[schemars(extend("default" = "auto"))]
    pub bom: Option<Bom>,
    /// What to do with characters the encoding does not have: error sends nothing, replace sends a
    /// question mark, translit sends a similar character.
    #[schemars(extend("default" = "error"))]
    pub on_unmappable: Option<OnUnmappable>,
    /// What to do with line breaks and other control characters: escape writes them as #012 and so
    /// on; keep sends them unchanged, where the configuration keeps them.
    #[schemars(extend("default" = "escape"))]
    pub control_characters: Option<ControlCharacters>,
    /// Maximum message size in bytes, header included. Default: over udp 1024 for rfc3164 and 2048
    /// for rfc5424, otherwise 8192.
    #[schemars(range(min = 1, max = 1048576))]
    pub max_size: Option<u32>,
    /// What to do with a message that is too long: error sends nothing, truncate cuts it, split
    /// sends several messages.
    #[schemars(extend("default" = "error"))]
    pub oversize: Option<Oversize>,
}

/// The arguments of `send-syslog`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(transform = plain)]
pub struct SendArguments {
    /// Where to send.
    #[serde(flatten)]
    pub endpoint: Endpoint,
    /// The text.
    pub message: String,
    /// All other options.
    #[serde(flatten)]
    pub options: MessageOptions,
    /// Send nothing; return the exact bytes that would be sent.
    #[serde(default)]
    pub dry_run: bool,
}

/// A message in a batch.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(transform = brief)]
pub struct BatchEntry {
    /// The text.
    pub message: String,
    /// Options that override those of the batch.
    #[serde(flatten)]
    pub options: MessageOptions,
}

/// The arguments of `send-syslog-batch`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(transform = plain)]
pub struct BatchArguments {
    /// Where to send.
    #[serde(flatten)]
    pub endpoint: Endpoint,
    /// The messages in order, up to 10000. Each can set its own options.
    #[schemars(length(min = 1, max = 10000))]
    pub messages: Vec<BatchEntry>,
    /// Options for all messages.
    #[serde(flatten)]
    pub options: MessageOptions,
}

/// The arguments of `test-syslog-target`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(transform = plain)]
pub struct ProbeArguments {
    /// What to test.
    #[serde(flatten)]
    pub endpoint: Endpoint,
}

impl MessageOptions {
    /// The first option that is set in both, to different values.
    pub fn contradicts(&self, fixed: &Self) -> Option<String> {
        if *fixed == Self::default() {
            return None;
        }
        let members = |options: &Self| match serde_json::to_value(options) {
            Ok(Value::Object(members)) => members,
            _ => serde_json::Map::new(),
        };
        let given = members(self);
        let differs = |name: &str, fixed: &Value| {
            let given = given.get(name).unwrap_or(&Value::Null);
            !fixed.is_null() && !given.is_null() && given != fixed
        };
        members(fixed).into_iter().find(|(name, fixed)| differs(name, fixed)).map(|it| it.0)
    }

    /// These options, with those of `other` where these are not set.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        let text = |here: Option<String>, there: &Option<String>| here.or_else(|| there.clone());
        Self {
            severity: text(self.severity, &other.severity),
            facility: text(self.facility, &other.facility),
            tag: text(self.tag, &other.tag),
            encoding: text(self.encoding, &other.encoding),
            format: self.format.or(other.format),
            hostname: text(self.hostname, &other.hostname),
            procid: text(self.procid, &other.procid),
            msgid: text(self.msgid, &other.msgid),
            structured_data: self.structured_data.or_else(|| other.structured_data.clone()),
            timestamp: text(self.timestamp, &other.timestamp),
            bom: self.bom.or(other.bom),
            on_unmappable: self.on_unmappable.or(other.on_unmappable),
            control_characters: self.control_characters.or(other.control_characters),
            max_size: self.max_size.or(other.max_size),
            oversize: self.oversize.or(other.oversize),
        }
    }
}
