//! The handshake, versions, capabilities, `ping`.

use bowline::Revision;
use bowline::model::InitializeResult;
use bowline::proto::decode::decode;
use serde_json::{Value, json};

use crate::check::probe::{
    Outcome, PASS, PROMPTS, Probe, RESOURCES, TEMPLATES, TOOLS, Trouble, all_good, broken, skip,
};
use crate::check::table::Check;
use crate::check::wire::{Lost, Until, request};

const PAGE: &str = "basic/lifecycle";
/// A connection that is opened, and closed, as the revision has it.
pub(super) const OPENING: &str = "opening";

pub(super) const CHECKS: &[Check] = &[
    Check::must("lifecycle.initialize", "the answer to initialize is whole", |probe| {
        Box::pin(initialize(probe))
    })
    .legacy()
    .apart(OPENING)
    .page(PAGE)
    .fix("Answer initialize with protocolVersion (the one asked for), capabilities (an object) and serverInfo (name, version)."),
    Check::must("lifecycle.unknown-version", "a version that nobody knows is not agreed to", |probe| {
        Box::pin(unknown_version(probe))
    })
    .legacy()
    .once()
    .page(PAGE)
    .fix("Answer with a version that the server speaks; never repeat whatever the client sent."),
    Check::should("lifecycle.modern-version", "the modern revision is not agreed to by handshake", |probe| {
        Box::pin(modern_version(probe))
    })
    .legacy()
    .once()
    .page(PAGE)
    .fix("Answer initialize for 2026-07-28 with the newest legacy revision: the modern one has no handshake."),
    Check::should("lifecycle.early-ping", "ping is answered before the handshake", |probe| {
        Box::pin(early_ping(probe))
    })
    .legacy()
    .once()
    .streams()
    .page(PAGE)
    .fix("Answer ping at any time: clients may send it before initialize."),
    Check::should("lifecycle.early-request", "a request before the handshake is answered, if only with an error", |probe| {
        Box::pin(early_request(probe))
    })
    .legacy()
    .once()
    .streams()
    .page(PAGE)
    .fix("Answer with an error instead of keeping silent or ending: clients that probe would wait."),
    Check::portability("lifecycle.discover-first", "server/discover does not keep a legacy client from its handshake", |probe| {
        Box::pin(discover_first(probe))
    })
    .legacy()
    .apart("discover")
    .page(PAGE)
    .fix("Answer server/discover with error -32601 if it is unknown, and take initialize afterwards: clients of 2026-07-28 ask it first."),
    Check::portability("lifecycle.identity", "the server says who it is", |probe| {
        Box::pin(identity(probe))
    })
    .pages(PAGE, "server/discover")
    .fix("Give the server a name and a version; clients show them."),
    Check::must("lifecycle.ping", "ping is answered with an empty result", |probe| {
        Box::pin(ping(probe))
    })
    .legacy()
    .page("basic/utilities/ping")
    .fix("Answer ping with {} at once."),
    Check::must("capabilities.declared", "what the server declares answers", |probe| {
        Box::pin(declared(probe))
    })
    .pages(PAGE, "server/discover")
    .fix("Declare only what is implemented: a declared capability needs its list method."),
    Check::must("capabilities.undeclared", "what the server has is declared", |probe| {
        Box::pin(undeclared(probe))
    })
    .pages(PAGE, "server/discover")
    .fix("Declare tools, resources and prompts when there are any: clients do not ask otherwise."),
    Check::should("capabilities.templates", "resources/templates/list answers where there are resources", |probe| {
        Box::pin(templates(probe))
    })
    .page("server/resources")
    .fix("Answer resources/templates/list with an empty list rather than with an error."),
];

async fn initialize(probe: &mut Probe) -> Outcome {
    let revision = probe.revision;
    let answer = probe.opened().await?.answer;
    let Some(result) = answer.get("result") else {
        return broken(format!("initialize was answered with {}", answer["error"]));
    };
    let mut problems = Vec::new();
    if let Err(error) = decode::<InitializeResult>("initialize", "result", &result.to_string()) {
        problems.push(error.to_string());
    }
    if result.get("protocolVersion").and_then(Value::as_str) != Some(revision.as_str()) {
        problems.push(format!(
            "protocolVersion is {}, asked for was {revision}",
            result["protocolVersion"]
        ));
    }
    if !result.get("capabilities").is_some_and(Value::is_object) {
        problems.push("capabilities is not an object".to_owned());
    }
    for member in ["name", "version"] {
        if !result.pointer(&format!("/serverInfo/{member}")).is_some_and(Value::is_string) {
            problems.push(format!("serverInfo.{member} is not a string"));
        }
    }
    all_good(problems)
}

async fn unknown_version(probe: &mut Probe) -> Outcome {
    let mut problems = Vec::new();
    for version in ["1999-12-31", "2999-12-31"] {
        let mut link = probe.fresh().await?;
        let answer = link.shake_hands(version).await;
        probe.finish(link).await;
        // An error is what the page shows as an example.
        let answer = answer?;
        let Some(result) = answer.get("result") else { continue };
        let agreed = result.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        if agreed.parse::<Revision>().is_err() {
            problems.push(format!("asked for {version}, the server agreed to {agreed:?}"));
        }
    }
    all_good(problems)
}

