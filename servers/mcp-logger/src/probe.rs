//! Tests whether a syslog server is reachable, step by step, without logging anything.

use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use crate::destination::{Destination, Transport};
use crate::logger::Logger;
use crate::schema::plain;
use crate::transport::{Handshake, LinkError};

/// The result of a test.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(transform = plain)]
pub struct Finding {
    /// The destination that was tested.
    pub target: String,
    /// The transport.
    pub transport: Transport,
    /// The resolved addresses that are allowed.
    pub addresses: Vec<String>,
    /// The address that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How long the test took, in milliseconds.
    pub elapsed_ms: u64,
    /// What was negotiated, for TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Handshake>,
    /// What the result means.
    pub conclusion: String,
}

/// Resolves, connects and negotiates TLS, as a send would. Over UDP it sends an empty datagram,
/// which receivers ignore: only a datagram that was sent can be rejected.
///
/// # Errors
/// The error of the first step that fails.
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
            "An empty datagram was not rejected. UDP reveals no more than that: a firewall may \
             still drop messages, and there may be no receiver."
        }
        Transport::Tcp => "The server accepted a connection.",
        Transport::Tls => {
            "The server accepted an encrypted connection, and its certificate is trusted."
        }
        Transport::Unix => "The socket exists and accepts a connection.",
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
