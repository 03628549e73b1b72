//! The servers that were approved, their connections, and what can be done with them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline::client::{ClientLimits, Phase};
use bowline::schemars::JsonSchema;
use bowline::{Client, Json};
use bowline_gateway::diff::{Surface, behaviour};
use bowline_gateway::recording::Recording;
use bowline_gateway::session_file::LineKind;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::kept::{Long, Sessions};
use super::readable::{differences, pretty, problems, readable, steps, summary};
use crate::commands::call::params;
use crate::commands::diff::surface;
use crate::commands::info;
use crate::commands::list::all_pages;
use crate::commands::replay::replay;
use crate::failure::Failure;
use crate::record::Line;
use crate::screen::{OutputArgs, Screen};
use crate::session::{LineSink, Session, Settings};
use crate::target::{Location, Resolved, TargetOptions};
use crate::{check, doctor};

/// How many bytes of a connection's messages are kept for `messages` and `record`.
const RECORDED: usize = 16 << 20;

/// Everything that the tools work with.
pub(super) struct Desk {
    servers: BTreeMap<String, Approved>,
    settings: Settings,
    sessions: RefCell<Sessions>,
    long: RefCell<Long>,
}

/// A server that may be used.
struct Approved {
    resolved: Resolved,
    session: tokio::sync::Mutex<Option<Session>>,
    recorded: Arc<Mutex<Recorded>>,
}

/// The lines of a recording since the connection was opened.
#[derive(Default)]
struct Recorded {
    lines: Vec<String>,
    length: usize,
    is_cut: bool,
}

/// What can be listed.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(crate = "bowline::schemars")]
#[serde(rename_all = "lowercase")]
pub(super) enum List {
    Tools,
    Resources,
    Templates,
    Prompts,
}

/// One side of a comparison.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(crate = "bowline::schemars")]
#[serde(rename_all = "lowercase")]
pub(super) enum Side {
    /// What this server offers now
    Server(String),
    /// What was recorded under this name
    Session(String),
}

impl Desk {
    pub(super) fn new(
        approved: Vec<Resolved>,
        options: &TargetOptions,
        sessions: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        let quiet = OutputArgs { quiet: true, ..OutputArgs::default() };
        let mut settings = Settings::new(options, &quiet)?;
        // Standard error is for what is wrong with the workbench itself.
        let screen = Screen::new(&quiet);
        screen.divert(|_| {});
        settings.screen = Arc::new(screen);
        settings.limits.stderr_lines = ClientLimits::default().stderr_lines;
        let mut servers = BTreeMap::new();
        for resolved in approved {
            let name = short(&resolved);
            let (session, recorded) = Default::default();
            if servers.insert(name.clone(), Approved { resolved, session, recorded }).is_some() {
                return Err(Failure::usage(format!("{name} is named twice")));
            }
        }
        if servers.is_empty() {
            return Err(Failure::usage("which servers may the agent use?").with_remedy(
                "give names (`bowline servers` lists them), URLs, or a command after --",
            ));
        }
        let (sessions, long) = (RefCell::new(Sessions::new(sessions)?), RefCell::default());
        Ok(Self { servers, settings, sessions, long })
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.servers.keys().cloned().collect()
    }

    pub(super) fn overview(&self) -> Result<String, Failure> {
        let mut text = String::from("Servers:\n");
        for (name, server) in &self.servers {
            let state = match server.session.try_lock() {
                Ok(session) if session.as_ref().is_some_and(is_open) => "connected",
                Ok(_) => "not connected",
                Err(_) => "connecting",
            };
            let _ = writeln!(text, "- {name} ({state})");
        }
        let sessions = self.sessions.borrow().names();
        let sessions = if sessions.is_empty() { "none".to_owned() } else { sessions.join(", ") };
        let _ = writeln!(text, "Recorded sessions: {sessions}");
        Ok(self.sized(text))
    }

