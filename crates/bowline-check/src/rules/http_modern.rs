//! Headers and statuses of the modern era: headers must agree with the body.

use bowline::Era;
use bowline::model::meta_key::PROTOCOL_VERSION;
use bowline::proto::base64;
use http::Method;
use serde_json::json;

use super::modern::without_meta;
use crate::frames::{HeaderChanges, HttpRequest};
use crate::probe::{NotPassed, Outcome, PASS, Probe, Reply, ensure, skip};
use crate::rule::{Rule, Transport, table};

table! { |probe| Rule::group("basic/transports/streamable-http").modern().on(&[Transport::Http]);
    Must "http.method-mismatch" [.extra()] => mismatch(probe, &[("mcp-method", Some("tools/list"))]),
        "an Mcp-Method that differs from the body is rejected with 400, -32020",
        "Compare Mcp-Method with the method of the body; answer with 400 and error -32020.";
    Must "http.method-missing" [.extra()] => mismatch(probe, &[("mcp-method", None)]),
        "a missing Mcp-Method is rejected with 400, -32020",
        "Require Mcp-Method on each request; answer with 400 and error -32020.";
    Must "http.version-mismatch" [.extra()] => mismatch(probe, &[("mcp-protocol-version", Some("2999-12-31"))]),
        "a version header that differs from _meta is rejected with 400, -32020",
        "Compare MCP-Protocol-Version with _meta; answer with 400 and error -32020.";
    Must "http.version-missing" [.extra()] => version_missing(probe),
        "a missing MCP-Protocol-Version is rejected with 400, -32020",
        "Require MCP-Protocol-Version; answer with 400 and error -32020.";
    Must "http.name-mismatch" [.extra()] => name(probe, Some("another-tool")),
        "an Mcp-Name that differs from the body is rejected with 400, -32020",
        "Compare Mcp-Name with params.name or params.uri; answer with 400 and error -32020.";
    Must "http.name-missing" [.extra()] => name(probe, None),
        "a missing Mcp-Name is rejected with 400, -32020",
        "Require Mcp-Name on tools/call, prompts/get and resources/read; answer with 400 and error -32020.";
    Must "http.name-encoded" => name_encoded(probe),
        "an encoded Mcp-Name is decoded",
        "Decode =?base64?…?= in Mcp-Name before comparing it.";
    Must "http.status-404" [.extra()] => status_404(probe),
        "an unknown method gets status 404",
        "Send error -32601 with status 404.";
    Must "http.status-400" [.extra()] => status_400(probe),
        "an unsupported version, or a missing _meta, gets status 400",
        "Send error -32022, and -32602 for missing keys of _meta, with status 400.";
    Should "http.get-405" => get_405(probe),
        "a server without sessions rejects GET and DELETE with 405",
        "Answer GET and DELETE with 405 when no legacy revision is served.";
}

/// A plain request with headers that do not agree with its body.
async fn mismatch(probe: &mut Probe, changes: HeaderChanges<'_>) -> Outcome {
    let message = probe.request("server/discover", json!({})).await?;
    let reply = probe.ask_raw(&message, changes).await?;
    reply.expect_both("a request whose headers differ from its body", -32020, 400)
}

async fn version_missing(probe: &mut Probe) -> Outcome {
    if probe.spoken.iter().any(|revision| !revision.has_version_header()) {
        return skip("a server of older revisions may assume 2025-03-26");
    }
    mismatch(probe, &[("mcp-protocol-version", None)]).await
}

const NOTHING: &str = "bowline:no-such-thing";

/// A request that has a name, of something that does not exist.
async fn named(probe: &mut Probe, header: Option<&str>) -> Result<Reply, NotPassed> {
    let capabilities = probe.capabilities().await?;
    let choices = [
        ("tools", "tools/call", json!({"name": NOTHING, "arguments": {}})),
        ("prompts", "prompts/get", json!({"name": NOTHING})),
        ("resources", "resources/read", json!({"uri": NOTHING})),
    ];
    let chosen = choices.into_iter().find(|(name, ..)| capabilities.get(name).is_some());
    let Some((_, method, params)) = chosen else {
        return skip("the server declares no tools, resources or prompts");
    };
    let message = probe.request(method, params).await?;
    probe.ask_raw(&message, &[("mcp-name", header)]).await
}

async fn name(probe: &mut Probe, header: Option<&str>) -> Outcome {
    let reply = named(probe, header).await?;
    reply.expect_both("an Mcp-Name that differs from the body", -32020, 400)
}

async fn name_encoded(probe: &mut Probe) -> Outcome {
    let encoded = format!("=?base64?{}?=", base64::STANDARD.encode(NOTHING.as_bytes()));
    let reply = named(probe, Some(&encoded)).await?;
    ensure(reply.code() != Some(-32020), || {
        "an encoded Mcp-Name that agrees with the body was rejected".to_owned()
    })
}

async fn status_404(probe: &mut Probe) -> Outcome {
    let reply = probe.ask("bowline/no-such-method", json!({})).await?;
    reply.expect_both("an unknown method", -32601, 404)
}

async fn status_400(probe: &mut Probe) -> Outcome {
    let params = json!({"_meta": {PROTOCOL_VERSION: "2999-12-31"}});
    let reply = probe.ask("server/discover", params).await?;
    reply.expect_both("version 2999-12-31", -32022, 400)?;
    let reply = without_meta(probe).await?;
    reply.expect_both("a request without _meta", -32602, 400)
}

async fn get_405(probe: &mut Probe) -> Outcome {
    if probe.speaks(Era::Legacy) {
        return skip("the server has sessions for legacy clients");
    }
    for method in [Method::GET, Method::DELETE] {
        let request = HttpRequest::without_body(method.clone(), &[]);
        let received = probe.connection().await?.http_exchange(None, &request).await?;
        received.expect_status(method.as_str(), &[405])?;
    }
    PASS
}
