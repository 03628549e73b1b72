//! What two revisions can both say.

use bowline_proto::method::{
    CallTool, Complete, GetPrompt, ListPrompts, ListResourceTemplates, ListResources, ListTools,
    Method, ReadResource,
};
use bowline_proto::revision::{Adapt, Revision};
use serde_json::Value;

/// An [`outcome`](super::outcome) without what `older` cannot say, and without what newer revisions
/// add to every result; so that answers in two revisions can be compared.
#[must_use]
pub fn common(method: &str, outcome: &Value, older: Revision) -> Value {
    let mut common = outcome.clone();
    let Some(result) = common.get_mut("result") else { return common };
    let adapted = match method {
        ListTools::NAME => adapt::<ListTools>(result, older),
        CallTool::NAME => adapt::<CallTool>(result, older),
        ListPrompts::NAME => adapt::<ListPrompts>(result, older),
        GetPrompt::NAME => adapt::<GetPrompt>(result, older),
        ListResources::NAME => adapt::<ListResources>(result, older),
        ListResourceTemplates::NAME => adapt::<ListResourceTemplates>(result, older),
        ReadResource::NAME => adapt::<ReadResource>(result, older),
        Complete::NAME => adapt::<Complete>(result, older),
        _ => None,
    };
    if let Some(adapted) = adapted {
        *result = adapted;
    }
    if let Some(members) = result.as_object_mut() {
        for name in ["resultType", "ttlMs", "cacheScope", "_meta"] {
            members.remove(name);
        }
        // Tasks are agreed on between neighbours, and a translation makes its own.
        let tools = members.get_mut("tools").and_then(Value::as_array_mut);
        for tool in tools.into_iter().flatten().filter_map(Value::as_object_mut) {
            tool.remove("execution");
        }
        // What a server can do differs from revision to revision.
        if matches!(method, "initialize" | "server/discover") {
            members.retain(|name, _| name == "instructions");
        }
    }
    common
}

/// `None` for a result of another kind, such as a task or a question.
fn adapt<M: Method>(result: &Value, to: Revision) -> Option<Value> {
    let is_other = |kind: &Value| kind != "complete";
    if result.get("resultType").is_some_and(is_other) || result.get("task").is_some() {
        return None;
    }
    let mut typed: M::Result = serde_json::from_value(result.clone()).ok()?;
    typed.adapt(to).ok()?;
    serde_json::to_value(typed).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_one_revision_cannot_say_is_no_difference() {
        let new = json!({ "result": {
            "resultType": "complete",
            "content": [{ "type": "text", "text": "7" }],
            "structuredContent": { "sum": 7 },
        } });
        let old = json!({ "result": { "content": [{ "type": "text", "text": "7" }] } });
        let older = Revision::V2024_11_05;
        assert_eq!(common("tools/call", &new, older), common("tools/call", &old, older));
        let newer = Revision::V2025_11_25;
        assert_ne!(common("tools/call", &new, newer), common("tools/call", &old, newer));
        let other = json!({ "result": { "content": [{ "type": "text", "text": "8" }] } });
        assert_ne!(common("tools/call", &new, older), common("tools/call", &other, older));
    }
}
