//! The arguments that all commands share: which server, and how to talk to it.

mod config;
mod frames;
mod header;
mod kept;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use bowline::Revision;
use bowline::client::http::Endpoint;
use bowline::client::{Command, Preference, Target};
use bowline::model::LoggingLevel;
use clap::Args;

pub(crate) use self::config::Scan;
pub(crate) use self::frames::tap;
pub(crate) use self::kept::credentials;
use crate::answers::AnswerArgs;
use crate::failure::Failure;
use crate::screen::OutputArgs;

/// A server: a URL, a name from a config file, or a command after `--`.
#[derive(Debug, Clone, Args)]
pub(crate) struct TargetArgs {
    /// The server: a URL, or a name from a config file; omit it if a command follows `--`
    #[arg(value_name = "TARGET")]
    target: Option<String>,

    #[command(flatten)]
    pub(crate) options: TargetOptions,
}

impl TargetArgs {
    /// Finds the server.
    pub(crate) fn resolve(&self) -> Result<Resolved, Failure> {
        self.options.resolve(self.target.as_deref())
    }

    /// The server as it was typed, unless it is a command.
    pub(crate) fn word(&self) -> Option<&str> {
        self.target.as_deref()
    }
}

/// How to talk to a server, and the command that starts it, if there is one.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct TargetOptions {
    /// Look up names in this file instead of the usual ones (see `bowline servers`)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// A value for one of the config file's inputs, as in VS Code; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    input: Vec<String>,

    /// Send a header with every HTTP request; may be repeated
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    header: Vec<String>,

    /// Send the headers in a file, one per line; unlike --header, hidden from other users of the
    /// machine
    #[arg(long, value_name = "FILE")]
    header_file: Option<PathBuf>,

    /// Send a bearer token; other users of the machine can see it, unlike with --token-env
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_env")]
    token: Option<String>,

    /// Send the bearer token in this environment variable
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,

    /// Send tokens and headers even to `http` URLs on other machines
    #[arg(long)]
    insecure_http: bool,

    /// Trust the certificate authorities in a PEM file, in addition to the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Set an environment variable for the command; may be repeated
    #[arg(long, short = 'e', value_name = "NAME=VALUE")]
    env: Vec<OsString>,

    /// Run the command in this directory
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// How long to wait for an answer or for progress: 30, 500ms, 2m [default: 60s; doctor 20s,
    /// check 10s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,

    /// How long connecting may take altogether [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) connect_timeout: Option<Duration>,

    /// The largest message to accept from the server: 500k, 64M, 1G [default: 16M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_size: Option<usize>,

    /// The protocol to speak: auto, legacy, modern, or a revision such as 2025-11-25 [default:
    /// auto]
    #[arg(long, value_name = "REVISION", value_parser = preference)]
    pub(crate) revision: Option<Preference>,

    /// Request log messages of at least this level: debug, info, notice, warning, error, …
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(crate) log: Option<LoggingLevel>,

    #[command(flatten)]
    pub(crate) answers: AnswerArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// The command that starts the server, and its arguments
    #[arg(last = true, value_name = "COMMAND", help_heading = None)]
    command: Vec<OsString>,
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    /// A program that speaks on its standard streams.
    Command {
        program: OsString,
        args: Vec<OsString>,
        env: Vec<(OsString, OsString)>,
        cwd: Option<PathBuf>,
    },
    /// A URL.
    Url { url: String, headers: Vec<(String, String)> },
}

/// A server that was found.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) location: Location,
    /// Its name in a config file, its URL or its program.
    pub(crate) name: String,
    /// The config file that it was found in.
    pub(crate) from: Option<PathBuf>,
    ca: Option<PathBuf>,
}

