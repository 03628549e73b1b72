//! The servers of recorded conversations: a calculator with weather, a logger, a counter, an
//! operator, and the one in the specification.

use std::sync::atomic::{AtomicI32, Ordering};

use bowline::{Context, HandlerError, Prompt, Resource, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Expression {
    /// Mathematical expression to evaluate (e.g., '2 + 3 * 4', 'sin(30)', 'sqrt(16)')
    #[expect(dead_code, reason = "nobody calls it in the note")]
    expression: String,
}

#[derive(Deserialize)]
struct Weather {
    location: String,
    units: Option<String>,
}

/// A calculator and the weather, in 2025-06-18.
pub(super) fn example_server() -> Server {
    let weather_schema = json!({
        "type": "object",
        "properties": {
            "location": {
                "type": "string",
                "description": "City name, address, or coordinates (latitude,longitude)"
            },
            "units": {
                "type": "string",
                "enum": ["metric", "imperial", "kelvin"],
                "description": "Temperature units to use in response",
                "default": "metric"
            }
        },
        "required": ["location"]
    });
    Server::new("example-server", "1.0.0")
        .with(Resource::text("example://about", "about", "An example."))
        .with(
            Tool::new("calculator_arithmetic", |_: Expression| async { "not in the note" })
                .title("Calculator")
                .description(
                    "Perform mathematical calculations including basic arithmetic, trigonometric \
                     functions, and algebraic operations",
                ),
        )
        .with(
            Tool::raw("weather_current", weather_schema, |_, arguments| async move {
                let weather: Weather = arguments.parse().map_err(|error| error.to_string())?;
                Ok::<_, String>(forecast(&weather))
            })
            .title("Weather Information")
            .description("Get current weather information for any location worldwide"),
        )
        .with(Tool::new("change", |context: Context| async move {
            context.registry().remove_tool("change").to_string()
        }))
}

fn forecast(weather: &Weather) -> String {
    let temperature = match weather.units.as_deref() {
        Some("imperial") => "68°F",
        Some("kelvin") => "293 K",
        _ => "20°C",
    };
    format!(
        "Current weather in {}: {temperature}, partly cloudy with light winds from the west at 8 mph. \
         Humidity: 65%",
        weather.location
    )
}

#[derive(Deserialize)]
struct Syslog {
    server: String,
    #[serde(default = "port")]
    port: u16,
}

fn port() -> u16 {
    514
}

/// Pretends to send to syslog: nothing leaves this process.
pub(super) fn mcp_logger() -> Server {
    let schema = json!({
        "type": "object",
        "properties": {
            "server": { "type": "string", "description": "IP address..." },
            "port": { "type": "integer", "default": 514 },
            "message": { "type": "string" },
            "severity": { "type": "string", "default": "info" },
            "facility": { "type": "string", "default": "user" }
        },
        "required": ["server", "message"]
    });
    let send = |_, arguments: bowline::Json| async move {
        let syslog: Syslog = arguments.parse().map_err(|error| error.to_string())?;
        let Syslog { server, port } = syslog;
        Ok::<_, String>(format!("Success: Sent to {server}:{port} (Encoding: UTF-8)"))
    };
    Server::new("mcp-logger", "0.1.0").with(
        Tool::raw("send-syslog", schema, send).description("Send a standard Syslog message..."),
    )
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    saying: String,
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    message: String,
}

static COUNT: AtomicI32 = AtomicI32::new(0);

/// A counter with a sum beside it.
pub(super) fn counter() -> Server {
    let sum_schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "a": { "type": "integer", "format": "int32" },
            "b": { "type": "integer", "format": "int32" }
        },
        "required": ["a", "b"]
    });
    let sum = Tool::raw("sum", sum_schema, |_, arguments| async move {
        let arguments: Value = arguments.to_value();
        let number = |name: &str| arguments[name].as_i64().unwrap_or_default();
        number("a") + number("b")
    })
    .description("Calculate the sum of two numbers")
    .annotations(bowline::model::ToolAnnotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(true),
        ..Default::default()
    });
    let change = |by| move || async move { COUNT.fetch_add(by, Ordering::Relaxed) + by };
    Server::new("rmcp", "0.1.5")
        .instructions("This server provides a counter tool...")
        .with(sum)
        .with(Tool::new("increment", change(1)))
        .with(Tool::new("decrement", change(-1)))
        .with(Tool::new("get_value", || async { COUNT.load(Ordering::Relaxed) }).read_only())
        .with(Tool::new("say_hello", || async { "hello" }))
        .with(Tool::new("echo", |echo: Echo| async move { echo.saying }))
        .with(Resource::text("str:////Users/to/some/path/", "cwd", "/Users/to/some/path/"))
        .with(Prompt::new("example_prompt", |message: Message| async move { message.message }))
}

/// Operators and their states.
pub(super) fn operator() -> Server {
    let no_arguments = json!({ "type": "object", "properties": {} });
    let tool = |name: &str, description: &str| {
        Tool::raw(name, no_arguments.clone(), |_, _| async { "ready" }).description(description)
    };
    Server::new("coeiro-operator", "1.0.0")
        .with(tool("operator_status", "現在のオペレータ状態を取得"))
        .with(tool("operator_available", "利用可能なオペレータ一覧を取得"))
        .with(Tool::new("operator_release", |context: Context| async move {
            let registry = context.registry();
            Ok::<_, HandlerError>(registry.remove_tool("operator_release").to_string())
        }))
}

/// The server on the specification's page about the handshake.
pub(super) fn documented() -> Server {
    Server::new("ExampleServer", "1.0.0")
        .instructions("Optional instructions for the client")
        .with(Tool::new("tool", || async { "tool" }))
        .with(Prompt::new("prompt", || async { "prompt" }))
        .with(Resource::text("example://resource", "resource", "resource"))
}
