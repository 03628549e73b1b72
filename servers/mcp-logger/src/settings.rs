//! The options of the program, shared with other programs that embed this server.

use std::path::PathBuf;

use crate::config::{Config, ConfigError};
use crate::spool::SpoolSettings;

/// Which configuration file to read, and overrides for it.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Settings {
    /// Configuration file in TOML: allowed destinations, rate limit and named targets. Defaults to
    /// the file that `MCP_LOGGER_CONFIG` names.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Allow sending to this host name, *.domain, IP address, network or socket path, and to
    /// nothing that is not listed; can be repeated. With ports as in logs.example.com:5140,
    /// 10.0.0.0/8:5140-5149 or localhost:*; otherwise on the ports of syslog. Over HTTP nothing is
    /// allowed without it.
    #[arg(long, value_name = "SERVER", value_delimiter = ',', global = true)]
    pub allow: Vec<String>,
    /// Messages per second; 0 for no limit [default: 100; no limit for `send`].
    #[arg(long, value_name = "N", global = true)]
    pub rate: Option<u32>,
    /// Certificates to trust in addition to the system's, as PEM.
    #[arg(long, value_name = "FILE", global = true)]
    pub ca_file: Option<PathBuf>,
    /// Keep messages that cannot be sent in this folder, and send them later. `send` does not.
    #[arg(long, value_name = "DIR")]
    pub spool: Option<PathBuf>,
    /// The most messages that --spool keeps [default: 10000].
    #[arg(long, value_name = "N", requires = "spool")]
    pub spool_messages: Option<usize>,
    /// The most bytes that --spool keeps [default: 67108864].
    #[arg(long, value_name = "BYTES", requires = "spool")]
    pub spool_bytes: Option<u64>,
}

impl Settings {
    /// Reads the file and applies the options on top of it.
    ///
    /// # Errors
    /// If the file cannot be read or is invalid.
    pub fn config(&self) -> Result<Config, ConfigError> {
        let named = || std::env::var_os("MCP_LOGGER_CONFIG").map(PathBuf::from);
        let mut config = match self.config.clone().or_else(named) {
            Some(file) => Config::read(&file)?,
            None => Config::default(),
        };
        if !self.allow.is_empty() {
            config.allow.get_or_insert_default().extend(self.allow.iter().cloned());
        }
        if let Some(rate) = self.rate {
            config.messages_per_second = rate;
        }
        if let Some(file) = &self.ca_file {
            config.ca_file = Some(file.clone());
        }
        if let Some(dir) = &self.spool {
            let kept = config.spool.take().unwrap_or_else(|| SpoolSettings::new(dir.clone()));
            let mut spool = SpoolSettings { dir: dir.clone(), ..kept };
            spool.max_messages = self.spool_messages.unwrap_or(spool.max_messages);
            spool.max_bytes = self.spool_bytes.unwrap_or(spool.max_bytes);
            config.spool = Some(spool);
        }
        Ok(config)
    }
}
