//! The search for a revision that both sides support, by the rules of the client. Each request is
//! a step.

use std::time::Duration;

use bowline::proto::decode::decode;
use bowline::proto::model::{DiscoverResult, InitializeResult};
use bowline::proto::revision::{Revision, Revisions};
use bowline::proto::session::{Action, Connect, ConnectError, Event, PROBE_TIMEOUT};
use bowline::proto::session::{Preference, Question};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::conversation::{AskError, Conversation};
use super::report::{Diagnosis, Outcome, Report, Step, broken, unreachable};
use super::seen::{plain, seconds};

/// Which revisions to offer, and how long each step may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) preference: Preference,
    pub(crate) timeout: Duration,
}

impl Plan {
    pub(crate) fn revisions(self) -> Revisions {
        self.preference.narrow(Revisions::ALL)
    }
}

/// What both sides agreed on.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) revision: Revision,
    pub(crate) capabilities: Value,
}

pub(crate) struct Search<'a> {
    conversation: &'a mut Conversation,
    report: &'a mut Report,
    plan: Plan,
    connect: Connect,
    capabilities: Value,
    /// A step that can be judged only after the next one.
    held: Option<Step>,
    /// How `server/discover` went, in a few words.
    how: String,
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        conversation: &'a mut Conversation,
        report: &'a mut Report,
        plan: Plan,
    ) -> Self {
        // A legacy server may ignore the first request.
        let probe = (plan.timeout / 2).min(PROBE_TIMEOUT);
        let connect = Connect::new(conversation.transport(), plan.revisions());
        let connect = connect.with_probe_timeout(probe);
        let how = "no other was offered".to_owned();
        Self { conversation, report, plan, connect, capabilities: Value::Null, held: None, how }
    }

    /// Sends requests until both sides agree, or cannot.
    pub(crate) async fn run(mut self) -> Option<Live> {
        let began = Instant::now();
        let timeout = self.plan.timeout;
        let mut action = self.connect.open(None);
        loop {
            action = match action {
                Action::Discover { revision, timeout: probe } => {
                    self.ask(Question::Discover, revision, probe.unwrap_or(timeout)).await
                }
                Action::Initialize(revision) => {
                    self.ask(Question::Initialize, revision, timeout).await
                }
                Action::Respawn(revision) => self.restart(revision).await,
                Action::OpenSse => self.open_sse().await,
                Action::Done(revision) => {
                    let era = if revision.is_modern() { "modern" } else { "legacy" };
                    let seen = format!("{era}, revision {revision}: {}", self.how);
                    self.report.push(Step::ok("era", seen, began));
                    return Some(Live { revision, capabilities: self.capabilities });
                }
                Action::Failed(_) | Action::Wait => return None,
            };
        }
    }

    async fn ask(&mut self, question: Question, revision: Revision, patience: Duration) -> Action {
        let began = Instant::now();
        let (name, method) = names(question);
        let asked = self.conversation.ask(method, json!({}), revision, patience).await;
        let read = asked.and_then(|result| read(question, result));
        if question == Question::Initialize {
            self.release(!matches!(read, Err(AskError::Ended | AskError::TimedOut(_))));
        }
        let (revisions, result) = match read {
            Ok(read) => read,
            Err(error) => return self.handle_error(question, error, began).await,
        };
        let listed = plain(&revisions.join(", "));
        let (seen, action) = match question {
            Question::Discover => {
                self.how = format!("server/discover lists {listed}");
                let event = Event::Discovered(&revisions);
                (format!("supports {listed}"), self.connect.handle_event(event))
            }
            _ => {
                let event = Event::Initialized(revisions.first().map_or("", String::as_str));
                (format!("requested {revision}, got {listed}"), self.connect.handle_event(event))
            }
        };
        let problem = match &action {
            Action::Failed(error) => Some(disagreement(error)),
            _ => None,
        };
        let seen = format!("{seen}{}", introduction(&result));
        self.report.push(Step::ok(name, seen, began).fail(problem));
        self.capabilities = result["capabilities"].clone();
        action
    }

    async fn restart(&mut self, revision: Revision) -> Action {
        let began = Instant::now();
        let Err(error) = self.conversation.restart().await else {
            return Action::Initialize(revision);
        };
        let cause = format!("the program cannot be started a second time: {error}");
        let diagnosis = unreachable(cause).fix("Start it by hand twice in a row.");
        self.report.push(Step::ok("start", error.to_string(), began).fail(diagnosis));
        Action::Failed(ConnectError::Exited)
    }

    async fn open_sse(&mut self) -> Action {
        let began = Instant::now();
        match self.conversation.open_sse(self.plan.timeout).await {
            Ok(seen) => {
                self.report.push(Step::ok("sse", seen, began));
                self.connect.handle_event(Event::EndpointFound)
            }
            Err(error) => self.handle_error(Question::Endpoint, error, began).await,
        }
    }

    /// Reports a request without a result, in the light of what the search does next.
    async fn handle_error(
        &mut self,
        question: Question,
        error: AskError,
        began: Instant,
    ) -> Action {
        let (name, method) = names(question);
        if question == Question::Discover {
            let short = match &error {
                AskError::Http(reply) => format!("HTTP {}", reply.status),
                other => other.seen(),
            };
            self.how = format!("server/discover: {short}");
        }
        let action = self.connect.handle_event(error.event(question));
        let step = Step::ok(name, error.seen(), began);
        match (&action, &error) {
            (Action::Failed(_), _) => {
                let (seen, diagnosis) = self.conversation.explain(method, &error).await;
                self.report.push(step.with_seen(seen).fail(diagnosis));
            }
            (Action::Respawn(_), _) => {
                let evidence = self.conversation.give_up(method, &AskError::Ended).await;
                let seen = evidence.map_or_else(|| error.seen(), |evidence| evidence.seen());
                self.held = Some(
                    step.with_seen(seen).warn(
                        broken(format!("the program exited on {method} and had to be restarted"))
                            .fix("Answer unknown methods with error -32601 instead of exiting."),
                    ),
                );
            }
            // The next request shows whether this is a problem of its own.
            (Action::Initialize(_), AskError::TimedOut(after)) => {
                self.held = Some(step.warn(ignored(method, *after)));
            }
            _ => self.report.push(step.warn(tolerated(&error, method))),
        }
        action
    }

    /// Reports the step that was held; without its warning if the same happened again, which then
    /// has a cause of its own.
    fn release(&mut self, with_warning: bool) {
        if let Some(step) = self.held.take() {
            self.report.push(if with_warning {
                step
            } else {
                Step { outcome: Outcome::Skipped, diagnosis: None, ..step }
            });
        }
    }
}

