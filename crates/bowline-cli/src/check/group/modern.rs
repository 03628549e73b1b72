//! The modern era: everything in the request, nothing remembered, nothing asked back.

use bowline::model::meta_key::{
    CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SUBSCRIPTION_ID,
};
use bowline::{Era, Revision};
use serde_json::{Value, json};

use crate::check::probe::{
    Outcome, PASS, PROMPTS, Probe, RESOURCES, Reply, TEMPLATES, TOOLS, Trouble, all_good, broken,
    skip,
};
use crate::check::table::{Check, Transport};
use crate::check::wire::{Until, request};

const META: &str = "basic";
const VERSIONING: &str = "basic/versioning";

pub(super) const CHECKS: &[Check] = &[
    Check::must("modern.discover", "server/discover is answered in full", |probe| {
        Box::pin(discover(probe))
    })
    .modern()
    .page("server/discover")
    .fix("Answer with supportedVersions (this revision among them), capabilities, ttlMs and cacheScope."),
    Check::must("modern.no-discover-needed", "the first request of a connection need not be server/discover", |probe| {
        Box::pin(no_discover_needed(probe))
    })
    .modern()
    .apart("first")
    .page(META)
    .fix("Serve each request by itself: nothing may depend on an earlier one."),
    Check::must("modern.missing-meta", "a request without _meta is refused", |probe| {
        Box::pin(missing_meta(probe))
    })
    .modern()
    .page(META)
    .fix("Refuse requests without the required keys of _meta with error -32602."),
    Check::must("modern.missing-capabilities", "a request without clientCapabilities is refused with -32602", |probe| {
        Box::pin(missing_capabilities(probe))
    })
    .modern()
    .page(META)
    .fix("Refuse requests without the required keys of _meta with error -32602."),
    Check::must("modern.no-client-info", "a request without clientInfo is served", |probe| {
        Box::pin(no_client_info(probe))
    })
    .modern()
    .page(META)
    .fix("Treat clientInfo as optional."),
    Check::must("modern.unsupported-version", "an unknown version is refused with -32022 and what is supported", |probe| {
        Box::pin(unsupported_version(probe))
    })
    .modern()
    .page(VERSIONING)
    .fix("Answer with error -32022 and data: supported (an array of versions) and requested."),
    Check::should("modern.legacy-version", "a legacy version in _meta is refused", |probe| {
        Box::pin(legacy_version(probe))
    })
    .modern()
    .page(VERSIONING)
    .fix("Answer with error -32022: legacy revisions have no _meta of this kind and need a handshake."),
    Check::should("modern.removed-methods", "methods that the revision does not have are refused with -32601", |probe| {
        Box::pin(removed_methods(probe))
    })
    .modern()
    .page("changelog")
    .fix("Refuse ping, initialize, logging/setLevel and resources/subscribe with -32601 when _meta says 2026-07-28."),
    Check::must("modern.cache-hints", "lists say how long and by whom they may be kept", |probe| {
        Box::pin(cache_hints(probe))
    })
    .modern()
    .page("server/utilities/caching")
    .fix("Add ttlMs (a whole number from 0 on) and cacheScope (public or private) to lists, contents and discovery."),
    Check::must("modern.listen", "a subscription is acknowledged before anything else", |probe| {
        Box::pin(listen(probe))
    })
    .modern()
    .apart("listen")
    .page("basic/patterns/subscriptions")
    .fix("Answer subscriptions/listen first with notifications/subscriptions/acknowledged, its id in _meta."),
];

async fn discover(probe: &mut Probe) -> Outcome {
    let result = probe.result("server/discover", json!({})).await?;
    let mut problems = Vec::new();
    let versions = result.get("supportedVersions").and_then(Value::as_array);
    match versions {
        None => problems.push("supportedVersions is not an array".to_owned()),
        Some(versions) if !versions.contains(&json!(probe.revision.as_str())) => {
            problems.push(format!("supportedVersions lacks {}", probe.revision));
        }
        Some(_) => {}
    }
    if !result.get("capabilities").is_some_and(Value::is_object) {
        problems.push("capabilities is not an object".to_owned());
    }
    all_good(problems)
}

async fn no_discover_needed(probe: &mut Probe) -> Outcome {
    let capabilities = probe.capabilities().await?;
    let lists = [&TOOLS, &RESOURCES, &PROMPTS];
    let Some(list) = lists.iter().find(|list| capabilities.get(list.capability).is_some()) else {
        return skip("the server declares neither tools nor resources nor prompts");
    };
    let mut link = probe.fresh().await?;
    let id = link.next_id();
    let frame = request(probe.revision, &id, list.method, json!({})).to_string();
    let heard = link.exchange(&frame, Until::Answer(&id), &[]).await;
    probe.absorb(&mut link);
    probe.finish(link).await;
    match heard?.answer(&id).and_then(|answer| answer.get("result")) {
        Some(_) => PASS,
        None => broken(format!("{} as the first request got no result", list.method)),
    }
}

/// A request with `_meta` of the check's own. It lists something, if there is anything to list:
/// some servers answer discovery whatever it says.
async fn ask_with(probe: &mut Probe, meta: Value) -> Result<Reply, Trouble> {
    let capabilities = probe.capabilities().await?;
    let lists = [&TOOLS, &RESOURCES, &PROMPTS];
    let list = lists.iter().find(|list| capabilities.get(list.capability).is_some());
    let method = list.map_or("server/discover", |list| list.method);
    let id = probe.link().await?.next_id();
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"_meta": meta}});
    probe.ask_raw(&message, &[]).await
}

