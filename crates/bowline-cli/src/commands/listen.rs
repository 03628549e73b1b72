//! `bowline listen`: prints notifications as they arrive.

use std::time::Duration;

use bowline::ErrorCode;
use bowline::client::{CallError, Missed, Notification, Wanted};
use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::render::json::object;
use crate::screen::{OutputArgs, Screen, Style};
use crate::session::{Invocation, Session};
use crate::target::{TargetArgs, duration};
use crate::text::{json_line, line};

/// Print notifications as they arrive, until Ctrl-C
///
/// Each is a line: its method, then its parameters as the server sent them; with --output json, a
/// JSON object with both. `bowline watch` reports what changed, in words. In the modern era a
/// server sends only what the client subscribes to: all lists, and the resources given by --uri.
#[derive(Args)]
pub(crate) struct Listen {
    /// Print only notifications with this method, such as notifications/message, or with this
    /// prefix, as in 'notifications/tools*'; may be repeated
    #[arg(long, value_name = "METHOD")]
    only: Vec<String>,

    /// Subscribe to a resource; may be repeated
    #[arg(long, value_name = "URI")]
    uri: Vec<String>,

    #[command(flatten)]
    limit: Limit,

    #[command(flatten)]
    target: TargetArgs,
}

/// When to stop.
#[derive(Debug, Clone, Args)]
pub(super) struct Limit {
    /// Stop after this many
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Stop after this time
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
}

impl Limit {
    /// Calls `next` until it has returned `true` as often as the limit says, or time is up.
    pub(super) async fn repeat(
        &self,
        session: &Session,
        mut next: impl AsyncFnMut() -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let screen = &session.screen;
        if !screen.is_json() {
            let ready = screen.err.paint(Style::Dim, "listening; Ctrl-C ends it");
            screen.say(&format!("{ready}\n"));
        }
        let time_is_up = async {
            match self.time {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        let all = async {
            let mut left = self.count.unwrap_or(u64::MAX);
            while left > 0 && !screen.is_lost() {
                left -= u64::from(next().await?);
            }
            Ok(())
        };
        tokio::select! {
            done = all => done,
            () = time_is_up => Ok(()),
            failure = session.lost() => Err(failure),
        }
    }
}

impl Listen {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let invocation = Invocation::new(&self.target, root)?;
        invocation.run_until_stopped(async |session| self.listen(session).await).await
    }

    async fn listen(&self, session: &Session) -> Result<(), Failure> {
        let mut notifications = session.client.notifications();
        let wanted = self.uri.iter().fold(Wanted::all_lists(), Wanted::resource);
        // Kept, because the server sends them only while the subscription is open.
        let _changes = match session.client.changes(wanted).await {
            Ok(changes) => Some(changes),
            // There is nothing to subscribe to, but the server may still send notifications.
            Err(error) if self.uri.is_empty() && is_lacking(&error) => None,
            Err(error) => return Err(error.into()),
        };
        let screen = &session.screen;
        let next = async || match notifications.next().await {
            None => Err(session.lost().await),
            Some(Err(Missed(count))) => {
                screen.warn(&format!("{count} notifications were missed"));
                Ok(false)
            }
            Some(Ok(it)) => {
                let is_wanted = self.is_wanted(&it.method);
                if is_wanted {
                    show(&it, screen)?;
                }
                Ok(is_wanted)
            }
        };
        self.limit.repeat(session, next).await
    }

    fn is_wanted(&self, method: &str) -> bool {
        self.only.is_empty()
            || self.only.iter().any(|only| match only.strip_suffix('*') {
                Some(start) => method.starts_with(start),
                None => method == only,
            })
    }
}

/// Whether the server has nothing to subscribe to.
fn is_lacking(error: &CallError) -> bool {
    match error {
        CallError::Lacks { .. } | CallError::NoSuchMethod { .. } => true,
        CallError::Refused { error, .. } => error.code == ErrorCode::METHOD_NOT_FOUND,
        _ => false,
    }
}

fn show(notification: &Notification, screen: &Screen) -> Result<(), Failure> {
    let Notification { method, params } = notification;
    let name = json!(**method).to_string();
    let json = object([("method", name.as_str()), ("params", params.as_str())]);
    screen.show(&json, || {
        let method = screen.out.paint(Style::Cyan, &line(method));
        Ok(format!("{method} {}\n", json_line(params.as_str(), true)))
    })
}
