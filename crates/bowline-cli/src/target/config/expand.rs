//! Variables in config files, as each client writes them: `${VAR}`, `${VAR:-default}`,
//! `${env:VAR}`, `${input:id}`, `${workspaceFolder}`, `{env:VAR}`, `$VAR`.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// What variables stand for.
pub(super) struct Fill<'a> {
    client: &'a str,
    /// The folder that the file configures.
    workspace: PathBuf,
    /// What the file says of its inputs.
    asked: &'a [Value],
    /// What the user said of them.
    inputs: &'a [(String, String)],
    environment: fn(&str) -> Option<String>,
}

impl<'a> Fill<'a> {
    pub(super) fn new(
        client: &'a str,
        file: &Path,
        asked: &'a [Value],
        inputs: &'a [(String, String)],
    ) -> Self {
        let folder = file.parent().unwrap_or_else(|| Path::new("."));
        let is_hidden = folder.file_name().is_some_and(|name| {
            name.to_str().is_some_and(|name| name.starts_with('.') && name.len() > 1)
        });
        let workspace = if is_hidden { folder.parent().unwrap_or(folder) } else { folder };
        let workspace = std::path::absolute(workspace).unwrap_or_else(|_| workspace.to_owned());
        Self { client, workspace, asked, inputs, environment: |name| std::env::var(name).ok() }
    }

    /// The folder that the file configures.
    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Text with its variables filled in.
    ///
    /// # Errors
    /// When a variable stands for nothing; says which.
    pub(super) fn text(&self, text: &str) -> Result<String, String> {
        // It has no variables; a `$` is a `$`.
        if self.client == "claude-desktop" {
            return Ok(text.to_owned());
        }
        let mut filled = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '{']) {
            filled.push_str(&rest[..at]);
            rest = &rest[at..];
            let inside = |open: &str| {
                let inner = rest.strip_prefix(open)?;
                inner.split_once('}')
            };
            if let Some((name, after)) = inside("${") {
                filled += &self.variable(name)?;
                rest = after;
            } else if let Some((name, after)) =
                inside("{env:").filter(|_| self.client == "opencode")
            {
                filled += &(self.environment)(name).unwrap_or_default();
                rest = after;
            } else if let Some((name, after)) = plain(rest).filter(|_| self.client == "gemini") {
                filled += &(self.environment)(name).unwrap_or_default();
                rest = after;
            } else {
                let (first, after) = rest.split_at(1);
                filled.push_str(first);
                rest = after;
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn variable(&self, name: &str) -> Result<String, String> {
        let folder = || self.workspace.to_string_lossy().into_owned();
        if let Some(id) = name.strip_prefix("input:") {
            return self.input(id);
        }
        match name {
            "workspaceFolder" | "workspaceRoot" | "cwd" => return Ok(folder()),
            "workspaceFolderBasename" => {
                let name = self.workspace.file_name().unwrap_or_default();
                return Ok(name.to_string_lossy().into_owned());
            }
            "userHome" => {
                let home = std::env::home_dir().unwrap_or_default();
                return Ok(home.to_string_lossy().into_owned());
            }
            "pathSeparator" | "/" => return Ok(std::path::MAIN_SEPARATOR.to_string()),
            _ => {}
        }
        let name = name.strip_prefix("env:").unwrap_or(name);
        let (name, default) = match name.split_once(":-") {
            Some((name, default)) => (name, Some(default.to_owned())),
            None => (name, None),
        };
        let found = (self.environment)(name);
        // An empty variable takes the default, as in a shell.
        let found = found.filter(|value| default.is_none() || !value.is_empty());
        found.or(default).ok_or_else(|| format!("there is no {name} in the environment"))
    }

    fn input(&self, id: &str) -> Result<String, String> {
        if let Some((_, value)) = self.inputs.iter().find(|(name, _)| name == id) {
            return Ok(value.clone());
        }
        let asked =
            self.asked.iter().find(|input| input.get("id").and_then(Value::as_str) == Some(id));
        let told = |member: &str| asked.and_then(|input| input.get(member)).and_then(Value::as_str);
        if let Some(default) = told("default") {
            return Ok(default.to_owned());
        }
        let about = told("description").map(|it| format!(" ({it})")).unwrap_or_default();
        Err(format!("it asks for {id}{about}: give --input {id}=VALUE"))
    }
}

/// `$NAME` at the beginning of text, and what follows it.
fn plain(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('$')?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let end = text.find(|letter| !is_name(letter)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill<'a>(client: &'a str, asked: &'a [Value], inputs: &'a [(String, String)]) -> Fill<'a> {
        let mut fill = Fill::new(client, Path::new("/work space/.vscode/mcp.json"), asked, inputs);
        fill.environment = |name| match name {
            "KEY" => Some("k3y".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        fill
    }

    #[test]
    #[cfg(unix)]
    fn each_client_has_its_own_variables() {
        for (client, text, expected) in [
            ("claude-code", "a ${KEY}!", Ok("a k3y!")),
            ("claude-code", "${NONE:-x}${EMPTY:-y}${EMPTY}", Ok("xy")),
            ("claude-code", "${NONE}", Err("there is no NONE in the environment")),
            ("claude-desktop", "${KEY}", Ok("${KEY}")),
            ("cursor", "${env:KEY} $KEY {env:KEY}", Ok("k3y $KEY {env:KEY}")),
            ("vscode", "${workspaceFolder}/x", Ok("/work space/x")),
            ("vscode", "${workspaceFolderBasename}", Ok("work space")),
            ("gemini", "$KEY $1 $", Ok("k3y  $")),
            ("opencode", "{env:KEY}{x}", Ok("k3y{x}")),
            ("x", "${", Ok("${")),
            ("x", "costs 5$", Ok("costs 5$")),
        ] {
            let found = fill(client, &[], &[]).text(text);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{client}: {text}");
        }
    }

    #[test]
    fn inputs_come_from_the_user_or_have_a_default() {
        let asked =
            [json!({ "id": "a", "description": "A key" }), json!({ "id": "b", "default": "bee" })];
        let inputs = [("c".to_owned(), "sea".to_owned())];
        let fill = fill("vscode", &asked, &inputs);
        assert_eq!(fill.text("${input:b} ${input:c}").unwrap(), "bee sea");
        let told = fill.text("${input:a}").unwrap_err();
        assert_eq!(told, "it asks for a (A key): give --input a=VALUE");
    }
}
