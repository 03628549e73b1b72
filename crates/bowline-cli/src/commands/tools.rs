//! `bowline tools`: the tools of a server, and what each takes and returns.

use bowline::Json;
use bowline::model::Tool;
use clap::Args;

use super::list::{Filter, TOOLS};
use crate::failure::Failure;
use crate::render::schema;
use crate::schema::View;
use crate::screen::{OutputArgs, Screen, Style};
use crate::session::Invocation;
use crate::target::TargetOptions;
use crate::text::{line, paragraphs};

/// List the tools of a server, or show some of them in full
#[derive(Args)]
#[command(override_usage = "bowline tools [OPTIONS] TARGET [TOOL]...\n       \
    bowline tools [OPTIONS] [TOOL]... -- COMMAND [ARGS]...")]
pub(crate) struct Tools {
    /// The server, unless a command follows `--`; tools to show in full
    #[arg(value_name = "TARGET TOOL")]
    words: Vec<String>,

    /// Show every tool in full: its arguments and its result
    #[arg(long, short)]
    long: bool,

    #[command(flatten)]
    filter: Filter,

    #[command(flatten)]
    options: TargetOptions,
}

impl Tools {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let (invocation, names) = Invocation::split(&self.options, &self.words, root)?;
        invocation
            .run(async |session| {
                let screen = &session.screen;
                let result = self.filter.apply(&TOOLS, TOOLS.fetch(session).await?)?;
                if names.is_empty() {
                    return screen.show(&result, || all(&result, self.long, screen));
                }
                let tools: Vec<(Tool, Json)> = TOOLS.read(&result, screen)?;
                for name in names {
                    let (tool, exact) = TOOLS.find(&tools, name)?;
                    screen.show(exact, || Ok(in_full(tool, screen)))?;
                }
                Ok(())
            })
            .await
    }
}

fn all(result: &Json, in_detail: bool, screen: &Screen) -> Result<String, Failure> {
    if !in_detail {
        return Ok(TOOLS.table(&TOOLS.items(result, screen)?, screen));
    }
    let tools: Vec<(Tool, Json)> = TOOLS.read(result, screen)?;
    Ok(tools.iter().map(|(tool, _)| in_full(tool, screen)).collect())
}

/// Everything known about a tool.
pub(crate) fn in_full(tool: &Tool, screen: &Screen) -> String {
    let paint = screen.out;
    let mut text = paint.paint(Style::Bold, &line(&tool.name));
    let title = tool.title.as_deref().or_else(|| tool.annotations.as_ref()?.title.as_deref());
    if let Some(title) = title.filter(|title| *title != tool.name) {
        text += &format!("  {}", line(title));
    }
    text.push('\n');
    text += &paragraphs(tool.description.as_deref().unwrap_or_default(), screen.width());
    let hints = hints(tool);
    if !hints.is_empty() {
        text += &format!("  {}\n", paint.paint(Style::Dim, &hints.join(", ")));
    }
    let heading = |text: &str| format!("\n  {}\n", paint.paint(Style::Dim, text));
    let input = View::new(&tool.input_schema.to_value());
    if input.properties().is_empty() {
        text += &heading("no arguments");
    } else {
        text += &heading("arguments (* required)");
        text += &schema::fields(&input, screen);
    }
    if let Some(output) = &tool.output_schema {
        text += &heading("result");
        text += &schema::fields(&View::new(&output.to_value()), screen);
    }
    text.push('\n');
    text
}

fn hints(tool: &Tool) -> Vec<&'static str> {
    let Some(hints) = &tool.annotations else { return Vec::new() };
    let all = [
        (hints.read_only_hint, "read-only", "writes"),
        (hints.destructive_hint, "destructive", "not destructive"),
        (hints.idempotent_hint, "idempotent", "not idempotent"),
        (hints.open_world_hint, "open world", "closed world"),
    ];
    all.iter().filter_map(|(hint, yes, no)| hint.map(|is| if is { *yes } else { *no })).collect()
}
