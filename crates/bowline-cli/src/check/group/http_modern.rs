//! Headers and statuses of the modern era: what the headers say, the body must say too.

use bowline::proto::base64;
use bowline::{Era, Revision};
use http::Method;
use serde_json::{Value, json};

use crate::check::probe::{Outcome, PASS, Probe, Reply, Trouble, broken, skip};
use crate::check::table::Check;
use crate::check::wire::{Ask, Changes, request};

const PAGE: &str = "basic/transports/streamable-http";

pub(super) const CHECKS: &[Check] = &[
    Check::must("http.method-mismatch", "another Mcp-Method than the body's is refused with 400, -32020", |probe| {
        Box::pin(mismatch(probe, &[("mcp-method", Some("tools/list"))]))
    })
    .modern()
    .http()
    .page(PAGE)
    .fix("Compare Mcp-Method with the method of the body; answer with 400 and error -32020."),
    Check::must("http.method-missing", "a missing Mcp-Method is refused with 400, -32020", |probe| {
        Box::pin(mismatch(probe, &[("mcp-method", None)]))
    })
    .modern()
    .http()
    .page(PAGE)
    .fix("Demand Mcp-Method on each request; answer with 400 and error -32020."),
    Check::must("http.version-mismatch", "another version in the header than in _meta is refused with 400, -32020", |probe| {
        Box::pin(mismatch(probe, &[("mcp-protocol-version", Some("2999-12-31"))]))
    })
    .modern()
    .http()
    .page(PAGE)
    .fix("Compare MCP-Protocol-Version with _meta; answer with 400 and error -32020."),
    Check::must("http.version-missing", "a missing MCP-Protocol-Version is refused with 400, -32020", |probe| {
        Box::pin(version_missing(probe))
    })
    .modern()
    .http()
    .page(PAGE)
    .fix("Demand MCP-Protocol-Version; answer with 400 and error -32020."),
    Check::must("http.name-mismatch", "another Mcp-Name than the body's is refused with 400, -32020", |probe| {
        Box::pin(name(probe, Some("another-tool")))
    })
    .modern()
    .http()
    .page(PAGE)
    .fix("Compare Mcp-Name with params.name or params.uri; answer with 400 and error -32020."),
    Check::must("http.name-missing", "a missing Mcp-Name is refused with 400, -32020", |probe| {
        Box::pin(name(probe, None))
    })
    .modern()
    .http()
    .page(PAGE)
    .fix("Demand Mcp-Name on tools/call, prompts/get and resources/read; answer with 400 and error -32020."),
    Check::must("http.name-encoded", "an encoded Mcp-Name is decoded", |probe| {
        Box::pin(name_encoded(probe))
    })
    .modern()
    .http()
    .page(PAGE)
    .fix("Decode =?base64?…?= in Mcp-Name before it is compared."),
    Check::must("http.status-404", "an unknown method has status 404", |probe| {
        Box::pin(status_404(probe))
    })
    .modern()
    .http()
    .page(PAGE)
    .fix("Send error -32601 with status 404."),
    Check::must("http.status-400", "a version that is not supported, or no _meta, has status 400", |probe| {
        Box::pin(status_400(probe))
    })
    .modern()
    .http()
    .page(PAGE)
    .fix("Send error -32022, and -32602 for missing keys of _meta, with status 400."),
    Check::should("http.get-405", "a server without sessions refuses GET and DELETE with 405", |probe| {
        Box::pin(get_405(probe))
    })
    .modern()
    .http()
    .page(PAGE)
    .fix("Answer GET and DELETE with 405 when no legacy revision is served."),
];

/// A plain request with headers that do not fit.
async fn mismatch(probe: &mut Probe, changes: Changes<'_>) -> Outcome {
    let id = probe.link().await?.next_id();
    let message = request(probe.revision, &id, "server/discover", json!({}));
    let reply = probe.ask_raw(&message, changes).await?;
    expect(&reply, "headers that do not fit the body", -32020, 400)
}

/// Passes for an error with this code and status.
fn expect(reply: &Reply, what: &str, code: i64, status: u16) -> Outcome {
    reply.expect_code(what, &[code])?;
    match reply.heard.status {
        Some(got) if got.as_u16() == status => PASS,
        got => {
            let got = got.map_or_else(String::new, |got| got.to_string());
            broken(format!("{what}: error {code} came with status {got}, not {status}"))
        }
    }
}

async fn version_missing(probe: &mut Probe) -> Outcome {
    let lenient = probe.spoken.iter().any(|revision| *revision < Revision::V2025_06_18);
    if lenient {
        return skip("a server of older revisions may take it for 2025-03-26");
    }
    mismatch(probe, &[("mcp-protocol-version", None)]).await
}

/// A request that has a name, of something that is not there.
async fn named(probe: &mut Probe, changes: Changes<'_>) -> Result<Reply, Trouble> {
    let capabilities = probe.capabilities().await?;
    let choices = [
        ("tools", "tools/call", json!({"name": NOBODY, "arguments": {}})),
        ("prompts", "prompts/get", json!({"name": NOBODY})),
        ("resources", "resources/read", json!({"uri": NOBODY})),
    ];
    let chosen = choices.into_iter().find(|(name, ..)| capabilities.get(name).is_some());
    let Some((_, method, params)) = chosen else {
        return skip("the server declares neither tools nor resources nor prompts");
    };
    let id = probe.link().await?.next_id();
    let message = request(probe.revision, &id, method, params);
    probe.ask_raw(&message, changes).await
}

const NOBODY: &str = "bowline:no-such-thing";

async fn name(probe: &mut Probe, header: Option<&str>) -> Outcome {
    let reply = named(probe, &[("mcp-name", header)]).await?;
    expect(&reply, "an Mcp-Name that does not fit the body", -32020, 400)
}

async fn name_encoded(probe: &mut Probe) -> Outcome {
    let encoded = format!("=?base64?{}?=", base64::STANDARD.encode(NOBODY.as_bytes()));
    let reply = named(probe, &[("mcp-name", Some(&encoded))]).await?;
    match reply.code() {
        Some(-32020) => broken("an encoded Mcp-Name that says the same as the body was refused"),
        _ => PASS,
    }
}

async fn status_404(probe: &mut Probe) -> Outcome {
    let reply = probe.ask("bowline/no-such-method", json!({})).await?;
    expect(&reply, "an unknown method", -32601, 404)
}

async fn status_400(probe: &mut Probe) -> Outcome {
    let id = probe.link().await?.next_id();
    let mut message = request(probe.revision, &id, "server/discover", json!({}));
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2999-12-31");
    let reply = probe.ask_raw(&message, &[]).await?;
    expect(&reply, "version 2999-12-31", -32022, 400)?;
    message["params"] = Value::Object(serde_json::Map::default());
    let version = probe.revision.as_str();
    let changes =
        [("mcp-protocol-version", Some(version)), ("mcp-method", Some("server/discover"))];
    let reply = probe.ask_raw(&message, &changes).await?;
    expect(&reply, "a request without _meta", -32602, 400)
}

async fn get_405(probe: &mut Probe) -> Outcome {
    if probe.speaks(Era::Legacy) {
        return skip("the server has sessions for legacy clients");
    }
    for verb in [Method::GET, Method::DELETE] {
        let heard = probe.link().await?.http(&Ask::verb(verb.clone(), &[])).await?;
        let status = heard.status.unwrap_or_default();
        if status != 405 {
            return broken(format!("{verb} was answered with {status}, not 405"));
        }
    }
    PASS
}
