//! What metrics, spans and the audit keep of a request.

use bowline::{Answer, Era, ErrorObject, Failure, FailureKind, Incoming, Next, Outcome, Transport};
use bowline_proto::method::METHODS;
use ring::digest::{SHA256, digest};
use tokio::time::Instant;

use super::clip;
use crate::gateway::audit::{Record, hex};
use crate::gateway::merge::{COMMANDS, Kind, Route};
use crate::gateway::metrics::{Labels, Timed};
use crate::gateway::policy::Decision;
use crate::gateway::shared::Shared;
use crate::gateway::telemetry::{Trace, error_type};

/// What is measured and recorded of a request, from its beginning.
pub(super) struct About {
    method: String,
    transport: &'static str,
    revision: &'static str,
    pub(super) started: Instant,
    trace: Option<Trace>,
}

impl About {
    /// Begins with a request.
    pub(super) fn begin(shared: &Shared, incoming: &Incoming) -> Self {
        let transport = match incoming.context.transport() {
            Transport::Http => "tcp",
            Transport::Stdio => "pipe",
            _ => "",
        };
        // A method that nobody knows must not become a label.
        let is_known = METHODS.iter().any(|row| row.name == incoming.method);
        let method = if is_known { &*incoming.method } else { "_OTHER" };
        let caller = incoming.context.caller();
        let revision = caller.revision.as_str();
        if caller.era() == Era::Legacy {
            let labels = Labels { transport, revision, ..Labels::default() };
            // Dropped with the session.
            incoming.context.session_state(|| shared.metrics.session(Timed::ServerSession, labels));
        }
        let trace = shared.telemetry().map(|telemetry| {
            let mut trace = Trace::begin(telemetry, incoming, method);
            trace.came(transport);
            trace
        });
        let started = Instant::now();
        Self { method: method.to_owned(), transport, revision, started, trace }
    }

    /// Goes on to the server that a route leads to.
    pub(super) async fn onward(
        &self,
        (shared, route): (&Shared, &Route),
        incoming: Incoming,
        next: Next,
    ) -> Ended {
        if *route.server == *COMMANDS {
            return Ended::from(next.run(incoming).await);
        }
        let going = self.trace.as_ref().map(|it| it.onward(&incoming));
        let (started, limit) = (Instant::now(), shared.timeout(route));
        let outcome = match tokio::time::timeout(limit, next.run(incoming)).await {
            Ok(outcome) => shared.without_secrets(outcome),
            Err(_) => {
                let what = format!("{}: no answer within {limit:?}", route.server);
                let mut failure = Failure::from(ErrorObject::internal(what));
                failure.kind = FailureKind::TimedOut;
                Err(failure)
            }
        };
        let (took, ended) = (started.elapsed(), Ended::from(outcome));
        // How the client of the gateway came does not matter to the server.
        let labels = Labels { transport: "", revision: "", ..self.labels(Some(route), &ended) };
        shared.metrics.observe(Timed::ClientOperation, labels, took);
        if let Some(going) = going {
            going.end(route, &ended, took);
        }
        ended
    }

    /// Ends with an outcome.
    pub(super) fn end(
        self,
        shared: &Shared,
        (route, decision): (Option<&Route>, Option<&Decision>),
        ended: &Ended,
    ) {
        let took = self.started.elapsed();
        shared.metrics.observe(Timed::ServerOperation, self.labels(route, ended), took);
        if let Some(trace) = self.trace {
            trace.end((route, decision), ended, took);
        }
    }

    fn labels(&self, route: Option<&Route>, ended: &Ended) -> Labels {
        let error = match &ended.outcome {
            Ok(_) if ended.is_tool_error => "tool_error".to_owned(),
            Ok(_) => String::new(),
            Err(failure) => error_type(failure),
        };
        let tool = route.filter(|it| it.kind == Kind::Tool).map(|it| it.name.clone());
        Labels {
            method: self.method.clone(),
            tool: tool.unwrap_or_default(),
            server: route.map(|it| it.server.to_string()).unwrap_or_default(),
            error,
            transport: self.transport,
            revision: self.revision,
        }
    }

    pub(super) fn record(
        &self,
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
        let trace = incoming.context.traceparent().map(|it| clip(it).to_owned());
        // A URI is the server's own name of what it reads, also where a template fits it.
        let name = route.map(|it| if it.kind == Kind::Template { asked } else { &it.name });
        Record {
            event: "call",
            subject: principal.map(|it| clip(it.subject()).to_owned()),
            issuer: principal.and_then(|it| it.issuer()).map(|it| clip(it).to_owned()),
            display,
            client: caller.info.as_ref().map(|it| clip(&it.name).to_owned()),
            address: incoming.context.peer_addr().map(|it| it.to_string()),
            method: Some(clip(&incoming.method).to_owned()),
            server: route.map(|it| it.server.to_string()),
            name: name.map(|it| clip(it).to_owned()),
            asked: Some(clip(asked).to_owned()),
            arguments_sha256: arguments.map(|it| hex(digest(&SHA256, it.as_bytes()).as_ref())),
            decision: decision.map(|it| if it.is_allowed { "allow" } else { "deny" }),
            rule: decision.map(|it| it.rule.clone()),
            trace: trace.or_else(|| Some(self.trace.as_ref()?.traceparent())),
            ..Record::default()
        }
    }
}

/// An outcome, and what must be read to know it: results can be long, so they are read once.
pub(in crate::gateway) struct Ended {
    pub(in crate::gateway) outcome: Outcome,
    /// Whether it is the result of a tool that failed.
    pub(in crate::gateway) is_tool_error: bool,
}

impl From<Outcome> for Ended {
    fn from(outcome: Outcome) -> Self {
        let is_tool_error = match &outcome {
            Ok(Answer::Verbatim(json)) => json
                .parse::<bowline_proto::members::RawMembers<'_>>()
                .is_ok_and(|it| it.get("isError").is_some_and(|it| it.get() == "true")),
            Ok(answer) => answer.is_tool_error(),
            Err(_) => false,
        };
        Self { outcome, is_tool_error }
    }
}

impl Ended {
    /// For the record.
    pub(super) fn as_what(&self) -> String {
        match &self.outcome {
            Ok(Answer::InputRequired(_)) => "asked".to_owned(),
            Ok(_) if self.is_tool_error => "tool_error".to_owned(),
            Ok(_) => "answered".to_owned(),
            Err(failure) => format!("{} ({})", failure.kind, failure.error.code.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_say_whether_the_tool_failed() {
        for (result, as_what) in [
            (r#"{"content":[],"isError":true}"#, "tool_error"),
            (r#"{"content":[],"isError":false}"#, "answered"),
            (r#"{"content":[{"isError":true}]}"#, "answered"),
            (r#"{"structuredContent":{"isError":true}}"#, "answered"),
        ] {
            let json = serde_json::from_str(result).unwrap();
            assert_eq!(Ended::from(Ok(Answer::Verbatim(json))).as_what(), as_what, "{result}");
        }
        let failed = Ended::from(Err(ErrorObject::internal("no").into()));
        assert_eq!((failed.as_what().contains("-32603"), failed.is_tool_error), (true, false));
    }
}
