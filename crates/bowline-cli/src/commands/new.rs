//! `bowline new`: a server project that compiles, with a test and client configurations.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::screen::{OutputArgs, Screen};

/// Create a server project, with a test and client configurations
///
/// The project is a Cargo package in a new folder. It needs Rust 1.88 or later.
#[derive(Args)]
pub(crate) struct New {
    /// The name of the server, of its package and of the folder
    name: String,

    /// Depend on the SDK in this folder, a checkout of Bowline
    ///
    /// Without this: on the one that the program was built from, or else on the published one.
    #[arg(long, value_name = "FOLDER")]
    path: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,
}

/// Where the program was compiled. One that is published says nothing of that place.
const COMPILED_IN: Option<&str> = match option_env!("BOWLINE_RELEASE") {
    Some(_) => None,
    None => Some(env!("CARGO_MANIFEST_DIR")),
};

const MAIN: &str = include_str!("../../templates/new/main.rs");
const MANIFEST: &str = include_str!("../../templates/new/Cargo.toml.in");
const README: &str = include_str!("../../templates/new/README.md");

impl New {
    pub(crate) fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let screen = Screen::new(&self.output.or(root));
        if let Some(problem) = problem(&self.name) {
            return Err(Failure::usage(format!("{:?} {problem}", self.name)).with_remedy(
                "help: a name begins with a letter and has letters, digits, - and _, such as \
                 my-server",
            ));
        }
        let folder = std::path::absolute(&self.name);
        let folder = folder.map_err(|error| Failure::file("NAME", self.name.as_ref(), error))?;
        if folder.exists() {
            return Err(Failure::usage(format!("{} exists already", folder.display()))
                .with_remedy("help: choose another name, or remove it"));
        }
        let source = match &self.path {
            Some(checkout) => in_folder(&sdk_in(checkout)?),
            None => source(COMPILED_IN.map(Path::new))?,
        };
        let files = files(&self.name, &source, &folder);
        for (file, text) in &files {
            write(&folder.join(file), text)?;
        }
        let made: Vec<_> = files.iter().map(|(file, _)| *file).collect();
        screen.show(&json!({ "folder": folder, "files": made }).into(), || Ok(next(&self.name)))?;
        screen.finish()
    }
}

/// Why Cargo would reject the name of a package, or rename it.
fn problem(name: &str) -> Option<&'static str> {
    let is_known = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) || !name.chars().all(is_known) {
        return Some("cannot be the name of a package");
    }
    // Dependencies of the project, or what Cargo keeps for itself.
    let taken = ["bowline", "tokio", "serde_json", "test", "core", "std", "alloc", "proc_macro"];
    if taken.contains(&name) || ["deps", "examples", "build", "incremental"].contains(&name) {
        return Some("is taken");
    }
    is_keyword(name).then_some("is a word of Rust")
}

fn is_keyword(name: &str) -> bool {
    const WORDS: &str = "abstract as async await become box break const continue crate do dyn else \
        enum extern false final fn for gen if impl in let loop macro match mod move mut override \
        priv pub ref return self Self static struct super trait true try type typeof unsafe unsized \
        use virtual where while yield";
    WORDS.split_whitespace().any(|word| word == name)
}

/// The SDK that belongs to a program that was compiled in this folder.
fn source(compiled_in: Option<&Path>) -> Result<String, Failure> {
    const PUBLISHED: &str = concat!("version = \"", env!("CARGO_PKG_VERSION"), "\"");
    // Cargo unpacks published packages into folders with their version.
    const UNPACKED: &str = concat!("bowline-cli-", env!("CARGO_PKG_VERSION"));
    let Some(folder) = compiled_in.filter(|folder| !folder.ends_with(UNPACKED)) else {
        return Ok(PUBLISHED.to_owned());
    };
    let checkout = folder.ancestors().nth(2).unwrap_or(folder);
    let sdk = sdk_in(checkout).map_err(|_| {
        Failure::usage(format!(
            "the checkout that this program was built from is no longer at {}",
            checkout.display()
        ))
        .with_remedy("help: name one with --path, because the SDK is not published yet")
    })?;
    Ok(in_folder(&sdk))
}

