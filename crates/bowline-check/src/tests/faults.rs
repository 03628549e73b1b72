//! What servers do wrong in messages, one fault per row.

#![allow(clippy::needless_pass_by_value, reason = "rows are shorter so")]

use bowline::Revision;
use serde_json::{Value, json};

use super::rewrite::{Rewrite, Way};
use super::{check, good, not_found, settings, slow};
use crate::check::{CheckError, Target};
use crate::frames::Recipe;
use crate::report::Finding;
use crate::survey::survey;

/// A fault, and the check that must find it in this revision.
pub(super) struct Row {
    pub(super) id: &'static str,
    revision: Revision,
    rewrite: Rewrite,
}

type Extra = Vec<Vec<u8>>;

const PLAIN: Rewrite =
    Rewrite { make: good, frame: |_| Way::Pass, message: |_, _, _| {}, stays: false, ticks: false };
const R24: Revision = Revision::V2024_11_05;
const R03: Revision = Revision::V2025_03_26;
const R11: Revision = Revision::V2025_11_25;
const R26: Revision = Revision::V2026_07_28;

/// The answers of a server with a task that this server does not have.
fn with_tasks(request: &Value, reply: &mut Value, _: &mut Extra) {
    let params = &request["params"];
    match request["method"].as_str().unwrap_or_default() {
        "initialize" => {
            reply["result"]["capabilities"]["tasks"] =
                json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        }
        "tasks/list" if params.get("cursor").is_some() => refuse(reply, -32602),
        "tasks/list" => grant(reply, json!({"tasks": [task()]})),
        "tasks/get" | "tasks/cancel" if params["taskId"] == task()["taskId"] => {
            grant(reply, task());
        }
        "tasks/get" | "tasks/cancel" => refuse(reply, -32602),
        _ => {}
    }
}

fn task() -> Value {
    json!({
        "taskId": "786512e2-9e0d-44bd-8f29-789f320fe840", "status": "working", "ttl": null,
        "createdAt": "2025-11-25T10:30:00Z", "lastUpdatedAt": "2025-11-25T10:40:00Z",
    })
}

/// Changes messages.
const fn says(
    id: &'static str,
    revision: Revision,
    message: fn(&Value, &mut Value, &mut Extra),
) -> Row {
    Row { id, revision, rewrite: Rewrite { message, ..PLAIN } }
}

/// Keeps frames from the server.
const fn hears(id: &'static str, revision: Revision, frame: fn(&str) -> Way) -> Row {
    Row { id, revision, rewrite: Rewrite { frame, ..PLAIN } }
}

fn is(request: &Value, method: &str) -> bool {
    request["method"] == method
}

/// The answer becomes an error.
fn refuse(reply: &mut Value, code: i64) {
    *reply = json!({"jsonrpc": "2.0", "id": reply["id"], "error": {"code": code, "message": "no"}});
}

/// The answer becomes a result.
fn grant(reply: &mut Value, result: Value) {
    *reply = json!({"jsonrpc": "2.0", "id": reply["id"], "result": result});
}

fn recode(reply: &mut Value, code: i64) {
    reply["error"]["code"] = json!(code);
}

/// The first entry of a list.
fn first<'a>(
    request: &Value,
    reply: &'a mut Value,
    method: &str,
    member: &str,
) -> Option<&'a mut Value> {
    if is(request, method) { reply.pointer_mut(&format!("/result/{member}/0")) } else { None }
}

/// The first tool gets another schema for its input.
fn schema(request: &Value, reply: &mut Value, schema: Value) {
    if let Some(tool) = first(request, reply, "tools/list", "tools") {
        tool["inputSchema"] = schema;
    }
}

fn remove(value: Option<&mut Value>, member: &str) {
    if let Some(Value::Object(members)) = value {
        members.remove(member);
    }
}

fn double(request: &Value, reply: &mut Value, method: &str, member: &str) {
    if let Some(Value::Array(entries)) =
        reply.pointer_mut(&format!("/result/{member}")).filter(|_| is(request, method))
    {
        entries.extend(entries.first().cloned());
    }
}

fn silence_if(is_bad: bool) -> Way {
    if is_bad { Way::Instead(Vec::new()) } else { Way::Pass }
}

fn die_if(is_bad: bool) -> Way {
    if is_bad { Way::Die } else { Way::Pass }
}

