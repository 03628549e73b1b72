//! Finding out what there is to check: which transport and which revisions the server speaks, or
//! why nothing can be said.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline::Revision;
use http::StatusCode;
use http::header::LOCATION;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::evidence::shorten;
use super::opening::Opened;
use super::plan::at_once;
use super::probe::Settings;
use super::wire::{Door, Heard, Link, Lost, Post, Until, look, request};
use crate::doctor::{Discovery, leads_to_login};

/// What the first contact showed.
#[derive(Debug)]
pub(super) enum Survey {
    /// These revisions, oldest first, and who answers.
    Speaks { revisions: Vec<Revision>, server: Option<String> },
    /// It wants to know who asks.
    Barred(String),
    /// Nothing answers.
    Unreachable(String),
    /// Something does, and not in the protocol.
    Broken(String),
}

/// How much longer than to the other revisions an answer to the modern one may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks for each revision once. A server of HTTP+SSE is recognised as clients do: it refuses what
/// is posted to its address, and a GET there gives an endpoint.
pub(super) async fn survey(settings: &mut Settings) -> Survey {
    let first = ask_around(settings, &Revision::ALL).await;
    let (why, refusal) = match first {
        Asked::Settled(survey) => return survey,
        Asked::Mute(why, refusal) => (why, refusal),
    };
    let post = match &settings.door {
        Door::Address(post) => post.clone(),
        Door::Program(_) | Door::Events(_) => return Survey::Unreachable(why),
    };
    let Some(refusal) = refusal else { return Survey::Unreachable(why) };
    // As the client has it.
    if matches!(refusal.status.map(|status| status.as_u16()), Some(400 | 404 | 405)) {
        match look(&post, settings.timeout).await {
            Ok(()) => {
                settings.door = Door::Events(post);
                let legacy: Vec<_> =
                    Revision::ALL.into_iter().filter(|it| !it.is_modern()).collect();
                return match ask_around(settings, &legacy).await {
                    Asked::Settled(survey) => survey,
                    Asked::Mute(why, _) => Survey::Unreachable(why),
                };
            }
            Err(Some(StatusCode::UNAUTHORIZED)) => {
                settings.door = Door::Events(post);
                return Survey::Barred(StatusCode::UNAUTHORIZED.to_string());
            }
            Err(_) => {}
        }
    }
    match is_barred(&post, &refusal, settings.timeout).await {
        true => Survey::Barred(describe("the first request", &refusal)),
        false => Survey::Unreachable(why),
    }
}

/// What came of asking for some revisions.
enum Asked {
    Settled(Survey),
    /// Nothing speaks the protocol: why, and the answer that came instead, if one came.
    Mute(String, Option<Box<Heard>>),
}

async fn ask_around(settings: &mut Settings, revisions: &[Revision]) -> Asked {
    let mut spoken = Vec::new();
    let mut openings = BTreeMap::new();
    let mut server = None;
    let mut trouble = Vec::new();
    let mut refusal = None;
    let mut has_answered = false;
    for (revision, contact) in contacts(settings, revisions).await {
        match contact {
            Ok(Contact::Speaks(name, opened)) => {
                has_answered = true;
                spoken.push(revision);
                server = name.or(server);
                openings.extend(opened.map(|opened| (revision, *opened)));
            }
            Ok(Contact::Talks) => has_answered = true,
            Ok(Contact::Mute(heard))
                if heard.status == Some(StatusCode::UNAUTHORIZED) && spoken.is_empty() =>
            {
                return Asked::Settled(Survey::Barred(StatusCode::UNAUTHORIZED.to_string()));
            }
            Ok(Contact::Mute(heard)) => {
                trouble.push(describe(first_method(revision), &heard));
                refusal.get_or_insert(heard);
            }
            Ok(Contact::Odd(why)) => return Asked::Settled(Survey::Broken(why)),
            Err(lost) => trouble.push(lost.to_string()),
        }
    }
    if !has_answered {
        // The first says it all: the others tried the same.
        let why = trouble.into_iter().next().unwrap_or_else(|| "nothing was said".to_owned());
        return Asked::Mute(why, refusal);
    }
    if spoken.is_empty() {
        // It talks, but agrees to nothing that we know: the checks tell how.
        spoken.push(Revision::LATEST_LEGACY);
    }
    settings.openings = Arc::new(openings);
    Asked::Settled(Survey::Speaks { revisions: spoken, server })
}

/// Asks for each revision, for several at once where each has a program of its own. A program that
/// answers only while no other of its kind runs is never started twice at once again.
async fn contacts(
    settings: &mut Settings,
    revisions: &[Revision],
) -> Vec<(Revision, Result<Contact, Lost>)> {
    let pace = Pace::new(revisions);
    let asking = revisions.iter().map(|it| contact(settings, *it, &pace)).collect();
    let heard = at_once(settings.jobs(), asking).await;
    let mut contacts: Vec<_> = revisions.iter().copied().zip(heard).collect();
    let is_there = contacts.iter().any(|(_, it)| matches!(it, Ok(Contact::Speaks(..))));
    if settings.jobs() > 1 && is_there {
        for (revision, contact) in contacts.iter_mut().filter(|(_, it)| is_gone(it)) {
            let again = self::contact(settings, *revision, &pace).await;
            if !is_gone(&again) {
                settings.jobs = 1;
                *contact = again;
            }
        }
    }
    contacts
}

/// Whether a program ended instead of answering.
fn is_gone(contact: &Result<Contact, Lost>) -> bool {
    matches!(contact, Err(Lost::Closed(_) | Lost::Unreachable(_)))
}

/// How long those took to answer who cannot but answer.
struct Pace(watch::Sender<(usize, Duration)>);