fn in_folder(sdk: &Path) -> String {
    format!("path = {}", json!(sdk.to_string_lossy()))
}

/// The folder of the SDK's package in a checkout.
fn sdk_in(checkout: &Path) -> Result<PathBuf, Failure> {
    let failed = |problem: &dyn std::fmt::Display| Failure::file("--path", checkout, problem);
    let checkout = std::path::absolute(checkout).map_err(|error| failed(&error))?;
    let candidates = [checkout.join("crates/bowline"), checkout.clone()];
    let is_sdk = |folder: &PathBuf| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        manifest.lines().any(|line| line.trim() == "name = \"bowline\"")
    };
    candidates.into_iter().find(is_sdk).ok_or_else(|| {
        failed(&"there is no Bowline SDK").with_remedy("help: name a checkout of its repository")
    })
}

/// The files of the project.
fn files(name: &str, source: &str, folder: &Path) -> Vec<(&'static str, String)> {
    let mut manifest = MANIFEST.replace("NAME", name).replace("SOURCE", source);
    if folder.ancestors().skip(1).any(is_workspace) {
        manifest += "\n# Not a member of the workspace above it.\n[workspace]\n";
    }
    let program = folder.join(format!("target/release/{name}{}", std::env::consts::EXE_SUFFIX));
    let readme = README
        .replace("NAME", name)
        .replace("COMMAND", &json!(program.to_string_lossy()).to_string());
    let claude =
        json!({ "mcpServers": { name: { "command": "cargo", "args": ["run", "--quiet"] } } });
    let at = ["run", "--quiet", "--manifest-path", "${workspaceFolder}/Cargo.toml"];
    let code = json!({ "servers": { name: { "type": "stdio", "command": "cargo", "args": at } } });
    vec![
        ("Cargo.toml", manifest),
        ("src/main.rs", MAIN.replace("NAME", name)),
        ("README.md", readme),
        (".mcp.json", format!("{claude:#}\n")),
        (".vscode/mcp.json", format!("{code:#}\n")),
        (".gitignore", "/target\n".to_owned()),
    ]
}

fn is_workspace(folder: &Path) -> bool {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    manifest.lines().any(|line| line.trim() == "[workspace]")
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let folder = file.parent().unwrap_or(file);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(file, text));
    written.map_err(|error| Failure::usage(format!("cannot write {}: {error}", file.display())))
}

fn next(name: &str) -> String {
    format!(
        "{name} is an MCP server with one tool and a test. Next:

  cd {name}
  cargo test                                          its tool, in every revision of the protocol
  bowline call greet name=Ada -- cargo run --quiet    the same by hand
  bowline inspect -- cargo run --quiet                all of it, in a browser

Claude Code and VS Code find the server when they open the folder; README.md has other clients.
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_a_package() {
        for name in ["a", "my-server", "Weather_2"] {
            assert_eq!(problem(name), None, "{name}");
        }
        for name in ["", "2", "-a", "a/b", "..", "ä", "a b", "bowline", "test", "match"] {
            assert!(problem(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_project_depends_on_an_sdk_that_is_there() {
        let published = concat!("version = \"", env!("CARGO_PKG_VERSION"), "\"");
        assert_eq!(source(None).unwrap(), published);
        let unpacked = concat!("/src/registry/bowline-cli-", env!("CARGO_PKG_VERSION"));
        assert_eq!(source(Some(Path::new(unpacked))).unwrap(), published);
        let here = source(Some(Path::new(env!("CARGO_MANIFEST_DIR")))).unwrap();
        assert!(here.starts_with("path = ") && here.ends_with("bowline\""), "{here}");
        let gone = source(Some(Path::new("/gone/crates/bowline-cli"))).unwrap_err();
        assert!(format!("{gone:?}").contains("--path"), "{gone:?}");
    }
}
