//! Lets our client walk servers that others wrote.
//!
//! `interop/servers` holds them, or says where they come from; `interop/walk` is the walk.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::walk::{self, Walked};
use super::{Named, PLACE, SOURCE, built, python, version};
use crate::install::{Environment, Language};
use crate::server::Server;

const TYPESCRIPT: Environment = Environment {
    source: SOURCE,
    place: PLACE,
    folder: "servers/typescript",
    inputs: &[
        "servers/typescript/.npmrc",
        "servers/typescript/package.json",
        "servers/typescript/package-lock.json",
    ],
    language: Language::Node(20),
};

const FASTMCP: Environment = python("servers/fastmcp", &["servers/python/requirements.txt"]);

const RUST: &str = "cargo build --quiet --locked --manifest-path interop/servers/rmcp/Cargo.toml \
                    --target-dir target/interop/rmcp";

/// A server of another maker.
struct Host {
    /// What the walk calls it.
    name: &'static str,
    /// What the table calls it.
    title: &'static str,
    /// The file that names its version, and what stands before it there.
    version: (&'static str, &'static str),
    /// What runs it.
    program: Program,
    /// How it is told to serve over HTTP, and where it then is.
    over_http: &'static [(&'static str, &'static str, &'static str)],
}

/// What runs a server.
#[derive(Clone, Copy)]
enum Program {
    /// Node, with a script.
    Node(&'static str),
    /// Python, with a script.
    Python(&'static str),
    Rust,
}

/// The transport, the argument that chooses it, the path.
const STREAMABLE: (&str, &str, &str) = ("http", "http", "/mcp");
const SSE: (&str, &str, &str) = ("sse", "sse", "/sse");

const PACKAGES: &str = "servers/typescript/package.json";

const HOSTS: &[Host] = &[
    Host {
        name: "typescript-1",
        title: "typescript",
        version: (PACKAGES, r#""@modelcontextprotocol/sdk": ""#),
        program: Program::Node("server-v1.mjs"),
        over_http: &[STREAMABLE],
    },
    Host {
        name: "typescript-2",
        title: "typescript",
        version: (PACKAGES, r#""@modelcontextprotocol/server": ""#),
        program: Program::Node("server-v2.mjs"),
        over_http: &[STREAMABLE],
    },
    Host {
        name: "fastmcp",
        title: "fastmcp",
        version: ("servers/python/requirements.txt", "\nfastmcp=="),
        program: Program::Python("servers/python/server.py"),
        over_http: &[STREAMABLE, SSE],
    },
    Host {
        name: "rmcp",
        title: "rmcp",
        version: ("servers/rmcp/Cargo.toml", r#"rmcp = { version = "="#),
        program: Program::Rust,
        over_http: &[STREAMABLE],
    },
    Host {
        name: "everything",
        title: "everything",
        version: (PACKAGES, r#""@modelcontextprotocol/server-everything": ""#),
        program: Program::Node(
            "node_modules/@modelcontextprotocol/server-everything/dist/index.js",
        ),
        over_http: &[("http", "streamableHttp", "/mcp"), SSE],
    },
];

/// What runs the servers, or why nothing does.
struct Installed {
    node: Result<PathBuf, String>,
    python: Result<PathBuf, String>,
    rust: Result<PathBuf, String>,
}

/// Installs the servers, builds the walk, and runs all walks at once: they mostly wait.
pub(super) fn walk_all() -> Result<Vec<Named>, String> {
    let walk = built("cargo build --quiet --package bowline-walk", "target/debug/walk")?;
    let installed = Installed {
        node: TYPESCRIPT.install(),
        python: FASTMCP.install(),
        rust: built(RUST, "target/interop/rmcp/debug/rmcp-server").map(PathBuf::from),
    };
    let mut walks = Vec::new();
    for host in HOSTS {
        walks.push((host, None));
        walks.extend(host.over_http.iter().map(|over| (host, Some(over))));
    }
    let (walk, installed) = (&walk, &installed);
    Ok(thread::scope(|scope| {
        let running: Vec<_> = walks
            .into_iter()
            .map(|(host, over)| {
                scope.spawn(move || match over {
                    None => host.walk_process(walk, installed),
                    Some(over) => host.walk_listener(walk, installed, *over),
                })
            })
            .collect();
        running.into_iter().map(|walk| walk.join().expect("no walk panics")).collect()
    }))
}

impl Host {
    fn walk_process(&self, walk: &str, installed: &Installed) -> Named {
        let walked = match self.command(installed) {
            Err(why) => Walked::not_at_all(why),
            Ok(server) => {
                let mut command = Command::new(walk);
                command.args([self.name, "stdio", "--"]);
                command.arg(server.get_program()).args(server.get_args()).arg("stdio");
                walk::walk(command)
            }
        };
        (format!("{self} stdio"), walked)
    }

    fn walk_listener(
        &self,
        walk: &str,
        installed: &Installed,
        (transport, argument, path): (&str, &str, &str),
    ) -> Named {
        let log = Path::new(PLACE).join(format!("{}-{transport}.log", self.name));
        let launched = self.command(installed).and_then(|_| {
            Server::launch(&log, |port| {
                let mut server = self.command(installed).expect("it was made before");
                // Our servers read the port from the command line, `everything` from here.
                server.arg(argument).arg(port.to_string()).env("PORT", port.to_string());
                server
            })
        });
        let walked = match launched {
            Err(why) => Walked::not_at_all(why),
            Ok(server) => {
                let mut command = Command::new(walk);
                command.args([self.name, transport, &server.url(path)]);
                walk::walk(command)
            }
        };
        (format!("{self} {transport}"), walked)
    }

    /// What starts the server, short of the arguments that say how it is to serve.
    fn command(&self, installed: &Installed) -> Result<Command, String> {
        let place = Path::new(PLACE);
        let (program, script) = match self.program {
            Program::Node(script) => {
                (&installed.node, Some(place.join(TYPESCRIPT.folder).join(script)))
            }
            Program::Python(script) => (&installed.python, Some(place.join(script))),
            Program::Rust => (&installed.rust, None),
        };
        let mut command = Command::new(program.as_ref().map_err(Clone::clone)?);
        command.args(script);
        Ok(command)
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (file, before) = self.version;
        write!(f, "{} {}", self.title, version(file, before))
    }
}
