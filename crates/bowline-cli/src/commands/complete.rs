//! `bowline complete`: what an argument of a prompt or a part of a template could become.

use bowline::model::CompleteResult;
use clap::Args;
use serde_json::{Value, json};

use super::{prompts, read};
use crate::failure::Failure;
use crate::screen::{OutputArgs, Style};
use crate::session::{Session, Settings};
use crate::target::TargetOptions;
use crate::text::line;

/// Ask what an argument of a prompt, or a part of a resource template, could become
///
/// The first KEY=VALUE is completed; VALUE is how it begins, and may be empty. Those after it are
/// filled in already.
#[derive(Args)]
#[command(
    override_usage = "bowline complete [OPTIONS] TARGET PROMPT|TEMPLATE KEY=VALUE...\n       \
    bowline complete [OPTIONS] PROMPT|TEMPLATE KEY=VALUE... -- COMMAND [ARGS]..."
)]
pub(crate) struct Complete {
    /// The server, unless a command follows `--`; a prompt's name or a template; its arguments
    #[arg(value_name = "TARGET PROMPT KEY=VALUE")]
    words: Vec<String>,

    #[command(flatten)]
    options: TargetOptions,
}

impl Complete {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let settings = Settings::new(&self.options, root)?;
        let (resolved, words) = self.options.resolve_words(&self.words)?;
        let params = params(words)?;
        Session::run(&resolved, &settings, async |session| {
            let screen = session.screen();
            let result = session.client().call_json("completion/complete", params).await?;
            if screen.is_json() {
                screen.print_json(&result);
                return Ok(());
            }
            let completion = read::<CompleteResult>(&result)?.completion;
            for value in &completion.values {
                screen.print(&format!("{}\n", line(value)));
            }
            let shown = completion.values.len() as u64;
            let more = completion.total.map(|total| total.saturating_sub(shown));
            let more = match (more, completion.has_more) {
                (Some(more), _) if more > 0 => Some(format!("… {more} more\n")),
                (_, Some(true)) => Some("… and more\n".to_owned()),
                _ => None,
            };
            if let Some(more) = more {
                screen.say(&screen.err.paint(Style::Dim, &more));
            }
            Ok(())
        })
        .await
    }
}

fn params(words: &[String]) -> Result<Value, Failure> {
    let [of, rest @ ..] = words else {
        return Err(Failure::usage("of what? a prompt's name or a resource template"));
    };
    let mut arguments = prompts::pairs(rest)?;
    let Some(first) = arguments.keys().next().cloned() else {
        return Err(Failure::usage("which argument? KEY=VALUE, where VALUE may be empty"));
    };
    let value = arguments.shift_remove(&first).unwrap_or_default();
    let reference = match of.contains("://") || of.contains('{') {
        true => json!({ "type": "ref/resource", "uri": of }),
        false => json!({ "type": "ref/prompt", "name": of }),
    };
    let mut params = json!({ "ref": reference, "argument": { "name": first, "value": value } });
    if !arguments.is_empty() {
        params["context"] = json!({ "arguments": arguments });
    }
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pair_is_completed_and_the_others_are_context() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            params(&words("greet name=A lang=en")).unwrap(),
            json!({
                "ref": { "type": "ref/prompt", "name": "greet" },
                "argument": { "name": "name", "value": "A" },
                "context": { "arguments": { "lang": "en" } }
            })
        );
        let of = params(&words("x://{a} a=")).unwrap();
        assert_eq!(of["ref"], json!({ "type": "ref/resource", "uri": "x://{a}" }));
        assert!(params(&words("greet")).is_err());
        assert!(params(&[]).is_err());
    }
}
