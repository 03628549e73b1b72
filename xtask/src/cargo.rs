//! Cargo, always asked for the same features.
//!
//! Cargo compiles a dependency anew for every combination of features that a selection of packages
//! needs. Every step therefore selects the whole workspace with all features and picks what it
//! wants by target (`--bin`, `--example`, `--tests`): one build serves them all.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{Ran, command, program, run};

const EVERYTHING: &str = "--workspace --all-features";

/// A subcommand of Cargo on the whole workspace.
pub(crate) fn cargo(subcommand: &str, arguments: &str) -> Command {
    command(&format!("cargo {subcommand} {EVERYTHING} {arguments}"))
}

/// Builds the named targets of the workspace, as in `--bin walk --example everything`.
pub(crate) fn build(targets: &str) -> Result<(), String> {
    let Ran { ok, output } = run(cargo("build", &format!("--quiet {targets}")));
    if ok { Ok(()) } else { Err(output) }
}

/// The harness of one test target, compiled.
pub(crate) struct TestProgram {
    /// Its package and target, as in `bowline-cli debug`.
    pub(crate) name: String,
    executable: PathBuf,
    /// The folder of its package, where Cargo runs it.
    folder: PathBuf,
}

/// What became of one test program.
pub(crate) struct Tested {
    pub(crate) name: String,
    pub(crate) ran: Ran,
    pub(crate) took: Duration,
}

/// Compiles every test of the workspace and runs the programs side by side, `workers` at a time:
/// many tests wait, for a deadline or a process, and leave the cores idle.
///
/// Each sees the environment variables.
pub(crate) fn test(
    workers: usize,
    variables: &[(String, OsString)],
) -> Result<Vec<Tested>, String> {
    let programs = Mutex::new(test_programs("--tests")?.into_iter());
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                let next = || programs.lock().expect("no worker panics").next();
                while let Some(program) = next() {
                    let tested = program.run(&[], variables);
                    done.lock().expect("no worker panics").push(tested);
                }
            });
        }
    });
    Ok(done.into_inner().expect("no worker panics"))
}

/// Those that take longest come first, so that none of them runs alone at the end.
const SLOWEST: &[&str] = &[
    "bowline-macros-ui compile",
    "bowline-cli bowline",
    "bowline soak",
    "bowline client",
    "bowline http",
    "bowline-cli cli",
    "bowline-cli doctor",
];

/// Compiles test targets, as in `--test it --test faults`.
pub(crate) fn test_programs(targets: &str) -> Result<Vec<TestProgram>, String> {
    let options = "--no-run --message-format json-render-diagnostics";
    let mut cargo = cargo("test", &format!("{targets} {options}"));
    let built = cargo.output().map_err(|error| format!("cargo: {error}\n"))?;
    if !built.status.success() {
        return Err(String::from_utf8_lossy(&built.stderr).into_owned());
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let mut programs: Vec<_> = messages.lines().filter_map(TestProgram::read).collect();
    let rank = |name: &str| SLOWEST.iter().position(|slow| *slow == name);
    programs.sort_by_key(|program| rank(&program.name).unwrap_or(SLOWEST.len()));
    Ok(programs)
}

impl TestProgram {
    /// Reads one of Cargo's messages, if it is about a test program.
    fn read(message: &str) -> Option<Self> {
        let is_test = message.starts_with(r#"{"reason":"compiler-artifact""#)
            && message.contains(r#""test":true},"#);
        let executable = member(message, "executable").filter(|_| is_test)?;
        let folder = Path::new(member(message, "manifest_path")?).parent()?.to_owned();
        let (_, target) = message.split_once(r#""target":{"#)?;
        let package = folder.file_name()?.to_string_lossy().into_owned();
        let name = format!("{package} {}", member(target, "name")?);
        Some(Self { name, executable: executable.into(), folder })
    }

    /// Runs it with these arguments and variables.
    #[expect(clippy::disallowed_methods, reason = "reports where the time of a test run went")]
    pub(crate) fn run(&self, arguments: &[&str], variables: &[(String, OsString)]) -> Tested {
        let start = Instant::now();
        let mut command = program(&self.executable);
        command.args(arguments);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        // The tests of procedural macros load the compiler's libraries.
        command.env("LD_LIBRARY_PATH", compiler_libraries());
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let ran = run(command);
        Tested { name: self.name.clone(), ran, took: start.elapsed() }
    }
}

fn compiler_libraries() -> String {
    let Ran { output, .. } = run(command("rustc --print target-libdir"));
    output.lines().last().unwrap_or_default().to_owned()
}

/// The text of the first member of that name, which Cargo writes without blanks.
fn member<'a>(message: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = message.split_once(&format!(r#""{name}":""#))?;
    rest.split_once('"').map(|(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_among_messages() {
        let message = r#"{"reason":"compiler-artifact","package_id":"path+file:///x/crates/bowline#0.1.0","manifest_path":"/x/crates/bowline/Cargo.toml","target":{"kind":["test"],"crate_types":["bin"],"name":"it","src_path":"/x/crates/bowline/tests/it/main.rs"},"profile":{"opt_level":"0","debug_assertions":true,"test":true},"features":[],"filenames":["/x/it-1"],"executable":"/x/target/it-1","fresh":true}"#;
        let program = TestProgram::read(message).unwrap();
        assert_eq!(program.name, "bowline it");
        assert_eq!(program.folder, Path::new("/x/crates/bowline"));
        assert_eq!(program.executable, Path::new("/x/target/it-1"));
    }

    #[test]
    fn programs_that_are_not_tests_are_left_out() {
        let message = r#"{"reason":"compiler-artifact","manifest_path":"/x/Cargo.toml","target":{"name":"it"},"profile":{"test":false},"executable":"/x/it"}"#;
        assert!(TestProgram::read(message).is_none());
        let library = message.replace("false", "true").replace("\"/x/it\"", "null");
        assert!(TestProgram::read(&library).is_none());
    }
}