fn answer_if(is_bad: bool, answer: &str) -> Way {
    if is_bad { Way::Instead(vec![answer.to_owned()]) } else { Way::Pass }
}

fn echo_version(request: &Value, reply: &mut Value) {
    if is(request, "initialize") {
        reply["result"]["protocolVersion"] = request["params"]["protocolVersion"].clone();
    }
}

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const ODD_RESULT: &str = r#"{"jsonrpc":"2.0","id":null,"result":{}}"#;

pub(super) const ROWS: &[Row] = &[
    says("lifecycle.initialize", R11, |q, a, _| {
        if is(q, "initialize") {
            remove(a.pointer_mut("/result/serverInfo"), "name");
        }
    }),
    says("lifecycle.unknown-version", R11, |q, a, _| echo_version(q, a)),
    says("lifecycle.modern-version", R24, |q, a, _| echo_version(q, a)),
    says("lifecycle.early-ping", R11, |q, a, _| {
        if is(q, "ping") {
            refuse(a, -32600);
        }
    }),
    hears("lifecycle.early-request", R11, |f| die_if(f.contains("tools/list"))),
    hears("lifecycle.discover-first", R11, |f| die_if(f.contains("server/discover"))),
    says("lifecycle.identity", R11, |q, a, _| {
        if is(q, "initialize") {
            a["result"]["serverInfo"]["version"] = json!(" ");
        }
    }),
    says("lifecycle.ping", R11, |q, a, _| {
        if is(q, "ping") {
            grant(a, json!({"pong": 1}));
        }
    }),
    says("capabilities.declared", R11, |q, a, _| {
        if is(q, "prompts/list") {
            refuse(a, -32601);
        }
    }),
    says("capabilities.undeclared", R11, |q, a, _| {
        if is(q, "initialize") {
            remove(a.pointer_mut("/result/capabilities"), "prompts");
        }
    }),
    says("capabilities.templates", R26, |q, a, _| {
        if is(q, "resources/templates/list") {
            refuse(a, -32601);
        }
    }),
    says("jsonrpc.unknown-method", R26, |q, a, _| {
        if is(q, "bowline/no-such-method") {
            recode(a, -32603);
        }
    }),
    says("jsonrpc.invalid-params", R11, |q, a, _| {
        if is(q, "prompts/get") {
            recode(a, -32603);
        }
    }),
    hears("jsonrpc.params-array", R26, |f| silence_if(f.contains("[1]"))),
    hears("jsonrpc.parse-error", R11, |f| silence_if(serde_json::from_str::<Value>(f).is_err())),
    hears("jsonrpc.invalid-request", R11, |f| silence_if(f == "42")),
    says("jsonrpc.ids", R26, |_, a, _| {
        if a["id"] == "7" {
            a["id"] = json!(7);
        }
    }),
    says("jsonrpc.large-id", R11, |_, a, _| {
        if a["id"] == 9_007_199_254_740_993_u64 {
            a["id"] = json!(9_007_199_254_740_992_u64);
        }
    }),
    hears("jsonrpc.id-null", R11, |f| answer_if(f.contains("\"id\":null"), ODD_RESULT)),
    hears("jsonrpc.notifications", R11, |f| {
        answer_if(
            f.contains("bowline/unknown"),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}"#,
        )
    }),
    hears("jsonrpc.batch", R03, |f| silence_if(f.starts_with('['))),
    hears("jsonrpc.batch-refused", R11, |f| {
        answer_if(f.starts_with('['), r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#)
    }),
    hears("jsonrpc.empty-batch", R11, |f| answer_if(f == "[]", ODD_RESULT)),
    says("jsonrpc.same-id", R26, |_, a, _| {
        if a["id"] == "same" {
            refuse(a, -32600);
        }
    }),
    hears("jsonrpc.extra-member", R11, |f| silence_if(f.contains("\"bowline\":{"))),
    says("jsonrpc.unknown-meta", R11, |q, a, _| {
        if q.to_string().contains("com.example/unknown") {
            refuse(a, -32602);
        }
    }),
    says("jsonrpc.envelope", R11, |q, a, _| {
        if is(q, "tools/list") {
            a["jsonrpc"] = json!("1.0");
        }
    }),
    says("modern.discover", R26, |q, a, _| {
        if is(q, "server/discover") {
            remove(a.get_mut("result"), "supportedVersions");
        }
    }),
    says("modern.no-discover-needed", R26, |q, a, _| {
        if is(q, "tools/list") && q["id"] == 1 {
            refuse(a, -32600);
        }
    }),
    says("modern.missing-meta", R26, |q, a, _| {
        if q["params"].get("_meta").is_none() {
            grant(a, json!({}));
        }
    }),
    says("modern.missing-capabilities", R26, |q, a, _| {
        if q["params"]["_meta"].as_object().is_some_and(|it| it.len() == 2) {
            grant(a, json!({}));
        }
    }),
    says("modern.no-client-info", R26, |q, a, _| {
        if q["params"]["_meta"].as_object().is_some_and(|it| it.len() == 2) {
            refuse(a, -32602);
        }
    }),
    says("modern.unsupported-version", R26, |_, a, _| {
        if a["error"]["code"] == -32022 {
            remove(a.get_mut("error"), "data");
        }
    }),
    says("modern.legacy-version", R26, |q, a, _| {
        if q["params"]["_meta"][VERSION] == "2025-11-25" {
            grant(a, json!({}));
        }
    }),
    says("modern.removed-methods", R26, |q, a, _| {
        if is(q, "ping") {
            grant(a, json!({}));
        }
    }),
    says("modern.cache-hints", R26, |q, a, _| {
        if is(q, "tools/list") {
            remove(a.get_mut("result"), "ttlMs");
        }
    }),
    says("modern.listen", R26, |_, a, _| {
        if is(a, "notifications/subscriptions/acknowledged") {
            remove(a.get_mut("params"), "_meta");
        }
    }),
    says("modern.no-requests", R26, |q, _, x| {
        if is(q, "tools/list") {
            x.push(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_vec());
        }
    }),
    says("modern.result-type", R26, |q, a, _| {
        if is(q, "tools/list") {
            remove(a.get_mut("result"), "resultType");
        }
    }),
    says("modern.server-info", R26, |q, a, _| {
        if is(q, "tools/list") {
            remove(a.get_mut("result"), "_meta");
        }
    }),
    says("modern.error-codes", R26, |q, a, _| {
        if is(q, "resources/read") && a.get("error").is_some() {
            recode(a, -32002);
        }
    }),
    says("modern.unasked", R26, |q, _, x| {
        if is(q, "tools/list") {
            x.push(br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_vec());
        }
    }),
    says("tools.list", R11, |q, a, _| {
        if let Some(tool) = first(q, a, "tools/list", "tools") {
            tool["annotations"] = json!({"readOnlyHint": "yes"});
        }
    }),
    says("tools.pages", R11, |q, a, _| {
        if is(q, "tools/list") {
            grant(a, json!({"tools": [], "nextCursor": "again"}));
        }
    }),
    says("tools.bad-cursor", R11, |q, a, _| {
        if is(q, "tools/list") {
            grant(a, json!({"tools": []}));
        }
    }),
    says("tools.names-unique", R11, |q, a, _| double(q, a, "tools/list", "tools")),
    says("tools.names-valid", R11, |q, a, _| {
        if let Some(tool) = first(q, a, "tools/list", "tools") {
            tool["name"] = json!("has blanks");
        }
    }),
    says("tools.names-portable", R11, |q, a, _| {
        if let Some(tool) = first(q, a, "tools/list", "tools") {
            tool["name"] = json!("a.b");
        }
    }),
    says("tools.descriptions", R11, |q, a, _| {
        remove(first(q, a, "tools/list", "tools"), "description");
    }),
    says("tools.header-annotations", R26, |q, a, _| {
        schema(
            q,
            a,
            json!({"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}),
        );
    }),
    says("tools.context-cost", R11, |q, a, _| {
        if let Some(tool) = first(q, a, "tools/list", "tools") {
            tool["description"] = json!("word ".repeat(10_000));
        }
    }),
    says("tools.unknown", R11, |q, a, _| {
        if q["params"]["name"] == "bowline-no-such-tool" {
            grant(a, json!({"content": []}));
        }
    }),
    says("tools.unknown-code", R11, |q, a, _| {
        if q["params"]["name"] == "bowline-no-such-tool" {
            grant(a, json!({"content": [], "isError": true}));
        }
    }),
    says("tools.invalid-arguments", R11, |q, a, _| {
        if q["params"]["name"] == "echo" {
            grant(a, json!({"content": []}));
        }
    }),
    says("tools.call", R11, |q, a, _| {
        if q["params"]["name"] == "now" {
            remove(a.get_mut("result"), "content");
        }
    }),
    says("tools.no-arguments", R11, |q, a, _| {
        if is(q, "tools/call") && q["params"].get("arguments").is_none() {
            refuse(a, -32602);
        }
    }),
    says("tools.content-types", R24, |q, a, _| {
        if q["params"]["name"] == "structured" {
            a["result"]["content"] =
                json!([{"type": "audio", "data": "", "mimeType": "audio/wav"}]);
        }
    }),
    says("tools.structured", R11, |q, a, _| {
        if q["params"]["name"] == "structured" {
            a["result"]["structuredContent"]["total"] = json!("three");
        }
    }),
    says("tools.structured-text", R11, |q, a, _| {
        if q["params"]["name"] == "structured" {
            a["result"]["content"] = json!([]);
        }
    }),
    says("schema.input-object", R11, |q, a, _| schema(q, a, json!({"type": "array"}))),
    says("schema.valid", R11, |q, a, _| {
        schema(q, a, json!({"type": "object", "properties": {"a": {"type": 7}}}));
    }),
    says("schema.output-object", R11, |q, a, _| {
        if let Some(tool) = first(q, a, "tools/list", "tools") {
            tool["outputSchema"] = json!({"type": "string"});
        }
    }),
    says("schema.dialect", R11, |q, a, _| {
        schema(
            q,
            a,
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}),
        );
    }),
    says("schema.patterns", R11, |q, a, _| {
        schema(q, a, json!({"type": "object", "properties": {"a": {"pattern": "(?=a)b"}}}));
    }),
    says("schema.remote-ref", R11, |q, a, _| {
        schema(
            q,
            a,
            json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/a"}}}),
        );
    }),
    says("schema.ref", R11, |q, a, _| {
        schema(
            q,
            a,
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {}}}),
        );
    }),
    says("schema.root-union", R11, |q, a, _| {
        schema(q, a, json!({"type": "object", "anyOf": [{}]}));
    }),
    says("schema.properties", R11, |q, a, _| schema(q, a, json!({"type": "object"}))),
    says("schema.property-names", R11, |q, a, _| {
        schema(q, a, json!({"type": "object", "properties": {"größe": {}}}));
    }),
    says("schema.array-items", R11, |q, a, _| {
        schema(q, a, json!({"type": "object", "properties": {"a": {"type": "array"}}}));
    }),
    says("schema.keywords", R11, |q, a, _| {
        schema(q, a, json!({"type": "object", "properties": {"a": {"not": {}}}}));
    }),
    says("schema.type-list", R11, |q, a, _| {
        schema(q, a, json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}));
    }),
    says("schema.enums", R11, |q, a, _| {
        schema(q, a, json!({"type": "object", "properties": {"a": {"enum": ["a", null]}}}));
    }),
    says("schema.formats", R11, |q, a, _| {
        schema(q, a, json!({"type": "object", "properties": {"a": {"format": "uint8"}}}));
    }),
    says("schema.formats", R11, |q, a, _| {
        if let Some(tool) = first(q, a, "tools/list", "tools") {
            tool["outputSchema"] =
                json!({"type": "object", "properties": {"a": {"format": "int64"}}});
        }
    }),
    says("schema.rare-formats", R11, |q, a, _| {
        schema(q, a, json!({"type": "object", "properties": {"a": {"format": "uri-template"}}}));
    }),
    says("schema.const-union", R11, |q, a, _| {
        schema(
            q,
            a,
            json!({"type": "object", "properties": {"a": {"oneOf": [{"const": "b"}, {"const": "c"}]}}}),
        );
    }),
    says("tools.annotation-title", R11, |q, a, _| {
        if let Some(tool) = first(q, a, "tools/list", "tools") {
            tool["title"] = json!("A title");
            tool["annotations"] = json!({});
        }
    }),
    says("schema.depth", R11, |q, a, _| {
        let deep = (0..6)
            .fold(json!({}), |inner, _| json!({"type": "object", "properties": {"a": inner}}));
        schema(q, a, deep);
    }),
    says("schema.undescribed", R11, |q, a, _| {
        schema(q, a, json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    }),
    says("tasks.declaration", R11, |q, a, more| {
        with_tasks(q, a, more);
        if is(q, "initialize") {
            a["result"]["capabilities"]["tasks"]["requests"]["tools"]["call"] = json!(true);
        }
    }),
    says("tasks.list", R11, |q, a, more| {
        with_tasks(q, a, more);
        remove(first(q, a, "tasks/list", "tasks"), "ttl");
    }),
    says("tasks.list", R11, |q, a, more| {
        with_tasks(q, a, more);
        if let Some(task) = first(q, a, "tasks/list", "tasks") {
            task["status"] = json!("running");
        }
    }),
    says("tasks.bad-cursor", R11, |q, a, more| {
        with_tasks(q, a, more);
        if is(q, "tasks/list") {
            grant(a, json!({"tasks": []}));
        }
    }),
    says("tasks.unknown", R11, |q, a, more| {
        with_tasks(q, a, more);
        if is(q, "tasks/cancel") {
            grant(a, task());
        }
    }),
    says("tasks.unknown-code", R11, |q, a, more| {
        with_tasks(q, a, more);
        if is(q, "tasks/get") {
            recode(a, -32603);
        }
    }),
    says("resources.list", R11, |q, a, _| {
        if let Some(it) = first(q, a, "resources/list", "resources") {
            it["name"] = json!(7);
        }
    }),
    says("resources.bad-cursor", R11, |q, a, _| {
        if is(q, "resources/list") {
            grant(a, json!({"resources": []}));
        }
    }),
    says("resources.uris", R11, |q, a, _| {
        if let Some(it) = first(q, a, "resources/list", "resources") {
            it["uri"] = json!("not a uri");
        }
    }),
    says("resources.uris-unique", R11, |q, a, _| double(q, a, "resources/list", "resources")),
    says("resources.templates", R11, |q, a, _| {
        if let Some(it) = first(q, a, "resources/templates/list", "resourceTemplates") {
            it["uriTemplate"] = json!("test://{name");
        }
    }),
    says("resources.read", R11, |q, a, _| {
        remove(first(q, a, "resources/read", "contents"), "text");
    }),
    says("resources.readable", R11, |q, a, _| {
        if is(q, "resources/read") {
            refuse(a, -32603);
        }
    }),
    says("resources.blob", R11, |q, a, _| {
        if let Some(it) =
            first(q, a, "resources/read", "contents").filter(|it| it.get("blob").is_some())
        {
            it["blob"] = json!("***");
        }
    }),
    says("resources.unknown", R26, |q, a, _| {
        if is(q, "resources/read") && a.get("error").is_some() {
            grant(a, json!({"contents": []}));
        }
    }),
    says("resources.unknown-code", R11, |q, a, _| {
        if is(q, "resources/read") && a.get("error").is_some() {
            recode(a, -32602);
        }
    }),
    says("resources.subscribe", R11, |q, a, _| {
        if is(q, "resources/unsubscribe") {
            refuse(a, -32601);
        }
    }),
    says("prompts.list", R11, |q, a, _| remove(first(q, a, "prompts/list", "prompts"), "name")),
    says("prompts.bad-cursor", R11, |q, a, _| {
        if is(q, "prompts/list") {
            grant(a, json!({"prompts": []}));
        }
    }),
    says("prompts.names-unique", R11, |q, a, _| double(q, a, "prompts/list", "prompts")),
    says("prompts.get", R11, |q, a, _| {
        if let Some(it) = first(q, a, "prompts/get", "messages") {
            it["role"] = json!("robot");
        }
    }),
    says("prompts.missing-argument", R11, |q, a, _| {
        if is(q, "prompts/get") {
            recode(a, -32603);
        }
    }),
    says("prompts.unknown", R11, |q, a, _| {
        if is(q, "prompts/get") {
            recode(a, -32601);
        }
    }),
    says("completion.values", R11, |q, a, _| {
        if is(q, "completion/complete") {
            a["result"]["completion"]["values"] = json!([1]);
        }
    }),
    says("completion.unknown", R26, |q, a, _| {
        if is(q, "completion/complete") {
            grant(a, json!({"completion": {"values": []}}));
        }
    }),
    says("logging.levels", R11, |q, a, _| {
        if q["params"]["level"] == "notice" {
            refuse(a, -32602);
        }
    }),
    says("logging.bad-level", R11, |q, a, _| {
        if q["params"]["level"] == "loud" {
            grant(a, json!({}));
        }
    }),
    says("logging.messages", R11, |q, _, x| {
        if is(q, "tools/list") {
            x.push(br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"loud","data":1}}"#.to_vec());
        }
    }),
    hears("cancel.unknown", R11, |f| {
        answer_if(
            f.contains("never-sent"),
            r#"{"jsonrpc":"2.0","id":"bowline-never-sent","error":{"code":-32602,"message":"no"}}"#,
        )
    }),
    hears("cancel.malformed", R26, |f| die_if(f.contains("cancelled") && !f.contains("requestId"))),
    hears("cancel.running", R11, |f| silence_if(f.contains("notifications/cancelled"))),
    says("progress.token", R11, |_, a, _| {
        if is(a, "notifications/progress") {
            a["params"]["progressToken"] = json!(1);
        }
    }),
    says("progress.increases", R26, |_, a, _| {
        if is(a, "notifications/progress") {
            a["params"]["progress"] = json!(1);
        }
    }),
    says("capabilities.requests", R11, |q, _, x| {
        if is(q, "tools/list") {
            x.push(br#"{"jsonrpc":"2.0","id":"s","method":"roots/list"}"#.to_vec());
        }
    }),
    hears("stdio.crlf", R11, |f| die_if(f.ends_with('\r'))),
    hears("stdio.blank-lines", R26, |f| die_if(f.is_empty())),
    hears("stdio.large-message", R11, |f| die_if(f.len() > 1 << 20)),
    Row { id: "stdio.end", revision: R11, rewrite: Rewrite { stays: true, ..PLAIN } },
    says("stdio.pollution", R11, |q, _, x| {
        if is(q, "tools/list") {
            x.push(b"Listening...".to_vec());
        }
    }),
    says("transport.utf8", R11, |q, _, x| {
        if is(q, "tools/list") {
            x.push(b"\xff\xfe".to_vec());
        }
    }),
];

