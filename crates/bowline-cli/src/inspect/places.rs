//! Where servers are: configured on this machine, pasted, or typed.

use std::ffi::OsString;

use bowline_inspector::Place;
use serde_json::{Value, json};

use super::tap;
use crate::failure::Failure;
use crate::target::{Location, Resolved, Scan, Trust};

/// Finds the server that a page names.
pub(super) fn resolve(place: &Place, given: Option<&Resolved>) -> Result<Resolved, Failure> {
    match place {
        Place::Given { .. } => {
            given.cloned().ok_or_else(|| Failure::usage("the command line named no server"))
        }
        Place::Url { url, headers } => {
            let headers = headers.iter().map(|(name, it)| (name.clone(), it.clone())).collect();
            Ok(Resolved::new(url.clone(), Location::Url { url: url.clone(), headers }))
        }
        Place::Command { command, args, env, cwd } => {
            let location = Location::Command {
                program: command.into(),
                args: args.iter().map(OsString::from).collect(),
                env: env.iter().map(|(name, it)| (name.into(), it.into())).collect(),
                cwd: cwd.as_ref().map(Into::into),
            };
            Ok(Resolved::new(command.clone(), location))
        }
        Place::Name { name, trust } => Scan::new(None, Trust::read(*trust))?.trusted(name),
    }
}

/// The servers that are configured on this machine, and the taps that run.
pub(super) fn targets() -> Result<Value, Failure> {
    let scan = Scan::new(None, Trust::read(false))?;
    let servers: Vec<Value> = scan
        .servers
        .iter()
        .filter(|it| !it.is_disabled)
        .map(|it| {
            json!({
                "name": format!("{}/{}", it.client, it.name), "about": it.about(),
                "file": it.file.to_string_lossy(), "trusted": it.is_trusted,
            })
        })
        .collect();
    Ok(json!({ "servers": servers, "problems": scan.problems, "taps": tap::running() }))
}

/// The servers in pasted JSON, ready to connect to.
pub(super) fn read_config(text: &str) -> Result<Value, Failure> {
    let mut found = Vec::new();
    for (name, resolved) in Scan::of_text(text)?.all() {
        let place = match resolved?.location {
            Location::Url { url, headers } => {
                Place::Url { url, headers: headers.into_iter().collect() }
            }
            Location::Command { program, args, env, cwd } => {
                let text = |it: &OsString| it.to_string_lossy().into_owned();
                Place::Command {
                    command: text(&program),
                    args: args.iter().map(text).collect(),
                    env: env.iter().map(|(name, value)| (text(name), text(value))).collect(),
                    cwd: cwd.map(|it| it.to_string_lossy().into_owned()),
                }
            }
        };
        found.push(json!({ "name": name, "place": place }));
    }
    if found.is_empty() {
        return Err(Failure::usage("no server in this JSON")
            .with_remedy("paste an entry with `command` or `url`, or a file with `mcpServers`"));
    }
    Ok(found.into())
}
