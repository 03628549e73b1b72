//! Lets the official clients of other languages walk a server of ours.
//!
//! `interop/` holds the walks and says which clients; everything is installed and run in
//! `target/interop`, so that the source tree stays as it is. What is there and unchanged is not
//! installed again.

mod walk;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use self::walk::Walked;
use crate::install::{Environment, Language};
use crate::options::Options;
use crate::process::{Ran, command, run};
use crate::server::Server;
use crate::step::Outcome;

const SOURCE: &str = "interop";
const PLACE: &str = "target/interop";

const TYPESCRIPT: Environment = Environment {
    source: SOURCE,
    place: PLACE,
    folder: "typescript",
    inputs: &["typescript/.npmrc", "typescript/package.json", "typescript/package-lock.json"],
    language: Language::Node(20),
};

const PYTHON_1: Environment = python("python-1", &["python/requirements-1.txt"]);
const PYTHON_2: Environment = python("python-2", &["python/requirements-2.txt"]);

const fn python(folder: &'static str, inputs: &'static [&'static str]) -> Environment {
    Environment { source: SOURCE, place: PLACE, folder, inputs, language: Language::Python }
}

/// A client of another maker.
struct Peer {
    language: &'static str,
    /// The file that names its version, and what stands before it there.
    version: (&'static str, &'static str),
    environment: Environment,
    /// What walks the server, below [`PLACE`].
    script: &'static str,
}

const PEERS: &[Peer] = &[
    Peer {
        language: "typescript",
        version: ("typescript/package.json", r#""@modelcontextprotocol/sdk": ""#),
        environment: TYPESCRIPT,
        script: "typescript/walk-v1.mjs",
    },
    Peer {
        language: "typescript",
        version: ("typescript/package.json", r#""@modelcontextprotocol/client": ""#),
        environment: TYPESCRIPT,
        script: "typescript/walk-v2.mjs",
    },
    Peer {
        language: "python",
        version: ("python/requirements-1.txt", "mcp=="),
        environment: PYTHON_1,
        script: "python/walk_v1.py",
    },
    Peer {
        language: "python",
        version: ("python/requirements-2.txt", "mcp=="),
        environment: PYTHON_2,
        script: "python/walk_v2.py",
    },
];

/// Transports over HTTP, and where the server has them.
const OVER_HTTP: &[(&str, &str)] = &[("http", "/mcp"), ("sse", "/sse")];

/// A walk, and what it is called in the table.
type Named = (String, Walked);

/// Installs the clients, builds the server, and runs all walks.
pub(crate) fn step(_: &Options) -> Outcome {
    match walk_all() {
        Ok(walked) => outcome(&walked),
        Err(why) => Outcome::one(false, why),
    }
}

/// The walks over stdio run all at once, since they wait more than they work. Those over HTTP share
/// a server, and count what it counts: they run one after the other, but beside the former.
fn walk_all() -> Result<Vec<Named>, String> {
    copy(Path::new(SOURCE), Path::new(PLACE))?;
    let server = build()?;
    // One environment after the other, so that no two install the same.
    let installed: Vec<Installed> =
        PEERS.iter().map(|peer| (peer, peer.environment.install())).collect();
    thread::scope(|scope| {
        let over_http = scope.spawn(|| walk_over_http(&installed, &server));
        let over_stdio: Vec<_> =
            installed.iter().map(|it| scope.spawn(|| walk_one(it, "stdio", &server))).collect();
        let join = |walk: thread::ScopedJoinHandle<'_, _>| walk.join().expect("no walk panics");
        let mut walked: Vec<Named> = over_stdio.into_iter().map(join).collect();
        walked.extend(over_http.join().expect("no walk panics")?);
        Ok(walked)
    })
}

/// A client and what runs its scripts, or why nothing does.
type Installed = (&'static Peer, Result<PathBuf, String>);

fn walk_over_http(installed: &[Installed], server: &str) -> Result<Vec<Named>, String> {
    let server = Server::start(server, "http", PLACE)?;
    let mut walked = Vec::new();
    for (transport, path) in OVER_HTTP {
        for it in installed {
            walked.push(walk_one(it, transport, &server.url(path)));
        }
    }
    if let Err(why) = server.stop() {
        walked.push(("server".to_owned(), Walked::not_at_all(why)));
    }
    Ok(walked)
}

/// Walks the server that a command or a URL names.
fn walk_one((peer, program): &Installed, transport: &str, server: &str) -> Named {
    let walked = match program {
        Ok(program) => walk::walk(program, peer.script, server),
        Err(why) => Walked::not_at_all(why.clone()),
    };
    (format!("{peer} {transport}"), walked)
}

fn outcome(walked: &[Named]) -> Outcome {
    let passed: u64 = walked.iter().map(|(_, walked)| walked.passed()).sum();
    let failed = walked.iter().map(|(_, walked)| walked.failed()).sum();
    let failures = walked.iter().filter(|(_, walked)| walked.failed() > 0);
    Outcome {
        passed,
        failed,
        note: format!("{passed} checks in {} walks", walked.len()),
        output: failures.map(|(name, walked)| format!("{name}:\n{}\n", walked.said)).collect(),
        table: walk::table(walked),
    }
}

/// Copies the files of a folder and those below it.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let said = |error| format!("{}: {error}", from.display());
    fs::create_dir_all(to).map_err(said)?;
    for entry in fs::read_dir(from).map_err(said)? {
        let entry = entry.map_err(said)?;
        let target = to.join(entry.file_name());
        if entry.file_type().map_err(said)?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target).map_err(said)?;
        }
    }
    Ok(())
}

/// Builds the server; gives its path, which holds wherever a walk runs.
fn build() -> Result<String, String> {
    let Ran { ok, output } =
        run(command("cargo build --quiet --package bowline --features http --example everything"));
    if !ok {
        return Err(output);
    }
    let path = fs::canonicalize("target/debug/examples/everything");
    path.map(|path| path.to_string_lossy().into_owned()).map_err(|error| error.to_string())
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (file, before) = self.version;
        let text = fs::read_to_string(Path::new(SOURCE).join(file)).unwrap_or_default();
        write!(f, "{} {}", self.language, version(&text, before).unwrap_or("?"))
    }
}

/// The version that stands behind `before`.
fn version<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split(['"', '\n']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_where_they_are_pinned() {
        assert_eq!(version("# x\nmcp==1.30.0\nother==2\n", "mcp=="), Some("1.30.0"));
        assert_eq!(version(r#"{"a": "2.4.0", "b": 1}"#, r#""a": ""#), Some("2.4.0"));
        assert_eq!(version("", "mcp=="), None);
    }
}
