//! Walks third-party servers with our client, and those and ours with the program.
//!
//! `interop/servers` holds the servers or pins them; `interop/walk` is the walk of the client,
//! `interop/program` that of the program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::walk::{self, Walked};
use super::{Named, PLACE, SOURCE, absolute, python, version};
use crate::install::{Environment, Language};
use crate::process::{command, run};
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

const FASTMCP_PIN: (&str, &str) = ("servers/python/requirements.txt", "\nfastmcp==");
const FASTMCP: Environment = python("servers/fastmcp", &["servers/python/requirements.txt"]);

const RMCP_PIN: (&str, &str) = ("servers/rmcp/Cargo.toml", r#"rmcp = { version = "="#);
const RUST: &str = "cargo build --quiet --locked --manifest-path interop/servers/rmcp/Cargo.toml \
                    --target-dir target/interop/rmcp";

/// A server, third-party or ours.
struct Host {
    /// What the walks call it.
    name: &'static str,
    /// What the table calls it.
    title: &'static str,
    /// The file that pins its version, and the text before the version.
    version: Option<(&'static str, &'static str)>,
    program: Program,
    /// The arguments that make it serve on stdio.
    stdio: &'static [&'static str],
    over_http: &'static [Over],
    /// What the program must find, a file in `interop/program/checks`.
    checks: &'static str,
    /// The eras that it speaks, except over HTTP+SSE.
    eras: &'static str,
}

