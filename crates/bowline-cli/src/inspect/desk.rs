//! What the page asks for, carried out.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::rc::Rc;
use std::sync::Arc;

use bowline::Json;
use bowline_inspector::{Action, Apps, Feed, Keep, Place, Problem};
use serde_json::{Value, json};
use tokio::task::{AbortHandle, spawn_local};

use super::link::Link;
use super::question::Questions;
use super::{load, tap};
use crate::failure::Failure;
use crate::screen::{OutputArgs, Screen};
use crate::session::Settings;
use crate::target::{Location, Resolved, Scan, TargetOptions, Trust, preference};

/// The most connections at a time, open or failed.
const MOST_LINKS: usize = 64;

/// Everything that the page works with. Clones share it.
#[derive(Clone)]
pub(super) struct Desk(Rc<Shared>);

pub(super) struct Shared {
    options: TargetOptions,
    root: OutputArgs,
    given: Option<Resolved>,
    pub(super) feed: Feed,
    apps: Apps,
    origin: String,
    pub(super) questions: Arc<Questions>,
    links: RefCell<BTreeMap<u64, Rc<Link>>>,
    /// What runs and can be cancelled, by the page's name for it.
    calls: RefCell<HashMap<String, AbortHandle>>,
    next: Cell<u64>,
}

impl std::ops::Deref for Desk {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self { what: failure.what, remedy: failure.remedy }
    }
}

impl Desk {
    pub(super) fn new(
        options: TargetOptions,
        root: OutputArgs,
        given: Option<Resolved>,
        feed: Feed,
        (apps, origin): (Apps, String),
    ) -> Self {
        let questions = Arc::new(Questions::new(feed.clone()));
        let (links, calls, next) = (RefCell::default(), RefCell::default(), Cell::new(1));
        let shared =
            Shared { options, root, given, feed, apps, origin, questions, links, calls, next };
        Self(Rc::new(shared))
    }

    /// Carries out a request of the page.
    pub(super) async fn act(&self, action: Action) -> Result<Value, Problem> {
        match action {
            Action::Targets {} => Ok(targets()?),
            Action::ReadConfig { text } => Ok(read_config(&text)?),
            Action::Connect { place, revision } => {
                if self.links.borrow().len() >= MOST_LINKS {
                    let what = format!("{MOST_LINKS} connections are the most; close some first");
                    return Err(Problem::new(what));
                }
                Ok(json!({ "connection": self.connect(place, revision.as_deref()) }))
            }
            Action::Close { connection } => {
                let link = self.links.borrow_mut().remove(&connection);
                if let Some(link) = link {
                    link.close().await;
                }
                self.feed.forget(&format!("c{connection}/"));
                Ok(Value::Null)
            }
            Action::Cancel { call } => {
                if let Some(running) = self.calls.borrow_mut().remove(&call) {
                    running.abort();
                }
                let told = json!({ "event": "cancelled", "call": call });
                self.feed.publish(Keep::Recent, &told);
                Ok(Value::Null)
            }
            Action::Answer { question, result, error } => {
                let result = result.map(|it| it.to_value());
                self.questions.answer(question, result, error).map_err(Problem::new)?;
                Ok(Value::Null)
            }
            Action::WatchTap { path } => {
                let connection = self.number();
                tap::watch(&path, connection, &self.feed).map_err(Problem::new)?;
                Ok(json!({ "connection": connection }))
            }
            action => self.begin(action).await,
        }
    }

    /// Starts what takes longer; the feed reports it.
    async fn begin(&self, action: Action) -> Result<Value, Problem> {
        match action {
            Action::Doctor { connection } => {
                self.link(connection)?.examine();
            }
            Action::Refresh { connection, list } => {
                let link = self.link(connection)?;
                spawn_local(async move { link.refresh(&list).await });
            }
            Action::Call { connection, call, method, params } => {
                let (link, params) = (self.link(connection)?, params_of(params));
                let name = call.clone();
                self.start(call, async move { link.call(&name, &method, params).await });
            }
            Action::Check { connection } => {
                self.link(connection)?.check();
            }
            Action::Load(load) => {
                let client = self.link(load.connection)?.client()?;
                let (name, feed) = (load.call.clone(), self.feed.clone());
                self.start(name, async move { load::run(&client, load, &feed).await });
            }
            action => return self.ask(action).await,
        }
        Ok(Value::Null)
    }

    /// Asks the server of a connection, and waits for its answer.
    async fn ask(&self, action: Action) -> Result<Value, Problem> {
        match action {
            Action::Complete { connection, params } => {
                let client = self.link(connection)?.client()?;
                let asked = client.call_json("completion/complete", params).await;
                Ok(asked.map_err(Failure::from)?.to_value())
            }
            Action::LogLevel { connection, level } => {
                let wrong = |error| Problem::new(format!("{error}"));
                let level = level.map(|it| serde_json::from_value(json!(it))).transpose();
                let client = self.link(connection)?.client()?;
                client.set_log_level(level.map_err(wrong)?).await.map_err(Failure::from)?;
                Ok(Value::Null)
            }
            Action::Roots { connection, uris } => {
                let roots = uris.into_iter().map(|uri| serde_json::from_value(json!({"uri": uri})));
                let roots: Result<Vec<_>, _> = roots.collect();
                let roots = roots.map_err(|error| Problem::new(error.to_string()))?;
                self.link(connection)?.client()?.set_roots(roots).await.map_err(Failure::from)?;
                Ok(Value::Null)
            }
            Action::App { connection, uri } => {
                let link = self.link(connection)?;
                Ok(link.app(&uri, &self.apps, &self.origin).await?)
            }
            _ => Err(Problem::new("not an action")),
        }
    }