/// Faults that only show with a real process.
pub(super) const BY_PROGRAM: [&str; 3] = ["stdio.exit-status", "stdio.stderr", "stdio.left-behind"];

/// Faults that only show while other checks run.
const WATCHED: [&str; 11] = [
    "jsonrpc.envelope",
    "modern.no-requests",
    "modern.result-type",
    "modern.server-info",
    "modern.error-codes",
    "modern.unasked",
    "logging.messages",
    "capabilities.requests",
    "stdio.pollution",
    "transport.utf8",
    "stdio.stderr",
];

#[tokio::test(start_paused = true)]
async fn each_fault_is_found() {
    let mut missed = Vec::new();
    for row in ROWS {
        let mut settings = settings(row.rewrite.target());
        if row.id == "cancel.running" {
            settings.calls = slow();
        }
        let mut findings = match WATCHED.contains(&row.id) {
            false => check(&settings, row.id, &[row.revision]).await,
            true => check(&settings, "", &[row.revision]).await,
        };
        findings.retain(|finding| finding.rule.id == row.id);
        missed.extend(not_found(row.id, &findings));
    }
    assert_eq!(missed, [""; 0]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_is_watched_to_its_end() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}"#;
    let shell = |before: &str| {
        let script = format!("{before}\nwhile read line; do echo '{answer}'; done\nexit 3");
        let args = vec!["-c".into(), script.into()];
        settings(Target::Program(Recipe { program: "sh".into(), args, ..Recipe::default() }))
    };
    let settings = shell("seq 2000 >&2");
    let findings = check(&settings, "stdio.exit-status", &[R11]).await;
    assert_eq!(not_found("stdio.exit-status", &findings), None);
    let mut findings = check(&settings, "lifecycle.initialize", &[R11]).await;
    assert!(!findings[0].verdict.is_problem(), "{:?}", findings[0].said);
    let choice = crate::run::Choice {
        only: vec!["stdio.exit-status".to_owned(), "stdio.stderr".to_owned()],
        ..crate::run::Choice::default()
    };
    findings = crate::run::run(&settings, &choice, (&[R11], &[R11]), |_| {}).await;
    findings.retain(|finding| finding.rule.id == "stdio.stderr");
    assert_eq!(not_found("stdio.stderr", &findings), None);
    let messy = shell("sleep 300 >/dev/null 2>&1 &");
    let findings = check(&messy, "stdio.left-behind", &[R11]).await;
    assert_eq!(not_found("stdio.left-behind", &findings), None);
    assert!(findings[0].said[0].contains("sleep ("), "{:?}", findings[0].said);
    // Its children hold the pipes open, but it has exited.
    let holding = shell("sleep 300 &");
    let findings = check(&holding, "stdio.end", &[R11]).await;
    assert!(!findings[0].verdict.is_problem(), "{:?}", findings[0].said);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_no_client_can_talk_to_is_reported() {
    for (rewrite, why) in [
        (
            Rewrite { message: |_, a, _| a["id"] = json!(a["id"].to_string()), ..PLAIN },
            "a response with another id came: {\"jsonrpc\":\"2.0\",\"id\":\"1\"",
        ),
        (
            Rewrite { frame: |f| answer_if(f.contains("\"id\""), "Content-Length: 12\r"), ..PLAIN },
            "the server sent, once, what is not a message: Content-Length: 12",
        ),
    ] {
        let mut settings = settings(rewrite.target());
        match survey(&mut settings).await {
            Err(CheckError::NotMcp(found)) => assert!(found.contains(why), "{found}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_server_that_never_stops_talking_is_heard_out() {
    let rewrite = Rewrite { ticks: true, ..PLAIN };
    let findings = check(&settings(rewrite.target()), "jsonrpc", &[R11]).await;
    let accused = findings.iter().filter(|it| it.verdict.is_problem()).count();
    assert_eq!(accused, 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_handshake_is_not_waited_for_in_every_check() {
    let rewrite = Rewrite { frame: |f| silence_if(f.contains("\"initialize\"")), ..PLAIN };
    let settings = settings(rewrite.target());
    let findings = check(&settings, "tools,schema,resources", &[R11]).await;
    let accused: Vec<_> = findings.iter().filter(|it| it.verdict.is_problem()).collect();
    assert_eq!(accused.len(), 2);
    assert!(accused[0].said[0].contains("the handshake failed"), "{:?}", accused[0].said);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_is_started_again() {
    let rewrite = Rewrite { frame: |f| die_if(f.contains("resources/list")), ..PLAIN };
    let findings = check(&settings(rewrite.target()), "", &[R11]).await;
    let of = |id: &str| findings.iter().find(|finding| finding.rule.id == id).unwrap();
    let said = &of("capabilities.declared").said;
    assert!(said[0].contains("the server is gone"), "{said:?}");
    for id in ["prompts.list", "completion.values", "stdio.end"] {
        assert!(!of(id).verdict.is_problem(), "{id}: {:?}", of(id).said);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_had_is_one_finding() {
    const OFFLINE: &str =
        r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"getaddrinfo ENOTFOUND"}}"#;
    /// What a server that is offline answers to everything about tools.
    fn offline(frame: &str) -> Way {
        let request: Value = serde_json::from_str(frame).unwrap_or_default();
        let is_about = request["method"].as_str().is_some_and(|it| it.starts_with("tools/"));
        answer_if(is_about, &OFFLINE.replace("ID", &request["id"].to_string()))
    }
    let silent: fn(&str) -> Way = |f| silence_if(f.contains("\"tools/"));
    let dead: fn(&str) -> Way = |f| die_if(f.contains("\"tools/"));
    for (revision, frame, what) in [
        (R11, offline as fn(&str) -> Way, "tools/list got error -32603"),
        (R26, offline, "tools/list got error -32603"),
        (R11, silent, "tools/list: "),
        (R26, dead, "tools/list: "),
    ] {
        let settings = settings(Rewrite { frame, ..PLAIN }.target());
        // How early requests are answered is another question, which a silent server fails.
        let only = "capabilities,jsonrpc.invalid-params,modern,tools,schema,resources,prompts,\
                    completion,utilities,cancel,progress";
        let findings = check(&settings, only, &[revision]).await;
        let accused: Vec<_> = findings.iter().filter(|it| it.verdict.is_problem()).collect();
        let [one] = accused[..] else { panic!("{revision}: {accused:?}") };
        assert_eq!(one.rule.id, "capabilities.declared");
        assert!(one.said[0].contains(what), "{:?}", one.said);
        let because = |it: &&Finding| it.said == ["tools/list failed: see capabilities.declared"];
        assert!(findings.iter().filter(because).count() > 25, "{revision}");
    }
    // Without that check, the first that needs the list reports it.
    let settings = settings(Rewrite { frame: offline, ..PLAIN }.target());
    let findings = check(&settings, "tools,schema", &[R11]).await;
    let accused: Vec<_> = findings.iter().filter(|it| it.verdict.is_problem()).collect();
    assert_eq!(accused.iter().map(|it| it.rule.id).collect::<Vec<_>>(), ["tools.list"]);
}
