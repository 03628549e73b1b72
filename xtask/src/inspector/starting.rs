//! Measures how long programs of this kind take for their simplest tasks, and how large they are.

use std::fs;
use std::path::{Path, PathBuf};

use super::ask::{Asker, median, ratio};
use super::page::{figure, table};
use super::{INSPECTOR, ROUNDS, bin, install_tool};

/// A program of this kind.
struct Tool {
    title: &'static str,
    /// The folder that it is installed in.
    folder: &'static str,
    package: &'static str,
    version: &'static str,
    /// The line for each of [`TASKS`]; empty if it cannot do it.
    lines: [&'static str; 4],
}

const TASKS: [&str; 4] = [
    "`--version`",
    "the tools of `bowline serve counter` on stdio",
    "call a tool of it",
    "the tools of `server-everything` on stdio",
];

/// `bowline` comes first, then the programs that it is compared with.
const TOOLS: [Tool; 5] = [
    Tool {
        title: "`bowline`",
        folder: "",
        package: "",
        version: "",
        lines: [
            "bowline --version",
            "bowline tools -- bowline serve counter",
            "bowline call get_value -- bowline serve counter",
            "bowline tools -- mcp-server-everything",
        ],
    },
    Tool {
        title: "Inspector",
        folder: "inspector",
        package: INSPECTOR.0,
        version: INSPECTOR.1,
        lines: [
            "mcp-inspector --version",
            "mcp-inspector --cli bowline serve counter --method tools/list",
            "mcp-inspector --cli bowline serve counter --method tools/call --tool-name get_value",
            "mcp-inspector --cli mcp-server-everything --method tools/list",
        ],
    },
    Tool {
        title: "mcporter",
        folder: "mcporter",
        package: "mcporter",
        version: "0.12.3",
        lines: [
            "mcporter --version",
            "mcporter list --stdio 'bowline serve counter'",
            "mcporter call --stdio 'bowline serve counter' get_value",
            "mcporter list --stdio mcp-server-everything",
        ],
    },
    Tool {
        title: "@wong2/mcp-cli",
        folder: "mcp-cli",
        package: "@wong2/mcp-cli",
        version: "2.0.0",
        lines: [
            "mcp-cli --version",
            "",
            "mcp-cli --config counter.json call-tool counter:get_value",
            "",
        ],
    },
    Tool {
        title: "@apify/mcpc",
        folder: "mcpc",
        package: "@apify/mcpc",
        version: "0.2.6",
        lines: ["mcpc --version", "", "", ""],
    },
];

/// The table, with the figures to compare it with.
pub(super) fn measure(asker: &Asker) -> Result<String, String> {
    let mut asker = asker.clone();
    let (mut heading, mut sizes) = (vec![String::new()], vec!["installed".to_owned()]);
    let (mut present, mut absent) = (Vec::new(), Vec::new());
    for tool in &TOOLS {
        let Tool { title, version, .. } = tool;
        match tool.install() {
            Ok((programs, size)) => {
                asker = asker.also(&programs)?;
                sizes.push(size);
                heading.push(format!("{title} {version}").trim_end().to_owned());
                present.push(tool);
            }
            Err(why) => {
                println!("{title}: {why}");
                absent.push(format!("{title} {version}"));
            }
        }
    }
    let mut rows = Vec::new();
    for (at, task) in TASKS.iter().enumerate() {
        let lines: Vec<&str> = present.iter().map(|tool| tool.lines[at]).collect();
        let row = [(*task).to_owned()].into_iter().chain(cells(&asker, &lines)?);
        rows.push(row.collect());
    }
    rows.push(sizes);
    let least = times(&asker, &["sh -c true", "node -e 0"])?;
    let absent = if absent.is_empty() {
        String::new()
    } else {
        format!(" Could not be installed: {}.", absent.join(", "))
    };
    Ok(format!(
        "{}\nMilliseconds, and the ratio to `bowline`. For scale, `sh -c true` takes {} \
         ms, and `node -e 0` {} ms.{absent}\n",
        table(&heading, &rows),
        figure(median(&least[0])),
        figure(median(&least[1])),
    ))
}

impl Tool {
    /// Installs it; returns the folders of its programs, and its size.
    fn install(&self) -> Result<(Vec<PathBuf>, String), String> {
        if self.package.is_empty() {
            let program = "target/release/bowline";
            let size = fs::metadata(program).map_err(|error| format!("{program}: {error}"))?;
            return Ok((Vec::new(), format!("{}, one file", megabytes(size.len()))));
        }
        let folder = install_tool(self.folder, self.package, self.version)?;
        Ok((vec![bin(&folder)], format!("{}, and Node", megabytes(size_of(&folder)))))
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

/// A figure for each line; the others are compared with the first.
fn cells(asker: &Asker, lines: &[&str]) -> Result<Vec<String>, String> {
    let times = times(asker, lines)?;
    let cells = times.iter().enumerate().map(|(at, found)| match (at, found.is_empty()) {
        (_, true) => "cannot".to_owned(),
        (0, _) => figure(median(found)),
        _ => format!("{} ({}×)", figure(median(found)), figure(ratio(found, &times[0]))),
    });
    Ok(cells.collect())
}

/// Runs all lines in each round, and returns the times of each. Empty lines are not run.
fn times(asker: &Asker, lines: &[&str]) -> Result<Vec<Vec<f64>>, String> {
    let mut times = vec![Vec::new(); lines.len()];
    for _ in 0..ROUNDS {
        for (line, times) in lines.iter().zip(&mut times).filter(|(line, _)| !line.is_empty()) {
            let answer = asker.ask(line)?;
            if answer.exit != Some(0) {
                return Err(format!("`{line}` failed:\n{}", answer.said));
            }
            times.push(answer.ms);
        }
    }
    Ok(times)
}

/// The size of all files below a folder.
fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(it) if it.is_dir() => size_of(&entry.path()),
        Ok(it) => it.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
