//! The parameters of requests to servers, and of notifications.

use proptest::prelude::*;
use serde_json::json;

use super::{
    Json, Object, any_object, anything, capability, count, flag, id, item, just, level, list, map,
    meta, number, one_of, request_meta, text, uri, uri_template,
};
use crate::strategies::question;

/// Only `_meta`.
pub(crate) fn request() -> Object {
    Object::new().with("_meta", request_meta())
}

pub(crate) fn page() -> Object {
    request().maybe("cursor", text())
}

pub(crate) fn by_uri() -> Object {
    request().with("uri", uri())
}

pub(crate) fn initialize() -> Object {
    request()
        .with("protocolVersion", super::word(&["2024-11-05", "2025-11-25", "1900-01-01"]))
        .with("capabilities", capability::client())
        .with("clientInfo", capability::implementation())
}

/// What a repeated request adds.
fn repeatable() -> Object {
    let answers = [
        json!({}),
        json!({
            "a": { "action": "accept", "content": { "n": 1.5, "l": ["x"] } },
            "b": { "roots": [{ "uri": "file:///a" }] },
            "c": { "role": "assistant", "content": [], "model": "m" },
        }),
    ];
    request()
        .maybe("inputResponses", one_of(answers.map(just).into()))
        .maybe("requestState", text())
}

pub(crate) fn call_tool() -> Object {
    repeatable()
        .with("name", text())
        .maybe("arguments", any_object())
        .maybe("task", Object::new().maybe("ttl", count()).build())
}

pub(crate) fn get_prompt() -> Object {
    repeatable().with("name", text()).maybe("arguments", map(text()))
}

pub(crate) fn read_resource() -> Object {
    repeatable().with("uri", uri())
}

pub(crate) fn complete() -> Object {
    let prompt =
        Object::new().with("type", just("ref/prompt")).with("name", text()).maybe("title", text());
    let template = Object::new().with("type", just("ref/resource")).with("uri", uri_template());
    let argument = Object::new().with("name", text()).with("value", text());
    request()
        .with("ref", one_of(vec![prompt.build(), template.build()]))
        .with("argument", argument.build())
        .maybe("context", Object::new().maybe("arguments", map(text())).build())
}

pub(crate) fn set_level() -> Object {
    request().with("level", level())
}

fn filter() -> Json {
    Object::new()
        .maybe("toolsListChanged", flag())
        .maybe("promptsListChanged", flag())
        .maybe("resourcesListChanged", flag())
        .maybe("resourceSubscriptions", list(uri()))
        .maybe("taskIds", list(text()))
        .build()
}

pub(crate) fn listen() -> Object {
    request().with("notifications", filter())
}

pub(crate) fn task() -> Object {
    request().with("taskId", text())
}

pub(crate) fn update_task() -> Object {
    task().with("inputResponses", just(json!({ "q": { "action": "cancel" } })))
}

/// `_meta` of a notification, which may name a subscription.
fn notice_meta() -> Json {
    Object::new()
        .maybe("io.modelcontextprotocol/subscriptionId", id())
        .maybe("com.example/nested", anything())
        .build()
}

pub(crate) fn notice() -> Object {
    Object::new().maybe("_meta", notice_meta())
}

/// Only 2025-11-25 allows it without an id, so that is rare.
pub(crate) fn cancelled() -> Json {
    let unnamed = || notice().maybe("reason", text());
    let named = unnamed().with("requestId", id()).build();
    prop_oneof![5 => named, 1 => unnamed().build()].boxed()
}

pub(crate) fn progress() -> Object {
    notice()
        .with("progressToken", id())
        .with("progress", number())
        .maybe("total", number())
        .maybe("message", text())
}

pub(crate) fn log_message() -> Object {
    notice().with("level", level()).maybe("logger", text()).with("data", anything())
}

pub(crate) fn resource_updated() -> Object {
    notice().with("uri", uri())
}

pub(crate) fn elicitation_complete() -> Object {
    notice().with("elicitationId", text())
}

pub(crate) fn task_status() -> Object {
    item::task().maybe("_meta", meta())
}

pub(crate) fn task_changed() -> Object {
    question::task_detail().maybe("_meta", notice_meta())
}

pub(crate) fn acknowledged() -> Object {
    notice().with("notifications", filter())
}
