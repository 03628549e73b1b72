//! The config files of other clients: where they are, and which servers they name.

mod entry;
mod expand;
mod jsonc;
mod places;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bowline_gateway::config::is_wrapped;
use serde_json::{Map, Value};

use self::places::ConfigFile;
pub(crate) use self::places::{clients, file_of};
use super::{Resolved, Trust};
use crate::failure::Failure;
use crate::redact::Redactor;
use crate::render::json::indented;
use crate::screen::Paint;
use crate::text::did_you_mean;

/// A server as a config file describes it: its variables are not expanded yet.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// The client that the file belongs to: `cursor`, `claude-code`, …
    pub(crate) client: &'static str,
    pub(crate) file: PathBuf,
    pub(crate) is_disabled: bool,
    /// Whether its file comes with a project, and whether the user trusts that file.
    pub(crate) is_project: bool,
    pub(crate) is_trusted: bool,
    /// Where in its file the entry is.
    pub(crate) path: Vec<String>,
    entry: Map<String, Value>,
    inputs: Vec<Value>,
    /// All of its file.
    content: Arc<str>,
}

/// The servers in the config files on this machine.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) servers: Vec<Named>,
    /// Files that could not be read, and why.
    pub(crate) problems: Vec<String>,
    trust: Trust,
}

impl Scan {
    /// Reads one file, or all in the usual places.
    pub(crate) fn new(file: Option<&Path>, trust: Trust) -> Result<Self, Failure> {
        let mut scan = Self { trust, ..Self::default() };
        if let Some(file) = file {
            let added = scan.add(&ConfigFile::given(file));
            added.map_err(|problem| Failure::usage(format!("--config {problem}")))?;
            return Ok(scan);
        }
        for source in places::usual().iter().filter(|source| source.file.is_file()) {
            if let Err(problem) = scan.add(source) {
                scan.problems.push(problem);
            }
        }
        Ok(scan)
    }

    /// The server with this name, unless its file is a project's that nobody trusts: the terminal,
    /// where the user would be asked, is not where the user is.
    pub(crate) fn trusted(self, wanted: &str) -> Result<Resolved, Failure> {
        let named = self.entry(wanted)?;
        if !named.is_trusted {
            return Err(Failure::usage(format!("{} is not trusted", named.file.display())));
        }
        named.resolve(&[])
    }

