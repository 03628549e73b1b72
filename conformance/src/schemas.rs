//! Tools that test the schemas of their arguments.

use bowline::{Context, Json, Part, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) fn parts() -> impl Part {
    let keywords = Tool::raw("json_schema_2020_12_tool", keywords(), echo)
        .description("Has a schema with keywords of JSON Schema 2020-12");
    let header = Tool::new("test_custom_header", |query: RegionQuery| async move {
        format!("Query executed in region: {}", query.region)
    })
    .description("Takes an argument that a header repeats");
    (keywords, header)
}

async fn echo(_: Context, arguments: Json) -> String {
    arguments.as_str().to_owned()
}

#[derive(Deserialize, JsonSchema)]
struct RegionQuery {
    /// The region to query.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

/// A schema that a client must see unchanged.
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
