//! `bowline diff`: what changed between two recordings, or since a baseline was pinned.

use std::path::{Path, PathBuf};

use bowline::Client;
use bowline_gateway::diff::{Difference, Surface, behaviour};
use clap::Args;
use serde_json::{Value, json};

use super::export::read;
use crate::failure::{Code, Failure};
use crate::screen::{OutputArgs, Screen};
use crate::session::Invocation;
use crate::target::TargetOptions;
use crate::text::line;

/// Compare two recorded sessions, or a server with a baseline
///
/// `bowline diff A B` compares what the servers of two session files offer, and how they answered
/// equal requests. `bowline diff --baseline FILE TARGET` compares what a server offers now with
/// what was pinned by `--pin`. Exits with 11 if anything differs.
#[derive(Args)]
pub(crate) struct Diff {
    /// Two session files; with --baseline, the server
    #[arg(value_name = "A B | TARGET")]
    words: Vec<String>,

    /// Compare a server with this file
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,

    /// Write what the server offers to the file of --baseline
    #[arg(long, requires = "baseline")]
    pin: bool,

    /// Ignore differences at paths that contain this; may be repeated
    #[arg(long, value_name = "PATH")]
    ignore: Vec<String>,

    #[command(flatten)]
    options: TargetOptions,
}

impl Diff {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let Some(file) = &self.baseline else { return self.compare_files(root) };
        let (invocation, words) = Invocation::split(&self.options, &self.words, root)?;
        if let [word, ..] = words {
            return Err(Failure::usage(format!("unexpected: {word}")));
        }
        let pinned = if self.pin { None } else { Some(pinned(file)?) };
        invocation
            .run(async |session| {
                let surface = surface(&session.client).await?;
                let Some(pinned) = pinned else { return pin(file, &surface) };
                let found = pinned.compare(&surface, &self.ignore);
                tell(&session.screen, &[("surface".to_owned(), found)])
            })
            .await
    }

    fn compare_files(&self, root: &OutputArgs) -> Result<(), Failure> {
        let screen = Screen::new(&self.options.output.clone().or(root));
        let [one, other] = self.words.as_slice() else {
            let what = "expected two session files";
            return Err(Failure::usage(what).with_remedy("or --baseline FILE and a server"));
        };
        let one = read(Path::new(one), &screen)?;
        let other = read(Path::new(other), &screen)?;
        let surface = Surface::of(&one).compare(&Surface::of(&other), &self.ignore);
        let mut found = vec![("surface".to_owned(), surface)];
        found.extend(behaviour(&one, &other, &self.ignore));
        tell(&screen, &found)
    }
}

fn pinned(file: &Path) -> Result<Surface, Failure> {
    let wrong = |problem: &dyn std::fmt::Display| Failure::file("--baseline", file, problem);
    let text = std::fs::read_to_string(file)
        .map_err(|error| wrong(&error).with_remedy("--pin writes it"))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    Surface::from_value(&value).ok_or_else(|| wrong(&"not a baseline"))
}

fn pin(file: &Path, surface: &Surface) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(&surface.to_value()).unwrap_or_default();
    std::fs::write(file, format!("{text}\n"))
        .map_err(|error| Failure::file("--baseline", file, error))
}

/// What a server offers now.
pub(crate) async fn surface(client: &Client) -> Result<Surface, Failure> {
    let mut surface = Surface::default();
    let ended = || Failure::new(Code::Unreachable, "the connection ended");
    let peer = client.peer().ok_or_else(ended)?;
    let (info, instructions) = (json!(peer.info), json!(peer.instructions));
    let capabilities = json!(peer.capabilities);
    surface.add(
        "initialize",
        &json!({ "serverInfo": info, "capabilities": capabilities, "instructions": instructions }),
    );
    for (method, capability) in [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resources"),
    ] {
        if capabilities.get(capability).is_none_or(Value::is_null) {
            continue;
        }
        let limits = client.limits();
        let (mut params, mut bytes) = (json!({}), 0);
        for read in 1.. {
            let page = client.call_json(method, params.clone()).await?;
            bytes += page.as_str().len();
            let page = page.to_value();
            surface.add(method, &page);
            let Some(cursor) = page.get("nextCursor").filter(|it| it.is_string()) else { break };
            if params.get("cursor") == Some(cursor) {
                break;
            }
            if read >= limits.list_pages || bytes > limits.list_bytes {
                let what = format!("{method}: no end after {read} pages with {bytes} bytes");
                let remedy = "--max-size SIZE and --max-items COUNT accept more";
                return Err(Failure::new(Code::TooLarge, what).with_remedy(remedy));
            }
            params = json!({ "cursor": cursor });
        }
    }
    Ok(surface)
}

/// What differs, for programs.
pub(crate) fn for_programs(found: &[(String, Vec<Difference>)]) -> Value {
    let all = found.iter().flat_map(|(of, differences)| {
        differences.iter().map(
            move |it| json!({ "of": of, "path": it.path, "before": it.before, "after": it.after }),
        )
    });
    json!({ "differences": all.collect::<Vec<_>>() })
}

/// Prints what differs.
pub(crate) fn tell(screen: &Screen, found: &[(String, Vec<Difference>)]) -> Result<(), Failure> {
    let count: usize = found.iter().map(|(_, differences)| differences.len()).sum();
    screen.show(&for_programs(found).into(), || {
        let mut text = String::new();
        for (of, differences) in found.iter().filter(|(_, differences)| !differences.is_empty()) {
            text += &format!("{}\n", line(of));
            for difference in differences {
                text += &format!("  {}\n", line(&difference.to_string()));
            }
        }
        if count == 0 {
            "nothing differs\n".clone_into(&mut text);
        }
        Ok(text)
    })?;
    screen.finish()?;
    if count == 0 { Ok(()) } else { Err(Failure::silent(Code::Differs)) }
}
