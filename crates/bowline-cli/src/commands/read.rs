//! `bowline read`: a resource, by its URI or by a template.

use std::path::PathBuf;

use bowline::uri_template::UriTemplate;
use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::render::content::ContentRenderer;
use crate::screen::OutputArgs;
use crate::session::Invocation;
use crate::target::TargetOptions;

/// Read a resource
///
/// The URI may be a template such as `file:///{path}`, followed by key=value for its variables.
#[derive(Args)]
#[command(override_usage = "bowline read [OPTIONS] TARGET URI [KEY=VALUE]...\n       \
    bowline read [OPTIONS] URI [KEY=VALUE]... -- COMMAND [ARGS]...")]
pub(crate) struct Read {
    /// The server, unless a command follows `--`; the URI; values for a template's variables
    #[arg(value_name = "TARGET URI KEY=VALUE")]
    words: Vec<String>,

    /// Save images, audio and other binary content to this directory
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    #[command(flatten)]
    options: TargetOptions,
}

impl Read {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let (invocation, words) = Invocation::split(&self.options, &self.words, root)?;
        let [uri, values @ ..] = words else {
            let failure = Failure::usage("which resource?");
            return Err(failure.with_remedy("`bowline resources` lists them"));
        };
        let params = json!({ "uri": expanded(uri, values)? });
        invocation
            .run(async |session| {
                let screen = &session.screen;
                let result = session.call("resources/read", params).await?;
                screen.show(&result, || {
                    ContentRenderer::new(screen, self.save).resource_result(&result)
                })
            })
            .await
    }
}

/// A template with its variables replaced; a URI without values as it is.
fn expanded(uri: &str, values: &[String]) -> Result<String, Failure> {
    if values.is_empty() {
        return Ok(uri.to_owned());
    }
    let template = UriTemplate::parse(uri)
        .map_err(|error| Failure::usage(format!("{uri:?} is not a template: {error}")))?;
    let mut pairs = Vec::new();
    for value in values {
        let wrong = || Failure::usage(format!("{value:?}: expected key=value"));
        let (name, value) = value.split_once('=').ok_or_else(wrong)?;
        if !template.variables().any(|known| known == name) {
            let known: Vec<&str> = template.variables().collect();
            let what = format!("{uri} has no variable {name:?}; it has: {}", known.join(", "));
            return Err(Failure::usage(what));
        }
        pairs.push((name, value));
    }
    Ok(template.expand(&pairs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_expanded() {
        let value = |text: &str| vec![text.to_owned()];
        assert_eq!(expanded("file:///{a}", &[]).unwrap(), "file:///{a}");
        assert_eq!(expanded("x://{a}/{b}", &value("a=1 2")).unwrap(), "x://1%202/");
        let told = expanded("x://{a}", &value("c=1")).unwrap_err().what;
        assert!(told.contains("has no variable \"c\"; it has: a"), "{told}");
    }
}
