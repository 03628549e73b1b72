//! The modern era: each request is complete in itself, and servers do not ask.

use bowline::model::meta_key::{
    CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SUBSCRIPTION_ID,
};
use bowline::{Era, Revision};
use serde_json::{Value, json};

use crate::connection::{Connection, Until};
use crate::frames::message;
use crate::probe::{
    NotPassed, Outcome, PASS, PROMPTS, Probe, RESOURCES, Reply, TEMPLATES, TOOLS, all_good, broken,
    ensure, none_of, problems_of, skip, when,
};
use crate::rule::{Rule, Transport, table};

table! { |probe| Rule::group("basic").modern();
    Must "modern.discover" [.page("server/discover")] => discover(probe),
        "the answer to server/discover is complete",
        "Answer with supportedVersions (this revision among them), capabilities, ttlMs and cacheScope.";
    Must "modern.no-discover-needed" [.apart("first")] => no_discover_needed(probe),
        "the first request of a connection need not be server/discover",
        "Serve each request on its own: nothing may depend on an earlier one.";
    Must "modern.missing-meta" [.extra()] => missing_meta(probe),
        "a request without _meta is rejected",
        "Reject requests without the required keys of _meta with error -32602.";
    Must "modern.missing-capabilities" [.extra()] => missing_capabilities(probe),
        "a request without clientCapabilities is rejected with -32602",
        "Reject requests without the required keys of _meta with error -32602.";
    Must "modern.no-client-info" => no_client_info(probe),
        "a request without clientInfo is served",
        "Treat clientInfo as optional.";
    Must "modern.unsupported-version" [.page("basic/versioning")] => unsupported_version(probe),
        "an unknown version is rejected with -32022 and the supported ones",
        "Answer with error -32022 and data: supported (an array of versions) and requested.";
    Should "modern.legacy-version" [.page("basic/versioning")] => legacy_version(probe),
        "a legacy version in _meta is rejected",
        "Answer with error -32022: legacy revisions have no such _meta and need a handshake.";
    Should "modern.removed-methods" [.page("changelog")] => removed_methods(probe),
        "methods that the revision does not have are rejected with -32601",
        "Reject ping, initialize, logging/setLevel and resources/subscribe with -32601 when _meta says 2026-07-28.";
    Must "modern.cache-hints" [.page("server/utilities/caching")] => cache_hints(probe),
        "lists say how long and by whom they may be cached",
        "Add ttlMs (an integer, 0 or more) and cacheScope (public or private) to lists, contents and discovery.";
    Must "modern.listen" [.apart("listen").page("basic/patterns/subscriptions")] => listen(probe),
        "a subscription is acknowledged before anything else",
        "Answer subscriptions/listen first with notifications/subscriptions/acknowledged, its id in _meta.";
}

async fn discover(probe: &mut Probe) -> Outcome {
    let result = probe.result("server/discover", json!({})).await?;
    let versions = result["supportedVersions"].as_array();
    let is_missing = versions.is_some_and(|all| !all.contains(&json!(probe.revision.as_str())));
    none_of([
        when(versions.is_none(), "supportedVersions is not an array"),
        is_missing.then(|| format!("supportedVersions lacks {}", probe.revision)),
        when(!result["capabilities"].is_object(), "capabilities is not an object"),
    ])
}

async fn no_discover_needed(probe: &mut Probe) -> Outcome {
    let Some(list) = probe.declared(&[TOOLS, RESOURCES, PROMPTS]).await?.first().copied() else {
        return skip("the server declares no tools, resources or prompts");
    };
    let first = listed(probe, list.method, false).await?;
    if first.is_ok() {
        return PASS;
    }
    // What fails after it, too, fails for another reason.
    if listed(probe, list.method, true).await?.is_err() {
        return skip(format!("{} fails after server/discover, too", list.method));
    }
    first.map_or_else(broken, |()| PASS)
}

/// Whether a fresh connection returns a list, with or without `server/discover` before it.
async fn listed(
    probe: &mut Probe,
    method: &str,
    is_discovered: bool,
) -> Result<Result<(), String>, NotPassed> {
    let revision = probe.revision;
    let ask = async |it: &mut Connection| {
        if is_discovered {
            it.ask(revision, "server/discover", json!({})).await?;
        }
        it.ask(revision, method, json!({})).await
    };
    let got = match probe.apart(ask).await {
        Ok(reply) if reply.result().is_some() => return Ok(Ok(())),
        Ok(reply) => reply.describe(),
        Err(NotPassed::Lost(lost)) if !lost.is_unconnected() => lost.to_string(),
        Err(other) => return Err(other),
    };
    Ok(Err(format!("{method} as the first request: {got}")))
}

/// A request with `_meta` of the check's own. It lists something, if there is anything to list:
/// some servers answer discovery whatever it says.
async fn ask_with(probe: &mut Probe, meta: Value) -> Result<Reply, NotPassed> {
    let lists = probe.declared(&[TOOLS, RESOURCES, PROMPTS]).await?;
    let method = lists.first().map_or("server/discover", |list| list.method);
    let mut message = probe.request(method, json!({})).await?;
    message["params"] = json!({"_meta": meta});
    probe.ask_raw(&message, &[]).await
}