impl TargetOptions {
    /// Finds the server for words before `--`: it is the first of them, unless a command follows.
    /// Also returns the other words.
    pub(crate) fn resolve_words<'a>(
        &self,
        words: &'a [String],
    ) -> Result<(Resolved, &'a [String]), Failure> {
        match words {
            [target, rest @ ..] if self.command.is_empty() => {
                Ok((self.resolve(Some(target))?, rest))
            }
            _ => Ok((self.resolve(None)?, words)),
        }
    }

    /// Finds the server.
    pub(crate) fn resolve(&self, target: Option<&str>) -> Result<Resolved, Failure> {
        let found = |name: String, location| Resolved { name, location, from: None, ca: None };
        let mut resolved = match (target, self.command.split_first()) {
            (None, None) => {
                return Err(Failure::usage("which server?").with_remedy(
                    "give a URL, a name (`bowline servers` lists them), or a command after --",
                ));
            }
            (Some(target), Some(_)) => {
                let what = format!("give either {target:?} or a command after --, not both");
                return Err(Failure::usage(what));
            }
            (None, Some((program, args))) => {
                let (args, env) = (args.to_vec(), Vec::new());
                let name = program.to_string_lossy().into_owned();
                found(name, Location::Command { program: program.clone(), args, env, cwd: None })
            }
            (Some(target), None) if target.contains("://") => {
                let location = Location::Url { url: target.to_owned(), headers: Vec::new() };
                found(target.to_owned(), location)
            }
            (Some(name), None) => self.look_up(name)?,
        };
        self.add_to(&mut resolved)?;
        Ok(resolved)
    }

    fn look_up(&self, name: &str) -> Result<Resolved, Failure> {
        let mut inputs = Vec::new();
        for pair in &self.input {
            let wrong = || Failure::usage(format!("--input {pair}: expected NAME=VALUE"));
            let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
            inputs.push((name.to_owned(), value.to_owned()));
        }
        Scan::new(self.config.as_deref())?.find(name, &inputs)
    }

    /// Adds the options of the command line to what is known about a server.
    fn add_to(&self, resolved: &mut Resolved) -> Result<(), Failure> {
        let of_command = !self.env.is_empty() || self.cwd.is_some();
        let of_url = !self.header.is_empty()
            || self.header_file.is_some()
            || self.token.is_some()
            || self.token_env.is_some()
            || self.ca.is_some();
        match &mut resolved.location {
            Location::Command { .. } if of_url => {
                Err(Failure::usage("headers, tokens and --ca are for URLs; this is a command")
                    .with_remedy("--env passes a token to a command"))
            }
            Location::Url { .. } if of_command => {
                Err(Failure::usage("--env and --cwd are for commands; this is a URL"))
            }
            Location::Command { env, cwd, .. } => {
                for pair in &self.env {
                    env.push(variable(pair)?);
                }
                if let Some(dir) = &self.cwd {
                    *cwd = Some(dir.clone());
                }
                Ok(())
            }
            Location::Url { url, headers } => {
                resolved.ca.clone_from(&self.ca);
                let mut more = self.headers()?;
                if let Some((clean, user)) = header::without_userinfo(url) {
                    more.push(("authorization".to_owned(), user));
                    *url = clean;
                }
                if !more.is_empty() && !self.insecure_http && header::is_exposed(url) {
                    let what = format!("{url}: headers and tokens would be sent unencrypted");
                    return Err(Failure::usage(what)
                        .with_remedy("use https, or --insecure-http to send them anyway"));
                }
                headers.extend(more);
                Ok(())
            }
        }
    }

    fn headers(&self) -> Result<Vec<(String, String)>, Failure> {
        let mut headers = Vec::new();
        for text in &self.header {
            headers.push(header::parse(text, "--header")?);
        }
        if let Some(file) = &self.header_file {
            headers.extend(header::read(file)?);
        }
        let token = match (&self.token, &self.token_env) {
            (None, Some(name)) => Some(std::env::var(name).map_err(|_| {
                Failure::usage(format!("--token-env {name}: the variable is not set to text"))
            })?),
            (token, _) => token.clone(),
        };
        headers.extend(token.map(|it| ("authorization".to_owned(), format!("Bearer {it}"))));
        Ok(headers)
    }
}

impl Resolved {
    /// What a client connects to.
    pub(crate) fn target(&self) -> Result<Target, Failure> {
        match &self.location {
            Location::Command { program, args, env, cwd } => {
                let mut command = Command::new(program).args(args);
                for (name, value) in env {
                    command = command.env(name, value);
                }
                if let Some(dir) = cwd {
                    if !dir.is_dir() {
                        let what = format!("cannot run in {}: not a directory", dir.display());
                        return Err(Failure::usage(what));
                    }
                    command = command.current_dir(dir);
                }
                Ok(command.into())
            }
            Location::Url { url, headers } => {
                let mut endpoint = Endpoint::new(url);
                for (name, value) in headers {
                    endpoint = endpoint.header(name, value);
                }
                if let Some(pem) = self.ca_pem()? {
                    endpoint = endpoint.ca_pem(&pem);
                }
                if let Some(login) = self.login() {
                    endpoint = endpoint.authorize(login);
                }
                Ok(endpoint.into())
            }
        }
    }

