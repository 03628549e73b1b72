//! The first contact: which transport and which revisions a server speaks, or why it cannot be
//! checked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline::Revision;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::check::{CheckError, Target};
use crate::connection::Connection;
use crate::discovery::{Discovery, leads_to_login};
use crate::frames::{Http, HttpSse, Lost};
use crate::opening::Opening;
use crate::plan::at_once;
use crate::probe::{Received, Reply, Settings};
use crate::text::shorten;

/// The revisions that a server speaks, oldest first, and its name.
pub(crate) type Spoken = (Vec<Revision>, Option<String>);

/// How much longer than the other revisions the modern one may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Tries each revision once. A server of HTTP+SSE is recognised as clients do it: it rejects what
/// is posted to its URL, and a GET there returns an endpoint.
pub(crate) async fn survey(settings: &mut Settings) -> Result<Spoken, CheckError> {
    let (asked, rejection) = ask_around(settings, &Revision::ALL).await;
    let (Target::Http(http), Some(rejection)) = (&settings.target, rejection) else {
        return asked;
    };
    let http = http.clone();
    if matches!(rejection.http_status().as_u16(), 400 | 404 | 405) {
        match HttpSse::begin(&http, settings.timeout).await {
            Ok((first, _)) if first.name.as_deref() == Some("endpoint") => {
                settings.target = Target::HttpSse(http);
                let legacy = Revision::ALL.into_iter().filter(|it| !it.is_modern());
                return ask_around(settings, &legacy.collect::<Vec<_>>()).await.0;
            }
            Err(Lost::Status(status @ StatusCode::UNAUTHORIZED)) => {
                settings.target = Target::HttpSse(http);
                return Err(CheckError::Barred(status.to_string()));
            }
            _ => {}
        }
    }
    if is_barred(&http, &rejection, settings.timeout).await {
        let got = rejection.describe_silence();
        return Err(CheckError::Barred(format!("the first request got {got}")));
    }
    asked
}

/// Tries some revisions. If nothing speaks MCP, also returns what came instead, if anything.
async fn ask_around(
    settings: &mut Settings,
    revisions: &[Revision],
) -> (Result<Spoken, CheckError>, Option<Box<Received>>) {
    let mut spoken = Vec::new();
    let mut openings = BTreeMap::new();
    let mut server = None;
    let mut reasons = Vec::new();
    let mut rejection = None;
    let mut has_answered = false;
    for (revision, contact) in contacts(settings, revisions).await {
        match contact {
            Ok(Contact::Speaks(name, opening)) => {
                has_answered = true;
                spoken.push(revision);
                server = name.or(server);
                openings.extend(opening.map(|opening| (revision, *opening)));
            }
            Ok(Contact::Talks) => has_answered = true,
            Ok(Contact::Mute(received))
                if received.status == Some(StatusCode::UNAUTHORIZED) && spoken.is_empty() =>
            {
                return (Err(CheckError::Barred(StatusCode::UNAUTHORIZED.to_string())), None);
            }
            Ok(Contact::Mute(received)) => {
                let method = first_method(revision);
                reasons.push(format!("{method} got {}", received.describe_silence()));
                rejection.get_or_insert(received);
            }
            Ok(Contact::Odd(why)) => return (Err(CheckError::NotMcp(why)), None),
            Err(lost) => reasons.push(lost.to_string()),
        }
    }
    if !has_answered {
        // The others tried the same.
        let first = reasons.into_iter().next().unwrap_or_else(|| "no response".to_owned());
        return (Err(CheckError::Unreachable(first)), rejection);
    }
    if spoken.is_empty() {
        // It speaks MCP, but agrees to no known revision: the checks show how.
        spoken.push(Revision::LATEST_LEGACY);
    }
    settings.openings = Arc::new(openings);
    (Ok((spoken, server)), None)
}

/// Tries each revision, several at once where each has a program of its own. If a program works
/// only while no other instance of it runs, it is never started twice at once again.
async fn contacts(
    settings: &mut Settings,
    revisions: &[Revision],
) -> Vec<(Revision, Result<Contact, Lost>)> {
    let pace = Pace::new(revisions);
    let asking = revisions.iter().map(|it| contact(settings, *it, &pace)).collect();
    let found = at_once(settings.jobs(), asking).await;
    let mut contacts: Vec<_> = revisions.iter().copied().zip(found).collect();
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

/// Whether a program exited instead of answering.
fn is_gone(contact: &Result<Contact, Lost>) -> bool {
    matches!(contact, Err(Lost::Closed(_) | Lost::Unreachable(_)))
}

/// How long the legacy revisions, which every server answers, took.
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

    /// A server that does not know modern requests may ignore them, and a slow one may have to
    /// start first: it gets as long as the others took, and some more.
    async fn is_over(&self) -> Lost {
        let mut changes = self.0.subscribe();
        let slowest = changes.wait_for(|(left, _)| *left == 0).await.map(|it| it.1);
        let patience = PATIENCE + slowest.unwrap_or_default();
        sleep(patience).await;
        Lost::Silent(patience)
    }
}

