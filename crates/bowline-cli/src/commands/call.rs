//! `bowline call`: calls a tool, its arguments typed by its schema.

use std::path::PathBuf;

use bowline::client::{Started, TaskHandle};
use bowline::model::{CallToolResult, TaskSupport, Tool};
use bowline::{Json, Revision};
use clap::Args;
use serde_json::{Value, json};

use super::list::TOOLS;
use super::tasks;
use crate::arguments::ArgumentArgs;
use crate::failure::{Code, Failure, malformed};
use crate::render::content::ContentRenderer;
use crate::render::json::{object, pretty};
use crate::screen::{OutputArgs, Screen};
use crate::session::{Invocation, Session};
use crate::target::TargetOptions;
use crate::text::line;

/// Call a tool
///
/// The tool's schema decides the types of arguments: key=value becomes a string, a number or
/// whatever the tool takes; key:=JSON is passed as JSON. a.b=value sets a member of an object,
/// a[0].b=value an item of an array, a repeated key fills an array, key=@FILE reads a file and
/// key=- standard input. Arguments that are not given are not sent.
#[derive(Args)]
#[command(override_usage = "bowline call [OPTIONS] TARGET TOOL [KEY=VALUE]...\n       \
    bowline call [OPTIONS] TOOL [KEY=VALUE]... -- COMMAND [ARGS]...")]
pub(crate) struct Call {
    /// The server, unless a command follows `--`; the tool; its arguments
    #[arg(value_name = "TARGET TOOL KEY=VALUE")]
    words: Vec<String>,

    #[command(flatten)]
    arguments: ArgumentArgs,

    /// Send the arguments even if they do not match the tool's schema
    #[arg(long)]
    unchecked: bool,

    /// Start the call as a task, print its id, and do not wait for it; `bowline tasks wait` prints
    /// the result
    ///
    /// With --output json, prints the task: taskId, status, createdAt, lastUpdatedAt, ttlMs,
    /// statusMessage, pollIntervalMs. A server may answer at once instead: then the result is
    /// printed.
    #[arg(long)]
    task: bool,

    /// Save images, audio and other binary content to this directory
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    #[command(flatten)]
    options: TargetOptions,
}

impl Call {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let (invocation, words) = Invocation::split(&self.options, &self.words, root)?;
        let [name, words @ ..] = words else {
            return Err(Failure::usage("which tool?").with_remedy("`bowline tools` lists them"));
        };
        // Fails before anything is started.
        let given = self.arguments.read(words)?;
        invocation
            .run(async |session| {
                let screen = &session.screen;
                let result = TOOLS.fetch(session).await;
                let tools: Vec<(Tool, Json)> =
                    match result.and_then(|result| TOOLS.read(&result, screen)) {
                        Err(failure) if self.unchecked => {
                            screen.warn(&format!("cannot list the tools: {}", failure.what));
                            Vec::new()
                        }
                        tools => tools?,
                    };
                let tool = match TOOLS.find(&tools, name) {
                    Err(failure) if !self.unchecked => return Err(failure),
                    found => found.ok().map(|(tool, _)| tool),
                };
                let schema = tool.map(|tool| tool.input_schema.to_value());
                let arguments = given
                    .build(schema.as_ref(), !self.unchecked)
                    .map_err(|failure| failure.with_remedy(TAKES))?;
                let Some(result) = self.make(session, (name, tool), &arguments).await? else {
                    return Ok(());
                };
                let output = tool.and_then(|tool| tool.output_schema.as_ref());
                show(screen, &result, output, self.save.clone())
            })
            .await
    }
}

