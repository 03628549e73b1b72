//! The config files of other clients: which servers they name, and where.

mod entry;
mod expand;
mod jsonc;
mod places;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use self::places::Source;
use super::Place;
use crate::failure::Failure;
use crate::text::near;

/// A server that was found in a config file.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) file: PathBuf,
}

/// A server as a config file names it: nothing filled in yet.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// Whose file it is: `cursor`, `claude-code`, …
    pub(crate) client: &'static str,
    pub(crate) file: PathBuf,
    pub(crate) is_disabled: bool,
    entry: Map<String, Value>,
    inputs: Vec<Value>,
}

/// What the config files of this machine say.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) servers: Vec<Named>,
    /// Files that could not be read, and why.
    pub(crate) problems: Vec<String>,
    /// Values for `${input:…}`.
    inputs: Vec<(String, String)>,
}

impl Scan {
    /// Reads one file, or all in the usual places.
    ///
    /// # Errors
    /// When the one file cannot be read.
    pub(crate) fn new(file: Option<&Path>) -> Result<Self, Failure> {
        let mut scan = Self::default();
        match file {
            Some(file) => {
                let source = Source::given(file);
                let added = scan.add(&source);
                added.map_err(|problem| Failure::usage(format!("--config {problem}")))?;
            }
            None => {
                for source in places::usual().iter().filter(|source| source.file.is_file()) {
                    if let Err(problem) = scan.add(source) {
                        scan.problems.push(problem);
                    }
                }
            }
        }
        Ok(scan)
    }

    /// With values for `${input:…}`.
    pub(crate) fn with_inputs(mut self, inputs: Vec<(String, String)>) -> Self {
        self.inputs = inputs;
        self
    }

    fn add(&mut self, source: &Source) -> Result<(), String> {
        let wrong =
            |problem: &dyn std::fmt::Display| format!("{}: {problem}", source.file.display());
        let text = std::fs::read_to_string(&source.file).map_err(|error| wrong(&error))?;
        let is_toml = source.file.extension().is_some_and(|ending| ending == "toml");
        let value: Value = match is_toml {
            true => toml::from_str(&text).map_err(|error| wrong(&error.message()))?,
            false => jsonc::parse(&text).map_err(|error| wrong(&error))?,
        };
        let inputs = value.get("inputs").and_then(Value::as_array).cloned().unwrap_or_default();
        for (name, entry) in servers_of(&value) {
            let Some(entry) = entry.as_object() else { continue };
            let says = |member: &str, is: bool| entry.get(member) == Some(&Value::Bool(is));
            self.servers.push(Named {
                name: name.clone(),
                client: source.client,
                file: source.file.clone(),
                is_disabled: says("disabled", true) || says("enabled", false),
                entry: entry.clone(),
                inputs: inputs.clone(),
            });
        }
        Ok(())
    }

    /// The server of this name: `name`, or `client/name` where several clients have one.
    ///
    /// # Errors
    /// When there is none, or several that differ, or it cannot be filled in.
    pub(crate) fn find(&self, wanted: &str) -> Result<Found, Failure> {
        let fits = |it: &&Named| {
            it.name == wanted
                || wanted.strip_prefix(it.client).and_then(|rest| rest.strip_prefix('/'))
                    == Some(it.name.as_str())
        };
        let mut found: Vec<&Named> = Vec::new();
        for named in self.servers.iter().filter(fits) {
            // Of one client's files the nearest counts; of several clients', one if all say the
            // same.
            let is_told = |it: &&Named| it.client == named.client || it.entry == named.entry;
            if !found.iter().any(is_told) {
                found.push(named);
            }
        }
        match found.as_slice() {
            [] => Err(self.unknown(wanted)),
            [one] => one.fill_in(&self.inputs),
            many => {
                let known: Vec<String> = many
                    .iter()
                    .map(|it| format!("{}/{} ({})", it.client, it.name, it.file.display()))
                    .collect();
                let what = format!("{wanted:?} is several servers: {}", known.join(", "));
                let remedy = format!("say which, as in {}/{wanted}, or --config", many[0].client);
                Err(Failure::usage(what).with_remedy(remedy))
            }
        }
    }