async fn missing_meta(probe: &mut Probe) -> Outcome {
    let id = probe.link().await?.next_id();
    let message = json!({"jsonrpc": "2.0", "id": id, "method": "server/discover", "params": {}});
    let version = probe.revision.as_str();
    let headers =
        [("mcp-protocol-version", Some(version)), ("mcp-method", Some("server/discover"))];
    let reply = probe.ask_raw(&message, &headers).await?;
    // On a pipe, a server of both eras may take it for a legacy request before the handshake.
    match probe.transport() == Transport::Stdio && probe.speaks(Era::Legacy) {
        true if reply.error().is_some() => PASS,
        _ => reply.expect_code("a request without _meta", &[-32602]),
    }
}

async fn missing_capabilities(probe: &mut Probe) -> Outcome {
    let meta = json!({PROTOCOL_VERSION: probe.revision.as_str(), CLIENT_INFO: {"name": "check", "version": "1"}});
    let reply = ask_with(probe, meta).await?;
    reply.expect_code("a request without clientCapabilities", &[-32602])
}

async fn no_client_info(probe: &mut Probe) -> Outcome {
    let meta = json!({PROTOCOL_VERSION: probe.revision.as_str(), CLIENT_CAPABILITIES: {}});
    let reply = ask_with(probe, meta).await?;
    match reply.is_result() {
        true => PASS,
        false => {
            broken(format!("a request without clientInfo was answered with {}", reply.describe()))
        }
    }
}

async fn refused_version(probe: &mut Probe, version: &str) -> Result<Reply, Trouble> {
    let meta = json!({
        PROTOCOL_VERSION: version, CLIENT_CAPABILITIES: {},
        CLIENT_INFO: {"name": "check", "version": "1"},
    });
    ask_with(probe, meta).await
}

async fn unsupported_version(probe: &mut Probe) -> Outcome {
    let reply = refused_version(probe, "2999-12-31").await?;
    reply.expect_code("version 2999-12-31", &[-32022])?;
    let data = reply.error().and_then(|error| error.get("data")).cloned().unwrap_or_default();
    let mut problems = Vec::new();
    if data.get("supported").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        problems.push("data.supported is not an array of versions".to_owned());
    }
    if data.get("requested") != Some(&json!("2999-12-31")) {
        problems.push("data.requested is not what was asked for".to_owned());
    }
    all_good(problems)
}

async fn legacy_version(probe: &mut Probe) -> Outcome {
    let reply = refused_version(probe, Revision::LATEST_LEGACY.as_str()).await?;
    match reply.is_result() {
        true => broken("a request that says 2025-11-25 in _meta was served"),
        false => PASS,
    }
}

async fn removed_methods(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    let methods = [
        ("ping", json!({})),
        ("logging/setLevel", json!({"level": "error"})),
        ("resources/subscribe", json!({"uri": "bowline-check://x"})),
    ];
    for (method, params) in methods {
        let reply = probe.ask(method, params).await?;
        if let Err(Trouble::Broken(found)) = reply.expect_code(method, &[-32601]) {
            problems.extend(found);
        }
    }
    all_good(problems)
}

async fn cache_hints(probe: &mut Probe) -> Outcome {
    let capabilities = probe.capabilities().await?;
    let mut problems = Vec::new();
    let mut methods = vec!["server/discover"];
    for list in [&TOOLS, &RESOURCES, &TEMPLATES, &PROMPTS] {
        if capabilities.get(list.capability).is_some() {
            methods.push(list.method);
        }
    }
    for method in methods {
        let Ok(result) = probe.ask(method, json!({})).await?.into_result() else { continue };
        if !result.get("ttlMs").is_some_and(Value::is_u64) {
            problems.push(format!("{method}: ttlMs is {}", result["ttlMs"]));
        }
        let scope = result.get("cacheScope").and_then(Value::as_str);
        if !matches!(scope, Some("public" | "private")) {
            problems.push(format!("{method}: cacheScope is {}", result["cacheScope"]));
        }
    }
    all_good(problems)
}

async fn listen(probe: &mut Probe) -> Outcome {
    let capabilities = probe.capabilities().await?;
    let flags = [
        ("/tools/listChanged", "toolsListChanged"),
        ("/resources/listChanged", "resourcesListChanged"),
        ("/prompts/listChanged", "promptsListChanged"),
    ];
    let is_declared = |(flag, _): &&(&str, &str)| capabilities.pointer(flag) == Some(&json!(true));
    let Some((_, filter)) = flags.iter().find(is_declared) else {
        return skip("the server declares no changes of lists");
    };
    let mut link = probe.fresh().await?;
    let id = json!("listen-1");
    let params = json!({"notifications": {*filter: true}});
    let frame = request(probe.revision, &id, "subscriptions/listen", params).to_string();
    let heard = link.exchange(&frame, Until::First, &[]).await;
    let over =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    if heard.is_ok() && probe.transport() == Transport::Stdio {
        link.tell(&over.to_string(), &[]).await?;
    }
    probe.finish(link).await;
    let heard = heard?;
    let Some(first) = heard.messages.first() else {
        let status = heard.status.map_or_else(String::new, |status| format!(" (HTTP {status})"));
        return broken(format!("subscriptions/listen got no message{status}"));
    };
    if first.get("method") != Some(&json!("notifications/subscriptions/acknowledged")) {
        return broken(format!("the first message was {first}"));
    }
    let subscription = first.pointer("/params/_meta").and_then(|meta| meta.get(SUBSCRIPTION_ID));
    match subscription == Some(&id) {
        true => PASS,
        false => {
            broken(format!("{SUBSCRIPTION_ID} is {subscription:?}, not the id of the request"))
        }
    }
}
