//! Variables in config files, in each client's syntax: `${VAR}`, `${VAR:-default}`, `${env:VAR}`,
//! `${input:id}`, `${workspaceFolder}`, `{env:VAR}`, `$VAR`.

use std::collections::BTreeMap;
use std::path::{MAIN_SEPARATOR_STR, Path, PathBuf};

use serde_json::Value;

/// Expands variables.
pub(super) struct Expand<'a> {
    client: &'a str,
    /// The folder that the file configures.
    workspace: PathBuf,
    /// The file's own description of its inputs.
    described: &'a [Value],
    /// The user's values for them.
    inputs: &'a [(String, String)],
    environment: fn(&str) -> Option<String>,
    /// Values that come before those of the environment.
    values: Option<&'a BTreeMap<String, String>>,
}

impl<'a> Expand<'a> {
    pub(super) fn new(
        client: &'a str,
        file: &Path,
        described: &'a [Value],
        inputs: &'a [(String, String)],
    ) -> Self {
        let folder = file.parent().unwrap_or_else(|| Path::new("."));
        let is_hidden = folder.file_name().is_some_and(|name| {
            name.to_str().is_some_and(|name| name.starts_with('.') && name.len() > 1)
        });
        let workspace = if is_hidden { folder.parent().unwrap_or(folder) } else { folder };
        let workspace = std::path::absolute(workspace).unwrap_or_else(|_| workspace.to_owned());
        let environment = |name: &str| std::env::var(name).ok();
        Self { client, workspace, described, inputs, environment, values: None }
    }

    pub(super) fn with_values(mut self, values: &'a BTreeMap<String, String>) -> Self {
        self.values = Some(values);
        self
    }

    fn value(&self, name: &str) -> Option<String> {
        self.values?.get(name).cloned()
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// A variable of the environment.
    pub(super) fn environment(&self, name: &str) -> Result<String, String> {
        (self.environment)(name).ok_or_else(|| format!("{name} is not set in the environment"))
    }

    /// Text with its variables expanded.
    pub(super) fn text(&self, text: &str) -> Result<String, String> {
        // Claude Desktop has no variables: a `$` is a `$`, unless the value is given.
        let has_variables = self.client != "claude-desktop";
        let mut expanded = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '{']) {
            expanded.push_str(&rest[..at]);
            rest = &rest[at..];
            let inside = |open: &str| rest.strip_prefix(open)?.split_once('}');
            let optional = |name| (self.environment)(name).unwrap_or_default();
            let named =
                inside("${").filter(|(name, _)| has_variables || self.value(name).is_some());
            let (value, after) = if let Some((name, after)) = named {
                (self.variable(name)?, after)
            } else {
                let variable = match self.client {
                    "opencode" => inside("{env:"),
                    "gemini" => dollar(rest),
                    _ => None,
                };
                let literal = || (rest[..1].to_owned(), &rest[1..]);
                variable.map_or_else(literal, |(name, after)| (optional(name), after))
            };
            expanded += &value;
            rest = after;
        }
        Ok(expanded + rest)
    }

    fn variable(&self, name: &str) -> Result<String, String> {
        if let Some(value) = self.value(name) {
            return Ok(value);
        }
        if let Some(id) = name.strip_prefix("input:") {
            return self.input(id);
        }
        let home = || std::env::home_dir().unwrap_or_default();
        let known = match name {
            "workspaceFolder" | "workspaceRoot" | "cwd" => self.workspace.clone().into_os_string(),
            "workspaceFolderBasename" => self.workspace.file_name().unwrap_or_default().to_owned(),
            "userHome" => home().into_os_string(),
            "pathSeparator" | "/" => MAIN_SEPARATOR_STR.into(),
            _ => {
                let name = name.strip_prefix("env:").unwrap_or(name);
                return match name.split_once(":-") {
                    None => self.environment(name),
                    // An empty variable takes the default, as in a shell.
                    Some((name, default)) => Ok((self.environment)(name)
                        .filter(|value| !value.is_empty())
                        .unwrap_or_else(|| default.to_owned())),
                };
            }
        };
        Ok(known.to_string_lossy().into_owned())
    }

    fn input(&self, id: &str) -> Result<String, String> {
        if let Some((_, value)) = self.inputs.iter().find(|(name, _)| name == id) {
            return Ok(value.clone());
        }
        let described =
            self.described.iter().find(|input| input.get("id").and_then(Value::as_str) == Some(id));
        let told = |member: &str| described?.get(member)?.as_str();
        if let Some(default) = told("default") {
            return Ok(default.to_owned());
        }
        let about = told("description").map(|it| format!(" ({it})")).unwrap_or_default();
        Err(format!("it asks for {id}{about}: give --input {id}=VALUE"))
    }
}

/// `$NAME` at the beginning of text, and what follows it.
fn dollar(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('$')?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let end = text.find(|letter| !is_name(letter)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expand<'a>(
        client: &'a str,
        described: &'a [Value],
        inputs: &'a [(String, String)],
    ) -> Expand<'a> {
        let file = Path::new("/work space/.vscode/mcp.json");
        let mut expand = Expand::new(client, file, described, inputs);
        expand.environment = |name| match name {
            "KEY" => Some("k3y".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        expand
    }

    #[test]
    #[cfg(unix)]
    fn each_client_has_its_own_variables() {
        for (client, text, expected) in [
            ("claude-code", "a ${KEY}!", Ok("a k3y!")),
            ("claude-code", "${NONE:-x}${EMPTY:-y}${EMPTY}", Ok("xy")),
            ("claude-code", "${NONE}", Err("NONE is not set in the environment")),
            ("claude-desktop", "${KEY}", Ok("${KEY}")),
            ("cursor", "${env:KEY} $KEY {env:KEY}", Ok("k3y $KEY {env:KEY}")),
            ("vscode", "${workspaceFolder}/x", Ok("/work space/x")),
            ("vscode", "${workspaceFolderBasename}", Ok("work space")),
            ("gemini", "$KEY $1 $", Ok("k3y  $")),
            ("opencode", "{env:KEY}{x}", Ok("k3y{x}")),
            ("x", "${", Ok("${")),
            ("x", "costs 5$", Ok("costs 5$")),
        ] {
            let found = expand(client, &[], &[]).text(text);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{client}: {text}");
        }
    }

    #[test]
    fn given_values_are_not_expanded_again() {
        let values = BTreeMap::from([("A".to_owned(), "${KEY}$B{".to_owned())]);
        for client in ["claude-desktop", "config", "gemini"] {
            let expand = expand(client, &[], &[]).with_values(&values);
            assert_eq!(expand.text("<${A}>").unwrap(), "<${KEY}$B{>", "{client}");
        }
    }

    #[test]
    fn inputs_come_from_the_user_or_have_a_default() {
        let described =
            [json!({ "id": "a", "description": "A key" }), json!({ "id": "b", "default": "bee" })];
        let inputs = [("c".to_owned(), "sea".to_owned())];
        let expand = expand("vscode", &described, &inputs);
        assert_eq!(expand.text("${input:b} ${input:c}").unwrap(), "bee sea");
        let told = expand.text("${input:a}").unwrap_err();
        assert_eq!(told, "it asks for a (A key): give --input a=VALUE");
    }
}
