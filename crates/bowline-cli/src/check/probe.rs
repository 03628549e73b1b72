//! What a check works with: the connection that checks of one revision share, fresh ones, requests,
//! and words for what did not come back as it should.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bowline::{Era, Revision};
use serde_json::{Value, json};

use super::calls::Called;
use super::evidence::Evidence;
use super::group::auth::Gate;
use super::opening::Opened;
pub(super) use super::reply::Reply;
use super::seen::Seen;
use super::table::Transport;
use super::wire::{Changes, Door, Heard, Link, Lost, Until, request};

/// How a check ends: well, perhaps with something to say, or not.
pub(super) type Outcome = Result<Note, Trouble>;

/// What there is to say of a check that passed.
pub(super) type Note = Option<String>;

/// It passed, and there is nothing to say.
pub(super) const PASS: Outcome = Ok(None);

/// Why a check did not pass.
#[derive(Debug, Clone)]
pub(super) enum Trouble {
    /// These things are not as they should be.
    Broken(Vec<String>),
    /// It does not apply to this server, or cannot be tried on it.
    Skipped(String),
    /// The server is silent or gone.
    Lost(Lost),
}

impl From<Lost> for Trouble {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

/// One thing that is not as it should be.
pub(super) fn broken<T>(what: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Broken(vec![what.into()]))
}

/// A reason for not trying.
pub(super) fn skip<T>(why: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Skipped(why.into()))
}

/// All that was found, or nothing.
pub(super) fn all_good(problems: Vec<String>) -> Outcome {
    if problems.is_empty() { PASS } else { Err(Trouble::Broken(problems)) }
}

/// What is the same for all checks.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) door: Door,
    /// For each exchange.
    pub(super) timeout: Duration,
    /// Tools that may be called, with their arguments.
    pub(super) calls: Vec<(String, Value)>,
    /// How many resources and prompts are read, and safe tools called.
    pub(super) samples: usize,
    /// How many programs are tested at once.
    pub(super) jobs: usize,
    /// Connections that were opened and closed to find out what there is.
    pub(super) openings: Arc<BTreeMap<Revision, Opened>>,
    /// Whether the address is of this machine.
    pub(super) is_local: bool,
    /// Whether requests say who asks.
    pub(super) has_credentials: bool,
    /// Whether the server lets nobody in as we are: only that can be checked.
    pub(super) is_barred: bool,
    /// What it says to who brings no token, once that is known.
    pub(super) gate: Arc<OnceLock<Arc<Gate>>>,
}

impl Settings {
    /// For a door, with the least that is sensible; the rest is set by who knows.
    pub(super) fn new(door: Door, timeout: Duration) -> Self {
        Self {
            door,
            timeout,
            calls: Vec::new(),
            samples: 20,
            jobs: 1,
            openings: Arc::default(),
            is_local: false,
            has_credentials: false,
            is_barred: false,
            gate: Arc::default(),
        }
    }

    /// How many connections are in use at once. Each has a program of its own, or all of them the
    /// same server, which is then asked one thing at a time.
    pub(super) fn jobs(&self) -> usize {
        if self.transport() == Transport::Stdio { self.jobs } else { 1 }
    }

    pub(super) fn transport(&self) -> Transport {
        match self.door {
            Door::Program(_) => Transport::Stdio,
            Door::Address(_) => Transport::Http,
            Door::Events(_) => Transport::Sse,
        }
    }
}

/// What checks of one revision share.
pub(super) struct Probe {
    pub(super) settings: Settings,
    pub(super) revision: Revision,
    /// Revisions that the server speaks.
    pub(super) spoken: Vec<Revision>,
    /// The result of the handshake, or of `server/discover`.
    pub(super) opening: Value,
    pub(super) seen: Seen,
    pub(super) evidence: Vec<Evidence>,
    link: Option<Link>,
    lists: HashMap<&'static str, Vec<Value>>,
    /// The calls of tools, once they have been made.
    pub(super) called: Option<Vec<Called>>,
    /// A connection that was opened and closed, once that has been tried.
    pub(super) opened: Option<Opened>,
}

impl Probe {
    pub(super) fn new(settings: &Settings, revision: Revision, spoken: &[Revision]) -> Self {
        Self {
            settings: settings.clone(),
            revision,
            spoken: spoken.to_vec(),
            opening: Value::Null,
            seen: Seen::new(revision),
            evidence: Vec::new(),
            link: None,
            lists: HashMap::new(),
            called: None,
            opened: None,
        }
    }

    pub(super) fn transport(&self) -> Transport {
        self.settings.transport()
    }

    /// Whether the server speaks an era at all.
    pub(super) fn speaks(&self, era: Era) -> bool {
        self.spoken.iter().any(|revision| revision.era() == era)
    }

    /// The connection that all share, opened when needed.
    pub(super) async fn link(&mut self) -> Result<&mut Link, Trouble> {
        if self.link.is_none() {
            let mut link = self.fresh().await?;
            if !self.revision.is_modern() {
                let shaken = link.shake_hands(self.revision.as_str()).await;
                let answer = match shaken {
                    Ok(answer) => answer,
                    Err(lost) => {
                        self.absorb(&mut link);
                        return Err(Lost::NoSession(lost.to_string()).into());
                    }
                };
                if let Some(result) = answer.get("result") {
                    self.opening = result.clone();
                }
            }
            link.evidence.clear();
            self.link = Some(link);
        }
        match &mut self.link {
            Some(link) => Ok(link),
            None => skip("there is no connection"),
        }
    }

    /// A connection of the check's own, before any handshake.
    pub(super) async fn fresh(&self) -> Result<Link, Trouble> {
        Ok(Link::open(&self.settings.door, self.revision, self.settings.timeout).await?)
    }

