//! `#[prompt]`.

use bowline::model::PromptMessage;
use bowline::{Completing, prompt};
use serde_json::json;

use crate::{client_of, listed};

/// Review some code.
#[prompt(title = "Review", complete(language = languages))]
async fn review(
    /// The code.
    code: String,
    #[arg(rename = "lang")] language: Option<String>,
    #[arg(default = 1)] depth: u8,
) -> String {
    format!("{code} {language:?} {depth}")
}

async fn languages(typed: Completing) -> Vec<String> {
    typed.matching(&["rust", "ruby", "c"])
}

#[prompt(name = "two")]
fn messages() -> Vec<PromptMessage> {
    vec![PromptMessage::user("one"), PromptMessage::user("two")]
}

#[tokio::test]
async fn a_function_is_a_prompt() {
    let client = client_of(review).await;
    let expected = json!({
        "name": "review",
        "title": "Review",
        "description": "Review some code.",
        "arguments": [
            { "name": "code", "description": "The code.", "required": true },
            { "name": "lang", "required": false },
            { "name": "depth", "required": false },
        ],
    });
    assert_eq!(listed(&client, "prompts/list", "prompts").await, expected);
    let got = client.get_prompt("review", &[("code", "x"), ("depth", "2")]).await.unwrap();
    assert_eq!(json!(got.messages)[0]["content"]["text"], "x None 2");
}

#[tokio::test]
async fn arguments_are_completed() {
    let client = client_of(review).await;
    let found = client.complete_prompt("review", ("lang", "ru"), &[]).await.unwrap();
    assert_eq!(found.completion.values, ["rust", "ruby"]);
}

#[tokio::test]
async fn prompts_need_not_be_async() {
    let client = client_of(messages).await;
    let got = client.get_prompt("two", &[]).await.unwrap();
    assert_eq!(got.messages.len(), 2);
    assert_eq!(messages().call().len(), 2);
}
