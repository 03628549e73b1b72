//! What a check works with: the connection that the checks of one revision share, fresh ones, and
//! requests.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bowline::{Era, Revision};
use serde_json::{Value, json};

use crate::apps::Apps;
use crate::calls::ToolCall;
use crate::check::Target;
use crate::connection::{Connection, Until};
use crate::evidence::Evidence;
use crate::frames::message;
use crate::frames::{HeaderChanges, Http, Lost, Tap};
pub(crate) use crate::lists::{List, PROMPTS, RESOURCES, SKILLS, TASKS, TEMPLATES, TOOLS};
use crate::observed::Observed;
use crate::opening::Opening;
pub(crate) use crate::reply::{Received, Reply};
use crate::rule::{Profile, Transport};
use crate::rules::auth::Gate;
use crate::task_runs::TaskRun;

/// How a check ends: passed, perhaps with a note, or not.
pub(crate) type Outcome = Result<Option<String>, NotPassed>;

/// Passed, without a note.
pub(crate) const PASS: Outcome = Ok(None);

/// Why a check did not pass.
#[derive(Debug, Clone)]
pub(crate) enum NotPassed {
    /// These things are wrong.
    Broken(Vec<String>),
    /// It does not apply to this server, or cannot be tried on it.
    Skipped(String),
    /// The server is silent or gone.
    Lost(Lost),
}

impl From<Lost> for NotPassed {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

/// One thing is wrong.
pub(crate) fn broken<T>(what: impl Into<String>) -> Result<T, NotPassed> {
    Err(NotPassed::Broken(vec![what.into()]))
}

/// Passes if a condition holds.
pub(crate) fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Outcome {
    if holds { PASS } else { broken(problem()) }
}

/// A reason to skip the check.
pub(crate) fn skip<T>(why: impl Into<String>) -> Result<T, NotPassed> {
    Err(NotPassed::Skipped(why.into()))
}

/// Passes without problems.
pub(crate) fn all_good(problems: impl IntoIterator<Item = String>) -> Outcome {
    let problems: Vec<String> = problems.into_iter().collect();
    if problems.is_empty() { PASS } else { Err(NotPassed::Broken(problems)) }
}

/// Passes if there is none of these problems.
pub(crate) fn none_of(problems: impl IntoIterator<Item = Option<String>>) -> Outcome {
    all_good(problems.into_iter().flatten())
}

/// A problem, if a condition holds.
pub(crate) fn when(holds: bool, problem: &str) -> Option<String> {
    holds.then(|| problem.to_owned())
}

/// The problems of an outcome, where several are collected.
pub(crate) fn problems_of(outcome: Outcome) -> Result<Vec<String>, NotPassed> {
    match outcome {
        Ok(_) => Ok(Vec::new()),
        Err(NotPassed::Broken(problems)) => Ok(problems),
        Err(other) => Err(other),
    }
}

/// What is the same for all checks.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) target: Target,
    pub(crate) tap: Tap,
    pub(crate) profile: Profile,
    /// For each exchange.
    pub(crate) timeout: Duration,
    /// Tools that may be called, with their arguments.
    pub(crate) calls: Vec<(String, Value)>,
    /// How many resources and prompts are read, and safe tools called.
    pub(crate) samples: usize,
    /// How many programs are tested at once.
    pub(crate) jobs: usize,
    /// Connections that the survey opened and closed.
    pub(crate) openings: Arc<BTreeMap<Revision, Opening>>,
    /// Whether the server is on this machine.
    pub(crate) is_local: bool,
    /// Whether requests carry credentials.
    pub(crate) has_credentials: bool,
    /// Whether the server rejects everything we send for lack of a token.
    pub(crate) is_barred: bool,
    /// How it rejects requests without a token, once that is known.
    pub(crate) gate: Arc<OnceLock<Arc<Gate>>>,
}