    /// Keeps what a connection of the check's own has heard.
    pub(super) fn absorb(&mut self, link: &mut Link) {
        self.evidence.append(&mut link.evidence);
        self.seen.merge(link.take_seen());
    }

    /// Ends a connection of the check's own.
    pub(super) async fn finish(&mut self, mut link: Link) {
        self.absorb(&mut link);
        let (_, seen) = link.close().await;
        self.seen.merge(seen);
    }

    /// Moves what the shared connection has heard to where the runner looks for it.
    pub(super) fn collect(&mut self) {
        if let Some(mut link) = self.link.take() {
            self.absorb(&mut link);
            self.link = Some(link);
        }
    }

    /// Gives up the shared connection; the next check gets another one.
    pub(super) async fn hang_up(&mut self) {
        if let Some(link) = self.link.take() {
            self.finish(link).await;
        }
    }

    /// The same, for a server that does not answer any more: nobody waits for it.
    pub(super) fn drop_link(&mut self) {
        self.collect();
        self.link = None;
    }

    /// Sends a request on the shared connection, as the revision wants it.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Result<Reply, Trouble> {
        let revision = self.revision;
        let link = self.link().await?;
        let id = link.next_id();
        let message = request(revision, &id, method, params);
        self.ask_raw(&message, &[]).await
    }

    /// Sends a request just as it is.
    pub(super) async fn ask_raw(
        &mut self,
        message: &Value,
        changes: Changes<'_>,
    ) -> Result<Reply, Trouble> {
        let id = message.get("id").cloned().unwrap_or_default();
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let link = self.link().await?;
        let heard = link.exchange(&message.to_string(), Until::Answer(&id), changes).await?;
        let answer = heard.answer(&id).cloned();
        Ok(Reply::new(heard, answer, method))
    }

    /// Sends a frame that nobody need answer, and hears what comes all the same.
    pub(super) async fn say(
        &mut self,
        frame: &str,
        changes: Changes<'_>,
    ) -> Result<Heard, Trouble> {
        let link = self.link().await?;
        Ok(link.exchange(frame, Until::Quiet, changes).await?)
    }

    /// A request and its result.
    pub(super) async fn result(&mut self, method: &str, params: Value) -> Result<Value, Trouble> {
        self.ask(method, params).await?.into_result()
    }

    /// What the server says it can do.
    pub(super) async fn capabilities(&mut self) -> Result<Value, Trouble> {
        if self.opening.is_null() {
            let surveyed = self.settings.openings.get(&self.revision);
            let surveyed = surveyed.and_then(|opened| opened.answer.get("result")).cloned();
            match (self.revision.era(), surveyed) {
                (Era::Modern, Some(result)) => self.opening = result,
                (Era::Modern, None) => {
                    self.opening = self.result("server/discover", json!({})).await?;
                }
                (Era::Legacy, _) => drop(self.link().await?),
            }
        }
        Ok(self.opening.get("capabilities").cloned().unwrap_or_else(|| json!({})))
    }

    /// Skips the check unless the server declares a capability.
    pub(super) async fn needs(&mut self, capability: &str) -> Result<(), Trouble> {
        match self.capabilities().await?.get(capability) {
            Some(_) => Ok(()),
            None => skip(format!("the server does not declare {capability}")),
        }
    }

    /// All entries of a list, over all its pages; asked for once.
    pub(super) async fn list(&mut self, list: &'static List) -> Result<Vec<Value>, Trouble> {
        if let Some(known) = self.lists.get(list.method) {
            return Ok(known.clone());
        }
        self.needs(list.capability).await?;
        let (entries, _) = self.pages(list).await?;
        self.lists.insert(list.method, entries.clone());
        Ok(entries)
    }

    /// All pages of a list, and how many there are.
    pub(super) async fn pages(&mut self, list: &List) -> Result<(Vec<Value>, usize), Trouble> {
        let mut entries = Vec::new();
        let mut cursors = Vec::new();
        let mut params = json!({});
        for page in 1..=MOST_PAGES {
            let result = self.result(list.method, params).await?;
            match result.get(list.member).and_then(Value::as_array) {
                Some(found) => entries.extend(found.iter().cloned()),
                None => {
                    return broken(format!("{}: result.{} is no array", list.method, list.member));
                }
            }
            let cursor = match result.get("nextCursor") {
                None | Some(Value::Null) => return Ok((entries, page)),
                Some(Value::String(cursor)) => cursor.clone(),
                Some(other) => {
                    return broken(format!("{}: nextCursor is {other}, not a string", list.method));
                }
            };
            if cursors.contains(&cursor) {
                return broken(format!(
                    "{}: cursor {cursor:?} comes again: the list never ends",
                    list.method
                ));
            }
            params = json!({"cursor": cursor});
            cursors.push(cursor);
        }
        broken(format!("{}: more than {MOST_PAGES} pages", list.method))
    }
}

/// Lists longer than this are taken for endless.
const MOST_PAGES: usize = 200;

/// A method that lists something.
pub(super) struct List {
    pub(super) method: &'static str,
    pub(super) member: &'static str,
    pub(super) capability: &'static str,
}

pub(super) const TOOLS: List = List { method: "tools/list", member: "tools", capability: "tools" };
pub(super) const RESOURCES: List =
    List { method: "resources/list", member: "resources", capability: "resources" };
pub(super) const TEMPLATES: List = List {
    method: "resources/templates/list",
    member: "resourceTemplates",
    capability: "resources",
};
pub(super) const PROMPTS: List =
    List { method: "prompts/list", member: "prompts", capability: "prompts" };
