//! `bowline new`: the project is compiled and its test passes, in a target folder that stays, so
//! that only the first run takes long.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::fixture::{Folder, program, said, said_within};

/// The repository.
pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// How long Cargo may compile: 20 minutes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20 * 60);

/// Projects are compiled one after the other, because a client does not wait for Cargo's lock.
pub(crate) static COMPILING: Mutex<()> = Mutex::new(());

/// The target folder of all projects.
pub(crate) fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("new")
}

#[test]
fn a_new_project_compiles_and_passes_its_test() {
    let home = Folder::new();
    let made = said(program(&home).args(["new", "my-server", "--path", ROOT]));
    assert_eq!((made.code, made.err.as_str()), (Some(0), ""));
    assert!(made.out.contains("\n  cd my-server\n  cargo test "), "{}", made.out);
    let project = home.path().join("my-server");
    // The versions of the repository, which are here: nothing is downloaded.
    std::fs::copy(Path::new(ROOT).join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    let target = target();
    let _compiling = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
    let cargo = |words: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(words).current_dir(&project);
        cargo.env("CARGO_TARGET_DIR", &target).env("CARGO_PROFILE_DEV_DEBUG", "0");
        said_within(&mut cargo, PATIENCE)
    };
    let tested = cargo(&["test", "--offline", "--quiet"]);
    assert_eq!(tested.code, Some(0), "{}\n{}", tested.out, tested.err);
    assert!(tested.out.contains("1 passed"), "{}", tested.out);
    // Without warnings: those of the SDK do not count.
    let built = cargo(&["rustc", "--offline", "--quiet", "--", "--deny=warnings"]);
    assert_eq!(built.code, Some(0), "{}", built.err);
    let server = target.join("debug").join(format!("my-server{}", std::env::consts::EXE_SUFFIX));
    let greeted =
        said(program(&home).args(["call", "greet", "name=Ada", "--"]).arg(server.as_os_str()));
    assert_eq!((greeted.code, greeted.out.as_str()), (Some(0), "Hello, Ada!\n"));
}

#[test]
fn clients_find_the_server_in_the_project() {
    let home = Folder::new();
    let made = said(program(&home).args(["new", "notes", "--output", "json"]));
    let files = r#""files":["Cargo.toml","src/main.rs","README.md",".mcp.json",".vscode/mcp.json",".gitignore"]"#;
    assert!(made.out.contains(files), "{}", made.out);
    let listed = said(program(&home).arg("servers").current_dir(home.path().join("notes")));
    for client in ["claude-code", "vscode"] {
        assert!(listed.out.contains(client), "{}", listed.out);
    }
    assert!(listed.out.contains("cargo run --quiet"), "{}", listed.out);
    let manifest = std::fs::read_to_string(home.path().join("notes/Cargo.toml")).unwrap();
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("bowline");
    assert!(manifest.contains(&format!("bowline = {{ path = {sdk:?} }}\n")), "{manifest}");
}

#[test]
fn what_cannot_be_created_is_refused() {
    let home = Folder::new();
    std::fs::create_dir(home.path().join("taken")).unwrap();
    for (words, problem) in [
        (&["new", "taken"][..], "exists already"),
        (&["new", "a/b"], "cannot be the name of a package"),
        (&["new", "bowline"], "is taken"),
        (&["new", "fine", "--path", "taken"], "there is no Bowline SDK"),
    ] {
        let made = said(program(&home).args(words));
        assert_eq!((made.code, made.out.as_str()), (Some(1), ""), "{words:?}");
        assert!(made.err.contains(problem) && made.err.contains("help: "), "{}", made.err);
    }
    assert!(!home.path().join("fine").exists());
}
