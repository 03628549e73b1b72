//! Which revision both sides speak: found by the rules that the client has, each question a step.

use std::time::Duration;

use bowline::Json;
use bowline::proto::decode::decode_result;
use bowline::proto::model::{DiscoverResult, InitializeResult};
use bowline::proto::revision::{Revision, Revisions};
use bowline::proto::session::{Action, Connect, ConnectError, Event, Preference, Question};
use serde_json::{Value, json};

use super::ending::seconds;
use super::report::{Diagnosis, Outcome, Report, Step};
use super::seen::plain;
use super::wire::{Trouble, Wire, initialize};
use tokio::time::Instant;

/// What the user wants, and how long anything may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Want {
    pub(crate) preference: Preference,
    /// For every step.
    pub(crate) timeout: Duration,
}

impl Want {
    /// For the first question to a process, which a legacy server may ignore.
    fn probe(&self) -> Duration {
        (self.timeout / 2).min(bowline::proto::session::PROBE_TIMEOUT)
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) revision: Revision,
    pub(crate) capabilities: Value,
}

/// One search.
pub(crate) struct Search<'a> {
    wire: &'a mut Wire,
    report: &'a mut Report,
    want: Want,
    connect: Connect,
    capabilities: Value,
    /// A step whose meaning shows when the process has been started again.
    held: Option<Step>,
    /// What became of `server/discover`, in a word or two.
    how: String,
}

impl<'a> Search<'a> {
    pub(crate) fn new(wire: &'a mut Wire, report: &'a mut Report, want: Want) -> Self {
        let ours = want.preference.narrow(Revisions::ALL);
        let connect = Connect::new(wire.transport(), ours).with_probe_timeout(want.probe());
        let how = "it was not asked for another".to_owned();
        Self { wire, report, want, connect, capabilities: Value::Null, held: None, how }
    }

    /// Asks until there is a connection, or none can be had.
    pub(crate) async fn run(mut self) -> Option<Live> {
        let began = Instant::now();
        let mut action = self.connect.open(None);
        loop {
            action = match action {
                Action::Discover { revision, timeout } => self.discover(revision, timeout).await,
                Action::Initialize(revision) => self.initialize(revision).await,
                Action::Respawn(revision) => self.respawn(revision).await,
                Action::OpenSse => self.open_sse().await,
                Action::Done(revision) => {
                    self.tell_era(revision, began);
                    let capabilities = self.capabilities;
                    return Some(Live { revision, capabilities });
                }
                Action::Failed(_) | Action::Wait => return None,
            };
        }
    }

    async fn discover(&mut self, revision: Revision, patience: Option<Duration>) -> Action {
        let began = Instant::now();
        let patience = patience.unwrap_or(self.want.timeout);
        let answered = self.wire.ask("server/discover", json!({}), revision, patience).await;
        let read = answered.and_then(|raw| {
            decode_result::<DiscoverResult>("server/discover", raw.as_raw())
                .map(|result| (result.supported_versions, raw.to_value()))
                .map_err(|error| Trouble::Malformed(error.to_string()))
        });
        match read {
            Ok((listed, result)) => {
                self.capabilities = result["capabilities"].clone();
                let action = self.connect.handle_event(Event::Discovered(&listed));
                self.how = format!("server/discover lists {}", plain(&listed.join(", ")));
                let seen = format!("speaks {}{}", plain(&listed.join(", ")), who(&result));
                let step = Step::ok("discover", seen, began);
                self.finish(step, &action, None).await;
                action
            }
            Err(trouble) => {
                let action = self.connect.handle_event(trouble.event(Question::Discover));
                let short = match &trouble {
                    Trouble::Http(answer) => format!("HTTP {}", answer.status),
                    other => other.seen(),
                };
                self.how = format!("server/discover: {short}");
                let step = Step::ok("discover", trouble.seen(), began);
                self.finish(step, &action, Some((trouble, "server/discover"))).await;
                action
            }
        }
    }

    async fn initialize(&mut self, revision: Revision) -> Action {
        let began = Instant::now();
        let params = initialize(revision);
        let answered = self.wire.ask("initialize", params, revision, self.want.timeout).await;
        let read = answered.and_then(|raw| read_initialize(&raw));
        match read {
            Ok((agreed, result)) => {
                self.capabilities = result["capabilities"].clone();
                let action = self.connect.handle_event(Event::Initialized(&agreed));
                let seen = format!("asked for {revision}, got {}{}", plain(&agreed), who(&result));
                self.release(true);
                self.finish(Step::ok("initialize", seen, began), &action, None).await;
                action
            }
            Err(trouble) => {
                let action = self.connect.handle_event(trouble.event(Question::Initialize));
                self.release(!matches!(trouble, Trouble::Ended | Trouble::NoAnswer(_)));
                let step = Step::ok("initialize", trouble.seen(), began);
                self.finish(step, &action, Some((trouble, "initialize"))).await;
                action
            }
        }
    }

    async fn respawn(&mut self, revision: Revision) -> Action {
        let began = Instant::now();
        let Wire::Process(process) = &mut *self.wire else { return Action::Wait };
        if let Err(error) = process.start_again().await {
            let cause = format!("the program cannot be started a second time: {error}");
            let diagnosis = Diagnosis::unreachable(cause, "Start it by hand twice in a row.");
            self.report.push(Step::ok("start", error.to_string(), began).fail(diagnosis));
            return Action::Failed(ConnectError::Exited);
        }
        Action::Initialize(revision)
    }

