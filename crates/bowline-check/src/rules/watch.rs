//! What is observed while other things are checked: these checks run last and send nothing.

use bowline::Revision::V2025_11_25;

use super::scopes::insufficient;
use crate::observed::Sight;
use crate::probe::{Outcome, PASS, Probe, broken};
use crate::rule::{Rule, Transport, table};

const STDIO: &[Transport] = &[Transport::Stdio];
const HTTP: &[Transport] = &[Transport::Http];
const SSE: &[Transport] = &[Transport::Sse];

table! { |probe| Rule::group("basic");
    Should "auth.insufficient-scope" [.since(V2025_11_25).on(&[Transport::Http, Transport::Sse]).page("basic/authorization")] => insufficient(probe),
        "a rejection for lack of scopes names the scopes",
        "Send WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"…\", resource_metadata=\"…\" with the 403, with all scopes that the request needs: clients log in again for them.";
    Must "stdio.pollution" [.on(STDIO).pages("basic/transports", "basic/transports/stdio")] => none(probe, Sight::Noise, "lines are not messages"),
        "standard output carries nothing but messages",
        "Log to standard error; look for print statements, banners of libraries and pretty-printed JSON.";
    Must "http.pollution" [.on(HTTP).pages("basic/transports", "basic/transports/streamable-http")] => none(probe, Sight::Noise, "bodies or events are not messages"),
        "bodies and events carry nothing but messages",
        "Send one JSON-RPC message as the body, or one in the data of each event.";
    Must "sse.pollution" [.legacy().on(SSE).page("basic/transports")] => none(probe, Sight::Noise, "events are not messages"),
        "events carry nothing but messages",
        "Send one JSON-RPC message in the data of each event.";
    Must "sse.message-events" [.legacy().on(SSE).page("basic/transports")] => none(probe, Sight::EventName, "messages came in events with other names"),
        "messages come in events named message",
        "Name the events of messages message, or give them no name: clients ignore all others.";
    Must "transport.utf8" [.on(&[Transport::Stdio, Transport::Sse]).page("basic/transports")] => none(probe, Sight::NotUtf8, "messages are not UTF-8"),
        "messages are UTF-8",
        "Encode output as UTF-8, whatever the locale says.";
    Info "stdio.stderr" [.on(STDIO).pages("basic/transports", "basic/transports/stdio")] => stderr(probe),
        "standard error is not flooded",
        "Log less by default: clients keep what is written there.";
    Must "http.media-type" [.on(HTTP).pages("basic/transports", "basic/transports/streamable-http")] => none(probe, Sight::MediaType, "responses have another type"),
        "messages come as application/json or text/event-stream",
        "Set Content-Type to application/json for a message, text/event-stream for a stream.";
    Must "jsonrpc.envelope" => none(probe, Sight::Envelope, "messages are malformed"),
        "all messages are well-formed JSON-RPC",
        "Each message has jsonrpc \"2.0\"; a response has its id and either a result (an object) or an error (code, message).";
    Must "capabilities.requests" [.legacy().page("basic/lifecycle")] => none(probe, Sight::Request, "requests came"),
        "the server sends no requests to a client without capabilities",
        "Look at the client's capabilities before requesting sampling, elicitation or roots.";
    Must "logging.messages" [.page("server/utilities/logging")] => none(probe, Sight::Log, "log messages are malformed or unrequested"),
        "log messages are well-formed, and sent only on request",
        "Send level (one of eight) and data; in 2026-07-28 send none unless the request has logLevel in _meta.";
    Must "modern.no-requests" [.modern().page("basic/patterns")] => none(probe, Sight::Request, "requests came"),
        "the server sends no requests",
        "Return a result of type input_required instead.";
    Must "modern.result-type" [.modern()] => none(probe, Sight::ResultType, "results have no known resultType"),
        "each result has a resultType",
        "Add \"resultType\": \"complete\" to each result, empty ones too.";
    Should "modern.server-info" [.modern()] => none(probe, Sight::Anonymous, "results have no serverInfo in _meta"),
        "each result names the server",
        "Add io.modelcontextprotocol/serverInfo to _meta of each result.";
    Must "modern.error-codes" [.modern().extra()] => none(probe, Sight::ErrorCode, "errors have such codes"),
        "no error has a code that the revision forbids",
        "Use -32602 instead of -32002, no -32042, and nothing from -32099 to -32023.";
    Must "modern.unasked" [.modern().page("basic/patterns/subscriptions")] => none(probe, Sight::Unsubscribed, "notifications came without one"),
        "change notifications come only on subscriptions",
        "Send change notifications only to subscribers, with subscriptionId in _meta.";
    Should "modern.no-session" [.modern().on(HTTP).page("basic/transports/streamable-http")] => none(probe, Sight::Session, "responses have one"),
        "there are no session ids",
        "Send no Mcp-Session-Id in response to a modern request.";
}

/// Passes if nothing of the kind was seen.
pub(super) async fn none(probe: &mut Probe, sight: Sight, what: &str) -> Outcome {
    match probe.observed.examples(sight) {
        None => PASS,
        Some((count, first)) => broken(format!("{count} {what}: {first}")),
    }
}

async fn stderr(probe: &mut Probe) -> Outcome {
    const MANY: usize = 1000;
    match probe.observed.stderr_lines {
        count if count > MANY => broken(format!("{count} lines")),
        count => Ok(Some(format!("{count} lines"))),
    }
}
