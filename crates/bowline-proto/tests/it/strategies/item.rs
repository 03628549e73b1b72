//! Listed items: tools, resources, templates, prompts, roots, skills, tasks.

use serde_json::{Value, json};

use super::{
    Json, Object, annotations, any_object, count, flag, icons, just, list, meta, moment, one_of,
    text, uri, uri_template, word,
};

/// A tool, with schemas that use many features of JSON Schema.
pub(crate) fn tool() -> Json {
    let hints = Object::new()
        .maybe("title", text())
        .maybe("readOnlyHint", flag())
        .maybe("destructiveHint", flag())
        .maybe("idempotentHint", flag())
        .maybe("openWorldHint", flag());
    let execution =
        Object::new().maybe("taskSupport", word(&["forbidden", "optional", "required"]));
    named()
        .with("inputSchema", input_schema())
        .maybe("outputSchema", one_of(vec![input_schema(), output_schema()]))
        .maybe("annotations", hints.build())
        .maybe("execution", execution.build())
        .build()
}

fn input_schema() -> Json {
    one_of(
        [
            json!({ "type": "object" }),
            json!({ "type": "object", "additionalProperties": false }),
            json!({ "type": "object", "properties": { "b": true, "a": false, "c": {} } }),
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$defs": { "n": { "type": "number", "multipleOf": 0.5 } },
                "type": "object",
                "properties": { "n": { "$ref": "#/$defs/n" }, "s": { "const": null } },
                "required": ["n"],
                "oneOf": [{ "required": ["s"] }, true],
            }),
        ]
        .map(just)
        .into(),
    )
}

/// Schemas that only 2026-07-28 allows.
fn output_schema() -> Json {
    one_of([json!({ "type": "array", "items": {} }), json!({ "const": null })].map(just).into())
}

fn named() -> Object {
    Object::new()
        .with("name", text())
        .maybe("title", text())
        .maybe("description", text())
        .maybe("icons", icons())
        .maybe("_meta", meta())
}

fn resource_members() -> Object {
    named()
        .with("uri", uri())
        .maybe("mimeType", text())
        .maybe("annotations", annotations())
        .maybe("size", count())
}

pub(crate) fn resource() -> Json {
    resource_members().build()
}

pub(crate) fn resource_link() -> Json {
    resource_members().with("type", just("resource_link")).build()
}

pub(crate) fn template() -> Json {
    named()
        .with("uriTemplate", uri_template())
        .maybe("mimeType", text())
        .maybe("annotations", annotations())
        .build()
}

pub(crate) fn prompt() -> Json {
    let argument = Object::new()
        .with("name", text())
        .maybe("title", text())
        .maybe("description", text())
        .maybe("required", flag());
    named().maybe("arguments", list(argument.build())).build()
}

pub(crate) fn root() -> Json {
    Object::new()
        .with("uri", word(&["file:///srv/me", "file:///"]))
        .maybe("name", text())
        .maybe("_meta", meta())
        .build()
}

pub(crate) fn skill() -> Json {
    let file = json!([{ "uri": "skill://a/b.md", "digest": "sha256:00", "size": 3 }]);
    Object::new()
        .with("uri", uri())
        .with("frontmatter", any_object())
        .with("resources", one_of(vec![just(file), just("dynamic")]))
        .build()
}

/// A task of 2025-11-25.
pub(crate) fn task() -> Object {
    task_members("ttl").maybe("pollInterval", count())
}

/// A task of the extension.
pub(crate) fn extension_task() -> Object {
    task_members("ttlMs").maybe("pollIntervalMs", count())
}

fn task_members(ttl: &'static str) -> Object {
    Object::new()
        .with("taskId", text())
        .with("status", word(&["working", "input_required", "completed", "failed", "cancelled"]))
        .with("createdAt", moment())
        .with("lastUpdatedAt", moment())
        .with(ttl, one_of(vec![just(Value::Null), count()]))
        .maybe("statusMessage", text())
}
