//! The handshake, versions, capabilities, `ping`.

use bowline::Revision;
use bowline::model::InitializeResult;
use bowline::proto::decode::decode;
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::frames::Lost;
use crate::probe::{
    NotPassed, Outcome, PASS, PROMPTS, Probe, RESOURCES, TEMPLATES, TOOLS, all_good, broken,
    ensure, none_of, skip, when,
};
use crate::rule::{Rule, Transport, table};

const PAGE: &str = "basic/lifecycle";
/// A connection that is opened, and closed, as the revision wants it.
pub(super) const OPENING: &str = "opening";
const STREAMS: &[Transport] = &[Transport::Stdio, Transport::Sse];

table! { |probe| Rule::eras(PAGE, "server/discover");
    Must "lifecycle.initialize" [.legacy().apart(OPENING)] => initialize(probe),
        "the answer to initialize is complete",
        "Answer initialize with protocolVersion (the one requested), capabilities (an object) and serverInfo (name, version).";
    Must "lifecycle.unknown-version" [.legacy().once()] => unknown_version(probe),
        "the server does not agree to an unknown version",
        "Answer with a version that the server speaks; never repeat whatever the client sent.";
    Should "lifecycle.modern-version" [.legacy().once()] => modern_version(probe),
        "the server does not agree to the modern revision in a handshake",
        "Answer initialize for 2026-07-28 with the newest legacy revision: the modern one has no handshake.";
    Should "lifecycle.early-ping" [.legacy().once().on(STREAMS)] => early_ping(probe),
        "ping is answered before the handshake",
        "Answer ping at any time: clients may send it before initialize.";
    Should "lifecycle.early-request" [.legacy().once().on(STREAMS)] => early_request(probe),
        "a request before the handshake is answered, if only with an error",
        "Answer with an error; do not stay silent or exit: clients that probe would hang.";
    Portability "lifecycle.discover-first" [.legacy().apart("discover")] => discover_first(probe),
        "a handshake works after server/discover",
        "Answer server/discover with error -32601 if it is unknown, and accept initialize afterwards: clients of 2026-07-28 send it first.";
    Portability "lifecycle.identity" => identity(probe),
        "the server has a name and a version",
        "Give the server a name and a version; clients show them.";
    Must "lifecycle.ping" [.legacy().page("basic/utilities/ping")] => ping(probe),
        "ping is answered with an empty result",
        "Answer ping with {} at once.";
    Must "capabilities.declared" => declared(probe),
        "declared capabilities work",
        "Declare only what is implemented: a declared capability needs its list method.";
    Must "capabilities.undeclared" => undeclared(probe),
        "capabilities that the server has are declared",
        "Declare tools, resources and prompts when there are any: otherwise clients do not request them.";
    Should "capabilities.templates" [.page("server/resources")] => templates(probe),
        "resources/templates/list works if there are resources",
        "Answer resources/templates/list with an empty list rather than with an error.";
}

async fn initialize(probe: &mut Probe) -> Outcome {
    let revision = probe.revision;
    let answer = probe.opening().await?.answer;
    let Some(result) = answer.get("result") else {
        return broken(format!("initialize got {}", answer["error"]));
    };
    let read = decode::<InitializeResult>("initialize", "result", &result.to_string());
    let version = &result["protocolVersion"];
    let is_other = version.as_str() != Some(revision.as_str());
    let info = |member: &str| {
        let is_text = result["serverInfo"][member].is_string();
        (!is_text).then(|| format!("serverInfo.{member} is not a string"))
    };
    none_of([
        read.err().map(|error| error.to_string()),
        is_other.then(|| format!("protocolVersion is {version}, but {revision} was requested")),
        when(!result["capabilities"].is_object(), "capabilities is not an object"),
        info("name"),
        info("version"),
    ])
}

/// The version that a handshake on a fresh connection settles on, if any.
async fn agreed(probe: &mut Probe, version: &str) -> Result<Option<String>, NotPassed> {
    let answer = probe.apart(async |it| it.shake_hands(version).await).await?;
    let result = answer.get("result");
    Ok(result.map(|it| it["protocolVersion"].as_str().unwrap_or_default().to_owned()))
}

async fn unknown_version(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    for version in ["1999-12-31", "2999-12-31"] {
        // An error is what the page shows as an example.
        let Some(agreed) = agreed(probe, version).await? else { continue };
        if agreed.parse::<Revision>().is_err() {
            problems.push(format!("asked for {version}, the server agreed to {agreed:?}"));
        }
    }
    all_good(problems)
}

