//! `bowline ping`: is the server there, and how long does it take?

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::failure::{Code, Failure};
use crate::render::wire::time;
use crate::screen::OutputArgs;
use crate::session::{Session, Settings, interrupted};
use crate::target::{Resolved, TargetArgs, duration};

/// Ask a server whether it is there
///
/// The modern era has no `ping`: there, the server is asked what it can do.
#[derive(Args)]
pub(crate) struct Ping {
    /// How often to ask
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,

    /// How long to wait between two questions
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    interval: Duration,

    /// Try again for so long if the server is not there yet
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,

    #[command(flatten)]
    target: TargetArgs,
}

/// How long to wait before another try.
const PAUSE: Duration = Duration::from_millis(100);

impl Ping {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let settings = Settings::new(&self.target.options, root)?;
        let resolved = self.target.resolve()?;
        let begun = tokio::time::Instant::now();
        loop {
            match self.ask(&resolved, &settings).await {
                Err(failure)
                    if failure.code == Code::Unreachable
                        && self.wait.is_some_and(|wait| begun.elapsed() < wait) =>
                {
                    tokio::select! {
                        () = tokio::time::sleep(PAUSE) => {}
                        () = interrupted() => return Err(failure),
                    }
                }
                done => return done,
            }
        }
    }

    async fn ask(&self, resolved: &Resolved, settings: &Settings) -> Result<(), Failure> {
        Session::run(resolved, settings, async |session| {
            let screen = session.screen();
            for number in 0..self.count {
                if number > 0 {
                    tokio::time::sleep(self.interval).await;
                }
                let begun = tokio::time::Instant::now();
                session.client().ping().await?;
                let took = begun.elapsed().as_secs_f64();
                match screen.is_json() {
                    true => screen.print_json(&json!({ "seconds": took }).into()),
                    false => screen.print(&format!("answered in {}\n", time(took))),
                }
                if screen.is_lost() {
                    break;
                }
            }
            Ok(())
        })
        .await
    }
}
