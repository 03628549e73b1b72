//! One connection: opened, its lists kept up to date, its calls made; examined when it fails.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bowline::client::{Change, Wanted};
use bowline::model::{ProgressParams, ui};
use bowline::{Client, Json};
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

/// How long a call may take: a person may have to answer a question first.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

pub(super) struct Link {
    number: u64,
    resolved: Resolved,
    settings: Settings,
    place: Place,
    feed: Feed,
    questions: Arc<Questions>,
    session: RefCell<Option<Session>>,
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
const LISTS: [(&str, &str, &str); 5] = [
    ("tools", "tools/list", "tools"),
    ("resources", "resources/list", "resources"),
    ("templates", "resources/templates/list", "resourceTemplates"),
    ("prompts", "prompts/list", "prompts"),
    ("tasks", "tasks/list", "tasks"),
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
        Self { number, resolved, settings, place, feed, questions, session, beside }
    }

    /// Connects, and keeps the lists up to date from then on.
    pub(super) async fn open(self: Rc<Self>) {
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
            let member = if list == "templates" { "resources" } else { list };
            // Only the core tasks of 2025-11-25 can be listed.
            if offers(member) && (list != "tasks" || !revision.is_modern()) {
                let link = Rc::clone(&self);
                self.beside.borrow_mut().spawn_local(async move { link.refresh(list).await });
            }
        }
        let link = Rc::clone(&self);
        let hearing = client.clone();
        self.beside.borrow_mut().spawn_local(async move { link.follow(&hearing).await });
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

    pub(super) async fn close(&self) {
        self.beside.borrow_mut().abort_all();
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
                event["problem"] = json!(cut);
            }
            Err(error) => event["problem"] = json!(Failure::from(error).what),
        }
        self.publish(&format!("list/{list}"), &event);
    }

    /// Makes a call, and reports what becomes of it.
    pub(super) async fn call(&self, name: &str, method: &str, params: Json) {
        let mut event = json!({
            "event": "call", "connection": self.number, "call": name, "method": method,
            "params": params.as_str(), "state": "running",
        });
        let key = format!("call/{name}");
        self.publish(&key, &event);
        let client = match self.client() {
            Ok(client) => client,
            Err(problem) => {
                event["state"] = "failed".into();
                event["problem"] = json!(problem);
                return self.publish(&key, &event);
            }
        };
        let (feed, about, connection) = (self.feed.clone(), name.to_owned(), self.number);
        let on_progress = move |it: ProgressParams| {
            let event = json!({
                "event": "progress", "call": about, "progress": it.progress, "total": it.total,
                "message": it.message,
            });
            feed.publish(Keep::As(&format!("c{connection}/progress/{about}")), &event);
        };
        let (feed, about) = (self.feed.clone(), name.to_owned());
        let on_status = move |state: &bowline::client::TaskState| {
            let event = json!({
                "event": "task", "connection": connection, "call": about,
                "task": state.id, "status": state.status, "message": state.message,
            });
            feed.publish(Keep::As(&format!("c{connection}/task/{}", state.id)), &event);
        };
        let begun = Instant::now();
        let call = client.call_json(method, params).on_progress(on_progress).on_status(on_status);
        let outcome = call.idle_timeout(PATIENCE).timeout(PATIENCE).await;
        event["took"] = json!(begun.elapsed().as_secs_f64());
        match outcome {
            Ok(result) => {
                event["state"] = "done".into();
                event["result"] = result.as_str().into();
            }
            Err(error) => {
                let failure = Failure::from(error);
                event["state"] = "failed".into();
                event["error"] = json!(failure.error);
                event["problem"] = json!(Problem::from(failure));
            }
        }
        self.publish(&key, &event);
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
        self.beside.borrow_mut().spawn_local(work);
    }

    /// Runs all checks.
    pub(super) fn check(self: &Rc<Self>) {
        let link = Rc::clone(self);
        let number = self.number;
        let told = move |done: u32| json!({ "event": "check", "connection": number, "state": "running", "done": done });
        self.publish("check", &told(0));
        self.beside.borrow_mut().spawn_local(async move {
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
        let judged = Judged { documents, ..Judged::default() };
        let document = judged.document(uri);
        let document = document.ok_or_else(|| Problem::new(format!("{uri} is not a document")))?;
        let ui = document.ui();
        let problems: Vec<String> = judged.problems().into_iter().map(|it| it.said).collect();
        let address = apps.add(document.html, ui.csp.as_ref(), page);
        let address = address.ok_or_else(|| Problem::new(format!("{uri} is too large")))?;
        Ok(json!({ "address": address, "ui": ui, "findings": problems }))
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

    fn publish(&self, what: &str, event: &Value) {
        self.feed.publish(Keep::As(&format!("c{}/{what}", self.number)), event);
    }
}