impl Settings {
    pub(crate) fn new(target: Target) -> Self {
        Self {
            target,
            tap: Tap::default(),
            profile: Profile::Default,
            timeout: Duration::from_secs(10),
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

    /// How many connections are in use at once: several programs, but only one to a URL.
    pub(crate) fn jobs(&self) -> usize {
        if self.transport() == Transport::Stdio { self.jobs } else { 1 }
    }

    pub(crate) fn transport(&self) -> Transport {
        match self.target {
            Target::Program(_) | Target::Streams(_) => Transport::Stdio,
            Target::Http(_) => Transport::Http,
            Target::HttpSse(_) => Transport::Sse,
        }
    }
}

/// What checks of one revision share.
pub(crate) struct Probe {
    pub(crate) settings: Settings,
    pub(crate) revision: Revision,
    /// Revisions that the server speaks.
    pub(crate) spoken: Vec<Revision>,
    /// The result of the handshake, or of `server/discover`.
    pub(crate) greeting: Value,
    pub(crate) observed: Observed,
    pub(crate) evidence: Vec<Evidence>,
    connection: Option<Connection>,
    /// The check that runs.
    pub(crate) rule: &'static str,
    /// Lists that were requested, by method; or why what needs one is skipped.
    pub(crate) lists: HashMap<&'static str, Result<Vec<Value>, NotPassed>>,
    /// The calls of tools, once they have been made.
    pub(crate) called: Option<Vec<ToolCall>>,
    /// The apps of the server, once they have been read.
    pub(crate) apps: Option<Arc<Apps>>,
    /// The tasks that were run, once that has been tried.
    pub(crate) task_runs: Option<Arc<Vec<TaskRun>>>,
    /// A connection that was opened and closed, once that has been tried.
    pub(crate) opening: Option<Opening>,
}

impl Probe {
    pub(crate) fn new(settings: &Settings, revision: Revision, spoken: &[Revision]) -> Self {
        Self {
            settings: settings.clone(),
            revision,
            spoken: spoken.to_vec(),
            greeting: Value::Null,
            observed: Observed::new(revision),
            evidence: Vec::new(),
            connection: None,
            rule: "",
            lists: HashMap::new(),
            called: None,
            apps: None,
            task_runs: None,
            opening: None,
        }
    }

    pub(crate) fn transport(&self) -> Transport {
        self.settings.transport()
    }

    /// Whether the server speaks an era at all.
    pub(crate) fn speaks(&self, era: Era) -> bool {
        self.spoken.iter().any(|revision| revision.era() == era)
    }

    /// The URL under test.
    pub(crate) fn http(&self) -> Result<&Http, NotPassed> {
        self.settings.target.http().map_or_else(|| skip("the server is a program"), Ok)
    }

    /// The connection that all share, opened when needed.
    pub(crate) async fn connection(&mut self) -> Result<&mut Connection, NotPassed> {
        if self.connection.is_none() {
            let mut connection = self.fresh().await?;
            if !self.revision.is_modern() {
                match connection.shake_hands(self.revision.as_str()).await {
                    Ok(answer) => {
                        self.greeting = answer.get("result").cloned().unwrap_or_default();
                    }
                    Err(lost) => {
                        self.absorb(&mut connection);
                        return Err(Lost::NoSession(lost.to_string()).into());
                    }
                }
            }
            connection.evidence.clear();
            self.connection = Some(connection);
        }
        self.connection.as_mut().map_or_else(|| skip("there is no connection"), Ok)
    }

    /// A connection of the check's own, before any handshake.
    pub(crate) async fn fresh(&self) -> Result<Connection, NotPassed> {
        let Settings { target, timeout, tap, .. } = &self.settings;
        Ok(Connection::open(target, self.revision, *timeout, tap).await?)
    }

    /// Runs something on a connection of the check's own. A server that is silent or gone is not
    /// waited for.
    pub(crate) async fn apart<T>(
        &mut self,
        run: impl AsyncFnOnce(&mut Connection) -> Result<T, Lost>,
    ) -> Result<T, NotPassed> {
        let mut connection = self.fresh().await?;
        let done = run(&mut connection).await;
        if done.is_ok() {
            self.finish(connection).await;
        } else {
            self.absorb(&mut connection);
        }
        Ok(done?)
    }

    /// Keeps what a connection of the check's own has received.
    pub(crate) fn absorb(&mut self, connection: &mut Connection) {
        self.evidence.append(&mut connection.evidence);
        self.observed.merge(connection.take_observed());
    }

    /// Closes a connection of the check's own.
    pub(crate) async fn finish(&mut self, mut connection: Connection) {
        self.absorb(&mut connection);
        connection.close().await;
        self.observed.merge(connection.observed);
    }

    /// Moves what the shared connection has received to where the runner looks for it.
    pub(crate) fn collect(&mut self) {
        if let Some(mut connection) = self.connection.take() {
            self.absorb(&mut connection);
            self.connection = Some(connection);
        }
    }

    /// Closes the shared connection; the next check gets another one.
    pub(crate) async fn hang_up(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.finish(connection).await;
        }
    }

    /// Drops the shared connection to a server that does not respond any more.
    pub(crate) fn drop_connection(&mut self) {
        self.collect();
        self.connection = None;
    }

    /// A request as the revision wants it, with an id that is new on the shared connection.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        params: Value,
    ) -> Result<Value, NotPassed> {
        let id = self.connection().await?.next_id();
        Ok(message::request(self.revision, &id, method, params))
    }

