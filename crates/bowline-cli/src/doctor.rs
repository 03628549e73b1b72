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

use ::http::{HeaderMap, HeaderName, HeaderValue};
use bowline::client::Preference;
use bowline_check::frames::Recipe;
use bowline_web::Authorize;
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

/// Walk to a server step by step, and explain the first step that fails and how to fix it
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
        let output = options.output.clone().or(root);
        let plan = Plan {
            preference: options.revision.unwrap_or(Preference::Auto),
            timeout: options.timeout.unwrap_or(PATIENCE),
        };
        let target = self.find()?;
        let screen = Arc::new(Screen::new(&output));
        let look = Look { paint: screen.out, columns: screen.columns };
        let shown = Arc::clone(&screen);
        let mut has_failed = false;
        let mut report = Report::new(target.describe(), target.secrets(), move |step| {
            has_failed |= step.outcome == Outcome::Fail;
            // Steps that a failure prevents are not worth a line.
            let is_idle = has_failed && step.outcome == Outcome::Skipped;
            if !shown.is_json() && !is_idle {
                shown.print(&format!("{}\n", look.line(step)));
            }
        });
        match &target {
            Patient::Found(resolved) => {
                let kept = Settings::new(options, root)?;
                Journal::keep(resolved, &kept, target.walk(&mut report, plan)).await?;
            }
            Patient::Odd(_) => target.walk(&mut report, plan).await?,
        }
        if screen.is_json() {
            screen.print_json(&report.to_json().into());
        } else {
            screen.print(&format!("{}\n", look.verdict(&report)));
        }
        screen.finish()?;
        match report.code() {
            None => Ok(()),
            Some(code) => Err(Failure::silent(code)),
        }
    }

    /// The server to examine, or a word that was meant as its URL.
    fn find(&self) -> Result<Patient, Failure> {
        match (self.target.resolve(), self.target.word()) {
            (Ok(resolved), _) => Ok(Patient::Found(Box::new(resolved))),
            (Err(_), Some(word)) if looks_like_url(word) => Ok(Patient::Odd(word.to_owned())),
            (Err(failure), _) => Err(failure),
        }
    }
}

/// Whether a word that does not name a server was meant as a URL.
fn looks_like_url(word: &str) -> bool {
    let has_port = word
        .split_once(':')
        .is_some_and(|(_, rest)| rest.starts_with(|letter: char| letter.is_ascii_digit()));
    has_port || word.contains('/') || word.contains('.') || word == "localhost"
}

/// What is examined.
enum Patient {
    Found(Box<Resolved>),
    /// A malformed URL.
    Odd(String),
}

impl Patient {
    async fn walk(&self, report: &mut Report, plan: Plan) -> Result<(), Failure> {
        let resolved = match self {
            Self::Found(resolved) => resolved,
            Self::Odd(text) => {
                site::walk(report, text, Visit::default(), plan).await;
                return Ok(());
            }
        };
        match &resolved.location {
            Location::Command { program, args, env, cwd } => {
                let recipe = Recipe {
                    program: program.clone(),
                    args: args.clone(),
                    env: env.clone(),
                    directory: cwd.clone(),
                };
                command::walk(report, recipe, plan).await;
            }
            Location::Url { url, headers } => {
                let visit = Visit {
                    headers: headers_of(headers)?,
                    ca_pem: resolved.ca_pem()?,
                    login: resolved.login().map(|login| Arc::new(login) as Arc<dyn Authorize>),
                };
                site::walk(report, url, visit, plan).await;
            }
        }
        Ok(())
    }

    /// The target, for the report.
    fn describe(&self) -> Value {
        match self {
            Self::Odd(text) => json!({ "url": text }),
            Self::Found(resolved) => match &resolved.location {
                Location::Url { url, .. } => json!({ "url": url }),
                Location::Command { program, args, .. } => {
                    let args: Vec<_> = args.iter().map(|it| it.to_string_lossy()).collect();
                    json!({ "command": program.to_string_lossy(), "args": args })
                }
            },
        }
    }

    fn secrets(&self) -> Vec<String> {
        match self {
            Self::Odd(_) => Vec::new(),
            Self::Found(resolved) => resolved.secrets(),
        }
    }
}

fn headers_of(pairs: &[(String, String)]) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let wrong = || Failure::usage(format!("{name:?} and its value are not a valid header"));
        let key: HeaderName = name.parse().map_err(|_| wrong())?;
        headers.append(key, HeaderValue::from_str(value).map_err(|_| wrong())?);
    }
    Ok(headers)
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
