//! `bowline serve`: a ready-made server on standard input and output.

use std::io::IsTerminal;
use std::process::ExitCode;

use bowline::{ServeError, Server};

use super::{USAGE, complain, tell};

/// Serves a server by name, or tells a person at a terminal how to connect to it.
pub(super) async fn serve(name: &str) -> ExitCode {
    let Some(server) = find(name) else {
        complain(&format!("there is no server called {name:?}; there is: counter"));
        return ExitCode::from(USAGE);
    };
    if std::io::stdin().is_terminal() {
        return tell(&guide(name, &server));
    }
    match server.serve_stdio().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&describe(&error));
            ExitCode::FAILURE
        }
    }
}

fn find(name: &str) -> Option<Server> {
    match name {
        "counter" => Some(counter::server()),
        _ => None,
    }
}

fn describe(error: &ServeError) -> String {
    use std::error::Error;
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// What a person at a terminal sees: a client has to start the server, and this is how.
fn guide(name: &str, server: &Server) -> String {
    let program = std::env::current_exe()
        .map_or_else(|_| "bowline".into(), |path| path.display().to_string());
    let tools = server.registry().tool_names().join(", ");
    let command = program.replace('\\', "\\\\").replace('"', "\\\"");
    format!(
        "{name} is an MCP server on standard input and output; a client starts it.

Tools: {tools}

In the settings of Claude Desktop, Cursor and most other clients:

  {{
    \"mcpServers\": {{
      \"{name}\": {{ \"command\": \"{command}\", \"args\": [\"serve\", \"{name}\"] }}
    }}
  }}

In .vscode/mcp.json of VS Code, write \"servers\" instead of \"mcpServers\".

To try it by hand, pipe a message in:

  echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}' | {program} serve {name}
"
    )
}
