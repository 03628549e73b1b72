//! `bowline ping`: whether a server answers, and how fast.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::time::Instant;

use crate::failure::{Code, Failure};
use crate::render::wire::time;
use crate::screen::OutputArgs;
use crate::session::{Invocation, Session, interrupted};
use crate::target::{TargetArgs, duration};

/// Check that a server answers, and measure how fast
///
/// The modern era has no `ping`: there, the request is `server/discover`.
#[derive(Args)]
pub(crate) struct Ping {
    /// Number of requests to send
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,

    /// Time between two requests
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    interval: Duration,

    /// Keep trying for this long if the server is not up yet
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,

    #[command(flatten)]
    target: TargetArgs,
}

/// Time between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(100);

impl Ping {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let invocation = Invocation::new(&self.target, root)?;
        let begun = Instant::now();
        loop {
            let asked = invocation.run(async |session| self.ask(session).await).await;
            let may_wait = self.wait.is_some_and(|wait| begun.elapsed() < wait);
            match asked {
                Err(failure) if may_wait && failure.code == Code::Unreachable => {
                    tokio::select! {
                        () = tokio::time::sleep(PAUSE) => {}
                        _ = interrupted() => return Err(failure),
                    }
                }
                done => return done,
            }
        }
    }

    async fn ask(&self, session: &Session) -> Result<(), Failure> {
        let screen = &session.screen;
        for number in 0..self.count {
            if number > 0 {
                tokio::time::sleep(self.interval).await;
            }
            let took = session.ping().await?;
            let result = json!({ "seconds": took }).into();
            screen.show(&result, || Ok(format!("answered in {}\n", time(took))))?;
            if screen.is_lost() {
                break;
            }
        }
        Ok(())
    }
}
