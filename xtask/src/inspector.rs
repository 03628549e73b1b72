//! Asks `bowline` and MCP Inspector's command line the same questions, measures the pages of both
//! in one browser, and writes the figures to `docs/inspector.md`.
//!
//! Everything is installed and run in `target/inspector`. The lines of [`mod@questions`] are run,
//! counted and shown on the page; the step fails where an answer differs from what the page says.

mod ask;
mod browser;
mod page;
mod questions;
mod starting;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::ask::{Asker, Typed, median, ratio};
use self::questions::{Question, questions};
use crate::install;
use crate::interop::everything_version;
use crate::options::Options;
use crate::process::{Ran, command, run};
use crate::server::{Server, free_port};
use crate::step::Outcome;

const PLACE: &str = "target/inspector";

/// How often each question is asked.
const ROUNDS: usize = 5;

/// New enough for all programs that are measured.
const NODE: &str = "24.21.0";
const INSPECTOR: (&str, &str) = ("@modelcontextprotocol/inspector", "2.12.0");
const EVERYTHING: &str = "@modelcontextprotocol/server-everything";

/// What is built here: the program as released, and a server that requires a login.
const BUILDS: [&str; 2] = [
    "cargo build --quiet --release --package bowline-cli",
    "cargo build --quiet --package bowline --features auth --example protected",
];

/// Installs, measures, and writes the page.
pub(crate) fn step(_: &Options) -> Outcome {
    match compare() {
        Ok(wrong) => {
            let note = format!("{} questions, {}", questions().len(), page::PATH);
            Outcome::one(wrong.is_empty(), wrong.join("\n")).with_note(note)
        }
        Err(why) => Outcome::one(false, why),
    }
}

/// Returns the answers that differ from what the page says.
fn compare() -> Result<Vec<String>, String> {
    let mut path = vec![install_node()?];
    path.push(bin(&install_tool("inspector", INSPECTOR.0, INSPECTOR.1)?));
    let everything = everything_version();
    path.push(bin(&install_tool("everything", EVERYTHING, &everything)?));
    for build in BUILDS {
        let Ran { ok, output } = run(command(build));
        if !ok {
            return Err(output);
        }
    }
    path.push(absolute("target/release")?);
    let asker = Asker::new(path, &absolute(PLACE)?)?;
    let servers = Servers::start(&asker)?;
    let mut wrong = Vec::new();
    let mut rows = Vec::new();
    for question in questions() {
        let asked = question.ask(&asker, &servers)?;
        rows.push(question.row(&asked));
        wrong.extend(asked.wrong);
    }
    // Figures of wrong answers are worth nothing.
    if !wrong.is_empty() {
        return Ok(wrong);
    }
    let about = format!(
        "{}; Inspector {}, Node {NODE}, server-everything {everything}; medians of {ROUNDS} runs.",
        machine(),
        INSPECTOR.1
    );
    page::put("questions", &format!("{about}\n\n{}", page::table(questions::HEADING, &rows)))?;
    page::put("starting", &starting::measure(&asker)?)?;
    page::put("browser", &browser::measure(&asker, &about)?)?;
    Ok(wrong)
}

/// The outcome of a question.
struct Asked {
    /// Milliseconds of each round, ours and theirs.
    times: [Vec<f64>; 2],
    keys: [usize; 2],
    /// Lines of output.
    lines: [usize; 2],
    /// Unexpected answers.
    wrong: Vec<String>,
}

impl Question {
    /// Asks both programs in turn, in each round.
    fn ask(&self, asker: &Asker, servers: &Servers) -> Result<Asked, String> {
        let both = [&self.ours, &self.theirs];
        let typed = both.map(|it| servers.fill_in(it));
        let keys = [typed[0].chars().count(), typed[1].chars().count()];
        let (times, wrong) = ([Vec::new(), Vec::new()], Vec::new());
        let mut asked = Asked { times, keys, lines: [0, 0], wrong };
        for round in 0..ROUNDS {
            for at in [0, 1] {
                let answer = asker.ask(&typed[at])?;
                asked.times[at].push(answer.ms);
                asked.lines[at] = answer.said.lines().count();
                if let Some(problem) = both[at].differs(&answer).filter(|_| round == 0) {
                    asked.wrong.push(format!("{}: `{}` {problem}", self.asks, typed[at]));
                }
            }
        }
        Ok(asked)
    }

