//! What a view must know about a message.

use bowline_proto::json::Json;
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Envelope {
    pub(super) method: Option<String>,
    /// As JSON.
    pub(super) id: Option<String>,
    /// The tool, prompt, resource or task of a request.
    pub(super) subject: Option<String>,
    /// The task that a request asks for, or that a result is.
    pub(super) task: Option<String>,
    /// What a result that asks something must get back, or what a retry gives back.
    pub(super) state: Option<String>,
    pub(super) is_error: bool,
}

impl Envelope {
    pub(super) fn read(message: &Json) -> Self {
        let message = message.to_value();
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let method = text(message.get("method"));
        let id = message.get("id").filter(|id| !id.is_null()).map(Value::to_string);
        let (params, result) = (message.get("params"), message.get("result"));
        let of = |member: &str| params.and_then(|params| params.get(member));
        let given = |member: &str| result.and_then(|result| result.get(member));
        let task = text(of("taskId"));
        let subject = text(of("name")).or_else(|| text(of("uri"))).or_else(|| task.clone());
        let became = text(given("taskId"))
            .or_else(|| text(given("task").and_then(|task| task.get("taskId"))));
        let state = text(of("requestState")).or_else(|| text(given("requestState")));
        let is_failed = given("isError") == Some(&Value::Bool(true));
        let is_error = message.get("error").is_some() || is_failed;
        Self { method, id, subject, task: task.or(became), state, is_error }
    }
}
