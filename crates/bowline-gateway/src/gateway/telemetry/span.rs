//! Spans, and how they are written.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use bowline::{ErrorCode, Failure, FailureKind};
use serde_json::{Value, json};

use super::context::{SpanContext, hex};
use super::{attribute, nanoseconds};
use crate::gateway::door::{DECLINED, Ended, LIMITED};

/// What a span or a measurement is about: names of the conventions, and values.
pub(super) type Attributes = BTreeMap<&'static str, Value>;

/// Which side of a request a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Server = 2,
    Client = 3,
}

/// A span that has ended.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) context: SpanContext,
    pub(super) parent: Option<[u8; 8]>,
    /// The ambient context, where another one was the parent.
    pub(super) link: Option<SpanContext>,
    pub(super) side: Side,
    pub(super) name: String,
    pub(super) started: SystemTime,
    pub(super) took: Duration,
    pub(super) attributes: Attributes,
    /// Why it failed, if it did.
    pub(super) failure: Option<String>,
}

/// The codes of errors that are the caller's: the server did what it should.
const CALLERS_ERRORS: [ErrorCode; 5] = [
    ErrorCode::PARSE_ERROR,
    ErrorCode::INVALID_REQUEST,
    ErrorCode::METHOD_NOT_FOUND,
    ErrorCode::INVALID_PARAMS,
    ErrorCode::RESOURCE_NOT_FOUND,
];

/// Other codes that errors may have: what servers make up must not become labels without end.
const OTHER_CODES: [ErrorCode; 7] = [
    ErrorCode::INTERNAL_ERROR,
    ErrorCode::HEADER_MISMATCH,
    ErrorCode::MISSING_CLIENT_CAPABILITY,
    ErrorCode::UNSUPPORTED_VERSION,
    ErrorCode::URL_ELICITATION_REQUIRED,
    LIMITED,
    DECLINED,
];

/// The value of `error.type`.
pub(in crate::gateway) fn error_type(failure: &Failure) -> String {
    let code = failure.error.code;
    match failure.kind {
        FailureKind::TimedOut => "timeout".to_owned(),
        FailureKind::Cancelled | FailureKind::Disconnected => "cancelled".to_owned(),
        _ if CALLERS_ERRORS.contains(&code) || OTHER_CODES.contains(&code) => code.0.to_string(),
        _ => "_OTHER".to_owned(),
    }
}

/// What attributes say about the end of a request, and the status of its span.
pub(super) fn ending(side: Side, ended: &Ended, into: &mut Attributes) -> Option<String> {
    match &ended.outcome {
        Ok(_) if ended.is_tool_error => {
            into.insert("error.type", "tool_error".into());
            // What the tool said may be private.
            Some("the tool failed".to_owned())
        }
        Ok(_) => None,
        Err(failure) => {
            let code = failure.error.code.0;
            let kind = error_type(failure);
            into.insert("rpc.response.status_code", code.to_string().into());
            if side == Side::Server && CALLERS_ERRORS.contains(&failure.error.code) {
                return None;
            }
            into.insert("error.type", kind.into());
            Some(failure.error.message.clone())
        }
    }
}

impl Span {
    /// The span as OTLP has it.
    pub(super) fn to_json(&self) -> Value {
        let ended = self.started + self.took;
        let mut span = json!({
            "traceId": hex(&self.context.trace),
            "spanId": hex(&self.context.span),
            "name": self.name,
            "kind": self.side as u8,
            "startTimeUnixNano": nanoseconds(self.started),
            "endTimeUnixNano": nanoseconds(ended),
            "attributes": attributes(&self.attributes),
            "flags": 1,
        });
        if let Some(parent) = &self.parent {
            span["parentSpanId"] = hex(parent).into();
        }
        if let Some(link) = &self.link {
            span["links"] = json!([{ "traceId": hex(&link.trace), "spanId": hex(&link.span) }]);
        }
        if let Some(failure) = &self.failure {
            span["status"] = json!({ "code": 2, "message": failure });
        }
        span
    }
}

/// Attributes as OTLP has them.
fn attributes(of: &Attributes) -> Value {
    let pairs = of.iter().map(|(key, value)| match value {
        Value::Number(it) => json!({ "key": key, "value": { "intValue": it.to_string() } }),
        value => attribute(key, value.as_str().unwrap_or_default()),
    });
    pairs.collect()
}
