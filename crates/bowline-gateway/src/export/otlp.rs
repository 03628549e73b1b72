//! OpenTelemetry: one span per request, with the names of the conventions for MCP, as the JSON that
//! collectors take (`/v1/traces`).

use serde_json::{Value, json};

use super::moment;
use crate::recording::{Exchange, Recording};
use crate::session_file::Way;

/// The recording as one trace.
#[must_use]
pub fn otlp(recording: &Recording) -> Value {
    let exchanges = recording.exchanges();
    let trace = format!("{:032x}", moment(recording, 0.0).unsigned_abs());
    let spans = exchanges.iter().enumerate().map(|(at, exchange)| {
        let number = u64::try_from(at).unwrap_or_default() + 1;
        span(recording, exchange, &trace, number)
    });
    json!({ "resourceSpans": [{
        "resource": { "attributes": [text("service.name", &recording.opening.server())] },
        "scopeSpans": [{
            "scope": { "name": "bowline", "version": env!("CARGO_PKG_VERSION") },
            "spans": spans.collect::<Vec<_>>(),
        }],
    }] })
}

fn span(recording: &Recording, exchange: &Exchange, trace: &str, number: u64) -> Value {
    let method = exchange.method();
    let params = &exchange.request["params"];
    let subject = params["name"].as_str();
    let name = subject.map_or_else(|| method.to_owned(), |subject| format!("{method} {subject}"));
    let id = match &exchange.request["id"] {
        Value::String(id) => id.clone(),
        id => id.to_string(),
    };
    let mut attributes = vec![text("mcp.method.name", method), text("jsonrpc.request.id", &id)];
    let named = match method {
        "tools/call" => Some("gen_ai.tool.name"),
        "prompts/get" => Some("gen_ai.prompt.name"),
        _ => None,
    };
    attributes.extend(named.zip(subject).map(|(name, subject)| text(name, subject)));
    attributes.extend(params["uri"].as_str().map(|uri| text("mcp.resource.uri", uri)));
    let answer = exchange.answer.as_ref().map(|(answer, _)| answer);
    let error = answer.and_then(|answer| answer.get("error"));
    let is_failed = answer.is_some_and(|answer| answer["result"]["isError"] == Value::Bool(true));
    if let Some(error) = error {
        let code = error["code"].to_string();
        attributes.push(text("rpc.response.status_code", &code));
        attributes.push(text("error.type", &code));
    } else if is_failed {
        attributes.push(text("error.type", "tool_error"));
    }
    let took = exchange.answer.as_ref().map_or(0.0, |(_, took)| *took);
    json!({
        "traceId": trace,
        "spanId": format!("{number:016x}"),
        "name": name,
        // A client's request, or one of the server to the client: both are seen from the client.
        "kind": if exchange.way == Way::Sent { 3 } else { 2 },
        "startTimeUnixNano": moment(recording, exchange.at).to_string(),
        "endTimeUnixNano": moment(recording, exchange.at + took).to_string(),
        "attributes": attributes,
        "status": if error.is_some() || is_failed || answer.is_none() { json!({ "code": 2 }) } else { json!({}) },
    })
}

fn text(name: &str, value: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": value } })
}
