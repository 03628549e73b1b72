//! What the tools take, as schemas and as types.
//!
//! Everything but the server and the message can be left out. What is left out comes from the
//! configuration, and else from the defaults that are told here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::destination::{Framing, Transport};
use crate::encoding::{Bom, OnUnmappable};
use crate::escape::ControlCharacters;
use crate::message::Format;
use crate::packet::Oversize;
use crate::schema::{brief, plain};
use crate::structured_data::StructuredData;

/// Where to send.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Place {
    /// IP address (IPv4 or IPv6) or host name of the syslog server, or the name of a configured
    /// target. With transport unix, the path of a socket such as /dev/log.
    pub server: String,
    /// Port of the syslog server; 6514 unless given with transport tls.
    #[schemars(range(min = 1, max = 65535), extend("default" = 514))]
    pub port: Option<u16>,
    /// udp sends datagrams whose delivery nobody confirms; tcp and tls connect; unix is a socket of
    /// this machine.
    #[schemars(extend("default" = "udp"))]
    pub transport: Option<Transport>,
    /// How messages are told apart on tcp and tls.
    #[schemars(extend("default" = "octet-counting"))]
    pub framing: Option<Framing>,
    /// How long looking up, connecting and writing may take together, in milliseconds.
    #[schemars(range(min = 1, max = 60000), extend("default" = 5000))]
    pub timeout_ms: Option<u32>,
}

/// Everything about a message but its text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MessageOptions {
    /// How bad it is: emerg, alert, crit, error, warning, notice, info or debug, an alias such as
    /// err, or a number from "0" (worst) to "7".
    #[schemars(extend("default" = "info"))]
    pub severity: Option<String>,
    /// Which part of the system speaks: kern, user, mail, daemon, auth, syslog, lpr, news, uucp,
    /// cron, authpriv, ftp, ntp, audit, alert, clock, local0 to local7, or a number from "0" to
    /// "23".
    #[schemars(extend("default" = "user"))]
    pub facility: Option<String>,
    /// Name of the program that speaks; APP-NAME in rfc5424.
    #[schemars(extend("default" = "mcp-logger"))]
    pub tag: Option<String>,
    /// Encoding of the text, such as utf-8, `shift_jis`, euc-jp, iso-2022-jp, gbk,
    /// windows-1252. The receiver must expect it.
    #[schemars(extend("default" = "utf-8"))]
    pub encoding: Option<String>,
    /// How the message is written.
    #[schemars(extend("default" = "rfc3164"))]
    pub format: Option<Format>,
    /// Name of the machine that speaks, instead of this machine's; "-" for none in rfc5424.
    pub hostname: Option<String>,
    /// Number or name of the process that speaks.
    pub procid: Option<String>,
    /// Kind of the message, such as TCPIN. Only in rfc5424.
    pub msgid: Option<String>,
    /// Parameters by element, such as {"deploy@32473": {"stage": "prod"}}. Only in rfc5424.
    pub structured_data: Option<StructuredData>,
    /// When it happened, in RFC 3339 with an offset, instead of now; "none" for none in rfc5424.
    pub timestamp: Option<String>,
    /// Whether a byte order mark tells the receiver that the text is UTF-8; auto: when it is not
    /// plain ASCII.
    #[schemars(extend("default" = "auto"))]
    pub bom: Option<Bom>,
    /// What becomes of characters that the encoding does not have: error sends nothing, replace
    /// sends a question mark, translit something that looks alike.
    #[schemars(extend("default" = "error"))]
    pub on_unmappable: Option<OnUnmappable>,
    /// What becomes of line breaks and other control characters: escape writes them out, such as
    /// #012; keep sends them as they are.
    #[schemars(extend("default" = "escape"))]
    pub control_characters: Option<ControlCharacters>,
    /// Longest message in bytes, header included. Default: over udp 1024 for rfc3164 and 2048 for
    /// rfc5424, otherwise 8192.
    #[schemars(range(min = 1, max = 1048576))]
    pub max_size: Option<u32>,
    /// What becomes of a longer one: error sends nothing, truncate cuts it, split sends several.
    #[schemars(extend("default" = "error"))]
    pub oversize: Option<Oversize>,
}

/// What `send-syslog` takes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(transform = plain)]
pub struct SendArguments {
    /// Where to send.
    #[serde(flatten)]
    pub place: Place,
    /// The text.
    pub message: String,
    /// Everything else about the message.
    #[serde(flatten)]
    pub options: MessageOptions,
    /// Send nothing, and show the exact bytes that would be sent.
    #[serde(default)]
    pub dry_run: bool,
}

/// One message of a batch.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(transform = brief)]
pub struct BatchEntry {
    /// The text.
    pub message: String,
    /// What is different from the other messages of the batch.
    #[serde(flatten)]
    pub options: MessageOptions,
}

/// What `send-syslog-batch` takes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(transform = plain)]
pub struct BatchArguments {
    /// Where to send.
    #[serde(flatten)]
    pub place: Place,
    /// The messages in order, up to 10000. Each can have options of its own.
    #[schemars(length(min = 1, max = 10000))]
    pub messages: Vec<BatchEntry>,
    /// What they have in common.
    #[serde(flatten)]
    pub options: MessageOptions,
}

/// What `test-syslog-target` takes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(transform = plain)]
pub struct ProbeArguments {
    /// What to test.
    #[serde(flatten)]
    pub place: Place,
}

impl MessageOptions {
    /// What these say, and where they say nothing, what the others say.
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
