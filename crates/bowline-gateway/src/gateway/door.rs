//! What every request passes: who may use what, how often, with the user's agreement; and the
//! record of it.

use std::sync::Arc;
use std::time::Duration;

use bowline::model::{CallToolResult, ContentBlock};
use bowline::{Answer, ErrorCode, ErrorObject, Incoming, Middleware, Next, Outcome, Transport};
use bowline_proto::method::METHODS;
use ring::digest::{SHA256, digest};
use tokio::time::Instant;

use super::audit::{Record, hex};
use super::merge::Route;
use super::metrics::Labels;
use super::policy::Decision;
use super::shared::Shared;

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

/// A method that uses something of a server.
fn is_use(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read" | "completion/complete")
}

impl Door {
    async fn pass(self, incoming: Incoming, next: Next) -> Outcome {
        let started = Instant::now();
        let shared = Arc::clone(&self.shared);
        let about = About::of(&incoming);
        let name = incoming.name.clone().filter(|_| is_use(&incoming.method));
        let Some(name) = name else {
            // An empty list would say that there is nothing, which nobody knows.
            if incoming.method.ends_with("/list")
                && let Some(why) = shared.silence()
            {
                return Err(ErrorObject::internal(why).into());
            }
            let outcome = next.run(incoming).await;
            shared.metrics.observe(about.labels(None, &outcome), started.elapsed());
            return outcome;
        };
        let route = shared.route(self.server.as_deref(), &incoming.method, &name);
        let decided = route.as_ref().map(|route| {
            let policy = shared.policy();
            let who = policy.who(incoming.context.caller());
            policy.decide(&who, &route.server, &route.name)
        });
        let mut record = About::record(&incoming, &name, route.as_ref(), decided.as_ref());
        let outcome = match (&route, &decided) {
            (Some(route), Some(decision)) => {
                self.decided(incoming, next, &name, (route, decision)).await
            }
            // The server says that there is no such thing; the names that could be meant help.
            _ => next.run(incoming).await.map_err(|mut failure| {
                let meant = shared.candidates(&name);
                if meant.len() > 1 {
                    failure.error.message = format!(
                        "{name:?} could be {}; help: use the full name",
                        meant.join(" or ")
                    );
                }
                failure
            }),
        };
        record.outcome = Some(ending(&outcome));
        record.microseconds = u64::try_from(started.elapsed().as_micros()).ok();
        shared.metrics.observe(about.labels(route.as_ref(), &outcome), started.elapsed());
        if let Err(error) = shared.record(&record) {
            shared.metrics.count("audit_failed");
            tracing::error!(%error, "the audit log cannot be written");
            return Err(ErrorObject::internal("the gateway cannot record this request").into());
        }
        outcome
    }

    async fn decided(
        &self,
        incoming: Incoming,
        next: Next,
        name: &str,
        (route, decision): (&Route, &Decision),
    ) -> Outcome {
        let shared = &self.shared;
        if !decision.is_allowed {
            shared.metrics.count("denied");
            // As if it did not exist.
            let what = format!("{}: nothing that you can use is called {name:?}", incoming.method);
            return Err(ErrorObject::invalid_params(what).into());
        }
        let is_tool = incoming.method == "tools/call";
        let caller = caller(&incoming);
        if let Err(wait) = shared.take(route, &caller) {
            shared.metrics.count("rate_limited");
            return refused(is_tool, &route.server, wait);
        }
        let Some(_running) = shared.run(route, &caller) else {
            shared.metrics.count("rate_limited");
            return refused(is_tool, &route.server, Duration::from_secs(1));
        };
        let context = incoming.context.clone();
        // A call that goes on after the server's own question was agreed to before.
        let goes_on = context.request_state::<serde_json::Value>().is_some();
        if decision.confirms && is_tool && !goes_on {
            let arguments = clip(incoming.arguments().unwrap_or("{}"));
            let question = format!("Run {} of {} with {arguments}?", route.name, route.server);
            match context.confirm(question).await {
                Ok(true) => {}
                Ok(false) => return text_error("the user did not agree to this call".to_owned()),
                Err(error) => {
                    let what = "this tool runs only when the user agrees, and this client cannot \
                                ask the user";
                    return text_error(format!("{what}: {error}"));
                }
            }
        }
        match shared.timeout(route) {
            None => next.run(incoming).await,
            Some(limit) => match tokio::time::timeout(limit, next.run(incoming)).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    let what = format!("{}: no answer within {limit:?}", route.server);
                    Err(ErrorObject::internal(what).into())
                }
            },
        }
    }
}