    pub(super) async fn connect(
        &self,
        name: &str,
        answers: Option<Map<String, Value>>,
    ) -> Result<String, Failure> {
        let server = self.server(name)?;
        let mut settings = self.settings.clone();
        if let Some(answers) = answers {
            settings.answers = settings.answers.with_rules(&Value::from(answers).to_string())?;
        }
        let mut session = server.session.lock().await;
        if let Some(old) = session.take() {
            old.close(None).await;
        }
        let opened = server.open(settings).await?;
        let latency = opened.ping().await.unwrap_or_default();
        let about = opened.client.peer();
        let about = about.map(|peer| info::for_programs(&peer, &opened.journal.steps(), latency));
        *session = Some(opened);
        Ok(self.sized(pretty(&about.unwrap_or_else(Json::empty_object).to_value())))
    }

    pub(super) async fn list(
        &self,
        name: &str,
        what: List,
        wanted: Option<&str>,
    ) -> Result<String, Failure> {
        let (method, member, key) = match what {
            List::Tools => ("tools/list", "tools", "name"),
            List::Resources => ("resources/list", "resources", "uri"),
            List::Templates => ("resources/templates/list", "resourceTemplates", "uriTemplate"),
            List::Prompts => ("prompts/list", "prompts", "name"),
        };
        let client = self.client(name).await?;
        let (result, cut) = all_pages(&client, method, member).await?;
        let result = result.to_value();
        let items = result[member].as_array().cloned().unwrap_or_default();
        if let Some(wanted) = wanted {
            let found = items.iter().find(|item| item[key] == wanted);
            let missing = || {
                Failure::usage(format!("{name} has no {key} {wanted:?} in {method}"))
                    .with_remedy("list without `name` shows all of them")
            };
            return Ok(self.sized(pretty(found.ok_or_else(missing)?)));
        }
        let mut text = format!("{} of {name}: {}\n", member, items.len());
        for item in &items {
            let _ = writeln!(text, "- {}", summary(item, key));
        }
        text += &cut.map(|why| format!("{why}\n")).unwrap_or_default();
        Ok(self.sized(text))
    }

    pub(super) async fn call(
        &self,
        name: &str,
        tool: &str,
        arguments: Option<Map<String, Value>>,
    ) -> Result<String, Failure> {
        let arguments = Json::from(Value::from(arguments.unwrap_or_default()));
        let client = self.client(name).await?;
        let result = client.call_json("tools/call", params(tool, &arguments)).await?;
        Ok(self.sized(readable(&result.to_value())))
    }

    pub(super) async fn request(
        &self,
        name: &str,
        method: &str,
        params: Option<Map<String, Value>>,
    ) -> Result<String, Failure> {
        let params = Json::from(Value::from(params.unwrap_or_default()));
        let result = self.client(name).await?.call_json(method, params).await?;
        Ok(self.sized(result.as_str().to_owned()))
    }

    pub(super) async fn check(&self, name: &str, done: impl FnMut(u32)) -> Result<String, Failure> {
        let server = self.server(name)?;
        let report = check::examine(&server.resolved, &self.settings, done).await?;
        Ok(self.sized(problems(&report)))
    }

    pub(super) async fn doctor(&self, name: &str) -> Result<String, Failure> {
        let server = self.server(name)?;
        let report = doctor::examine(&server.resolved, &self.settings).await?;
        Ok(self.sized(steps(&report)))
    }

    pub(super) fn messages(&self, name: &str, last: usize) -> Result<String, Failure> {
        let recorded = self.server(name)?.recorded();
        let from = recorded.lines.len().saturating_sub(last);
        let text = recorded.lines[from..].concat();
        let text = if text.is_empty() { format!("{name} was not connected to\n") } else { text };
        drop(recorded);
        Ok(self.sized(text))
    }

    pub(super) fn record(&self, name: &str, session: &str) -> Result<String, Failure> {
        let recorded = self.server(name)?.recorded();
        if recorded.lines.is_empty() {
            let failure = Failure::usage(format!("{name} was not connected to"));
            return Err(failure.with_remedy("`reconnect` begins a session"));
        }
        let count = recorded.lines.len();
        let cut =
            if recorded.is_cut { "; the session was too long, its end is missing" } else { "" };
        self.sessions.borrow_mut().keep(session, recorded.lines.concat())?;
        Ok(format!("recorded {count} lines as {session}{cut}"))
    }

