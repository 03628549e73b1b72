//! What a user at a terminal sees: what the server is, and how to connect a client.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// The maximum width of a line of names.
const WIDTH: usize = 90;

/// The facts about a server.
#[derive(Debug, Clone)]
pub struct Guide {
    /// The name for clients to use.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// Its tools.
    pub tools: Vec<String>,
    /// The program's own absolute path.
    pub program: String,
    /// The arguments it was started with.
    pub arguments: Vec<String>,
}

impl Guide {
    /// The text to print.
    pub fn text(&self) -> String {
        let Self { name, about, .. } = self;
        let entry = json!({ "command": self.program, "args": self.arguments });
        let words: Vec<_> =
            std::iter::once(&self.program).chain(&self.arguments).map(|it| quoted(it)).collect();
        let command = words.join(" ");
        format!(
            "{name}: {about}

{}
It is an MCP server on standard input and output, to be started by a client. Standard input is a
terminal here, so it did not start. To connect a client, add it to the client's configuration.

{}Over HTTP instead:

  {command} --http 127.0.0.1:8080

By hand:

  echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}' | {command}
",
            tool_names("Tools:", &self.tools),
            snippets(name, &entry, &entry)
        )
    }
}

/// The names of tools, wrapped and indented below `before`.
pub fn tool_names(before: &str, names: &[String]) -> String {
    let mut text = before.to_owned();
    let mut column = before.len();
    let indent = if before.trim().is_empty() { before.len() } else { before.len() + 1 };
    for name in names {
        if column + name.len() + 1 > WIDTH {
            let _ = write!(text, "\n{:indent$}{name}", "");
            column = indent + name.len();
            continue;
        }
        let gap = if text.ends_with(|last: char| !last.is_whitespace()) { " " } else { "" };
        let _ = write!(text, "{gap}{name}");
        column += gap.len() + name.len();
    }
    text.push('\n');
    text
}

/// A third-party client, and where it configures servers.
struct Snippet {
    client: &'static str,
    file: &'static str,
    /// The member that contains the servers.
    member: &'static str,
}

/// The most common clients.
const SNIPPETS: [Snippet; 3] = [
    Snippet {
        client: "Claude Desktop",
        file: "claude_desktop_config.json (Settings, Developer, Edit Config)",
        member: "mcpServers",
    },
    Snippet { client: "VS Code", file: ".vscode/mcp.json", member: "servers" },
    Snippet { client: "Cursor", file: "~/.cursor/mcp.json", member: "mcpServers" },
];

/// Configuration snippets for the most common clients. `local` is the entry for a client that
/// starts the server itself, `any` the entry for clients that can also reach it over HTTP.
pub fn snippets(name: &str, local: &Value, any: &Value) -> String {
    let mut text = String::new();
    for Snippet { client, file, member } in SNIPPETS {
        let entry = if client == "Claude Desktop" { local } else { any };
        let entry = match (client, entry.get("url")) {
            ("VS Code", Some(url)) => json!({ "type": "http", "url": url }),
            _ => entry.clone(),
        };
        let _ = writeln!(
            text,
            "{client}, in {file}:

  {{
    \"{member}\": {{
      {}: {}
    }}
  }}
",
            Value::from(name),
            on_one_line(&entry)
        );
    }
    text
}

/// JSON on one line, with spaces where people put them.
fn on_one_line(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|(name, value)| format!("\"{name}\": {}", on_one_line(value)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(on_one_line).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Quotes an argument for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-:=@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_says_what_it_is_and_how_to_connect() {
        let guide = Guide {
            name: "counter".to_owned(),
            about: "A counter.".to_owned(),
            tools: vec!["increment".to_owned(), "decrement".to_owned()],
            program: "/opt/my tools/bowline".to_owned(),
            arguments: vec!["serve".to_owned(), "counter".to_owned()],
        };
        assert_eq!(guide.text(), include_str!("../testdata/guide.txt"));
    }

    #[test]
    fn many_tools_take_many_lines() {
        let names: Vec<_> = (0..12).map(|number| format!("quite_a_long_name_{number}")).collect();
        let text = tool_names("Tools:", &names);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("       quite")), "{text}");
        assert_eq!(text.split_whitespace().count(), 13);
    }

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        assert_eq!(quoted("--http=127.0.0.1:0"), "--http=127.0.0.1:0");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
