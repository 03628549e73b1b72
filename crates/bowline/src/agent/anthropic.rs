//! Anthropic's messages.

use bowline_proto::model::{CallToolResult, Tool};
use serde_json::{Value, json};

use super::result::Shown;
use super::schema::plain_root;
use super::{Called, FunctionCall, description, list, string};

pub(super) fn definition(name: &str, tool: &Tool, schema: &Value) -> Value {
    json!({ "name": name, "description": description(tool), "input_schema": plain_root(schema) })
}

pub(super) fn calls(message: &Value) -> Vec<Called> {
    let uses = list(message, "content").filter(|block| block["type"] == "tool_use");
    let called = uses.map(|block| Called {
        id: string(block, "id"),
        function: string(block, "name").unwrap_or_default(),
        arguments: Ok(block.get("input").cloned().unwrap_or_default()),
    });
    called.collect()
}

/// One message of the user, which must hold all results.
pub(super) fn results(results: &[(FunctionCall, CallToolResult)]) -> Vec<Value> {
    let content: Vec<_> = results.iter().map(|(call, result)| block(call, result)).collect();
    if content.is_empty() {
        Vec::new()
    } else {
        vec![json!({ "role": "user", "content": content })]
    }
}

fn block(call: &FunctionCall, result: &CallToolResult) -> Value {
    let shown = Shown::of(result);
    let mut content = Vec::new();
    // A block of text must not be empty.
    if !shown.text.is_empty() {
        content.push(json!({ "type": "text", "text": shown.text }));
    }
    content.extend(shown.images.iter().map(|image| {
        let source = json!({ "type": "base64", "media_type": image.mime_type, "data": image.data });
        json!({ "type": "image", "source": source })
    }));
    let mut block = json!({ "type": "tool_result", "tool_use_id": call.id, "content": content });
    if shown.is_error {
        block["is_error"] = true.into();
    }
    block
}
