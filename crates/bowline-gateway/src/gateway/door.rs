//! What every request passes: who may use what, how often, with the user's agreement; and the
//! record of it.
//!
//! What a request uses says itself where it leads: its label is its [`Route`]. What has no label is
//! refused, so nothing that the rules do not know can run.

mod agree;
mod record;

use std::sync::Arc;
use std::time::Duration;

use bowline::model::{
    CallToolResult, CompleteParams, CompleteResult, ContentBlock, Reference,
    SubscriptionsListenParams,
};
use bowline::{Answer, ErrorCode, ErrorObject, Incoming, Middleware, Next, Outcome};
use bowline_proto::members::RawMembers;
use bowline_proto::method::{
    CallTool, Complete, GetPrompt, ListTasks, Method, ReadResource, Subscribe, SubscriptionsListen,
};

pub(super) use self::agree::Agreements;
use self::agree::agree;
use self::record::About;
pub(super) use self::record::Ended;
use super::merge::{Kind, Route};
use super::policy::{Decision, Who};
use super::shared::Shared;

/// The code of an error that says when to come back.
pub(super) const LIMITED: ErrorCode = ErrorCode(-31_429);

/// The code of an error that says that the user did not agree.
pub(super) const DECLINED: ErrorCode = ErrorCode(-31_403);

/// The most bytes of a text that a peer chose and the audit keeps.
const LONGEST: usize = 512;

/// The middleware of the gateway's servers.
#[derive(Clone)]
pub(super) struct Door {
    pub(super) shared: Arc<Shared>,
    /// The server that the endpoint is for, if it is for one only.
    pub(super) server: Option<String>,
}

impl Middleware for Door {
    fn handle(
        &self,
        incoming: Incoming,
        next: Next,
    ) -> std::pin::Pin<Box<dyn Future<Output = Outcome> + Send>> {
        let this = self.clone();
        Box::pin(async move { this.pass(incoming, next).await })
    }
}

/// The kind of thing that a request uses, if it uses something of a server.
fn used(incoming: &Incoming) -> Option<Kind> {
    match &*incoming.method {
        CallTool::NAME => Some(Kind::Tool),
        GetPrompt::NAME => Some(Kind::Prompt),
        ReadResource::NAME => Some(Kind::Resource),
        Complete::NAME => {
            let params = incoming.params.as_ref().and_then(|it| it.parse().ok());
            match params.map(|it: CompleteParams<'_>| it.reference) {
                Some(Reference::ResourceTemplate(_)) => Some(Kind::Template),
                _ => Some(Kind::Prompt),
            }
        }
        _ => None,
    }
}

