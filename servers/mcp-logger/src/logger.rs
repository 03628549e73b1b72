//! The logger: what the tools and the command have in common.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bowline::with_causes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::allow::Allow;
use crate::arguments::{Endpoint, MessageOptions};
use crate::config::{Config, ConfigError};
use crate::destination::{Destination, FrameError, Transport};
use crate::message::Format;
use crate::packet::Packets;
use crate::plan::{self, Layout, PlanError};
use crate::rate::{Rate, TooFast};
use crate::schema::plain;
use crate::timestamp::Timestamp;
use crate::transport::{LinkError, Network};

/// Sends messages within the limits of the configuration.
#[derive(Debug)]
pub struct Logger {
    config: Config,
    network: Network,
    rate: Rate,
    recent: Mutex<VecDeque<Record>>,
    own_name: String,
}

/// Who may call the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callers {
    /// Only the user who started the program: everything is allowed unless a list says otherwise.
    Owner,
    /// Anyone who can reach the port: only listed destinations are allowed.
    Strangers,
}

/// How far delivery is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Delivery {
    /// Sent over UDP, and not rejected. It may still be lost.
    Unconfirmed,
    /// Written to a connection or local socket. Syslog has no acknowledgements beyond that.
    Written,
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
    /// The exact bytes, in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Vec<Frame>>,
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
    /// `sent`, or the error.
    pub outcome: String,
}

/// Why a message was not sent, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The request is invalid.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The rate limit is exceeded.
    #[error(transparent)]
    TooFast(#[from] TooFast),
    /// Sending failed.
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl From<FrameError> for SendError {
    fn from(error: FrameError) -> Self {
        Self::Link(error.into())
    }
}

/// A message ready to be sent.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// How it is written.
    pub layout: Layout,
    /// Its bytes.
    pub packets: Packets,
}

impl Logger {
    /// Creates a logger for these callers.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn new(config: Config, callers: Callers) -> Result<Self, ConfigError> {
        let allow = match (config.entries()?, callers) {
            (Some(entries), _) => Allow::Listed(entries),
            (None, Callers::Owner) => Allow::Anything,
            (None, Callers::Strangers) => Allow::Listed(Vec::new()),
        };
        let network = Network {
            allow,
            connect_to: config.connect_to.clone(),
            udp_wait: Duration::from_millis(config.udp_wait_ms.into()),
        };
        Ok(Self {
            rate: Rate::new(config.messages_per_second, config.burst),
            recent: Mutex::new(VecDeque::new()),
            own_name: own_name(),
            network,
            config,
        })
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The network settings.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The rate limit.
    pub fn rate(&self) -> &Rate {
        &self.rate
    }

    /// The destination of a request.
    ///
    /// # Errors
    /// If the endpoint is invalid or contradicts the configuration.
    pub fn destination(&self, endpoint: &Endpoint) -> Result<Destination, PlanError> {
        plan::destination(&self.config, endpoint)
    }

    /// Prepares a message for sending.
    ///
    /// # Errors
    /// If the message is invalid.
    pub fn prepare(
        &self,
        to: &Destination,
        options: MessageOptions,
        text: &str,
    ) -> Result<Parcel, PlanError> {
        let layout = plan::layout(&self.config, to, options, &self.own_name)?;
        let packets = layout.packets(text)?;
        Ok(Parcel { layout, packets })
    }

    /// Sends one message.
    ///
    /// # Errors
    /// If sending fails. Then nothing was sent, or only the first of several parts.
    pub async fn send(&self, to: &Destination, parcel: &Parcel) -> Result<Receipt, SendError> {
        let sent = self.send_now(to, parcel).await;
        self.remember(to, parcel, sent.as_ref().map(|_| ()));
        sent
    }

    async fn send_now(&self, to: &Destination, parcel: &Parcel) -> Result<Receipt, SendError> {
        let receipt = parcel.receipt(to)?;
        self.rate.take(receipt.messages)?;
        let mut link = self.network.open(to).await?;
        for packet in &parcel.packets.packets {
            link.send(packet).await?;
        }
        link.finish().await?;
        Ok(receipt)
    }

    /// Recent sends, newest first.
    pub fn recent(&self) -> Vec<Record> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.iter().rev().cloned().collect()
    }

    /// Records a send, and drops the oldest record.
    pub fn remember(&self, to: &Destination, parcel: &Parcel, sent: Result<(), &SendError>) {
        let record = Record {
            time: Timestamp::now().to_rfc5424(),
            target: to.to_string(),
            transport: to.transport,
            priority: parcel.layout.fields.priority.to_string(),
            tag: parcel.layout.fields.tag.clone(),
            messages: parcel.packets.packets.len(),
            bytes: parcel.packets.packets.iter().map(Vec::len).sum(),
            outcome: sent.map_or_else(|error| with_causes(error), |()| "sent".to_owned()),
        };
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.push_back(record);
        while recent.len() > self.config.recent {
            recent.pop_front();
        }
    }
}

impl Parcel {
    /// The receipt for sending it.
    ///
    /// # Errors
    /// If it cannot be framed for this destination.
    pub fn receipt(&self, to: &Destination) -> Result<Receipt, FrameError> {
        let fields = &self.layout.fields;
        let mut bytes = 0;
        for packet in &self.packets.packets {
            bytes += to.frame(packet)?.len();
        }
        Ok(Receipt {
            target: to.to_string(),
            transport: to.transport,
            format: fields.format,
            bytes,
            messages: self.packets.packets.len(),
            pri: fields.priority.pri(),
            facility: fields.priority.facility.name(),
            severity: fields.priority.severity.name(),
            encoding: self.layout.rendering.charset.name(),
            truncated: self.packets.truncated,
            delivery: match to.transport {
                Transport::Udp => Delivery::Unconfirmed,
                _ => Delivery::Written,
            },
            frames: None,
        })
    }

    /// The receipt for a dry run: the exact bytes.
    ///
    /// # Errors
    /// If it cannot be framed for this destination.
    pub fn dry_run(&self, to: &Destination) -> Result<Receipt, FrameError> {
        let mut frames = Vec::new();
        for packet in &self.packets.packets {
            let frame = to.frame(packet)?;
            frames.push(Frame {
                hex: frame.iter().map(|byte| format!("{byte:02x}")).collect(),
                text: String::from_utf8_lossy(&frame).into_owned(),
            });
        }
        Ok(Receipt { delivery: Delivery::None, frames: Some(frames), ..self.receipt(to)? })
    }
}

/// The name of this machine, or `-` if it cannot be written in a header.
fn own_name() -> String {
    let is_writable = |name: &String| {
        let first = name.split('.').next().unwrap_or_default();
        (1..=255).contains(&name.len())
            && !first.is_empty()
            && name.bytes().all(|it| it.is_ascii_graphic())
    };
    let name = gethostname::gethostname().into_string().ok();
    name.filter(is_writable).unwrap_or_else(|| "-".to_owned())
}
