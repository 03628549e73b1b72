//! The logger as an MCP server: tools, resources, a prompt.

mod batch;
mod outcome;
mod prompt;
mod reference;

use std::sync::Arc;

use bowline::{Context, Server, server};

pub use self::outcome::{BatchReceipt, Failed, Sent, SentBatch};
use crate::arguments::{BatchArguments, ProbeArguments, SendArguments};
use crate::identity::Identity;
use crate::logger::{Logger, SendError};
use crate::probe::{Finding, probe};
use crate::receipt::Record;

/// The resource that lists recent sends.
pub const RECENT_URI: &str = "syslog://recent";

/// Builds the server.
pub fn server(logger: &Arc<Logger>) -> Server {
    let server = Server::new("mcp-logger", env!("CARGO_PKG_VERSION"))
        .title("Syslog sender")
        .description("Sends syslog messages over UDP, TCP, TLS and Unix sockets")
        .instructions(
            "Send log messages to syslog servers with send-syslog, or many at once with \
             send-syslog-batch. Delivery over UDP is never confirmed; test-syslog-target checks \
             whether a server is reachable. Facilities, severities, targets and recent sends are \
             available as resources.",
        )
        .with(Tools { logger: Arc::clone(logger) })
        .with(reference::resources(logger))
        .with(prompt::log_event(logger));
    if let Some(spool) = logger.spool() {
        spool.announce_to(server.registry());
    }
    server
}

/// The tools, and the logger they share.
struct Tools {
    logger: Arc<Logger>,
}

#[server]
impl Tools {
    /// Send a standard Syslog message to a server. Only server and message are required. The result
    /// reports what was sent, where, and whether delivery is known; over udp it is never confirmed.
    #[tool(name = "send-syslog", title = "Send syslog", destructive = false, open_world = true)]
    async fn send_syslog(
        &self,
        #[args] arguments: SendArguments,
        context: Context,
    ) -> Result<Sent, Failed> {
        let SendArguments { endpoint, message, options, dry_run } = arguments;
        let to = self.logger.destination(&endpoint).map_err(SendError::from)?;
        let caller = Identity::of(&context);
        let parcel = self.logger.prepare(&to, options, &message, Some(&caller));
        let parcel = parcel.map_err(SendError::from)?;
        if dry_run {
            return Ok(Sent(parcel.dry_run(&to).map_err(SendError::from)?));
        }
        let sent = self.logger.send(&to, &parcel).await;
        context.registry().resource_updated(RECENT_URI);
        Ok(Sent(sent?))
    }

    /// Send many Syslog messages to one server, in order, over one connection. Options given beside
    /// messages apply to all of them; each message can override them. If any message is invalid,
    /// nothing is sent. Reports progress, and waits when the rate limit is reached.
    #[tool(
        name = "send-syslog-batch",
        title = "Send syslog in bulk",
        destructive = false,
        open_world = true
    )]
    async fn send_syslog_batch(
        &self,
        #[args] arguments: BatchArguments,
        context: Context,
    ) -> Result<SentBatch, Failed> {
        let sent = batch::send(&self.logger, arguments, &context).await;
        context.registry().resource_updated(RECENT_URI);
        sent.map(SentBatch)
    }

    /// Test whether a syslog server is reachable: resolve its name, connect, negotiate TLS. Logs
    /// nothing. Over udp it sends an empty datagram to see whether it is rejected.
    #[tool(
        name = "test-syslog-target",
        title = "Test a syslog server",
        read_only,
        open_world = true
    )]
    async fn test_syslog_target(
        &self,
        #[args] arguments: ProbeArguments,
    ) -> Result<Finding, Failed> {
        let test = async {
            let to = self.logger.destination(&arguments.endpoint)?;
            // Without the limit, this tool could scan a network.
            self.logger.rate().take(1)?;
            Ok::<_, SendError>(probe(&self.logger, &to).await?)
        };
        test.await.map_err(Failed::test)
    }

    /// Recent sends, newest first: destination, kind and outcome. Message text is not stored.
    #[resource(
        "syslog://recent",
        name = "recent",
        title = "Recent sends",
        mime_type = "application/json"
    )]
    async fn recent(&self) -> Vec<Record> {
        self.logger.recent()
    }
}
