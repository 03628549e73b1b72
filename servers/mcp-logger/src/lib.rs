//! Syslog for MCP: a server whose tools send log messages, and a command that does the same.
//!
//! The pure parts come first: [`priority`], [`timestamp`], [`structured_data`] and [`message`]
//! write headers; [`escape`], [`encoding`] and [`packet`] turn text into bytes. [`destination`] and
//! [`transport`] deliver them; [`allow`], [`rate`] and [`config`] decide what may be sent where,
//! and how fast; [`identity`] says who asked, and [`spool`] keeps what could not be sent. [`plan`],
//! [`logger`] and [`receipt`] combine all of this for [`tools`] and [`send`].

pub mod allow;
pub mod arguments;
pub mod config;
pub mod destination;
pub mod encoding;
pub mod escape;
pub mod identity;
pub mod logger;
pub mod message;
pub mod packet;
pub mod plan;
pub mod priority;
pub mod probe;
pub mod rate;
pub mod receipt;
pub mod schema;
pub mod send;
mod settings;
pub mod spool;
pub mod structured_data;
pub mod timestamp;
pub mod tools;
pub mod transport;

use std::sync::Arc;

use bowline::Server;

pub use self::config::{Config, ConfigError};
pub use self::logger::{Callers, Logger};
pub use self::settings::Settings;

/// Builds the server with this configuration, for local or remote callers.
///
/// # Errors
/// If the configuration is invalid.
pub fn server(config: Config, callers: Callers) -> Result<Server, ConfigError> {
    Ok(tools::server(&Arc::new(Logger::new(config, callers)?)))
}
