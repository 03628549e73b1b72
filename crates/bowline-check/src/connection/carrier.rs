//! How frames travel: on a stream with everything else, or each as an exchange of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::check::Target;
use crate::frames::{
    Event, HeaderChanges, Http, HttpReply, HttpRequest, HttpSse, Lost, Process, Tap,
};

/// How long a program whose output has ended may take to exit.
const SOON: Duration = Duration::from_millis(400);
/// How many lines of standard error are quoted.
const STDERR: usize = 12;

pub(super) enum Carrier {
    Process(Box<Process>),
    Sse(Box<HttpSse>),
    Http(Box<Http>),
}

impl Carrier {
    /// Starts the program, opens the stream, or prepares to post.
    pub(super) async fn open(target: &Target, timeout: Duration, tap: &Tap) -> Result<Self, Lost> {
        static STARTED: AtomicU64 = AtomicU64::new(1);
        let tap = || tap.numbered(STARTED.fetch_add(1, Ordering::Relaxed));
        Ok(match target {
            Target::Program(recipe) => {
                let program = recipe.program.to_string_lossy();
                let failed = |error| Lost::Unreachable(format!("{program}: {error}"));
                Self::Process(Box::new(Process::start(recipe, tap()).map_err(failed)?))
            }
            Target::Streams(open) => {
                let (output, input) = open();
                Self::Process(Box::new(Process::over(output, input, tap())))
            }
            Target::HttpSse(http) => Self::Sse(Box::new(HttpSse::open(http, timeout).await?)),
            Target::Http(http) => Self::Http(http.clone()),
        })
    }

    pub(super) fn process(&mut self) -> Option<&mut Process> {
        match self {
            Self::Process(process) => Some(process),
            Self::Http(_) | Self::Sse(_) => None,
        }
    }

    pub(super) fn http(&self) -> Option<&Http> {
        match self {
            Self::Http(http) => Some(http),
            Self::Sse(sse) => Some(&sse.endpoint),
            Self::Process(_) => None,
        }
    }

    pub(super) fn http_mut(&mut self) -> Option<&mut Http> {
        match self {
            Self::Http(http) => Some(http),
            Self::Sse(sse) => Some(&mut sse.endpoint),
            Self::Process(_) => None,
        }
    }

    /// Sends on a stream; returns what came in place of acceptance.
    pub(super) async fn send(
        &mut self,
        frame: &str,
        changes: HeaderChanges<'_>,
        timeout: Duration,
    ) -> Result<Option<HttpReply>, Lost> {
        match self {
            Self::Process(process) => match process.send(frame.as_bytes(), timeout).await {
                Ok(()) => Ok(None),
                Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                    Err(Lost::Closed(format!("it has read nothing for {timeout:?}")))
                }
                Err(_) => Err(self.gone().await),
            },
            Self::Sse(sse) => {
                let request = HttpRequest::post(frame, changes);
                let reply = sse.endpoint.exchange(&request, timeout, |_| false).await?;
                // What an accepting response says besides does not matter.
                Ok(Some(reply).filter(|reply| !reply.status.is_success()))
            }
            Self::Http(_) => Ok(None),
        }
    }

    /// The next line or event, or `None` if there will be none.
    pub(super) async fn next(&mut self) -> Option<Event> {
        match self {
            Self::Process(process) => {
                process.next_line().await.map(|data| Event { name: None, data })
            }
            Self::Sse(sse) => sse.next().await,
            Self::Http(_) => None,
        }
    }

    /// Why the stream has ended.
    pub(super) async fn gone(&mut self) -> Lost {
        let Some(process) = self.process() else {
            return Lost::Closed("it ended the event stream".to_owned());
        };
        let (status, had_survivors) = process.exit(SOON).await;
        let mut how =
            status.map_or_else(|| "it closed its output".to_owned(), |status| status.to_string());
        if had_survivors {
            how.push_str(", while a process that it started kept running");
        }
        let stderr = process.stderr();
        if !stderr.is_empty() {
            let last = &stderr[stderr.len().saturating_sub(STDERR)..];
            how = format!("{how}; standard error: {}", last.join(" | "));
        }
        Lost::Closed(how)
    }
}
