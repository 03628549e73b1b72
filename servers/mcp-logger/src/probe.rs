//! Whether a syslog server can be reached, step by step, without logging anything.

use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use crate::destination::{Destination, Transport};
use crate::logger::Logger;
use crate::schema::plain;
use crate::transport::{Handshake, LinkError};

/// What a test found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(transform = plain)]
pub struct Finding {
    /// What was tested.
    pub target: String,
    /// What would carry messages.
    pub transport: Transport,
    /// The addresses that may be sent to.
    pub addresses: Vec<String>,
    /// The address that answered, or was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How long all of it took, in milliseconds.
    pub elapsed_ms: u64,
    /// What was agreed, for TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Handshake>,
    /// What that means.
    pub conclusion: String,
}

/// Resolves, connects, and agrees on TLS, as a send would. Over UDP an empty datagram is sent,
/// which receivers ignore, because only a datagram can be refused.
///
/// # Errors
/// At the first step that fails.
pub async fn probe(logger: &Logger, to: &Destination) -> Result<Finding, LinkError> {
    let start = Instant::now();
    let network = logger.network();
    let mut link = network.open(to).await?;
    let addresses = link.addresses.iter().map(ToString::to_string).collect();
    let address = link.address.map(|address| address.to_string());
    let tls = link.handshake.clone();
    if to.transport == Transport::Udp {
        link.send(b"").await?;
    }
    link.finish().await?;
    let conclusion = match to.transport {
        Transport::Udp => {
            "Nothing refused an empty datagram. UDP cannot tell more: a firewall may still drop \
             messages, and a receiver may not be there."
        }
        Transport::Tcp => "A connection was accepted.",
        Transport::Tls => "An encrypted connection was accepted, and the certificate is trusted.",
        Transport::Unix => "The socket is there.",
    };
    Ok(Finding {
        target: to.to_string(),
        transport: to.transport,
        addresses,
        address,
        elapsed_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
        tls,
        conclusion: conclusion.to_owned(),
    })
}
