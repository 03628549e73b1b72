//! Members that the specification does not define survive being read and written.
//!
//! A bridge or a gateway relays messages between others. What it drops is lost for good, and what
//! it adds has to be explained.

use bowline_proto::method::*;
use bowline_proto::model::*;
use serde_json::{Value, json};

use crate::shared::same;
use crate::typed::*;

/// Reads and writes a value with an extra member, wherever `at` points.
fn check(round_trip: fn(&str) -> Written, value: &Value, at: &[&str]) {
    for pointer in at {
        let mut value = value.clone();
        let object =
            value.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")).as_object_mut();
        object.unwrap().insert("com.example/unknown".to_owned(), json!({ "n": [1.5, null] }));
        let written = round_trip(&value.to_string()).unwrap();
        assert!(same(&written, &value), "{pointer}:\n   read {value}\nwritten {written}");
    }
}

#[test]
fn members_of_results_survive() {
    let modern = |mut result: Value| {
        result["resultType"] = "complete".into();
        result
    };
    let listed = |name: &str, item: Value| modern(json!({ name: [item] }));
    let contents =
        json!({ "contents": [{ "uri": "mem:1", "text": "" }, { "uri": "", "blob": "" }] });
    let tool = json!({ "name": "t", "inputSchema": { "type": "object" }, "_meta": {} });
    check(result::<Ping>, &modern(json!({})), &[""]);
    check(result::<CallTool>, &modern(json!({ "content": [] })), &[""]);
    check(
        result::<ListTools>,
        &listed("tools", tool),
        &["", "/tools/0", "/tools/0/_meta", "/tools/0/inputSchema"],
    );
    let item = json!({ "name": "n", "uri": "mem:1" });
    check(result::<ListResources>, &listed("resources", item), &["", "/resources/0"]);
    let item = json!({ "name": "n", "uriTemplate": "mem:{n}" });
    let templates = listed("resourceTemplates", item);
    check(result::<ListResourceTemplates>, &templates, &["", "/resourceTemplates/0"]);
    check(result::<ListPrompts>, &listed("prompts", json!({ "name": "p" })), &["", "/prompts/0"]);
    check(result::<GetPrompt>, &modern(json!({ "messages": [] })), &[""]);
    check(result::<ReadResource>, &modern(contents), &["", "/contents/0", "/contents/1"]);
    check(result::<Complete>, &modern(json!({ "completion": { "values": [] } })), &[""]);
    let asks = json!({ "resultType": "input_required", "requestState": "" });
    check(result::<CallTool>, &asks, &[""]);
    let skill = json!({ "uri": "skill://a/SKILL.md", "frontmatter": {}, "resources": [] });
    check(
        result::<ListSkills>,
        &listed("skills", skill),
        &["", "/skills/0", "/skills/0/frontmatter"],
    );
    check(result::<SubscriptionsListen>, &modern(json!({ "_meta": {} })), &["", "/_meta"]);
}

#[test]
fn members_of_tasks_survive() {
    let task = json!({
        "taskId": "t", "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttl": null,
    });
    check(value::<GetTaskResult>, &task, &[""]);
    check(value::<CreateTaskResult>, &json!({ "task": task }), &[""]);
    check(value::<ListTasksResult>, &json!({ "tasks": [] }), &[""]);
    // The result of the request that became a task.
    check(
        value::<GetTaskPayloadResult>,
        &json!({ "content": [{ "type": "text" }] }),
        &["", "/content/0"],
    );
    let task = json!({
        "taskId": "t", "status": "completed", "createdAt": "", "lastUpdatedAt": "", "ttlMs": 1,
        "result": { "content": [] }, "resultType": "complete",
    });
    check(result::<GetTaskDetail>, &task, &["", "/result"]);
}

#[test]
fn members_of_client_responses_survive() {
    check(value::<ElicitResult>, &json!({ "action": "accept", "content": {} }), &["", "/content"]);
    check(value::<ListRootsResult>, &json!({ "roots": [] }), &[""]);
    let said = json!({ "role": "user", "content": { "type": "new" }, "model": "" });
    check(value::<CreateMessageResult>, &said, &["", "/content"]);
}

#[test]
fn members_of_capabilities_survive() {
    let all = json!({ "experimental": { "x": {} }, "extensions": { "com.example/y": {} } });
    let places =
        &["", "/experimental", "/experimental/x", "/extensions", "/extensions/com.example~1y"];
    check(value::<ClientCapabilities>, &all, places);
    check(value::<ServerCapabilities>, &all, places);
    check(
        value::<ClientCapabilities>,
        &json!({ "sampling": { "tools": {} } }),
        &["/sampling/tools"],
    );
    check(value::<ServerCapabilities>, &json!({ "logging": {} }), &["/logging"]);
}

#[test]
fn members_of_meta_and_arguments_survive() {
    let call = json!({ "name": "t", "arguments": {}, "_meta": { "progressToken": 1 } });
    check(params::<CallTool>, &call, &["/arguments", "/_meta"]);
    check(params::<SubscriptionsListen>, &json!({ "notifications": {} }), &["/notifications"]);
    let notice = json!({ "uri": "mem:1", "_meta": {} });
    check(value::<ResourceUpdatedParams>, &notice, &["/_meta"]);
}

#[test]
fn content_of_unknown_kinds_survives() {
    let block = json!({ "type": "hologram", "depth": 3 });
    check(value::<ContentBlock>, &block, &[""]);
    check(value::<SamplingContent>, &block, &[""]);
    let link = json!({ "type": "resource_link", "uri": "mem:1", "name": "n" });
    check(value::<ContentBlock>, &link, &[""]);
}

/// Results that look like those of another method, or of none. The type follows from the request,
/// and nothing is added or lost.
#[test]
fn results_are_not_mistaken_for_others() {
    let keeps = |round_trip: fn(&str) -> Written, text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(round_trip(text), Ok(value), "{text}");
    };
    for empty in [result::<Ping>, result::<Subscribe>, result::<Unsubscribe>, result::<SetLevel>] {
        keeps(empty, r#"{}"#);
        keeps(empty, r#"{"_meta":{"a":1}}"#);
        keeps(empty, r#"{"resultType":"complete"}"#);
        keeps(empty, r#"{"resultType":"complete","_meta":{"a":1},"skills":["x"]}"#);
        keeps(empty, r#"{"content":[],"tools":[]}"#);
    }
    keeps(result::<ListTools>, r#"{"tools":[],"owner":"me"}"#);
    keeps(result::<ListTools>, r#"{"tools":[],"content":[],"action":"accept"}"#);
    keeps(value::<ElicitResult>, r#"{"action":"accept","ticket":7}"#);
    keeps(result::<StopTask>, r#"{"resultType":"complete"}"#);
    // Not the expected type: rejected, not mistaken for something else.
    let rejected = result::<ListTools>(r#"{"_meta":{"a":1}}"#).unwrap_err();
    assert_eq!(rejected, "tools/list: result.tools is missing");
}