    /// What must not be shown or recorded: values of headers and variables, passwords and keys in
    /// the URL.
    pub(crate) fn secrets(&self) -> Vec<String> {
        match &self.location {
            Location::Command { env, .. } => {
                env.iter().map(|(_, value)| value.to_string_lossy().into_owned()).collect()
            }
            Location::Url { url, headers } => {
                let of_url = crate::redact::secrets_in_url(url);
                let words = headers.iter().flat_map(|(_, value)| {
                    let token = value.split_once(' ').map(|(_, token)| token.to_owned());
                    std::iter::once(value.clone()).chain(token)
                });
                words.chain(of_url).collect()
            }
        }
    }
}

/// `NAME=VALUE`, where the value need not be Unicode.
fn variable(pair: &OsString) -> Result<(OsString, OsString), Failure> {
    split(pair).filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
        Failure::usage(format!("--env {}: expected NAME=VALUE", pair.to_string_lossy()))
    })
}

#[cfg(unix)]
fn split(pair: &OsString) -> Option<(OsString, OsString)> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = pair.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    Some((part(&bytes[..at]), part(&bytes[at + 1..])))
}

#[cfg(not(unix))]
fn split(pair: &OsString) -> Option<(OsString, OsString)> {
    let (name, value) = pair.to_str()?.split_once('=')?;
    Some((name.into(), value.into()))
}

/// A duration: a number of seconds, or a number with a unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("unknown unit {unit:?}: use ms, s, m or h")),
    };
    let number: f64 =
        number.trim().parse().map_err(|_| "expected a number, as in 30s".to_owned())?;
    let time = Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())?;
    // Small enough to be added to any time.
    const MOST: Duration = Duration::from_secs(366 * 24 * 3600);
    match time {
        Duration::ZERO => Err("must be more than zero".to_owned()),
        time => Ok(time.min(MOST)),
    }
}

/// A number of bytes, or of larger units: powers of 1024.
fn size(text: &str) -> Result<usize, String> {
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return Err(format!("unknown unit {unit:?}: use k, M or G")),
    };
    let number: usize = number.trim().parse().map_err(|_| "expected a number, as in 64M")?;
    match number.checked_mul(factor) {
        None => Err("more than this machine can address".to_owned()),
        Some(0) => Err("must be more than zero".to_owned()),
        Some(bytes) => Ok(bytes),
    }
}

fn level(text: &str) -> Result<LoggingLevel, String> {
    let found = LoggingLevel::ALL.into_iter().find(|level| level.as_str() == text);
    let known = LoggingLevel::ALL.map(LoggingLevel::as_str).join(", ");
    found.ok_or_else(|| format!("expected one of {known}"))
}

fn preference(text: &str) -> Result<Preference, String> {
    match text {
        "auto" => Ok(Preference::Auto),
        "legacy" => Ok(Preference::Legacy),
        "modern" => Ok(Preference::Modern),
        _ => text.parse::<Revision>().map(Preference::Pin).map_err(|_| {
            let known = Revision::ALL.map(Revision::as_str).join(", ");
            format!("expected auto, legacy, modern, or one of {known}")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, millis) in [("30", 30_000), ("1.5s", 1500), ("500ms", 500), ("2m", 120_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "x", "-1", "0", "5 weeks", "nan", "1e400"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(duration("1000000000h").is_ok());
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("7", 7), ("500k", 512_000), ("64M", 64 << 20), ("1 GiB", 1 << 30)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "-1", "1.5M", "5 pages", "99999999999999999999", "99999999999G"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn revisions_are_words_or_dates() {
        assert_eq!(preference("legacy"), Ok(Preference::Legacy));
        assert_eq!(preference("2025-06-18"), Ok(Preference::Pin(Revision::V2025_06_18)));
        let told = preference("2025-01-01").unwrap_err();
        assert!(told.contains("2026-07-28"), "{told}");
    }

    #[test]
    fn variables_have_names() {
        assert_eq!(variable(&"A=b=c".into()).unwrap(), ("A".into(), "b=c".into()));
        assert!(variable(&"=x".into()).is_err());
        assert!(variable(&"x".into()).is_err());
    }
}
