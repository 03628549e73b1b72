//! Opens apps of ours in a real browser, in the host library that the extension's makers publish,
//! and walks through the inspector; the parts of its page that need no document run in Node alone.
//!
//! `interop/browser` holds the host and the walks; the packages are installed and run in
//! `target/browser`, where the pictures are, too; `UPDATE=1` copies those of the inspector to
//! `docs/inspector`. The browser is Debian's.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::cargo;
use crate::install::{Environment, Language};
use crate::interop::walk::{self, Walked};
use crate::options::Options;
use crate::process::run;
use crate::server::Server;
use crate::step::Outcome;

const HOST: Environment = Environment {
    source: "interop/browser",
    place: "target",
    folder: "browser",
    inputs: &[".npmrc", "package.json", "package-lock.json"],
    language: Language::Node(20),
};

pub(crate) const PLACE: &str = "target/browser";

/// The program that [`BROWSER`](crate::steps::BROWSER) needs.
pub(crate) const PROGRAM: &str = "chromium";

/// The `FastMCP` that the inspector connects to.
const FASTMCP: Environment = Environment {
    source: "interop/servers/python",
    place: "target",
    folder: "browser-fastmcp",
    inputs: &["requirements.txt"],
    language: Language::Python,
};

/// What is built for the walks.
const BUILDS: &str = "--bin counter-server --bin bowline --example everything";

/// The pictures that the documentation shows, in light and dark.
const SHOWN: [&str; 20] = [
    "overview",
    "tools",
    "resources",
    "templates",
    "prompts",
    "messages",
    "figures",
    "logs",
    "palette",
    "question",
    "failure",
    "connect",
    "check",
    "app",
    "sessions",
    "tasks",
    "skills",
    "login",
    "calls",
    "rules",
];

/// Installs the host, builds the servers, and clicks.
pub(crate) fn step(_: &Options) -> Outcome {
    let walks = walk().unwrap_or_else(|why| vec![("browser", Walked::not_at_all(why))]);
    let passed = walks.iter().map(|(_, walked)| walked.passed()).sum();
    let failed = walks.iter().map(|(_, walked)| walked.failed()).sum();
    let note = format!("{passed} checks of the counter's app and the inspector");
    let output = walks.iter().map(|(_, walked)| walked.said.as_str()).collect();
    let walks: Vec<_> = walks.into_iter().map(|(name, walked)| (name.to_owned(), walked)).collect();
    Outcome { passed, failed, note, output, table: walk::table(&walks) }
}

/// Copies the scripts and installs their packages; returns the program that runs them.
pub(crate) fn install() -> Result<PathBuf, String> {
    HOST.copy(HOST.inputs)?;
    HOST.copy(&[
        "app.mjs",
        "host.mjs",
        "modules.mjs",
        "inspector.mjs",
        "views.mjs",
        "form.mjs",
        "unit.mjs",
        "protected.mjs",
        "hostile.mjs",
        "figures.mjs",
        "tsconfig.json",
    ])?;
    HOST.install()
}

fn walk() -> Result<Vec<(&'static str, Walked)>, String> {
    let node = install()?;
    let requirements = "target/requirements.txt";
    fs::copy("interop/servers/python/requirements.txt", requirements)
        .map_err(|error| format!("{requirements}: {error}"))?;
    let python = FASTMCP.install()?;
    cargo::build(BUILDS)?;
    let pictures = format!("{PLACE}/pictures");
    fs::create_dir_all(&pictures).map_err(|error| format!("{pictures}: {error}"))?;
    let server =
        Server::start("target/debug/counter-server", &["--http", "127.0.0.1:{port}"], PLACE)?;
    let mut walk = Command::new(&node);
    walk.args([&format!("{PLACE}/app.mjs"), PROGRAM, &server.url("/mcp"), &pictures]);
    let counter = walk::walk(&walk);
    server.stop()?;
    let mut walk = Command::new(&node);
    walk.args([&format!("{PLACE}/inspector.mjs"), PROGRAM]);
    for path in ["target/debug/bowline", "target/debug/examples/everything"] {
        walk.arg(absolute(path)?);
    }
    walk.arg(absolute(&python.to_string_lossy())?);
    walk.arg(absolute("interop/servers/python/server.py")?).arg(&pictures);
    let inspector = walk::walk(&walk);
    let mut units = Command::new(&node);
    units.args([&format!("{PLACE}/unit.mjs"), &copy_page()?]);
    let units = walk::walk(&units);
    if std::env::var_os("UPDATE").is_some() {
        keep(&pictures)?;
    }
    let mut types = Command::new(node);
    let compiler = format!("{PLACE}/node_modules/typescript/bin/tsc");
    types.args([&compiler, "--project", &format!("{PLACE}/tsconfig.json")]);
    let checked = run(types);
    let verdict = if checked.ok { "ok page types" } else { "not ok page types: see above" };
    let types = Walked::of(&format!("{}\n{verdict}\n", checked.output));
    let all = [("counter", counter), ("inspector", inspector), ("page", units), ("types", types)];
    Ok(all.into())
}

/// Copies the modules of the page to where Node takes them for modules; returns the folder.
fn copy_page() -> Result<String, String> {
    let place = format!("{PLACE}/web");
    let failed = |error: std::io::Error| format!("{place}: {error}");
    fs::create_dir_all(&place).map_err(failed)?;
    for entry in fs::read_dir("crates/bowline-inspector/web").map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.path().extension().is_some_and(|it| it == "js") {
            let to = format!("{place}/{}", entry.file_name().to_string_lossy());
            fs::copy(entry.path(), to).map_err(failed)?;
        }
    }
    Ok(place)
}

/// Copies the pictures that the documentation shows.
fn keep(pictures: &str) -> Result<(), String> {
    let place = "docs/inspector";
    fs::create_dir_all(place).map_err(|error| format!("{place}: {error}"))?;
    for name in SHOWN.iter().flat_map(|it| [format!("{it}-light.png"), format!("{it}-dark.png")]) {
        let copied = fs::copy(format!("{pictures}/{name}"), format!("{place}/{name}"));
        copied.map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

fn absolute(path: &str) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{path}: {error}"))
}
