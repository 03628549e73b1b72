//! A server with one of everything, which `cargo xtask interop` tests with other clients.
//!
//! `everything` serves on stdio; with the feature `http`, `everything http PORT` serves on
//! loopback, at `/mcp` and `/sse`. Built from closures and functions, without macros.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline::model::{
    ContentBlock, CreateMessageParams, LoggingLevel, PromptMessage, ResourceContents,
    SamplingMessage,
};
use bowline::{
    Completing, Context, Elicited, HandlerError, Prompt, Resource, ServeError, Server, Structured,
    Tool, base64,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const COUNTER: &str = "test://counter";

/// The state that handlers share.
#[derive(Default)]
struct Counts {
    touched: AtomicU64,
    abandoned: AtomicU64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        #[cfg(feature = "http")]
        (Some("http"), Some(port)) => server().serve_http(&format!("127.0.0.1:{port}")).await,
        _ => server().serve_stdio().await,
    }
}

pub(crate) fn server() -> Server {
    let server = Server::new("everything", "1.0.0")
        .title("Everything")
        .instructions("Try every tool once.")
        .state(Counts::default());
    with_prompts(with_resources(with_questions(with_reports(with_tools(server)))))
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sum {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Total {
    /// Both together.
    total: i64,
    /// The numbers that were added.
    parts: Vec<i64>,
    /// What is left to say, if anything.
    note: Option<String>,
}

/// Tools that just return something.
fn with_tools(server: Server) -> Server {
    server
        .with(
            Tool::new("echo", |echo: Echo| async move { echo.message })
                .title("Echo")
                .description("Says back what it is told")
                .read_only()
                .idempotent(),
        )
        .with(
            Tool::new("structured", |sum: Sum| async move {
                Structured(Total { total: sum.a + sum.b, parts: vec![sum.a, sum.b], note: None })
            })
            .description("Adds two numbers and answers with data"),
        )
        .with(Tool::new("content", content).description("Answers with every kind of content"))
        .with(
            Tool::new("failing", || async { Err::<String, _>("there is no luck today") })
                .description("Fails, and says why"),
        )
}

async fn content() -> Vec<ContentBlock> {
    let embedded = ResourceContents::text("test://embedded", "within").with_mime_type("text/plain");
    vec![
        ContentBlock::text("a text"),
        ContentBlock::image(base64::STANDARD.encode(b"not really a picture"), "image/png"),
        ContentBlock::audio(base64::STANDARD.encode(b"not really a sound"), "audio/wav"),
        ContentBlock::resource(embedded),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Slow {
    /// How many steps to report.
    steps: u32,
    /// How long each of them takes, in milliseconds.
    #[serde(default)]
    ms: u64,
}

/// Tools that notify the client while they run, or change the server.
fn with_reports(server: Server) -> Server {
    server
        .with(Tool::new("slow", slow).description("Works step by step and reports each"))
        .with(Tool::new("logging", logging).description("Logs once at every level"))
        .with(Tool::new("wait", wait).description("Waits for a minute, or until it is cancelled"))
        .with(Tool::new("abandoned", abandoned).description("How many waits were cancelled"))
        .with(Tool::new("change_tools", change_tools).description("Adds a tool, or removes it"))
        .with(Tool::new("touch", touch).description("Changes the counter"))
}

async fn slow(context: Context, slow: Slow) -> String {
    for step in 1..=slow.steps {
        context.progress(step.into(), f64::from(slow.steps), &format!("step {step}"));
        tokio::time::sleep(Duration::from_millis(slow.ms)).await;
    }
    format!("{} steps", slow.steps)
}

async fn logging(context: Context) -> &'static str {
    for level in LoggingLevel::ALL {
        context.log(level, format!("a message of level {level}")).await;
    }
    "logged"
}

/// Counts a wait whose handler was dropped before its end.
struct Abandoned {
    context: Context,
    is_over: bool,
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        if !self.is_over {
            counts(&self.context, |counts| counts.abandoned.fetch_add(1, Ordering::Relaxed));
        }
    }
}

async fn wait(context: Context) -> &'static str {
    let mut guard = Abandoned { context: context.clone(), is_over: false };
    context.progress(0.0, 1.0, "waiting");
    tokio::time::sleep(Duration::from_secs(60)).await;
    guard.is_over = true;
    "waited"
}

async fn abandoned(context: Context) -> u64 {
    counts(&context, |counts| counts.abandoned.load(Ordering::Relaxed))
}

async fn change_tools(context: Context) -> Result<&'static str, HandlerError> {
    let registry = context.registry();
    if registry.remove_tool("extra") {
        return Ok("removed");
    }
    let extra = Tool::new("extra", || async { "not always here" });
    registry.add(extra).map_err(|error| HandlerError::failed(error.to_string()))?;
    Ok("added")
}

