//! `bowline resources`, `bowline templates` and `bowline read`.

use std::path::PathBuf;

use bowline::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use bowline::uri_template::UriTemplate;
use clap::Args;
use serde_json::json;

use super::{items, list, read};
use crate::failure::Failure;
use crate::render::content::{Shower, size};
use crate::render::table::Table;
use crate::screen::{OutputArgs, Screen, Style};
use crate::session::{Session, Settings};
use crate::target::{TargetArgs, TargetOptions};
use crate::text::line;

/// List the resources of a server
#[derive(Args)]
pub(crate) struct Resources {
    #[command(flatten)]
    target: TargetArgs,
}

impl Resources {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let settings = Settings::new(&self.target.options, root)?;
        Session::run(&self.target.resolve()?, &settings, async |session| {
            let screen = session.screen();
            let result = list(session, "resources/list", "resources").await?;
            if screen.is_json() {
                screen.print_json(&result);
                return Ok(());
            }
            let resources = items::<Resource>(session, &result, "resources")?;
            screen
                .print(&table_of_resources(resources.iter().map(|(resource, _)| resource), screen));
            Ok(())
        })
        .await
    }
}

/// Resources, a line each.
pub(crate) fn table_of_resources<'a>(
    resources: impl IntoIterator<Item = &'a Resource>,
    screen: &Screen,
) -> String {
    let mut resources = resources.into_iter().peekable();
    if resources.peek().is_none() {
        return "no resources; `bowline templates` may list families of them\n".to_owned();
    }
    let mut table = Table::new(&["URI", "NAME", "TYPE", "SIZE", "DESCRIPTION"]);
    for resource in resources {
        let bytes = resource.size.and_then(|size| usize::try_from(size).ok());
        table.row([
            line(&resource.uri),
            line(resource.title.as_deref().unwrap_or(&resource.name)),
            line(resource.mime_type.as_deref().unwrap_or_default()),
            bytes.map(size).unwrap_or_default(),
            line(resource.description.as_deref().unwrap_or_default()),
        ]);
    }
    table.render(screen)
}

/// List the resource templates of a server: families of resources
#[derive(Args)]
pub(crate) struct Templates {
    #[command(flatten)]
    target: TargetArgs,
}

impl Templates {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let settings = Settings::new(&self.target.options, root)?;
        Session::run(&self.target.resolve()?, &settings, async |session| {
            let screen = session.screen();
            let result = list(session, "resources/templates/list", "resourceTemplates").await?;
            if screen.is_json() {
                screen.print_json(&result);
                return Ok(());
            }
            let templates = items::<ResourceTemplate>(session, &result, "resourceTemplates")?;
            let templates = templates.iter().map(|(template, _)| template);
            screen.print(&table_of_templates(templates, screen));
            Ok(())
        })
        .await
    }
}

/// Templates, a line each.
pub(crate) fn table_of_templates<'a>(
    templates: impl IntoIterator<Item = &'a ResourceTemplate>,
    screen: &Screen,
) -> String {
    let mut templates = templates.into_iter().peekable();
    if templates.peek().is_none() {
        return "no resource templates\n".to_owned();
    }
    let mut table = Table::new(&["TEMPLATE", "NAME", "TYPE", "DESCRIPTION"]);
    for template in templates {
        table.row([
            line(&template.uri_template),
            line(template.title.as_deref().unwrap_or(&template.name)),
            line(template.mime_type.as_deref().unwrap_or_default()),
            line(template.description.as_deref().unwrap_or_default()),
        ]);
    }
    table.render(screen)
}

/// Read a resource
///
/// The URI may be a template, such as `file:///{path}`, followed by key=value for its parts.
#[derive(Args)]
#[command(override_usage = "bowline read [OPTIONS] TARGET URI [KEY=VALUE]...\n       \
    bowline read [OPTIONS] URI [KEY=VALUE]... -- COMMAND [ARGS]...")]
pub(crate) struct Read {
    /// The server, unless a command follows `--`; the URI; parts of it, if it is a template
    #[arg(value_name = "TARGET URI KEY=VALUE")]
    words: Vec<String>,

    /// Save pictures, sound and other bytes here
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    #[command(flatten)]
    options: TargetOptions,
}

impl Read {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let settings = Settings::new(&self.options, root)?;
        let (resolved, words) = self.options.resolve_words(&self.words)?;
        let Some((uri, parts)) = words.split_first() else {
            let failure = Failure::usage("which resource?");
            return Err(failure.with_remedy("`bowline resources` lists them"));
        };
        let uri = filled_in(uri, parts)?;
        Session::run(&resolved, &settings, async |session| {
            let screen = session.screen();
            let call = session.client().call_json("resources/read", json!({ "uri": uri }));
            let result = call.on_progress(session.progress()).await?;
            if screen.is_json() {
                screen.print_json(&result);
                return Ok(());
            }
            let contents = read::<ReadResourceResult>(&result)?.contents;
            let mut shower = Shower::new(screen, self.save.clone());
            screen.print(&all_parts(&contents, &mut shower, screen)?);
            Ok(())
        })
        .await
    }
}

/// What a resource holds, all parts of it.
///
/// # Errors
/// When something cannot be saved.
pub(crate) fn all_parts(
    contents: &[ResourceContents],
    shower: &mut Shower<'_>,
    screen: &Screen,
) -> Result<String, Failure> {
    let mut text = String::new();
    for part in contents {
        if contents.len() > 1 {
            text += &format!("{}\n", screen.out.paint(Style::Dim, &line(&part.uri)));
        }
        text += &shower.resource(part)?;
    }
    Ok(text)
}

/// A template with its parts filled in; a URI without parts as it is.
fn filled_in(uri: &str, parts: &[String]) -> Result<String, Failure> {
    if parts.is_empty() {
        return Ok(uri.to_owned());
    }
    let template = UriTemplate::parse(uri)
        .map_err(|error| Failure::usage(format!("{uri:?} is no template: {error}")))?;
    let mut values = Vec::new();
    for part in parts {
        let wrong = || Failure::usage(format!("{part:?}: expected key=value"));
        let (name, value) = part.split_once('=').ok_or_else(wrong)?;
        if !template.variables().any(|known| known == name) {
            let known: Vec<&str> = template.variables().collect();
            let what = format!("{uri} has no part {name:?}; it has: {}", known.join(", "));
            return Err(Failure::usage(what));
        }
        values.push((name, value));
    }
    Ok(template.expand(&values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_in() {
        let part = |text: &str| vec![text.to_owned()];
        assert_eq!(filled_in("file:///{a}", &[]).unwrap(), "file:///{a}");
        assert_eq!(filled_in("x://{a}/{b}", &part("a=1 2")).unwrap(), "x://1%202/");
        let told = filled_in("x://{a}", &part("c=1")).unwrap_err().what;
        assert!(told.contains("has no part \"c\"; it has: a"), "{told}");
    }
}
