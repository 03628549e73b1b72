//! Reads the files of a gateway into its plan.

mod openapi;
mod pasted;
mod plan;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline_gateway::gateway::{CommandTool, Rule};
use serde_json::{Value, json};

pub(super) use self::plan::Entry;
use super::file::{self, File, Secret};
use super::secret::{filled, home, value_of};
use crate::target::{self, Named};
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
    /// The values of secrets, by their names. They must not be shown.
    pub(super) secrets: BTreeMap<String, String>,
}

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
    /// The names in files by the keys that are made of them.
    names: BTreeMap<String, String>,
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
            let alias = server.alias.iter().map(|alias| ("alias", alias));
            for (what, name) in [("name", &key)].into_iter().chain(alias) {
                if !is_key(name) {
                    let rule = "has letters, digits, - . and _, without __ and a _ at the end";
                    let problem = format!("servers.{key}: the {what} of a server {rule}");
                    self.problems.push(wrong(&problem));
                }
            }
            let mut entry = server.entry();
            if let Some(document) = openapi::place(&server, folder) {
                match document {
                    Ok(document) => drop(entry.insert("url".to_owned(), document.into())),
                    Err(why) => self.problems.push(wrong(&format!("servers.{key}: {why}"))),
                }
            }
            // Settings for a server that another file describes.
            if !entry.contains_key("command")
                && !entry.contains_key("url")
                && let Some((known, settings)) = self.servers.get_mut(&key)
            {
                if let Some(Value::Bool(is_disabled)) = entry.get("disabled") {
                    known.is_disabled = *is_disabled;
                    known.entry_mut().remove("enabled");
                }
                known.entry_mut().append(&mut entry);
                *settings = adjusted(std::mem::take(settings), server);
                continue;
            }
            self.names.insert(key.clone(), key.clone());
            self.servers.insert(key.clone(), (Named::own(&key, path, entry), server));
        }
        let own = |it| (path.to_owned(), it);
        self.commands.extend(file.tools.into_iter().map(|(name, it)| (name, own(it))));
        let own = |it| (path.to_owned(), it);
        self.secrets.extend(file.secrets.into_iter().map(|(name, it)| (name, own(it))));
        self.access.extend(file.access);
        let near = |it: PathBuf| folder.join(home(&it));
        let socket = file.gateway.socket.clone().map(near);
        self.settings = over(self.settings_taken(), file::Section { socket, ..file.gateway });
        let audit = file.telemetry.audit.map(near);
        self.telemetry.audit = audit.or_else(|| self.telemetry.audit.take());
        self.telemetry.metrics = file.telemetry.metrics.or(self.telemetry.metrics);
        self.telemetry.otlp = file.telemetry.otlp.or_else(|| self.telemetry.otlp.take());
        self.telemetry.otlp_headers.extend(file.telemetry.otlp_headers);
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
        let introspection = self.settings.auth.as_mut().and_then(|it| it.introspection.as_mut());
        if let Some(it) = introspection {
            match filled(&it.client_secret, &values) {
                Ok(secret) => it.client_secret = secret,
                Err(why) => self.problems.push(format!("auth.introspection.client_secret: {why}")),
            }
        }
        let otlp = self.telemetry.otlp.iter_mut().map(|it| ("otlp".to_owned(), it));
        let headers = self.telemetry.otlp_headers.iter_mut();
        let headers = headers.map(|(name, it)| (format!("otlp_headers.{name}"), it));
        for (place, text) in otlp.chain(headers) {
            match filled(text, &values) {
                Ok(value) => *text = value,
                Err(why) => self.problems.push(format!("telemetry.{place}: {why}")),
            }
        }
        let mut servers = Vec::new();
        for (key, (mut named, own)) in std::mem::take(&mut self.servers) {
            if named.entry_mut().get("disabled") == Some(&Value::Bool(true)) || named.is_disabled {
                continue;
            }
            let about = named.about();
            match named.resolve_with(&[], &values) {
                Ok(resolved) => {
                    let (file, api) = (named.file.clone(), None);
                    servers.push(Entry { key, file, about, resolved, own, api });
                }
                Err(failure) => self.problems.push(failure.what),
            }
        }
        self.check_prefixes(&servers);
        let commands = self.commands(&values);
        let rules = std::mem::take(&mut self.access).into_iter().enumerate();
        let rules: Vec<Rule> = rules.map(|(at, it)| it.rule(at)).collect();
        self.notes.extend(rules.iter().flat_map(|rule| strangers(rule, &servers)));
        if servers.is_empty() && commands.is_empty() && self.problems.is_empty() {
            self.problems.push("there is no server and no tool in these files".to_owned());
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
            secrets: values,
        })
    }

    /// Names of tools begin with the prefix of their server, so that belongs to one server.
    fn check_prefixes(&mut self, servers: &[Entry]) {
        let mut taken = BTreeMap::new();
        for it in servers {
            let prefix = it.alias().unwrap_or(&it.key);
            if let Some(other) = taken.insert(prefix, &it.key) {
                let what = format!("servers {other} and {} are both called {prefix:?}", it.key);
                self.problems.push(format!("{what}; help: choose another alias"));
            }
        }
        if servers.iter().any(|it| it.key == "tools") {
            let what = "a server cannot be called \"tools\", because rules and records use that \
                        for [tools]; help: rename it";
            self.problems.push(what.to_owned());
        } else if !self.commands.is_empty() && taken.contains_key("tools") {
            let what = "no alias can be \"tools\" beside [tools]; help: choose another alias";
            self.problems.push(what.to_owned());
        }
    }

    fn commands(&mut self, values: &BTreeMap<String, String>) -> Vec<CommandTool> {
        let mut commands = Vec::new();
        for (name, (path, it)) in std::mem::take(&mut self.commands) {
            let timeout = duration(it.timeout.as_deref(), Duration::from_secs(30));
            let arguments = it.arguments.into_iter().map(|(name, it)| match it {
                Value::String(kind) => (name, json!({ "type": kind })),
                schema => (name, schema),
            });
            let folder = path.parent().unwrap_or_else(|| Path::new("."));
            let mut env = Vec::new();
            for (variable, text) in it.env {
                match filled(&text, values) {
                    Ok(value) => env.push((variable, value)),
                    Err(why) => {
                        let place = format!("{}: tools.{name}.env.{variable}", path.display());
                        self.problems.push(format!("{place}: {why}"));
                    }
                }
            }
            let rate = it.limits.calls.as_deref().map(str::parse).transpose();
            let command = CommandTool {
                name: name.clone(),
                description: it.description,
                run: it.run,
                arguments: arguments.collect(),
                optional: it.optional,
                cwd: it.cwd.map(|cwd| folder.join(home(&cwd))),
                env,
                timeout: *timeout.as_ref().unwrap_or(&Duration::ZERO),
                output: it.output.unwrap_or(256 << 10),
                is_read_only: it.read_only,
                rate: rate.as_ref().ok().copied().flatten(),
                running: it.limits.running,
            };
            let problem = timeout.err().or_else(|| rate.err()).or_else(|| command.problem());
            if let Some(problem) = problem {
                self.problems.push(format!("{}: tools.{name}: {problem}", path.display()));
            }
            commands.push(command);
        }
        commands
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

/// Notes about the patterns of a rule that can match nothing, because there is no such server.
fn strangers(rule: &Rule, servers: &[Entry]) -> Vec<String> {
    let known = || servers.iter().map(|it| it.key.as_str()).chain(["tools"]);
    let patterns = rule.allow.iter().chain(&rule.deny).chain(&rule.confirm);
    let strange = patterns.filter_map(|pattern| {
        let server = pattern.split('/').next().unwrap_or_default();
        if server.contains('*') || known().any(|it| it == server) && pattern.contains('/') {
            return None;
        }
        let near = did_you_mean(server, known()).map(|it| format!("; {it}")).unwrap_or_default();
        Some(format!("rule {}: no server is called {server:?} ({pattern}){near}", rule.name))
    });
    strange.collect()
}

/// Whether names of tools can begin with this.
fn is_key(name: &str) -> bool {
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    !name.is_empty() && !name.contains("__") && !name.ends_with('_') && name.chars().all(fits)
}

/// Settings for a server over those that it has: what is not given stays.
fn adjusted(old: file::Server, new: file::Server) -> file::Server {
    let limits = file::Limits {
        calls: new.limits.calls.or(old.limits.calls),
        running: new.limits.running.or(old.limits.running),
        timeout: new.limits.timeout.or(old.limits.timeout),
    };
    file::Server {
        base: new.base.or(old.base),
        output: new.output.or(old.output),
        alias: new.alias.or(old.alias),
        era: new.era.or(old.era),
        inherit: old.inherit.into_iter().chain(new.inherit).collect(),
        login: new.login.or(old.login),
        insecure_http: new.insecure_http.or(old.insecure_http),
        auth: new.auth.or(old.auth),
        tools: narrowed(old.tools, new.tools),
        limits,
        // What says where it is.
        ..old
    }
}

/// A choice of tools beside an earlier one: what either denies is denied.
fn narrowed(old: file::Tools, new: file::Tools) -> file::Tools {
    file::Tools {
        allow: if new.allow.is_empty() { old.allow } else { new.allow },
        deny: old.deny.into_iter().chain(new.deny).collect(),
        rename: old.rename.into_iter().chain(new.rename).collect(),
    }
}

/// Whether a TOML file is that of a client: Codex.
fn is_client_toml(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    toml::from_str::<toml::Table>(&text).is_ok_and(|it| it.contains_key("mcp_servers"))
}

fn duration(text: Option<&str>, default: Duration) -> Result<Duration, String> {
    text.map_or(Ok(default), target::duration)
}
