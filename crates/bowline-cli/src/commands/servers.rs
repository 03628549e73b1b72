//! `bowline servers`: which servers the config files of this machine name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::render::table::Table;
use crate::screen::{OutputArgs, Screen};
use crate::target::Scan;
use crate::text::line;

/// List the servers that config files name, and where they were found
///
/// Looked at are the files of Claude Desktop and Claude Code, VS Code, Cursor, Windsurf, Cline,
/// Gemini CLI, LM Studio, Codex, `OpenCode`, Copilot and Bowline itself: those of the current
/// folder and the ones above it, then the user's.
#[derive(Args)]
pub(crate) struct Servers {
    /// Look into this file only
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,
}

/// A path for people: from here, or from home.
fn short(file: &Path) -> String {
    let from = |base: Option<PathBuf>, mark: &str| {
        let rest = file.strip_prefix(base?).ok()?;
        Some(format!("{mark}{}", rest.display()))
    };
    let here = from(std::env::current_dir().ok(), "");
    let short = here.or_else(|| from(std::env::home_dir(), "~/"));
    short.unwrap_or_else(|| file.display().to_string())
}

impl Servers {
    pub(crate) fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let screen = Arc::new(Screen::new(&self.output.clone().or(root)));
        let scan = Scan::new(self.config.as_deref())?;
        for problem in &scan.problems {
            screen.warn(&format!("not read: {problem}"));
        }
        if screen.is_json() {
            let servers: Vec<Value> = scan
                .servers
                .iter()
                .map(|it| {
                    json!({
                        "name": it.name,
                        "client": it.client,
                        "file": it.file.to_string_lossy(),
                        "target": it.about(),
                        "disabled": it.is_disabled,
                    })
                })
                .collect();
            screen.print_json(&json!({ "servers": servers }).into());
            return screen.finish();
        }
        if scan.servers.is_empty() {
            screen.print("no config file names a server; --config FILE looks elsewhere\n");
            return screen.finish();
        }
        let mut table = Table::new(&["NAME", "CLIENT", "SERVER", "FILE"]);
        for it in &scan.servers {
            let mark = if it.is_disabled { " (disabled)" } else { "" };
            table.row([
                line(&format!("{}{mark}", it.name)),
                it.client.to_owned(),
                line(&it.about()),
                line(&short(&it.file)),
            ]);
        }
        screen.print(&table.render(&screen));
        screen.finish()
    }
}
