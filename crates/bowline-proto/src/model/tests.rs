//! What constructors make, as JSON: exactly what was given, and nothing else.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::json::Json;

/// A value is written like this, and read back as itself.
fn check<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(made: &T, expected: Value) {
    assert_eq!(serde_json::to_value(made).unwrap(), expected);
    assert_eq!(serde_json::from_value::<T>(expected).unwrap(), *made);
}

#[test]
fn parts_of_a_server() {
    check(&Implementation::new("a", "1"), json!({ "name": "a", "version": "1" }));
    let schema = json!({ "type": "object" });
    check(&Tool::new("t", Json::from(&schema)), json!({ "name": "t", "inputSchema": schema }));
    check(&Root::new("file:///a"), json!({ "uri": "file:///a" }));
}

#[test]
fn content() {
    check(&ContentBlock::text("a"), json!({ "type": "text", "text": "a" }));
    check(&ContentBlock::from("a"), json!({ "type": "text", "text": "a" }));
    check(&ContentBlock::from("a".to_owned()), json!({ "type": "text", "text": "a" }));
    let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
    check(&ContentBlock::image("AA==", "image/png"), image);
    let audio = json!({ "type": "audio", "data": "AA==", "mimeType": "audio/wav" });
    check(&ContentBlock::audio("AA==", "audio/wav"), audio);
    let text = ResourceContents::text("a://b", "c");
    check(&text, json!({ "uri": "a://b", "text": "c" }));
    let embedded = json!({ "type": "resource", "resource": { "uri": "a://b", "text": "c" } });
    check(&ContentBlock::resource(text.clone()), embedded);
    let typed = json!({ "uri": "a://b", "mimeType": "text/css", "text": "c" });
    check(&text.with_mime_type("text/css"), typed);
    check(&ResourceContents::blob("a://b", "AA=="), json!({ "uri": "a://b", "blob": "AA==" }));
}

#[test]
fn results_of_tools_and_prompts() {
    let content = json!([{ "type": "text", "text": "a" }]);
    let success = json!({ "content": content, "isError": false });
    check(&CallToolResult::success(vec![ContentBlock::text("a")]), success);
    check(&CallToolResult::success(Vec::new()), json!({ "content": [], "isError": false }));
    check(&CallToolResult::failure("a"), json!({ "content": content, "isError": true }));
    check(&PromptMessage::user("a"), json!({ "role": "user", "content": content[0] }));
    check(&PromptMessage::assistant("a"), json!({ "role": "assistant", "content": content[0] }));
}

#[test]
fn sampling() {
    let content = json!({ "type": "text", "text": "a" });
    check(&SamplingContent::text("a"), content.clone());
    let (user, assistant) = (SamplingMessage::user("a"), SamplingMessage::assistant("a"));
    check(&user, json!({ "role": "user", "content": content }));
    check(&assistant, json!({ "role": "assistant", "content": content }));
    let params = json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 9 });
    check(&CreateMessageParams::new(vec![user], 9), params);
    let result = json!({ "role": "assistant", "content": content, "model": "m" });
    check(&CreateMessageResult::text("m", "a"), result.clone());
    check(&CreateMessageResult::new("m", SamplingContent::text("a")), result);
}

#[test]
fn elicitation() {
    let accepted = json!({ "action": "accept", "content": { "a": 1 } });
    check(&ElicitResult::accept(&json!({ "a": 1 })), accepted);
    let empty = json!({ "action": "accept", "content": {} });
    check(&ElicitResult::accept(&[1]), empty);
    check(&ElicitResult::decline(), json!({ "action": "decline" }));
    check(&ElicitResult::cancel(), json!({ "action": "cancel" }));
}