async fn touch(context: Context) -> u64 {
    let touched = counts(&context, |counts| counts.touched.fetch_add(1, Ordering::Relaxed)) + 1;
    context.registry().resource_updated(COUNTER);
    touched
}

fn counts(context: &Context, read: impl FnOnce(&Counts) -> u64) -> u64 {
    context.state::<Counts>().map_or(0, |counts| read(&counts))
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// Who orders.
    name: String,
    /// How many.
    count: u8,
    /// How big.
    size: Size,
    /// Whether it is urgent.
    express: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

/// Tools that ask the client.
fn with_questions(server: Server) -> Server {
    server
        .with(Tool::new("elicit", elicit).description("Asks the user for an order"))
        .with(Tool::new("elicit_url", elicit_url).description("Sends the user to a page"))
        .with(Tool::new("sample", sample).description("Asks the client's model"))
        .with(Tool::new("roots", roots).description("Asks which folders the client works in"))
}

async fn elicit(context: Context) -> Result<String, HandlerError> {
    Ok(match context.elicit::<Order>("What would you like?").await? {
        Elicited::Accepted(order) => {
            let Order { name, count, size, express } = order;
            format!("{name}: {count} {size:?} {}", express.unwrap_or(false))
        }
        Elicited::Declined => "declined".to_owned(),
        Elicited::Cancelled => "cancelled".to_owned(),
    })
}

async fn elicit_url(context: Context) -> Result<&'static str, HandlerError> {
    let asked = context.elicit_url("Please sign in.", "https://example.com/sign-in").await?;
    Ok(if asked.accepted().is_some() { "went there" } else { "stayed" })
}

async fn sample(context: Context, echo: Echo) -> Result<String, HandlerError> {
    let params = CreateMessageParams {
        messages: vec![SamplingMessage::user(echo.message)],
        max_tokens: 100,
        ..CreateMessageParams::default()
    };
    let answer = context.sample(params).await?;
    Ok(format!("{}: {}", answer.model, answer.content.text()))
}

async fn roots(context: Context) -> Result<String, HandlerError> {
    let roots = context.roots().await?;
    Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
}

#[derive(Deserialize, JsonSchema)]
struct User {
    /// Who it is.
    name: String,
}

const USERS: [&str; 3] = ["ada", "alan", "grace"];

fn with_resources(server: Server) -> Server {
    let counter = Resource::new(COUNTER, "counter", |context: Context| async move {
        counts(&context, |counts| counts.touched.load(Ordering::Relaxed)).to_string()
    });
    let user = Resource::new("test://users/{name}", "user", |user: User| async move {
        if USERS.contains(&user.name.as_str()) {
            Ok(format!("user {}", user.name))
        } else {
            Err(HandlerError::resource_not_found(&format!("test://users/{}", user.name)))
        }
    });
    let complete = |typed: Completing| async move { typed.matching(&USERS) };
    server
        .with(Resource::text("test://static", "static", "always the same").title("Static"))
        .with(Resource::bytes("test://bytes", "bytes", *b"\x00\xff").mime_type("image/png"))
        .with(counter.mime_type("text/plain").description("How often it was touched"))
        .with(user.mime_type("text/plain").complete("name", complete))
}

#[derive(Deserialize, JsonSchema)]
struct Greeting {
    /// Whom to greet.
    name: String,
    /// In which manner.
    style: Option<Style>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Style {
    Formal,
    Friendly,
}

fn with_prompts(server: Server) -> Server {
    let greet = Prompt::new("greet", |greeting: Greeting| async move {
        let style = greeting.style.unwrap_or(Style::Friendly);
        vec![
            PromptMessage::user(format!("Greet {} in a {style:?} way.", greeting.name)),
            PromptMessage::assistant("As you wish."),
        ]
    });
    let complete = |typed: Completing| async move { typed.matching(&USERS) };
    server
        .with(Prompt::new("plain", || async { "Say something nice." }))
        .with(greet.title("Greet").description("Greets somebody").complete("name", complete))
}
