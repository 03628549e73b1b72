//! The servers under test: examples of the library.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The path of an example, which is built here unless the tests of the workspace have built it.
pub(crate) fn example(name: &'static str) -> String {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let mut folder = std::env::current_exe().unwrap();
        folder.pop();
        folder.pop();
        let folder = folder.join("examples");
        if !["everything", "nasty", "features"].iter().all(|name| folder.join(name).exists()) {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--quiet", "-p", "bowline", "--examples", "--all-features"]);
            assert!(build.status().unwrap().success());
        }
        folder
    });
    folder.join(name).display().to_string()
}
