//! The configuration file: allowed destinations, rate limit and named targets.
//!
//! ```toml
//! allow = ["10.0.0.0/8", "*.example.com"]
//! messages_per_second = 100
//!
//! [defaults]
//! facility = "local0"
//!
//! [targets.central]
//! server = "logs.example.com"
//! transport = "tls"
//! ca_file = "ca.pem"
//!
//! [targets.central.defaults]
//! format = "rfc5424"
//! ```

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Deserialize;

use crate::allow::{AllowEntry, AllowEntryError};
use crate::arguments::MessageOptions;
use crate::destination::{Framing, Transport};
use crate::identity::Identify;
use crate::plan::{self, PlanError};
use crate::spool::{SpoolError, SpoolSettings};

/// The configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Host names, `*.domain`, IP addresses and networks that may be sent to, with ports as in
    /// `logs.example.com:5140`, or else the ports of syslog; and socket paths. If absent:
    /// everything on stdio, nothing over HTTP. Targets are always allowed.
    pub allow: Option<Vec<String>>,
    /// Sustained rate limit in messages per second; 100 by default, 0 for no limit.
    pub messages_per_second: u32,
    /// How many messages may be sent at once after a pause; 1000 by default.
    pub burst: u32,
    /// How long to wait for an ICMP rejection of a datagram to another machine; 25 milliseconds by
    /// default. Every `send-syslog` over UDP takes this long.
    pub udp_wait_ms: u32,
    /// How many sends `syslog://recent` lists; 100 by default.
    pub recent: usize,
    /// Certificates to trust in addition to the system's, as PEM.
    pub ca_file: Option<PathBuf>,
    /// Defaults for the options of all messages.
    pub defaults: MessageOptions,
    /// Options of all messages that callers cannot change.
    pub fixed: MessageOptions,
    /// When records say who called; for authenticated callers by default.
    pub identify: Identify,
    /// The element of structured data that says who called; `caller@32473` by default. 32473 is the
    /// number for examples: use that of your organization.
    pub caller_element: String,
    /// Where messages are kept that could not be sent; nowhere by default.
    pub spool: Option<SpoolSettings>,
    /// Targets by name.
    pub targets: BTreeMap<String, Target>,
    /// Addresses to connect to instead of `host:port`, for tunnels and tests:
    /// `"logs.example.com:514" = "127.0.0.1:5514"`. Names and certificates are still checked
    /// against the original.
    pub connect_to: BTreeMap<String, SocketAddr>,
}

/// A named destination.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its IP address, host name or socket path.
    pub server: String,
    /// Its port; 514 by default, 6514 with TLS.
    pub port: Option<u16>,
    /// The transport; UDP by default.
    #[serde(default)]
    pub transport: Transport,
    /// How messages are delimited on a connection; octet counting by default.
    #[serde(default)]
    pub framing: Framing,
    /// Certificates to trust in addition to the system's, as PEM.
    pub ca_file: Option<PathBuf>,
    /// The name in its certificate, if it differs from `server`.
    pub server_name: Option<String>,
    /// Our certificate, as PEM, for servers that require one.
    pub client_cert: Option<PathBuf>,
    /// The private key for our certificate, as PEM.
    pub client_key: Option<PathBuf>,
    /// Defaults for the options of messages to this target.
    #[serde(default)]
    pub defaults: MessageOptions,
    /// Options of messages to this target that callers cannot change.
    #[serde(default)]
    pub fixed: MessageOptions,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            allow: None,
            messages_per_second: 100,
            burst: 1_000,
            udp_wait_ms: 25,
            recent: 100,
            ca_file: None,
            defaults: MessageOptions::default(),
            fixed: MessageOptions::default(),
            identify: Identify::default(),
            caller_element: "caller@32473".to_owned(),
            spool: None,
            targets: BTreeMap::new(),
            connect_to: BTreeMap::new(),
        }
    }
}

