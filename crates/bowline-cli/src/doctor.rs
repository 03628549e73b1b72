//! `bowline doctor`: walks to a server step by step, and explains the first step that fails.
//!
//! It works on frames, below the client, so that it can show exactly what arrived; pure functions
//! decide what that means. It calls no tool, and every step has a deadline.

mod address;
mod auth;
mod command;
mod conversation;
mod ending;
mod era;
mod lists;
mod network;
mod output;
mod places;
mod program;
mod report;
mod seen;
mod show;
mod site;
mod status;
mod stderr;
mod streams;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use bowline::client::Preference;
use clap::Args;
use serde_json::{Value, json};

use self::era::Plan;
use self::report::{Outcome, Report};
use self::show::Look;
use self::site::Visit;
use crate::failure::Failure;
use crate::screen::{OutputArgs, Screen};
use crate::session::{Journal, Settings};
use crate::target::{Location, Resolved, TargetArgs};

/// Connect to a server step by step, and explain the first step that fails and how to fix it
///
/// Every step has a deadline: 20 seconds, unless --timeout sets another. No tool is called.
#[derive(Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    target: TargetArgs,
}

/// How long a step may take by default.
const PATIENCE: Duration = Duration::from_secs(20);

impl Doctor {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let options = &self.target.options;
        let plan = Plan {
            preference: options.revision.unwrap_or(Preference::Auto),
            timeout: options.timeout.unwrap_or(PATIENCE),
        };
        let screen = Arc::new(Screen::new(&options.output.clone().or(root)));
        let look = Look { paint: screen.out, columns: screen.columns };
        let report = match (self.target.resolve(), self.target.word()) {
            (Ok(resolved), _) => {
                let mut report = new_report(&resolved.location, resolved.secrets(), &screen, look);
                let settings = Settings::new(options, root)?;
                Journal::keep(&resolved, &settings, walk(&resolved, &mut report, plan)).await?;
                report
            }
            (Err(_), Some(word)) if looks_like_url(word) => {
                let location = Location::Url { url: word.to_owned(), headers: Vec::new() };
                let mut report = new_report(&location, Vec::new(), &screen, look);
                site::walk(&mut report, word, Visit::default(), plan).await;
                report
            }
            (Err(failure), _) => return Err(failure),
        };
        if screen.is_json() {
            screen.print_json(&report.to_json().into());
        } else {
            screen.print(&format!("{}\n", look.verdict(&report)));
        }
        screen.finish()?;
        report.code().map_or(Ok(()), |code| Err(Failure::silent(code)))
    }
}

/// Walks to a server and returns the report as JSON.
pub(crate) async fn examine(resolved: &Resolved, settings: &Settings) -> Result<Value, Failure> {
    let plan = Plan { preference: settings.preference, timeout: PATIENCE };
    let look = Look { paint: settings.screen.out, columns: None };
    let secrets = resolved.secrets();
    let mut report = new_report(&resolved.location, secrets, &settings.screen, look);
    Journal::keep(resolved, settings, walk(resolved, &mut report, plan)).await?;
    Ok(report.to_json())
}

/// Whether a word that does not name a server was meant as a URL.
fn looks_like_url(word: &str) -> bool {
    let has_port = word
        .split_once(':')
        .is_some_and(|(_, rest)| rest.starts_with(|letter: char| letter.is_ascii_digit()));
    has_port || word.contains('/') || word.contains('.') || word == "localhost"
}

/// A report that shows each step on the screen as soon as it is done.
fn new_report(
    location: &Location,
    secrets: Vec<String>,
    screen: &Arc<Screen>,
    look: Look,
) -> Report {
    let target = match location {
        Location::Url { url, .. } => json!({ "url": url }),
        Location::Command { program, args, .. } => {
            let args: Vec<_> = args.iter().map(|it| it.to_string_lossy()).collect();
            json!({ "command": program.to_string_lossy(), "args": args })
        }
    };
    let screen = Arc::clone(screen);
    let mut has_failed = false;
    Report::new(target, secrets, move |step| {
        has_failed |= step.outcome == Outcome::Fail;
        // Steps that a failure prevents are not worth a line.
        let is_idle = has_failed && step.outcome == Outcome::Skipped;
        if !screen.is_json() && !is_idle {
            screen.print(&format!("{}\n", look.line(step)));
        }
    })
}

async fn walk(resolved: &Resolved, report: &mut Report, plan: Plan) -> Result<(), Failure> {
    if let Some(recipe) = resolved.recipe() {
        command::walk(report, recipe, plan).await;
    }
    if let Location::Url { url, .. } = &resolved.location {
        let (headers, web) = (resolved.header_map()?, Some(resolved.web()?));
        let visit = Visit { headers, web, login: resolved.authorize() };
        site::walk(report, url, visit, plan).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_names_are_told_apart() {
        for word in ["localhost", "localhost:3000", "example.com/mcp", "127.0.0.1:80", "mcp.test"] {
            assert!(looks_like_url(word), "{word}");
        }
        for word in ["github", "my-server", "claude:github"] {
            assert!(!looks_like_url(word), "{word}");
        }
    }
}
