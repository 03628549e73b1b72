//! What `bowline` alone says in a terminal: what it can do, and what to try next.

use std::path::Path;

use crate::target::{Scan, Trust};

/// What to try next, which depends on what is there.
enum Next {
    /// The current folder has the project of a server.
    Project,
    /// Clients on this machine know servers; the first one that can be used.
    Configured(String),
    Nothing,
}

/// What to print.
pub(crate) fn welcome() -> String {
    text(&next())
}

fn next() -> Next {
    let manifest = std::fs::read_to_string(Path::new("Cargo.toml")).unwrap_or_default();
    if manifest.lines().any(|line| line.starts_with("bowline = ")) {
        return Next::Project;
    }
    let scan = Scan::new(None, Trust::read(false)).ok();
    let mut servers = scan.into_iter().flat_map(|scan| scan.servers);
    match servers.find(|it| it.is_trusted && !it.is_disabled) {
        Some(server) => Next::Configured(server.name),
        None => Next::Nothing,
    }
}

fn text(next: &Next) -> String {
    let next = match next {
        Next::Project => "This folder has a server of yours. See what clients see:\n\n  \
             bowline inspect -- cargo run --quiet\n"
            .to_owned(),
        Next::Configured(name) => {
            let name = crate::text::line(name);
            let name = if name.contains(' ') { format!("'{name}'") } else { name };
            format!(
                "Clients on this machine use servers. List them, then look at one:\n\n  \
                 bowline servers\n  bowline info {name}\n"
            )
        }
        Next::Nothing => "Try it with a server that comes with it:\n\n  \
             bowline call increment -- bowline serve counter\n"
            .to_owned(),
    };
    format!(
        "Bowline ties any MCP client to any MCP server.

  bowline info SERVER           what a server is and offers
  bowline call SERVER TOOL …    call a tool
  bowline inspect SERVER        explore it in a browser; `debug` does so at a prompt
  bowline check SERVER          test it against the specification
  bowline doctor SERVER         why it cannot be reached
  bowline tap -- COMMAND        watch what a client and its server say
  bowline gateway FILE          many servers at one address
  bowline serve                 ready-made servers
  bowline new NAME              a server of your own

SERVER is a URL, a name from `bowline servers`, or a command after `--`. All commands: bowline help.

{next}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_in_it_exists() {
        use clap::CommandFactory;
        let program = crate::Arguments::command();
        for next in [Next::Project, Next::Configured("my notes".to_owned()), Next::Nothing] {
            let text = text(&next);
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
            let named: Vec<_> = text.split("bowline ").skip(1).collect();
            assert!(named.len() > 10, "{text}");
            for rest in named {
                let word: String = rest.chars().take_while(char::is_ascii_lowercase).collect();
                let is_known = program.find_subcommand(&word).is_some() || word == "help";
                assert!(is_known, "{rest}");
            }
        }
    }
}
