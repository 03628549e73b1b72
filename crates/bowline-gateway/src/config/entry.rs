//! How clients write a server: which member, which names.

use serde_json::{Map, Value, json};

use super::Syntax;

/// How one client writes its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How the file is written.
    pub syntax: Syntax,
    /// The member that holds all servers.
    pub member: &'static str,
    /// Whether the client connects to URLs by itself. Others need a command: `bowline bridge URL`.
    pub takes_urls: bool,
    style: Style,
}

/// What an entry looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `command`, `args`, `env`; `url`.
    Plain,
    /// The same, with `type`.
    Typed,
    /// `type: streamableHttp` for URLs only: Cline.
    Streamable,
    /// The same with `http_headers`: Codex.
    HttpHeaders,
    /// `serverUrl`: Windsurf, Antigravity.
    ServerUrl,
    /// `httpUrl`: Gemini CLI.
    HttpUrl,
    /// `type: local`, one list for the command, `environment`: `OpenCode`.
    Local,
}

impl Shape {
    /// The shape that a client reads, by its name in `bowline servers`.
    #[must_use]
    pub fn of(client: &str) -> Self {
        let (member, style) = match client {
            "vscode" | "vscode-insiders" | "vscodium" => ("servers", Style::Typed),
            "claude-code" | "copilot" => ("mcpServers", Style::Typed),
            "windsurf" | "antigravity" => ("mcpServers", Style::ServerUrl),
            "gemini" => ("mcpServers", Style::HttpUrl),
            "opencode" => ("mcp", Style::Local),
            "codex" => ("mcp_servers", Style::HttpHeaders),
            "cline" => ("mcpServers", Style::Streamable),
            _ => ("mcpServers", Style::Plain),
        };
        let syntax = if client == "codex" { Syntax::Toml } else { Syntax::Json };
        Self { syntax, member, takes_urls: client != "claude-desktop", style }
    }

    /// The entry of a server that a command starts.
    #[must_use]
    pub fn command(self, command: &[String], env: &[(String, String)]) -> Value {
        let env: Map<String, Value> =
            env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let (program, args) =
            command.split_first().map_or((None, &[][..]), |(it, rest)| (Some(it), rest));
        let mut entry = match self.style {
            Style::Local => json!({ "type": "local", "command": command }),
            Style::Typed => json!({ "type": "stdio", "command": program, "args": args }),
            _ => json!({ "command": program, "args": args }),
        };
        if !env.is_empty() {
            let member = if self.style == Style::Local { "environment" } else { "env" };
            entry[member] = Value::Object(env);
        }
        entry
    }

    /// The entry of a server at a URL, with headers to send to it.
    #[must_use]
    pub fn url(self, url: &str, headers: &[(String, String)]) -> Value {
        let mut entry = match self.style {
            Style::Plain | Style::HttpHeaders => json!({ "url": url }),
            Style::Typed => json!({ "type": "http", "url": url }),
            Style::Streamable => json!({ "type": "streamableHttp", "url": url }),
            Style::ServerUrl => json!({ "serverUrl": url }),
            Style::HttpUrl => json!({ "httpUrl": url }),
            Style::Local => json!({ "type": "remote", "url": url }),
        };
        if !headers.is_empty() {
            let member = if self.style == Style::HttpHeaders { "http_headers" } else { "headers" };
            let headers = headers.iter().map(|(name, value)| (name.clone(), json!(value)));
            entry[member] = Value::Object(headers.collect());
        }
        entry
    }
}

/// Whether a command line is that of a tap.
pub(super) fn is_tap(words: &[String]) -> bool {
    let program = words.first().map(|word| word.rsplit(['/', '\\']).next().unwrap_or_default());
    let is_ours = program.is_some_and(|program| program.trim_end_matches(".exe") == "bowline");
    is_ours && words.get(1).is_some_and(|word| word == "tap")
}

/// Whether there is a tap in front of a server.
#[must_use]
pub fn is_wrapped(entry: &Map<String, Value>) -> bool {
    let words = ["command", "args"].into_iter().filter_map(|member| entry.get(member));
    let words = words.flat_map(|value| match value {
        Value::Array(words) => words.as_slice(),
        word => std::slice::from_ref(word),
    });
    let words: Vec<String> = words.filter_map(Value::as_str).map(str::to_owned).collect();
    is_tap(&words)
}