async fn modern_version(probe: &mut Probe) -> Outcome {
    let modern = Revision::LATEST.as_str();
    let agreed = agreed(probe, modern).await?;
    ensure(agreed.as_deref() != Some(modern), || {
        format!("the server agreed to {modern} in a handshake")
    })
}

async fn early_ping(probe: &mut Probe) -> Outcome {
    let answer = early(probe, "ping").await?;
    ensure(answer.get("result").is_some(), || format!("ping got {}", answer["error"]))
}

async fn early_request(probe: &mut Probe) -> Outcome {
    early(probe, "tools/list").await?;
    PASS
}

/// The answer to a request before the handshake.
async fn early(probe: &mut Probe, method: &str) -> Result<Value, NotPassed> {
    let ask = async |connection: &mut Connection| {
        let id = connection.next_id();
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        connection.ask_raw(&message, &[]).await
    };
    let answer = probe.apart(ask).await?.message;
    answer.map_or_else(|| broken(format!("{method} got no response")), Ok)
}

async fn discover_first(probe: &mut Probe) -> Outcome {
    let revision = probe.revision;
    let mut is_known = false;
    let ask = async |connection: &mut Connection| {
        let reply = connection.ask(Revision::LATEST, "server/discover", json!({})).await?;
        is_known = reply.result().is_some();
        if is_known { Ok(Value::Null) } else { connection.shake_hands(revision.as_str()).await }
    };
    let answer = match probe.apart(ask).await {
        Err(NotPassed::Lost(lost)) if !lost.is_unconnected() => {
            return broken(format!("server/discover, or initialize after it: {lost}"));
        }
        answer => answer?,
    };
    if is_known {
        return Ok(Some("server/discover works".to_owned()));
    }
    ensure(answer.get("result").is_some(), || {
        format!("initialize after server/discover got {}", answer["error"])
    })
}

async fn identity(probe: &mut Probe) -> Outcome {
    probe.capabilities().await?;
    let modern = "/_meta/io.modelcontextprotocol~1serverInfo";
    let info = probe.greeting.get("serverInfo").or_else(|| probe.greeting.pointer(modern));
    let Some(info) = info else { return broken("there is no serverInfo") };
    let is_blank = |member: &&str| super::text(info, member).trim().is_empty();
    let blank = ["name", "version"].into_iter().filter(is_blank);
    all_good(blank.map(|member| format!("serverInfo.{member} is empty")))
}

async fn ping(probe: &mut Probe) -> Outcome {
    let result = probe.result("ping", json!({})).await?;
    let is_empty = result.as_object().is_some_and(|it| it.keys().all(|key| key == "_meta"));
    ensure(is_empty, || format!("the result of ping is not empty: {result}"))
}

async fn declared(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    for list in probe.declared(&[TOOLS, RESOURCES, PROMPTS]).await? {
        let asked = probe.result(list.method, json!({})).await;
        probe.note_failure(list, &asked);
        let got = match asked {
            Err(NotPassed::Broken(got)) => got.join("; "),
            Err(NotPassed::Lost(lost)) if !lost.is_unconnected() => {
                probe.drop_connection();
                format!("{}: {lost}", list.method)
            }
            other => {
                other?;
                continue;
            }
        };
        problems.push(format!("{} is declared, but {got}", list.capability));
    }
    all_good(problems)
}

async fn undeclared(probe: &mut Probe) -> Outcome {
    let capabilities = probe.capabilities().await?;
    let mut problems = Vec::new();
    for list in [TOOLS, RESOURCES, PROMPTS] {
        if capabilities.get(list.capability).is_some() {
            continue;
        }
        let reply = match probe.ask(list.method, json!({})).await {
            // How unknown methods are answered is a check of its own.
            Err(NotPassed::Lost(lost @ (Lost::Silent(_) | Lost::Closed(_)))) => {
                probe.drop_connection();
                return skip(format!("{}, which is not declared: {lost}", list.method));
            }
            reply => reply?,
        };
        let Ok(result) = reply.into_result() else { continue };
        let count = result[list.member].as_array().map_or(0, Vec::len);
        if count > 0 {
            let (method, capability) = (list.method, list.capability);
            problems.push(format!("{method} has {count} entries, but {capability} is undeclared"));
        }
    }
    all_good(problems)
}

async fn templates(probe: &mut Probe) -> Outcome {
    probe.needs("resources").await?;
    let reply = probe.ask(TEMPLATES.method, json!({})).await?;
    if reply.message.is_none() {
        return skip("there was no response to judge");
    }
    reply.expect_result(TEMPLATES.method)
}
