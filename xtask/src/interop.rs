//! Walks our servers with the official clients of other languages, third-party servers with our
//! client, and both with the program.
//!
//! `interop/` holds the walks and pins the clients and servers. Everything is installed and run in
//! `target/interop`, which leaves the source tree as it is, and is installed again only after a
//! change.

pub(crate) mod frameworks;
mod ready;
mod servers;
pub(crate) mod walk;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use self::ready::SILENT;
pub(crate) use self::servers::everything_version;
use self::walk::Walked;
use crate::cargo;
use crate::install::{Environment, Language};
use crate::options::Options;
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

/// A third-party client.
struct Peer {
    language: &'static str,
    /// The file that pins its version, and the text before the version.
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

/// What Cargo builds, besides the ready-made servers.
const TARGETS: &str = "--example everything --bin walk --bin program-walk";

/// Transports over HTTP, and where the server has them.
const OVER_HTTP: &[(&str, &str)] = &[("http", "/mcp"), ("sse", "/sse")];

/// A walk, and what it is called in the table.
type Named = (String, Walked);

/// All walks.
struct AllWalked {
    /// Of third-party clients, through the server with everything.
    everything: Vec<Named>,
    /// Of third-party clients, through the ready-made servers.
    ready: Vec<ready::Walks>,
    /// Of our client through third-party servers, and of the program through those and ours.
    servers: servers::Walks,
}

/// Installs clients and servers, builds ours, and runs all walks.
pub(crate) fn step(_: &Options) -> Outcome {
    match walk_all() {
        Ok(walked) => walked.outcome(),
        Err(why) => Outcome::one(false, why),
    }
}

/// The walks over stdio run all at once, because they mostly wait. The walks over HTTP share a
/// server and its counters, so they run one after the other, beside the former. Meanwhile the
/// servers for the next walks are installed.
fn walk_all() -> Result<AllWalked, String> {
    copy(Path::new(SOURCE), Path::new(PLACE))?;
    cargo::build(&format!("{TARGETS}{}", ready::targets()))?;
    let server = absolute("target/debug/examples/everything")?;
    // One after the other: some share an environment.
    let installed: Vec<Installed> =
        PEERS.iter().map(|peer| (peer, peer.environment.install())).collect();
    let (everything, ready, prepared) = thread::scope(|scope| {
        let prepared = scope.spawn(servers::prepare);
        let ready = scope.spawn(|| ready::walk_all(&installed));
        let over_http = scope.spawn(|| walk_over_http(&installed, &server));
        let over_stdio: Vec<_> =
            installed.iter().map(|it| scope.spawn(|| walk_one(it, "stdio", &[&server]))).collect();
        let join = |walk: thread::ScopedJoinHandle<'_, _>| walk.join().expect("no walk panics");
        let mut walked: Vec<Named> = over_stdio.into_iter().map(join).collect();
        walked.extend(over_http.join().expect("no walk panics")?);
        let prepared = prepared.join().expect("nothing panics there")?;
        Ok::<_, String>((walked, ready.join().expect("no walk panics"), prepared))
    })?;
    Ok(AllWalked { everything, ready, servers: servers::walk_all(&prepared) })
}

/// A client and what runs its scripts, or why it is missing.
type Installed = (&'static Peer, Result<PathBuf, String>);

fn walk_over_http(installed: &[Installed], server: &str) -> Result<Vec<Named>, String> {
    let server = Server::start(server, &["http", "{port}"], PLACE)?;
    let mut walked = Vec::new();
    for (transport, path) in OVER_HTTP {
        for it in installed {
            walked.push(walk_one(it, transport, &[&server.url(path)]));
        }
    }
    if let Err(why) = server.stop() {
        walked.push(("server".to_owned(), Walked::not_at_all(why)));
    }
    Ok(walked)
}

/// Walks the server that the arguments name.
fn walk_one((peer, program): &Installed, transport: &str, arguments: &[&str]) -> Named {
    let walked = match program {
        Ok(program) => {
            let mut walk = Command::new(program);
            walk.arg(Path::new(PLACE).join(peer.script)).args(arguments);
            walk::walk(&walk)
        }
        Err(why) => Walked::not_at_all(why.clone()),
    };
    (format!("{peer} {transport}"), walked)
}

impl AllWalked {
    fn outcome(&self) -> Outcome {
        let ready = || self.ready.iter().flat_map(|(_, walks)| walks);
        let servers::Walks { client, program, tasks } = &self.servers;
        let all =
            || self.everything.iter().chain(ready()).chain(client).chain(program).chain(tasks);
        let sum = |count: fn(&Walked) -> u64| all().map(|(_, walked)| count(walked)).sum::<u64>();
        let (passed, lacking) = (sum(Walked::passed), sum(Walked::lacking));
        let failures = all().filter(|(_, walked)| walked.failed() > 0);
        let walks = all().count();
        Outcome {
            passed,
            failed: sum(Walked::failed),
            note: format!("{passed} checks in {walks} walks, {lacking} known gaps of other SDKs"),
            output: failures.map(|(name, walked)| format!("{name}:\n{}\n", walked.said)).collect(),
            table: [
                "    third-party clients\n",
                &walk::table(&self.everything),
                &ready::table(&self.ready),
                "\n    tasks of ours\n",
                &walk::table(tasks),
                "\n    third-party servers\n",
                &walk::table(client),
                "\n    the program\n",
                &walk::table(program),
            ]
            .concat(),
        }
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

/// The path of something that is there, wherever a walk runs.
fn absolute(path: &str) -> Result<String, String> {
    let path = fs::canonicalize(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(path.to_string_lossy().into_owned())
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (file, before) = self.version;
        write!(f, "{} {}", self.language, version(file, before))
    }
}

/// The version that follows `before` in a file.
fn version(file: &str, before: &str) -> String {
    let text = fs::read_to_string(Path::new(SOURCE).join(file)).unwrap_or_default();
    read_version(&text, before).unwrap_or("?").to_owned()
}

fn read_version<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split(['"', '\n']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_where_they_are_pinned() {
        assert_eq!(read_version("# x\nmcp==1.30.0\nother==2\n", "mcp=="), Some("1.30.0"));
        assert_eq!(read_version(r#"{"a": "2.4.0", "b": 1}"#, r#""a": ""#), Some("2.4.0"));
        assert_eq!(read_version("", "mcp=="), None);
    }
}
