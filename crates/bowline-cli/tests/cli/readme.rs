//! Runs the commands that the README shows.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use bowline_serve::testing::{Said, free_port};

use crate::fixture::{Folder, PROGRAM};

/// How long a script may take: 3 minutes.
const PATIENCE: Duration = Duration::from_secs(180);

/// The script in a section of the README that starts a server, and the command that ends it.
struct Script {
    block: String,
    end: String,
}

impl Script {
    fn find(heading: &str) -> Self {
        let readme = std::fs::read_to_string("../../README.md").unwrap();
        let (_, section) = readme.split_once(&format!("\n## {heading}\n")).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let blocks =
            section.match_indices("```sh\n").map(|(at, fence)| &section[at + fence.len()..]);
        let mut blocks = blocks.map(|rest| rest.split_once("\n```\n").unwrap());
        let (block, after) = blocks.find(|(block, _)| block.contains("bowline serve")).unwrap();
        let (end, _) = after.split_once("` ends the server").unwrap();
        let (_, end) = end.rsplit_once('`').unwrap();
        Self { block: block.to_owned(), end: end.to_owned() }
    }

    /// The script with a free port. A reader looks at the screen before typing on; here, `sleep`
    /// waits for what the reader would see. Background jobs must end successfully, too.
    fn prepared(&self) -> String {
        assert!(self.block.contains(":8080"), "{}", self.block);
        let block = self.block.replace(":8080", &format!(":{}", free_port()));
        format!(
            "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n\
             seen() {{ grep -q 'listening;' \"$SEEN\"; }}\n\
             sleep() {{ until seen || ! kill -0 $!; do command sleep 0.05; done; }}\n\
             {block}\n\
             wait $!\n\
             server=$(jobs -p %1)\n\
             {}\n\
             wait $server\n",
            self.end
        )
    }
}

/// Runs a script in an empty folder, with the programs built here.
fn run(script: &str) -> Said {
    let (home, kept) = (Folder::new(), Folder::new());
    let file = |name: &str| kept.path().join(name);
    let open = |name: &str| std::fs::File::create(file(name)).unwrap();
    let programs = Path::new(PROGRAM).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash");
    shell.args(["-e", "-c", script]).current_dir(home.path()).process_group(0);
    shell.env("PATH", path).env("HOME", home.path()).env("SEEN", file("err"));
    shell.env("NO_COLOR", "1").env("COLUMNS", "90").env_remove("RUST_LOG");
    shell.stdin(Stdio::null()).stdout(open("out")).stderr(open("err"));
    let mut shell = shell.spawn().expect("there is a shell");
    let group = format!("-{}", shell.id());
    let (sender, ended) = channel();
    let waiting = thread::spawn(move || {
        let status = shell.wait().unwrap();
        let _ = sender.send(());
        status
    });
    if ended.recv_timeout(PATIENCE).is_err() {
        drop(Command::new("kill").args(["-KILL", "--", &group]).status());
    }
    let code = waiting.join().unwrap().code();
    let text = |name: &str| std::fs::read_to_string(file(name)).unwrap();
    Said { code, out: text("out"), err: text("err") }
}

#[test]
fn the_script_in_the_readme_runs() {
    let script = Script::find("The program");
    let mut told = run(&script.prepared());
    // Another process may take the port first, but hardly ever does.
    for _ in 0..2 {
        if told.code == Some(0) || !told.err.contains("in use") {
            break;
        }
        told = run(&script.prepared());
    }
    assert_eq!(told.code, Some(0), "{}\n{}", told.out, told.err);
    // What the comments beside the commands promise, in order.
    let mut rest = told.out.as_str();
    for part in [
        "answered in",
        "protocol  2025-11-25 (legacy era)",
        "found by  initialize answered",
        "calculator_arithmetic",
        "calculator_define",
        "calculator_twice",
        "\n42\n",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part}: {}", told.out));
        rest = &rest[at..];
    }
    assert!(told.out.contains("tools +calculator_twice"), "{}", told.out);
    let mut rest = told.err.as_str();
    for part in [
        "\"method\":\"initialize\"",
        "\"capabilities\":{",
        "\"method\":\"notifications/initialized\"",
        "listening;",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part}: {}", told.err));
        rest = &rest[at..];
    }
}
