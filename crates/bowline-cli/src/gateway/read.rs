//! Reads the files of a gateway into its plan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bowline::Client;
use bowline::client::Preference;
use bowline_gateway::bridge::ToolRules;
use bowline_gateway::gateway::{Audit, CommandTool, Plan, Policy, Rule, ServerPlan};
use bowline_web::Host;
use serde_json::{Value, json};

use super::file::{self, File, Prefix, Secret};
use super::secret::{fill, home, value_of};
use crate::redact::Redactor;
use crate::target::{self, Named, Resolved, preference, servers_in};
use crate::text::did_you_mean;

/// What the files say.
pub(super) struct Read {
    pub(super) servers: Vec<Entry>,
    pub(super) settings: file::Section,
    pub(super) telemetry: file::Telemetry,
    pub(super) commands: Vec<CommandTool>,
    pub(super) rules: Vec<Rule>,
    /// What people should know, although it works.
    pub(super) notes: Vec<String>,
    /// The values of secrets, which must not be shown.
    pub(super) secrets: Vec<String>,
}

/// One server, and where it is written.
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) file: PathBuf,
    /// Its command or URL, without secrets.
    pub(super) about: String,
    pub(super) resolved: Resolved,
    own: file::Server,
}

/// Members of clients' files that have no meaning here.
const IGNORED: [&str; 14] = [
    "type",
    "autoApprove",
    "alwaysAllow",
    "timeout",
    "disabledTools",
    "enabled",
    "disabled",
    "trust",
    "description",
    "initTimeout",
    "startup_timeout_sec",
    "tool_timeout_sec",
    "gallery",
    "version",
];

/// Members of clients' files that mean something.
const UNDERSTOOD: [&str; 13] = [
    "command",
    "args",
    "env",
    "environment",
    "cwd",
    "envFile",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
];

/// Reads all files. Later ones override earlier ones by the key of a server.
///
/// # Errors
/// All mistakes, one per line.
pub(super) fn read(files: &[PathBuf]) -> Result<Read, String> {
    let mut reading = Reading::default();
    for file in files {
        reading.file(file, 0);
    }
    reading.finish()
}

#[derive(Default)]
struct Reading {
    settings: file::Section,
    telemetry: file::Telemetry,
    servers: BTreeMap<String, (Named, file::Server)>,
    commands: BTreeMap<String, (PathBuf, file::Command)>,
    secrets: BTreeMap<String, (PathBuf, Secret)>,
    access: Vec<file::Access>,
    notes: Vec<String>,
    problems: Vec<String>,
}

impl Reading {
    fn file(&mut self, path: &Path, depth: usize) {
        let path = &home(path);
        let is_toml = path.extension().is_some_and(|it| it == "toml");
        let is_ours = is_toml && !is_client_toml(path);
        let added = match is_ours {
            true => self.own(path, depth),
            false => self.client(path),
        };
        if let Err(problem) = added {
            self.problems.push(problem);
        }
    }

    fn client(&mut self, path: &Path) -> Result<(), String> {
        let found = servers_in(path)?;
        if found.is_empty() {
            let what = "no servers; help: expected mcpServers, servers, mcp or mcp_servers";
            return Err(format!("{}: {what}", path.display()));
        }
        for mut named in found {
            let known = UNDERSTOOD.iter().chain(&IGNORED);
            let members: Vec<String> = named.entry_mut().keys().cloned().collect();
            for member in members.iter().filter(|it| !known.clone().any(|known| it == known)) {
                let near = did_you_mean(member, UNDERSTOOD).map(|it| format!("; {it}"));
                let near = near.unwrap_or_default();
                let (file, name) = (path.display(), &named.name);
                self.notes.push(format!("{file}: {name}: {member} is not understood{near}"));
            }
            let (key, own) = (self.key(&named), file::Server::default());
            self.servers.insert(key, (named, own));
        }
        Ok(())
    }

    /// The key of a server in a client's file: its name, as far as tools' names can begin with it.
    fn key(&mut self, named: &Named) -> String {
        let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
        let mut key: String =
            named.name.chars().map(|it| if fits(it) { it } else { '-' }).collect();
        while key.contains("__") {
            key = key.replace("__", "_");
        }
        let key = key.trim_end_matches('_').to_owned();
        if key != named.name {
            let (file, name) = (named.file.display(), &named.name);
            self.notes.push(format!("{file}: {name:?} is called {key:?} here"));
        }
        key
    }

