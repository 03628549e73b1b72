//! The last answer is written when the server has ended, even to a file, which is written by a
//! thread that is not joined.

use std::fs::{self, File};
use std::io::Write;
use std::process::{self, Command, Stdio};
use std::{env, io};

/// Often enough to catch a failure in every other run.
const TIMES: usize = 20;

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
const PONG: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";

pub(crate) fn check() -> Option<String> {
    let path = env::temp_dir().join(format!("bowline-into-file-{}", process::id()));
    let failure = (0..TIMES).find_map(|_| {
        let answered = ask(&path).unwrap();
        (answered != PONG).then(|| format!("into a file: got {answered:?}"))
    });
    fs::remove_file(path).unwrap();
    failure
}

/// Asks, closes at once, and returns the final contents of the file.
fn ask(path: &std::path::Path) -> io::Result<String> {
    let mut child = Command::new(env::current_exe()?)
        .env(super::ROLE, "empty")
        .stdin(Stdio::piped())
        .stdout(File::create(path)?)
        .stderr(Stdio::null())
        .spawn()?;
    child.stdin.take().unwrap().write_all(PING)?;
    assert!(child.wait()?.success());
    fs::read_to_string(path)
}