/// The step and the method of a question.
fn names(question: Question) -> (&'static str, &'static str) {
    match question {
        Question::Discover => ("discover", "server/discover"),
        Question::Initialize => ("initialize", "initialize"),
        Question::Endpoint => ("sse", "the event stream"),
    }
}

/// The revisions in a result, and all of it.
fn read(question: Question, result: Value) -> Result<(Vec<String>, Value), AskError> {
    let (_, method) = names(question);
    let text = result.to_string();
    let revisions = match question {
        Question::Discover => {
            decode(method, "result", &text).map(|result: DiscoverResult| result.supported_versions)
        }
        _ => decode(method, "result", &text)
            .map(|result: InitializeResult| vec![result.protocol_version]),
    };
    let revisions = revisions.map_err(|error| AskError::Malformed(error.to_string()))?;
    Ok((revisions, result))
}

/// Name, version and capabilities of a server, each after a semicolon.
fn introduction(result: &Value) -> String {
    let info = match &result["serverInfo"] {
        Value::Null => &result["_meta"]["io.modelcontextprotocol/serverInfo"],
        info => info,
    };
    let text = |member: &str| info[member].as_str().map(plain).unwrap_or_default();
    let name = format!("{} {}", text("name"), text("version"));
    let capabilities = result["capabilities"].as_object().into_iter().flatten();
    let capabilities: Vec<String> = capabilities.map(|(name, _)| plain(name)).collect();
    let capabilities = match capabilities.as_slice() {
        [] => "no capabilities".to_owned(),
        all => all.join(", "),
    };
    match name.trim() {
        "" => format!("; {capabilities}"),
        name => format!("; {name}; {capabilities}"),
    }
}

fn disagreement(error: &ConnectError) -> Diagnosis {
    let fix = match error {
        ConnectError::NoCommonRevision(_) => {
            "Make the server answer initialize with a revision that exists and that it supports, \
             or update the older side. --revision auto offers all five."
        }
        ConnectError::NothingEnabled => "Use --revision auto.",
        _ => "Correct the server: it contradicts itself.",
    };
    broken(error.to_string()).fix(fix)
}

fn ignored(method: &str, after: Duration) -> Diagnosis {
    broken(format!(
        "{method} was not answered: every client that sends it waits {}",
        seconds(after)
    ))
    .fix("Answer every request: unknown methods with error -32601, even before initialize.")
}

/// What an error that the search survives says about a server.
fn tolerated(error: &AskError, method: &str) -> Option<Diagnosis> {
    match error {
        AskError::TimedOut(after) => Some(ignored(method, *after)),
        AskError::Malformed(what) => Some(
            broken(format!("the response to {method} is not valid: {what}"))
                .fix("Answer as revision 2026-07-28 requires, or with error -32601."),
        ),
        _ => None,
    }
}
