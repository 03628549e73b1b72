//! `bowline listen`: notifications as they come, and nothing else.

use std::time::Duration;

use bowline::client::{CallError, Missed, Notification, Wanted};
use bowline::{ErrorCode, Json};
use clap::Args;

use crate::failure::{Code, Failure};
use crate::screen::{OutputArgs, Screen, Style};
use crate::session::{OnStop, Session, Settings};
use crate::target::{TargetArgs, duration};
use crate::text::{json_line, line};

/// Print notifications as they come, until Ctrl-C
///
/// Each is a line: its method and its parameters as the server sent them; with --output json, a
/// JSON object with both. `bowline watch` tells what changed, in words. In the modern era a server
/// sends only what is asked for: all lists, and the resources that are named.
#[derive(Args)]
pub(crate) struct Listen {
    /// Print only notifications of this method, such as notifications/message, or of all that
    /// begin with it, as in 'notifications/tools*'; may be repeated
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
    /// Stop after so many
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: Option<u64>,

    /// Stop after this time
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(super) time: Option<Duration>,
}

impl Limit {
    /// Waits until it is time to stop.
    pub(super) async fn over(&self) {
        match self.time {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    }
}

impl Listen {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let settings = Settings::new(&self.target.options, root)?;
        Session::run_until(&self.target.resolve()?, &settings, OnStop::End, async |session| {
            let mut notifications = session.client().notifications();
            let wanted = self.uri.iter().fold(Wanted::lists(), Wanted::resource);
            // Kept: the server tells only while it is asked to.
            let changes = match session.client().changes(wanted).await {
                Ok(changes) => Some(changes),
                // It has nothing to subscribe to, and may speak all the same.
                Err(error) if self.uri.is_empty() && is_lacking(&error) => None,
                Err(error) => return Err(error.into()),
            };
            ready(session);
            let mut over = std::pin::pin!(self.limit.over());
            let mut left = self.limit.count.unwrap_or(u64::MAX);
            while left > 0 && !session.screen().is_lost() {
                let heard = tokio::select! {
                    heard = notifications.next() => heard,
                    () = &mut over => break,
                    () = session.lost() => return Err(session.why_lost()),
                };
                match heard {
                    None => return Err(session.why_lost()),
                    Some(Err(Missed(count))) => {
                        session.screen().warn(&format!("{count} notifications were missed"));
                    }
                    Some(Ok(it)) if self.is_wanted(&it.method) => {
                        show(&it, session.screen());
                        left -= 1;
                    }
                    Some(Ok(_)) => {}
                }
            }
            drop(changes);
            Ok(())
        })
        .await
    }

    fn is_wanted(&self, method: &str) -> bool {
        self.only.is_empty()
            || self.only.iter().any(|only| match only.strip_suffix('*') {
                Some(start) => method.starts_with(start),
                None => method == only,
            })
    }
}

/// Whether a server has nothing to subscribe to.
fn is_lacking(error: &CallError) -> bool {
    match error {
        CallError::Lacks { .. } | CallError::NoSuchMethod { .. } => true,
        CallError::Refused { error, .. } => error.code == ErrorCode::METHOD_NOT_FOUND,
        _ => false,
    }
}

/// Says that from now on nothing is missed.
pub(super) fn ready(session: &Session) {
    let screen = session.screen();
    if !screen.is_json() {
        screen.say(&format!("{}\n", screen.err.paint(Style::Dim, "listening; Ctrl-C ends it")));
    }
}

fn show(notification: &Notification, screen: &Screen) {
    let Notification { method, params } = notification;
    if screen.is_json() {
        let name = serde_json::to_string(&**method).unwrap_or_default();
        let text = format!("{{\"method\":{name},\"params\":{params}}}", params = params.as_str());
        if let Ok(json) = Json::from_text(text) {
            screen.print_json(&json);
        }
        return;
    }
    let method = screen.out.paint(Style::Cyan, &line(method));
    screen.print(&format!("{method} {}\n", json_line(params.as_str(), true)));
}

impl Session {
    /// Waits until the connection has ended.
    pub(super) async fn lost(&self) {
        let mut watch = self.client().watch();
        let day = Duration::from_secs(24 * 3600);
        while watch.wait_for(bowline::client::Phase::Closed, day).await.is_err() {}
    }

    /// Why the connection has ended.
    pub(super) fn why_lost(&self) -> Failure {
        let reason = self.client().state().reason;
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        Failure::new(Code::Unreachable, format!("the connection ended{reason}"))
    }
}
