//! One connection: opened, its lists kept up to date, its calls made; examined when it fails.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use bowline::client::{Change, Wanted};
use bowline::model::{skill, ui};
use bowline::{Client, Revision};
use bowline_check::apps::Apps as Judged;
use bowline_inspector::{Apps, Feed, Keep, Place, Problem};
use serde_json::{Value, json};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::desk::Desk;
use super::places;
use super::question::Questions;
use crate::commands::info;
use crate::commands::list::all_pages;
use crate::failure::{Code, Failure};
use crate::record::{Line, LineKind};
use crate::session::{LineSink, Session, Settings};
use crate::target::{Location, Resolved};
use crate::{check, doctor, redact};

/// What a page chose to connect to. Its secrets stay in the program.
#[derive(Clone)]
pub(super) struct Choice {
    pub(super) place: Place,
    pub(super) revision: Option<String>,
}

impl From<Place> for Choice {
    fn from(place: Place) -> Self {
        Self { place, revision: None }
    }
}

pub(super) struct Link {
    pub(super) number: u64,
    pub(super) resolved: Resolved,
    pub(super) settings: Settings,
    pub(super) choice: Choice,
    pub(super) feed: Feed,
    questions: Arc<Questions>,
    pub(super) session: RefCell<Option<Session>>,
    /// When it first connected: all its messages have one clock, however often it connects.
    begun: Cell<Option<Instant>>,
    /// The tools, as they were last listed.
    pub(super) tools: RefCell<Vec<Value>>,
    /// The connecting, and the waiting for the end of what was connected.
    life: RefCell<Option<AbortHandle>>,
    /// What runs beside the calls; ends with the connection.
    beside: RefCell<JoinSet<()>>,
}

/// Publishes the lines of a recording.
pub(super) fn lines(feed: &Feed, connection: u64) -> LineSink {
    let feed = feed.clone();
    LineSink(Arc::new(move |line: &Line| publish_line(&feed, connection, line)))
}

fn publish_line(feed: &Feed, connection: u64, line: &Line) {
    let text = line.encode().ok().and_then(|bytes| String::from_utf8(bytes).ok());
    if let Some(text) = text {
        let event = json!({ "event": "wire", "connection": connection, "line": text.trim_end() });
        feed.publish(Keep::Recent, &event);
    }
}

/// The lists, their methods, the member with the items, and the member that identifies an item.
const LISTS: [(&str, &str, &str, &str); 6] = [
    ("tools", "tools/list", "tools", "name"),
    ("resources", "resources/list", "resources", "uri"),
    ("templates", "resources/templates/list", "resourceTemplates", "uriTemplate"),
    ("prompts", "prompts/list", "prompts", "name"),
    ("tasks", "tasks/list", "tasks", "taskId"),
    ("skills", "skills/list", "skills", "uri"),
];

/// The items that something identifies, and how many others there are.
fn identified(items: Value, key: &str) -> (Vec<Value>, usize) {
    let Value::Array(mut items) = items else { return (Vec::new(), usize::from(!items.is_null())) };
    let all = items.len();
    items.retain(|item| item[key].is_string());
    let others = all - items.len();
    (items, others)
}

impl Link {
    pub(super) fn new(
        number: u64,
        resolved: Resolved,
        settings: Settings,
        choice: Choice,
        desk: &Desk,
    ) -> Self {
        let (feed, questions) = (desk.feed.clone(), Arc::clone(&desk.questions));
        let (session, begun, tools) = (RefCell::default(), Cell::default(), RefCell::default());
        let (life, beside) = (RefCell::default(), RefCell::default());
        Self {
            number,
            resolved,
            settings,
            choice,
            feed,
            questions,
            session,
            begun,
            tools,
            life,
            beside,
        }
    }

    /// Connects until it is closed; anew if it connects or is connected, for a login may have
    /// changed what the server allows.
    pub(super) fn reopen(self: &Rc<Self>) {
        let link = Rc::clone(self);
        let life = self.spawn(async move {
            let earlier = link.session.borrow_mut().take();
            match earlier {
                Some(earlier) => earlier.close(None).await,
                None => link.end(),
            }
            link.open().await;
        });
        if let Some(earlier) = self.life.replace(Some(life)) {
            earlier.abort();
        }
    }

