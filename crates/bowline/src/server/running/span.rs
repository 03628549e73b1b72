//! The span of a request, by OpenTelemetry's conventions for MCP.
//!
//! Its fields are filled only if a subscriber wants it. `otel.*` are what `tracing-opentelemetry`
//! reads. `mcp.session.id` is left out: whoever knows the id of a session can use it.

use bowline_proto::error::ErrorCode;
use bowline_proto::method::{CallTool, Method};
use tracing::Span;
use tracing::field::{Empty, display};

use crate::server::answer::Outcome;
use crate::server::audit::{clip, error_type, subject};
use crate::server::call::Call;

/// What listeners choose the spans by.
const TARGET: &str = "bowline::requests";

/// The span of a request that is about to run, if anyone wants it.
pub(super) fn open(call: &Call, target: impl FnOnce() -> Option<String>) -> Span {
    let span = tracing::debug_span!(
        target: TARGET,
        "mcp.server",
        otel.kind = "server",
        otel.name = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty,
        mcp.method.name = Empty,
        mcp.protocol.version = Empty,
        mcp.resource.uri = Empty,
        gen_ai.operation.name = Empty,
        gen_ai.tool.name = Empty,
        gen_ai.prompt.name = Empty,
        jsonrpc.request.id = Empty,
        rpc.response.status_code = Empty,
        "error.type" = Empty,
        network.transport = Empty,
        network.protocol.name = Empty,
        client.address = Empty,
        client.port = Empty,
        traceparent = Empty,
    );
    if !span.is_disabled() {
        describe(&span, call, target().as_deref());
    }
    span
}

/// What is known at the beginning.
fn describe(span: &Span, call: &Call, target: Option<&str>) {
    let method = call.method;
    let [tool, prompt, uri] = subject(method, target.map(clip));
    // URIs have too many values for a name.
    match tool.or(prompt) {
        Some(name) => span.record("otel.name", display(format_args!("{method} {name}"))),
        None => span.record("otel.name", method),
    };
    span.record("mcp.method.name", method);
    span.record("mcp.protocol.version", call.caller.revision.as_str());
    span.record("jsonrpc.request.id", clip(call.id.to_string().trim_matches('"')));
    span.record("gen_ai.operation.name", (method == CallTool::NAME).then_some("execute_tool"));
    span.record("gen_ai.tool.name", tool);
    span.record("gen_ai.prompt.name", prompt);
    span.record("mcp.resource.uri", uri);
    let [protocol, network] = call.peer().via.transport.network();
    span.record("network.transport", network);
    span.record("network.protocol.name", protocol);
    #[cfg(feature = "http")]
    if let Some(address) = call.caller.peer_addr() {
        span.record("client.address", display(address.ip()));
        span.record("client.port", address.port());
    }
    span.record("traceparent", call.traceparent().map(clip));
}

/// The codes of errors that are the caller's: the server did what it should.
const CALLERS_ERRORS: [ErrorCode; 5] = [
    ErrorCode::PARSE_ERROR,
    ErrorCode::INVALID_REQUEST,
    ErrorCode::METHOD_NOT_FOUND,
    ErrorCode::INVALID_PARAMS,
    ErrorCode::RESOURCE_NOT_FOUND,
];

/// What is known at the end.
pub(super) fn end(span: &Span, outcome: &Outcome) {
    if span.is_disabled() {
        return;
    }
    match outcome {
        Ok(answer) if answer.is_tool_error() => {
            span.record("error.type", "tool_error");
            span.record("otel.status_code", "ERROR");
        }
        Ok(_) => {}
        Err(failure) => {
            span.record("rpc.response.status_code", failure.error.code.0);
            if CALLERS_ERRORS.contains(&failure.error.code) {
                return;
            }
            span.record("error.type", &*error_type(failure));
            span.record("otel.status_code", "ERROR");
            span.record("otel.status_description", failure.error.message.as_str());
        }
    }
}
