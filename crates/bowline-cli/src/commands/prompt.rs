//! `bowline prompt`: a prompt with its arguments filled in.

use std::path::PathBuf;

use bowline::Json;
use bowline::model::Prompt as Listed;
use clap::Args;
use serde_json::{Map, Value, json};

use super::list::PROMPTS;
use crate::arguments::{ArgumentArgs, text_arguments};
use crate::failure::Failure;
use crate::render::content::ContentRenderer;
use crate::screen::OutputArgs;
use crate::session::Invocation;
use crate::target::TargetOptions;

/// Fill in a prompt and show its messages
///
/// Arguments are written as for `bowline call`: key=value, or key=@FILE for a file and key=- for
/// standard input. All of them are text.
#[derive(Args)]
#[command(override_usage = "bowline prompt [OPTIONS] TARGET PROMPT [KEY=VALUE]...\n       \
    bowline prompt [OPTIONS] PROMPT [KEY=VALUE]... -- COMMAND [ARGS]...")]
pub(crate) struct Prompt {
    /// The server, unless a command follows `--`; the prompt; its arguments, which are text
    #[arg(value_name = "TARGET PROMPT KEY=VALUE")]
    words: Vec<String>,

    /// Also send arguments that the prompt does not declare
    #[arg(long)]
    unchecked: bool,

    /// Save images, audio and other binary content to this directory
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    #[command(flatten)]
    options: TargetOptions,
}

impl Prompt {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let (invocation, words) = Invocation::split(&self.options, &self.words, root)?;
        let [name, words @ ..] = words else {
            return Err(Failure::usage("which prompt?").with_remedy("`bowline prompts` lists them"));
        };
        let given = ArgumentArgs::default().read(words)?;
        invocation
            .run(async |session| {
                let schema = if self.unchecked {
                    text_arguments()
                } else {
                    let listed = PROMPTS.fetch(session).await?;
                    let prompts: Vec<(Listed, Json)> = PROMPTS.read(&listed, &session.screen)?;
                    schema(&PROMPTS.find(&prompts, name)?.0)
                };
                let arguments = given.build(Some(&schema), !self.unchecked).map_err(|failure| {
                    failure.with_remedy("`bowline prompts` lists them; --unchecked sends it anyway")
                })?;
                let mut params = json!({ "name": name });
                if !given.is_empty() {
                    params["arguments"] = json!(arguments);
                }
                let screen = &session.screen;
                let result = session.call("prompts/get", params).await?;
                screen.show(&result, || {
                    ContentRenderer::new(screen, self.save).prompt_result(&result)
                })
            })
            .await
    }
}

/// What a prompt takes, as a schema. All of it is text.
fn schema(prompt: &Listed) -> Value {
    let arguments = prompt.arguments.as_deref().unwrap_or_default();
    let properties: Map<String, Value> = arguments
        .iter()
        .map(|it| (it.name.clone(), json!({ "type": "string", "description": it.description })))
        .collect();
    let required = arguments.iter().filter(|it| it.required == Some(true)).map(|it| &it.name);
    let required: Vec<&String> = required.collect();
    json!({ "type": "object", "properties": properties, "required": required })
}
