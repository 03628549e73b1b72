//! One connection: opened, its lists kept up to date, its calls made; examined when it fails.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use bowline::client::{Change, Wanted};
use bowline::model::{skill, ui};
use bowline::{Client, Revision};
use bowline_check::apps::Apps as Judged;
use bowline_inspector::{Apps, Feed, Keep, Place, Problem};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::desk::Desk;
use super::question::Questions;
use crate::commands::info;
use crate::commands::list::all_pages;
use crate::failure::{Code, Failure};
use crate::record::Line;
use crate::session::{LineSink, Session, Settings};
use crate::target::{Location, Resolved};
use crate::{check, doctor, redact};

pub(super) struct Link {
    pub(super) number: u64,
    pub(super) resolved: Resolved,
    pub(super) settings: Settings,
    place: Place,
    pub(super) feed: Feed,
    questions: Arc<Questions>,
    pub(super) session: RefCell<Option<Session>>,
    /// The tools, as they were last listed.
    tools: RefCell<Vec<Value>>,
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

/// The lists, their methods, and the member with the items.
const LISTS: [(&str, &str, &str); 6] = [
    ("tools", "tools/list", "tools"),
    ("resources", "resources/list", "resources"),
    ("templates", "resources/templates/list", "resourceTemplates"),
    ("prompts", "prompts/list", "prompts"),
    ("tasks", "tasks/list", "tasks"),
    ("skills", "skills/list", "skills"),
];

impl Link {
    pub(super) fn new(
        number: u64,
        resolved: Resolved,
        settings: Settings,
        place: Place,
        desk: &Desk,
    ) -> Self {
        let (feed, questions) = (desk.feed.clone(), Arc::clone(&desk.questions));
        let (session, beside) = (RefCell::default(), RefCell::default());
        let tools = RefCell::default();
        Self { number, resolved, settings, place, feed, questions, session, tools, beside }
    }

    /// Connects, unless it is connected; until it is closed.
    pub(super) fn reopen(self: &Rc<Self>) {
        if self.session.borrow().is_none() {
            self.spawn(Rc::clone(self).open());
        }
    }

    /// Runs something that ends with the connection.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + 'static) {
        let mut beside = self.beside.borrow_mut();
        // What has ended makes room.
        while beside.try_join_next().is_some() {}
        beside.spawn_local(work);
    }

    /// Connects, and keeps the lists up to date from then on.
    async fn open(self: Rc<Self>) {
        self.report("connecting", json!({}));
        let more = |builder: bowline::client::ClientBuilder| {
            let builder = builder
                .extension(ui::ID, ui::client_settings())
                .roots(self.settings.answers.roots.iter().cloned());
            self.questions.listen(builder, self.number, &self.settings.answers)
        };
        let session = match Session::open(&self.resolved, &self.settings, &more).await {
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
        let Some((list, method, member)) = LISTS.iter().find(|(name, ..)| *name == list) else {
            return;
        };
        let Ok(client) = self.client() else { return };
        let mut event = json!({ "event": "list", "connection": self.number, "list": list });
        match all_pages(&client, method, member).await {
            Ok((result, cut)) => {
                event["items"] = result.to_value()[member].take();
                if *list == "tools" {
                    *self.tools.borrow_mut() =
                        event["items"].as_array().cloned().unwrap_or_default();
                }
                event["problem"] = json!(cut);
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
            "name": self.resolved.name, "cwd": cwd, "place": self.place,
        });
        if let (Value::Object(event), Value::Object(more)) = (&mut event, more) {
            event.extend(more);
        }
        self.publish("state", &event);
    }

    pub(super) fn publish(&self, what: &str, event: &Value) {
        self.feed.publish(Keep::As(&format!("c{}/{what}", self.number)), event);
    }
}