    /// All servers, with their variables expanded.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, Result<Resolved, Failure>)> {
        self.servers.iter().map(|it| (it.name.as_str(), it.resolve(&[])))
    }

    /// Reads a client's configuration that was pasted: JSON, as in its file, or one entry of it.
    pub(crate) fn of_text(text: &str) -> Result<Self, Failure> {
        let wrong = |why: &dyn std::fmt::Display| Failure::usage(format!("not JSON: {why}"));
        let mut value = jsonc::parse(text).map_err(|error| wrong(&error))?;
        let is_entry = |it: &Value| it.get("command").or_else(|| it.get("url")).is_some();
        if is_entry(&value) {
            value = serde_json::json!({ "mcpServers": { "pasted": value } });
        } else if value.as_object().is_some_and(|it| !it.is_empty() && it.values().all(is_entry)) {
            value = serde_json::json!({ "mcpServers": value });
        }
        let mut scan = Self { trust: Trust::read(false), ..Self::default() };
        scan.add_servers(&ConfigFile::given(Path::new("pasted.json")), &value, &text.into());
        Ok(scan)
    }

    fn add(&mut self, source: &ConfigFile) -> Result<(), String> {
        let wrong =
            |problem: &dyn std::fmt::Display| format!("{}: {problem}", source.file.display());
        let text = std::fs::read_to_string(&source.file).map_err(|error| wrong(&error))?;
        let value: Value = if source.file.extension().is_some_and(|it| it == "toml") {
            toml::from_str(&text).map_err(|error| wrong(&error.message()))?
        } else {
            jsonc::parse(&text).map_err(|error| wrong(&error))?
        };
        self.add_servers(source, &value, &text.into());
        Ok(())
    }

    fn add_servers(&mut self, source: &ConfigFile, value: &Value, content: &Arc<str>) {
        let is_trusted = !source.is_project || self.trust.has(&source.file, content);
        let inputs = value.get("inputs").and_then(Value::as_array).cloned().unwrap_or_default();
        for (path, entry) in servers_of(value) {
            let (Some(entry), Some(name)) = (entry.as_object(), path.last()) else { continue };
            let says = |member: &str, is: bool| entry.get(member) == Some(&Value::Bool(is));
            self.servers.push(Named {
                name: name.clone(),
                path: path.clone(),
                client: source.client,
                file: source.file.clone(),
                is_disabled: says("disabled", true) || says("enabled", false),
                is_project: source.is_project,
                is_trusted,
                content: Arc::clone(content),
                entry: entry.clone(),
                inputs: inputs.clone(),
            });
        }
    }

    /// The server with this name: `name`, or `client/name` where several clients have one. `inputs`
    /// are values for `${input:…}`. The user is asked before a project's file is used for the first
    /// time, and what the user has configured comes before it until then.
    pub(crate) fn find(
        mut self,
        wanted: &str,
        inputs: &[(String, String)],
    ) -> Result<Resolved, Failure> {
        let matches = |it: &&Named| it.is_called(wanted);
        let mut found: Vec<&Named> = Vec::new();
        let (trusted, others): (Vec<_>, Vec<_>) =
            self.servers.iter().filter(matches).partition(|it| it.is_trusted);
        let passed_over = others.first().copied().filter(|_| !trusted.is_empty());
        for named in if trusted.is_empty() { others } else { trusted } {
            // The nearest of a client's files counts, and clients may agree on an entry.
            let is_known = |it: &&Named| it.client == named.client || it.entry == named.entry;
            if !found.iter().any(is_known) {
                found.push(named);
            }
        }
        match found.as_slice() {
            [] => Err(self.unknown(wanted)),
            [one] => {
                if !one.is_trusted {
                    self.trust.ask(&one.file, &one.content, &one.in_full())?;
                }
                let note = one.is_project.then(|| format!("using {}", one.file.display()));
                let note = passed_over.map_or(note, |other| Some(one.instead_of(other)));
                Ok(Resolved { note, ..one.resolve(inputs)? })
            }
            many => Err(several(wanted, many)),
        }
    }

    /// The entry with this name, to be edited: the nearest of a client's files counts.
    pub(crate) fn entry(&self, wanted: &str) -> Result<&Named, Failure> {
        let mut found: Vec<&Named> = Vec::new();
        for named in self.servers.iter().filter(|it| it.is_called(wanted)) {
            if !found.iter().any(|it| it.client == named.client) {
                found.push(named);
            }
        }
        match found.as_slice() {
            [] => Err(self.unknown(wanted)),
            [one] => Ok(one),
            many => Err(several(wanted, many)),
        }
    }

    fn unknown(&self, wanted: &str) -> Failure {
        let mut what = format!("there is no server {wanted:?} in a config file");
        if !self.problems.is_empty() {
            what += &format!("; not read: {}", self.problems.join("; "));
        }
        let near = did_you_mean(wanted, self.servers.iter().map(|it| it.name.as_str()));
        let looks_like_url = wanted.contains(':') || wanted.contains('/') && wanted.contains('.');
        let remedy = near.unwrap_or_else(|| {
            if looks_like_url && wanted.starts_with(['.', '/', '~']) {
                format!("a command goes after --, as in: -- {wanted}")
            } else if looks_like_url {
                format!("a URL has a scheme: http://{wanted}")
            } else {
                "`bowline servers` lists the known ones; a command goes after --".to_owned()
            }
        });
        Failure::usage(what).with_remedy(remedy)
    }
}

/// The servers in one file, of whatever client, without asking whether it is trusted: the user has
/// named it.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn servers_in(file: &Path) -> Result<Vec<Named>, String> {
    let mut scan = Scan::default();
    scan.add(&ConfigFile::given(file))?;
    Ok(scan.servers)
}

/// A name that several clients use.
fn several(wanted: &str, many: &[&Named]) -> Failure {
    let known = many.iter().map(|it| format!("{}/{} ({})", it.client, it.name, it.file.display()));
    let known: Vec<String> = known.collect();
    let what = format!("{wanted:?} names several servers: {}", known.join(", "));
    let remedy = format!("say which, as in {}/{wanted}, or --config", many[0].client);
    Failure::usage(what).with_remedy(remedy)
}

impl Named {
    /// Whether it is meant by `name` or `client/name`.
    fn is_called(&self, wanted: &str) -> bool {
        let own = wanted.strip_prefix(self.client).and_then(|rest| rest.strip_prefix('/'));
        self.name == wanted || own == Some(self.name.as_str())
    }

    /// Whether there is a tap in front of it.
    pub(crate) fn is_tapped(&self) -> bool {
        is_wrapped(&self.entry)
    }

    /// The command or the URL on one line. Variables are not expanded.
    pub(crate) fn about(&self) -> String {
        entry::about(&self.entry)
    }

    /// The whole entry, without secrets. Variables are not expanded.
    fn in_full(&self) -> String {
        let entry = Redactor::default().json(&Value::Object(self.entry.clone()).to_string());
        let name = Value::from(self.name.as_str());
        format!("  {name}: {}", indented(&entry, Paint(false), 2))
    }

    /// Why this one is used, and not one of a project.
    fn instead_of(&self, other: &Self) -> String {
        format!(
            "using {:?} of {}, not of the project's {}, which is not trusted (--trust uses it)",
            self.name,
            self.file.display(),
            other.file.display()
        )
    }