    fn row(&self, asked: &Asked) -> Vec<String> {
        let code = |line: &str, program: &str| format!("`{}`", line[program.len()..].trim_start());
        let (theirs, ratio) = if self.is_ours_alone {
            ("cannot".to_owned(), "–".to_owned())
        } else {
            let ratio = ratio(&asked.times[1], &asked.times[0]);
            (code(self.theirs.line, questions::THEIRS), format!("{ratio:.0}"))
        };
        let pair = |[ours, theirs]: [String; 2]| {
            let theirs = if self.is_ours_alone { "–" } else { &theirs };
            format!("{ours} / {theirs}")
        };
        vec![
            self.asks.to_owned(),
            code(self.ours.line, questions::OURS),
            theirs,
            pair(asked.keys.map(|it| it.to_string())),
            pair(asked.lines.map(|it| it.to_string())),
            pair([&asked.times[0], &asked.times[1]].map(|it| page::figure(median(it)))),
            ratio,
        ]
    }
}

/// The servers, on free ports of five digits each.
struct Servers {
    /// Kept running until everything is asked.
    _running: [Server; 3],
    /// The letter for each address in a line, and the address.
    addresses: [(&'static str, String); 4],
}

impl Servers {
    fn start(asker: &Asker) -> Result<Self, String> {
        let log = |name: &str| Path::new(PLACE).join(name).with_extension("log");
        let nobody = free_port().map_err(|error| error.to_string())?;
        let everything = Server::launch(&log("everything"), |port| {
            let mut server = asker.command("mcp-server-everything", &["streamableHttp"]);
            server.env("PORT", port.to_string());
            server
        })?;
        let example = Server::launch(&log("example"), |port| {
            let address = format!("127.0.0.1:{port}");
            asker.command(
                "bowline",
                &["serve", "example", "--weather", "sample", "--http", &address],
            )
        })?;
        let protected = Server::launch(&log("protected"), |port| {
            let mut server = Command::new("target/debug/examples/protected");
            let address = format!("127.0.0.1:{port}");
            server.arg(format!("http://127.0.0.1:{nobody}"));
            server.arg(format!("http://{address}/mcp")).arg(address);
            server
        })?;
        let addresses = [
            ("U", everything.url("/mcp")),
            ("X", example.url("/mcp")),
            ("P", protected.url("/mcp")),
            ("N", format!("http://127.0.0.1:{nobody}/mcp")),
        ];
        Ok(Self { _running: [everything, example, protected], addresses })
    }

    /// The line as it is typed.
    fn fill_in(&self, typed: &Typed) -> String {
        let address = |word| self.addresses.iter().find(|(letter, _)| *letter == word);
        let words = typed.line.split(' ').map(|word| address(word).map_or(word, |(_, it)| it));
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Installs Node, and returns the folder of its programs.
fn install_node() -> Result<PathBuf, String> {
    let name = install::node_package();
    let folder = install_tool("node", &name, NODE)?;
    Ok(folder.join("node_modules").join(name).join("bin"))
}

/// Installs a package in a folder of its own, and returns that folder.
fn install_tool(folder: &str, name: &str, version: &str) -> Result<PathBuf, String> {
    let folder = Path::new(PLACE).join(folder);
    install::package(&folder, name, version)?;
    fs::canonicalize(&folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// The folder of a package's programs.
fn bin(folder: &Path) -> PathBuf {
    folder.join("node_modules/.bin")
}

fn absolute(path: &str) -> Result<PathBuf, String> {
    fs::canonicalize(path).map_err(|error| format!("{path}: {error}"))
}

/// The date and the machine.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown processor");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let Ran { output: day, .. } = run(command("date -u +%Y-%m-%d"));
    format!("{}; {model}, {cores} cores", day.lines().last().unwrap_or_default())
}