    async fn open_sse(&mut self) -> Action {
        let began = Instant::now();
        let Wire::Http(talk) = &mut *self.wire else { return Action::Wait };
        match talk.open_sse(self.want.timeout).await {
            Ok(seen) => {
                self.report.push(Step::ok("sse", seen, began));
                self.connect.handle_event(Event::EndpointFound)
            }
            Err(trouble) => {
                let action = self.connect.handle_event(trouble.event(Question::Endpoint));
                let step = Step::ok("sse", trouble.seen(), began);
                self.finish(step, &action, Some((trouble, "the event stream"))).await;
                action
            }
        }
    }

    /// Tells a step, in the light of what follows from it.
    async fn finish(&mut self, step: Step, next: &Action, trouble: Option<(Trouble, &str)>) {
        match (next, trouble) {
            (Action::Failed(error), None) => {
                let diagnosis = no_common(error);
                self.report.push(step.fail(diagnosis));
            }
            (Action::Failed(_), Some((trouble, method))) => {
                let (seen, diagnosis) = self.wire.explain(method, &trouble).await;
                self.report.push(Step { seen, ..step }.fail(diagnosis));
            }
            (Action::Respawn(_), Some((_, method))) => {
                let Wire::Process(process) = &mut *self.wire else { return };
                let seen = process.give_up(&Trouble::Ended).await.seen();
                self.held = Some(Step { seen, ..step }.warn(dies(method)));
            }
            // Whether that is a fault of its own, the next question shows.
            (Action::Initialize(_), Some((Trouble::NoAnswer(after), method))) => {
                self.held = Some(step.warn(ignored(method, after)));
            }
            (_, Some((trouble, method))) => {
                let warning = tolerated(&trouble, method);
                self.report.push(match warning {
                    Some(diagnosis) => step.warn(diagnosis),
                    None => step,
                });
            }
            (_, None) => self.report.push(step),
        }
    }

    /// Tells the step that was held; without its warning when the same happened again, and then
    /// has a cause of its own.
    fn release(&mut self, is_telling: bool) {
        if let Some(step) = self.held.take() {
            self.report.push(match is_telling {
                true => step,
                false => Step { outcome: Outcome::Skipped, diagnosis: None, ..step },
            });
        }
    }

    fn tell_era(&mut self, revision: Revision, began: Instant) {
        let era = if revision.is_modern() { "modern" } else { "legacy" };
        let seen = format!("{era}, revision {revision}: {}", self.how);
        self.report.push(Step::ok("era", seen, began));
    }
}

fn read_initialize(raw: &Json) -> Result<(String, Value), Trouble> {
    let read: Result<InitializeResult, _> = decode_result("initialize", raw.as_raw());
    match read {
        Ok(result) => Ok((result.protocol_version, raw.to_value())),
        Err(error) => Err(Trouble::Malformed(error.to_string())),
    }
}

/// Name and version of a server, and what it can do.
fn who(result: &Value) -> String {
    let info = match &result["serverInfo"] {
        Value::Null => &result["_meta"]["io.modelcontextprotocol/serverInfo"],
        info => info,
    };
    let text = |member: &str| info[member].as_str().map(plain);
    let named = match (text("name"), text("version")) {
        (Some(name), Some(version)) => format!("; {name} {version}"),
        (Some(name), None) => format!("; {name}"),
        _ => String::new(),
    };
    let can: Vec<String> = result["capabilities"]
        .as_object()
        .map(|all| all.keys().map(|key| plain(key)).collect())
        .unwrap_or_default();
    match can.is_empty() {
        true => format!("{named}; no capabilities"),
        false => format!("{named}; {}", can.join(", ")),
    }
}

fn no_common(error: &ConnectError) -> Diagnosis {
    let fix = match error {
        ConnectError::NoCommonRevision(_) => {
            "Let the server answer initialize with a revision that exists and that it speaks, or \
             update whichever side is older. Here --revision auto allows all five."
        }
        ConnectError::NothingEnabled => "Use --revision auto.",
        _ => "Correct the server: it contradicts itself.",
    };
    Diagnosis::broken(error.to_string(), fix)
}

fn dies(method: &str) -> Diagnosis {
    Diagnosis::broken(
        format!("the program ended when it was asked {method}, and had to be started again"),
        "Answer unknown methods with error -32601 instead of ending.",
    )
}

fn ignored(method: &str, after: Duration) -> Diagnosis {
    Diagnosis::broken(
        format!("{method} was not answered: every client that asks loses {} here", seconds(after)),
        "Answer every request: unknown methods with error -32601, also before initialize.",
    )
}

/// What a trouble that the search survives tells of a server.
fn tolerated(trouble: &Trouble, method: &str) -> Option<Diagnosis> {
    match trouble {
        Trouble::NoAnswer(after) => Some(ignored(method, *after)),
        Trouble::Malformed(what) => Some(Diagnosis::broken(
            format!("the answer to {method} is not one: {what}"),
            "Answer it as revision 2026-07-28 says, or with error -32601.",
        )),
        _ => None,
    }
}
