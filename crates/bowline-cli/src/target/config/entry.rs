//! One server in a config file of any client.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Map, Value};

use super::expand::Expand;
use crate::redact;
use crate::target::Location;

/// Members that hold a URL: of most clients, of Windsurf, of Gemini.
const URLS: [&str; 3] = ["url", "serverUrl", "httpUrl"];

/// The command or the URL on one line.
pub(super) fn about(entry: &Map<String, Value>) -> String {
    if let Some(url) = URLS.iter().find_map(|name| entry.get(*name)?.as_str()) {
        return redact::url(url);
    }
    let members = ["command", "args"].into_iter().filter_map(|name| entry.get(name));
    let words = members.flat_map(|value| match value {
        Value::Array(words) => words.as_slice(),
        word => std::slice::from_ref(word),
    });
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    if words.is_empty() {
        return "neither a command nor a URL".to_owned();
    }
    redact::words(&words).0.join(" ")
}

/// Where the server is.
pub(super) fn location(
    entry: &Map<String, Value>,
    expand: &Expand<'_>,
) -> Result<Location, String> {
    if let Some(url) = URLS.iter().find_map(|name| entry.get(*name)) {
        let url = url.as_str().ok_or("its URL is not a string")?;
        return Ok(Location::Url { url: expand.text(url)?, headers: headers(entry, expand)? });
    }
    let mut words = match entry.get("command") {
        Some(Value::String(word)) => vec![expand.text(word)?],
        Some(Value::Array(words)) => texts(words, "command", expand)?,
        _ => return Err("it has neither a command nor a URL".to_owned()),
    };
    match entry.get("args") {
        None | Some(Value::Null) => {}
        Some(Value::Array(args)) => words.extend(texts(args, "args", expand)?),
        Some(_) => return Err("args must be an array".to_owned()),
    }
    if words.first().is_none_or(String::is_empty) {
        return Err("its command is empty".to_owned());
    }
    let program = words.remove(0).into();
    let path = |member: &str| match entry.get(member).and_then(Value::as_str) {
        Some(path) => expand.text(path).map(|path| Some(expand.workspace().join(path))),
        None => Ok(None),
    };
    let mut env = path("envFile")?.map_or_else(|| Ok(Vec::new()), |file| env_file(&file))?;
    for member in ["env", "environment"] {
        env.extend(pairs(entry, member, expand)?);
    }
    let env = env.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let args = words.into_iter().map(OsString::from).collect();
    Ok(Location::Command { program, args, env, cwd: path("cwd")? })
}

fn headers(
    entry: &Map<String, Value>,
    expand: &Expand<'_>,
) -> Result<Vec<(String, String)>, String> {
    let mut headers = pairs(entry, "headers", expand)?;
    headers.extend(pairs(entry, "http_headers", expand)?);
    for (header, name) in pairs(entry, "env_http_headers", expand)? {
        headers.push((header, expand.environment(&name)?));
    }
    if let Some(name) = entry.get("bearer_token_env_var").and_then(Value::as_str) {
        let token = expand.environment(name)?;
        headers.push(("authorization".to_owned(), format!("Bearer {token}")));
    }
    Ok(headers)
}

fn texts(words: &[Value], member: &str, expand: &Expand<'_>) -> Result<Vec<String>, String> {
    let text = |word: &Value| match word {
        Value::String(word) => expand.text(word),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(format!("{member} must contain only strings")),
    };
    words.iter().map(text).collect()
}

/// The members of an object, as text. Those that are `null` are left out.
fn pairs(
    entry: &Map<String, Value>,
    member: &str,
    expand: &Expand<'_>,
) -> Result<Vec<(String, String)>, String> {
    let object = match entry.get(member) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(object)) => object,
        Some(_) => return Err(format!("{member} must be an object")),
    };
    let mut pairs = Vec::new();
    for (name, value) in object {
        let text = match value {
            Value::String(text) => expand.text(text)?,
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null => continue,
            _ => return Err(format!("{member}.{name} must be a string")),
        };
        pairs.push((name.clone(), text));
    }
    Ok(pairs)
}

/// The variables in a file of lines `NAME=value`.
fn env_file(file: &Path) -> Result<Vec<(String, String)>, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("envFile {}: {error}", file.display()))?;
    Ok(text.lines().filter_map(variable).collect())
}

fn variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
    let value = value.trim();
    let quoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = if let Some(inner) = quoted('"') {
        inner.replace("\\n", "\n").replace("\\\"", "\"")
    } else if let Some(inner) = quoted('\'') {
        inner.to_owned()
    } else {
        value.split(" #").next().unwrap_or_default().trim_end().to_owned()
    };
    Some((name.trim().to_owned(), value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn located(entry: &Value) -> Result<Location, String> {
        let expand = Expand::new("cursor", Path::new("/p/.cursor/mcp.json"), &[], &[]);
        location(entry.as_object().unwrap(), &expand)
    }

    #[test]
    fn entries_of_every_client_are_understood() {
        let url = |url: &str| Location::Url { url: url.to_owned(), headers: Vec::new() };
        for member in URLS {
            assert_eq!(located(&json!({ member: "https://a.b/mcp" })), Ok(url("https://a.b/mcp")));
        }
        let command = located(&json!({
            "type": "local",
            "command": ["npx", "-y"],
            "args": ["x", 7],
            "environment": { "A": "b", "N": 1, "Z": null },
        }));
        let expected = Location::Command {
            program: "npx".into(),
            args: vec!["-y".into(), "x".into(), "7".into()],
            env: vec![("A".into(), "b".into()), ("N".into(), "1".into())],
            cwd: None,
        };
        assert_eq!(command, Ok(expected));
        let keyed = located(&json!({ "url": "https://a.b", "headers": { "X-Key": "k" } }));
        let headers = vec![("X-Key".to_owned(), "k".to_owned())];
        assert_eq!(keyed, Ok(Location::Url { url: "https://a.b".to_owned(), headers }));
    }

    #[test]
    fn entries_that_make_no_sense_say_why() {
        for (entry, why) in [
            (json!({}), "neither a command nor a URL"),
            (json!({ "command": "" }), "empty"),
            (json!({ "command": "x", "args": "y" }), "args must be an array"),
            (json!({ "command": "x", "env": [] }), "env must be an object"),
            (json!({ "command": "x", "envFile": "none.env" }), "envFile /p/none.env"),
        ] {
            let told = located(&entry).unwrap_err();
            assert!(told.contains(why), "{entry}: {told}");
        }
    }

    #[test]
    fn env_files_are_read_as_usual() {
        let text = "# note\nA=1\nexport B = \"two words\" \nC='x # y'\nD=v # note\n\nbad\n";
        let found: Vec<_> = text.lines().filter_map(variable).collect();
        let expected = [("A", "1"), ("B", "two words"), ("C", "x # y"), ("D", "v")];
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_line_about_it_holds_no_secrets() {
        let entry = json!({ "url": "https://u:p@a.b/mcp?token=t" });
        assert_eq!(
            about(entry.as_object().unwrap()),
            "https://[redacted]@a.b/mcp?token=[redacted]"
        );
        let entry = json!({ "command": "npx", "args": ["s", "--api-key", "abc", "TOKEN=abc"] });
        assert_eq!(
            about(entry.as_object().unwrap()),
            "npx s --api-key [redacted] TOKEN=[redacted]"
        );
    }
}
