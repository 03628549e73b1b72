//! Tools, a prompt and a resource that ask the client before they answer.

use bowline::model::{CreateMessageParams, SamplingMessage, ToolChoice, ToolChoiceMode};
use bowline::{Context, Elicited, HandlerError, Json, Prompt, Resource, Server, Tool, model};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// What to call you.
    name: String,
}

/// One field of each kind that a form can have.
#[derive(Deserialize, JsonSchema)]
struct Order {
    /// Who orders.
    #[schemars(length(min = 1, max = 40))]
    name: String,
    #[schemars(range(min = 1, max = 9))]
    count: u8,
    discount: Option<f64>,
    #[serde(default)]
    express: bool,
    size: Size,
    color: Option<Color>,
}

#[derive(Deserialize, JsonSchema)]
struct Extras {
    extras: Vec<Size>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Color {
    /// Like blood.
    Red,
    /// Like the sky.
    Blue,
}

pub(super) fn server() -> Server {
    Server::new("asks", "1.0.0")
        .with(Tool::new("name", |context: Context| async move {
            Ok::<_, HandlerError>(greeting(context.elicit::<Name>("Who are you?").await?))
        }))
        .with(Tool::new("order", order))
        .with(Tool::new("extras", |context: Context| async move {
            let chosen = context.elicit::<Extras>("Anything else?").await?.accepted();
            Ok::<_, HandlerError>(format!("{:?}", chosen.map(|chosen| chosen.extras)))
        }))
        .with(Tool::new("pay", |context: Context| async move {
            let paid = context.elicit_url("Pay, please.", "https://example.com/pay").await?;
            Ok::<_, HandlerError>(format!("{paid:?}"))
        }))
        .with(Tool::new("sample", |context: Context| async move {
            let said = context.sample(question()).await?;
            Ok::<_, HandlerError>(format!("{} says {}", said.model, said.content.text()))
        }))
        .with(Tool::new("sample_tools", sample_tools))
        .with(Tool::new("roots", |context: Context| async move {
            let roots = context.roots().await?;
            let roots: Vec<_> = roots.into_iter().map(|root| root.uri).collect();
            Ok::<_, HandlerError>(roots.join(", "))
        }))
        .with(Tool::new("several", several))
        .with(Tool::new("twice", twice))
        .with(Prompt::new("name", |context: Context| async move {
            Ok::<_, HandlerError>(greeting(context.elicit::<Name>("Who asks?").await?))
        }))
        .with(Resource::new("test://name", "name", |context: Context| async move {
            Ok::<_, HandlerError>(greeting(context.elicit::<Name>("Who reads?").await?))
        }))
}

fn greeting(name: Elicited<Name>) -> String {
    match name {
        Elicited::Accepted(name) => format!("Hello, {}!", name.name),
        Elicited::Declined => "Hello, stranger!".to_owned(),
        Elicited::Cancelled => "Hello?".to_owned(),
    }
}

async fn order(context: Context) -> Result<String, HandlerError> {
    let Some(order) = context.elicit::<Order>("What will it be?").await?.accepted() else {
        return Ok("nothing".to_owned());
    };
    let Order { name, count, discount, express, size, color } = order;
    Ok(format!("{name} {count} {discount:?} {express} {size:?} {color:?}"))
}

fn question() -> CreateMessageParams {
    CreateMessageParams {
        messages: vec![SamplingMessage::user("What is the capital of France?")],
        system_prompt: Some("Be brief.".to_owned()),
        max_tokens: 100,
        ..CreateMessageParams::default()
    }
}

async fn sample_tools(context: Context) -> Result<String, HandlerError> {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let said = context
        .sample(CreateMessageParams {
            tools: Some(vec![model::Tool::new("weather", Json::from(&schema))]),
            tool_choice: Some(ToolChoice { mode: Some(ToolChoiceMode::Auto) }),
            ..question()
        })
        .await?;
    serde_json::to_string(said.content.blocks())
        .map_err(|error| HandlerError::failed(error.to_string()))
}

async fn several(context: Context) -> Result<String, HandlerError> {
    let (name, said, roots) = tokio::join!(
        context.ask("who").elicit::<Name>("Who are you?"),
        context.ask("what").sample(question()),
        context.ask("where").roots(),
    );
    let (name, said, roots) = (greeting(name?), said?.content.text(), roots?.len());
    Ok(format!("{name} {said} {roots}"))
}

async fn twice(context: Context) -> Result<String, HandlerError> {
    let first = greeting(context.elicit::<Name>("First name?").await?);
    let drawn = context.once("drawn", async { 7 }).await;
    let last = greeting(context.elicit::<Name>("Last name?").await?);
    Ok(format!("{first} {last} {drawn}"))
}
