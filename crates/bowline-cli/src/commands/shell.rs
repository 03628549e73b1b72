//! `bowline completions` and `bowline man`: completions for shells, and manual pages.

use std::path::PathBuf;

use bowline_serve::tell;
use clap::Args;
use clap_complete::Shell;

use crate::failure::Failure;

/// Print completions for a shell
///
/// For instance: bowline completions bash > ~/.local/share/bash-completion/completions/bowline
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, mut program: clap::Command) {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, "bowline", &mut script);
        tell(&String::from_utf8_lossy(&script));
    }
}

/// Print the manual page, or write one for each command
#[derive(Args)]
pub(crate) struct Man {
    /// Write a page for each command to this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self, program: clap::Command) -> Result<(), Failure> {
        let Some(dir) = self.dir else {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(program).render(&mut page);
            rendered.map_err(|error| Failure::usage(format!("the manual page: {error}")))?;
            tell(&String::from_utf8_lossy(&page));
            return Ok(());
        };
        std::fs::create_dir_all(&dir)
            .and_then(|()| clap_mangen::generate_to(program, &dir))
            .map_err(|error| Failure::file("--dir", &dir, error))
    }
}
