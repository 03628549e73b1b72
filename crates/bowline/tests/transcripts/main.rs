//! Conversations with servers, as data: every file of `testdata/transcripts` is played twice, in
//! memory and over the standard streams of a child.
//!
//! A file is read line by line:
//!
//! | line | means |
//! |---|---|
//! | `> …` | the client sends exactly this |
//! | `< {…}` | the server sends this next; members may be in any order |
//! | `# server: name` | which of the servers in `examples/features` it runs against |
//! | `# client: revision {…}` | first a handshake with these capabilities; in the modern era there is none, and `$meta` is what such a client puts into every request |
//! | `# let name = …` | from here on `"<$name>"` stands for this |
//! | `# unordered` | until the next blank line, answers come in any order |
//! | `# subset` | in this file the server may send more than expected |
//! | `# close` | the client closes its side |
//! | `# …` | why |
//!
//! In what is expected, `"<any>"` is anything, `"<string>"` any text, and `"<$name>"` keeps what
//! comes under a name, to be sent or expected again. At the end the client closes its side, and
//! nothing more may come.
//!
//! `UPDATE=1` replaces expectations with what came, in memory only; review the difference before
//! you commit it. An argument picks the files whose names contain it.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a test")]

mod into_file;
mod link;
mod matching;
mod notes;
mod play;
mod script;
#[path = "../../examples/features/servers.rs"]
mod servers;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::link::Link;
use self::script::Script;

/// The variable that makes this program a child, and says which server it is.
const ROLE: &str = "BOWLINE_TEST_ROLE";

/// The number of children at a time.
const CHILDREN: usize = 4;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if let Ok(role) = env::var(ROLE) {
        return servers::server(&role).unwrap().serve_stdio().await.unwrap();
    }
    // Handlers that panic on purpose need no report.
    std::panic::set_hook(Box::new(|panic| {
        if panic.payload().downcast_ref() != Some(&"a secret") {
            eprintln!("{panic}");
        }
    }));
    let filter = env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let is_wanted = |path: &PathBuf| {
        filter.as_ref().is_none_or(|filter| path.to_string_lossy().contains(filter.as_str()))
    };
    let paths: Vec<_> = files(&folder()).into_iter().filter(is_wanted).collect();
    assert!(!paths.is_empty(), "no transcript to play");
    let failures = match env::var("UPDATE") {
        Ok(_) => update(&paths).await,
        Err(_) => play_all(&paths).await,
    };
    let others = notes::check().into_iter().chain(into_file::check());
    let failures: Vec<_> = failures.into_iter().chain(others).collect();
    for failure in &failures {
        println!("{failure}\n");
    }
    let (passed, failed) = ((2 * paths.len()).saturating_sub(failures.len()), failures.len());
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {verdict}. {passed} passed; {failed} failed; 0 ignored");
    std::process::exit(i32::from(failed > 0));
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/transcripts")
}

/// All transcripts in a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|it| it == "jsonl") {
            found.push(path);
        }
    }
    found.sort();
    found
}

async fn play_all(paths: &[PathBuf]) -> Vec<String> {
    let children = Arc::new(Semaphore::new(CHILDREN));
    let mut tasks = JoinSet::new();
    for path in paths {
        let path = path.clone();
        let children = Arc::clone(&children);
        tasks.spawn(async move {
            let script = Script::read(&path)?;
            let server = servers::server(&script.server).ok_or_else(|| {
                format!("{}: its server is none of {:?}", script.name, servers::NAMES)
            })?;
            play::check(&script, Link::in_memory(server), "in memory").await?;
            let _permit = children.acquire().await;
            play::check(&script, Link::child(&script.server), "over stdio").await
        });
    }
    let mut failures: Vec<_> = tasks.join_all().await.into_iter().filter_map(Result::err).collect();
    failures.sort();
    failures
}

/// One after another, so that late messages come from the same server.
async fn update(paths: &[PathBuf]) -> Vec<String> {
    let mut failures = Vec::new();
    for path in paths {
        let updated = async {
            let script = Script::read(path)?;
            let server = servers::server(&script.server).ok_or("no such server")?;
            // The file is not about further messages of the server.
            if script.is_subset {
                return Ok(None);
            }
            play::update(&script, Link::in_memory(server)).await.map(Some)
        };
        match updated.await {
            Ok(None) => {}
            Ok(Some(text)) => fs::write(path, text).unwrap(),
            Err(failure) => failures.push(failure),
        }
    }
    failures
}
