//! `bowline complete`: suggests values for a prompt's argument or a template's variable.

use bowline::Json;
use bowline::model::CompleteResult;
use clap::Args;
use serde_json::{Map, Value, json};

use crate::arguments::{ArgumentArgs, text_arguments};
use crate::failure::{Failure, parse};
use crate::schema::unquoted;
use crate::screen::{OutputArgs, Paint, Style};
use crate::session::Invocation;
use crate::target::TargetOptions;
use crate::text::line;

/// Suggest values for an argument of a prompt or a variable of a resource template
///
/// The first KEY=VALUE is completed; VALUE is what has been typed so far, and may be empty. The
/// pairs after it are already filled in.
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
        let (invocation, words) = Invocation::split(&self.options, &self.words, root)?;
        let params = read(words)?;
        invocation
            .run(async |session| {
                let screen = &session.screen;
                let result = session.call("completion/complete", params).await?;
                screen.show(&result, || {
                    let (values, more) = lines(&result)?;
                    if !more.is_empty() {
                        screen.say(&screen.err.paint(Style::Dim, &more));
                    }
                    Ok(values)
                })
            })
            .await
    }
}

/// The suggested values, a line each, and how many more there are.
fn lines(result: &Json) -> Result<(String, String), Failure> {
    let completion = parse::<CompleteResult>(result)?.completion;
    let shown = completion.values.len() as u64;
    let more = match (completion.total, completion.has_more) {
        (Some(total), _) if total > shown => format!("… {} more\n", total - shown),
        (_, Some(true)) => "… and more\n".to_owned(),
        _ => String::new(),
    };
    Ok((completion.values.iter().map(|value| line(value) + "\n").collect(), more))
}

/// Both of them as one text; a line of its own if there are none.
pub(crate) fn render(result: &Json, paint: Paint) -> Result<String, Failure> {
    let (values, more) = lines(result)?;
    let none = if values.is_empty() { "no suggestions\n" } else { "" };
    Ok(format!("{values}{none}{}", paint.paint(Style::Dim, &more)))
}

/// What the words of the command line complete.
pub(crate) fn read(words: &[String]) -> Result<Value, Failure> {
    let [of, rest @ ..] = words else {
        return Err(Failure::usage(
            "complete what? expected a prompt's name or a resource template",
        ));
    };
    let arguments = ArgumentArgs::default().read(rest)?.build(Some(&text_arguments()), false)?;
    let mut arguments = arguments.parse::<Map<String, Value>>().unwrap_or_default();
    let Some(first) = arguments.keys().next().cloned() else {
        return Err(Failure::usage("which argument? expected KEY=VALUE, where VALUE may be empty"));
    };
    let value = arguments.shift_remove(&first).unwrap_or_default();
    let reference = if of.contains("://") || of.contains('{') {
        json!({ "type": "ref/resource", "uri": of })
    } else {
        json!({ "type": "ref/prompt", "name": of })
    };
    Ok(params(&reference, (&first, &unquoted(&value)), &arguments))
}

/// The parameters of `completion/complete`; `others` are filled in already.
pub(crate) fn params(
    of: &Value,
    (name, value): (&str, &str),
    others: &Map<String, Value>,
) -> Value {
    let mut params = json!({ "ref": of, "argument": { "name": name, "value": value } });
    if !others.is_empty() {
        params["context"] = json!({ "arguments": others });
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pair_is_completed_and_the_others_are_context() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            read(&words("greet name=A lang=en")).unwrap(),
            json!({
                "ref": { "type": "ref/prompt", "name": "greet" },
                "argument": { "name": "name", "value": "A" },
                "context": { "arguments": { "lang": "en" } }
            })
        );
        let of = read(&words("x://{a} a=")).unwrap();
        assert_eq!(of["ref"], json!({ "type": "ref/resource", "uri": "x://{a}" }));
        assert!(read(&words("greet")).is_err());
        assert!(read(&[]).is_err());
    }
}
