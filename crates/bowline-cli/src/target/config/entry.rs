//! One server in a config file, in any client's words.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Map, Value};

use super::expand::Fill;
use crate::redact;
use crate::target::Place;

/// Members that hold a URL, by client: most, Windsurf, Gemini.
const URLS: [&str; 3] = ["url", "serverUrl", "httpUrl"];

/// What it is in a line.
pub(super) fn about(entry: &Map<String, Value>) -> String {
    if let Some(url) = URLS.iter().find_map(|name| entry.get(*name)?.as_str()) {
        return redact::url(url);
    }
    let words = |name: &str| match entry.get(name) {
        Some(Value::Array(words)) => {
            words.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(Value::String(word)) => vec![word.clone()],
        _ => Vec::new(),
    };
    let all: Vec<String> = words("command").into_iter().chain(words("args")).collect();
    if all.is_empty() { "neither a command nor a URL".to_owned() } else { all.join(" ") }
}

/// Where the server is.
///
/// # Errors
/// When the entry makes no sense, or a variable stands for nothing.
pub(super) fn place(entry: &Map<String, Value>, fill: &Fill<'_>) -> Result<Place, String> {
    if let Some(url) = URLS.iter().find_map(|name| entry.get(*name)) {
        let url = url.as_str().ok_or("its URL is no text")?;
        return Ok(Place::Url { url: fill.text(url)?, headers: headers(entry, fill)? });
    }
    let mut words = match entry.get("command") {
        Some(Value::String(word)) => vec![fill.text(word)?],
        Some(Value::Array(words)) => texts(words, "command", fill)?,
        _ => return Err("it has neither a command nor a URL".to_owned()),
    };
    match entry.get("args") {
        None | Some(Value::Null) => {}
        Some(Value::Array(args)) => words.extend(texts(args, "args", fill)?),
        Some(_) => return Err("args is no list".to_owned()),
    }
    if words.first().is_none_or(String::is_empty) {
        return Err("its command is empty".to_owned());
    }
    let program = words.remove(0);
    let cwd = match entry.get("cwd").and_then(Value::as_str) {
        Some(dir) => Some(fill.workspace().join(fill.text(dir)?)),
        None => None,
    };
    let mut env = Vec::new();
    if let Some(file) = entry.get("envFile").and_then(Value::as_str) {
        env.extend(env_file(&fill.workspace().join(fill.text(file)?))?);
    }
    for member in ["env", "environment"] {
        for (name, value) in pairs(entry, member, fill)? {
            env.push((OsString::from(name), OsString::from(value)));
        }
    }
    let args = words.into_iter().map(OsString::from).collect();
    Ok(Place::Command { program: program.into(), args, env, cwd })
}

fn headers(entry: &Map<String, Value>, fill: &Fill<'_>) -> Result<Vec<(String, String)>, String> {
    let mut headers = pairs(entry, "headers", fill)?;
    headers.extend(pairs(entry, "http_headers", fill)?);
    let variable = |name: &str| {
        std::env::var(name).map_err(|_| format!("there is no {name} in the environment"))
    };
    for (header, name) in pairs(entry, "env_http_headers", fill)? {
        headers.push((header, variable(&name)?));
    }
    if let Some(name) = entry.get("bearer_token_env_var").and_then(Value::as_str) {
        headers.push(("authorization".to_owned(), format!("Bearer {}", variable(name)?)));
    }
    Ok(headers)
}

fn texts(words: &[Value], member: &str, fill: &Fill<'_>) -> Result<Vec<String>, String> {
    let text = |word: &Value| match word {
        Value::String(word) => fill.text(word),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(format!("{member} holds what is no text")),
    };
    words.iter().map(text).collect()
}

/// The members of an object, as text. What is `null` is left out.
fn pairs(
    entry: &Map<String, Value>,
    member: &str,
    fill: &Fill<'_>,
) -> Result<Vec<(String, String)>, String> {
    let object = match entry.get(member) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(object)) => object,
        Some(_) => return Err(format!("{member} is no object")),
    };
    let mut pairs = Vec::new();
    for (name, value) in object {
        let text = match value {
            Value::String(text) => fill.text(text)?,
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null => continue,
            _ => return Err(format!("{member}.{name} is no text")),
        };
        pairs.push((name.clone(), text));
    }
    Ok(pairs)
}

/// The variables in a file of lines `NAME=value`.
fn env_file(file: &Path) -> Result<Vec<(OsString, OsString)>, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("envFile {}: {error}", file.display()))?;
    Ok(variables(&text).map(|(name, value)| (name.into(), value.into())).collect())
}

fn variables(text: &str) -> impl Iterator<Item = (String, String)> {
    text.lines().filter_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
        let value = value.trim();
        let quoted = ['"', '\''].iter().find_map(|quote| {
            let inner = value.strip_prefix(*quote)?.strip_suffix(*quote)?;
            Some((*quote, inner))
        });
        let value = match quoted {
            Some(('"', inner)) => inner.replace("\\n", "\n").replace("\\\"", "\""),
            Some((_, inner)) => inner.to_owned(),
            None => value.split(" #").next().unwrap_or_default().trim_end().to_owned(),
        };
        Some((name.trim().to_owned(), value))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn placed(entry: &Value) -> Result<Place, String> {
        let fill = Fill::new("cursor", Path::new("/p/.cursor/mcp.json"), &[], &[]);
        place(entry.as_object().unwrap(), &fill)
    }

    #[test]
    fn entries_of_every_client_are_places() {
        let url = |url: &str| Place::Url { url: url.to_owned(), headers: Vec::new() };
        for member in URLS {
            assert_eq!(placed(&json!({ member: "https://a.b/mcp" })), Ok(url("https://a.b/mcp")));
        }
        let command = placed(&json!({
            "type": "local",
            "command": ["npx", "-y"],
            "args": ["x", 7],
            "environment": { "A": "b", "N": 1, "Z": null },
        }));
        let expected = Place::Command {
            program: "npx".into(),
            args: vec!["-y".into(), "x".into(), "7".into()],
            env: vec![("A".into(), "b".into()), ("N".into(), "1".into())],
            cwd: None,
        };
        assert_eq!(command, Ok(expected));
        let keyed = placed(&json!({ "url": "https://a.b", "headers": { "X-Key": "k" } }));
        let headers = vec![("X-Key".to_owned(), "k".to_owned())];
        assert_eq!(keyed, Ok(Place::Url { url: "https://a.b".to_owned(), headers }));
    }

    #[test]
    fn entries_that_make_no_sense_say_why() {
        for (entry, why) in [
            (json!({}), "neither a command nor a URL"),
            (json!({ "command": "" }), "empty"),
            (json!({ "command": "x", "args": "y" }), "args is no list"),
            (json!({ "command": "x", "env": [] }), "env is no object"),
            (json!({ "command": "x", "envFile": "none.env" }), "envFile /p/none.env"),
        ] {
            let told = placed(&entry).unwrap_err();
            assert!(told.contains(why), "{entry}: {told}");
        }
    }

    #[test]
    fn env_files_are_read_as_usual() {
        let text = "# note\nA=1\nexport B = \"two words\" \nC='x # y'\nD=v # note\n\nbad\n";
        let found: Vec<_> = variables(text).collect();
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
    }
}