impl Pace {
    fn new(revisions: &[Revision]) -> Self {
        let legacy = revisions.iter().filter(|it| !it.is_modern()).count();
        Self(watch::Sender::new((legacy, Duration::ZERO)))
    }

    /// One of them is done.
    fn note(&self, took: Duration) {
        self.0.send_modify(|(left, slowest)| {
            *left = left.saturating_sub(1);
            *slowest = took.max(*slowest);
        });
    }

    /// A server that knows no modern request may say nothing to it, and a slow one may have to
    /// start first: it gets as long as the others took, and some more.
    async fn is_over(&self) -> Lost {
        let mut told = self.0.subscribe();
        let slowest = told.wait_for(|(left, _)| *left == 0).await.map(|it| it.1);
        let patience = PATIENCE + slowest.unwrap_or_default();
        sleep(patience).await;
        Lost::Silent(patience)
    }
}

/// What one question showed.
enum Contact {
    /// The revision: who answers, and the connection, if it need not be made again.
    Speaks(Option<String>, Option<Box<Opened>>),
    /// It answers with messages, but not in this revision.
    Talks,
    /// No message came, but this.
    Mute(Box<Heard>),
    /// No answer came, and this is why.
    Odd(String),
}

fn first_method(revision: Revision) -> &'static str {
    if revision.is_modern() { "server/discover" } else { "initialize" }
}

async fn contact(settings: &Settings, revision: Revision, pace: &Pace) -> Result<Contact, Lost> {
    let mut link = Link::open(&settings.door, revision, settings.timeout).await?;
    // Nobody waits for a server that does not speak.
    let heard = match revision.is_modern() {
        true => tokio::select! {
            heard = discover(&mut link, revision) => heard,
            lost = pace.is_over() => Err(lost),
        },
        false => {
            let began = Instant::now();
            let heard = link.initialize(revision.as_str()).await;
            pace.note(began.elapsed());
            heard
        }
    };
    let heard = match (heard, link.seen.instead()) {
        // A handshake is answered by every server that can be talked to.
        (Err(lost @ Lost::Silent(_)), Some(instead)) if !revision.is_modern() => {
            let method = first_method(revision);
            return Ok(Contact::Odd(format!("{method} got {lost}; {instead}")));
        }
        (heard, _) => heard?,
    };
    let is_refused = heard.status == Some(StatusCode::UNAUTHORIZED);
    let Some(answer) = heard.responses().next().filter(|_| !is_refused).cloned() else {
        link.close().await;
        return Ok(Contact::Mute(Box::new(heard)));
    };
    let (is_it, info) = match revision.is_modern() {
        true => {
            let versions = answer.pointer("/result/supportedVersions").and_then(Value::as_array);
            let is_it = versions.is_some_and(|all| all.contains(&json!(revision.as_str())));
            (is_it, answer.pointer("/result/_meta/io.modelcontextprotocol~1serverInfo"))
        }
        false => {
            let agreed = answer.pointer("/result/protocolVersion").and_then(Value::as_str);
            (agreed == Some(revision.as_str()), answer.pointer("/result/serverInfo"))
        }
    };
    let name = info.and_then(identity);
    let is_open = is_it && (revision.is_modern() || link.agree().await.is_ok());
    let opened = Opened::close(link, answer).await;
    // Only a program costs enough to be looked at once.
    let opened = Some(Box::new(opened)).filter(|it| is_open && it.ending.is_some());
    Ok(if is_it { Contact::Speaks(name, opened) } else { Contact::Talks })
}

async fn discover(link: &mut Link, revision: Revision) -> Result<Heard, Lost> {
    let id = link.next_id();
    let frame = request(revision, &id, "server/discover", json!({})).to_string();
    link.exchange(&frame, Until::Answer(&id), &[]).await
}

/// What came in place of a message.
fn describe(method: &str, heard: &Heard) -> String {
    let status = heard.status.map_or_else(String::new, |status| format!("{status} and "));
    match (place(heard), heard.other.as_str()) {
        (Some(place), _) => {
            let place = shorten(&place, 160);
            format!("{method} was answered with {status}no message, but sent to {place}")
        }
        (None, "") => format!("{method} was answered with {status}no message"),
        (None, text) => {
            let text = shorten(text, 120);
            format!("{method} was answered with {status}no message, but {text:?}")
        }
    }
}

/// Where a redirect leads.
fn place(heard: &Heard) -> Option<String> {
    let place = heard.headers.get(LOCATION)?;
    let is_redirect = heard.status.is_some_and(|status| status.is_redirection());
    is_redirect.then(|| String::from_utf8_lossy(place.as_bytes()).into_owned())
}

/// Whether a refusal that is no 401 is one for want of a token all the same.
async fn is_barred(post: &Post, refusal: &Heard, patience: Duration) -> bool {
    let status = refusal.status.unwrap_or_default();
    if status != StatusCode::FORBIDDEN && !status.is_redirection() {
        return false;
    }
    if refusal.headers.contains_key(http::header::WWW_AUTHENTICATE)
        || place(refusal).is_some_and(|place| leads_to_login(&place))
        || misses_token(&refusal.other)
    {
        return true;
    }
    let url = post.url.to_string();
    Discovery::walk(&post.web, &url, &refusal.headers, patience).await.has_metadata()
}

/// Whether a refusal says that it is for want of a token.
fn misses_token(text: &str) -> bool {
    let text = text.to_lowercase();
    let words = ["token", "api key", "api-key", "apikey", "api_key", "credential", "authentica"];
    words.iter().any(|word| text.contains(word))
}

fn identity(info: &Value) -> Option<String> {
    let name = info.get("name")?.as_str()?;
    let version = info.get("version").and_then(Value::as_str).unwrap_or_default();
    Some(shorten(format!("{name} {version}").trim(), 80))
}