/// How a server reacts to one revision.
enum Contact {
    /// It speaks it: its name, and the connection, if it need not be opened again.
    Speaks(Option<String>, Option<Box<Opening>>),
    /// It sends messages, but not in this revision.
    Talks,
    /// No message came, but this.
    Mute(Box<Received>),
    /// No answer came, and this is why.
    Odd(String),
}

fn first_method(revision: Revision) -> &'static str {
    if revision.is_modern() { "server/discover" } else { "initialize" }
}

async fn contact(settings: &Settings, revision: Revision, pace: &Pace) -> Result<Contact, Lost> {
    let Settings { target, timeout, tap, .. } = settings;
    let mut connection = Connection::open(target, revision, *timeout, tap).await?;
    let asked = if revision.is_modern() {
        tokio::select! {
            asked = connection.ask(revision, "server/discover", json!({})) => asked,
            lost = pace.is_over() => Err(lost),
        }
    } else {
        let began = Instant::now();
        let asked = connection.initialize(revision.as_str()).await;
        pace.note(began.elapsed());
        asked
    };
    let Reply { received, message, .. } = match (asked, connection.observed.instead()) {
        // Every MCP server answers a handshake.
        (Err(lost @ Lost::OtherId(_)), _) if !revision.is_modern() => {
            return Ok(Contact::Odd(format!("initialize: {lost}")));
        }
        (Err(lost @ Lost::Silent(_)), Some(instead)) if !revision.is_modern() => {
            return Ok(Contact::Odd(format!("initialize: {lost}; {instead}")));
        }
        (asked, _) => asked?,
    };
    let is_rejected = received.status == Some(StatusCode::UNAUTHORIZED);
    let Some(answer) = message.filter(|_| !is_rejected) else {
        connection.close().await;
        return Ok(Contact::Mute(Box::new(received)));
    };
    let (speaks, info) = if revision.is_modern() {
        let versions = answer["result"]["supportedVersions"].as_array();
        let speaks = versions.is_some_and(|all| all.contains(&json!(revision.as_str())));
        (speaks, answer.pointer("/result/_meta/io.modelcontextprotocol~1serverInfo"))
    } else {
        let agreed = answer["result"]["protocolVersion"].as_str();
        (agreed == Some(revision.as_str()), answer.pointer("/result/serverInfo"))
    };
    let name = info.and_then(identity);
    let is_open = speaks && (revision.is_modern() || connection.agree().await.is_ok());
    let opening = Opening::close(connection, answer).await;
    // Only programs are slow enough to start that looking once is worthwhile.
    let opening = Some(Box::new(opening)).filter(|it| is_open && it.ending.is_some());
    Ok(if speaks { Contact::Speaks(name, opening) } else { Contact::Talks })
}

/// Whether a rejection other than 401 is for lack of a token all the same.
async fn is_barred(http: &Http, rejection: &Received, patience: Duration) -> bool {
    let status = rejection.http_status();
    if status != StatusCode::FORBIDDEN && !status.is_redirection() {
        return false;
    }
    if rejection.headers.contains_key(http::header::WWW_AUTHENTICATE)
        || rejection.redirect().is_some_and(|location| leads_to_login(&location))
        || mentions_token(&rejection.other())
    {
        return true;
    }
    let url = http.url.to_string();
    Discovery::walk(&http.web, &url, &rejection.headers, patience).await.has_metadata()
}

fn mentions_token(text: &str) -> bool {
    let text = text.to_lowercase();
    let words = ["token", "api key", "api-key", "apikey", "api_key", "credential", "authentica"];
    words.iter().any(|word| text.contains(word))
}

fn identity(info: &Value) -> Option<String> {
    let name = info.get("name")?.as_str()?;
    let version = info.get("version").and_then(Value::as_str).unwrap_or_default();
    Some(shorten(format!("{name} {version}").trim(), 80))
}
