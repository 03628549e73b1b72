//! `bowline info`: what a server is, which protocol it speaks and what it offers.

use bowline::client::Peer;
use bowline::model::Settings;
use bowline::{Json, Revision};
use serde_json::{Value, json};

use crate::failure::{Code, Failure};
use crate::render::wire::time;
use crate::screen::{OutputArgs, Screen, Style};
use crate::session::{Invocation, SentRequest};
use crate::target::TargetArgs;
use crate::text::{line, paragraphs, wrap};

/// `bowline info`.
pub(crate) async fn run(target: &TargetArgs, root: &OutputArgs) -> Result<(), Failure> {
    let invocation = Invocation::new(target, root)?;
    invocation
        .run(async |session| {
            let ended = || Failure::new(Code::Unreachable, "the connection ended at once");
            let peer = session.client.peer().ok_or_else(ended)?;
            let steps = session.journal.steps();
            let latency = session.ping().await?;
            let screen = &session.screen;
            screen.show(&for_programs(&peer, &steps, latency), || {
                let mut rows = Vec::new();
                let config = invocation.resolved.from.as_ref();
                rows.extend(config.map(|file| ("config", line(&file.to_string_lossy()))));
                rows.extend(for_people(&peer, &steps, latency));
                Ok(render(&rows, peer.instructions.as_deref(), screen))
            })
        })
        .await
}

pub(crate) fn for_programs(peer: &Peer, steps: &[SentRequest], latency: f64) -> Json {
    let steps = steps.iter().map(|step| {
        present(json!({
            "method": step.method,
            "seconds": step.took.map(|took| took.as_secs_f64()),
            "refused": step.refused,
            "status": step.status,
            "late": step.is_late.then_some(true),
        }))
    });
    let steps: Vec<Value> = steps.collect();
    let value = json!({
        "serverInfo": peer.info,
        "protocolVersion": peer.revision,
        "era": era(peer.revision),
        "supportedVersions": (!peer.listed.is_empty()).then_some(&peer.listed),
        "capabilities": peer.capabilities,
        "instructions": peer.instructions,
        "connection": { "steps": steps, "latencySeconds": latency },
    });
    present(value).into()
}

/// An object without the members that are not known.
fn present(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    value
}

fn for_people(peer: &Peer, steps: &[SentRequest], latency: f64) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    match &peer.info {
        None => rows.push(("server", "does not identify itself".to_owned())),
        Some(info) => {
            rows.push(("server", format!("{} {}", line(&info.name), line(&info.version))));
            rows.extend(info.title.as_ref().map(|it| ("title", line(it))));
            rows.extend(info.description.as_ref().map(|it| ("about", line(it))));
            rows.extend(info.website_url.as_ref().map(|it| ("website", line(it))));
        }
    }
    rows.push(("protocol", format!("{} ({} era)", peer.revision, era(peer.revision))));
    if peer.listed.len() > 1 {
        rows.push(("speaks", line(&peer.listed.join(", "))));
    }
    let steps: Vec<String> = steps.iter().map(outcome).collect();
    rows.push(("found by", steps.join(", ")));
    rows.push(("latency", time(latency)));
    rows.push(("offers", offers(peer)));
    rows
}

fn render(rows: &[(&str, String)], instructions: Option<&str>, screen: &Screen) -> String {
    let mut text = String::new();
    for (name, value) in rows {
        let name = screen.out.paint(Style::Dim, &format!("{name:<10}"));
        let lines = wrap(value, screen.width().saturating_sub(10));
        text += &format!("{name}{}\n", lines.join("\n          "));
    }
    if let Some(instructions) = instructions {
        text += &format!("\n{}\n", screen.out.paint(Style::Dim, "instructions"));
        text += &paragraphs(instructions, screen.width());
    }
    text
}

pub(crate) fn era(revision: Revision) -> &'static str {
    if revision.is_modern() { "modern" } else { "legacy" }
}

/// A step of finding out what the server speaks.
fn outcome(step: &SentRequest) -> String {
    let method = &step.method;
    let took = step.took.map(|took| time(took.as_secs_f64()));
    match (step.refused, took) {
        (Some(code), Some(took)) => format!("{method} refused ({code}) in {took}"),
        (None, Some(took)) if step.status.is_some() => {
            format!("{method} refused (HTTP {}) in {took}", step.status.unwrap_or_default())
        }
        (None, Some(took)) if step.is_late => format!("{method} answered too late ({took})"),
        (None, Some(took)) => format!("{method} answered in {took}"),
        (_, None) => format!("{method} not answered"),
    }
}

/// The server's capabilities in words.
fn offers(peer: &Peer) -> String {
    let all = &peer.capabilities;
    let on = |flag: Option<bool>, word| (flag == Some(true)).then_some(word);
    let changes = |flag| on(flag, "changes");
    let features = [
        ("tools", all.tools.as_ref().map(|it| vec![changes(it.list_changed)])),
        (
            "resources",
            all.resources
                .as_ref()
                .map(|it| vec![on(it.subscribe, "subscriptions"), changes(it.list_changed)]),
        ),
        ("prompts", all.prompts.as_ref().map(|it| vec![changes(it.list_changed)])),
        ("completions", all.completions.as_ref().map(|_| Vec::new())),
        ("logging", all.logging.as_ref().map(|_| Vec::new())),
        ("tasks", all.tasks.as_ref().map(|_| Vec::new())),
    ];
    let mut words = Vec::new();
    for (name, more) in features.into_iter().filter_map(|(name, more)| Some((name, more?))) {
        let more: Vec<&str> = more.into_iter().flatten().collect();
        words.push(if more.is_empty() {
            name.to_owned()
        } else {
            format!("{name} ({})", more.join(", "))
        });
    }
    for (what, settings) in [("extension", &all.extensions), ("experimental", &all.experimental)] {
        let names = settings.iter().flat_map(Settings::iter);
        words.extend(names.map(|(name, _)| format!("{what} {}", line(name))));
    }
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}
