//! `mcp-logger send`: sends from the command line, with the options of logger(1).

mod data;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;

use bowline::with_causes;

use self::data::DataArgs;
use crate::arguments::{Endpoint, MessageOptions};
use crate::destination::{Destination, Framing, Transport};
use crate::encoding::{Bom, OnUnmappable};
use crate::logger::{Logger, Parcel, SendError};
use crate::message::Format;
use crate::packet::Oversize;
use crate::plan::PlanError;
use crate::priority::Priority;
use crate::transport::{Link, LinkError};

/// Options of the command.
#[derive(Debug, Clone, clap::Args)]
pub struct SendArgs {
    /// IP address or host name of the syslog server, name of a configured target, or path of a
    /// socket.
    server: String,
    /// The message. Without it, each line of standard input is a message; bytes that are not UTF-8
    /// are replaced.
    message: Vec<String>,
    /// Read lines from this file instead of standard input.
    #[arg(short, long, value_name = "FILE", conflicts_with = "message")]
    file: Option<PathBuf>,
    /// Skip empty lines.
    #[arg(short = 'e', long)]
    skip_empty: bool,
    /// Read the priority of each line from a prefix such as <13>.
    #[arg(long)]
    prio_prefix: bool,
    /// Facility and severity, such as local0.err [default: user.info].
    #[arg(short, long, value_name = "FACILITY.SEVERITY")]
    priority: Option<Priority>,
    /// Facility; overrides --priority.
    #[arg(long)]
    facility: Option<String>,
    /// Severity; overrides --priority.
    #[arg(long)]
    severity: Option<String>,
    /// Name of the program that logs.
    #[arg(short, long)]
    tag: Option<String>,
    /// Process id to log; this process's own if no value is given.
    #[arg(short, long, value_name = "ID", num_args = 0..=1, require_equals = true)]
    id: Option<Option<String>>,
    #[command(flatten)]
    route: RouteArgs,
    #[command(flatten)]
    format: FormatArgs,
    /// Also write each message to standard error.
    #[arg(short = 's', long)]
    stderr: bool,
    /// Send nothing; write the exact bytes to standard output.
    #[arg(long)]
    no_act: bool,
}

/// How messages travel.
#[derive(Debug, Clone, clap::Args)]
struct RouteArgs {
    /// Port of the server [default: 514; 6514 with TLS].
    #[arg(short = 'P', long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Send UDP datagrams (the default).
    #[arg(short = 'd', long, group = "transport")]
    udp: bool,
    /// Connect over TCP.
    #[arg(short = 'T', long, group = "transport")]
    tcp: bool,
    /// Connect over TLS.
    #[arg(long, group = "transport")]
    tls: bool,
    /// SERVER is the path of a socket, such as /dev/log.
    #[arg(short, long, group = "transport")]
    unix: bool,
    /// Delimit messages on a connection with a line feed instead of counting octets.
    #[arg(long)]
    lf: bool,
    /// Prefix messages on a connection with their length (the default).
    #[arg(long, conflicts_with = "lf")]
    octet_count: bool,
    /// Time limit in milliseconds for connecting and writing [default: 5000].
    #[arg(long, value_name = "MS")]
    timeout: Option<u32>,
}

