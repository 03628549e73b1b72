//! Converts and calls the tools of our servers with agent frameworks, without a model.
//!
//! `interop/frameworks` holds the checks and pins the frameworks. Those that need the same version
//! of the official client share an environment.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::walk::{self, Walked};
use super::{Named, PLACE, SILENT, SOURCE, absolute, copy, python, version};
use crate::cargo;
use crate::install::{Environment, Language};
use crate::options::Options;
use crate::server::Server;
use crate::step::Outcome;

/// Frameworks that are installed together.
struct Group {
    environment: Environment,
    frameworks: &'static [Framework],
}

struct Framework {
    /// The package whose version is shown; in Python, also the start of its line.
    package: &'static str,
    /// What runs the checks, in `interop/frameworks`.
    script: &'static str,
}

const GROUPS: &[Group] = &[
    Group {
        environment: Environment {
            source: SOURCE,
            place: PLACE,
            folder: "frameworks",
            inputs: &[
                "frameworks/.npmrc",
                "frameworks/package.json",
                "frameworks/package-lock.json",
            ],
            language: Language::Node(20),
        },
        frameworks: &[Framework { package: "@openai/agents", script: "openai_agents.mjs" }],
    },
    Group {
        environment: python("frameworks-2", &["frameworks/requirements-2.txt"]),
        frameworks: &[
            Framework { package: "openai-agents", script: "openai_agents.py" },
            Framework { package: "google-adk", script: "google_adk.py" },
            Framework { package: "llama-index-tools-mcp", script: "llama_index_mcp.py" },
        ],
    },
    Group {
        environment: python("frameworks-1", &["frameworks/requirements-1.txt"]),
        frameworks: &[
            Framework { package: "langchain-mcp-adapters", script: "langchain_mcp.py" },
            Framework { package: "autogen-ext", script: "autogen_mcp.py" },
            Framework { package: "semantic-kernel", script: "semantic_kernel_mcp.py" },
            Framework { package: "smolagents", script: "smolagents_mcp.py" },
        ],
    },
    Group {
        environment: python("frameworks-crewai", &["frameworks/requirements-crewai.txt"]),
        frameworks: &[Framework { package: "crewai-tools", script: "crewai_mcp.py" }],
    },
];

/// A server whose tools are converted: its name in the table, its program and its arguments.
type Converted = (&'static str, &'static str, &'static [&'static str]);

/// Stands for the folder of our programs in an argument.
const PROGRAMS: &str = "{programs}";

/// All servers of ours that have tools of their own, and one that passes on tools, on stdio. The
/// checks call those of the first.
const SERVERS: &[Converted] = &[
    ("shapes", "examples/shapes", &[]),
    ("everything", "examples/everything", &[]),
    ("features", "examples/features", &[]),
    ("middleware", "examples/middleware", &[]),
    ("notes", "notes", &[]),
    ("notes-proxy", "notes-proxy", &["notes={programs}/notes"]),
    ("board", "board", &[]),
    ("publish", "publish", &[]),
    ("receipts", "receipts", &[]),
    ("bowline", "bowline", &["serve", "--stdio"]),
    ("workbench", "bowline", &["serve", "workbench", "--", "{programs}/counter-server"]),
    ("mcp-logger", "mcp-logger", &["--allow", "127.0.0.1"]),
    ("counter", "counter-server", &[]),
    ("example", "example-server", &["--weather", "sample"]),
    ("operator", "operator-server", SILENT),
];

/// Installs the frameworks, builds our servers, and runs all checks.
pub(crate) fn step(_: &Options) -> Outcome {
    match walk_all() {
        Ok(walked) => outcome(&walked),
        Err(why) => Outcome::one(false, why),
    }
}

