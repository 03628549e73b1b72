//! Log messages of a handler to its client.

use bowline_proto::json::Json;
use bowline_proto::model::{LoggingLevel, LoggingMessageParams};
use serde::Serialize;

use super::call::Call;

/// Sends log messages under a name. Made by [`Context::logger`](super::Context::logger).
#[derive(Clone, Copy)]
pub struct Logger<'a> {
    pub(crate) call: &'a Call,
    pub(crate) name: Option<&'a str>,
}

impl Logger<'_> {
    /// Sends a message to the client, if it wants messages of this level. `data` is any JSON value,
    /// often a string.
    pub async fn log(self, level: LoggingLevel, data: impl Serialize) {
        if let Some(message) = self.message(level, data) {
            self.call.log(message).await;
        }
    }

    /// The same without waiting. Returns whether the message was sent.
    pub fn try_log(self, level: LoggingLevel, data: impl Serialize) -> bool {
        self.message(level, data).is_some_and(|message| self.call.try_log(&message))
    }

    fn message(self, level: LoggingLevel, data: impl Serialize) -> Option<LoggingMessageParams> {
        if !self.call.wants_log(level) {
            return None;
        }
        let data = Json::new(&data).ok()?;
        let logger = self.name.map(str::to_owned);
        Some(LoggingMessageParams { level, logger, data, meta: None })
    }
}

impl std::fmt::Debug for Logger<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logger").field("name", &self.name).finish_non_exhaustive()
    }
}
