//! What is seen while other things are checked: these come last and send nothing.

use crate::check::probe::{Outcome, PASS, Probe, broken};
use crate::check::seen::Examples;
use crate::check::table::Check;

pub(super) const CHECKS: &[Check] = &[
    super::scopes::INSUFFICIENT,
    Check::must("stdio.pollution", "standard output carries messages and nothing else", |probe| {
        Box::pin(async { none(&probe.seen.noise, "lines are no messages") })
    })
    .stdio()
    .pages("basic/transports", "basic/transports/stdio")
    .fix("Log to standard error; look for print statements, banners of libraries and pretty-printed JSON."),
    Check::must("http.pollution", "bodies and events carry messages and nothing else", |probe| {
        Box::pin(async { none(&probe.seen.noise, "bodies or events are no messages") })
    })
    .http()
    .pages("basic/transports", "basic/transports/streamable-http")
    .fix("Send one JSON-RPC message as the body, or one in the data of each event."),
    Check::must("sse.pollution", "events carry messages and nothing else", |probe| {
        Box::pin(async { none(&probe.seen.noise, "events are no messages") })
    })
    .legacy()
    .sse()
    .page("basic/transports")
    .fix("Send one JSON-RPC message in the data of each event."),
    Check::must("sse.message-events", "messages come in events of the name message", |probe| {
        Box::pin(async { none(&probe.seen.kinds, "messages came in others") })
    })
    .legacy()
    .sse()
    .page("basic/transports")
    .fix("Name the events of messages message, or give them no name: clients look at no others."),
    Check::must("transport.utf8", "messages are UTF-8", |probe| {
        Box::pin(async { none(&probe.seen.not_utf8, "messages are not UTF-8") })
    })
    .streams()
    .pages("basic/transports", "basic/transports")
    .fix("Encode output as UTF-8, whatever the locale says."),
    Check::info("stdio.stderr", "what is said on standard error is not too much", |probe| {
        Box::pin(stderr(probe))
    })
    .stdio()
    .pages("basic/transports", "basic/transports/stdio")
    .fix("Log less by default: clients keep what comes there."),
    Check::must("http.media-type", "messages come as application/json or text/event-stream", |probe| {
        Box::pin(async { none(&probe.seen.media, "answers have another type") })
    })
    .http()
    .pages("basic/transports", "basic/transports/streamable-http")
    .fix("Set Content-Type to application/json for a message, text/event-stream for a stream."),
    Check::must("jsonrpc.envelope", "all messages are well-formed JSON-RPC", |probe| {
        Box::pin(async { none(&probe.seen.envelopes, "messages are not") })
    })
    .page("basic")
    .fix("Each message has jsonrpc \"2.0\"; a response has its id and either a result (an object) or an error (code, message)."),
    Check::must("capabilities.requests", "the server asks nothing of a client that declared nothing", |probe| {
        Box::pin(async { none(&probe.seen.requests, "requests came") })
    })
    .legacy()
    .page("basic/lifecycle")
    .fix("Look at the client's capabilities before sampling, elicitation or roots are asked for."),
    Check::must("logging.messages", "log messages are well formed, and sent only when asked for", |probe| {
        Box::pin(async { none(&probe.seen.logs, "log messages are not") })
    })
    .page("server/utilities/logging")
    .fix("Give level (one of eight) and data; in 2026-07-28 send none unless the request has logLevel in _meta."),
    Check::must("modern.no-requests", "the server sends no requests", |probe| {
        Box::pin(async { none(&probe.seen.requests, "requests came") })
    })
    .modern()
    .page("basic/patterns")
    .fix("Ask with a result of type input_required instead."),
    Check::must("modern.result-type", "each result has a resultType", |probe| {
        Box::pin(async { none(&probe.seen.result_types, "results have none that is known") })
    })
    .modern()
    .page("basic")
    .fix("Add \"resultType\": \"complete\" to each result, empty ones too."),
    Check::should("modern.server-info", "each result says who answers", |probe| {
        Box::pin(async { none(&probe.seen.anonymous, "results have no serverInfo in _meta") })
    })
    .modern()
    .page("basic")
    .fix("Add io.modelcontextprotocol/serverInfo to _meta of each result."),
    Check::must("modern.error-codes", "no error code is used that the revision forbids", |probe| {
        Box::pin(async { none(&probe.seen.codes, "errors have such codes") })
    })
    .modern()
    .page("basic")
    .fix("Use -32602 instead of -32002, no -32042, and nothing from -32099 to -32023."),
    Check::must("modern.unasked", "changes are told on subscriptions only", |probe| {
        Box::pin(async { none(&probe.seen.unasked, "notifications came without one") })
    })
    .modern()
    .page("basic/patterns/subscriptions")
    .fix("Send notifications of changes only to who listens, with subscriptionId in _meta."),
    Check::should("modern.no-session", "there are no session ids", |probe| {
        Box::pin(async { none(&probe.seen.sessions, "answers have one") })
    })
    .modern()
    .http()
    .page("basic/transports/streamable-http")
    .fix("Send no Mcp-Session-Id in answer to a modern request."),
];

/// Good if nothing of the kind was seen.
pub(super) fn none(examples: &Examples, what: &str) -> Outcome {
    if examples.count == 0 {
        return PASS;
    }
    let first = examples.first.join(" ; ");
    broken(format!("{} {what}: {first}", examples.count))
}

async fn stderr(probe: &mut Probe) -> Outcome {
    const MANY: usize = 1000;
    match probe.seen.stderr_lines {
        count if count > MANY => broken(format!("{count} lines")),
        count => Ok(Some(format!("{count} lines"))),
    }
}
