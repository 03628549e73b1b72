//! What a newcomer sees first: where the servers are, what they have, and what to do next.

use bowline_serve::{snippets, tool_names};
use serde_json::json;

/// One of several servers at one address.
pub(super) struct Guest {
    pub(super) name: &'static str,
    pub(super) about: String,
    /// Its tools, as clients see them.
    pub(super) tools: Vec<String>,
}

/// What there is to tell.
pub(super) struct Welcome {
    pub(super) url: String,
    pub(super) guests: Vec<Guest>,
    /// The program's own absolute path.
    pub(super) program: String,
}

impl Welcome {
    pub(super) fn text(&self) -> String {
        let Self { url, guests, program } = self;
        let mut text = format!("Bowline serves MCP at\n\n  {url}\n\n");
        for Guest { name, about, tools } in guests {
            text += &format!("{name}: {about}\n{}\n", tool_names("  ", tools));
        }
        text += "Next, let a client connect.\n\n";
        let local = json!({ "command": program, "args": ["serve", "--stdio"] });
        text += &snippets("bowline", &local, &json!({ "url": url }));
        text += &format!("Claude Code:\n\n  claude mcp add --transport http bowline {url}\n\n");
        text +=
            "One server alone: bowline serve NAME. Help: bowline serve --help. Ctrl-C ends this.\n";
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newcomer_is_told_what_to_do() {
        let guest = |name, tools: &[&str]| Guest {
            name,
            about: format!("A {name}"),
            tools: tools.iter().map(|tool| format!("{name}_{tool}")).collect(),
        };
        let welcome = Welcome {
            url: "http://127.0.0.1:8765/mcp".to_owned(),
            guests: vec![guest("counter", &["increment", "decrement"]), guest("clock", &["now"])],
            program: "/usr/bin/bowline".to_owned(),
        };
        assert_eq!(welcome.text(), include_str!("../../testdata/welcome.txt"));
    }
}
