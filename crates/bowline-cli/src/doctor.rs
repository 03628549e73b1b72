//! `bowline doctor`: walks to a server step by step, and says of the first that fails why, and what
//! to do.
//!
//! Lower than the client on purpose: it starts the program, opens the connection and reads the
//! bytes itself, so that it can show what came. What the bytes mean is decided by pure functions.
//! It calls no tool, and every step has a deadline.

mod address;
mod auth;
mod command;
mod discovery;
mod ending;
mod era;
mod http;
mod lists;
mod network;
mod output;
mod places;
mod process;
mod program;
mod report;
mod seen;
mod show;
mod site;
mod status;
mod streams;
mod tls;
mod wire;
mod words;

use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue};
use bowline::client::Preference;
use clap::Args;
use serde_json::{Value, json};

pub(crate) use self::address::Address;
pub(crate) use self::discovery::{CHALLENGE, Discovery, Problem, RESOURCE, SERVER, wants_token};
use self::era::Want;
pub(crate) use self::http::Events;
use self::process::Recipe;
pub(crate) use self::process::names;
use self::report::{Outcome, Report};
use self::show::Look;
use self::site::Visit;
pub(crate) use self::site::leads_to_login;
use crate::failure::Failure;
use crate::screen::{OutputArgs, Screen};
use crate::session::{Journal, Settings};
use crate::target::{Place, Resolved, TargetArgs};

/// Walk to a server step by step, and say of the first step that fails why, and what to do
///
/// Every step has a deadline: 20 seconds, unless --timeout says otherwise. No tool is called.
#[derive(Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    target: TargetArgs,
}

/// How long a step may take, unless told.
const PATIENCE: Duration = Duration::from_secs(20);

impl Doctor {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let options = &self.target.options;
        let output = options.output.clone().or(root);
        let want = Want {
            preference: options.revision.unwrap_or(Preference::Auto),
            timeout: options.timeout.unwrap_or(PATIENCE),
        };
        let target = self.find()?;
        let screen = Arc::new(Screen::new(&output));
        let look = Look { paint: screen.out, columns: screen.columns };
        let teller = Arc::clone(&screen);
        let mut has_failed = false;
        let mut report = Report::new(target.describe(), target.secrets(), move |step| {
            has_failed |= step.outcome == Outcome::Fail;
            // What follows from a failure is not worth a line.
            let is_idle = has_failed && step.outcome == Outcome::Skipped;
            if !teller.is_json() && !is_idle {
                teller.print(&format!("{}\n", look.line(step)));
            }
        });
        match &target {
            Patient::Found(resolved) => {
                let kept = Settings::new(options, root)?;
                Journal::keep(resolved, &kept, target.walk(&mut report, want)).await?;
            }
            Patient::Odd(_) => target.walk(&mut report, want).await?,
        }
        match screen.is_json() {
            true => screen.print_json(&report.to_json().into()),
            false => screen.print(&format!("{}\n", look.verdict(&report))),
        }
        screen.finish()?;
        match report.code() {
            None => Ok(()),
            Some(code) => Err(Failure::silent(code)),
        }
    }

    /// What to look at. What was meant as a URL and is none is looked at as well.
    fn find(&self) -> Result<Patient, Failure> {
        match (self.target.resolve(), self.target.word()) {
            (Ok(resolved), _) => Ok(Patient::Found(Box::new(resolved))),
            (Err(_), Some(word)) if looks_like_url(word) => Ok(Patient::Odd(word.to_owned())),
            (Err(failure), _) => Err(failure),
        }
    }
}

/// Whether a word that names no server was meant as a URL.
fn looks_like_url(word: &str) -> bool {
    let has_port = word
        .split_once(':')
        .is_some_and(|(_, rest)| rest.starts_with(|letter: char| letter.is_ascii_digit()));
    has_port || word.contains('/') || word.contains('.') || word == "localhost"
}

/// What is looked at.
enum Patient {
    Found(Box<Resolved>),
    /// A URL that is none.
    Odd(String),
}

impl Patient {
    async fn walk(&self, report: &mut Report, want: Want) -> Result<(), Failure> {
        let resolved = match self {
            Self::Found(resolved) => resolved,
            Self::Odd(text) => {
                site::walk(report, text, Visit::default(), want).await;
                return Ok(());
            }
        };
        match &resolved.place {
            Place::Command { program, args, env, cwd } => {
                let recipe = Recipe {
                    program: program.clone(),
                    args: args.clone(),
                    env: env.clone(),
                    directory: cwd.clone(),
                };
                command::walk(report, recipe, want).await;
            }
            Place::Url { url, headers } => {
                let visit = Visit {
                    headers: headers_of(headers)?,
                    ca_pem: resolved.ca_pem()?,
                    login: resolved.login(),
                };
                site::walk(report, url, visit, want).await;
            }
        }
        Ok(())
    }

    /// What the report is about.
    fn describe(&self) -> Value {
        match self {
            Self::Odd(text) => json!({ "url": text }),
            Self::Found(resolved) => match &resolved.place {
                Place::Url { url, .. } => json!({ "url": url }),
                Place::Command { program, args, .. } => {
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
        let wrong = || Failure::usage(format!("{name:?} and its value are no header"));
        let key: HeaderName = name.parse().map_err(|_| wrong())?;
        headers.append(key, HeaderValue::from_str(value).map_err(|_| wrong())?);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_as_a_url_is_told_from_names() {
        for word in ["localhost", "localhost:3000", "example.com/mcp", "127.0.0.1:80", "mcp.test"] {
            assert!(looks_like_url(word), "{word}");
        }
        for word in ["github", "my-server", "claude:github"] {
            assert!(!looks_like_url(word), "{word}");
        }
    }
}