    /// A server that no client's file has.
    pub(crate) fn own(name: &str, file: &Path, entry: Map<String, Value>) -> Self {
        Self {
            name: name.to_owned(),
            client: "bowline",
            file: file.to_owned(),
            is_disabled: entry.get("disabled") == Some(&Value::Bool(true)),
            is_project: false,
            is_trusted: true,
            path: Vec::new(),
            entry,
            inputs: Vec::new(),
            content: "".into(),
        }
    }

    /// Its members, as they are written.
    pub(crate) fn entry_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.entry
    }

    /// The server with its variables and inputs expanded.
    pub(crate) fn resolve(&self, inputs: &[(String, String)]) -> Result<Resolved, Failure> {
        self.resolve_with(inputs, &BTreeMap::new())
    }

    /// The same with values of its own for variables. What is in a value is not expanded.
    pub(crate) fn resolve_with(
        &self,
        inputs: &[(String, String)],
        values: &BTreeMap<String, String>,
    ) -> Result<Resolved, Failure> {
        let expand = expand::Expand::new(self.client, &self.file, &self.inputs, inputs);
        let expand = expand.with_values(values);
        let location = entry::location(&self.entry, &expand).map_err(|problem| {
            Failure::usage(format!("{}: server {:?}: {problem}", self.file.display(), self.name))
        })?;
        let resolved = Resolved::new(self.name.clone(), location);
        Ok(Resolved { from: Some(self.file.clone()), ..resolved })
    }
}

/// The servers in a file of any client with their paths, those of the current project first.
fn servers_of(value: &Value) -> Vec<(Vec<String>, &Value)> {
    let here = std::env::current_dir().unwrap_or_default();
    let projects = value.get("projects").and_then(Value::as_object);
    let project = here
        .ancestors()
        .filter_map(Path::to_str)
        .find(|folder| projects.is_some_and(|projects| projects.get(*folder).is_some()));
    let has_inner = value.get("mcp").is_some_and(|mcp| mcp.get("servers").is_some());
    let mcp: &[&str] = if has_inner { &["mcp", "servers"] } else { &["mcp"] };
    let project = project.map(|folder| vec!["projects", folder, "mcpServers"]);
    let usual = [&["mcpServers"][..], &["servers"], &["mcp_servers"], mcp].map(<[&str]>::to_vec);
    let mut found = Vec::new();
    for path in project.into_iter().chain(usual) {
        let map = path.iter().try_fold(value, |value, member| value.get(*member));
        for (name, entry) in map.and_then(Value::as_object).into_iter().flatten() {
            let mut path: Vec<String> = path.iter().map(|it| (*it).to_owned()).collect();
            path.push(name.clone());
            found.push((path, entry));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use serde_json::json;

    use super::*;
    use crate::target::Location;

    fn scan(files: &[(&'static str, &str, Value)]) -> Scan {
        let mut scan = Scan::default();
        for (client, file, value) in files {
            let file = ConfigFile { client, file: file.into(), is_project: false };
            scan.add_servers(&file, value, &"".into());
        }
        scan
    }

    #[test]
    fn every_shape_is_read() {
        for value in [
            json!({ "mcpServers": { "a": { "command": "x" } } }),
            json!({ "servers": { "a": { "type": "stdio", "command": "x" } } }),
            json!({ "mcp": { "a": { "type": "local", "command": ["x"] } } }),
            json!({ "mcp": { "servers": { "a": { "command": "x" } } } }),
            json!({ "mcp_servers": { "a": { "command": "x" } } }),
        ] {
            let found = scan(&[("x", "f", value.clone())]).find("a", &[]).unwrap();
            let Location::Command { program, .. } = found.location else { panic!("{value}") };
            assert_eq!(program, OsString::from("x"), "{value}");
        }
    }

    #[test]
    fn names_that_mean_several_are_told_apart() {
        let one = json!({ "mcpServers": { "a": { "command": "x" }, "same": { "command": "s" } } });
        let two = json!({ "mcpServers": { "a": { "command": "y" }, "same": { "command": "s" } } });
        let scan = || scan(&[("cursor", "c.json", one.clone()), ("cline", "l.json", two.clone())]);
        let told = scan().find("a", &[]).unwrap_err();
        assert!(told.what.contains("cursor/a (c.json), cline/a (l.json)"), "{}", told.what);
        assert!(scan().find("cline/a", &[]).is_ok());
        assert!(scan().find("same", &[]).is_ok());
    }

    #[test]
    fn names_that_are_not_there_get_a_hint() {
        let one = json!({ "mcpServers": { "everything": { "command": "x" } } });
        for (wanted, hint) in [
            ("everthing", "did you mean everything?"),
            ("localhost:3000/mcp", "http://localhost:3000/mcp"),
            ("./server", "-- ./server"),
            ("other", "`bowline servers`"),
        ] {
            let scan = scan(&[("cursor", "c.json", one.clone())]);
            let remedy = scan.find(wanted, &[]).unwrap_err().remedy.unwrap();
            assert!(remedy.contains(hint), "{wanted}: {remedy}");
        }
    }
}