/// `server/discover` without `_meta`, with the headers that it would have.
pub(super) async fn without_meta(probe: &mut Probe) -> Result<Reply, NotPassed> {
    let mut message = probe.request("server/discover", json!({})).await?;
    message["params"] = json!({});
    let version = probe.revision.as_str();
    let headers =
        [("mcp-protocol-version", Some(version)), ("mcp-method", Some("server/discover"))];
    probe.ask_raw(&message, &headers).await
}

async fn missing_meta(probe: &mut Probe) -> Outcome {
    let reply = without_meta(probe).await?;
    // On a pipe, a server of both eras may read it as a legacy request before the handshake.
    let may_be_legacy = probe.transport() == Transport::Stdio && probe.speaks(Era::Legacy);
    if may_be_legacy && reply.error().is_some() {
        return PASS;
    }
    reply.expect_code("a request without _meta", &[-32602])
}

fn info() -> Value {
    json!({"name": "check", "version": "1"})
}

async fn missing_capabilities(probe: &mut Probe) -> Outcome {
    let meta = json!({PROTOCOL_VERSION: probe.revision.as_str(), CLIENT_INFO: info()});
    let reply = ask_with(probe, meta).await?;
    reply.expect_code("a request without clientCapabilities", &[-32602])
}

async fn no_client_info(probe: &mut Probe) -> Outcome {
    let meta = json!({PROTOCOL_VERSION: probe.revision.as_str(), CLIENT_CAPABILITIES: {}});
    ask_with(probe, meta).await?.expect_result("a request without clientInfo")
}

async fn with_version(probe: &mut Probe, version: &str) -> Result<Reply, NotPassed> {
    let meta = json!({PROTOCOL_VERSION: version, CLIENT_CAPABILITIES: {}, CLIENT_INFO: info()});
    ask_with(probe, meta).await
}

async fn unsupported_version(probe: &mut Probe) -> Outcome {
    let reply = with_version(probe, "2999-12-31").await?;
    reply.expect_code("version 2999-12-31", &[-32022])?;
    let data = reply.error().map_or(Value::Null, |error| error["data"].clone());
    let is_listed = data["supported"].as_array().is_some_and(|all| !all.is_empty());
    none_of([
        when(!is_listed, "data.supported is not an array of versions"),
        when(data["requested"] != "2999-12-31", "data.requested is not the requested version"),
    ])
}

async fn legacy_version(probe: &mut Probe) -> Outcome {
    let version = Revision::LATEST_LEGACY.as_str();
    let reply = with_version(probe, version).await?;
    ensure(reply.result().is_none(), || {
        format!("a request with version {version} in _meta was served")
    })
}

async fn removed_methods(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    let methods = [
        ("ping", json!({})),
        ("logging/setLevel", json!({"level": "error"})),
        ("resources/subscribe", json!({"uri": "bowline-check://x"})),
        ("tasks/list", json!({})),
        ("tasks/result", json!({"taskId": "bowline-no-such-task"})),
    ];
    for (method, params) in methods {
        let reply = probe.ask(method, params).await?;
        problems.extend(problems_of(reply.expect_code(method, &[-32601]))?);
    }
    all_good(problems)
}

async fn cache_hints(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    let lists = probe.declared(&[TOOLS, RESOURCES, TEMPLATES, PROMPTS]).await?;
    let methods = lists.iter().map(|list| list.method);
    for method in std::iter::once("server/discover").chain(methods) {
        let Ok(result) = probe.ask(method, json!({})).await?.into_result() else { continue };
        if !result["ttlMs"].is_u64() {
            problems.push(format!("{method}: ttlMs is {}", result["ttlMs"]));
        }
        if !matches!(result["cacheScope"].as_str(), Some("public" | "private")) {
            problems.push(format!("{method}: cacheScope is {}", result["cacheScope"]));
        }
    }
    all_good(problems)
}

async fn listen(probe: &mut Probe) -> Outcome {
    let capabilities = probe.capabilities().await?;
    let is_declared = |name: &&str| capabilities[*name]["listChanged"] == true;
    let Some(name) = ["tools", "resources", "prompts"].into_iter().find(is_declared) else {
        return skip("the server does not declare listChanged");
    };
    let mut connection = probe.fresh().await?;
    let id = json!("listen-1");
    let params = json!({"notifications": {format!("{name}ListChanged"): true}});
    let frame = message::request(probe.revision, &id, "subscriptions/listen", params).to_string();
    let received = connection.exchange(&frame, Until::First, &[]).await;
    let over =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    if received.is_ok() && probe.transport() == Transport::Stdio {
        connection.tell(&over.to_string()).await?;
    }
    probe.finish(connection).await;
    let received = received?;
    let Some(first) = received.messages.first() else {
        return broken(format!("subscriptions/listen got {}", received.describe_silence()));
    };
    if first["method"] != "notifications/subscriptions/acknowledged" {
        return broken(format!("the first message was {first}"));
    }
    let subscription = &first["params"]["_meta"][SUBSCRIPTION_ID];
    ensure(*subscription == id, || {
        format!("{SUBSCRIPTION_ID} is {subscription}, not the id of the request")
    })
}