impl Call {
    /// Makes the call. `None` if it is a task that nobody waits for.
    async fn make(
        &self,
        session: &Session,
        (name, tool): (&str, Option<&Tool>),
        arguments: &Json,
    ) -> Result<Option<Json>, Failure> {
        let revision = session.client.peer().map(|peer| peer.revision);
        let support = tool.and_then(|tool| tool.execution.as_ref()?.task_support);
        let is_requested = revision.is_some_and(Revision::has_requested_tasks);
        if self.task {
            tasks::check_offered(&session.client)?;
            if is_requested
                && tool.is_some()
                && support.is_none_or(|it| it == TaskSupport::Forbidden)
            {
                let failure = Failure::usage(format!("{name:?} cannot run as a task"));
                return Err(failure.with_remedy("call it without --task"));
            }
        } else if !is_requested || support != Some(TaskSupport::Required) {
            return session.call("tools/call", params(name, arguments)).await.map(Some);
        }
        match session.start(name, arguments).await? {
            Started::Task(task) if self.task => {
                self.tell(&session.screen, &task, revision);
                Ok(None)
            }
            Started::Task(task) => tasks::resume(session, task.id()).await.map(Some),
            Started::Done(result) => {
                if self.task {
                    session.screen.note("the server answered at once; there is no task");
                }
                let result = Json::new(&result);
                result.map(Some).map_err(|error| malformed(&error.to_string()))
            }
        }
    }

    /// Prints the id of a task, and says how to wait for it.
    fn tell(&self, screen: &Screen, task: &TaskHandle, revision: Option<Revision>) {
        let id = task.id();
        match task.created().filter(|_| screen.is_json()) {
            Some(state) => screen.print_json(&tasks::for_programs(state)),
            None => screen.print(&format!("{}\n", line(id))),
        }
        let quoted = |word: &str| shlex::try_quote(word).map_or_else(|_| line(word), Into::into);
        let revision = revision.filter(|_| self.options.revision.is_some());
        let revision = revision.map(|it| format!("--revision {it} ")).unwrap_or_default();
        if self.options.is_command() {
            screen.note("the task ends with its server, unless the server stores its tasks");
            let id = quoted(id);
            screen.note(&format!("to wait for it: bowline tasks wait {revision}{id} -- COMMAND"));
        } else {
            let (target, id) = (quoted(&self.words[0]), quoted(id));
            screen.note(&format!("to wait for it: bowline tasks wait {revision}{target} {id}"));
        }
    }
}

/// The parameters of `tools/call`.
pub(crate) fn params(name: &str, arguments: &Json) -> Json {
    object([("name", &*json!(name).to_string()), ("arguments", arguments.as_str())])
}

const TAKES: &str = "`bowline tools` shows what it takes; --unchecked sends it anyway";

/// Prints the result of a tool.
pub(super) fn show(
    screen: &Screen,
    result: &Json,
    output: Option<&Json>,
    save: Option<PathBuf>,
) -> Result<(), Failure> {
    let read = result.parse::<CallToolResult>();
    if let (Ok(read), Some(schema)) = (&read, output)
        && let Some(problem) = mismatch(read, &schema.to_value())
    {
        screen.warn(&format!("the result does not match the tool's output schema: {problem}"));
    }
    screen.show(result, || match &read {
        Ok(read) => ContentRenderer::new(screen, save).tool_result(read),
        Err(error) => {
            screen.print(&pretty(result, screen.out));
            let what = format!("the server's answer is not a tool result: {error}");
            Err(Failure::new(Code::Refused, what))
        }
    })?;
    let what = if screen.is_json() { "" } else { "the tool reported an error" };
    Code::of_result(result).map_or(Ok(()), |code| Err(Failure::new(code, what)))
}

/// How a result differs from the tool's output schema.
pub(crate) fn mismatch(result: &CallToolResult, schema: &Value) -> Option<String> {
    if result.is_error == Some(true) {
        return None;
    }
    let Some(content) = &result.structured_content else {
        return Some("structuredContent is missing".to_owned());
    };
    let schema = bowline_schema::Schema::compile(schema).ok()?;
    schema.validate("structuredContent", &content.to_value()).err().map(|it| it.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_sent_to_the_letter() {
        let arguments = Json::from_text(r#"{"n": 1.50}"#.to_owned()).unwrap();
        let expected = r#"{"name":"a\"b","arguments":{"n": 1.50}}"#;
        assert_eq!(params("a\"b", &arguments).as_str(), expected);
    }
}
