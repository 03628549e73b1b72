//! Implementations and capabilities.

use super::{Json, Object, any_object, flag, icons, map, text};

pub(crate) fn implementation() -> Json {
    Object::new()
        .with("name", text())
        .with("version", text())
        .maybe("title", text())
        .maybe("description", text())
        .maybe("websiteUrl", super::word(&["https://example.com/"]))
        .maybe("icons", icons())
        .build()
}

/// A client of any revision.
pub(crate) fn client() -> Json {
    let roots = Object::new().maybe("listChanged", flag());
    let sampling_tasks = Object::new().maybe("createMessage", any_object());
    let elicitation_tasks = Object::new().maybe("create", any_object());
    let requests = Object::new()
        .maybe("sampling", sampling_tasks.build())
        .maybe("elicitation", elicitation_tasks.build());
    let tasks = Object::new()
        .maybe("list", any_object())
        .maybe("cancel", any_object())
        .maybe("requests", requests.build());
    with_questions().maybe("roots", roots.build()).maybe("tasks", tasks.build()).build()
}

/// A client of 2026-07-28. What a request carries unparsed is not adapted, so it must conform
/// already.
pub(crate) fn modern_client() -> Json {
    with_questions().maybe("roots", Object::new().build()).build()
}

fn with_questions() -> Object {
    let sampling = Object::new().maybe("context", any_object()).maybe("tools", any_object());
    let elicitation = Object::new().maybe("form", any_object()).maybe("url", any_object());
    Object::new()
        .maybe("experimental", map(any_object()))
        .maybe("sampling", sampling.build())
        .maybe("elicitation", elicitation.build())
        .maybe("extensions", map(any_object()))
}

pub(crate) fn server() -> Json {
    let listed = || Object::new().maybe("listChanged", flag());
    let tools = Object::new().maybe("call", any_object());
    let tasks = Object::new()
        .maybe("list", any_object())
        .maybe("cancel", any_object())
        .maybe("requests", Object::new().maybe("tools", tools.build()).build());
    Object::new()
        .maybe("experimental", map(any_object()))
        .maybe("logging", any_object())
        .maybe("completions", any_object())
        .maybe("prompts", listed().build())
        .maybe("resources", listed().maybe("subscribe", flag()).build())
        .maybe("tools", listed().build())
        .maybe("tasks", tasks.build())
        .maybe("extensions", map(any_object()))
        .build()
}
