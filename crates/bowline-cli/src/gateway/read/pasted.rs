//! Clients' own files, pasted as they are.

use std::path::Path;

use serde_json::{Map, Value};

use super::Reading;
use crate::gateway::file;
use crate::target::{Named, servers_in};
use crate::text::did_you_mean;

/// Members of clients' files that have no meaning here.
const IGNORED: [&str; 13] = [
    "type",
    "autoApprove",
    "alwaysAllow",
    "timeout",
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

/// Members of clients' files that choose tools, and whether they allow or deny.
const CHOICES: [(&str, bool); 8] = [
    ("tools", true),
    ("includeTools", true),
    ("enabledTools", true),
    ("enabled_tools", true),
    ("disabledTools", false),
    ("excludeTools", false),
    ("disabled_tools", false),
    ("exclude_tools", false),
];

/// The tools that a client's file chooses.
fn chosen(entry: &Map<String, Value>) -> Result<file::Tools, String> {
    let mut tools = file::Tools::default();
    for (member, allows) in CHOICES {
        let names = match entry.get(member) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(names)) => names,
            Some(_) => return Err(format!("{member} must be an array of names")),
        };
        let to = if allows { &mut tools.allow } else { &mut tools.deny };
        for name in names {
            let name = name.as_str().ok_or_else(|| format!("{member} must contain only names"))?;
            // Gemini allows a condition in parentheses.
            to.push(name.split('(').next().unwrap_or(name).trim().to_owned());
        }
        if allows && tools.allow.is_empty() {
            tools.deny.push("*".to_owned());
        }
    }
    Ok(tools)
}

impl Reading {
    pub(super) fn client(&mut self, path: &Path) -> Result<(), String> {
        let found = servers_in(path)?;
        if found.is_empty() {
            let what = "no servers; help: expected mcpServers, servers, mcp or mcp_servers";
            return Err(format!("{}: {what}", path.display()));
        }
        for mut named in found {
            let choices = CHOICES.iter().map(|(member, _)| member);
            let known = UNDERSTOOD.iter().chain(&IGNORED).chain(choices);
            let members: Vec<String> = named.entry_mut().keys().cloned().collect();
            for member in members.iter().filter(|it| !known.clone().any(|known| it == known)) {
                let near = did_you_mean(member, UNDERSTOOD).map(|it| format!("; {it}"));
                let near = near.unwrap_or_default();
                let (file, name) = (path.display(), &named.name);
                self.notes.push(format!("{file}: {name}: {member} is not understood{near}"));
            }
            let key = self.key(&named);
            let mut own = file::Server::default();
            let place = format!("{}: {}", named.file.display(), named.name);
            match chosen(named.entry_mut()) {
                Ok(tools) => own.tools = tools,
                Err(problem) => self.problems.push(format!("{place}: {problem}")),
            }
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
        let first = self.names.entry(key.clone()).or_insert_with(|| named.name.clone());
        if *first != named.name {
            let (file, name) = (named.file.display(), &named.name);
            self.problems.push(format!(
                "{file}: {name:?} and {first:?} are both called {key:?} here; help: rename one"
            ));
        }
        if key != named.name {
            let (file, name) = (named.file.display(), &named.name);
            self.notes.push(format!("{file}: {name:?} is called {key:?} here"));
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn choices_of_every_client_are_followed() {
        let chosen = |entry: Value| chosen(entry.as_object().unwrap());
        for (entry, allow, deny) in [
            (json!({ "disabledTools": ["delete"] }), &[][..], &["delete"][..]),
            (json!({ "excludeTools": ["run(rm *)"] }), &[], &["run"]),
            (json!({ "includeTools": ["get"] }), &["get"], &[]),
            (json!({ "enabled_tools": ["a"], "disabled_tools": ["b"] }), &["a"], &["b"]),
            (json!({ "tools": ["*"] }), &["*"], &[]),
            (json!({ "tools": [] }), &[], &["*"]),
            (json!({ "disabledTools": null }), &[], &[]),
        ] {
            let tools = chosen(entry.clone()).unwrap();
            assert_eq!(tools.allow, allow, "{entry}");
            assert_eq!(tools.deny, deny, "{entry}");
        }
        assert!(chosen(json!({ "disabledTools": "delete" })).is_err());
        assert!(chosen(json!({ "disabledTools": [1] })).is_err());
    }
}
