//! `bowline raw`: sends any request, unchanged.

use bowline::Json;
use clap::Args;

use crate::arguments::object;
use crate::failure::Failure;
use crate::render::json::pretty;
use crate::screen::OutputArgs;
use crate::session::Invocation;
use crate::target::TargetOptions;

/// Send any request and print its result unchanged
///
/// The parameters are a JSON object; without them, {} is sent. What the protocol requires beside
/// them is added: the id, and in the modern era the client's identity.
#[derive(Args)]
#[command(override_usage = "bowline raw [OPTIONS] TARGET METHOD [JSON]\n       \
    bowline raw [OPTIONS] METHOD [JSON] -- COMMAND [ARGS]...")]
pub(crate) struct Raw {
    /// The server, unless a command follows `--`; the method, such as tools/list; its parameters
    #[arg(value_name = "TARGET METHOD JSON")]
    words: Vec<String>,

    /// Send a notification, and do not wait for an answer
    #[arg(long)]
    notify: bool,

    #[command(flatten)]
    options: TargetOptions,
}

impl Raw {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let (invocation, words) = Invocation::split(&self.options, &self.words, root)?;
        let (method, params) = match words {
            [method] => (method, Json::empty_object()),
            [method, params] => (method, object(params.clone(), "the parameters")?),
            [] => return Err(Failure::usage("which method?").with_remedy("such as tools/list")),
            _ => {
                let what = "expected one JSON object after the method";
                return Err(Failure::usage(what).with_remedy("quote it: '{\"name\":\"x\"}'"));
            }
        };
        invocation
            .run(async |session| {
                if self.notify {
                    return Ok(session.client.notify(method, Some(&params)).await?);
                }
                let screen = &session.screen;
                let result = session.call(method, params).await?;
                screen.show(&result, || Ok(pretty(&result, screen.out)))
            })
            .await
    }
}