    fn own(&mut self, path: &Path, depth: usize) -> Result<(), String> {
        let wrong = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let file: File =
            toml::from_str(&text).map_err(|error| wrong(&explained(&error.to_string())))?;
        if depth > 4 {
            return Err(wrong(&"files import one another; help: remove an import"));
        }
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        for import in &file.gateway.import {
            self.file(&folder.join(home(import)), depth + 1);
        }
        for (key, server) in file.servers {
            let is_key = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
            if key.contains("__") || key.ends_with('_') || !key.chars().all(is_key) {
                let what = "holds letters, digits, - . and _, without __ and a _ at the end";
                self.problems.push(wrong(&format!("servers.{key}: the name of a server {what}")));
            }
            let mut entry = server.entry();
            // Settings for a server that another file describes.
            if !entry.contains_key("command")
                && !entry.contains_key("url")
                && let Some((known, settings)) = self.servers.get_mut(&key)
            {
                known.entry_mut().append(&mut entry);
                *settings = server;
                continue;
            }
            self.servers.insert(key.clone(), (Named::own(&key, path, entry), server));
        }
        let own = |it| (path.to_owned(), it);
        self.commands.extend(file.tools.into_iter().map(|(name, it)| (name, own(it))));
        let own = |it| (path.to_owned(), it);
        self.secrets.extend(file.secrets.into_iter().map(|(name, it)| (name, own(it))));
        self.access.extend(file.access);
        self.settings = over(self.settings_taken(), file.gateway);
        self.telemetry.audit = file.telemetry.audit.or_else(|| self.telemetry.audit.take());
        self.telemetry.metrics = file.telemetry.metrics.or(self.telemetry.metrics);
        Ok(())
    }

    fn settings_taken(&mut self) -> file::Section {
        std::mem::take(&mut self.settings)
    }

    fn finish(mut self) -> Result<Read, String> {
        let mut values = BTreeMap::new();
        for (name, (path, secret)) in &self.secrets {
            match value_of(secret, path) {
                Ok(value) => drop(values.insert(name.clone(), value)),
                Err(why) => {
                    self.problems.push(format!("{}: secrets.{name}: {why}", path.display()));
                }
            }
        }
        let mut servers = Vec::new();
        for (key, (mut named, own)) in std::mem::take(&mut self.servers) {
            if named.entry_mut().get("disabled") == Some(&Value::Bool(true)) || named.is_disabled {
                continue;
            }
            let about = named.about();
            for value in named.entry_mut().values_mut() {
                fill(value, &values);
            }
            match named.resolve(&[]) {
                Ok(resolved) => {
                    servers.push(Entry { key, file: named.file.clone(), about, resolved, own });
                }
                Err(failure) => self.problems.push(failure.what),
            }
        }
        let commands = self.commands();
        let rules = std::mem::take(&mut self.access).into_iter().enumerate();
        let rules = rules.map(|(at, it)| it.rule(at)).collect();
        if servers.is_empty() && commands.is_empty() && self.problems.is_empty() {
            self.problems.push("there is no server and no tool in these files".to_owned());
        }
        if !commands.is_empty() && servers.iter().any(|it| it.key == "tools") {
            self.problems.push("a server cannot be called \"tools\" beside [tools]".to_owned());
        }
        if !self.problems.is_empty() {
            return Err(self.problems.join("\n"));
        }
        Ok(Read {
            servers,
            settings: self.settings,
            telemetry: self.telemetry,
            commands,
            rules,
            notes: self.notes,
            secrets: values.into_values().collect(),
        })
    }

    fn commands(&mut self) -> Vec<CommandTool> {
        let mut commands = Vec::new();
        for (name, (path, it)) in std::mem::take(&mut self.commands) {
            let timeout = duration(it.timeout.as_deref(), Duration::from_secs(30));
            let arguments = it.arguments.into_iter().map(|(name, it)| match it {
                Value::String(kind) => (name, json!({ "type": kind })),
                schema => (name, schema),
            });
            let command = CommandTool {
                name: name.clone(),
                description: it.description,
                run: it.run,
                arguments: arguments.collect(),
                optional: it.optional,
                cwd: it.cwd,
                env: it.env.into_iter().collect(),
                timeout: *timeout.as_ref().unwrap_or(&Duration::ZERO),
                output: it.output.unwrap_or(256 << 10),
                is_read_only: it.read_only,
            };
            if let Some(problem) = timeout.err().or_else(|| command.problem()) {
                self.problems.push(format!("{}: tools.{name}: {problem}", path.display()));
            }
            commands.push(command);
        }
        commands
    }
}

