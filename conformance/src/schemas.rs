//! Tools that are about the schema of their arguments.

use bowline::{Context, Json, Part, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) fn parts() -> impl Part {
    let keywords = Tool::raw("json_schema_2020_12_tool", keywords(), echo)
        .description("Has a schema with the keywords of JSON Schema 2020-12");
    let header = Tool::new("test_custom_header", |place: Place| async move {
        format!("Query executed in region: {}", place.region)
    })
    .description("Takes an argument that a header repeats");
    (keywords, header)
}

async fn echo(_: Context, arguments: Json) -> String {
    arguments.as_str().to_owned()
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// Where to look.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

/// What a client must see exactly as it stands here.
fn keywords() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}
