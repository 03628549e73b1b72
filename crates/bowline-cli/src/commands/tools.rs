//! `bowline tools`: which tools there are, and what each takes and gives.

use bowline::Json;
use bowline::model::Tool;
use clap::Args;

use super::{items, list};
use crate::failure::Failure;
use crate::render::schema;
use crate::render::table::Table;
use crate::schema::View;
use crate::screen::{OutputArgs, Screen, Style};
use crate::session::{Session, Settings};
use crate::target::TargetOptions;
use crate::text::{did_you_mean, line, plain, wrap};

/// List the tools of a server, or show some of them in full
#[derive(Args)]
#[command(override_usage = "bowline tools [OPTIONS] TARGET [TOOL]...\n       \
    bowline tools [OPTIONS] [TOOL]... -- COMMAND [ARGS]...")]
pub(crate) struct Tools {
    /// The server, unless a command follows `--`; tools to show in full
    #[arg(value_name = "TARGET TOOL")]
    words: Vec<String>,

    /// Show every tool in full: what it takes, what it gives
    #[arg(long, short)]
    long: bool,

    #[command(flatten)]
    options: TargetOptions,
}

impl Tools {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let settings = Settings::new(&self.options, root)?;
        let (resolved, names) = self.options.resolve_words(&self.words)?;
        Session::run(&resolved, &settings, async |session| {
            let screen = session.screen();
            let result = list(session, "tools/list", "tools").await?;
            if screen.is_json() && names.is_empty() {
                screen.print_json(&result);
                return Ok(());
            }
            let tools = items::<Tool>(session, &result, "tools")?;
            if names.is_empty() {
                screen.print(&match self.long {
                    true => tools.iter().map(|(tool, _)| in_full(tool, screen)).collect(),
                    false => table(tools.iter().map(|(tool, _)| tool), screen),
                });
                return Ok(());
            }
            for name in names {
                let (tool, exact) = find(&tools, name)?;
                match screen.is_json() {
                    true => screen.print_json(exact),
                    false => screen.print(&in_full(tool, screen)),
                }
            }
            Ok(())
        })
        .await
    }
}

/// A tool, and as it came.
type Listed = (Tool, Json);

/// The tool of this name.
pub(super) fn find<'a>(tools: &'a [Listed], name: &str) -> Result<&'a Listed, Failure> {
    let names = tools.iter().map(|(tool, _)| tool.name.as_str());
    tools.iter().find(|(tool, _)| tool.name == name).ok_or_else(|| unknown(name, names))
}

/// There is no tool of this name; which ones there are.
pub(crate) fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Failure {
    let failure = Failure::usage(format!("there is no tool {name:?}"));
    let near = did_you_mean(name, names);
    failure.with_remedy(near.unwrap_or_else(|| "`bowline tools` lists them".to_owned()))
}

/// The tools, a line each.
pub(crate) fn table<'a>(tools: impl IntoIterator<Item = &'a Tool>, screen: &Screen) -> String {
    let mut tools = tools.into_iter().peekable();
    if tools.peek().is_none() {
        return "no tools\n".to_owned();
    }
    let mut table = Table::new(&["TOOL", "DESCRIPTION"]);
    for tool in tools {
        let about = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
        table.row([line(&tool.name), line(about)]);
    }
    table.render(screen)
}

/// A tool with all that is known of it.
pub(crate) fn in_full(tool: &Tool, screen: &Screen) -> String {
    let paint = screen.out;
    let mut text = paint.paint(Style::Bold, &line(&tool.name));
    let title = tool.title.as_deref().or_else(|| tool.annotations.as_ref()?.title.as_deref());
    if let Some(title) = title.filter(|title| *title != tool.name) {
        text += &format!("  {}", line(title));
    }
    text.push('\n');
    for part in wrap(&plain(tool.description.as_deref().unwrap_or_default()), screen.width() - 2) {
        text += format!("  {part}").trim_end();
        text.push('\n');
    }
    let hints = hints(tool);
    if !hints.is_empty() {
        text += &format!("  {}\n", paint.paint(Style::Dim, &hints.join(", ")));
    }
    let input = tool.input_schema.to_value();
    match View::new(&input).fields().is_empty() {
        true => text += &format!("\n  {}\n", paint.paint(Style::Dim, "no arguments")),
        false => {
            text += &format!("\n  {}\n", paint.paint(Style::Dim, "arguments (* required)"));
            text += &schema::fields(&input, screen);
        }
    }
    if let Some(output) = &tool.output_schema {
        text += &format!("\n  {}\n", paint.paint(Style::Dim, "result"));
        text += &schema::fields(&output.to_value(), screen);
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
