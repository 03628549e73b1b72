//! `bowline servers`: lists the servers in the config files on this machine.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::render::table;
use crate::screen::{OutputArgs, Screen};
use crate::target::{Scan, Trust};
use crate::text::line;

/// List the servers in config files, and where they were found
///
/// The files of Claude Desktop and Claude Code, VS Code, Cursor, Windsurf, Cline, Gemini CLI, LM
/// Studio, Codex, `OpenCode`, Copilot and Bowline itself are read: first those of the project, from
/// the current folder to the root of its repository, then the user's. A project's file is used only
/// once you trust it: you are asked when it is new or has changed.
#[derive(Args)]
pub(crate) struct Servers {
    /// Read only this file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,
}

impl Servers {
    pub(crate) fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let screen = Screen::new(&self.output.or(root));
        let scan = Scan::new(self.config.as_deref(), Trust::read(false))?;
        for problem in &scan.problems {
            screen.warn(&format!("not read: {problem}"));
        }
        screen.show(&for_programs(&scan), || Ok(for_people(&scan, &screen)))?;
        screen.finish()
    }
}

fn for_programs(scan: &Scan) -> bowline::Json {
    let servers = scan.servers.iter().map(|it| {
        json!({
            "name": it.name,
            "client": it.client,
            "file": it.file.to_string_lossy(),
            "target": it.about(),
            "disabled": it.is_disabled,
            "project": it.is_project,
            "trusted": it.is_trusted,
            "tapped": it.is_tapped(),
        })
    });
    json!({ "servers": servers.collect::<Vec<Value>>() }).into()
}

fn for_people(scan: &Scan, screen: &Screen) -> String {
    let rows = scan.servers.iter().map(|it| {
        let mark = match (it.is_disabled, it.is_trusted) {
            (true, _) => " (disabled)",
            (false, false) => " (not trusted)",
            (false, true) if it.is_tapped() => " (tapped)",
            (false, true) => "",
        };
        vec![
            line(&format!("{}{mark}", it.name)),
            it.client.to_owned(),
            line(&it.about()),
            line(&short(&it.file)),
        ]
    });
    if rows.len() == 0 {
        return "no servers in any config file; --config FILE reads another one\n".to_owned();
    }
    table::render(&["NAME", "CLIENT", "SERVER", "FILE"], rows.collect(), screen)
}

/// A path relative to the current folder or to home, where it is below one of them.
pub(crate) fn short(file: &Path) -> String {
    let from = |base: Option<PathBuf>, mark: &str| {
        let rest = file.strip_prefix(base?).ok()?;
        Some(format!("{mark}{}", rest.display()))
    };
    let here = from(std::env::current_dir().ok(), "");
    let short = here.or_else(|| from(std::env::home_dir(), "~/"));
    short.unwrap_or_else(|| file.display().to_string())
}
