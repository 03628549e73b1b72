//! Tools that ask the client: its user, its model, its roots.
//!
//! Legacy clients are asked with a request, modern ones with an input request in the result; the
//! tools do not see the difference. Where a scenario looks for an input request by its key, the key
//! is given.

use bowline::model::{CreateMessageParams, ElicitSchema, SamplingMessage};
use bowline::{AskError, Context, Elicited, Part, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

pub(crate) fn parts() -> impl Part {
    let plain = (
        test_sampling,
        test_elicitation,
        test_elicitation_sep1034_defaults,
        test_elicitation_sep1330_enums,
        test_missing_capability,
        test_streaming_elicitation,
    );
    let keyed = (
        test_input_required_result_elicitation,
        test_input_required_result_sampling,
        test_input_required_result_list_roots,
        test_input_required_result_request_state,
        test_input_required_result_multiple_inputs,
        test_input_required_result_multi_round,
        test_input_required_result_tampered_state,
        test_input_required_result_capabilities,
    );
    (plain, keyed)
}

/// Asks the client's model.
#[tool]
async fn test_sampling(context: &Context, prompt: String) -> Result<String, AskError> {
    let answer = context.sample(sampling(&prompt)).await?;
    Ok(format!("LLM response: {}", answer.content.text()))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only shown in the result")]
struct Contact {
    /// User's response
    username: String,
    /// User's email address
    email: String,
}

/// Asks the user for their details.
#[tool]
async fn test_elicitation(context: &Context, message: String) -> Result<String, AskError> {
    let answer = context.elicit::<Contact>(message).await?;
    Ok(format!("User response: {answer:?}"))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only shown in the result")]
struct Profile {
    /// User name
    #[schemars(default = "john_doe")]
    name: String,
    /// User age
    #[schemars(default = "thirty")]
    age: i64,
    /// User score
    #[schemars(default = "high")]
    score: f64,
    /// User status
    #[schemars(default = "active")]
    status: Status,
    /// Verification status
    #[schemars(default = "yes")]
    verified: bool,
}

#[derive(Debug, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Inactive,
    Pending,
}

fn john_doe() -> String {
    "John Doe".to_owned()
}

fn thirty() -> i64 {
    30
}

fn high() -> f64 {
    95.5
}

fn active() -> Status {
    Status::Active
}

fn yes() -> bool {
    true
}

/// Asks the user to review a profile with defaults.
#[tool]
async fn test_elicitation_sep1034_defaults(context: &Context) -> Result<String, AskError> {
    let answer = context.elicit::<Profile>("Please review your profile").await?;
    Ok(format!("Elicitation completed: {answer:?}"))
}

/// Asks the user to choose, with every kind of choice that a form can have.
#[tool]
async fn test_elicitation_sep1330_enums(context: &Context) -> Result<String, AskError> {
    let words = ["option1", "option2", "option3"];
    let titled = json!([
        { "const": "value1", "title": "First Option" },
        { "const": "value2", "title": "Second Option" },
    ]);
    let form = json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": words },
            "titledSingle": { "type": "string", "oneOf": titled },
            "legacyEnum": { "type": "string", "enum": words, "enumNames": ["One", "Two", "Three"] },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": words } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled } },
        },
    });
    let form: ElicitSchema =
        serde_json::from_value(form).map_err(|error| AskError::Form(error.to_string()))?;
    let answer = context.ask("choices").elicit_form("Please choose", form).await?;
    Ok(format!("Elicitation completed: {answer:?}"))
}

/// Requires the client's model.
#[tool]
async fn test_missing_capability(context: &Context) -> Result<String, AskError> {
    test_sampling().call(context, "Hello".to_owned()).await
}

/// Asks the user for a name.
#[tool]
async fn test_streaming_elicitation(context: &Context) -> Result<String, AskError> {
    name(context, "user_name").await
}

/// Asks the user for a name, with a key.
#[tool]
async fn test_input_required_result_elicitation(context: &Context) -> Result<String, AskError> {
    name(context, "user_name").await
}

/// Asks the client's model, with a key.
#[tool]
async fn test_input_required_result_sampling(context: &Context) -> Result<String, AskError> {
    capital(context).await
}

/// Asks for the client's roots, with a key.
#[tool]
async fn test_input_required_result_list_roots(context: &Context) -> Result<String, AskError> {
    folders(context).await
}

/// Asks, and keeps state until the answer arrives.
#[tool]
async fn test_input_required_result_request_state(context: &Context) -> Result<String, AskError> {
    let kept = context.once("kept", async { "state-ok".to_owned() }).await;
    let confirmed = confirmed(context).await?;
    Ok(format!("{kept}: {confirmed}"))
}

/// Asks for three things at once.
#[tool]
async fn test_input_required_result_multiple_inputs(context: &Context) -> Result<String, AskError> {
    let (name, capital, folders) =
        tokio::try_join!(name(context, "user_name"), capital(context), folders(context))?;
    Ok(format!("{name}; {capital}; {folders}"))
}

/// Asks for one thing after another.
#[tool]
async fn test_input_required_result_multi_round(context: &Context) -> Result<String, AskError> {
    let first = name(context, "step1").await?;
    let second = context.ask("step2").elicit::<Favourite>("What is your favorite color?").await?;
    let second = second.accepted().map_or_else(nobody, |favourite| favourite.color);
    Ok(format!("{first}; {second}"))
}

/// Asks, and accepts only its own state.
#[tool]
async fn test_input_required_result_tampered_state(context: &Context) -> Result<String, AskError> {
    confirmed(context).await
}

/// Asks for everything that the client supports.
#[tool]
async fn test_input_required_result_capabilities(context: &Context) -> Result<String, AskError> {
    let client = &context.caller().capabilities;
    let user = async {
        if client.has_elicitation_form() { name(context, "user_name").await } else { Ok(nobody()) }
    };
    let model =
        async { if client.sampling.is_some() { capital(context).await } else { Ok(nobody()) } };
    let (user, model) = tokio::try_join!(user, model)?;
    Ok(format!("{user}; {model}"))
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Your name.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Favourite {
    /// The color you like best.
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Whether to continue.
    ok: bool,
}

async fn name(context: &Context, key: &str) -> Result<String, AskError> {
    Ok(match context.ask(key).elicit::<Name>("What is your name?").await? {
        Elicited::Accepted(Name { name }) => format!("Hello, {name}!"),
        Elicited::Declined | Elicited::Cancelled => nobody(),
    })
}

async fn confirmed(context: &Context) -> Result<String, AskError> {
    let answer = context.ask("confirm").elicit::<Confirmation>("Go on?").await?;
    Ok(answer.accepted().map_or_else(nobody, |confirmation| confirmation.ok.to_string()))
}

fn nobody() -> String {
    "nobody".to_owned()
}

async fn capital(context: &Context) -> Result<String, AskError> {
    let question = sampling("What is the capital of France?");
    Ok(context.ask("capital").sample(question).await?.content.text())
}

async fn folders(context: &Context) -> Result<String, AskError> {
    let roots = context.ask("roots").roots().await?;
    Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
}

fn sampling(prompt: &str) -> CreateMessageParams {
    CreateMessageParams {
        messages: vec![SamplingMessage::user(prompt)],
        max_tokens: 100,
        ..CreateMessageParams::default()
    }
}
