//! A run of the checks: what to check, how, and why that may be impossible.

use std::sync::Arc;
use std::time::Duration;

use bowline::Revision;
use bowline::client::Preference;
use bowline_web::Url;
use serde_json::Value;

use crate::frames::{Http, Reader, Recipe, Tap, Writer};
use crate::probe::Settings;
use crate::report::{Finding, Report};
use crate::rule::{self, Profile, Transport};
use crate::run::{Choice, run};
use crate::survey::survey;

/// Opens a server in this process: its output and its input.
pub type Open = Arc<dyn Fn() -> (Reader, Writer) + Send + Sync>;

/// Where the server is.
#[derive(Clone)]
pub enum Target {
    /// A program to start.
    Program(Recipe),
    /// A server in this process; each call returns the output and the input of a new one.
    Streams(Open),
    /// A URL that speaks streamable HTTP, or HTTP+SSE, which is detected.
    Http(Box<Http>),
    /// A URL that speaks HTTP+SSE.
    HttpSse(Box<Http>),
}

impl Target {
    /// A server in this process; each call of `open` returns the output and the input of a new one.
    pub fn streams(open: impl Fn() -> (Reader, Writer) + Send + Sync + 'static) -> Self {
        Self::Streams(Arc::new(open))
    }

    /// The URL, if it is one.
    pub fn http(&self) -> Option<&Http> {
        match self {
            Self::Program(_) | Self::Streams(_) => None,
            Self::Http(http) | Self::HttpSse(http) => Some(http),
        }
    }
}

/// Why a server could not be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
#[non_exhaustive]
pub enum CheckError {
    /// Nothing responds.
    Unreachable(String),
    /// Something responds, but not with MCP.
    NotMcp(String),
    /// The server requires a token, and no chosen check works without one.
    Barred(String),
    /// The server does not speak any of the chosen revisions.
    NoRevision(String),
}

/// A run of the checks against one server.
///
/// Only tools that are marked read-only and need no arguments are called, and those named by
/// [`call`](Self::call).
pub struct Check {
    settings: Settings,
    choice: Choice,
    preference: Preference,
    name: String,
}

impl Check {
    /// Checks a server in every revision that it speaks.
    pub fn new(target: Target) -> Self {
        let mut settings = Settings::new(target);
        settings.is_local = settings
            .target
            .http()
            .is_none_or(|http| Url::try_from(http.url.clone()).is_ok_and(|url| url.is_loopback()));
        Self {
            settings,
            choice: Choice::default(),
            preference: Preference::Auto,
            name: String::new(),
        }
    }

    /// What the report calls the server.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The revisions to check. One that is pinned is checked even if the server does not speak it.
    #[must_use]
    pub fn revisions(mut self, preference: Preference) -> Self {
        self.preference = preference;
        self
    }

    /// Checks only these rules: ids or groups, such as `tools.list` or `tools`.
    #[must_use]
    pub fn only<S: Into<String>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.choice.only.extend(words.into_iter().map(Into::into));
        self
    }

    /// Leaves out these rules: ids or groups.
    #[must_use]
    pub fn skip<S: Into<String>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.choice.skip.extend(words.into_iter().map(Into::into));
        self
    }

    /// Calls this tool as well.
    #[must_use]
    pub fn call(mut self, tool: impl Into<String>, arguments: Value) -> Self {
        self.settings.calls.push((tool.into(), arguments));
        self
    }

    /// How long each exchange may take: 10 seconds unless set.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// How many resources and prompts to read, and safe tools to call, at most: 20 unless set.
    #[must_use]
    pub fn samples(mut self, samples: usize) -> Self {
        self.settings.samples = samples;
        self
    }

    /// How many instances of a program may run at once: 1 unless set.
    #[must_use]
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.settings.jobs = jobs;
        self
    }

    /// What counts against the server: what every client needs, unless set.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.settings.profile = profile;
        self
    }

    /// Hears every frame that is sent or received. An [`Http`] target has a tap of its own.
    #[must_use]
    pub fn tap(mut self, tap: Tap) -> Self {
        self.settings.tap = tap;
        self
    }

    /// Runs the checks.
    ///
    /// # Errors
    /// When the server cannot be checked at all.
    pub async fn run(self) -> Result<Report, CheckError> {
        self.run_with(|_| {}).await
    }

    /// Runs the checks, and calls a function with each finding as soon as it is known.
    ///
    /// # Errors
    /// When the server cannot be checked at all.
    pub async fn run_with(self, on_finding: impl FnMut(&Finding)) -> Result<Report, CheckError> {
        let Self { mut settings, choice, preference, name } = self;
        settings.has_credentials = match settings.target.http() {
            Some(http) => http.has_credentials().await,
            None => false,
        };
        let (spoken, server, barred) = match survey(&mut settings).await {
            Ok((revisions, server)) => (revisions, server, None),
            Err(CheckError::Barred(mut why)) => {
                settings.is_barred = true;
                if settings.has_credentials {
                    why.push_str(": the token is not accepted");
                }
                // Clients follow the newest rules.
                (vec![Revision::LATEST], None, Some(why))
            }
            Err(error) => return Err(error),
        };
        let revisions = chosen(preference, &spoken, &settings)?;
        let findings = run(&settings, &choice, (&revisions, &spoken), on_finding).await;
        match barred {
            Some(why) if findings.is_empty() => Err(CheckError::Barred(why)),
            barred => Ok(Report {
                target: name,
                server,
                transport: settings.transport(),
                revisions,
                findings,
                profile: settings.profile,
                barred,
            }),
        }
    }
}

/// Whether a word is the id of a rule or a group of rules.
pub fn is_known(word: &str) -> bool {
    rule::all().any(|rule| rule.is_named(word))
}

/// The revisions to check.
fn chosen(
    preference: Preference,
    spoken: &[Revision],
    settings: &Settings,
) -> Result<Vec<Revision>, CheckError> {
    let of_era = |is_modern| spoken.iter().copied().filter(move |it| it.is_modern() == is_modern);
    let chosen: Vec<Revision> = match preference {
        Preference::Auto => spoken.to_vec(),
        Preference::Pin(revision)
            if revision.is_modern() && settings.transport() == Transport::Sse =>
        {
            let why = format!("the server speaks HTTP+SSE, which {revision} does not have");
            return Err(CheckError::NoRevision(why));
        }
        Preference::Pin(revision) => vec![revision],
        _ if settings.is_barred => spoken.to_vec(),
        Preference::Legacy => of_era(false).collect(),
        Preference::Modern => of_era(true).collect(),
    };
    if chosen.is_empty() {
        let spoken = spoken.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
        let why = format!("the server speaks {spoken} and nothing of that era");
        return Err(CheckError::NoRevision(why));
    }
    Ok(chosen)
}
