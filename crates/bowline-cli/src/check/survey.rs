//! Finding out what there is to check: which revisions the server speaks, or why nothing can be
//! said.

use std::time::Duration;

use bowline::Revision;
use serde_json::{Value, json};

use super::probe::Settings;
use super::wire::{Heard, Link, Lost, Until, request};

/// What the first contact showed.
#[derive(Debug)]
pub(super) enum Survey {
    /// These revisions, oldest first, and who answers.
    Speaks { revisions: Vec<Revision>, server: Option<String> },
    /// It wants to know who asks.
    Unauthorized(String),
    /// Nothing answers.
    Unreachable(String),
}

/// A server that knows no modern request may say nothing to it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks for each revision once.
pub(super) async fn survey(settings: &Settings) -> Survey {
    let mut revisions = Vec::new();
    let mut server = None;
    let mut trouble = Vec::new();
    let mut has_answered = false;
    for revision in Revision::ALL {
        let contact = match contact(settings, revision).await {
            Ok(contact) => contact,
            Err(Lost::Closed(why)) if why.starts_with(UNAUTHORIZED) => {
                return Survey::Unauthorized(why);
            }
            Err(lost) => {
                trouble.push(lost.to_string());
                continue;
            }
        };
        has_answered = true;
        if contact.speaks {
            revisions.push(revision);
            server = contact.server.or(server);
        }
    }
    if !has_answered {
        // The first says it all: the others tried the same.
        let why = trouble.into_iter().next().unwrap_or_else(|| "nothing was said".to_owned());
        return Survey::Unreachable(why);
    }
    if revisions.is_empty() {
        // It talks, but agrees to nothing that we know: the checks tell how.
        revisions.push(Revision::LATEST_LEGACY);
    }
    Survey::Speaks { revisions, server }
}

struct Contact {
    speaks: bool,
    server: Option<String>,
}

const UNAUTHORIZED: &str = "401";

async fn contact(settings: &Settings, revision: Revision) -> Result<Contact, Lost> {
    let patience =
        settings.timeout.min(if revision.is_modern() { PATIENCE } else { Duration::MAX });
    let mut link = Link::open(&settings.door, revision, patience)?;
    let contacted = match revision.is_modern() {
        true => discover(&mut link, revision).await,
        false => shake_hands(&mut link, revision).await,
    };
    match contacted {
        // Nobody waits for a server that does not speak.
        Err(lost) => Err(lost),
        Ok(contact) => {
            link.close().await;
            Ok(contact)
        }
    }
}

async fn discover(link: &mut Link, revision: Revision) -> Result<Contact, Lost> {
    let id = link.next_id();
    let frame = request(revision, &id, "server/discover", json!({})).to_string();
    let heard = link.exchange(&frame, Until::Answer(&id), &[]).await?;
    check_authorization(&heard)?;
    let result = heard.answer(&id).and_then(|answer| answer.get("result"));
    let versions = result.and_then(|result| result.get("supportedVersions")?.as_array());
    let speaks = versions.is_some_and(|versions| versions.contains(&json!(revision.as_str())));
    let info = result.and_then(|it| it.pointer("/_meta/io.modelcontextprotocol~1serverInfo"));
    Ok(Contact { speaks, server: info.and_then(identity) })
}

async fn shake_hands(link: &mut Link, revision: Revision) -> Result<Contact, Lost> {
    let shaken = link.shake_hands(revision.as_str()).await;
    let answer = match shaken {
        Ok(answer) => answer,
        Err(lost) => {
            let refused = link.evidence.iter().flat_map(|it| &it.received);
            let is_401 = refused.clone().any(|line| line.starts_with(UNAUTHORIZED));
            return Err(if is_401 { unauthorized() } else { lost });
        }
    };
    if link.evidence.iter().flat_map(|it| &it.received).any(|line| line.starts_with(UNAUTHORIZED)) {
        return Err(unauthorized());
    }
    let agreed = answer.pointer("/result/protocolVersion").and_then(Value::as_str);
    let server = answer.pointer("/result/serverInfo").and_then(identity);
    Ok(Contact { speaks: agreed == Some(revision.as_str()), server })
}

fn check_authorization(heard: &Heard) -> Result<(), Lost> {
    match heard.status {
        Some(status) if status.as_u16() == 401 => Err(unauthorized()),
        _ => Ok(()),
    }
}

fn unauthorized() -> Lost {
    Lost::Closed(format!("{UNAUTHORIZED} Unauthorized"))
}

fn identity(info: &Value) -> Option<String> {
    let name = info.get("name")?.as_str()?;
    let version = info.get("version").and_then(Value::as_str).unwrap_or_default();
    Some(super::evidence::shorten(format!("{name} {version}").trim(), 80))
}
