//! Combines a request with the configuration into a plan: where a message goes, and what it looks
//! like.

use std::time::Duration;

use crate::arguments::{Endpoint, MessageOptions};
use crate::config::{Config, Target};
use crate::destination::{Destination, Host, HostError, Transport, Trust};
use crate::encoding::{Charset, CharsetError};
use crate::escape::ControlCharacters;
use crate::identity::Identity;
use crate::message::{FieldError, Fields, Format};
use crate::packet::{PacketError, Packets, Rendering};
use crate::priority::{Facility, Priority, Severity, UnknownWord};
use crate::timestamp::{Timestamp, TimestampError};

/// The default tag.
pub const DEFAULT_TAG: &str = "mcp-logger";

/// The default time limit for sending, in milliseconds.
const DEFAULT_TIMEOUT: u32 = 5_000;

/// The largest payload of an IPv4 datagram.
const MAX_DATAGRAM: usize = 65_507;

/// How a message is written.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Its header.
    pub fields: Fields,
    /// How its text becomes bytes.
    pub rendering: Rendering,
    /// The element that says who called.
    reserved: String,
}

/// Why a request is rejected.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The server is invalid.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The port is 0.
    #[error("port must be from 1 to 65535")]
    Port,
    /// The time limit is out of range.
    #[error("timeout_ms must be from 1 to 60000")]
    Timeout,
    /// The configuration fixes the argument.
    #[error("the {argument} of {of} is fixed by the configuration; leave it out")]
    Fixed {
        /// The target, or every message.
        of: String,
        /// The argument.
        argument: String,
    },
    /// A target that messages were spooled for is gone.
    #[error("target {0:?} is no longer configured; configure it again, or delete its folder")]
    NoTarget(String),
    /// Only the configuration may keep control characters.
    #[error(
        "control characters are escaped, because the configuration does not keep them \
         (control_characters = \"keep\" in the defaults of a target, or in [defaults]); leave \
         control_characters out"
    )]
    Keep,
    /// A caller wrote what only the server may.
    #[error(
        "[{0} …] says who called, and only the server may write it: leave the element out of \
         structured_data, and do not begin the message with it"
    )]
    Reserved(String),
    /// An unknown facility or severity.
    #[error(transparent)]
    Word(#[from] UnknownWord),
    /// An unknown or unsuitable encoding.
    #[error(transparent)]
    Charset(#[from] CharsetError),
    /// An invalid timestamp.
    #[error(transparent)]
    Timestamp(#[from] TimestampError),
    /// An invalid header field.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A text that cannot be sent.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// An invalid message in a batch.
    #[error("messages[{index}]")]
    Entry {
        /// Its index.
        index: usize,
        /// What is wrong with it.
        #[source]
        cause: Box<Self>,
    },
    /// A `max_size` larger than any datagram.
    #[error("max_size must be at most {MAX_DATAGRAM} over udp; use transport tcp for more")]
    Datagram,
}

/// The destination of a request.
///
/// # Errors
/// If the endpoint is invalid or contradicts the configuration.
pub fn destination(config: &Config, endpoint: &Endpoint) -> Result<Destination, PlanError> {
    match config.targets.get_key_value(endpoint.server.trim()) {
        Some((name, target)) => of_target(config, endpoint, (name, target), timeout(endpoint)?),
        None => server(config, endpoint),
    }
}

fn timeout(endpoint: &Endpoint) -> Result<Duration, PlanError> {
    let timeout = endpoint.timeout_ms.unwrap_or(DEFAULT_TIMEOUT);
    if !(1..=60_000).contains(&timeout) {
        return Err(PlanError::Timeout);
    }
    Ok(Duration::from_millis(timeout.into()))
}

/// The destination of a request to a server that is not a target, whatever its name.
///
/// # Errors
/// If the endpoint is invalid.
pub fn server(config: &Config, endpoint: &Endpoint) -> Result<Destination, PlanError> {
    let timeout = timeout(endpoint)?;
    let transport = endpoint.transport.unwrap_or_default();
    Ok(Destination {
        target: None,
        host: Host::parse(&endpoint.server, transport)?,
        port: port(endpoint.port, transport)?,
        transport,
        framing: endpoint.framing.unwrap_or_default(),
        trust: Trust { ca_file: config.ca_file.clone(), ..Trust::default() },
        timeout,
    })
}

fn of_target(
    config: &Config,
    endpoint: &Endpoint,
    (name, target): (&String, &Target),
    timeout: Duration,
) -> Result<Destination, PlanError> {
    let port = port(target.port, target.transport)?;
    let fixed = [
        ("port", endpoint.port.is_some_and(|it| it != port)),
        ("transport", endpoint.transport.is_some_and(|it| it != target.transport)),
        ("framing", endpoint.framing.is_some_and(|it| it != target.framing)),
    ];
    if let Some((argument, _)) = fixed.into_iter().find(|(_, is_other)| *is_other) {
        return Err(PlanError::Fixed { of: of(name), argument: argument.to_owned() });
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

fn of(target: &str) -> String {
    format!("target {target:?}")
}

fn port(given: Option<u16>, transport: Transport) -> Result<u16, PlanError> {
    match given {
        Some(0) => Err(PlanError::Port),
        given => Ok(given.unwrap_or_else(|| transport.default_port())),
    }
}

/// Checks that a message without options of its own can be sent to a server.
///
/// # Errors
/// If the configuration is invalid.
pub fn check(config: &Config, server: &str) -> Result<(), PlanError> {
    let endpoint = Endpoint { server: server.to_owned(), ..Endpoint::default() };
    let to = destination(config, &endpoint)?;
    let somebody = Identity { principal: Some("x".to_owned()), ..Identity::default() };
    layout(config, &to, MessageOptions::default(), ("-", Some(&somebody)))?.packets("")?;
    Ok(())
}

/// The caller's options together with those of the configuration.
///
/// # Errors
/// If the caller sets what the configuration fixes, or keeps control characters by itself.
fn settle(
    config: &Config,
    to: &Destination,
    options: MessageOptions,
) -> Result<MessageOptions, PlanError> {
    let target = to.target.as_ref().and_then(|name| config.targets.get(name));
    let (own, fixed) = target.map(|it| (it.defaults.clone(), it.fixed.clone())).unwrap_or_default();
    let defaults = own.or(&config.defaults);
    let all = [
        (fixed, to.target.as_ref().map_or_else(String::new, |name| of(name))),
        (config.fixed.clone(), "every message".to_owned()),
    ];
    for (fixed, of) in &all {
        if let Some(argument) = options.contradicts(fixed) {
            return Err(PlanError::Fixed { of: of.clone(), argument });
        }
    }
    let [(fixed, _), (fixed_for_all, _)] = all;
    let configured = fixed.or(&fixed_for_all).or(&defaults);
    if options.control_characters == Some(ControlCharacters::Keep)
        && configured.control_characters != Some(ControlCharacters::Keep)
    {
        return Err(PlanError::Keep);
    }
    Ok(options.or(&configured))
}

/// How a message to this destination is written: with the name of this machine, and with the caller
/// if there is one.
///
/// # Errors
/// If an option is invalid.
pub fn layout(
    config: &Config,
    to: &Destination,
    options: MessageOptions,
    (own_name, caller): (&str, Option<&Identity>),
) -> Result<Layout, PlanError> {
    let options = settle(config, to, options)?;
    let element = &config.caller_element;
    let is_element = |id: &String| id.eq_ignore_ascii_case(element);
    if options.structured_data.iter().flat_map(|data| data.keys()).any(is_element) {
        return Err(PlanError::Reserved(element.clone()));
    }
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
            None | Some("now") => Some(Timestamp::now()),
            Some("none" | "-") => None,
            Some(text) => Some(text.parse()?),
        },
        hostname: options.hostname.or_else(|| hostname(own_name, format, to.transport)),
        tag: options.tag.unwrap_or_else(|| DEFAULT_TAG.to_owned()),
        procid: options.procid,
        msgid: options.msgid,
        structured_data: options.structured_data.unwrap_or_default(),
        caller: caller.map(|it| it.element(config.identify, element)).unwrap_or_default(),
    };
    Ok(Layout { fields, rendering, reserved: element.clone() })
}

impl Layout {
    /// The messages for a text.
    ///
    /// # Errors
    /// If a header field is invalid, or the text cannot be sent.
    pub fn packets(&self, text: &str) -> Result<Packets, PlanError> {
        let header = self.fields.header()?;
        let packets = self.rendering.pack(&header, text)?;
        if self.fields.caller.is_empty()
            && packets.packets.iter().any(|it| self.pretends(it.get(header.len()..)))
        {
            return Err(PlanError::Reserved(self.reserved.clone()));
        }
        Ok(packets)
    }

    /// Whether a text, as it is sent, begins with the element that says who called.
    fn pretends(&self, text: Option<&[u8]>) -> bool {
        let text = text.unwrap_or_default();
        let text = text.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(text).trim_ascii_start();
        let after = text.strip_prefix(b"[").and_then(|it| it.get(..self.reserved.len()));
        after.is_some_and(|it| it.eq_ignore_ascii_case(self.reserved.as_bytes()))
    }
}

/// What receivers must or usually do accept: RFC 3164, section 4.1; RFC 5426, section 3.2; RFC
/// 5425, section 4.3.1.
fn max_size(
    options: &MessageOptions,
    transport: Transport,
    format: Format,
) -> Result<usize, PlanError> {
    let given = options.max_size.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    Ok(match (transport, format) {
        (Transport::Udp, _) if given.is_some_and(|size| size > MAX_DATAGRAM) => {
            return Err(PlanError::Datagram);
        }
        (Transport::Udp, Format::Rfc3164) => given.unwrap_or(1024),
        (Transport::Udp, Format::Rfc5424) => given.unwrap_or(2048),
        _ => given.unwrap_or(8192),
    })
}

/// The host name to report: none on a local socket in the old format, and without its domain
/// elsewhere in the old format.
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

    fn endpoint(server: &str) -> Endpoint {
        Endpoint { server: server.to_owned(), ..Endpoint::default() }
    }

    #[test]
    fn a_target_brings_its_settings() {
        let to = destination(&config(), &endpoint("central")).unwrap();
        assert_eq!(to.to_string(), "central (logs.example.com:6514)");
        let layout = layout(&config(), &to, MessageOptions::default(), ("me.home", None)).unwrap();
        assert_eq!(layout.fields.tag, "central");
        assert_eq!(layout.fields.priority.to_string(), "local1.info");
        assert_eq!(layout.fields.hostname.as_deref(), Some("me.home"));
        assert_eq!(layout.rendering.max_size, 8192);
        let moved = Endpoint { port: Some(1), ..endpoint("central") };
        let error = destination(&config(), &moved).unwrap_err().to_string();
        assert!(error.contains("port of target \"central\" is fixed"), "{error}");
    }

    #[test]
    fn arguments_win_over_the_configuration() {
        let to = destination(&config(), &endpoint("10.0.0.1")).unwrap();
        let given = MessageOptions { tag: Some("given".to_owned()), ..MessageOptions::default() };
        let layout = layout(&config(), &to, given, ("me.home", None)).unwrap();
        assert_eq!((layout.fields.tag.as_str(), layout.rendering.max_size), ("given", 1024));
        assert_eq!(layout.fields.hostname.as_deref(), Some("me"));
    }

    #[test]
    fn values_out_of_range_are_rejected() {
        let check = |endpoint: Endpoint, part: &str| {
            let error = destination(&config(), &endpoint).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        check(Endpoint { port: Some(0), ..endpoint("a") }, "1 to 65535");
        check(Endpoint { timeout_ms: Some(0), ..endpoint("a") }, "1 to 60000");
        let to = destination(&config(), &endpoint("a")).unwrap();
        let large = MessageOptions { max_size: Some(70_000), ..MessageOptions::default() };
        let error = layout(&config(), &to, large, ("me", None)).unwrap_err().to_string();
        assert!(error.contains("at most 65507"), "{error}");
    }
}
