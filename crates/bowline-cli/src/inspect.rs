//! `bowline inspect`: the page in a browser, served by this program. `bowline-inspector` has the
//! page and its guard; here is what the page can do.

mod calling;
mod desk;
mod link;
mod load;
mod login;
mod places;
mod question;
mod recorded;
mod running;
mod tap;

use bowline::client::auth::open_page;
use bowline_inspector::{Feed, Keep, Place, Site};
use clap::Args;
use serde_json::json;
use tokio::task::LocalSet;

use self::desk::Desk;
use crate::failure::{Code, Failure};
use crate::screen::{OutputArgs, Screen};
use crate::session::told_to_stop;
use crate::target::TargetArgs;

/// Explore and debug servers in a browser: call tools, answer questions, watch every message
///
/// Opens a page that this program serves on 127.0.0.1. The address works once: the page it opens
/// gets a key, and nothing else can use the program. With a target, connects to it at once.
#[derive(Args)]
pub(crate) struct Inspect {
    /// The port of the page, or a free port if it is in use
    #[arg(long, value_name = "PORT", default_value_t = 6280)]
    port: u16,

    /// The port of the apps of servers, or a free port if it is in use [default: any]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    app_port: u16,

    /// Print the address, and do not open a browser
    #[arg(long)]
    no_browser: bool,

    #[command(flatten)]
    target: TargetArgs,
}

impl Inspect {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let output = self.target.options.output.clone().or(root);
        if output.record.is_some() {
            // Each connection, check and examination would write over the last one.
            let what = "bowline inspect does not take --record";
            return Err(Failure::usage(what).with_remedy("Messages on the page saves a session"));
        }
        let screen = Screen::new(&output);
        let feed = Feed::default();
        let site = Site::bind(self.port, self.app_port, feed.clone()).await;
        let failed = |error| Failure::new(Code::Usage, format!("cannot listen: {error}"));
        let site = site.map_err(failed)?;
        let address = site.address();
        let given = match self.target.options.is_given(self.target.word()) {
            true => Some(self.target.resolve()?),
            false => None,
        };
        let is_given = given.is_some();
        let program = json!({ "event": "program", "version": env!("CARGO_PKG_VERSION") });
        feed.publish(Keep::As("program"), &program);
        let place = (site.apps(), site.origin());
        let desk = Desk::new(self.target.options.clone(), root.clone(), given, feed, place);
        screen.say(&format!("The inspector is open at\n\n  {address}\n\nCtrl-C ends it.\n"));
        if !self.no_browser && open_page(&site.brief_address()).is_err() {
            screen.note("no browser could be started; open the address yourself");
        }
        let local = LocalSet::new();
        let serving = async {
            if is_given {
                desk.connect(Place::Given { given: true }.into());
            }
            let acting = desk.clone();
            tokio::select! {
                () = site.serve(async move |action| acting.act(action).await) => {}
                () = told_to_stop() => {}
            }
            desk.close_all().await;
        };
        local.run_until(serving).await;
        Ok(())
    }
}