/// Why a configuration is rejected.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file does not exist or cannot be read.
    #[error("cannot read {}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// The file is not valid TOML, or has the wrong structure.
    #[error(transparent)]
    Malformed(#[from] toml::de::Error),
    /// An unknown setting.
    #[error("unknown setting {table}.{name}; expected one of {}", known().join(", "))]
    Unknown {
        /// The table that contains it.
        table: String,
        /// Its name.
        name: String,
    },
    /// An entry of `allow` is invalid.
    #[error("allow")]
    Allow(#[from] AllowEntryError),
    /// A certificate without its key, or a key without its certificate.
    #[error("targets.{0}: client_cert and client_key must be set together")]
    HalfIdentity(String),
    /// The spool cannot be used.
    #[error("spool")]
    Spool(#[from] SpoolError),
    /// A target or the defaults are invalid.
    #[error("{table}")]
    Unusable {
        /// The table.
        table: String,
        /// What is wrong with it.
        #[source]
        cause: PlanError,
    },
}

impl Config {
    /// Reads a configuration file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// If the file cannot be read or is invalid.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(file)
            .map_err(|cause| ConfigError::Unreadable { file: file.to_owned(), cause })?;
        let mut config = Self::parse(&text)?;
        let folder = file.parent().unwrap_or_else(|| Path::new(""));
        let targets = config.targets.values_mut().flat_map(|target| {
            [&mut target.ca_file, &mut target.client_cert, &mut target.client_key]
        });
        for path in targets.chain([&mut config.ca_file]).flatten() {
            *path = folder.join(&*path);
        }
        if let Some(spool) = &mut config.spool {
            spool.dir = folder.join(&spool.dir);
        }
        Ok(config)
    }

    /// Parses the text of a configuration file.
    ///
    /// # Errors
    /// If it is invalid.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let table: toml::Table = text.parse()?;
        check_options("", &table)?;
        let targets = table.get("targets").and_then(toml::Value::as_table);
        for (name, target) in targets.into_iter().flatten() {
            if let Some(target) = target.as_table() {
                check_options(&format!("targets.{name}."), target)?;
            }
        }
        // Parsed from the text, so that errors report the line.
        let config: Self = toml::from_str(text)?;
        config.check()?;
        Ok(config)
    }

    /// Plans a message to every target and to a server that is not a target, as a call would.
    fn check(&self) -> Result<(), ConfigError> {
        self.entries()?;
        let unusable = |table: String| |cause| ConfigError::Unusable { table, cause };
        plan::check(self, "localhost").map_err(unusable("defaults".to_owned()))?;
        for (name, target) in &self.targets {
            if target.client_cert.is_some() != target.client_key.is_some() {
                return Err(ConfigError::HalfIdentity(name.clone()));
            }
            plan::check(self, name).map_err(unusable(format!("targets.{name}")))?;
        }
        Ok(())
    }

    /// The parsed entries of `allow`.
    ///
    /// # Errors
    /// If an entry is invalid.
    pub fn entries(&self) -> Result<Option<Vec<AllowEntry>>, AllowEntryError> {
        let read = |entries: &Vec<String>| entries.iter().map(|entry| entry.parse()).collect();
        self.allow.as_ref().map(read).transpose()
    }
}

/// Rejects unknown message options. Their type is shared with the tools, whose schema does this
/// there, so serde cannot.
fn check_options(prefix: &str, table: &toml::Table) -> Result<(), ConfigError> {
    let known = known();
    for of in ["defaults", "fixed"] {
        let options = table.get(of).and_then(toml::Value::as_table);
        if let Some(name) = options.and_then(|it| it.keys().find(|name| !known.contains(name))) {
            let table = format!("{prefix}{of}");
            return Err(ConfigError::Unknown { table, name: name.clone() });
        }
    }
    Ok(())
}

fn known() -> Vec<String> {
    let schema = bowline::schema_for::<MessageOptions>();
    let properties = schema.get("properties").and_then(serde_json::Value::as_object);
    properties.into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_read() {
        let config = Config::parse(
            r#"
            allow = ["10.0.0.0/8", "/dev/log"]
            burst = 5
            [defaults]
            facility = "local3"
            [targets.central]
            server = "logs.example.com"
            transport = "tls"
            framing = "lf"
            [targets.central.defaults]
            format = "rfc5424"
            structured_data = { "a@1" = { k = "v" } }
            [connect_to]
            "logs.example.com:514" = "127.0.0.1:5514"
            "#,
        )
        .unwrap();
        assert_eq!(config.entries().unwrap().unwrap().len(), 2);
        assert_eq!((config.burst, config.messages_per_second), (5, 100));
        assert_eq!(config.defaults.facility.as_deref(), Some("local3"));
        let central = &config.targets["central"];
        assert_eq!((central.transport, central.framing), (Transport::Tls, Framing::Lf));
        assert_eq!(central.defaults.structured_data.as_ref().unwrap()["a@1"]["k"], "v");
    }

    #[test]
    fn invalid_configurations_are_rejected() {
        fn check(text: &str, part: &str) {
            let error = bowline::with_causes(&Config::parse(text).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
        check("alow = []", "alow");
        check("allow = [\"a b\"]", "\"a b\" cannot be allowed");
        check("[defaults]\nsevrity = \"info\"", "unknown setting defaults.sevrity");
        check(
            "[targets.x]\nserver = \"a\"\n[targets.x.defaults]\ntga = \"\"",
            "targets.x.defaults.tga",
        );
        check("[fixed]\ntga = \"x\"", "unknown setting fixed.tga");
        check("[targets.x]\nserver = \"a\"\n[targets.x.fixed]\na = 1", "targets.x.fixed.a");
        check("[fixed]\nfacility = \"locl\"", "unknown facility \"locl\"");
        check("caller_element = \"mine\"", "write it as name@number");
        check("[spool]\nmax_messages = 1", "dir");
        check("[targets.x]\nport = 1", "server");
        check("[targets.x]\nserver = \"a b\"", "targets.x: server \"a b\"");
        check("[targets.x]\nserver = \"a\"\nport = 70000", "70000");
        check("[targets.x]\nserver = \"a\"\nclient_key = \"k\"", "must be set together");
        check("[defaults]\nformat = \"rfc1\"", "rfc5424");
        check("[defaults]\nfacility = \"locl\"", "defaults: unknown facility \"locl\"");
        check("[targets.x]\nserver = \"a\"\nport = 0", "targets.x: port must be");
    }
}
