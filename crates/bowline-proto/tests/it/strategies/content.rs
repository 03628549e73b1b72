//! Content of all kinds, including an unknown one.

use proptest::prelude::*;

use super::{
    Json, Object, annotations, any_object, anything, base64, flag, just, list, meta, one_of, text,
    uri,
};
use crate::strategies::item;

/// A block of a tool's result or of a prompt.
pub(crate) fn block() -> Json {
    one_of(vec![words(), image(), audio(), item::resource_link(), embedded(), unknown()])
}

/// A block of a message to or from a model. Tools and unknown kinds are rare: older revisions
/// reject them, and rejected values test little.
pub(crate) fn sampling_block() -> Json {
    prop_oneof![
        3 => words(),
        2 => image(),
        2 => audio(),
        1 => tool_use(),
        1 => tool_result(),
        1 => unknown(),
    ]
    .boxed()
}

/// Alone or in an array.
pub(crate) fn sampling_content() -> Json {
    prop_oneof![3 => sampling_block(), 1 => list(sampling_block())].boxed()
}

fn piece(kind: &'static str) -> Object {
    Object::new()
        .with("type", just(kind))
        .maybe("annotations", annotations())
        .maybe("_meta", meta())
}

fn words() -> Json {
    piece("text").with("text", text()).build()
}

fn image() -> Json {
    piece("image").with("data", base64()).with("mimeType", text()).build()
}

fn audio() -> Json {
    piece("audio").with("data", base64()).with("mimeType", text()).build()
}

fn embedded() -> Json {
    piece("resource").with("resource", contents()).build()
}

fn unknown() -> Json {
    Object::new().with("type", just("hologram")).with("depth", anything()).build()
}

fn tool_use() -> Json {
    Object::new()
        .with("type", just("tool_use"))
        .with("id", text())
        .with("name", text())
        .with("input", any_object())
        .maybe("_meta", meta())
        .build()
}

fn tool_result() -> Json {
    Object::new()
        .with("type", just("tool_result"))
        .with("toolUseId", text())
        .with("content", list(block()))
        .maybe("structuredContent", anything())
        .maybe("isError", flag())
        .maybe("_meta", meta())
        .build()
}

/// The contents of a resource.
pub(crate) fn contents() -> Json {
    let any = || Object::new().with("uri", uri()).maybe("mimeType", text()).maybe("_meta", meta());
    one_of(vec![any().with("text", text()).build(), any().with("blob", base64()).build()])
}
