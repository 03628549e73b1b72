//! The configuration file: who may be sent to, how fast, and targets by name.
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

use crate::allow::{Entry, EntryError};
use crate::arguments::MessageOptions;
use crate::destination::{Framing, Transport};
use crate::plan::{self, PlanError};

/// What can be configured.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Host names, `*.domain`, IP addresses, networks and socket paths that may be sent to. Left
    /// out: everything on stdio, nothing over HTTP. Targets are always allowed.
    pub allow: Option<Vec<String>>,
    /// How many messages may be sent in the long run: 100 a second. 0 for no limit.
    pub messages_per_second: u32,
    /// How many may be sent at once after a pause: 1000.
    pub burst: u32,
    /// How long to wait for the refusal of a datagram to another machine: 25 milliseconds. It is
    /// what a `send-syslog` over UDP takes.
    pub udp_wait_ms: u32,
    /// How many sends `syslog://recent` remembers: 100.
    pub recent: usize,
    /// Certificates that are trusted besides those of the system, as PEM.
    pub ca_file: Option<PathBuf>,
    /// What messages are like when nobody says otherwise.
    pub defaults: MessageOptions,
    /// Servers by name.
    pub targets: BTreeMap<String, Target>,
    /// Other places for `host:port`, for tunnels and tests: `"logs.example.com:514" =
    /// "127.0.0.1:5514"`. Names and certificates stay those of the first.
    pub connect_to: BTreeMap<String, SocketAddr>,
}

/// A server with a name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its address or host name, or the path of its socket.
    pub server: String,
    /// Its port: 514, or 6514 with TLS.
    pub port: Option<u16>,
    /// What carries the bytes: UDP.
    #[serde(default)]
    pub transport: Transport,
    /// How messages are told apart on a connection: by their length.
    #[serde(default)]
    pub framing: Framing,
    /// Certificates that are trusted besides those of the system, as PEM.
    pub ca_file: Option<PathBuf>,
    /// The name that its certificate has, if not its own.
    pub server_name: Option<String>,
    /// Our certificate, as PEM, where it wants to know who we are.
    pub client_cert: Option<PathBuf>,
    /// The key of our certificate, as PEM.
    pub client_key: Option<PathBuf>,
    /// What messages to it are like when nobody says otherwise.
    #[serde(default)]
    pub defaults: MessageOptions,
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
            targets: BTreeMap::new(),
            connect_to: BTreeMap::new(),
        }
    }
}

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is no file, or none that may be read.
    #[error("{} cannot be read", .file.display())]
    Unreadable {
        /// Which.
        file: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// It says something that means nothing.
    #[error(transparent)]
    Malformed(#[from] toml::de::Error),
    /// A setting that there is not.
    #[error("{place}.{name} is no setting; there are {}", known().join(", "))]
    Unknown {
        /// In which table.
        place: String,
        /// What it was called.
        name: String,
    },
    /// Something cannot be allowed.
    #[error("allow")]
    Allow(#[from] EntryError),
    /// Half of a certificate.
    #[error("targets.{0}: client_cert and client_key need each other")]
    HalfIdentity(String),
    /// A target, or what messages are like, cannot be.
    #[error("{place}")]
    Unusable {
        /// In which table.
        place: String,
        /// Why.
        #[source]
        cause: PlanError,
    },
}

impl Config {
    /// Reads a file. Paths in it are relative to it.
    ///
    /// # Errors
    /// When it cannot be read, or says something that means nothing.
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
        Ok(config)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// When it says something that means nothing.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let table: toml::Table = text.parse()?;
        check_options("", &table)?;
        let targets = table.get("targets").and_then(toml::Value::as_table);
        for (name, target) in targets.into_iter().flatten() {
            if let Some(target) = target.as_table() {
                check_options(&format!("targets.{name}."), target)?;
            }
        }
        // From the text, so that errors tell the line.
        let config: Self = toml::from_str(text)?;
        config.check()?;
        Ok(config)
    }

    /// Plans a message to every target and to one that is none, as a call would.
    fn check(&self) -> Result<(), ConfigError> {
        self.entries()?;
        let unusable = |place: String| |cause| ConfigError::Unusable { place, cause };
        plan::check(self, "localhost").map_err(unusable("defaults".to_owned()))?;
        for (name, target) in &self.targets {
            if target.client_cert.is_some() != target.client_key.is_some() {
                return Err(ConfigError::HalfIdentity(name.clone()));
            }
            plan::check(self, name).map_err(unusable(format!("targets.{name}")))?;
        }
        Ok(())
    }

    /// What may be sent to, read.
    ///
    /// # Errors
    /// When something cannot be allowed.
    pub fn entries(&self) -> Result<Option<Vec<Entry>>, EntryError> {
        let read = |entries: &Vec<String>| entries.iter().map(|entry| entry.parse()).collect();
        self.allow.as_ref().map(read).transpose()
    }
}

/// The options of messages share their type with the tools, where their names are checked by a
/// schema.
fn check_options(place: &str, table: &toml::Table) -> Result<(), ConfigError> {
    let defaults = table.get("defaults").and_then(toml::Value::as_table);
    let known = known();
    match defaults.and_then(|it| it.keys().find(|name| !known.contains(name))) {
        None => Ok(()),
        Some(name) => {
            Err(ConfigError::Unknown { place: format!("{place}defaults"), name: name.clone() })
        }
    }
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
    fn what_means_nothing_is_refused() {
        fn check(text: &str, part: &str) {
            let error = bowline::with_causes(&Config::parse(text).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
        check("alow = []", "alow");
        check("allow = [\"a b\"]", "\"a b\" cannot be allowed");
        check("[defaults]\nsevrity = \"info\"", "defaults.sevrity is no setting");
        check(
            "[targets.x]\nserver = \"a\"\n[targets.x.defaults]\ntga = \"\"",
            "targets.x.defaults.tga",
        );
        check("[targets.x]\nport = 1", "server");
        check("[targets.x]\nserver = \"a b\"", "targets.x: server \"a b\"");
        check("[targets.x]\nserver = \"a\"\nport = 70000", "70000");
        check("[targets.x]\nserver = \"a\"\nclient_key = \"k\"", "need each other");
        check("[defaults]\nformat = \"rfc1\"", "rfc5424");
        check("[defaults]\nfacility = \"locl\"", "defaults: facility \"locl\" is not known");
        check("[targets.x]\nserver = \"a\"\nport = 0", "targets.x: port must be");
    }
}
