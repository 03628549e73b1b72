//! From what somebody asks for, and what is configured, to what will be done.

use std::time::Duration;

use crate::arguments::{MessageOptions, Place};
use crate::config::{Config, Target};
use crate::destination::{Destination, Host, HostError, Transport, Trust};
use crate::encoding::{Charset, CharsetError};
use crate::message::{FieldError, Fields, Format};
use crate::packet::{PacketError, Packets, Rendering};
use crate::priority::{Facility, Priority, Severity, UnknownWord};
use crate::timestamp::{Timestamp, TimestampError};

/// The tag of messages that say nothing else.
pub const DEFAULT_TAG: &str = "mcp-logger";

/// How long sending may take.
const DEFAULT_TIMEOUT: u32 = 5_000;

/// The most that fits into a datagram of IPv4.
const MAX_DATAGRAM: usize = 65_507;

/// What a message looks like.
#[derive(Debug, Clone)]
pub struct Look {
    /// Its header.
    pub fields: Fields,
    /// Its text.
    pub rendering: Rendering,
}

/// Why a request cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The server is none.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A port that there is not.
    #[error("port must be from 1 to 65535")]
    Port,
    /// No time, or too much of it.
    #[error("timeout_ms must be from 1 to 60000")]
    Timeout,
    /// A target has its own.
    #[error("{argument} of target {target:?} is fixed by the configuration; leave it out")]
    Fixed {
        /// Which target.
        target: String,
        /// What was given.
        argument: &'static str,
    },
    /// A facility or severity that there is not.
    #[error(transparent)]
    Word(#[from] UnknownWord),
    /// An encoding that cannot be used.
    #[error(transparent)]
    Charset(#[from] CharsetError),
    /// No point in time.
    #[error(transparent)]
    Timestamp(#[from] TimestampError),
    /// A field that cannot be written.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A text that cannot be sent.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// A message of a batch.
    #[error("messages[{place}]")]
    Entry {
        /// Which one, from 0.
        place: usize,
        /// What is wrong with it.
        #[source]
        cause: Box<Self>,
    },
    /// More than any datagram holds.
    #[error("max_size must be at most {MAX_DATAGRAM} over udp; use transport tcp for more")]
    Datagram,
}

/// Where a request goes.
///
/// # Errors
/// When the place is none, or contradicts the configuration.
pub fn destination(config: &Config, place: &Place) -> Result<Destination, PlanError> {
    let timeout = place.timeout_ms.unwrap_or(DEFAULT_TIMEOUT);
    if !(1..=60_000).contains(&timeout) {
        return Err(PlanError::Timeout);
    }
    let timeout = Duration::from_millis(timeout.into());
    if let Some((name, target)) = config.targets.get_key_value(place.server.trim()) {
        return of_target(config, place, (name, target), timeout);
    }
    let transport = place.transport.unwrap_or_default();
    Ok(Destination {
        target: None,
        host: Host::parse(&place.server, transport)?,
        port: port(place.port, transport)?,
        transport,
        framing: place.framing.unwrap_or_default(),
        trust: Trust { ca_file: config.ca_file.clone(), ..Trust::default() },
        timeout,
    })
}

fn of_target(
    config: &Config,
    place: &Place,
    (name, target): (&String, &Target),
    timeout: Duration,
) -> Result<Destination, PlanError> {
    let port = port(target.port, target.transport)?;
    let fixed = [
        ("port", place.port.is_some_and(|it| it != port)),
        ("transport", place.transport.is_some_and(|it| it != target.transport)),
        ("framing", place.framing.is_some_and(|it| it != target.framing)),
    ];
    if let Some((argument, _)) = fixed.into_iter().find(|(_, is_other)| *is_other) {
        return Err(PlanError::Fixed { target: name.clone(), argument });
    }
    Ok(Destination {
        target: Some(name.clone()),
        host: Host::parse(&target.server, target.transport)?,
        port,
        transport: target.transport,
        framing: target.framing,
        trust: Trust {
            ca_file: target.ca_file.clone().or_else(|| config.ca_file.clone()),
            server_name: target.server_name.clone(),
            identity: target.client_cert.clone().zip(target.client_key.clone()),
        },
        timeout,
    })
}

fn port(said: Option<u16>, transport: Transport) -> Result<u16, PlanError> {
    match said {
        Some(0) => Err(PlanError::Port),
        said => Ok(said.unwrap_or_else(|| transport.default_port())),
    }
}

/// Whether a message that says nothing by itself can be sent to a server.
///
/// # Errors
/// When what is configured means nothing.
pub fn check(config: &Config, server: &str) -> Result<(), PlanError> {
    let place = Place { server: server.to_owned(), ..Place::default() };
    let to = destination(config, &place)?;
    look(config, &to, MessageOptions::default(), "-")?.packets("")?;
    Ok(())
}

/// What a message to this destination looks like.
///
/// # Errors
/// When an option means nothing.
pub fn look(
    config: &Config,
    to: &Destination,
    options: MessageOptions,
    own_name: &str,
) -> Result<Look, PlanError> {
    let target = to.target.as_ref().and_then(|name| config.targets.get(name));
    let options = match target {
        Some(target) => options.or(&target.defaults),
        None => options,
    };
    let options = options.or(&config.defaults);
    let format = options.format.unwrap_or_default();
    let max_size = max_size(&options, to.transport, format)?;
    let charset = options.encoding.as_deref().map_or(Ok(Charset::UTF_8), str::parse)?;
    let rendering = Rendering {
        charset,
        on_unmappable: options.on_unmappable.unwrap_or_default(),
        control_characters: options.control_characters.unwrap_or_default(),
        bom: options.bom.unwrap_or_default(),
        max_size,
        oversize: options.oversize.unwrap_or_default(),
    };
    let facility = options.facility.as_deref().map_or(Ok(Facility::USER), str::parse)?;
    let severity = options.severity.as_deref().map_or(Ok(Severity::INFO), str::parse)?;
    let fields = Fields {
        format,
        priority: Priority { facility, severity },
        timestamp: match options.timestamp.as_deref() {
            None => Some(Timestamp::now()),
            Some("none" | "-") => None,
            Some(text) => Some(text.parse()?),
        },
        hostname: options.hostname.or_else(|| hostname(own_name, format, to.transport)),
        tag: options.tag.unwrap_or_else(|| DEFAULT_TAG.to_owned()),
        procid: options.procid,
        msgid: options.msgid,
        structured_data: options.structured_data.unwrap_or_default(),
    };
    Ok(Look { fields, rendering })
}

impl Look {
    /// The messages for a text.
    ///
    /// # Errors
    /// When a field cannot be written, or the text cannot be sent.
    pub fn packets(&self, text: &str) -> Result<Packets, PlanError> {
        Ok(self.rendering.pack(&self.fields.header()?, text)?)
    }
}

/// What receivers are sure or very likely to take: RFC 3164, part 4.1; RFC 5426, part 3.2; RFC
/// 5425, part 4.3.1.
fn max_size(
    options: &MessageOptions,
    transport: Transport,
    format: Format,
) -> Result<usize, PlanError> {
    let asked = options.max_size.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    Ok(match (transport, format) {
        (Transport::Udp, _) if asked.is_some_and(|size| size > MAX_DATAGRAM) => {
            return Err(PlanError::Datagram);
        }
        (Transport::Udp, Format::Rfc3164) => asked.unwrap_or(1024),
        (Transport::Udp, Format::Rfc5424) => asked.unwrap_or(2048),
        _ => asked.unwrap_or(8192),
    })
}

/// How this machine calls itself: on its own socket not at all, in the old format without its
/// domain.
fn hostname(name: &str, format: Format, transport: Transport) -> Option<String> {
    match (format, transport) {
        (Format::Rfc3164, Transport::Unix) => None,
        (Format::Rfc3164, _) => name.split('.').next().map(str::to_owned),
        (Format::Rfc5424, _) => Some(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config::parse(
            "[defaults]\nfacility = \"local1\"\ntag = \"base\"\n\
             [targets.central]\nserver = \"logs.example.com\"\ntransport = \"tls\"\n\
             [targets.central.defaults]\nformat = \"rfc5424\"\ntag = \"central\"",
        )
        .unwrap()
    }

    fn place(server: &str) -> Place {
        Place { server: server.to_owned(), ..Place::default() }
    }

    #[test]
    fn a_target_brings_its_settings() {
        let to = destination(&config(), &place("central")).unwrap();
        assert_eq!(to.to_string(), "central (logs.example.com:6514)");
        let look = look(&config(), &to, MessageOptions::default(), "me.home").unwrap();
        assert_eq!(look.fields.tag, "central");
        assert_eq!(look.fields.priority.to_string(), "local1.info");
        assert_eq!(look.fields.hostname.as_deref(), Some("me.home"));
        assert_eq!(look.rendering.max_size, 8192);
        let moved = Place { port: Some(1), ..place("central") };
        let error = destination(&config(), &moved).unwrap_err().to_string();
        assert!(error.contains("port of target \"central\" is fixed"), "{error}");
    }

    #[test]
    fn what_is_said_wins_over_what_is_configured() {
        let to = destination(&config(), &place("10.0.0.1")).unwrap();
        let said = MessageOptions { tag: Some("said".to_owned()), ..MessageOptions::default() };
        let look = look(&config(), &to, said, "me.home").unwrap();
        assert_eq!((look.fields.tag.as_str(), look.rendering.max_size), ("said", 1024));
        assert_eq!(look.fields.hostname.as_deref(), Some("me"));
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let check = |place: Place, part: &str| {
            let error = destination(&config(), &place).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        check(Place { port: Some(0), ..place("a") }, "1 to 65535");
        check(Place { timeout_ms: Some(0), ..place("a") }, "1 to 60000");
        let to = destination(&config(), &place("a")).unwrap();
        let large = MessageOptions { max_size: Some(70_000), ..MessageOptions::default() };
        let error = look(&config(), &to, large, "me").unwrap_err().to_string();
        assert!(error.contains("at most 65507"), "{error}");
    }
}
