//! The logger: what the tools and the command have in common.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline::with_causes;

use crate::allow::Allow;
use crate::arguments::{Endpoint, MessageOptions};
use crate::config::{Config, ConfigError};
use crate::destination::{Destination, FrameError, Transport};
use crate::identity::Identity;
use crate::packet::Packets;
use crate::plan::{self, Layout, PlanError};
use crate::rate::{Rate, TooFast};
use crate::receipt::{Delivery, Frame, Receipt, Record, Waiting};
use crate::spool::{Spool, SpoolError};
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
    spool: Option<Arc<Spool>>,
}

/// Why a message is spooled while others wait for the same target.
const BEHIND: &str = "earlier messages are still waiting";

/// Who may call the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callers {
    /// Only the user who started the program: everything is allowed unless a list says otherwise.
    Owner,
    /// Anyone who can reach the port: only listed destinations are allowed.
    Strangers,
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
    /// Sending failed, and so did keeping the message for later.
    #[error("{reason}; and it cannot be kept for later")]
    NotKept {
        /// Why sending failed.
        reason: String,
        /// Why it was not kept.
        #[source]
        cause: SpoolError,
    },
}

impl SendError {
    /// Whether the same message may be sent later, without any change.
    fn may_pass(&self) -> bool {
        match self {
            Self::Link(LinkError::NotAllowed(_) | LinkError::Frame(_)) => false,
            Self::Link(_) => true,
            Self::Plan(_) | Self::TooFast(_) | Self::NotKept { .. } => false,
        }
    }
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
        let spool = config.spool.clone();
        let spool = spool.map(|settings| Spool::open(settings, &config, &network)).transpose()?;
        Ok(Self {
            spool,
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

    /// What keeps messages that could not be sent, if anything does.
    pub fn spool(&self) -> Option<&Arc<Spool>> {
        self.spool.as_ref()
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

    /// Prepares a message for sending, on behalf of a caller if there is one.
    ///
    /// # Errors
    /// If the message is invalid.
    pub fn prepare(
        &self,
        to: &Destination,
        options: MessageOptions,
        text: &str,
        caller: Option<&Identity>,
    ) -> Result<Parcel, PlanError> {
        let layout = plan::layout(&self.config, to, options, (&self.own_name, caller))?;
        let packets = layout.packets(text)?;
        Ok(Parcel { layout, packets })
    }

    /// Sends one message, or spools it.
    ///
    /// # Errors
    /// If sending fails and the message is not spooled. Then nothing was sent, or only the first of
    /// several parts.
    pub async fn send(&self, to: &Destination, parcel: &Parcel) -> Result<Receipt, SendError> {
        let sent = self.send_now(to, parcel).await;
        self.remember(
            to,
            parcel,
            match &sent {
                Ok(Receipt { waiting: Some(_), .. }) => "spooled".to_owned(),
                Ok(_) => "sent".to_owned(),
                Err(error) => with_causes(error),
            },
        );
        sent
    }

    async fn send_now(&self, to: &Destination, parcel: &Parcel) -> Result<Receipt, SendError> {
        let receipt = parcel.receipt(to)?;
        self.rate.take(receipt.messages)?;
        let packets = &parcel.packets.packets;
        let sending = async {
            let mut link = self.network.open(to).await?;
            for packet in packets {
                link.send(packet).await?;
            }
            Ok(link.finish().await?)
        };
        let waiting = self.or_spool(to, || packets.clone(), sending).await?;
        let delivery = if waiting.is_some() { Delivery::Spooled } else { receipt.delivery };
        Ok(Receipt { delivery, waiting, ..receipt })
    }

    /// Sends messages or, if that fails or others are waiting for the same target, spools all of
    /// them. A connection that breaks does not say what the receiver has read of it.
    ///
    /// # Errors
    /// If sending fails and the messages are not spooled.
    pub async fn or_spool(
        &self,
        to: &Destination,
        packets: impl FnOnce() -> Vec<Vec<u8>>,
        sending: impl Future<Output = Result<(), SendError>>,
    ) -> Result<Option<Waiting>, SendError> {
        let Some(spool) = &self.spool else { return sending.await.map(|()| None) };
        let reason = if spool.is_waiting(to).await {
            self.network.check(to)?;
            BEHIND.to_owned()
        } else {
            match sending.await {
                Ok(()) => return Ok(None),
                Err(error) if error.may_pass() => with_causes(&error),
                Err(error) => return Err(error),
            }
        };
        match spool.keep(to, packets()).await {
            Ok(messages) => Ok(Some(Waiting { messages, reason })),
            Err(cause) => Err(SendError::NotKept { reason, cause }),
        }
    }

    /// Recent sends, newest first.
    pub fn recent(&self) -> Vec<Record> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.iter().rev().cloned().collect()
    }

    /// Records a send, and drops the oldest record.
    pub fn remember(&self, to: &Destination, parcel: &Parcel, outcome: String) {
        let record = Record {
            time: Timestamp::now().to_rfc5424(),
            target: to.to_string(),
            transport: to.transport,
            priority: parcel.layout.fields.priority.to_string(),
            tag: parcel.layout.fields.tag.clone(),
            messages: parcel.packets.packets.len(),
            bytes: parcel.packets.packets.iter().map(Vec::len).sum(),
            outcome,
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
            waiting: None,
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