    fn unknown(&self, wanted: &str) -> Failure {
        let mut failure = Failure::usage(format!("there is no server {wanted:?} in a config file"));
        let near = near(wanted, self.servers.iter().map(|it| it.name.as_str()));
        let looks_like_url = wanted.contains(':') || wanted.contains('/') && wanted.contains('.');
        failure = match (near.as_slice(), looks_like_url) {
            ([_, ..], _) => failure.with_remedy(format!("did you mean {}?", near.join(" or "))),
            (_, true) if wanted.starts_with(['.', '/', '~']) => {
                failure.with_remedy(format!("a command goes after --, as in: -- {wanted}"))
            }
            (_, true) => failure.with_remedy(format!("a URL has a scheme: http://{wanted}")),
            _ => failure.with_remedy(
                "`bowline servers` lists those that are known; a command goes after --",
            ),
        };
        if !self.problems.is_empty() {
            failure.what += &format!("; not read: {}", self.problems.join("; "));
        }
        failure
    }
}

impl Named {
    /// What it is in a line: the command, or the URL. Variables stay as they are written.
    pub(crate) fn about(&self) -> String {
        entry::about(&self.entry)
    }

    /// The whole server, with variables and inputs filled in.
    fn fill_in(&self, inputs: &[(String, String)]) -> Result<Found, Failure> {
        let wrong = |problem: String| {
            Failure::usage(format!("{}: server {:?}: {problem}", self.file.display(), self.name))
        };
        let fill = expand::Fill::new(self.client, &self.file, &self.inputs, inputs);
        let place = entry::place(&self.entry, &fill).map_err(wrong)?;
        Ok(Found { name: self.name.clone(), place, file: self.file.clone() })
    }
}

/// The servers in a file, whatever its shape. Those of the project one is in come first.
fn servers_of(value: &Value) -> Vec<(&String, &Value)> {
    let mut maps: Vec<Option<&Value>> = Vec::new();
    if let Some(projects) = value.get("projects").and_then(Value::as_object) {
        let here = std::env::current_dir().unwrap_or_default();
        let own = here.ancestors().find_map(|dir| projects.get(dir.to_str()?));
        maps.push(own.and_then(|project| project.get("mcpServers")));
    }
    let nested = |outer: &str| value.get(outer).and_then(|it| it.get("servers"));
    maps.extend([value.get("mcpServers"), value.get("servers"), value.get("mcp_servers")]);
    maps.push(nested("mcp").or_else(|| value.get("mcp")));
    let maps = maps.into_iter().flatten().filter_map(Value::as_object);
    maps.flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use serde_json::json;

    use super::*;

    fn scan(files: &[(&'static str, &str, Value)]) -> Scan {
        let mut scan = Scan::default();
        for (client, file, value) in files {
            for (name, entry) in servers_of(value) {
                scan.servers.push(Named {
                    name: name.clone(),
                    client,
                    file: file.into(),
                    is_disabled: false,
                    entry: entry.as_object().unwrap().clone(),
                    inputs: Vec::new(),
                });
            }
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
            let found = scan(&[("x", "f", value.clone())]).find("a").unwrap();
            let Place::Command { program, .. } = found.place else { panic!("{value}") };
            assert_eq!(program, OsString::from("x"), "{value}");
        }
    }

    #[test]
    fn names_that_mean_several_are_told_apart() {
        let one = json!({ "mcpServers": { "a": { "command": "x" }, "same": { "command": "s" } } });
        let two = json!({ "mcpServers": { "a": { "command": "y" }, "same": { "command": "s" } } });
        let scan = scan(&[("cursor", "c.json", one), ("cline", "l.json", two)]);
        let told = scan.find("a").unwrap_err();
        assert!(told.what.contains("cursor/a (c.json), cline/a (l.json)"), "{}", told.what);
        assert!(scan.find("cline/a").is_ok());
        assert!(scan.find("same").is_ok());
    }

    #[test]
    fn names_that_are_not_there_get_a_hint() {
        let one = json!({ "mcpServers": { "everything": { "command": "x" } } });
        let scan = scan(&[("cursor", "c.json", one)]);
        for (wanted, hint) in [
            ("everthing", "did you mean everything?"),
            ("localhost:3000/mcp", "http://localhost:3000/mcp"),
            ("./server", "-- ./server"),
            ("other", "`bowline servers`"),
        ] {
            let remedy = scan.find(wanted).unwrap_err().remedy.unwrap();
            assert!(remedy.contains(hint), "{wanted}: {remedy}");
        }
    }
}
