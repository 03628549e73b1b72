//! A server with a tool for every shape of arguments, which `cargo xtask frameworks` converts with
//! the agent frameworks of other languages.
//!
//! `shapes` serves on stdio; with the feature `http`, `shapes http PORT` serves on loopback, at
//! `/mcp`. Every tool says back what it got.

use std::collections::BTreeMap;

use bowline::{Context, HandlerError, ServeError, Server, Structured, Tool, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How to sort.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    /// By name, from A to Z.
    Name,
    /// By date, the newest first.
    Date,
    /// As they come.
    None,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Color {
    Red,
    Green,
}

/// A place on a map.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Place {
    /// Degrees north.
    latitude: f64,
    /// Degrees east.
    longitude: f64,
    /// What it is called.
    name: Option<String>,
    /// How its surroundings are sorted.
    order: Option<Order>,
}

/// What to draw.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Figure {
    /// All points at a distance.
    Circle { radius: f64 },
    /// Four right angles.
    Rectangle { width: f64, height: f64 },
}

/// Do nothing.
#[tool]
async fn nothing() -> String {
    "nothing".to_owned()
}

/// Take numbers of every size.
#[tool]
async fn numbers(
    /// A byte.
    small: u8,
    /// An unsigned number.
    large: u64,
    /// A size.
    size: usize,
    /// A signed number.
    signed: i32,
    /// A fraction.
    fraction: f64,
    /// A small fraction, if any.
    ratio: Option<f32>,
) -> String {
    format!("{small} {large} {size} {signed} {fraction} {ratio:?}")
}

/// Take what can be left out.
#[tool]
async fn options(
    /// What must be there.
    text: String,
    /// A word, if any.
    word: Option<String>,
    /// A number, if any.
    count: Option<u32>,
    /// Whether to hurry, if that matters.
    hurry: Option<bool>,
    /// Words, if any.
    words: Option<Vec<String>>,
    /// A place, if any.
    place: Option<Place>,
    /// How many at most.
    #[arg(default = 10)]
    limit: u8,
) -> String {
    format!("{text} {word:?} {count:?} {hurry:?} {words:?} {place:?} {limit}")
}

/// Choose among words.
#[tool(title = "Choose")]
async fn choices(
    /// The order of the answer.
    order: Order,
    /// Another order, if any.
    other: Option<Order>,
    /// Several orders.
    orders: Vec<Order>,
    /// A color, if any.
    color: Option<Color>,
) -> String {
    format!("{order:?} {other:?} {orders:?} {color:?}")
}

/// Take objects within objects.
#[tool]
async fn nested(
    /// The place.
    place: Place,
    /// Further places.
    places: Vec<Place>,
) -> String {
    format!("{place:?} {places:?}")
}

/// Draw one of several figures.
#[tool]
async fn either(
    /// The figure.
    figure: Figure,
) -> String {
    format!("{figure:?}")
}

/// Take values by name.
#[tool]
async fn map(
    /// The values.
    values: BTreeMap<String, i64>,
) -> String {
    format!("{values:?}")
}

/// The arguments of `page`.
#[derive(Deserialize, JsonSchema)]
struct Page {
    /// How many at most.
    #[serde(default)]
    #[schemars(range(min = 1, max = 50))]
    limit: Option<u8>,
    /// How to sort them.
    #[serde(default)]
    order: Option<Order>,
}

/// What `page` returns.
#[derive(Serialize, JsonSchema)]
struct Listed {
    /// How many there are.
    count: u64,
    /// How they are sorted.
    order: Option<Order>,
    /// A share of the whole.
    share: f32,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// What to call you.
    name: String,
}

/// Ask for a name.
#[tool]
async fn ask(context: Context) -> Result<String, HandlerError> {
    let name = context.elicit::<Name>("Who are you?").await?.accepted();
    Ok(name.map_or_else(|| "hello".to_owned(), |it| format!("hello {}", it.name)))
}

/// Fail.
#[tool]
async fn fail() -> Result<String, &'static str> {
    Err("it did not work out")
}

/// Tools without macros.
fn built() -> Vec<Tool> {
    let schema = json!({
        "type": "object",
        "properties": {
            "text": { "type": "string", "description": "What must be there." },
            "word": { "type": "string", "description": "A word, if any." }
        },
        "required": ["text"]
    });
    vec![
        Tool::new("page", |page: Page| async move {
            let count = page.limit.unwrap_or(50).into();
            Structured(Listed { count, order: page.order, share: 0.5 })
        })
        .title("Page")
        .description("List one page."),
        Tool::raw("raw", schema, |_: Context, arguments| async move { arguments.to_string() })
            .description("Take what a schema says."),
    ]
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    let server = Server::new("shapes", "1.0.0")
        .with((nothing, numbers, options, choices, nested))
        .with((either, map, ask, fail))
        .with(built());
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        #[cfg(feature = "http")]
        (Some("http"), Some(port)) => server.serve_http(&format!("127.0.0.1:{port}")).await,
        _ => server.serve_stdio().await,
    }
}
