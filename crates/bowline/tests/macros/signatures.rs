//! Parameters: defaults, names, enumerations, nested structs, contexts.

use bowline::{Context, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{answer, client_of, listed_tool};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Metric,
    Imperial,
}

/// A place on earth.
#[derive(Debug, Deserialize, JsonSchema)]
struct Place {
    city: String,
    /// Two letters.
    country: Option<String>,
}

#[tool]
async fn forecast(
    place: Place,
    unit: Unit,
    /// Or all of them.
    days: Option<u8>,
    #[arg(default = 3, description = "How often to try.")] tries: u32,
    #[arg(default = "en")] language: String,
    #[arg(default)] tags: Vec<String>,
    #[arg(rename = "type")] kind: Option<String>,
    r#where: Option<String>,
) -> String {
    let place = (place.city, place.country);
    format!("{place:?} {unit:?} {days:?} {tries} {language} {tags:?} {kind:?} {where:?}")
}

#[tokio::test]
async fn parameters_become_a_schema() {
    let expected = json!({
        "type": "object",
        "properties": {
            "place": {
                "type": "object",
                "description": "A place on earth.",
                "properties": {
                    "city": { "type": "string" },
                    "country": { "type": "string", "description": "Two letters." },
                },
                "required": ["city"],
            },
            "unit": { "type": "string", "enum": ["metric", "imperial"] },
            "days": {
                "type": "integer",
                "minimum": 0,
                "maximum": 255,
                "description": "Or all of them.",
            },
            "tries": {
                "type": "integer",
                "minimum": 0,
                "default": 3,
                "description": "How often to try.",
            },
            "language": { "type": "string", "default": "en" },
            "tags": { "type": "array", "items": { "type": "string" }, "default": [] },
            "type": { "type": "string" },
            "where": { "type": "string" },
        },
        "required": ["place", "unit"],
        "additionalProperties": false,
    });
    assert_eq!(listed_tool(forecast).await["inputSchema"], expected);
}

#[tokio::test]
async fn what_may_be_missing_may_be_missing() {
    let least = json!({ "place": { "city": "Oslo" }, "unit": "metric", "days": null });
    let expected = r#"("Oslo", None) Metric None 3 en [] None None"#;
    assert_eq!(answer(forecast, "forecast", least).await, expected);
    let most = json!({
        "place": { "city": "Oslo", "country": "NO" }, "unit": "imperial", "days": 2, "tries": 1,
        "language": "no", "tags": ["a"], "type": "t", "where": "w",
    });
    let expected = r#"("Oslo", Some("NO")) Imperial Some(2) 1 no ["a"] Some("t") Some("w")"#;
    assert_eq!(answer(forecast, "forecast", most).await, expected);
    let wrong = json!({ "place": { "city": "Oslo" }, "unit": "cubits" });
    let told = answer(forecast, "forecast", wrong).await;
    assert!(told.contains("unit") && told.contains("metric"), "{told}");
}

#[tool]
async fn limited(
    #[schemars(range(min = 1, max = 9))] count: u8,
    #[serde(rename = "pageSize", alias = "page_size")] page: Option<u8>,
) -> String {
    format!("{count} {page:?}")
}

#[tokio::test]
async fn attributes_of_serde_and_schemars_pass() {
    let schema = &listed_tool(limited).await["inputSchema"]["properties"];
    assert_eq!((&schema["count"]["minimum"], &schema["count"]["maximum"]), (&json!(1), &json!(9)));
    assert!(schema.get("pageSize").is_some());
    let told = answer(limited, "limited", json!({ "count": 10 })).await;
    assert!(told.contains("count"), "{told}");
    let told = answer(limited, "limited", json!({ "count": 9, "page_size": 2 })).await;
    assert_eq!(told, "9 Some(2)");
}

#[tool]
async fn all(#[args] Place { city, .. }: Place) -> String {
    city
}

#[tool]
async fn any(#[args] arguments: Value) -> String {
    arguments.to_string()
}

#[tokio::test]
async fn arguments_can_be_one_struct() {
    let expected = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "country": { "type": "string", "description": "Two letters." },
        },
        "required": ["city"],
        "additionalProperties": false,
    });
    assert_eq!(listed_tool(all).await["inputSchema"], expected);
    assert_eq!(answer(all, "all", json!({ "city": "Bonn" })).await, "Bonn");
    assert_eq!(answer(any, "any", json!({ "x": [1] })).await, r#"{"x":[1]}"#);
}

#[tool]
async fn counted(context: Context, mut n: u32) -> u32 {
    n += 1;
    context.progress(f64::from(n), None, "counted");
    n
}

#[tool]
async fn borrowed(n: u32, context: &Context) -> String {
    format!("{n} {}", context.is_cancelled())
}

#[tool]
fn blocked(_: &Context) -> &'static str {
    "blocked"
}

#[tokio::test]
async fn the_context_is_not_an_argument() {
    let client = client_of((counted, borrowed, blocked)).await;
    let (call, mut progress) = client.call_tool("counted", json!({ "n": 1 })).with_progress();
    assert_eq!(call.text().await.unwrap(), "2");
    assert_eq!(progress.next().await.unwrap().progress, 2.0);
    assert_eq!(client.call_tool("borrowed", json!({ "n": 1 })).text().await.unwrap(), "1 false");
    assert_eq!(client.call_tool("blocked", json!({})).text().await.unwrap(), "blocked");
    let nothing = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    assert_eq!(listed_tool(blocked).await["inputSchema"], nothing);
    assert_eq!(listed_tool(borrowed).await["inputSchema"]["required"], json!(["n"]));
}
