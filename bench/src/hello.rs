//! The cost of building a first server: crates, compile time, size.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::Bench;
use crate::document::Section;
use crate::machine::Cpu;
use crate::peers::BUILD;
use crate::table::{Table, bytes, number};

/// A hello-world program.
struct Hello {
    name: &'static str,
    source: &'static str,
    dependencies: &'static str,
    /// So that both use the same crates as the other measurements.
    lock: &'static str,
}

const HELLOS: [Hello; 2] = [
    Hello {
        name: "bowline",
        source: include_str!("../hello/bowline.rs"),
        dependencies: concat!(
            "bowline = { path = \"../../../../crates/bowline\" }\n",
            "tokio = { version = \"1\", features = [\"macros\", \"rt\"] }\n",
        ),
        lock: "Cargo.lock",
    },
    Hello {
        name: "rmcp",
        source: include_str!("../hello/rmcp.rs"),
        dependencies: concat!(
            "rmcp = { version = \"=3.8.0\", features = [\"transport-io\"] }\n",
            "serde = { version = \"1\", features = [\"derive\"] }\n",
            "tokio = { version = \"1\", features = [\"macros\", \"rt\"] }\n",
        ),
        lock: "bench/rmcp/Cargo.lock",
    },
];

pub(crate) fn run(bench: &Bench) -> Result<Section, String> {
    let mut heading = vec!["hello world", "crates", "`cargo check`, CPU s"];
    if !bench.is_quick {
        heading.extend(["release build, CPU s", "stripped size"]);
    }
    let mut table = Table::new(&heading);
    for hello in &HELLOS {
        let cells = hello.measure(bench.is_quick);
        table.row(&cells.map_err(|error| format!("{}: {error}", hello.name))?);
    }
    let text = format!(
        "One tool with one argument over stdio (`bench/hello`), built from scratch with each SDK's \
         default features and what stdio needs. CPU seconds of all processes together; crates that only build scripts need are counted, as is the program itself.\n\n{}",
        table.finish()
    );
    Ok(Section::new(text))
}

impl Hello {
    fn measure(&self, is_quick: bool) -> Result<Vec<String>, String> {
        let folder = format!("{BUILD}/hello/{}", self.name);
        self.write(&folder).map_err(|error| format!("{folder}: {error}"))?;
        cargo(&folder, &["fetch"])?;
        let tree = cargo(&folder, &["tree", "--prefix", "none", "--edges", "normal,build"])?;
        let crates: BTreeSet<&str> =
            tree.lines().filter_map(|line| line.split(" (").next()).collect();
        let mut cells = vec![self.name.to_owned(), crates.len().to_string()];
        cells.push(number(built(&folder, &["check"])?));
        if !is_quick {
            cells.push(number(built(&folder, &["build", "--release"])?));
            let program = format!("{folder}/target/release/hello");
            let size = fs::metadata(&program).map_err(|error| format!("{program}: {error}"))?;
            cells.push(bytes(size.len() as f64));
        }
        remove(&folder);
        Ok(cells)
    }

    fn write(&self, folder: &str) -> std::io::Result<()> {
        fs::create_dir_all(format!("{folder}/src"))?;
        fs::write(format!("{folder}/src/main.rs"), self.source)?;
        fs::copy(self.lock, format!("{folder}/Cargo.lock"))?;
        let manifest = format!(
            "[workspace]\n\n[package]\nname = \"hello\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\n\
             [dependencies]\n{}\n[profile.release]\nstrip = true\n",
            self.dependencies
        );
        fs::write(format!("{folder}/Cargo.toml"), manifest)
    }
}

/// The CPU seconds of a build from scratch.
fn built(folder: &str, arguments: &[&str]) -> Result<f64, String> {
    remove(folder);
    let before = Cpu::of_children()?;
    cargo(folder, arguments)?;
    Ok((Cpu::of_children()? - before).as_secs_f64())
}

fn remove(folder: &str) {
    // It may not exist.
    let _ = fs::remove_dir_all(format!("{folder}/target"));
}

fn cargo(folder: &str, arguments: &[&str]) -> Result<String, String> {
    let mut cargo = Command::new("cargo");
    cargo.args(arguments).current_dir(folder).env("CARGO_TARGET_DIR", "target");
    let output = cargo.output().map_err(|error| format!("cargo: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
