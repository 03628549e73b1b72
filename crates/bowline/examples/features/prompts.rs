//! Prompts with and without arguments.

use bowline::model::{ContentBlock, PromptMessage, ResourceContents};
use bowline::{Prompt, Server};
use schemars::JsonSchema;
use serde::Deserialize;

use super::icon;

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The code to look at.
    code: String,
    /// How to write.
    style: Option<Style>,
    /// How many remarks to make.
    remarks: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Style {
    Kind,
    Keen,
    Stern,
}

#[derive(Deserialize, JsonSchema)]
struct Travel {
    country: String,
    city: String,
}

pub(super) fn server() -> Server {
    Server::new("prompts", "1.0.0")
        .with(Prompt::new("plain", || async { "Say something." }))
        .with(
            Prompt::new("review", review)
                .title("Review")
                .description("Look at some code.")
                .icon(icon())
                .meta("example.com/kind", "work"),
        )
        .with(Prompt::new("dialogue", || async { dialogue() }))
        .with(
            Prompt::new("travel", |travel: Travel| async move {
                format!("Plan a trip to {} in {}.", travel.city, travel.country)
            })
            .complete("country", |completing| async move {
                completing.matching(&["France", "Finland", "Greece"])
            })
            .complete("city", |completing| async move {
                match completing.other("country") {
                    Some("France") => completing.matching(&["Paris", "Pau", "Lyon"]),
                    Some(_) => Vec::new(),
                    None => (0..150).map(|number| format!("Port {number}")).collect(),
                }
            }),
        )
}

async fn review(review: Review) -> String {
    let style = match review.style {
        None | Some(Style::Kind) => "kindly",
        Some(Style::Keen) => "keenly",
        Some(Style::Stern) => "sternly",
    };
    format!("Review {style}, {} remarks: {}", review.remarks.unwrap_or(3), review.code)
}

fn dialogue() -> Vec<PromptMessage> {
    vec![
        PromptMessage::user("What is this?"),
        PromptMessage::assistant(ContentBlock::audio("UklGRgAAAABXQVZF", "audio/wav")),
        PromptMessage::user(ContentBlock::resource(ResourceContents::text("test://text", "hello"))),
    ]
}