    pub(super) async fn replay(&self, name: &str, session: &str) -> Result<String, Failure> {
        let recording = self.sessions.borrow().read(session)?;
        let found = replay(&self.server(name)?.resolved, &recording).await?;
        Ok(self.sized(differences(&found)))
    }

    pub(super) async fn diff(&self, before: Side, after: Side) -> Result<String, Failure> {
        let (before, after) = (self.compared(before).await?, self.compared(after).await?);
        let mut found = vec![("surface".to_owned(), before.0.compare(&after.0, &[]))];
        if let (Some(before), Some(after)) = (before.1, after.1) {
            found.extend(behaviour(&before, &after, &[]));
        }
        Ok(self.sized(differences(&found)))
    }

    /// What a side offers, and its recording if it is one.
    async fn compared(&self, side: Side) -> Result<(Surface, Option<Recording>), Failure> {
        match side {
            Side::Server(name) => Ok((surface(&self.client(&name).await?).await?, None)),
            Side::Session(name) => {
                let recording = self.sessions.borrow().read(&name)?;
                Ok((Surface::of(&recording), Some(recording)))
            }
        }
    }

    pub(super) fn more(&self, answer: u64, from: u64) -> Result<String, Failure> {
        self.long.borrow().piece(answer, from)
    }

    /// Ends all connections.
    pub(super) async fn close(&self) {
        for server in self.servers.values() {
            if let Some(session) = server.session.lock().await.take() {
                session.close(None).await;
            }
        }
    }

    fn server(&self, name: &str) -> Result<&Approved, Failure> {
        self.servers.get(name).ok_or_else(|| {
            let names = self.names().join(", ");
            Failure::usage(format!("{name:?} is not an approved server"))
                .with_remedy(format!("approved are: {names}"))
        })
    }

    /// The client of a server, which is connected to if it has to be.
    async fn client(&self, name: &str) -> Result<Client, Failure> {
        let server = self.server(name)?;
        let mut session = server.session.lock().await;
        if let Some(session) = session.as_ref().filter(|it| is_open(it)) {
            return Ok(session.client.clone());
        }
        if let Some(old) = session.take() {
            old.close(None).await;
        }
        let opened = server.open(self.settings.clone()).await?;
        let client = opened.client.clone();
        *session = Some(opened);
        Ok(client)
    }

    fn sized(&self, text: String) -> String {
        self.long.borrow_mut().cut(text)
    }
}

/// What the agent calls a server: a program by its name without folders.
fn short(resolved: &Resolved) -> String {
    match &resolved.location {
        Location::Command { program, .. } if resolved.from.is_none() => {
            let stem = Path::new(program).file_stem().unwrap_or(program);
            stem.to_string_lossy().into_owned()
        }
        _ => resolved.name.clone(),
    }
}

fn is_open(session: &Session) -> bool {
    !matches!(session.client.state().phase, Phase::Closing | Phase::Closed)
}

impl Approved {
    async fn open(&self, mut settings: Settings) -> Result<Session, Failure> {
        *self.recorded() = Recorded::default();
        let recorded = Arc::clone(&self.recorded);
        settings.lines = Some(LineSink(Arc::new(move |line: &Line| {
            lock(&recorded).take_in(line);
        })));
        Session::open(&self.resolved, &settings, &|builder| builder).await
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        lock(&self.recorded)
    }
}

fn lock(recorded: &Mutex<Recorded>) -> MutexGuard<'_, Recorded> {
    recorded.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorded {
    fn take_in(&mut self, line: &Line) {
        let text = line.encode().ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let Some(text) = text else { return };
        // A session without its end is still one; without its beginning it is not.
        self.is_cut |= self.length + text.len() > RECORDED;
        if !self.is_cut || line.kind == LineKind::End {
            self.length += text.len();
            self.lines.push(text);
        }
    }
}
