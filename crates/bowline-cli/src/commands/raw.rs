//! `bowline raw`: any request, as it is.

use bowline::Json;
use clap::Args;

use crate::failure::Failure;
use crate::screen::OutputArgs;
use crate::session::{Session, Settings};
use crate::target::TargetOptions;

/// Send any request and print its result as it came
///
/// The parameters are a JSON object. What the protocol demands beside them is added: the id, and
/// in the modern era who asks. Without parameters, {} is sent.
#[derive(Args)]
#[command(override_usage = "bowline raw [OPTIONS] TARGET METHOD [JSON]\n       \
    bowline raw [OPTIONS] METHOD [JSON] -- COMMAND [ARGS]...")]
pub(crate) struct Raw {
    /// The server, unless a command follows `--`; the method, such as tools/list; its parameters
    #[arg(value_name = "TARGET METHOD JSON")]
    words: Vec<String>,

    /// Send a notification: no answer is waited for
    #[arg(long)]
    notify: bool,

    #[command(flatten)]
    options: TargetOptions,
}

impl Raw {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let settings = Settings::new(&self.options, root)?;
        let (resolved, words) = self.options.resolve_words(&self.words)?;
        let (method, params) = match words {
            [method] => (method, Json::empty_object()),
            [method, params] => (method, object(params)?),
            [] => return Err(Failure::usage("which method?").with_remedy("such as tools/list")),
            _ => {
                let what = "after the method comes one JSON object, and nothing else";
                return Err(Failure::usage(what).with_remedy("quote it: '{\"name\":\"x\"}'"));
            }
        };
        Session::run(&resolved, &settings, async |session| {
            if self.notify {
                session.client().notify(method, Some(&params)).await?;
                return Ok(());
            }
            let screen = session.screen();
            let call = session.client().call_json(method, params);
            let result = call.on_progress(session.progress()).await?;
            match screen.is_json() {
                true => screen.print_json(&result),
                false => screen.print(&crate::render::json::pretty(&result, screen.out)),
            }
            Ok(())
        })
        .await
    }
}

/// Parameters from the command line.
pub(crate) fn object(text: &str) -> Result<Json, Failure> {
    let json = Json::from_text(text.to_owned())
        .map_err(|error| Failure::usage(format!("the parameters are no JSON: {error}")))?;
    match json.is_object() {
        true => Ok(json),
        false => Err(Failure::usage("the parameters are no JSON object: {…}")),
    }
}