/// How messages are written.
#[derive(Debug, Clone, clap::Args)]
struct FormatArgs {
    /// Use the RFC 3164 format (the default).
    #[arg(long)]
    rfc3164: bool,
    /// Use the RFC 5424 format.
    #[arg(long, conflicts_with = "rfc3164")]
    rfc5424: bool,
    /// Host name to report instead of this machine's.
    #[arg(long)]
    hostname: Option<String>,
    /// Time of the event in RFC 3339, instead of now.
    #[arg(long)]
    timestamp: Option<String>,
    /// Message type (RFC 5424).
    #[arg(long)]
    msgid: Option<String>,
    #[command(flatten)]
    data: DataArgs,
    /// Encoding of the text [default: utf-8].
    #[arg(long)]
    encoding: Option<String>,
    /// Whether to send a byte order mark: auto, always or never.
    #[arg(long, value_parser = read::<Bom>)]
    bom: Option<Bom>,
    /// What to do with characters the encoding does not have: error, replace or translit.
    #[arg(long, value_parser = read::<OnUnmappable>)]
    on_unmappable: Option<OnUnmappable>,
    /// Maximum message size in bytes.
    #[arg(short = 'S', long, value_name = "BYTES")]
    size: Option<u32>,
    /// What to do with longer messages: truncate, split or error [default: truncate].
    #[arg(long, value_parser = read::<Oversize>)]
    oversize: Option<Oversize>,
}

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// An option is invalid.
    #[error("{0}")]
    Usage(String),
    /// Sending failed.
    #[error(transparent)]
    Send(#[from] SendError),
    /// Some lines were skipped.
    #[error("{0} of {1} lines were not sent")]
    Skipped(u64, u64),
    /// The input cannot be read.
    #[error("cannot read {0}")]
    Input(String, #[source] io::Error),
    /// Standard output cannot be written.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
}

impl From<PlanError> for CommandError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Packet(_) => Self::Send(error.into()),
            other => Self::Usage(with_causes(&other)),
        }
    }
}

/// The longest part of a line that becomes one message; the rest becomes another.
const MAX_LINE: u64 = 1 << 20;

/// Sends the message, or every line of the input. Lines that cannot become messages are reported
/// and skipped.
///
/// # Errors
/// If an option is invalid, if reading or sending fails, or if any line was skipped.
pub async fn run(logger: &Logger, args: SendArgs) -> Result<(), CommandError> {
    let to = logger.destination(&args.endpoint(logger))?;
    let mut sending = Sending { logger, to, link: None, options: args.options(), args };
    // Reports what is wrong with every message before reading the first line.
    logger.prepare(&sending.to, sending.options.clone(), "", None)?;
    if !sending.args.message.is_empty() {
        let text = sending.args.message.join(" ");
        sending.line(&text).await?;
        return sending.finish().await;
    }
    let (name, mut input) = sending.args.input()?;
    let (mut line, mut number, mut skipped) = (Vec::new(), 0_u64, 0_u64);
    loop {
        line.clear();
        // Reading blocks, but nothing else needs this thread.
        let read = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| CommandError::Input(name.clone(), error))? == 0 {
            break;
        }
        number += 1;
        let text = String::from_utf8_lossy(&line);
        match sending.line(text.trim_end_matches(['\n', '\r'])).await {
            Err(CommandError::Send(error @ SendError::Plan(_))) => {
                skipped += 1;
                let _ =
                    writeln!(io::stderr(), "mcp-logger: line {number}: {}", with_causes(&error));
            }
            other => other?,
        }
    }
    sending.finish().await?;
    if skipped > 0 { Err(CommandError::Skipped(skipped, number)) } else { Ok(()) }
}

/// The state of the command while it sends.
struct Sending<'a> {
    logger: &'a Logger,
    to: Destination,
    link: Option<Link>,
    options: MessageOptions,
    args: SendArgs,
}