/// What runs a server.
#[derive(Clone, Copy)]
enum Program {
    /// Node, with a script.
    Node(&'static str),
    /// Python, with a script.
    Python(&'static str),
    Rust,
    /// One that is built here.
    Ours(&'static str),
}

/// How to make a server serve over HTTP.
struct Over {
    transport: &'static str,
    /// The port replaces `{port}`.
    arguments: &'static [&'static str],
    path: &'static str,
}

const STREAMABLE: Over = over("http", &["http", "{port}"], "/mcp");
const SSE: Over = over("sse", &["sse", "{port}"], "/sse");

const fn over(
    transport: &'static str,
    arguments: &'static [&'static str],
    path: &'static str,
) -> Over {
    Over { transport, arguments, path }
}

const PACKAGES: &str = "servers/typescript/package.json";
const EVERYTHING_PIN: (&str, &str) = (PACKAGES, r#""@modelcontextprotocol/server-everything": ""#);
const EVERYTHING: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

const HOSTS: &[Host] = &[
    Host {
        name: "typescript-1",
        title: "typescript",
        version: Some((PACKAGES, r#""@modelcontextprotocol/sdk": ""#)),
        eras: "legacy",
        ..host(Program::Node("server-v1.mjs"))
    },
    Host {
        name: "typescript-2",
        title: "typescript",
        version: Some((PACKAGES, r#""@modelcontextprotocol/server": ""#)),
        ..host(Program::Node("server-v2.mjs"))
    },
    Host {
        name: "fastmcp",
        title: "fastmcp",
        version: Some(FASTMCP_PIN),
        over_http: &[STREAMABLE, SSE],
        ..host(Program::Python("servers/python/server.py"))
    },
    Host { name: "rmcp", title: "rmcp", version: Some(RMCP_PIN), ..host(Program::Rust) },
    Host {
        name: "everything",
        title: "everything",
        version: Some(EVERYTHING_PIN),
        over_http: &[over("http", &["streamableHttp", "{port}"], "/mcp"), SSE],
        checks: "everything.txt",
        eras: "legacy",
        ..host(Program::Node(EVERYTHING))
    },
];

/// Servers of ours, which the program walks as well.
const OURS: &[Host] = &[
    Host {
        name: "bowline-everything",
        title: "bowline-everything",
        over_http: &[STREAMABLE, over("sse", &["http", "{port}"], "/sse")],
        checks: "bowline.txt",
        ..host(Program::Ours("target/debug/examples/everything"))
    },
    Host {
        name: "bowline-counter",
        title: "bowline-counter",
        stdio: &["serve", "counter"],
        over_http: &[over("http", &["serve", "counter", "--http", "127.0.0.1:{port}"], "/mcp")],
        checks: "counter.txt",
        ..host(Program::Ours(BOWLINE))
    },
];

/// The program.
const BOWLINE: &str = "target/debug/bowline";

/// A server of `interop/servers` that has both eras.
const fn host(program: Program) -> Host {
    Host {
        name: "",
        title: "",
        version: None,
        program,
        stdio: &["stdio"],
        over_http: &[STREAMABLE],
        checks: "interop.txt",
        eras: "both",
    }
}

/// The version of `server-everything` that is walked.
pub(crate) fn everything_version() -> String {
    version(EVERYTHING_PIN.0, EVERYTHING_PIN.1)
}

/// What walks, and what is walked.
pub(super) struct Prepared {
    client: String,
    program: String,
    installed: Installed,
}

/// What runs the servers, or why it is missing.
struct Installed {
    node: Result<PathBuf, String>,
    python: Result<PathBuf, String>,
    rust: Result<PathBuf, String>,
}

/// The walks of the client, those of the program, and of the clients of `fastmcp` and `rmcp`
/// through our tasks.
pub(super) struct Walks {
    pub(super) client: Vec<Named>,
    pub(super) program: Vec<Named>,
    pub(super) tasks: Vec<Named>,
}

/// Installs the third-party servers. What Cargo builds in this workspace is there already.
pub(super) fn prepare() -> Result<Prepared, String> {
    let rust = run(command(RUST));
    let rust =
        if rust.ok { absolute("target/interop/rmcp/debug/rmcp-server") } else { Err(rust.output) };
    let installed = Installed {
        node: TYPESCRIPT.install(),
        python: FASTMCP.install(),
        rust: rust.map(PathBuf::from),
    };
    let (client, program) =
        (absolute("target/debug/walk")?, absolute("target/debug/program-walk")?);
    Ok(Prepared { client, program, installed })
}

/// Runs the walks of the client, then those of the program, all at once: they mostly wait.
pub(super) fn walk_all(prepared: &Prepared) -> Walks {
    let Prepared { client, program, installed } = prepared;
    let client = walk_hosts(&[HOSTS], installed, |host, _| {
        let mut walk = Command::new(client);
        walk.arg(host.name);
        walk
    });
    let program = walk_hosts(&[HOSTS, OURS], installed, |host, transport| {
        let eras = match (transport, host.eras, host.program) {
            ("sse", ..) => "legacy",
            // These start slowly, once for each command.
            ("stdio", "both", Program::Node(_) | Program::Python(_)) => "either",
            _ => host.eras,
        };
        let checks = Path::new(SOURCE).join("program/checks").join(host.checks);
        let mut walk = Command::new(program);
        walk.arg(BOWLINE).arg(checks).args([eras, host.name]);
        walk
    });
    Walks { client, program, tasks: vec![walk_tasks(installed), walk_tasks_with_rmcp(installed)] }
}

/// The client of `fastmcp`, which comes with its server.
fn walk_tasks(installed: &Installed) -> Named {
    let walked = installed.python.clone().and_then(|python| {
        let arguments = ["--http", "127.0.0.1:{port}"];
        let server = Server::start("target/debug/conformance-server", &arguments, PLACE)?;
        let mut walk = Command::new(python);
        walk.arg(Path::new(PLACE).join("servers/python/tasks.py")).arg(server.url("/mcp"));
        let walked = walk::walk(&walk);
        server.stop().map(|()| walked)
    });
    let name = format!("fastmcp {}", version(FASTMCP_PIN.0, FASTMCP_PIN.1));
    (name, walked.unwrap_or_else(Walked::not_at_all))
}

/// The client of `rmcp`, which is built with its server, and starts ours.
fn walk_tasks_with_rmcp(installed: &Installed) -> Named {
    let walked = installed.rust.clone().map(|server| {
        let mut walk = Command::new(server.with_file_name("tasks"));
        walk.arg("target/debug/conformance-server");
        walk::walk(&walk)
    });
    let name = format!("rmcp {}", version(RMCP_PIN.0, RMCP_PIN.1));
    (name, walked.unwrap_or_else(Walked::not_at_all))
}

/// Walks each of them over each transport, with what `walk` begins.
fn walk_hosts(
    hosts: &[&'static [Host]],
    installed: &Installed,
    walk: impl Fn(&Host, &str) -> Command + Sync,
) -> Vec<Named> {
    let walk = &walk;
    thread::scope(|scope| {
        let mut running = Vec::new();
        for host in hosts.iter().copied().flatten() {
            running.push(scope.spawn(move || host.walk_process(walk(host, "stdio"), installed)));
            running.extend(host.over_http.iter().map(|over| {
                scope.spawn(move || host.walk_listener(walk(host, over.transport), installed, over))
            }));
        }
        running.into_iter().map(|walk| walk.join().expect("no walk panics")).collect()
    })
}

impl Host {
    fn walk_process(&self, mut walk: Command, installed: &Installed) -> Named {
        let walked = match self.command(installed) {
            Err(why) => Walked::not_at_all(why),
            Ok(server) => {
                walk.args(["stdio", "--"]);
                walk.arg(server.get_program()).args(server.get_args()).args(self.stdio);
                walk::walk(&walk)
            }
        };
        (format!("{self} stdio"), walked)
    }

    fn walk_listener(&self, mut walk: Command, installed: &Installed, over: &Over) -> Named {
        let Over { transport, arguments, path } = over;
        let log = Path::new(PLACE).join(format!("{}-{transport}.log", self.name));
        let launched = self.command(installed).and_then(|_| {
            Server::launch(&log, |port| {
                let mut server = self.command(installed).expect("it was made before");
                let port = port.to_string();
                server.args(arguments.iter().map(|it| it.replace("{port}", &port)));
                // `everything` reads it from here.
                server.env("PORT", port);
                server
            })
        });
        let walked = match launched {
            Err(why) => Walked::not_at_all(why),
            Ok(mut server) => {
                walk.args([transport, server.url(path).as_str()]);
                let mut walked = walk::walk(&walk);
                if walked.failed() > 0 {
                    walked.said += &server.report(&log);
                }
                walked
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
            Program::Ours(program) => return Ok(Command::new(program)),
        };
        let mut command = Command::new(program.as_ref().map_err(Clone::clone)?);
        command.args(script);
        Ok(command)
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.version {
            Some((file, before)) => write!(f, "{} {}", self.title, version(file, before)),
            None => f.write_str(self.title),
        }
    }
}