    /// Connects to a server, and returns the number of the connection.
    pub(super) fn connect(&self, place: Place, revision: Option<&str>) -> u64 {
        let number = self.number();
        let desk = self.clone();
        let told = self.resolve(&place).and_then(|resolved| {
            let settings = self.settings(revision, number)?;
            Ok(Rc::new(Link::new(number, resolved, settings, place, &desk)))
        });
        match told {
            Ok(link) => {
                self.links.borrow_mut().insert(number, Rc::clone(&link));
                spawn_local(async move { link.open().await });
            }
            Err(failure) => self.feed.publish(
                Keep::As(&format!("c{number}/state")),
                &json!({
                    "event": "connection", "connection": number, "state": "failed",
                    "about": "", "problem": Problem::from(failure),
                }),
            ),
        }
        number
    }

    pub(super) async fn close_all(&self) {
        let links = std::mem::take(&mut *self.links.borrow_mut());
        for link in links.into_values() {
            link.close().await;
        }
    }

    fn number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    fn link(&self, number: u64) -> Result<Rc<Link>, Problem> {
        let link = self.links.borrow().get(&number).cloned();
        link.ok_or_else(|| Problem::new(format!("connection {number} is closed")))
    }

    /// Starts something that the page may cancel.
    fn start(&self, name: String, work: impl Future<Output = ()> + 'static) {
        let (desk, ended) = (self.clone(), name.clone());
        let task = spawn_local(async move {
            work.await;
            desk.calls.borrow_mut().remove(&ended);
        });
        self.calls.borrow_mut().insert(name, task.abort_handle());
    }

    fn resolve(&self, place: &Place) -> Result<Resolved, Failure> {
        match place {
            Place::Given { .. } => {
                let nothing = || Failure::usage("the command line named no server");
                self.given.clone().ok_or_else(nothing)
            }
            Place::Url { url, headers } => {
                let headers = headers.iter().map(|(name, it)| (name.clone(), it.clone())).collect();
                Ok(Resolved::new(url.clone(), Location::Url { url: url.clone(), headers }))
            }
            Place::Command { command, args, env, cwd } => {
                let location = Location::Command {
                    program: command.into(),
                    args: args.iter().map(OsString::from).collect(),
                    env: env.iter().map(|(name, it)| (name.into(), it.into())).collect(),
                    cwd: cwd.as_ref().map(Into::into),
                };
                Ok(Resolved::new(command.clone(), location))
            }
            Place::Name { name, trust } => Scan::new(None, Trust::read(*trust))?.trusted(name),
        }
    }

    fn settings(&self, revision: Option<&str>, number: u64) -> Result<Settings, Failure> {
        let mut settings = Settings::new(&self.options, &self.root)?;
        if let Some(revision) = revision {
            settings.preference = preference(revision).map_err(Failure::usage)?;
        }
        // What a terminal would show is in the page.
        let screen = Screen::new(&OutputArgs { quiet: true, ..OutputArgs::default() });
        screen.divert(|_| {});
        settings.screen = Arc::new(screen);
        settings.lines = Some(super::link::lines(&self.feed, number));
        Ok(settings)
    }
}

/// The servers that are configured on this machine, and the taps that run.
fn targets() -> Result<Value, Failure> {
    let scan = Scan::new(None, Trust::read(false))?;
    let servers: Vec<Value> = scan
        .servers
        .iter()
        .filter(|it| !it.is_disabled)
        .map(|it| {
            json!({
                "name": format!("{}/{}", it.client, it.name), "about": it.about(),
                "file": it.file.to_string_lossy(), "trusted": it.is_trusted,
            })
        })
        .collect();
    Ok(json!({ "servers": servers, "problems": scan.problems, "taps": tap::running() }))
}

fn params_of(params: Option<Json>) -> Json {
    params.unwrap_or_else(Json::empty_object)
}

/// The servers in pasted JSON, ready to connect to.
fn read_config(text: &str) -> Result<Value, Failure> {
    let mut found = Vec::new();
    for (name, resolved) in Scan::of_text(text)?.all() {
        let place = match resolved?.location {
            Location::Url { url, headers } => {
                Place::Url { url, headers: headers.into_iter().collect() }
            }
            Location::Command { program, args, env, cwd } => {
                let text = |it: &OsString| it.to_string_lossy().into_owned();
                Place::Command {
                    command: text(&program),
                    args: args.iter().map(text).collect(),
                    env: env.iter().map(|(name, value)| (text(name), text(value))).collect(),
                    cwd: cwd.map(|it| it.to_string_lossy().into_owned()),
                }
            }
        };
        found.push(json!({ "name": name, "place": place }));
    }
    if found.is_empty() {
        return Err(Failure::usage("no server in this JSON")
            .with_remedy("paste an entry with `command` or `url`, or a file with `mcpServers`"));
    }
    Ok(found.into())
}