impl Sending<'_> {
    async fn line(&mut self, line: &str) -> Result<(), CommandError> {
        if line.is_empty() && self.args.skip_empty {
            return Ok(());
        }
        let mut options = self.options.clone();
        let mut text = line;
        if self.args.prio_prefix
            && let Some((priority, rest)) = prefix(line)
        {
            options.facility = Some(priority.facility.name().to_owned());
            options.severity = Some(priority.severity.name().to_owned());
            text = rest;
        }
        let parcel = self.logger.prepare(&self.to, options, text, None)?;
        if self.args.stderr {
            let _ = writeln!(io::stderr(), "{text}");
        }
        if self.args.no_act {
            return self.show(&parcel);
        }
        self.logger.rate().wait(parcel.packets.packets.len()).await;
        for packet in &parcel.packets.packets {
            self.send(packet).await.map_err(SendError::from)?;
        }
        Ok(())
    }

    /// Reconnects once if the connection broke between messages.
    async fn send(&mut self, packet: &[u8]) -> Result<(), LinkError> {
        if let Some(link) = &mut self.link {
            match link.send(packet).await {
                Err(LinkError::Write { .. }) => self.link = None,
                other => return other,
            }
        }
        let link = self.link.insert(self.logger.network().open(&self.to).await?);
        link.send(packet).await
    }

    fn show(&self, parcel: &Parcel) -> Result<(), CommandError> {
        let mut output = io::stdout().lock();
        for packet in &parcel.packets.packets {
            let frame = self.to.frame(packet).map_err(SendError::from)?;
            let is_ended = frame.ends_with(b"\n");
            output.write_all(&frame).map_err(CommandError::Output)?;
            if !is_ended {
                output.write_all(b"\n").map_err(CommandError::Output)?;
            }
        }
        Ok(())
    }

    async fn finish(self) -> Result<(), CommandError> {
        match self.link {
            Some(link) => Ok(link.finish().await.map_err(SendError::from)?),
            None => Ok(()),
        }
    }
}

impl SendArgs {
    fn endpoint(&self, logger: &Logger) -> Endpoint {
        let RouteArgs { port, udp, tcp, tls, unix, lf, octet_count, timeout } = self.route;
        let is_target = logger.config().targets.contains_key(&self.server);
        let is_path = !is_target && self.server.starts_with('/');
        let transport = [
            (udp, Transport::Udp),
            (tcp, Transport::Tcp),
            (tls, Transport::Tls),
            (unix || is_path, Transport::Unix),
        ];
        let framing = [(lf, Framing::Lf), (octet_count, Framing::OctetCounting)];
        Endpoint {
            server: self.server.clone(),
            port,
            transport: chosen(transport),
            framing: chosen(framing),
            timeout_ms: timeout,
        }
    }

    fn options(&self) -> MessageOptions {
        let named = self.priority.map(|it| (it.facility.name(), it.severity.name()));
        let or = |given: &Option<String>, name: Option<&'static str>| {
            given.clone().or_else(|| name.map(str::to_owned))
        };
        let form = &self.format;
        let own = || std::process::id().to_string();
        MessageOptions {
            severity: or(&self.severity, named.map(|it| it.1)),
            facility: or(&self.facility, named.map(|it| it.0)),
            tag: self.tag.clone(),
            encoding: form.encoding.clone(),
            format: chosen([(form.rfc5424, Format::Rfc5424), (form.rfc3164, Format::Rfc3164)]),
            hostname: form.hostname.clone(),
            procid: self.id.clone().map(|id| id.unwrap_or_else(own)),
            msgid: form.msgid.clone(),
            structured_data: form.data.data(),
            timestamp: form.timestamp.clone(),
            bom: form.bom,
            on_unmappable: form.on_unmappable,
            control_characters: None,
            max_size: form.size,
            oversize: Some(form.oversize.unwrap_or(Oversize::Truncate)),
        }
    }

    fn input(&self) -> Result<(String, Box<dyn BufRead>), CommandError> {
        let Some(path) = &self.file else {
            return Ok(("standard input".to_owned(), Box::new(io::stdin().lock())));
        };
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| CommandError::Input(name.clone(), error))?;
        Ok((name, Box::new(BufReader::new(file))))
    }
}

/// The first choice that is set.
fn chosen<T, const N: usize>(choices: [(bool, T); N]) -> Option<T> {
    choices.into_iter().find(|(is_chosen, _)| *is_chosen).map(|(_, it)| it)
}

/// A priority in angle brackets at the start of a line.
fn prefix(line: &str) -> Option<(Priority, &str)> {
    let (number, rest) = line.strip_prefix('<')?.split_once('>')?;
    Some((Priority::from_pri(number.parse().ok()?)?, rest))
}

/// Parses a value as the tools do.
fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    let value = serde_json::Value::from(text);
    serde_json::from_value(value).map_err(|error| error.to_string())
}
