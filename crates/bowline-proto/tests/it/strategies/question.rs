//! What servers ask for: forms, URLs, models, roots; and what clients answer.

use proptest::prelude::*;
use serde_json::json;

use super::content::sampling_content;
use super::{
    Json, Object, any_object, anything, count, flag, item, just, list, map, meta, number, one_of,
    role, share, text, word,
};

fn ask() -> Object {
    Object::new().maybe("task", Object::new().maybe("ttl", count()).build()).maybe("_meta", meta())
}

/// A form or a URL, with every kind of field and every notation for choices.
pub(crate) fn elicit() -> Json {
    let form = Object::new()
        .maybe("$schema", just("https://json-schema.org/draft/2020-12/schema"))
        .with("type", just("object"))
        .with("properties", map(field()))
        .maybe("required", list(text()));
    let form = ask()
        .maybe("mode", just("form"))
        .with("message", text())
        .with("requestedSchema", form.build());
    let url = ask()
        .with("mode", just("url"))
        .with("message", text())
        .with("url", word(&["https://example.com/sign-in"]))
        .maybe("elicitationId", text());
    prop_oneof![3 => form.build(), 1 => url.build()].boxed()
}

fn field() -> Json {
    one_of(vec![
        field_of("string")
            .maybe("minLength", count())
            .maybe("maxLength", count())
            .maybe("format", word(&["email", "uri", "date", "date-time"]))
            .maybe("pattern", text())
            .maybe("default", text())
            .build(),
        number_field("number"),
        number_field("integer"),
        field_of("boolean").maybe("default", flag()).build(),
        field_of("string").with("enum", list(text())).maybe("default", text()).build(),
        field_of("string")
            .with("enum", just(json!(["a", "b"])))
            .with("enumNames", just(json!(["A", "B"])))
            .maybe("default", just("a"))
            .build(),
        field_of("string").with("oneOf", choices()).maybe("default", text()).build(),
        several(Object::new().with("type", just("string")).with("enum", list(text())).build()),
        several(Object::new().with("anyOf", choices()).build()),
    ])
}

fn field_of(kind: &'static str) -> Object {
    Object::new().with("type", just(kind)).maybe("title", text()).maybe("description", text())
}

fn number_field(kind: &'static str) -> Json {
    field_of(kind)
        .maybe("minimum", number())
        .maybe("maximum", number())
        .maybe("default", number())
        .build()
}

fn choices() -> Json {
    list(Object::new().with("const", text()).with("title", text()).build())
}

fn several(items: Json) -> Json {
    field_of("array")
        .with("items", items)
        .maybe("minItems", count())
        .maybe("maxItems", count())
        .maybe("default", list(text()))
        .build()
}

pub(crate) fn elicit_result() -> Json {
    let one = one_of(vec![text(), number(), flag()]);
    let value = prop_oneof![8 => one, 1 => list(text())].boxed();
    Object::new()
        .with("action", word(&["accept", "decline", "cancel"]))
        .maybe("content", map(value))
        .maybe("_meta", meta())
        .build()
}

fn message() -> Json {
    Object::new()
        .with("role", role())
        .with("content", sampling_content())
        .maybe("_meta", meta())
        .build()
}

pub(crate) fn create_message() -> Json {
    let plain = || {
        ask()
            .with("messages", list(message()))
            .with("maxTokens", count())
            .maybe("modelPreferences", preferences())
            .maybe("systemPrompt", text())
            .maybe("includeContext", word(&["none", "thisServer", "allServers"]))
            .maybe("temperature", number())
            .maybe("stopSequences", list(text()))
            .maybe("metadata", any_object())
    };
    let choice = Object::new().maybe("mode", word(&["auto", "required", "none"]));
    let with_tools = plain().maybe("tools", list(item::tool())).maybe("toolChoice", choice.build());
    prop_oneof![3 => plain().build(), 1 => with_tools.build()].boxed()
}

fn preferences() -> Json {
    Object::new()
        .maybe("hints", list(Object::new().maybe("name", text()).build()))
        .maybe("costPriority", share())
        .maybe("speedPriority", share())
        .maybe("intelligencePriority", share())
        .build()
}

pub(crate) fn create_message_result() -> Json {
    Object::new()
        .with("role", role())
        .with("content", sampling_content())
        .with("model", text())
        .maybe("stopReason", text())
        .maybe("_meta", meta())
        .build()
}

pub(crate) fn list_roots() -> Json {
    Object::new().maybe("_meta", meta()).build()
}

pub(crate) fn list_roots_result() -> Json {
    Object::new().with("roots", list(item::root())).maybe("_meta", meta()).build()
}

/// Input requests inside a result.
pub(crate) fn input_requests() -> Json {
    let question = |method: &'static str| Object::new().with("method", just(method));
    let some_meta = Object::new().with("_meta", Object::new().with("a", anything()).build());
    map(one_of(vec![
        question("elicitation/create").with("params", elicit()).build(),
        question("sampling/createMessage").with("params", create_message()).build(),
        question("roots/list").maybe("params", some_meta.build()).build(),
    ]))
}

/// A task of the extension with its outcome.
pub(crate) fn task_detail() -> Object {
    let error = Object::new().with("code", just(-32603)).with("message", text());
    item::extension_task()
        .maybe("inputRequests", input_requests())
        .maybe("result", any_object())
        .maybe("error", error.maybe("data", anything()).build())
}
