//! The logger as an MCP server: tools, resources, a prompt.

mod answer;
mod batch;
mod prompt;
mod reference;

use std::sync::Arc;

use bowline::{Context, Server, server};

pub use self::answer::{BatchReceipt, Failed, Sent, SentBatch};
use crate::arguments::{BatchArguments, ProbeArguments, SendArguments};
use crate::logger::{Logger, Record, SendError};
use crate::probe::{Finding, probe};

/// Where the sends of late can be read and subscribed to.
pub const RECENT_URI: &str = "syslog://recent";

/// The server.
pub fn server(logger: &Arc<Logger>) -> Server {
    Server::new("mcp-logger", env!("CARGO_PKG_VERSION"))
        .title("Syslog sender")
        .description("Sends syslog messages over UDP, TCP, TLS and Unix sockets")
        .instructions(
            "Send log messages to syslog servers with send-syslog, many at once with \
             send-syslog-batch. Over UDP nobody confirms delivery; test-syslog-target finds out \
             what can be found out. Facilities, severities, targets and recent sends are \
             resources.",
        )
        .with(Tools { logger: Arc::clone(logger) })
        .with(reference::resources(logger))
        .with(prompt::log_event(logger))
}

/// The tools, and what they share.
struct Tools {
    logger: Arc<Logger>,
}

#[server]
impl Tools {
    /// Send a standard Syslog message to a server. Only server and message are needed. The answer
    /// tells what was sent, where to, and what is known of its delivery: over udp nothing is
    /// confirmed.
    #[tool(name = "send-syslog", title = "Send syslog", destructive = false, open_world = true)]
    async fn send_syslog(
        &self,
        #[args] arguments: SendArguments,
        context: Context,
    ) -> Result<Sent, Failed> {
        let SendArguments { place, message, options, dry_run } = arguments;
        let to = self.logger.destination(&place).map_err(SendError::from)?;
        let parcel = self.logger.prepare(&to, options, &message).map_err(SendError::from)?;
        if dry_run {
            return Ok(Sent(parcel.dry_run(&to).map_err(SendError::from)?));
        }
        let sent = self.logger.send(&to, &parcel).await;
        context.registry().resource_updated(RECENT_URI);
        Ok(Sent(sent?))
    }

    /// Send many Syslog messages to one server in order, over one connection. Options beside
    /// messages hold for all of them; each message can have its own. Nothing is sent if any of
    /// them is malformed. Reports progress, and waits where the rate is limited.
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

    /// Find out whether a syslog server can be reached: looks up its address, connects, agrees on
    /// TLS. Logs nothing. Over udp an empty datagram is sent, to see whether it is refused.
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
            let to = self.logger.destination(&arguments.place)?;
            // It could scan a network otherwise.
            self.logger.rate().take(1)?;
            Ok::<_, SendError>(probe(&self.logger, &to).await?)
        };
        test.await.map_err(Failed::test)
    }

    /// What was sent of late, the last one first: where, what kind, and with what outcome. Texts
    /// are not kept.
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