async fn modern_version(probe: &mut Probe) -> Outcome {
    let mut link = probe.fresh().await?;
    let answer = link.shake_hands(Revision::LATEST.as_str()).await;
    probe.finish(link).await;
    match answer?.pointer("/result/protocolVersion").and_then(Value::as_str) {
        Some("2026-07-28") => broken("initialize for 2026-07-28 was agreed to"),
        _ => PASS,
    }
}

async fn early_ping(probe: &mut Probe) -> Outcome {
    early(probe, "ping", |message| match message.get("result") {
        Some(_) => PASS,
        None => broken(format!("ping was answered with {}", message["error"])),
    })
    .await
}

async fn early_request(probe: &mut Probe) -> Outcome {
    early(probe, "tools/list", |_| PASS).await
}

/// A request that comes before the handshake.
async fn early(probe: &mut Probe, method: &str, judge: fn(&Value) -> Outcome) -> Outcome {
    let mut link = probe.fresh().await?;
    let id = link.next_id();
    let frame = json!({"jsonrpc": "2.0", "id": id, "method": method}).to_string();
    let heard = link.exchange(&frame, Until::Answer(&id), &[]).await;
    match heard {
        // A server that says nothing is not waited for.
        Err(lost) => {
            probe.absorb(&mut link);
            Err(lost.into())
        }
        Ok(heard) => {
            probe.finish(link).await;
            heard.answer(&id).map_or_else(|| broken(format!("{method} got no answer")), judge)
        }
    }
}

async fn discover_first(probe: &mut Probe) -> Outcome {
    let mut link = probe.fresh().await?;
    let id = link.next_id();
    let frame = request(Revision::LATEST, &id, "server/discover", json!({})).to_string();
    let heard = link.exchange(&frame, Until::Answer(&id), &[]).await;
    let heard = match heard {
        Ok(heard) => heard,
        Err(lost) => {
            probe.absorb(&mut link);
            return broken(format!("server/discover: {lost}"));
        }
    };
    if heard.responses().any(|answer| answer.get("result").is_some()) {
        probe.finish(link).await;
        return Ok(Some("server/discover is answered".to_owned()));
    }
    let shaken = link.shake_hands(probe.revision.as_str()).await;
    probe.absorb(&mut link);
    match shaken {
        Err(lost) => broken(format!("server/discover, and then initialize: {lost}")),
        Ok(answer) => {
            probe.finish(link).await;
            match answer.get("result") {
                Some(_) => PASS,
                None => broken(format!("initialize was then answered with {}", answer["error"])),
            }
        }
    }
}

async fn identity(probe: &mut Probe) -> Outcome {
    probe.capabilities().await?;
    let opening = &probe.opening;
    let modern = "/_meta/io.modelcontextprotocol~1serverInfo";
    let info = opening.get("serverInfo").or_else(|| opening.pointer(modern));
    let Some(info) = info else { return broken("there is no serverInfo") };
    let is_blank = |member: &&str| {
        info.get(*member).and_then(Value::as_str).is_none_or(|text| text.trim().is_empty())
    };
    let problems = ["name", "version"].iter().filter(|member| is_blank(member));
    all_good(problems.map(|member| format!("serverInfo.{member} is empty")).collect())
}

async fn ping(probe: &mut Probe) -> Outcome {
    let result = probe.result("ping", json!({})).await?;
    let extra =
        result.as_object().map_or(0, |result| result.keys().filter(|key| *key != "_meta").count());
    match result.is_object() && extra == 0 {
        true => PASS,
        false => broken(format!("the result of ping is not empty: {result}")),
    }
}

async fn declared(probe: &mut Probe) -> Outcome {
    let capabilities = probe.capabilities().await?;
    let mut problems = Vec::new();
    for list in [&TOOLS, &RESOURCES, &PROMPTS] {
        if capabilities.get(list.capability).is_none() {
            continue;
        }
        let reply = probe.ask(list.method, json!({})).await?;
        if !reply.is_result() {
            let (capability, method) = (list.capability, list.method);
            problems.push(format!(
                "{capability} is declared, but {method} was answered with {}",
                reply.describe()
            ));
        }
    }
    all_good(problems)
}

async fn undeclared(probe: &mut Probe) -> Outcome {
    let capabilities = probe.capabilities().await?;
    let mut problems = Vec::new();
    for list in [&TOOLS, &RESOURCES, &PROMPTS] {
        if capabilities.get(list.capability).is_some() {
            continue;
        }
        let reply = match probe.ask(list.method, json!({})).await {
            // How unknown methods are answered is a check of its own.
            Err(Trouble::Lost(lost @ (Lost::Silent(_) | Lost::Closed(_)))) => {
                probe.drop_link();
                return skip(format!("{}, which is not declared: {lost}", list.method));
            }
            reply => reply?,
        };
        let Ok(result) = reply.into_result() else { continue };
        let count = result.get(list.member).and_then(Value::as_array).map_or(0, Vec::len);
        if count > 0 {
            problems.push(format!(
                "{} has {count} entries, but {} is not declared",
                list.method, list.capability
            ));
        }
    }
    all_good(problems)
}

async fn templates(probe: &mut Probe) -> Outcome {
    probe.needs("resources").await?;
    let reply = probe.ask(TEMPLATES.method, json!({})).await?;
    match reply.is_result() {
        true => PASS,
        false if reply.error().is_none() => skip("there was no answer to judge"),
        false => broken(format!("{} was answered with {}", TEMPLATES.method, reply.describe())),
    }
}
