//! What the page asks for, carried out.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use bowline::Json;
use bowline::client::Preference;
use bowline_inspector::{Action, Apps, Feed, Keep, Place, Problem, Side};
use serde_json::{Value, json};

use super::link::{Choice, Link};
use super::places::{self, read_config, targets};
use super::question::Questions;
use super::recorded::{self, Compared, Recorded};
use super::running::Running;
use super::tap::Tap;
use super::{load, login};
use crate::commands::login::log_out;
use crate::failure::Failure;
use crate::screen::{OutputArgs, Screen};
use crate::session::Settings;
use crate::target::{Resolved, TargetOptions, preference};

/// The most connections at a time, open or failed, taps and session files among them.
const MOST_OPEN: usize = 64;

/// What a number of a connection stands for.
enum Open {
    Link(Rc<Link>),
    Tap(Tap),
    File(Rc<Recorded>),
    /// It could not be understood where to connect to.
    Failed,
}

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
    open: RefCell<BTreeMap<u64, Open>>,
    running: Rc<Running>,
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
        let (open, running, next) = (RefCell::default(), Rc::default(), Cell::new(1));
        let shared =
            Shared { options, root, given, feed, apps, origin, questions, open, running, next };
        Self(Rc::new(shared))
    }

    /// Carries out a request of the page.
    pub(super) async fn act(&self, action: Action) -> Result<Value, Problem> {
        match action {
            Action::Targets {} => Ok(targets()?),
            Action::ReadConfig { text } => Ok(read_config(&text)?),
            Action::Connect { place, revision } => {
                self.check_room()?;
                Ok(json!({ "connection": self.connect(Choice { place, revision }) }))
            }
            Action::ConnectAgain { connection } => {
                self.check_room()?;
                let choice = self.link(connection)?.choice.clone();
                Ok(json!({ "connection": self.connect(choice) }))
            }
            Action::Close { connection } => {
                self.close(connection).await;
                Ok(Value::Null)
            }
            Action::Cancel { call } => {
                self.running.cancel(&call).await;
                Ok(Value::Null)
            }
            Action::Answer { question, result, error } => {
                let result = result.map(|it| it.to_value());
                self.questions.answer(question, result, error).map_err(Problem::new)?;
                Ok(Value::Null)
            }
            Action::Rules { text } => {
                self.questions.rule(&text)?;
                Ok(Value::Null)
            }
            Action::WatchTap { path } => {
                self.check_room()?;
                let number = self.number();
                let tap = Tap::watch(&path, number, &self.feed).map_err(Problem::new)?;
                self.keep(number, Open::Tap(tap));
                Ok(json!({ "connection": number }))
            }
            action => self.begin(action).await,
        }
    }

    /// Starts what takes longer; the feed reports it.
    async fn begin(&self, action: Action) -> Result<Value, Problem> {
        match action {
            Action::Doctor { connection } => self.link(connection)?.examine(),
            Action::Refresh { connection, list } => {
                let link = self.link(connection)?;
                let of = Rc::clone(&link);
                link.spawn(async move { of.refresh(&list).await });
            }
            Action::Call { connection, call, method, params } => {
                let (link, params) = (self.link(connection)?, params_of(params));
                let name = call.clone();
                let work = async move { link.call(&name, &method, params).await };
                self.running.start(connection, call, work)?;
            }
            Action::Resume { connection, call, task } => {
                let (link, name) = (self.link(connection)?, call.clone());
                let work = async move { link.resume(&name, &task).await };
                self.running.start(connection, call, work)?;
            }
            Action::Check { connection } => self.link(connection)?.check(),
            Action::Load(load) => {
                let client = self.link(load.connection)?.client()?;
                let (connection, name) = (load.connection, load.call.clone());
                let feed = self.feed.clone();
                let work = async move { load::run(&client, load, &feed).await };
                self.running.start(connection, name, work)?;
            }
            Action::Login(login) => {
                let connection = login.connection;
                let link = self.link(connection)?;
                let work = async move {
                    if login::run(&link, &login).await {
                        link.reopen();
                    }
                };
                self.running.start(connection, format!("login/{connection}"), work)?;
            }
            Action::Replay { connection, text } => {
                let link = self.link(connection)?;
                let work = async move { recorded::repeat(&link, &text).await };
                self.running.start(connection, format!("replay/{connection}"), work)?;
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
            Action::Skill { connection, entry, file } => {
                self.link(connection)?.skill(&entry, file.as_deref()).await
            }
            Action::Logout { connection } => {
                log_out(&self.link(connection)?.resolved).await?;
                self.feed.forget(&format!("c{connection}/login"));
                Ok(Value::Null)
            }
            action => self.work_on_sessions(action).await,
        }
    }

    /// Opens, compares, exports and serves sessions that were recorded.
    async fn work_on_sessions(&self, action: Action) -> Result<Value, Problem> {
        match action {
            Action::OpenSession { name, text } => {
                self.check_room()?;
                let number = self.number();
                let file = Recorded::open(&name, text, number, &self.feed)?;
                self.keep(number, Open::File(Rc::new(file)));
                Ok(json!({ "connection": number }))
            }
            Action::ReadSession { connection } => match self.open.borrow().get(&connection) {
                Some(Open::File(file)) => Ok(json!({ "text": file.text })),
                _ => Err(Problem::new(format!("connection {connection} is not a session file"))),
            },
            Action::Compare { before, after } => {
                let (before, after) = (self.side(before).await?, self.side(after).await?);
                Ok(before.compare(&after))
            }
            Action::Export { text, to } => recorded::export(&text, to),
            Action::Serve { name, text } => {
                self.check_room()?;
                let (url, serving) = recorded::serve(&text).await?;
                let place = Place::Url { url, headers: BTreeMap::new() };
                let number = self.connect(place.into());
                self.running.start(number, format!("serve/{number} {name}"), serving)?;
                Ok(json!({ "connection": number }))
            }
            _ => Err(Problem::new("not an action")),
        }
    }

    async fn side(&self, side: Side) -> Result<Compared, Problem> {
        let link = match &side {
            Side::Server { connection } => Some(self.link(*connection)?),
            Side::Session { .. } => None,
        };
        Compared::of(side, link.as_deref()).await
    }

    /// Connects to a server, and returns the number of the connection.
    pub(super) fn connect(&self, choice: Choice) -> u64 {
        let number = self.number();
        let desk = self.clone();
        let told = places::resolve(&choice.place, self.given.as_ref()).and_then(|resolved| {
            let settings = self.settings(&choice, number)?;
            Ok(Rc::new(Link::new(number, resolved, settings, choice, &desk)))
        });
        match told {
            Ok(link) => {
                self.keep(number, Open::Link(Rc::clone(&link)));
                link.reopen();
            }
            Err(failure) => {
                self.keep(number, Open::Failed);
                let event = json!({
                    "event": "connection", "connection": number, "state": "failed",
                    "about": "", "problem": Problem::from(failure),
                });
                self.feed.publish(Keep::As(&format!("c{number}/state")), &event);
            }
        }
        number
    }

    /// Ends whatever a number stands for, and everything that runs for it; pages forget it.
    async fn close(&self, number: u64) {
        let open = self.open.borrow_mut().remove(&number);
        self.running.cancel_of(number).await;
        match open {
            Some(Open::Link(link)) => link.close().await,
            Some(Open::Tap(tap)) => tap.close(),
            Some(Open::File(_) | Open::Failed) | None => {}
        }
        self.feed.forget(&format!("c{number}/"));
    }

    pub(super) async fn close_all(&self) {
        let numbers: Vec<u64> = self.open.borrow().keys().copied().collect();
        for number in numbers {
            self.close(number).await;
        }
    }

    fn keep(&self, number: u64, open: Open) {
        self.open.borrow_mut().insert(number, open);
    }

    fn check_room(&self) -> Result<(), Problem> {
        if self.open.borrow().len() < MOST_OPEN {
            return Ok(());
        }
        Err(Problem::new(format!("{MOST_OPEN} connections are the most; close some first")))
    }

    fn number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    fn link(&self, number: u64) -> Result<Rc<Link>, Problem> {
        match self.open.borrow().get(&number) {
            Some(Open::Link(link)) => Ok(Rc::clone(link)),
            Some(_) => Err(Problem::new(format!("connection {number} has no server"))),
            None => Err(Problem::new(format!("connection {number} is closed"))),
        }
    }

    fn settings(&self, choice: &Choice, number: u64) -> Result<Settings, Failure> {
        let mut settings = Settings::new(&self.options, &self.root)?;
        let is_given = matches!(choice.place, Place::Given { .. });
        if let Some(revision) = &choice.revision {
            settings.preference = preference(revision).map_err(Failure::usage)?;
        } else if self.given.is_some() && !is_given {
            // What the command line says of the protocol is about the server that it names.
            settings.preference = Preference::Auto;
        }
        // What a terminal would show is in the page.
        let screen = Screen::new(&OutputArgs { quiet: true, ..OutputArgs::default() });
        screen.divert(|_| {});
        settings.screen = Arc::new(screen);
        settings.lines = Some(super::link::lines(&self.feed, number));
        Ok(settings)
    }
}

fn params_of(params: Option<Json>) -> Json {
    params.unwrap_or_else(Json::empty_object)
}
