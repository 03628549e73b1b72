//! The tutorial of the SDK, typed along.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::PoisonError;

use bowline_serve::testing::Said;

use crate::fixture::{PROGRAM, said_within};
use crate::new::{COMPILING, PATIENCE, ROOT, target};

/// A fenced block, with the text before it.
struct Block {
    before: String,
    language: String,
    text: String,
}

fn blocks() -> Vec<Block> {
    let page = fs::read_to_string(Path::new(ROOT).join("crates/bowline/src/guide/tutorial.md"));
    let page = page.unwrap();
    let mut parts = page.split("```");
    let mut blocks = Vec::new();
    while let (Some(before), Some(fence)) = (parts.next(), parts.next()) {
        let (language, text) = fence.split_once('\n').unwrap();
        // Documentation hides these.
        let shown = text.lines().filter(|line| *line != "#" && !line.starts_with("# "));
        let text = shown.map(|line| format!("{line}\n")).collect();
        blocks.push(Block { before: before.to_owned(), language: language.to_owned(), text });
    }
    blocks
}

/// A folder outside the repository, whose workspace `cargo new` would join.
struct Desk {
    home: PathBuf,
    folder: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let name = format!("bowline-tutorial-{}", std::process::id());
        let home = std::env::temp_dir().join(name);
        fs::create_dir(&home).unwrap();
        Self { folder: home.clone(), home }
    }

    /// Types a line into a shell. Nothing is downloaded.
    fn command(&mut self, line: &str) -> String {
        if let Some(folder) = line.strip_prefix("cd ") {
            self.folder = self.folder.join(folder);
            // The versions of the repository, which are here.
            let lock = Path::new(ROOT).join("Cargo.lock");
            fs::copy(lock, self.folder.join("Cargo.lock")).unwrap();
            return String::new();
        }
        let is_ours = line.starts_with("cargo add") && line.split(' ').any(|it| it == "bowline");
        let line = match is_ours {
            true => format!("{line} --path {ROOT}/crates/bowline"),
            false => line.to_owned(),
        };
        let folder = |program: &str| Path::new(program).parent().unwrap().display().to_string();
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{}:{path}", folder(PROGRAM), folder(env!("CARGO")));
        let mut shell = Command::new("bash");
        shell.args(["-e", "-c", &line]).current_dir(&self.folder).env("PATH", path);
        shell.env("CARGO_TARGET_DIR", target()).env("CARGO_PROFILE_DEV_DEBUG", "0");
        shell.env("CARGO_NET_OFFLINE", "true").env("BOWLINE_DATA_DIR", self.home.join("data"));
        shell.env("NO_COLOR", "1").env("COLUMNS", "90").env_remove("RUST_LOG");
        let Said { code, out, err } = said_within(&mut shell, PATIENCE);
        assert_eq!(code, Some(0), "{line}\n{out}\n{err}");
        out
    }

    /// Writes what a block shows to where the text before it says.
    fn write(&self, block: &Block) {
        let (_, rest) = block.before.rsplit_once("`src/").unwrap();
        let (name, _) = rest.split_once('`').unwrap();
        let file = self.folder.join("src").join(name);
        let mut text = fs::read_to_string(&file).unwrap_or_default();
        if block.before.contains("At the end of") {
            text += "\n";
        } else if block.before.contains("Replace its last function") {
            text.truncate(text.find("#[tokio::main]").unwrap());
        } else {
            text.clear();
        }
        fs::write(file, text + &block.text).unwrap();
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.home);
    }
}

#[test]
fn the_tutorial_can_be_typed_along() {
    let _compiling = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut desk = Desk::new();
    let mut said = String::new();
    for block in blocks() {
        match block.language.as_str() {
            "text" => said.extend(block.text.lines().map(|line| desk.command(line))),
            "rust" | "rust,no_run" | "rust,ignore" => desk.write(&block),
            other => panic!("{other}"),
        }
    }
    let mut rest = said.as_str();
    for part in ["price", "\n1999\n", "1000", "sold\n", "1 passed"] {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part}: {said}"));
        rest = &rest[at..];
    }
}
