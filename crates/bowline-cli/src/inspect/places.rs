//! Where servers are: configured on this machine, pasted, or typed.

use std::ffi::OsString;

use bowline_inspector::Place;
use serde_json::{Value, json};

use super::tap;
use crate::failure::Failure;
use crate::redact;
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

/// A location as a page names it.
fn place_of(location: &Location) -> Place {
    match location {
        Location::Url { url, headers } => {
            Place::Url { url: url.clone(), headers: headers.iter().cloned().collect() }
        }
        Location::Command { program, args, env, cwd } => {
            let text = |it: &OsString| it.to_string_lossy().into_owned();
            Place::Command {
                command: text(program),
                args: args.iter().map(text).collect(),
                env: env.iter().map(|(name, value)| (text(name), text(value))).collect(),
                cwd: cwd.as_ref().map(|it| it.to_string_lossy().into_owned()),
            }
        }
    }
}

/// The same for everyone to see, without values of headers and variables and other secrets.
pub(super) fn shown(location: &Location) -> Place {
    let mut place = place_of(location);
    let masked = match &mut place {
        Place::Url { url, headers } => {
            *url = redact::url(url);
            headers
        }
        Place::Command { args, env, .. } => {
            *args = redact::words(args).0;
            env
        }
        Place::Name { .. } | Place::Given { .. } => return place,
    };
    masked.values_mut().for_each(|value| *value = MASK.to_owned());
    place
}

/// Stands for a value that pages do not see.
const MASK: &str = "…";

/// The servers in pasted JSON, ready to connect to.
pub(super) fn read_config(text: &str) -> Result<Value, Failure> {
    let mut found = Vec::new();
    for (name, resolved) in Scan::of_text(text)?.all() {
        found.push(json!({ "name": name, "place": place_of(&resolved?.location) }));
    }
    if found.is_empty() {
        return Err(Failure::usage("no server in this JSON")
            .with_remedy("paste an entry with `command` or `url`, or a file with `mcpServers`"));
    }
    Ok(found.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_see_places_without_secrets() {
        let of = |text: &str| -> Place { serde_json::from_str::<Place>(text).unwrap() };
        for (place, seen) in [
            (
                r#"{"url":"http://x.test/?token=s3cret","headers":{"Authorization":"Bearer s3cret"}}"#,
                r#"{"url":"http://x.test/?token=[redacted]","headers":{"Authorization":"…"}}"#,
            ),
            (
                r#"{"command":"npx","args":["--token","s3cret"],"env":{"KEY":"s3cret"},"cwd":"/"}"#,
                r#"{"command":"npx","args":["--token","[redacted]"],"env":{"KEY":"…"},"cwd":"/"}"#,
            ),
        ] {
            let resolved = resolve(&of(place), None).unwrap();
            assert_eq!(shown(&resolved.location), of(seen));
            assert_eq!(place_of(&resolved.location), of(place), "the program keeps them");
        }
    }
}
