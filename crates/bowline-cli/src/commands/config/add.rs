//! `bowline config add`: a server for a client, in the form that the client reads.

use std::path::{Path, PathBuf};

use bowline_gateway::config::{Shape, add};
use bowline_gateway::redact;
use clap::Args;
use serde_json::Value;

use super::{explained, own, read, replace, short, syntax_of, told};
use crate::failure::Failure;
use crate::screen::{OutputArgs, Screen};
use crate::target::{clients, file_of, header};
use crate::text::did_you_mean;

/// Add a server to a client's file: a URL, or a command after `--`
///
/// A client that only starts commands, such as Claude Desktop, gets `bowline bridge URL`.
#[derive(Args)]
pub(super) struct Add {
    /// The server's name
    name: String,

    /// The server's URL, unless a command follows `--`
    #[arg(value_name = "URL", conflicts_with = "command")]
    url: Option<String>,

    /// The client: cursor, claude-desktop, vscode, … as `bowline servers` names them [default: the
    /// only client that has a file here, else bowline itself]
    #[arg(long)]
    client: Option<String>,

    /// Add it to the file of this project, not to the user's
    #[arg(long, conflicts_with = "config")]
    project: bool,

    /// Edit this file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Have the client start `bowline bridge URL`, which translates between revisions and logs in
    #[arg(long, requires = "url")]
    bridge: bool,

    /// Send a header with every request to the URL; may be repeated
    #[arg(long, value_name = "NAME: VALUE", requires = "url")]
    header: Vec<String>,

    /// Have the bridge send the headers in this file, one per line: unlike --header, hidden from
    /// other users of the machine
    #[arg(long, value_name = "FILE", requires = "url")]
    header_file: Option<PathBuf>,

    /// Have the bridge send the bearer token in this environment variable, which -e can set
    #[arg(long, value_name = "NAME", requires = "url")]
    token_env: Option<String>,

    /// Set an environment variable for the command or the bridge; may be repeated
    #[arg(long, short = 'e', value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// The command that starts the server, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Clients whose files are YAML, which cannot be edited without losing comments.
const YAML: [(&str, &str); 2] =
    [("goose", ".config/goose/config.yaml"), ("continue", ".continue/config.yaml")];

impl Add {
    pub(super) fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let client = self.client(root);
        if let Some((name, file)) = YAML.iter().find(|(name, _)| *name == client) {
            return Err(self.by_hand(name, file)?);
        }
        let all = clients();
        if self.config.is_none() && !all.contains(&client.as_str()) {
            let known = all.iter().copied().chain(YAML.map(|(name, _)| name));
            let remedy = did_you_mean(&client, known);
            let remedy = remedy.unwrap_or_else(|| format!("expected one of {}", all.join(", ")));
            let what = format!("--client {client}: unknown client");
            return Err(Failure::usage(what).with_remedy(remedy));
        }
        let file = self.config.clone().or_else(|| file_of(&client, self.project));
        let file = file.ok_or_else(|| Failure::usage(format!("{client} has no such file")))?;
        let shape = Shape::of(&client);
        let entry = self.entry(shape)?;
        let text = if file.exists() { read(&file)? } else { String::new() };
        let path = [shape.member.to_owned()];
        let edited = add(&text, syntax_of(&file), &path, &self.name, &entry);
        let edited = edited.map_err(|error| explained(&file, &error))?;
        replace(&file, &text, &edited)?;
        told(root, &format!("{}: added for {client}", self.name), &file)
    }

    /// The client that is named, the only one that has a file, or this program; says which.
    fn client(&self, root: &OutputArgs) -> String {
        if let Some(client) = &self.client {
            return client.clone();
        }
        if self.config.is_some() {
            return "config".to_owned();
        }
        let is_used = |client: &&str| {
            *client != "bowline" && file_of(client, self.project).is_some_and(|file| file.is_file())
        };
        let used: Vec<&str> = clients().into_iter().filter(is_used).collect();
        if let [only] = used.as_slice() {
            return (*only).to_owned();
        }
        let others = if used.is_empty() { clients() } else { used };
        let others: Vec<&str> = others.into_iter().filter(|client| *client != "bowline").collect();
        let what = format!(
            "the server is added for `bowline` itself; --client adds it for {}",
            others.join(", ")
        );
        Screen::new(root).note(&what);
        "bowline".to_owned()
    }

    fn entry(&self, shape: Shape) -> Result<Value, Failure> {
        match (&self.url, self.command.as_slice()) {
            (Some(url), []) if self.bridge || !shape.takes_urls => {
                Ok(shape.command(&self.bridged(url)?, &self.variables()?))
            }
            (Some(url), []) => Ok(shape.url(url, &self.direct_headers()?)),
            (None, command @ [_, ..]) => Ok(shape.command(command, &self.variables()?)),
            _ => {
                let what = "which server?";
                Err(Failure::usage(what).with_remedy("give a URL, or a command after --"))
            }
        }
    }

