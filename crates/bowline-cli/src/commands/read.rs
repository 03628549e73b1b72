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

/// A template with its variables replaced; anything else as it is.
fn expanded(uri: &str, values: &[String]) -> Result<String, Failure> {
    let template = match UriTemplate::parse(uri) {
        Ok(template) => template,
        Err(_) if values.is_empty() => return Ok(uri.to_owned()),
        Err(error) => return Err(Failure::usage(format!("{uri:?} is not a template: {error}"))),
    };
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
    let is_missing =
        |name: &&str| !is_optional(uri, name) && !pairs.iter().any(|(known, _)| known == name);
    let missing: Vec<&str> = template.variables().filter(is_missing).collect();
    if !missing.is_empty() {
        let what = format!("{uri} is a template, and needs {}", missing.join(" and "));
        let example: Vec<String> = missing.iter().map(|name| format!("{name}=VALUE")).collect();
        return Err(Failure::usage(what).with_remedy(format!("add {}", example.join(" "))));
    }
    Ok(template.expand(&pairs))
}

/// Whether a template makes sense without a variable: a parameter of the query, as in `{?page}`.
fn is_optional(template: &str, name: &str) -> bool {
    let mut queries = template.split('{').filter(|part| part.starts_with(['?', '&']));
    queries.any(|part| {
        let names = part[1..].split('}').next().unwrap_or_default().split(',');
        names.map(|it| it.split([':', '*']).next().unwrap_or_default()).any(|it| it == name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_expanded() {
        let values = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(expanded("file:///a", &[]).unwrap(), "file:///a");
        assert_eq!(expanded("x://{a}/{b}", &values("a=1/2 b=")).unwrap(), "x://1%2F2/");
        assert_eq!(expanded("x://{a}{?b,c}", &values("a=1")).unwrap(), "x://1");
        let told = expanded("x://{a}", &values("c=1")).unwrap_err().what;
        assert!(told.contains("has no variable \"c\"; it has: a"), "{told}");
        let told = expanded("x://{a}/{+b}{?c}", &values("c=1")).unwrap_err();
        assert!(told.what.ends_with("is a template, and needs a and b"), "{}", told.what);
        assert_eq!(told.remedy.as_deref(), Some("add a=VALUE b=VALUE"));
        assert!(expanded("x://{a}", &[]).is_err());
    }
}
