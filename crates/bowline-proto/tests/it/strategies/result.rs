//! The results of requests to servers.

use super::content::{block, contents};
use super::{
    Json, Object, anything, capability, count, flag, id, item, just, list, question, result_meta,
    role, text, word,
};

/// Only what all results have.
pub(crate) fn empty() -> Object {
    result_of("complete")
}

fn result_of(kind: &'static str) -> Object {
    Object::new().maybe("resultType", just(kind)).maybe("_meta", result_meta())
}

fn cached() -> Object {
    empty().maybe("ttlMs", count()).maybe("cacheScope", word(&["public", "private"]))
}

fn page(name: &'static str, item: Json) -> Object {
    cached().with(name, list(item)).maybe("nextCursor", text())
}

pub(crate) fn initialize() -> Object {
    empty()
        .with("protocolVersion", text())
        .with("capabilities", capability::server())
        .with("serverInfo", capability::implementation())
        .maybe("instructions", text())
}

pub(crate) fn discover() -> Object {
    cached()
        .with("supportedVersions", list(text()))
        .with("capabilities", capability::server())
        .maybe("instructions", text())
}

pub(crate) fn tools() -> Object {
    page("tools", item::tool())
}

pub(crate) fn prompts() -> Object {
    page("prompts", item::prompt())
}

pub(crate) fn resources() -> Object {
    page("resources", item::resource())
}

pub(crate) fn templates() -> Object {
    page("resourceTemplates", item::template())
}

pub(crate) fn skills() -> Object {
    page("skills", item::skill())
}

pub(crate) fn skill() -> Object {
    cached().with("skill", item::skill())
}

pub(crate) fn directory() -> Object {
    empty().with("resources", list(item::resource())).maybe("nextCursor", text())
}

pub(crate) fn call_tool() -> Object {
    empty()
        .with("content", list(block()))
        .maybe("structuredContent", anything())
        .maybe("isError", flag())
}

pub(crate) fn get_prompt() -> Object {
    let message = Object::new().with("role", role()).with("content", block());
    empty().with("messages", list(message.build())).maybe("description", text())
}

pub(crate) fn read_resource() -> Object {
    cached().with("contents", list(contents()))
}

pub(crate) fn complete() -> Object {
    let completion = Object::new()
        .with("values", super::one_of(vec![list(text()), too_many()]))
        .maybe("total", count())
        .maybe("hasMore", flag());
    empty().with("completion", completion.build())
}

/// More values than a result may contain; the rest is dropped.
fn too_many() -> Json {
    just(vec!["again"; 101])
}

/// 2026-07-28 requires the id of the subscription.
pub(crate) fn listen() -> Object {
    let meta = Object::new()
        .with("io.modelcontextprotocol/subscriptionId", id())
        .maybe("io.modelcontextprotocol/serverInfo", capability::implementation());
    Object::new().maybe("resultType", just("complete")).with("_meta", meta.build())
}

pub(crate) fn task() -> Object {
    item::task().maybe("_meta", result_meta())
}

pub(crate) fn tasks() -> Object {
    empty().with("tasks", list(item::task().build())).maybe("nextCursor", text())
}

pub(crate) fn create_task() -> Object {
    empty().with("task", item::task().build())
}

pub(crate) fn task_detail() -> Object {
    question::task_detail().maybe("resultType", just("complete")).maybe("_meta", result_meta())
}

pub(crate) fn extension_task() -> Object {
    item::extension_task().maybe("resultType", just("task")).maybe("_meta", result_meta())
}

pub(crate) fn input_required() -> Object {
    result_of("input_required")
        .with("requestState", text())
        .maybe("inputRequests", question::input_requests())
}
