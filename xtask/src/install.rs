//! Installs packages of other languages, and decides when to install them again.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Ran, command, run};

/// A set of packages of another language, by name and version.
pub(crate) struct Environment {
    /// Where its inputs are.
    pub(crate) source: &'static str,
    /// Where copies of them are.
    pub(crate) place: &'static str,
    /// Its folder below `place`.
    pub(crate) folder: &'static str,
    /// The files below `source` that pin the packages.
    pub(crate) inputs: &'static [&'static str],
    pub(crate) language: Language,
}

#[derive(Clone, Copy)]
pub(crate) enum Language {
    /// The oldest Node that works.
    Node(u32),
    Python,
}

impl Environment {
    /// Copies files from `source` to where the packages are or will be.
    pub(crate) fn copy(&self, files: &[&str]) -> Result<(), String> {
        let folder = Path::new(self.place).join(self.folder);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for file in files {
            fs::copy(Path::new(self.source).join(file), folder.join(file))
                .map_err(|error| format!("{}/{file}: {error}", self.source))?;
        }
        Ok(())
    }

    /// Installs the packages unless they are there. Returns the program that runs scripts with
    /// them.
    pub(crate) fn install(&self) -> Result<PathBuf, String> {
        let folder = Path::new(self.place).join(self.folder);
        let Ran { output: release, .. } = run(command(self.language.release()));
        let stamp = folder.join(".installed");
        let wanted = self.wanted(&release)?;
        let (lines, program) = match self.language {
            Language::Node(oldest) => node(&folder, &release, oldest),
            Language::Python => venv(&folder, &Path::new(self.place).join(self.inputs[0])),
        };
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(program);
        }
        // A partial installation must not pass for a complete one.
        let _ = fs::remove_file(&stamp);
        for line in lines {
            let Ran { ok, output } = run(command(&line));
            if !ok {
                let source = self.source;
                let inputs: Vec<_> =
                    self.inputs.iter().map(|input| format!("{source}/{input}")).collect();
                let inputs = inputs.join(", ");
                return Err(format!(
                    "cannot install the packages of {inputs}\n\
                     help: without a network, only what an earlier run installed is available\n\n{output}"
                ));
            }
        }
        fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
        Ok(program)
    }

    /// The inputs themselves, which are small and need no digest.
    fn wanted(&self, release: &str) -> Result<String, String> {
        let mut text = release.to_owned();
        for input in self.inputs {
            let path = Path::new(self.source).join(input);
            text += &fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(text)
    }
}

impl Language {
    /// The command that prints the installed release of the language.
    fn release(self) -> &'static str {
        match self {
            Self::Node(_) => "node --version",
            Self::Python => "python3 --version",
        }
    }
}

/// The installed Node if it is recent enough, otherwise one from a package.
fn node(folder: &Path, release: &str, oldest: u32) -> (Vec<String>, PathBuf) {
    let install =
        format!("npm ci --prefix {} --ignore-scripts --no-audit --no-fund", folder.display());
    if major(release).is_some_and(|major| major >= oldest) {
        return (vec![install + " --omit=optional"], "node".into());
    }
    (vec![install], folder.join(format!("node_modules/{}/bin/node", node_package())))
}

/// The package that holds Node for this machine.
pub(crate) fn node_package() -> String {
    let arch = if ARCH == "aarch64" { "arm64" } else { "x64" };
    format!("node-linux-{arch}")
}

/// Installs one npm package as a person would, with its newest dependencies, unless it is there.
pub(crate) fn package(folder: &Path, name: &str, version: &str) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", folder.display());
    let (stamp, wanted) = (folder.join(".installed"), format!("{name}@{version}"));
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    // A partial installation must not pass for a complete one.
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(said)?;
    }
    fs::create_dir_all(folder).map_err(said)?;
    let Ran { ok, output } = run(command(&format!(
        "npm install --prefix {} --no-package-lock --ignore-scripts --no-audit --no-fund {wanted}",
        folder.display()
    )));
    match ok {
        true => fs::write(&stamp, wanted).map_err(said),
        false => Err(format!("{wanted} could not be installed\n\n{output}")),
    }
}

fn venv(folder: &Path, requirements: &Path) -> (Vec<String>, PathBuf) {
    let program = folder.join("bin/python");
    let lines = vec![
        format!("python3 -m venv --clear {}", folder.display()),
        format!(
            "{} -m pip install --quiet --disable-pip-version-check --requirement {}",
            program.display(),
            requirements.display()
        ),
    ];
    (lines, program)
}

/// The first number of a release such as `v20.1.0`, on the last line of the output.
fn major(release: &str) -> Option<u32> {
    let (major, _) = release.lines().last()?.strip_prefix('v')?.split_once('.')?;
    major.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_node_is_replaced_by_one_from_a_package() {
        let at = Path::new("x");
        assert_eq!(node(at, "$ node --version\nv20.1.0\n", 20).1, Path::new("node"));
        let (lines, program) = node(at, "$ node --version\nv18.19.0\n", 20);
        assert!(program.ends_with("bin/node"));
        assert!(!lines[0].contains("--omit"));
    }
}
