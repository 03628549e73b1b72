//! `bowline info`: who the server is, what it speaks and what it offers.

use bowline::client::Peer;
use bowline::model::Settings;
use bowline::{Json, Revision};
use clap::Args;
use serde_json::{Value, json};

use crate::failure::{Code, Failure};
use crate::render::wire::time;
use crate::screen::{OutputArgs, Screen, Style};
use crate::session::{self, Session, Step};
use crate::target::TargetArgs;
use crate::text::{line, plain, wrap};

/// Show who a server is, which protocol it speaks and how that was found, and what it offers
///
/// With --output json, one object: serverInfo, protocolVersion, era, supportedVersions,
/// capabilities and instructions as the server gave them, and how connecting went.
#[derive(Args)]
pub(crate) struct Info {
    #[command(flatten)]
    target: TargetArgs,
}

impl Info {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let settings = session::Settings::new(&self.target.options, root)?;
        let resolved = self.target.resolve()?;
        Session::run(&resolved, &settings, async |session| {
            let lost = || Failure::new(Code::Unreachable, "the connection ended at once");
            let peer = session.client().peer().ok_or_else(lost)?;
            let steps = session.journal().steps();
            let begun = tokio::time::Instant::now();
            session.client().ping().await?;
            let latency = begun.elapsed().as_secs_f64();
            let screen = session.screen();
            match screen.is_json() {
                true => screen.print_json(&for_programs(&peer, &steps, latency)),
                false => {
                    let text = for_people(&peer, &steps, latency, screen);
                    let from = resolved.from.as_ref().map(|file| {
                        let word = screen.out.paint(Style::Dim, &format!("{:<10}", "config"));
                        format!("{word}{}\n", line(&file.to_string_lossy()))
                    });
                    screen.print(&format!("{}{text}", from.unwrap_or_default()));
                }
            }
            Ok(())
        })
        .await
    }
}

fn for_programs(peer: &Peer, steps: &[Step], latency: f64) -> Json {
    let steps: Vec<Value> = steps
        .iter()
        .map(|step| {
            present(json!({
                "method": step.method,
                "seconds": step.took.map(|took| took.as_secs_f64()),
                "refused": step.refused,
                "late": step.is_late.then_some(true),
            }))
        })
        .collect();
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

fn for_people(peer: &Peer, steps: &[Step], latency: f64, screen: &Screen) -> String {
    let mut rows: Vec<(&str, String)> = Vec::new();
    match &peer.info {
        None => rows.push(("server", "does not say who it is".to_owned())),
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
    rows.push(("found by", found_by(steps)));
    rows.push(("latency", time(latency)));
    rows.push(("offers", offers(peer)));
    let mut text = String::new();
    for (name, value) in rows {
        let name = screen.out.paint(Style::Dim, &format!("{name:<10}"));
        let lines = wrap(&value, screen.width().saturating_sub(10));
        text += &format!("{name}{}\n", lines.join("\n          "));
    }
    if let Some(instructions) = &peer.instructions {
        text += &format!("\n{}\n", screen.out.paint(Style::Dim, "instructions"));
        for part in wrap(&plain(instructions), screen.width() - 2) {
            text += format!("  {part}").trim_end();
            text.push('\n');
        }
    }
    text
}

fn era(revision: Revision) -> &'static str {
    if revision.is_modern() { "modern" } else { "legacy" }
}

/// How it was found out what the server speaks.
fn found_by(steps: &[Step]) -> String {
    let words = steps.iter().map(|step| {
        let took = step.took.map(|took| time(took.as_secs_f64()));
        match (step.refused, took) {
            (Some(code), Some(took)) => format!("{} refused ({code}) in {took}", step.method),
            (None, Some(took)) if step.is_late => {
                format!("{} answered too late ({took})", step.method)
            }
            (None, Some(took)) => format!("{} answered in {took}", step.method),
            (_, None) => format!("{} not answered", step.method),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

/// What the server offers, in words.
fn offers(peer: &Peer) -> String {
    let all = &peer.capabilities;
    let mut words = Vec::new();
    let with = |name: &str, more: &[(Option<bool>, &str)]| {
        let more: Vec<&str> =
            more.iter().filter(|(is, _)| *is == Some(true)).map(|(_, word)| *word).collect();
        if more.is_empty() { name.to_owned() } else { format!("{name} ({})", more.join(", ")) }
    };
    words.extend(all.tools.as_ref().map(|it| with("tools", &[(it.list_changed, "changes")])));
    words.extend(all.resources.as_ref().map(|it| {
        with("resources", &[(it.subscribe, "subscriptions"), (it.list_changed, "changes")])
    }));
    words.extend(all.prompts.as_ref().map(|it| with("prompts", &[(it.list_changed, "changes")])));
    words.extend(all.completions.as_ref().map(|_| "completions".to_owned()));
    words.extend(all.logging.as_ref().map(|_| "logging".to_owned()));
    words.extend(all.tasks.as_ref().map(|_| "tasks".to_owned()));
    for (what, settings) in [("extension", &all.extensions), ("experimental", &all.experimental)] {
        let names = settings.iter().flat_map(Settings::iter);
        words.extend(names.map(|(name, _)| format!("{what} {}", line(name))));
    }
    match words.is_empty() {
        true => "nothing".to_owned(),
        false => words.join(", "),
    }
}
