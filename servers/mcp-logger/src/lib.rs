//! Syslog for MCP: a server whose tools send log messages, and a command that does the same.
//!
//! Pure parts first: [`priority`], [`timestamp`], [`structured_data`] and [`message`] write
//! headers; [`escape`], [`encoding`] and [`packet`] make bytes of texts. [`destination`] and
//! [`transport`] carry them; [`allow`], [`rate`] and [`config`] say what may be sent where and how
//! fast. [`plan`] and [`logger`] put it together for [`tools`] and [`send`].

pub mod allow;
pub mod arguments;
pub mod config;
pub mod destination;
pub mod encoding;
pub mod escape;
pub mod logger;
pub mod message;
pub mod packet;
pub mod plan;
pub mod priority;
pub mod probe;
pub mod rate;
pub mod schema;
pub mod send;
mod settings;
pub mod structured_data;
pub mod timestamp;
pub mod tools;
pub mod transport;

use std::sync::Arc;

use bowline::Server;

pub use self::config::{Config, ConfigError};
pub use self::logger::{Callers, Logger};
pub use self::settings::Settings;

/// The server with this configuration, for callers of one kind or the other.
///
/// # Errors
/// When the configuration means nothing.
pub fn server(config: Config, callers: Callers) -> Result<Server, ConfigError> {
    Ok(tools::server(&Arc::new(Logger::new(config, callers)?)))
}
