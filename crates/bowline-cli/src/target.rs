//! The arguments that all commands share: which server, and how to talk to it.

mod config;
mod frames;
pub(crate) mod header;
mod kept;
mod most;
mod trust;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use bowline::client::auth::OAuth;
use bowline::client::http::Endpoint;
use bowline::client::{Command, Preference, Target};
use bowline::model::LoggingLevel;
use clap::Args;

pub(crate) use self::config::{Named, Scan, clients, file_of, servers_in};
pub(crate) use self::frames::tap;
pub(crate) use self::kept::credentials;
pub(crate) use self::trust::Trust;
pub(crate) use self::values::{duration, file_uri, preference, size};
use self::values::{inherited, level, variable};
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

    /// Use a project's config file without asking, just this once; it can run any command and read
    /// the environment
    #[arg(long)]
    trust: bool,

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

    /// Trust the certificates in a PEM file, in addition to the system's: authorities, or the
    /// server's own, even if it is self-signed
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Accept any certificate: anyone between you and the server can read and change everything,
    /// tokens included
    #[arg(long)]
    insecure: bool,

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

    #[command(flatten)]
    pub(crate) most: most::MostArgs,

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
    /// What the user should know about the choice of that file.
    pub(crate) note: Option<String>,
    ca: Option<PathBuf>,
    /// Whether any certificate is accepted.
    pub(crate) is_insecure: bool,
    /// The variables that a command inherits, as patterns; all if `None`.
    pub(crate) inherits: Option<Vec<String>>,
    /// Whether a URL may use a login that is stored.
    pub(crate) uses_logins: bool,
    /// Gets tokens for a URL, in place of a login.
    pub(crate) tokens: Option<OAuth>,
}

impl Resolved {
    /// Moves a user and password in the URL to a header, and makes sure that no header and token
    /// crosses the network unencrypted.
    pub(crate) fn protect(&mut self, may_be_exposed: bool) -> Result<(), Failure> {
        let has_tokens = self.tokens.is_some();
        let Location::Url { url, headers } = &mut self.location else { return Ok(()) };
        headers.extend(header::taken_from(url));
        let has_more = has_tokens || !headers.is_empty();
        if has_more && !may_be_exposed && header::is_exposed(url) {
            return Err(header::exposed(url));
        }
        Ok(())
    }

    /// A server that a person described, in a form or on the command line.
    pub(crate) fn new(name: String, location: Location) -> Self {
        Self {
            name,
            location,
            from: None,
            note: None,
            ca: None,
            is_insecure: false,
            inherits: None,
            uses_logins: true,
            tokens: None,
        }
    }
}

impl TargetOptions {
    /// Whether the server is a command.
    pub(crate) fn is_command(&self) -> bool {
        !self.command.is_empty()
    }

    /// Whether there is a target at all, as far as the command line tells.
    pub(crate) fn is_given(&self, target: Option<&str>) -> bool {
        target.is_some() || self.is_command()
    }

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
                Resolved::new(
                    name,
                    Location::Command { program: program.clone(), args, env, cwd: None },
                )
            }
            (Some(target), None) if target.contains("://") => {
                let location = Location::Url { url: target.to_owned(), headers: Vec::new() };
                Resolved::new(target.to_owned(), location)
            }
            (Some(name), None) => self.look_up(name)?,
        };
        self.add_to(&mut resolved)?;
        Ok(resolved)
    }

    /// Finds all servers that are named, and the command if there is one.
    pub(crate) fn resolve_all(&self, targets: &[String]) -> Result<Vec<Resolved>, Failure> {
        let named = Self { command: Vec::new(), ..self.clone() };
        let all = targets.iter().map(|target| named.resolve(Some(target)));
        all.chain(self.is_command().then(|| self.resolve(None))).collect()
    }

    fn look_up(&self, name: &str) -> Result<Resolved, Failure> {
        let mut inputs = Vec::new();
        for pair in &self.input {
            let wrong = || Failure::usage(format!("--input {pair}: expected NAME=VALUE"));
            let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
            inputs.push((name.to_owned(), value.to_owned()));
        }
        let scan = Scan::new(self.config.as_deref(), Trust::read(self.trust))?;
        scan.find(name, &inputs)
    }

    /// Adds the options of the command line to what is known about a server.
    fn add_to(&self, resolved: &mut Resolved) -> Result<(), Failure> {
        let of_command = !self.env.is_empty() || self.cwd.is_some();
        let of_url = !self.header.is_empty()
            || self.header_file.is_some()
            || self.token.is_some()
            || self.token_env.is_some()
            || self.ca.is_some()
            || self.insecure;
        match &mut resolved.location {
            Location::Command { .. } if of_url => Err(Failure::usage(
                "headers, tokens, --ca and --insecure are for URLs; this is a command",
            )
            .with_remedy("--env passes a token to a command")),
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
                resolved.is_insecure = self.insecure;
                let mut more = self.headers()?;
                more.extend(header::taken_from(url));
                if !more.is_empty() && !self.insecure_http && header::is_exposed(url) {
                    return Err(header::exposed(url)
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
                if let Some(patterns) = &self.inherits {
                    command = command.env_clear();
                    for (name, value) in inherited(patterns) {
                        command = command.env(name, value);
                    }
                }
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
                if let Some(tokens) = &self.tokens {
                    endpoint = endpoint.authorize(tokens.clone());
                } else if let Some(login) = self.login() {
                    endpoint = endpoint.authorize(login);
                }
                Ok(self.secured(endpoint)?.into())
            }
        }
    }

    /// What must not be shown or recorded: values of headers and variables, passwords and keys in
    /// the URL or in arguments.
    pub(crate) fn secrets(&self) -> Vec<String> {
        match &self.location {
            Location::Command { env, args, .. } => {
                let args: Vec<_> = args.iter().map(|word| word.to_string_lossy()).collect();
                let text = |it: &OsString| it.to_string_lossy().into_owned();
                let env = env.iter().map(|(name, value)| (text(name), text(value)));
                let env = env.filter(|(name, value)| !crate::redact::is_harmless(name, value));
                env.map(|(_, value)| value).chain(crate::redact::words(&args).1).collect()
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