/// The resources whose changes a request is about.
fn heard(incoming: &Incoming) -> Vec<String> {
    match &*incoming.method {
        Subscribe::NAME => incoming.name.iter().cloned().collect(),
        SubscriptionsListen::NAME => {
            let params = incoming.params.as_ref().and_then(|it| it.parse().ok());
            let wanted = params.map(|it: SubscriptionsListenParams<'_>| it.notifications);
            wanted.and_then(|it| it.resource_subscriptions).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// A use of something, on its way.
struct Use<'a> {
    /// Its name in the request.
    name: &'a str,
    route: &'a Route,
    decision: &'a Decision,
    about: &'a About,
}

/// Why something that may be used has not run.
struct Refused {
    /// For the record.
    as_what: &'static str,
    ended: Ended,
}

impl Refused {
    fn new(as_what: &'static str, outcome: Outcome) -> Box<Self> {
        Box::new(Self { as_what, ended: outcome.into() })
    }
}

impl Door {
    async fn pass(self, incoming: Incoming, next: Next) -> Outcome {
        let about = About::begin(&self.shared, &incoming);
        if let Some(kind) = used(&incoming) {
            return self.pass_use(incoming, next, (kind, about)).await;
        }
        let outcome = match self.refusal(&incoming) {
            Some(error) => Err(error.into()),
            None => self.shared.without_secrets(next.run(incoming).await),
        };
        let ended = Ended::from(outcome);
        about.end(&self.shared, (None, None), &ended);
        ended.outcome
    }

    /// Why a request that uses nothing is refused.
    fn refusal(&self, incoming: &Incoming) -> Option<ErrorObject> {
        let who = self.shared.rules().who(incoming.context.caller());
        // Tasks are the gateway's own.
        if incoming.method.ends_with("/list")
            && incoming.method != ListTasks::NAME
            && let Some(why) = self.shared.silence(self.server.as_deref(), &incoming.method, &who)
        {
            return Some(ErrorObject::internal(why));
        }
        let uri = heard(incoming).into_iter().find(|uri| !self.may_hear(&who, uri))?;
        Some(missing(&incoming.method, Kind::Resource, &uri))
    }

    fn may_hear(&self, who: &Who, uri: &str) -> bool {
        let routes = self.shared.resources(self.server.as_deref(), uri);
        routes.iter().any(|route| self.shared.judge(who, route, uri).is_allowed)
    }

    async fn pass_use(
        &self,
        incoming: Incoming,
        next: Next,
        (kind, about): (Kind, About),
    ) -> Outcome {
        let shared = &self.shared;
        let name = incoming.name.clone().unwrap_or_default();
        let who = shared.rules().who(incoming.context.caller());
        let label = incoming.context.label::<Route>().cloned();
        let is_served = label.is_some();
        // What is not there for the caller still has a place in the record.
        let route = label.or_else(|| shared.route(self.server.as_deref(), kind, &name));
        let mut decision = route.as_ref().map(|route| shared.judge(&who, route, &name));
        if let Some(decision) = decision.as_mut().filter(|it| it.is_allowed && !is_served) {
            decision.is_allowed = false;
            "it is not served now".clone_into(&mut decision.rule);
        }
        let mut record = about.record(&incoming, &name, route.as_ref(), decision.as_ref());
        if let Err(error) = shared.can_record() {
            return self.unrecorded(&error);
        }
        let mut refused = None;
        let ended = match (&route, &decision) {
            (Some(route), Some(decision)) if decision.is_allowed => {
                let used = Use { name: &name, route, decision, about: &about };
                let allowed = self.allowed(incoming, next, used).await;
                allowed.unwrap_or_else(|it| {
                    refused = Some(it.as_what.to_owned());
                    it.ended
                })
            }
            (known, _) => {
                if known.is_some() {
                    shared.metrics.count("denied");
                }
                Ended::from(Err(self.missing_name(&incoming.method, kind, &who, &name).into()))
            }
        };
        record.outcome = Some(refused.unwrap_or_else(|| ended.as_what()));
        record.microseconds = u64::try_from(about.started.elapsed().as_micros()).ok();
        about.end(shared, (route.as_ref(), decision.as_ref()), &ended);
        match shared.record(&record) {
            Ok(()) => ended.outcome,
            Err(error) => self.unrecorded(&error),
        }
    }

    fn unrecorded(&self, error: &std::io::Error) -> Outcome {
        self.shared.metrics.count("audit_failed");
        self.shared.tell_once(&format!("audit: requests fail: {error}"));
        Err(ErrorObject::internal("the gateway cannot record this request").into())
    }

    /// Goes on to what may be used, unless something else stands in the way.
    async fn allowed(
        &self,
        incoming: Incoming,
        next: Next,
        used: Use<'_>,
    ) -> Result<Ended, Box<Refused>> {
        let (shared, route) = (&self.shared, used.route);
        let is_tool = route.kind == Kind::Tool;
        let caller = caller(&incoming);
        let too_many = |wait| {
            shared.metrics.count("rate_limited");
            Refused::new("limited", limited(is_tool, &route.server, wait))
        };
        // A request and its further rounds are one.
        if !self.goes_on(&incoming, &caller) {
            shared.take(route, &caller).map_err(too_many)?;
        }
        let running = shared.run(route, &caller);
        let _running = running.ok_or_else(|| too_many(Duration::from_secs(1)))?;
        if let Some(why) = shared.refusing(route) {
            let error = ErrorObject::internal(format!("{}: {why}", route.server));
            return Err(Refused::new("down", Err(error.into())));
        }
        if used.decision.confirms {
            if incoming.method == Complete::NAME {
                // Nobody is asked about each key, and nothing runs unasked.
                return Ok(Ended::from(Ok(Answer::Completion(CompleteResult::default()))));
            }
            match agree((&shared.agreements, &caller), &incoming, route, used.name).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => return Err(Refused::new("declined", declined(is_tool, why))),
                Err(failure) => return Ok(Ended::from(Err(failure))),
            }
        }
        Ok(used.about.onward((shared, route), incoming, next).await)
    }

    /// Whether a request goes on with one that was counted. Its state says so, once.
    fn goes_on(&self, incoming: &Incoming, caller: &str) -> bool {
        if !incoming.context.is_continued() {
            return false;
        }
        let params = incoming.params.as_ref().and_then(|it| it.parse::<RawMembers<'_>>().ok());
        match params.as_ref().and_then(|it| it.get("requestState")) {
            Some(state) => self.shared.continued.spend_digest(caller, state.get()),
            // A task runs again.
            None => true,
        }
    }

    /// What callers are told about what is not there, whether it does not exist or they may not use
    /// it: the same. The full names that they may use help.
    fn missing_name(&self, method: &str, kind: Kind, who: &Who, name: &str) -> ErrorObject {
        let meant = match (kind, &self.server) {
            (Kind::Tool, None) => self.shared.candidates(who, name),
            _ => Vec::new(),
        };
        let mut error = missing(method, kind, name);
        match meant.as_slice() {
            [] => {}
            [only] => error.message = format!("{}; help: did you mean {only}?", error.message),
            several => {
                let several = several.join(" or ");
                error.message = format!("{name:?} could be {several}; help: use the full name");
            }
        }
        error
    }
}

fn missing(method: &str, kind: Kind, name: &str) -> ErrorObject {
    let what = match kind {
        Kind::Tool => "tool",
        Kind::Prompt => "prompt",
        Kind::Template => "resource template",
        Kind::Resource => {
            let data = serde_json::json!({ "uri": name });
            let what = format!("{method}: unknown resource {name}");
            return ErrorObject::new(ErrorCode::RESOURCE_NOT_FOUND, what).with_data(data.into());
        }
    };
    ErrorObject::invalid_params(format!("{method}: no {what} is called {name:?}"))
}

/// Whom a request counts against.
fn caller(incoming: &Incoming) -> String {
    match &incoming.context.caller().principal {
        Some(principal) => principal.as_str().to_owned(),
        None => incoming.context.peer_addr().map(|it| it.ip().to_string()).unwrap_or_default(),
    }
}

/// What a caller is told that must wait: a model can read the result of a tool.
fn limited(is_tool: bool, server: &str, wait: Duration) -> Outcome {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let what = format!("too many calls to {server}; try again in {seconds} seconds");
    if is_tool {
        return text_error(what);
    }
    let data = serde_json::json!({ "retryAfterMs": seconds * 1000 });
    Err(ErrorObject::new(LIMITED, what).with_data(data.into()).into())
}

/// What a caller is told whose user does not agree.
fn declined(is_tool: bool, why: String) -> Outcome {
    if is_tool { text_error(why) } else { Err(ErrorObject::new(DECLINED, why).into()) }
}

fn text_error(text: String) -> Outcome {
    let content = vec![ContentBlock::text(text)];
    Ok(Answer::Tool(CallToolResult { content, is_error: Some(true), ..Default::default() }))
}

pub(super) fn clip(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bowline::client::{Client, Preference, Target};
    use bowline::{Server, Tool};

    use super::*;
    use crate::bridge::ToolRules;
    use crate::gateway::{Audit, Gateway, Plan, Policy, ServerPlan};

    fn counting(runs: &Arc<AtomicUsize>) -> ServerPlan {
        let runs = Arc::clone(runs);
        ServerPlan {
            key: "one".to_owned(),
            alias: None,
            fingerprint: String::new(),
            target: Arc::new(move || {
                let runs = Arc::clone(&runs);
                let run = Tool::new("run", move || {
                    runs.fetch_add(1, Ordering::SeqCst);
                    async { "ran" }
                });
                Ok(Target::from(Server::new("one", "1").with(run)))
            }),
            client: Arc::new(|| Client::builder("gateway", "1").without_cache()),
            preference: Preference::Auto,
            tools: ToolRules::default(),
            rate: None,
            running: None,
            timeout: None,
        }
    }

    #[tokio::test]
    async fn nothing_runs_that_cannot_be_recorded() {
        let path = std::env::temp_dir().join(format!("bowline-door-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let audit = Arc::new(Audit::open(&path).unwrap());
        let runs = Arc::new(AtomicUsize::new(0));
        let plan = Plan {
            name: "gateway".to_owned(),
            has_prefixes: true,
            servers: vec![counting(&runs)],
            commands: Vec::new(),
            policy: Policy { is_open: true, ..Policy::default() },
            audit: Some(Arc::clone(&audit)),
            telemetry: None,
            grace: Duration::from_secs(60),
            start: Duration::from_secs(20),
            report: Arc::new(|_| {}),
            redactor: Arc::default(),
            has_one_caller: false,
        };
        let started = Gateway::start(plan, Box::new(|server, _| server.http().into_service()));
        let (_gateway, server) = started.await.unwrap();
        let client = Client::connect(server).await.unwrap();
        let call = async || {
            client
                .call_tool("one__run", serde_json::json!({}))
                .text()
                .await
                .map_err(|it| it.to_string())
        };
        assert_eq!(call().await.unwrap(), "ran");
        audit.fail();
        // The first one to fail has run. Its answer is withheld, and its record is kept.
        for _ in 0..3 {
            assert!(call().await.unwrap_err().contains("cannot record"));
            assert_eq!(runs.load(Ordering::SeqCst), 2);
        }
        audit.reopen().unwrap();
        assert_eq!(call().await.unwrap(), "ran");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("\"decision\":\"allow\"").count(), 3, "{text}");
    }
}