    /// Runs something that ends with the connection.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + 'static) -> AbortHandle {
        let mut beside = self.beside.borrow_mut();
        // What has ended makes room.
        while beside.try_join_next().is_some() {}
        beside.spawn_local(work)
    }

    /// Says that what was asked before is not answered any more.
    fn end(&self) {
        if let Some(begun) = self.begun.get() {
            let at = begun.elapsed().as_secs_f64();
            let line = Line { kind: LineKind::End, at, ..Line::default() };
            publish_line(&self.feed, self.number, &line);
        }
    }

    /// The settings of its next session, which continues the one before.
    fn continued(&self) -> Settings {
        let begun = self.begun.get();
        self.begun.set(begun.or_else(|| Some(Instant::now())));
        Settings { begun, ..self.settings.clone() }
    }

    /// Connects, and keeps the lists up to date from then on.
    async fn open(self: Rc<Self>) {
        self.report("connecting", json!({}));
        let settings = self.continued();
        let more = |builder: bowline::client::ClientBuilder| {
            let builder = builder
                .extension(ui::ID, ui::client_settings())
                .roots(self.settings.answers.roots.iter().cloned());
            self.questions.listen(builder, self.number, &self.settings.answers)
        };
        let session = match Session::open(&self.resolved, &settings, &more).await {
            Ok(session) => session,
            Err(failure) => {
                let needs_login = failure.code == Code::Unauthorized;
                let problem = Problem::from(failure);
                self.report("failed", json!({ "problem": problem, "needsLogin": needs_login }));
                self.examine();
                return;
            }
        };
        let steps = session.journal.steps();
        let begun = Instant::now();
        // A server that does not answer a ping may still be useful; it has been connected to.
        let _ = session.client.ping().await;
        let latency = begun.elapsed().as_secs_f64();
        let client = session.client.clone();
        *self.session.borrow_mut() = Some(session);
        let Some(peer) = client.peer() else { return self.watch(client).await };
        let info = info::for_programs(&peer, &steps, latency).to_value();
        let revision = peer.revision;
        self.report("open", json!({ "info": info }));
        let offers = |member: &str| !info["capabilities"][member].is_null();
        for (list, ..) in LISTS {
            let is_offered = match list {
                "templates" => offers("resources"),
                "skills" => peer.capabilities.has_extension(skill::ID),
                // Only the core tasks of 2025-11-25 can be listed.
                "tasks" => offers(list) && !revision.is_modern(),
                _ => offers(list),
            };
            if is_offered {
                let link = Rc::clone(&self);
                self.spawn(async move { link.refresh(list).await });
            }
        }
        let link = Rc::clone(&self);
        let hearing = client.clone();
        self.spawn(async move { link.follow(&hearing).await });
        self.watch(client).await;
    }

    /// Fetches lists again when they change.
    async fn follow(&self, client: &Client) {
        let Ok(mut changes) = client.changes(Wanted::all_lists()).await else { return };
        while let Some(Ok(change)) = changes.next().await {
            match change {
                Change::Tools => self.refresh("tools").await,
                Change::Prompts => self.refresh("prompts").await,
                Change::Resources => {
                    self.refresh("resources").await;
                    self.refresh("templates").await;
                }
                Change::Resource(_) => {}
            }
        }
    }

    /// Waits until the connection ends, and says why.
    async fn watch(&self, client: Client) {
        let mut states = client.watch();
        drop(client);
        while let Some(state) = states.changed().await {
            if state.phase == bowline::client::Phase::Closed {
                break;
            }
        }
        let Some(session) = self.session.borrow_mut().take() else { return };
        let reason = session.client.state().reason.map(|reason| reason.to_string());
        self.report("closed", json!({ "problem": reason.map(Problem::new) }));
    }

    /// Ends everything, the connecting too. Nothing is reported afterwards.
    pub(super) async fn close(&self) {
        let mut beside = std::mem::take(&mut *self.beside.borrow_mut());
        beside.shutdown().await;
        let session = self.session.borrow_mut().take();
        if let Some(session) = session {
            session.close(None).await;
        }
    }

    pub(super) fn client(&self) -> Result<Client, Problem> {
        let session = self.session.borrow();
        let client = session.as_ref().map(|session| session.client.clone());
        client.ok_or_else(|| Problem::new("the connection is not open"))
    }

    /// Fetches a list.
    pub(super) async fn refresh(&self, list: &str) {
        let Some((list, method, member, key)) = LISTS.iter().find(|(name, ..)| *name == list)
        else {
            return;
        };
        let Ok(client) = self.client() else { return };
        let mut event = json!({ "event": "list", "connection": self.number, "list": list });
        match all_pages(&client, method, member).await {
            Ok((result, cut)) => {
                let (items, others) = identified(result.to_value()[member].take(), key);
                if *list == "tools" {
                    (*self.tools.borrow_mut()).clone_from(&items);
                }
                event["items"] = items.into();
                let others = (others > 0).then(|| {
                    format!("{method}: left out what is not an object with a {key}: {others}")
                });
                event["problem"] = json!(cut.or(others));
            }
            Err(error) => event["problem"] = json!(Failure::from(error).what),
        }
        self.publish(&format!("list/{list}"), &event);
    }

    /// Walks to the server as the doctor does.
    pub(super) fn examine(self: &Rc<Self>) {
        let link = Rc::clone(self);
        let mut event = json!({ "event": "doctor", "connection": self.number, "state": "running" });
        self.publish("doctor", &event);
        let work = async move {
            let settings = Settings { lines: None, ..link.settings.clone() };
            match doctor::examine(&link.resolved, &settings).await {
                Ok(report) => event["report"] = report,
                Err(failure) => event["problem"] = json!(Problem::from(failure)),
            }
            event["state"] = "done".into();
            link.publish("doctor", &event);
        };
        self.spawn(work);
    }

    /// Runs all checks.
    pub(super) fn check(self: &Rc<Self>) {
        let link = Rc::clone(self);
        let number = self.number;
        let told = move |done: u32| json!({ "event": "check", "connection": number, "state": "running", "done": done });
        self.publish("check", &told(0));
        self.spawn(async move {
            let settings = Settings { lines: None, ..link.settings.clone() };
            let hear = |done| link.publish("check", &told(done));
            let mut event = json!({ "event": "check", "connection": number, "state": "done" });
            match check::examine(&link.resolved, &settings, hear).await {
                Ok(report) => event["report"] = report,
                Err(failure) => event["problem"] = json!(Problem::from(failure)),
            }
            link.publish("check", &event);
        });
    }

    /// Reads an app, and puts it where the page can show it.
    pub(super) async fn app(&self, uri: &str, apps: &Apps, page: &str) -> Result<Value, Problem> {
        let client = self.client()?;
        let read = client.call_json("resources/read", json!({ "uri": uri })).await;
        let read = read.map_err(Failure::from)?.to_value();
        let documents = BTreeMap::from([(uri.to_owned(), Ok(read))]);
        let tools = self.tools.borrow().clone();
        let peer = client.peer().filter(|peer| peer.revision >= Revision::EXTENSIONS);
        let is_declared = peer.map(|peer| peer.capabilities.has_extension(ui::ID));
        let judged = Judged { documents, tools, is_declared, ..Judged::default() };
        let document = judged.document(uri);
        let document = document.ok_or_else(|| Problem::new(format!("{uri} is not a document")))?;
        let ui = document.ui();
        let mut problems: Vec<String> = judged.problems().into_iter().map(|it| it.said).collect();
        let served = apps.add(document.html, ui.csp.as_ref(), page);
        let served = served.ok_or_else(|| Problem::new(format!("{uri} is too large")))?;
        problems.extend(served.findings);
        Ok(json!({ "address": served.address, "ui": ui, "findings": problems }))
    }

    fn report(&self, state: &str, more: Value) {
        let (about, cwd) = match &self.resolved.location {
            Location::Url { url, .. } => (redact::url(url), None),
            Location::Command { program, args, cwd, .. } => {
                let words: Vec<_> =
                    std::iter::once(program).chain(args).map(|it| it.to_string_lossy()).collect();
                (redact::words(&words).0.join(" "), cwd.as_ref())
            }
        };
        let mut event = json!({
            "event": "connection", "connection": self.number, "state": state, "about": about,
            "name": self.resolved.name, "cwd": cwd, "revision": self.choice.revision,
            "place": places::shown(&self.resolved.location),
        });
        if let Place::Name { name, .. } = &self.choice.place {
            event["target"] = name.as_str().into();
        }
        if let (Value::Object(event), Value::Object(more)) = (&mut event, more) {
            event.extend(more);
        }
        self.publish("state", &event);
    }

    pub(super) fn publish(&self, what: &str, event: &Value) {
        self.feed.publish(Keep::As(&format!("c{}/{what}", self.number)), event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_nothing_identifies_are_left_out() {
        for (items, count, others) in [
            (
                json!([null, "x", { "name": 1 }, { "name": { "toString": 1 } }, { "name": "a" }]),
                1,
                4,
            ),
            (json!([]), 0, 0),
            (json!("tools"), 0, 1),
            (Value::Null, 0, 0),
        ] {
            let (found, left) = identified(items.clone(), "name");
            assert_eq!((found.len(), left), (count, others), "{items}");
        }
    }
}
