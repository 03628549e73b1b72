//! `bowline call`: calls a tool, its arguments typed by its schema.

use std::path::PathBuf;

use bowline::Json;
use bowline::model::{CallToolResult, Tool};
use clap::Args;
use serde_json::{Value, json};

use super::{items, list, tools};
use crate::arguments::ArgumentArgs;
use crate::failure::{Code, Failure};
use crate::render::content::Shower;
use crate::screen::OutputArgs;
use crate::session::{Session, Settings};
use crate::target::TargetOptions;

/// Call a tool
///
/// Arguments are typed by the tool's schema: key=value is a string, a number or whatever the tool
/// takes; key:=JSON is JSON as it is. a.b=value reaches into objects, a repeated key fills an
/// array, key=@FILE reads a file and key=- standard input. What is not given is not sent.
#[derive(Args)]
#[command(override_usage = "bowline call [OPTIONS] TARGET TOOL [KEY=VALUE]...\n       \
    bowline call [OPTIONS] TOOL [KEY=VALUE]... -- COMMAND [ARGS]...")]
pub(crate) struct Call {
    /// The server, unless a command follows `--`; the tool; its arguments
    #[arg(value_name = "TARGET TOOL KEY=VALUE")]
    words: Vec<String>,

    #[command(flatten)]
    arguments: ArgumentArgs,

    /// Send what does not fit the tool's schema, too
    #[arg(long)]
    unchecked: bool,

    /// Save pictures, sound and other bytes of the result here
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    #[command(flatten)]
    options: TargetOptions,
}

impl Call {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let settings = Settings::new(&self.options, root)?;
        let (resolved, words) = self.options.resolve_words(&self.words)?;
        let Some((name, words)) = words.split_first() else {
            return Err(Failure::usage("which tool?").with_remedy("`bowline tools` lists them"));
        };
        // Said before anything is started.
        let given = self.arguments.read(words)?;
        Session::run(&resolved, &settings, async |session| {
            let screen = session.screen();
            let tools = match listed(session).await {
                Ok(tools) => tools,
                Err(failure) if self.unchecked => {
                    screen.warn(&format!("the tools cannot be listed: {}", failure.what));
                    Vec::new()
                }
                Err(failure) => return Err(failure),
            };
            let tool = match tools::find(&tools, name) {
                Ok((tool, _)) => Some(tool),
                Err(_) if self.unchecked => None,
                Err(failure) => return Err(failure),
            };
            let schema = tool.map(|tool| tool.input_schema.to_value());
            let arguments = given.build(schema.as_ref(), !self.unchecked)?;
            let params = json!({ "name": name, "arguments": arguments });
            let call = session.client().call_json("tools/call", params);
            let result = call.on_progress(session.progress()).await?;
            let output = tool.and_then(|tool| tool.output_schema.as_ref());
            self.show(session, &result, output)
        })
        .await
    }

    fn show(&self, session: &Session, result: &Json, output: Option<&Json>) -> Result<(), Failure> {
        let screen = session.screen();
        let read = result.parse::<CallToolResult>();
        if let (Ok(read), Some(schema)) = (&read, output)
            && let Some(problem) = promised(read, &schema.to_value())
        {
            screen.warn(&format!("the result is not what the tool promises: {problem}"));
        }
        if screen.is_json() {
            screen.print_json(result);
        } else {
            let read = read.as_ref().map_err(|error| {
                screen.print(&crate::render::json::pretty(result, screen.out));
                let what = format!("the server's answer is no result of a tool: {error}");
                Failure::new(Code::Refused, what)
            })?;
            screen.print(&Shower::new(screen, self.save.clone()).result(read)?);
        }
        match read.is_ok_and(|read| read.is_error == Some(true)) {
            true => {
                let what = "the tool says that it failed";
                Err(if screen.is_json() {
                    Failure::silent(Code::ToolFailed)
                } else {
                    Failure::new(Code::ToolFailed, what)
                })
            }
            false => Ok(()),
        }
    }
}

/// The tools of a server, and as they came.
async fn listed(session: &Session) -> Result<Vec<(Tool, Json)>, Failure> {
    let result = list(session, "tools/list", "tools").await?;
    items(session, &result, "tools")
}

/// What is wrong with a result, by the tool's own word.
pub(crate) fn promised(result: &CallToolResult, schema: &Value) -> Option<String> {
    if result.is_error == Some(true) {
        return None;
    }
    let Some(content) = &result.structured_content else {
        return Some(
            "structuredContent is missing, though the tool has an output schema".to_owned(),
        );
    };
    let schema = bowline_schema::Schema::compile(schema).ok()?;
    schema.validate("structuredContent", &content.to_value()).err().map(|it| it.to_string())
}