    /// The command of a bridge to a URL. Nothing secret stands in it.
    fn bridged(&self, url: &str) -> Result<Vec<String>, Failure> {
        let shown = "other users of the machine can read the command line of a bridge";
        if !redact::secrets_in_url(url).is_empty() {
            let what = format!("the URL contains a secret, and {shown}");
            let remedy = "send it with --token-env NAME and -e NAME=VALUE, or with --header-file";
            return Err(Failure::usage(what).with_remedy(remedy));
        }
        let mut words = vec![own()?, "bridge".to_owned(), url.to_owned()];
        if let Some((name, _)) = self.headers()?.first() {
            let what = format!("--header {name}: {shown}");
            let remedy = "use --header-file FILE, or --token-env NAME and -e NAME=VALUE";
            return Err(Failure::usage(what).with_remedy(remedy));
        }
        if let Some(file) = &self.header_file {
            // The client starts the bridge in another folder.
            let file = std::path::absolute(file)
                .map_err(|error| Failure::file("--header-file", file, error))?;
            words.extend(["--header-file".to_owned(), file.to_string_lossy().into_owned()]);
        }
        if let Some(name) = &self.token_env {
            words.extend(["--token-env".to_owned(), name.clone()]);
        }
        Ok(words)
    }

    /// The headers that the client itself sends.
    fn direct_headers(&self) -> Result<Vec<(String, String)>, Failure> {
        let of_bridge = [
            ("--header-file", self.header_file.is_some()),
            ("--token-env", self.token_env.is_some()),
            ("--env", !self.env.is_empty()),
        ];
        if let Some((option, _)) = of_bridge.into_iter().find(|(_, is_given)| *is_given) {
            let what = format!("{option} is for a server that the client starts");
            return Err(Failure::usage(what).with_remedy("add --bridge"));
        }
        self.headers()
    }

    fn headers(&self) -> Result<Vec<(String, String)>, Failure> {
        self.header.iter().map(|text| header::parse(text, "--header")).collect()
    }

    fn variables(&self) -> Result<Vec<(String, String)>, Failure> {
        let pair = |text: &String| {
            let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
            let wrong = || Failure::usage(format!("--env {text}: expected NAME=VALUE"));
            pair.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(wrong)
        };
        self.env.iter().map(pair).collect()
    }

    /// What to write into a file that this program does not edit.
    fn by_hand(&self, client: &str, file: &str) -> Result<Failure, Failure> {
        let file = std::env::home_dir().unwrap_or_default().join(file);
        let lines = match client {
            "goose" => self.for_goose()?,
            _ => self.for_continue()?,
        };
        let what = format!(
            "{client} keeps its servers in {}, which is YAML: bowline would lose its comments",
            short(Path::new(&file))
        );
        Ok(Failure::usage(what).with_remedy(format!("add these lines to it\n\n{lines}")))
    }

    fn for_goose(&self) -> Result<String, Failure> {
        let mut text = format!("extensions:\n  {}:\n    enabled: true\n", quoted(&self.name));
        text += &format!("    name: {}\n    timeout: 300\n", quoted(&self.name));
        match &self.url {
            Some(url) if !self.bridge => {
                text += &format!("    type: streamable_http\n    uri: {}\n", quoted(url));
                text += &pairs("headers", &self.direct_headers()?, 4);
            }
            _ => {
                let (program, args) = self.started()?;
                text += &format!("    type: stdio\n    cmd: {program}\n    args: {args}\n");
                text += &pairs("envs", &self.variables()?, 4);
            }
        }
        Ok(text)
    }

    fn for_continue(&self) -> Result<String, Failure> {
        let mut text = format!("mcpServers:\n  - name: {}\n", quoted(&self.name));
        match &self.url {
            Some(url) if !self.bridge => {
                text += &format!("    type: streamable-http\n    url: {}\n", quoted(url));
                let headers = pairs("headers", &self.direct_headers()?, 6);
                if !headers.is_empty() {
                    text += &format!("    requestOptions:\n{headers}");
                }
            }
            _ => {
                let (program, args) = self.started()?;
                text += &format!("    command: {program}\n    args: {args}\n");
                text += &pairs("env", &self.variables()?, 4);
            }
        }
        Ok(text)
    }

    /// The program that the client starts, and its arguments, as YAML.
    fn started(&self) -> Result<(String, String), Failure> {
        let words = match &self.url {
            Some(url) => self.bridged(url)?,
            None => self.command.clone(),
        };
        let Some((program, args)) = words.split_first() else {
            let what = "which server?";
            return Err(Failure::usage(what).with_remedy("give a URL, or a command after --"));
        };
        let args: Vec<String> = args.iter().map(|word| quoted(word)).collect();
        Ok((quoted(program), format!("[{}]", args.join(", "))))
    }
}

/// A string that is the same in JSON and YAML.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A map as YAML, or nothing.
fn pairs(member: &str, all: &[(String, String)], indent: usize) -> String {
    if all.is_empty() {
        return String::new();
    }
    let space = " ".repeat(indent);
    let lines = all.iter().map(|(name, value)| format!("{space}  {name}: {}\n", quoted(value)));
    format!("{space}{member}:\n{}", lines.collect::<String>())
}