/// The groups run side by side, the frameworks of a group one after the other.
fn walk_all() -> Result<Vec<Named>, String> {
    copy(Path::new(SOURCE), Path::new(PLACE))?;
    cargo::build(&targets())?;
    let servers = servers()?;
    let server = Server::start("target/debug/examples/shapes", &["http", "{port}"], PLACE)?;
    let url = server.url("/mcp");
    let mut walked: Vec<Named> = thread::scope(|scope| {
        let groups: Vec<_> =
            GROUPS.iter().map(|group| scope.spawn(|| group.walk(&servers, &url))).collect();
        groups.into_iter().flat_map(|group| group.join().expect("no group panics")).collect()
    });
    if let Err(why) = server.stop() {
        walked.push(("server".to_owned(), Walked::not_at_all(why)));
    }
    Ok(walked)
}

impl Group {
    fn walk(&self, servers: &str, url: &str) -> Vec<Named> {
        let program = self.environment.install();
        let walk = |it: &Framework| (self.title(it), it.walk(program.as_ref(), servers, url));
        self.frameworks.iter().map(walk).collect()
    }

    /// The name of a framework and its version, each on a line of its own in the table.
    fn title(&self, framework: &Framework) -> String {
        let package = framework.package;
        let (file, before) = match self.environment.language {
            Language::Node(_) => (self.environment.inputs[1], format!("\"{package}\": \"")),
            Language::Python => (self.environment.inputs[0], format!("\n{package}==")),
        };
        let words = package.replace('/', "/ ").replace('-', "- ");
        format!("{words} {}", version(file, &before))
    }
}

impl Framework {
    fn walk(&self, program: Result<&PathBuf, &String>, servers: &str, url: &str) -> Walked {
        match program {
            Ok(program) => {
                let mut walk = Command::new(program);
                walk.arg(Path::new(PLACE).join("frameworks").join(self.script));
                walk.arg(servers).arg(url);
                walk::walk(&walk)
            }
            Err(why) => Walked::not_at_all(why.clone()),
        }
    }
}

/// The targets that Cargo must build.
fn targets() -> String {
    let target = |(_, program, _): &Converted| match program.strip_prefix("examples/") {
        Some(example) => format!(" --example {example}"),
        None => format!(" --bin {program}"),
    };
    SERVERS.iter().map(target).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The command lines of all servers as a JSON object.
fn servers() -> Result<String, String> {
    let server = |(name, program, arguments): &Converted| {
        let programs = absolute("target/debug")?;
        let mut command = vec![format!("{programs}/{program}")];
        command.extend(arguments.iter().map(|argument| argument.replace(PROGRAMS, &programs)));
        Ok(format!("{name:?}: {command:?}"))
    };
    let servers = SERVERS.iter().map(server).collect::<Result<Vec<_>, String>>()?;
    Ok(format!("{{{}}}", servers.join(", ")))
}

fn outcome(walked: &[Named]) -> Outcome {
    let sum = |count: fn(&Walked) -> u64| walked.iter().map(|(_, it)| count(it)).sum::<u64>();
    let passed = sum(Walked::passed);
    let failures = walked.iter().filter(|(_, walked)| walked.failed() > 0);
    Outcome {
        passed,
        failed: sum(Walked::failed),
        note: format!("{passed} checks with {} frameworks", walked.len()),
        output: failures.map(|(name, walked)| format!("{name}:\n{}\n", walked.said)).collect(),
        table: format!("{}\n{}", walk::table(walked), lacking(walked)),
    }
}

/// What frameworks cannot do with any server, a line each.
fn lacking(walked: &[Named]) -> String {
    let mut lines = BTreeSet::new();
    for (name, walked) in walked {
        for line in walked.said.lines().filter_map(|line| line.strip_prefix("lacks ")) {
            let (_, what) = line.split_once(' ').unwrap_or(("", line));
            lines.insert(format!(
                "    {} lacks {what}\n",
                name.replace("- ", "-").replace("/ ", "/")
            ));
        }
    }
    lines.into_iter().collect()
}