impl Read {
    /// The plan, for an address to serve at; `None` is standard input and output.
    ///
    /// # Errors
    /// When a value is wrong, or the audit log cannot be opened.
    pub(super) fn plan(&self, audit: Option<Arc<Audit>>) -> Result<Plan, String> {
        let mut servers = Vec::new();
        for entry in &self.servers {
            let plan = entry.plan();
            servers.push(plan.map_err(|why| format!("servers.{}: {why}", entry.key))?);
        }
        let is_open = match self.settings.listen {
            Some(address) => Host::Address(address.ip()).is_loopback(),
            None => true,
        };
        let auth = self.settings.auth.as_ref();
        let mut group_claims = auth.map(|it| it.groups.clone()).unwrap_or_default();
        if group_claims.is_empty() {
            group_claims = ["groups", "roles"].map(str::to_owned).to_vec();
        }
        let policy = Policy { rules: self.rules.clone(), is_open, group_claims };
        Ok(Plan {
            name: self.settings.name.clone().unwrap_or_else(|| "bowline-gateway".to_owned()),
            has_prefixes: self.settings.prefix != Some(Prefix::Never),
            servers,
            commands: self.commands.clone(),
            policy,
            audit,
            grace: duration(self.settings.grace.as_deref(), Duration::from_secs(600))?,
            start: duration(self.settings.start.as_deref(), Duration::from_secs(60))?,
        })
    }

    /// Removes secrets from a text.
    pub(super) fn redacted(&self, text: &str) -> String {
        let mut secrets = self.secrets.clone();
        secrets.extend(self.servers.iter().flat_map(|it| it.resolved.secrets()));
        Redactor::new(secrets).text(text)
    }
}

impl Entry {
    /// Which tools it has.
    pub(super) fn tools(&self) -> ToolRules {
        let file::Tools { allow, deny, rename } = self.own.tools.clone();
        ToolRules { allow, deny, rename: rename.into_iter().collect() }
    }

    pub(super) fn alias(&self) -> Option<&str> {
        self.own.alias.as_deref()
    }

    fn plan(&self) -> Result<ServerPlan, String> {
        self.resolved.target().map_err(|failure| failure.what)?;
        let era = self.own.era.as_deref().unwrap_or("auto");
        let preference: Preference = preference(era)?;
        let limits = &self.own.limits;
        let rate = limits.calls.as_deref().map(str::parse).transpose()?;
        let timeout = limits.timeout.as_deref();
        let timeout = timeout.map(|it| duration(Some(it), Duration::ZERO)).transpose()?;
        let (target, key) = (self.resolved.clone(), self.key.clone());
        Ok(ServerPlan {
            key: self.key.clone(),
            alias: self.own.alias.clone(),
            // Holds secrets, and is only ever compared.
            fingerprint: format!("{:?} {era}", self.resolved.location),
            target: Arc::new(move || target.target().map_err(|failure| failure.what)),
            client: Arc::new(move || {
                let key = key.clone();
                Client::builder("bowline-gateway", env!("CARGO_PKG_VERSION"))
                    .without_cache()
                    .on_stderr(move |line| super::say(&format!("{key}: {line}")))
            }),
            preference,
            tools: self.tools(),
            rate,
            running: limits.running,
            timeout,
        })
    }
}

/// Settings of a later file over those of earlier ones.
fn over(old: file::Section, new: file::Section) -> file::Section {
    file::Section {
        name: new.name.or(old.name),
        listen: new.listen.or(old.listen),
        hosts: old.hosts.into_iter().chain(new.hosts).collect(),
        prefix: new.prefix.or(old.prefix),
        import: Vec::new(),
        grace: new.grace.or(old.grace),
        start: new.start.or(old.start),
        socket: new.socket.or(old.socket),
        auth: new.auth.or(old.auth),
    }
}

/// Adds a suggestion to what is said about an unknown member.
fn explained(error: &str) -> String {
    let mut quoted = error.split('`').skip(1).step_by(2);
    let near = match (error.contains("unknown field"), quoted.next()) {
        (true, Some(wrong)) => did_you_mean(wrong, quoted),
        _ => None,
    };
    near.map_or_else(|| error.to_owned(), |near| format!("{}\nhelp: {near}", error.trim_end()))
}

/// Whether a TOML file is that of a client: Codex.
fn is_client_toml(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    toml::from_str::<toml::Table>(&text).is_ok_and(|it| it.contains_key("mcp_servers"))
}

fn duration(text: Option<&str>, default: Duration) -> Result<Duration, String> {
    text.map_or(Ok(default), target::duration)
}
