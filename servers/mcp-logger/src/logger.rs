//! The logger itself: what the tools and the command have in common.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bowline::with_causes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::allow::Allow;
use crate::arguments::{MessageOptions, Place};
use crate::config::{Config, ConfigError};
use crate::destination::{Destination, FrameError, Transport};
use crate::message::Format;
use crate::packet::Packets;
use crate::plan::{self, Look, PlanError};
use crate::rate::{Rate, TooFast};
use crate::schema::plain;
use crate::timestamp::Timestamp;
use crate::transport::{LinkError, Network};

/// Sends messages, within what is configured.
#[derive(Debug)]
pub struct Logger {
    config: Config,
    network: Network,
    rate: Rate,
    recent: Mutex<VecDeque<Record>>,
    own_name: String,
}

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callers {
    /// The person who started the program: everything is allowed unless a list says otherwise.
    Owner,
    /// Whoever reaches a port: nothing is allowed unless a list says so.
    Strangers,
}

/// What is known of the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Delivery {
    /// Sent over UDP, and nobody refused it. It may still be lost.
    Unconfirmed,
    /// Written to a connection or local socket that took it. Syslog has no receipt beyond that.
    Written,
    /// Nothing was sent: a dry run.
    None,
}

/// What became of a message.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(transform = plain)]
pub struct Receipt {
    /// Where it went: host and port, or the path of a socket; with the name of a target.
    pub target: String,
    /// What carried it.
    pub transport: Transport,
    /// How it was written.
    pub format: Format,
    /// How many bytes it took, frames included.
    pub bytes: usize,
    /// How many messages it became.
    pub messages: usize,
    /// Facility times eight plus severity.
    pub pri: u8,
    /// The facility's name.
    pub facility: &'static str,
    /// The severity's name.
    pub severity: &'static str,
    /// The encoding's name.
    pub encoding: &'static str,
    /// Whether the end of the text was cut off.
    pub truncated: bool,
    /// What is known of the delivery.
    pub delivery: Delivery,
    /// The exact bytes, in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Vec<Frame>>,
}

/// Bytes as they are sent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Frame {
    /// In hexadecimal.
    pub hex: String,
    /// As text, where they are UTF-8; other bytes as U+FFFD.
    pub text: String,
}

/// A send that happened. Never holds the text: others may read it here.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Record {
    /// When.
    pub time: String,
    /// Where to.
    pub target: String,
    /// What carried it.
    pub transport: Transport,
    /// Facility and severity.
    pub priority: String,
    /// Which program.
    pub tag: String,
    /// How many messages.
    pub messages: usize,
    /// How many bytes, without frames.
    pub bytes: usize,
    /// `sent`, or why not.
    pub outcome: String,
}

/// Why nothing, or not everything, was sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The request makes no sense.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Too many in too short a time.
    #[error(transparent)]
    TooFast(#[from] TooFast),
    /// It did not work.
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl From<FrameError> for SendError {
    fn from(error: FrameError) -> Self {
        Self::Link(error.into())
    }
}

/// A message that is ready to go.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// What it looks like.
    pub look: Look,
    /// Its bytes.
    pub packets: Packets,
}

impl Logger {
    /// A logger for some callers.
    ///
    /// # Errors
    /// When the configuration means nothing.
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

    /// What it was told.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Who may be sent to.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// How fast it may send.
    pub fn rate(&self) -> &Rate {
        &self.rate
    }

    /// Where a request goes.
    ///
    /// # Errors
    /// When the place is none, or contradicts the configuration.
    pub fn destination(&self, place: &Place) -> Result<Destination, PlanError> {
        plan::destination(&self.config, place)
    }

    /// Makes a message ready to go.
    ///
    /// # Errors
    /// When something about it makes no sense.
    pub fn prepare(
        &self,
        to: &Destination,
        options: MessageOptions,
        text: &str,
    ) -> Result<Parcel, PlanError> {
        let look = plan::look(&self.config, to, options, &self.own_name)?;
        let packets = look.packets(text)?;
        Ok(Parcel { look, packets })
    }

    /// Sends one message.
    ///
    /// # Errors
    /// When it cannot be sent; then it was not, or only the first of several parts.
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

    /// The sends of late, the last one first.
    pub fn recent(&self) -> Vec<Record> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.iter().rev().cloned().collect()
    }

    /// Keeps a send in mind, and forgets the oldest.
    pub fn remember(&self, to: &Destination, parcel: &Parcel, sent: Result<(), &SendError>) {
        let record = Record {
            time: Timestamp::now().to_rfc5424(),
            target: to.to_string(),
            transport: to.transport,
            priority: parcel.look.fields.priority.to_string(),
            tag: parcel.look.fields.tag.clone(),
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
    /// What is said once it is sent.
    ///
    /// # Errors
    /// When it cannot be framed on its way.
    pub fn receipt(&self, to: &Destination) -> Result<Receipt, FrameError> {
        let fields = &self.look.fields;
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
            encoding: self.look.rendering.charset.name(),
            truncated: self.packets.truncated,
            delivery: match to.transport {
                Transport::Udp => Delivery::Unconfirmed,
                _ => Delivery::Written,
            },
            frames: None,
        })
    }

    /// What is said when nothing is sent: the exact bytes.
    ///
    /// # Errors
    /// When it cannot be framed on its way.
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

/// What this machine calls itself; where that cannot be written in a header, nothing.
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
