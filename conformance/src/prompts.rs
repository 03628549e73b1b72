//! Prompts: with and without arguments, with every kind of content, with an input request.

use bowline::model::PromptMessage;
use bowline::{AskError, Completing, Context, Part, prompt};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::content;

pub(crate) fn parts() -> impl Part {
    (
        test_simple_prompt,
        test_prompt_with_arguments,
        test_prompt_with_embedded_resource,
        test_prompt_with_image,
        test_input_required_result_prompt,
    )
}

/// A text.
#[prompt]
async fn test_simple_prompt() -> &'static str {
    "This is a simple prompt for testing."
}

/// A text with two placeholders.
#[prompt(complete(arg1 = suggest))]
async fn test_prompt_with_arguments(
    /// First test argument
    arg1: String,
    /// Second test argument
    arg2: String,
) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

async fn suggest(typed: Completing) -> Vec<String> {
    typed.matching(&["test", "testing", "other"])
}

/// A resource.
#[prompt]
async fn test_prompt_with_embedded_resource(
    /// URI of the resource to embed
    #[arg(rename = "resourceUri")]
    uri: String,
) -> Vec<PromptMessage> {
    vec![
        PromptMessage::user(content::resource(&uri)),
        PromptMessage::user("Please process the embedded resource above."),
    ]
}

/// An image.
#[prompt]
async fn test_prompt_with_image() -> Vec<PromptMessage> {
    vec![
        PromptMessage::user(content::image()),
        PromptMessage::user("Please analyze the image above."),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Topic {
    /// What the prompt should be about.
    context: String,
}

/// A text that needs the user's input first.
#[prompt]
async fn test_input_required_result_prompt(context: &Context) -> Result<String, AskError> {
    let answer = context.ask("user_context").elicit::<Topic>("What is it about?").await?;
    let topic = answer.accepted().map_or_else(String::new, |topic| topic.context);
    Ok(format!("Write about {topic}."))
}