    /// Sends a request on the shared connection and waits for the answer.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Result<Reply, NotPassed> {
        let message = self.request(method, params).await?;
        self.ask_raw(&message, &[]).await
    }

    /// Sends a request as it is.
    pub(crate) async fn ask_raw(
        &mut self,
        message: &Value,
        changes: HeaderChanges<'_>,
    ) -> Result<Reply, NotPassed> {
        Ok(self.connection().await?.ask_raw(message, changes).await?)
    }

    /// Sends a frame that need not be answered, and collects whatever comes.
    pub(crate) async fn say(
        &mut self,
        frame: &str,
        changes: HeaderChanges<'_>,
    ) -> Result<Received, NotPassed> {
        Ok(self.connection().await?.exchange(frame, Until::Quiet, changes).await?)
    }

    /// A request and its result.
    pub(crate) async fn result(&mut self, method: &str, params: Value) -> Result<Value, NotPassed> {
        self.ask(method, params).await?.into_result()
    }

    /// Passes if a request gets this error.
    pub(crate) async fn gets_error(
        &mut self,
        (method, params): (&str, Value),
        what: &str,
        code: i64,
    ) -> Outcome {
        self.ask(method, params).await?.expect_code(what, &[code])
    }

    /// Passes if a request does not succeed. Skipped unless the server declares the capability.
    pub(crate) async fn fails(
        &mut self,
        capability: &str,
        (method, params): (&str, Value),
        what: &str,
    ) -> Outcome {
        self.needs(capability).await?;
        self.ask(method, params).await?.expect_failure(what)
    }

    /// Passes if a request gets error -32602. Skipped unless the server declares the capability.
    pub(crate) async fn rejects(
        &mut self,
        capability: &str,
        request: (&str, Value),
        what: &str,
    ) -> Outcome {
        self.needs(capability).await?;
        self.gets_error(request, what, -32602).await
    }

    /// What the server says it can do.
    pub(crate) async fn capabilities(&mut self) -> Result<Value, NotPassed> {
        if self.greeting.is_null() {
            let surveyed = self.settings.openings.get(&self.revision);
            let surveyed = surveyed.and_then(|opening| opening.answer.get("result")).cloned();
            match (self.revision.era(), surveyed) {
                (Era::Modern, Some(result)) => self.greeting = result,
                (Era::Modern, None) => {
                    self.greeting = self.result("server/discover", json!({})).await?;
                }
                (Era::Legacy, _) => drop(self.connection().await?),
            }
        }
        Ok(self.greeting.get("capabilities").cloned().unwrap_or_else(|| json!({})))
    }

    /// Skips the check unless the server declares a capability whose list can be had.
    pub(crate) async fn needs(&mut self, capability: &str) -> Result<(), NotPassed> {
        if self.capabilities().await?.get(capability).is_none() {
            return skip(format!("the server does not declare {capability}"));
        }
        match self.lists.get(format!("{capability}/list").as_str()) {
            Some(Err(why)) => Err(why.clone()),
            _ => Ok(()),
        }
    }
}
