//! `mcp-logger send`: the same from a command line, with the options of logger(1).

mod data;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;

use bowline::with_causes;

use self::data::DataArgs;
use crate::arguments::{MessageOptions, Place};
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
    /// IP address or host name of the syslog server, a configured target, or the path of a socket.
    server: String,
    /// The message. Without it, every line of standard input is one; bytes that are not UTF-8 are
    /// replaced.
    message: Vec<String>,
    /// Read lines from this file instead.
    #[arg(short, long, value_name = "FILE", conflicts_with = "message")]
    file: Option<PathBuf>,
    /// Send no empty lines.
    #[arg(short = 'e', long)]
    skip_empty: bool,
    /// Take the priority of each line from a number such as <13> in front of it.
    #[arg(long)]
    prio_prefix: bool,
    /// Facility and severity, such as local0.err [default: user.info].
    #[arg(short, long, value_name = "FACILITY.SEVERITY")]
    priority: Option<Priority>,
    /// Facility alone; wins over --priority.
    #[arg(long)]
    facility: Option<String>,
    /// Severity alone; wins over --priority.
    #[arg(long)]
    severity: Option<String>,
    /// Name of the program that speaks.
    #[arg(short, long)]
    tag: Option<String>,
    /// Number of the process that speaks: this one unless given.
    #[arg(short, long, value_name = "ID", num_args = 0..=1, require_equals = true)]
    id: Option<Option<String>>,
    #[command(flatten)]
    way: Way,
    #[command(flatten)]
    form: Form,
    /// Also write each message to standard error.
    #[arg(short = 's', long)]
    stderr: bool,
    /// Send nothing; write the exact bytes to standard output.
    #[arg(long)]
    no_act: bool,
}

/// How bytes travel.
#[derive(Debug, Clone, clap::Args)]
struct Way {
    /// Port of the server [default: 514, with TLS 6514].
    #[arg(short = 'P', long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Send datagrams; this is the default.
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
    /// End messages on a connection with a line feed instead of telling their length.
    #[arg(long)]
    lf: bool,
    /// Tell the length of messages on a connection; this is the default.
    #[arg(long, conflicts_with = "lf")]
    octet_count: bool,
    /// Milliseconds that connecting or writing may take.
    #[arg(long, value_name = "MS")]
    timeout: Option<u32>,
}

/// What a message looks like.
#[derive(Debug, Clone, clap::Args)]
struct Form {
    /// Write messages as RFC 3164 says; this is the default.
    #[arg(long)]
    rfc3164: bool,
    /// Write messages as RFC 5424 says.
    #[arg(long, conflicts_with = "rfc3164")]
    rfc5424: bool,
    /// Name of this machine, if not its own.
    #[arg(long)]
    hostname: Option<String>,
    /// When it happened, in RFC 3339, instead of now.
    #[arg(long)]
    timestamp: Option<String>,
    /// Kind of the message (RFC 5424).
    #[arg(long)]
    msgid: Option<String>,
    #[command(flatten)]
    data: DataArgs,
    /// Encoding of the text [default: utf-8].
    #[arg(long)]
    encoding: Option<String>,
    /// Whether a byte order mark is sent: auto, always or never.
    #[arg(long, value_parser = read::<Bom>)]
    bom: Option<Bom>,
    /// What becomes of characters that the encoding lacks: error, replace or translit.
    #[arg(long, value_parser = read::<OnUnmappable>)]
    on_unmappable: Option<OnUnmappable>,
    /// Longest message in bytes.
    #[arg(short = 'S', long, value_name = "BYTES")]
    size: Option<u32>,
    /// What becomes of a longer one: truncate, split or error [default: truncate].
    #[arg(long, value_parser = read::<Oversize>)]
    oversize: Option<Oversize>,
}

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// An option means nothing.
    #[error("{0}")]
    Usage(String),
    /// It was not sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// Some lines were not sent.
    #[error("{0} of {1} lines were not sent")]
    LeftOut(u64, u64),
    /// The lines cannot be read.
    #[error("{0} cannot be read")]
    Input(String, #[source] io::Error),
    /// Nobody takes what is printed.
    #[error("cannot print")]
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

/// How much of a line is one message at most; the rest is another.
const MAX_LINE: u64 = 1 << 20;

/// Sends the message, or every line. Lines that cannot become messages are told and left out.
///
/// # Errors
/// When an option means nothing, or something cannot be read or sent, or was left out.
pub async fn run(logger: &Logger, args: SendArgs) -> Result<(), CommandError> {
    let to = logger.destination(&args.place(logger))?;
    let mut sending = Sending { logger, to, link: None, options: args.options(), args };
    // What is wrong with every message is told before the first line is read.
    logger.prepare(&sending.to, sending.options.clone(), "")?;
    if !sending.args.message.is_empty() {
        let text = sending.args.message.join(" ");
        sending.line(&text).await?;
        return sending.finish().await;
    }
    let (name, mut input) = sending.args.input()?;
    let (mut line, mut number, mut left_out) = (Vec::new(), 0_u64, 0_u64);
    loop {
        line.clear();
        // Reading blocks, and nothing else is waiting for this thread.
        let read = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| CommandError::Input(name.clone(), error))? == 0 {
            break;
        }
        number += 1;
        let text = String::from_utf8_lossy(&line);
        match sending.line(text.trim_end_matches(['\n', '\r'])).await {
            Err(CommandError::Send(error @ SendError::Plan(_))) => {
                left_out += 1;
                let _ =
                    writeln!(io::stderr(), "mcp-logger: line {number}: {}", with_causes(&error));
            }
            other => other?,
        }
    }
    sending.finish().await?;
    if left_out > 0 { Err(CommandError::LeftOut(left_out, number)) } else { Ok(()) }
}

/// Lines on their way.
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
        let parcel = self.logger.prepare(&self.to, options, text)?;
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

    /// A connection that broke while nothing was sent is opened once more.
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
    fn place(&self, logger: &Logger) -> Place {
        let Way { port, udp, tcp, tls, unix, lf, octet_count, timeout } = self.way;
        let is_target = logger.config().targets.contains_key(&self.server);
        let is_path = !is_target && self.server.starts_with('/');
        let transport = [
            (udp, Transport::Udp),
            (tcp, Transport::Tcp),
            (tls, Transport::Tls),
            (unix || is_path, Transport::Unix),
        ];
        let framing = [(lf, Framing::Lf), (octet_count, Framing::OctetCounting)];
        Place {
            server: self.server.clone(),
            port,
            transport: chosen(transport),
            framing: chosen(framing),
            timeout_ms: timeout,
        }
    }

    fn options(&self) -> MessageOptions {
        let named = self.priority.map(|it| (it.facility.name(), it.severity.name()));
        let or = |said: &Option<String>, name: Option<&'static str>| {
            said.clone().or_else(|| name.map(str::to_owned))
        };
        let form = &self.form;
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

/// The first that is set.
fn chosen<T, const N: usize>(choices: [(bool, T); N]) -> Option<T> {
    choices.into_iter().find(|(is_chosen, _)| *is_chosen).map(|(_, it)| it)
}

/// A number in angle brackets in front of a line.
fn prefix(line: &str) -> Option<(Priority, &str)> {
    let (number, rest) = line.strip_prefix('<')?.split_once('>')?;
    Some((Priority::from_pri(number.parse().ok()?)?, rest))
}

/// Words as the tools know them.
fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    let value = serde_json::Value::from(text);
    serde_json::from_value(value).map_err(|error| error.to_string())
}