/// What metrics and records need of a request that is gone.
struct About {
    method: String,
    transport: &'static str,
    revision: &'static str,
}

impl About {
    fn of(incoming: &Incoming) -> Self {
        let transport = match incoming.context.transport() {
            Transport::Http => "tcp",
            Transport::Stdio => "pipe",
            _ => "",
        };
        // A method that nobody knows must not become a label.
        let is_known = METHODS.iter().any(|row| row.name == incoming.method);
        let method = if is_known { &*incoming.method } else { "_OTHER" };
        let revision = incoming.context.caller().revision.as_str();
        Self { method: method.to_owned(), transport, revision }
    }

    fn labels(&self, route: Option<&Route>, outcome: &Outcome) -> Labels {
        let error = match outcome {
            Ok(answer) if is_tool_error(answer) => "tool_error".to_owned(),
            Ok(_) => String::new(),
            Err(failure) => failure.error.code.0.to_string(),
        };
        let tool = route.filter(|_| self.method == "tools/call").map(|it| it.name.clone());
        Labels {
            method: self.method.clone(),
            tool: tool.unwrap_or_default(),
            server: route.map(|it| it.server.to_string()).unwrap_or_default(),
            error,
            transport: self.transport,
            revision: self.revision,
        }
    }

    fn record(
        incoming: &Incoming,
        asked: &str,
        route: Option<&Route>,
        decision: Option<&Decision>,
    ) -> Record {
        let caller = incoming.context.caller();
        let principal = caller.principal.as_ref();
        let display = principal.and_then(|it| {
            let mut names = ["preferred_username", "email", "name"].into_iter();
            names.find_map(|claim| Some(clip(it.claims().get(claim)?.as_str()?).to_owned()))
        });
        let arguments = incoming.arguments();
        Record {
            event: "call",
            subject: principal.map(|it| clip(it.subject()).to_owned()),
            issuer: principal.and_then(|it| it.issuer()).map(|it| clip(it).to_owned()),
            display,
            client: caller.info.as_ref().map(|it| clip(&it.name).to_owned()),
            address: incoming.context.peer_addr().map(|it| it.to_string()),
            method: Some(clip(&incoming.method).to_owned()),
            server: route.map(|it| it.server.to_string()),
            name: route.map(|it| clip(&it.name).to_owned()),
            asked: Some(clip(asked).to_owned()),
            arguments_sha256: arguments.map(|it| hex(digest(&SHA256, it.as_bytes()).as_ref())),
            decision: decision.map(|it| if it.is_allowed { "allow" } else { "deny" }),
            rule: decision.map(|it| it.rule.clone()),
            trace: incoming.context.traceparent().map(|it| clip(it).to_owned()),
            ..Record::default()
        }
    }
}

/// Whom a request counts against.
fn caller(incoming: &Incoming) -> String {
    match &incoming.context.caller().principal {
        Some(principal) => principal.as_str().to_owned(),
        None => incoming.context.peer_addr().map(|it| it.ip().to_string()).unwrap_or_default(),
    }
}

/// What a caller is told that must wait: a model can read the result of a tool.
fn refused(is_tool: bool, server: &str, wait: Duration) -> Outcome {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let what = format!("too many calls to {server}; try again in {seconds} seconds");
    if is_tool {
        return text_error(what);
    }
    let data = serde_json::json!({ "retryAfterMs": seconds * 1000 });
    Err(ErrorObject::new(ErrorCode(-31_429), what).with_data(data.into()).into())
}

fn text_error(text: String) -> Outcome {
    let content = vec![ContentBlock::text(text)];
    Ok(Answer::Tool(CallToolResult { content, is_error: Some(true), ..Default::default() }))
}

fn is_tool_error(answer: &Answer) -> bool {
    match answer {
        Answer::Verbatim(json) => json
            .parse::<bowline_proto::members::RawMembers<'_>>()
            .is_ok_and(|it| it.get("isError").is_some_and(|it| it.get() == "true")),
        answer => answer.is_tool_error(),
    }
}

fn ending(outcome: &Outcome) -> String {
    match outcome {
        Ok(Answer::InputRequired(_)) => "asked".to_owned(),
        Ok(answer) if is_tool_error(answer) => "tool_error".to_owned(),
        Ok(_) => "answered".to_owned(),
        Err(failure) => format!("{} ({})", failure.kind, failure.error.code.0),
    }
}

fn clip(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
