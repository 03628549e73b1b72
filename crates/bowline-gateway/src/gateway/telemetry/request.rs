//! The spans of one request: of the client's side of the gateway, and of what goes on to a server.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bowline::Incoming;
use bowline_proto::method::{CallTool, GetPrompt, Method, ReadResource};

use super::context::SpanContext;
use super::span::{Attributes, Side, Span, ending};
use super::{Telemetry, wall_clock};
use crate::gateway::door::{Ended, clip};
use crate::gateway::merge::Route;
use crate::gateway::policy::Decision;

/// A request that a client has sent: a SERVER span that has not ended.
pub(in crate::gateway) struct Trace(Open);

/// What goes on to a server: a CLIENT span that has not ended.
pub(in crate::gateway) struct Going(Open);

/// A span that has not ended.
struct Open {
    telemetry: Arc<Telemetry>,
    context: SpanContext,
    parent: Option<[u8; 8]>,
    link: Option<SpanContext>,
    method: String,
    attributes: Attributes,
    started: SystemTime,
}

impl Trace {
    /// Begins with a request. `method` is one of the known ones, or `_OTHER`.
    pub(in crate::gateway) fn begin(
        telemetry: Arc<Telemetry>,
        incoming: &Incoming,
        method: &str,
    ) -> Self {
        let context = &incoming.context;
        let ambient = context.headers().get("traceparent").and_then(|it| it.to_str().ok());
        let ambient = ambient.and_then(SpanContext::parse);
        let parent = context.traceparent().and_then(SpanContext::parse).or(ambient);
        let link = ambient.filter(|it| parent.as_ref() != Some(it));
        let mut attributes = Attributes::new();
        attributes.insert("mcp.method.name", method.into());
        let id = context.request_id().to_string();
        attributes.insert("jsonrpc.request.id", clip(id.trim_matches('"')).into());
        attributes.insert("mcp.protocol.version", context.caller().revision.as_str().into());
        if let Some(address) = context.peer_addr() {
            attributes.insert("client.address", address.ip().to_string().into());
            attributes.insert("client.port", address.port().into());
        }
        if let Some(uri) = incoming.name.as_deref().filter(|_| method == ReadResource::NAME) {
            attributes.insert("mcp.resource.uri", clip(uri).into());
        }
        Self(Open {
            telemetry,
            context: SpanContext::below(parent.as_ref()),
            parent: parent.map(|it| it.span),
            link,
            method: method.to_owned(),
            attributes,
            started: wall_clock(),
        })
    }

    /// Where it is, as `traceparent` has it.
    pub(in crate::gateway) fn traceparent(&self) -> String {
        self.0.context.traceparent()
    }

    /// How it came: the protocol and what it runs on.
    pub(in crate::gateway) fn came(&mut self, transport: &'static str) {
        if !transport.is_empty() {
            self.0.attributes.insert("network.transport", transport.into());
        }
        if transport == "tcp" {
            self.0.attributes.insert("network.protocol.name", "http".into());
        }
    }

    /// Begins what goes on to a server, which gets the trace context of that.
    pub(in crate::gateway) fn onward(&self, incoming: &Incoming) -> Going {
        let outer = &self.0;
        let context = SpanContext::below(Some(&outer.context));
        incoming.context.set_traceparent(context.traceparent());
        let kept = ["mcp.method.name", "mcp.resource.uri"].into_iter();
        let kept = kept.filter_map(|name| Some((name, outer.attributes.get(name)?.clone())));
        Going(Open {
            telemetry: Arc::clone(&outer.telemetry),
            context,
            parent: Some(outer.context.span),
            link: None,
            method: outer.method.clone(),
            attributes: kept.collect(),
            started: wall_clock(),
        })
    }

    /// Ends with an outcome.
    pub(in crate::gateway) fn end(
        mut self,
        (route, decision): (Option<&Route>, Option<&Decision>),
        ended: &Ended,
        took: Duration,
    ) {
        if let Some(decision) = decision {
            let decided = if decision.is_allowed { "allow" } else { "deny" };
            self.0.attributes.insert("bowline.decision", decided.into());
            self.0.attributes.insert("bowline.rule", decision.rule.clone().into());
        }
        self.0.end(Side::Server, route, ended, took);
    }
}

impl Going {
    /// Ends with the server's outcome.
    pub(in crate::gateway) fn end(self, route: &Route, ended: &Ended, took: Duration) {
        self.0.end(Side::Client, Some(route), ended, took);
    }
}

impl Open {
    fn end(self, side: Side, route: Option<&Route>, ended: &Ended, took: Duration) {
        let Self { telemetry, context, parent, link, method, mut attributes, started } = self;
        if !context.is_sampled {
            return;
        }
        // Names come from servers, never from callers.
        let target = route.and_then(|route| {
            attributes.insert("bowline.server", route.server.to_string().into());
            name_target(&method, route, &mut attributes)
        });
        let failure = ending(side, ended, &mut attributes);
        let name = target.map_or_else(|| method.clone(), |target| format!("{method} {target}"));
        let span = Span { context, parent, link, side, name, started, took, attributes, failure };
        telemetry.ended(span);
    }
}

/// Names the tool or prompt; also returns it, for the name of the span.
fn name_target<'a>(method: &str, route: &'a Route, into: &mut Attributes) -> Option<&'a str> {
    match method {
        CallTool::NAME => {
            into.insert("gen_ai.operation.name", "execute_tool".into());
            into.insert("gen_ai.tool.name", route.name.clone().into());
        }
        GetPrompt::NAME => drop(into.insert("gen_ai.prompt.name", route.name.clone().into())),
        _ => return None,
    }
    Some(&route.name)
}
