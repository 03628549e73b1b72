//! A request that is about to start: its context, and the middleware around it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::members::RawMembers;
use bowline_proto::method::{Complete, Initialize, Method, SubscriptionsListen, find};
use bowline_proto::model::RequestMeta;
use bowline_proto::raw::Raw;
use bowline_proto::session::{Subscription, Topic};
use bowline_proto::wire;

use super::target::ToolCall;
use super::{Listening, Request, Started};
use crate::outbox::Outbox;
use crate::server::answer::Outcome;
use crate::server::call::{Call, CallParts, Progress};
use crate::server::context::Context;
use crate::server::extension::TopicReader;
use crate::server::listen;
use crate::server::middleware::{Around, Incoming};
use crate::server::nest::Nest;
use crate::server::rounds::{Rounds, Subject};
use crate::server::running::{Handling, Running};
use crate::server::tasks::{Plan, forbidden};
use crate::server::tool;

/// How long a stream of changes may last: for ever, as far as clocks can add.
pub(super) const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A request that is permitted, and where its messages go.
pub(super) struct Starting<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) outbox: &'a Arc<Outbox>,
}

impl Starting<'_> {
    /// The middleware around an outcome that is already known, if there is any.
    pub(super) fn surround(&self, outcome: Box<Outcome>, nest: &Nest) -> Started {
        if !self.has_middleware(nest) {
            return Started::Done(outcome);
        }
        let meta = RequestMeta::of(self.request.params());
        let context = self.context(self.method(), &meta, self.setting(None, nest));
        Started::Settled(self.run(context, async move { *outcome }))
    }

    /// The stream of a listen request is opened by the transport, within the middleware.
    pub(super) fn listen(&self, subscription: Subscription, nest: &Nest) -> Started {
        let has_more = subscription.granted().any(|topic| matches!(topic, Topic::Extension(..)));
        let reader = has_more.then(|| TopicReader {
            topics: Arc::clone(&self.request.core().extensions.topics),
            caller: self.request.asker.to_caller(),
        });
        let around = (reader.is_some() || self.has_middleware(nest)).then(|| {
            let meta = RequestMeta::of(self.request.params());
            let setting = Setting { timeout: FOR_EVER, ..self.setting(None, nest) };
            (self.around(&self.context(SubscriptionsListen::NAME, &meta, setting)), reader)
        });
        if around.is_none() {
            listen::announce(&self.request.core().registry, &subscription);
        }
        Started::Listening(Box::new(Listening { subscription, around }))
    }

    /// The handler, with the middleware around it.
    pub(super) fn run(
        &self,
        context: Context,
        handler: impl Future<Output = Outcome> + Send + 'static,
    ) -> Running {
        let handler = Handling::Other(Box::pin(handler));
        match self.has_middleware(&context.call.nest) {
            true => self.around(&context).run(handler),
            false => Running::new(context.call, handler, || name(self.request.asked)),
        }
    }

    /// The handler of a tool, with the middleware around it, and that of extensions within.
    pub(super) fn run_call(&self, context: Context, handler: Handling) -> Running {
        let wraps = self.request.core().extensions.wraps(self.request.caller());
        if wraps.is_empty() && !self.has_middleware(&context.call.nest) {
            return Running::new(context.call, handler, || name(self.request.asked));
        }
        let mut around = self.around(&context);
        if !wraps.is_empty() {
            around.middleware = around.middleware.iter().cloned().chain(wraps).collect();
        }
        around.run(handler)
    }

    /// Whether an extension may run around calls of tools.
    pub(super) fn has_wraps(&self) -> bool {
        self.request.core().extensions.has_wraps()
    }

    /// Whether a call of a tool becomes a task.
    ///
    /// # Errors
    /// When it cannot be one, or cannot do without.
    pub(super) fn plan(
        &self,
        call: &ToolCall<'_>,
        tool: &tool::Entry,
    ) -> Result<Option<Plan>, ErrorObject> {
        let wanted = call.task();
        if tool.task.is_none() && wanted.is_none() {
            return Ok(None);
        }
        let caller = self.request.caller();
        match tool.task.filter(|_| self.request.core().tasks.is_some()) {
            Some(mode) => Plan::of(mode, call.name(), caller, wanted),
            // A server without tasks ignores the wish for one.
            None if wanted.is_some()
                && self.request.core().tasks.is_some()
                && caller.revision.has_requested_tasks() =>
            {
                Err(forbidden(call.name()))
            }
            None => Ok(None),
        }
    }

    /// Whether middleware runs around the request.
    pub(super) fn has_middleware(&self, nest: &Nest) -> bool {
        !self.request.core().middleware().is_empty() || nest.has_middleware()
    }

    /// The middleware of a request that has some.
    pub(super) fn around(&self, context: &Context) -> Around {
        let middleware = context.call.nest.middleware(self.request.core().middleware());
        let asked = self.request.asked;
        let method = match self.known_method() {
            Some(method) => Cow::Borrowed(method),
            None => Cow::Owned(asked.method.to_string()),
        };
        let params = self.request.params().map(Json::copy_of);
        let incoming = Incoming { method, name: name(asked), params, context: context.clone() };
        Around { middleware, incoming }
    }

    /// The method in errors and logs.
    pub(super) fn method(&self) -> &'static str {
        self.known_method().unwrap_or("request")
    }

    fn known_method(&self) -> Option<&'static str> {
        let method: &str = &self.request.asked.method;
        let row = find(method, self.request.caller().revision);
        row.map(|row| row.name).or_else(|| (method == Initialize::NAME).then_some(Initialize::NAME))
    }

    /// The setting of a handler that has no timeout of its own.
    pub(super) fn setting(&self, rounds: Option<Box<Rounds>>, nest: &Nest) -> Setting {
        let timeout = nest.deadline().unwrap_or(self.request.core().limits.deadline);
        Setting { rounds, timeout, nest: nest.clone(), params: None }
    }

    /// The parameters, for a handler that passes them on.
    pub(super) fn params_for(&self, passes_on: bool) -> Option<Json> {
        self.request.params().filter(|_| passes_on).map(Json::copy_of)
    }

    pub(super) fn context(
        &self,
        method: &'static str,
        meta: &RequestMeta<'_>,
        setting: Setting,
    ) -> Context {
        let parts = CallParts {
            caller: self.request.asker.to_caller(),
            id: self.request.asked.id.clone(),
            method,
            outbox: Arc::clone(self.outbox),
            rounds: setting.rounds,
            log_level: meta.log_level,
            progress: meta.progress_token.clone().map(Progress::under),
            traceparent: meta.traceparent(),
            params: setting.params,
            timeout: setting.timeout,
            nest: setting.nest,
        };
        Context { call: Arc::new(Call::new(parts)) }
    }

    /// The questions and answers so far, for modern callers that can be asked anything at all, and
    /// for handlers that return questions.
    pub(super) fn rounds(
        &self,
        method: &'static str,
        name: &str,
        arguments: Option<Raw<'_>>,
        retry: Retry<'_>,
    ) -> Result<Option<Box<Rounds>>, ErrorObject> {
        if !self.may_need_rounds(&retry) {
            return Ok(None);
        }
        let principal = self.request.caller().principal.as_ref().map_or("", |it| it.as_str());
        let subject = Subject {
            principal: principal.to_owned(),
            method,
            name: name.to_owned(),
            arguments: arguments.map(Json::copy_of),
            passes_on: retry.passes_on,
        };
        let core = self.request.core();
        let rounds = Rounds::new(core, subject, retry.responses, retry.state)?;
        Ok(Some(Box::new(rounds)))
    }

    /// Whether the request is part of several rounds, or can become one.
    pub(super) fn may_need_rounds(&self, retry: &Retry<'_>) -> bool {
        let caller = self.request.caller();
        let client = &caller.capabilities;
        let can_be_asked =
            client.elicitation.is_some() || client.sampling.is_some() || client.roots.is_some();
        let is_retry = retry.responses.is_some() || retry.state.is_some();
        retry.asks || caller.revision.is_modern() && (can_be_asked || is_retry)
    }
}

/// What a handler runs with besides its request.
pub(super) struct Setting {
    rounds: Option<Box<Rounds>>,
    pub(super) timeout: Duration,
    nest: Nest,
    pub(super) params: Option<Json>,
}

/// What a repeated request adds to the first one.
#[derive(Clone, Copy)]
pub(super) struct Retry<'a> {
    pub(super) responses: Option<&'a RawMembers<'a>>,
    pub(super) state: Option<&'a str>,
    /// Whether the handler returns questions itself, in either era.
    pub(super) asks: bool,
    /// Whether the handler passes the request on.
    pub(super) passes_on: bool,
}

/// What a request names: a tool, a prompt or a resource.
fn name(asked: &wire::Request<'_>) -> Option<String> {
    let member = |member| asked.params.string(&asked.method, member).ok().flatten();
    if asked.method == Complete::NAME {
        let params: RawMembers<'_> = serde_json::from_str(asked.params.raw()?.get()).ok()?;
        let reference: RawMembers<'_> = serde_json::from_str(params.get("ref")?.get()).ok()?;
        let text = reference.get("name").or_else(|| reference.get("uri"))?;
        return serde_json::from_str(text.get()).ok();
    }
    member("name").or_else(|| member("uri")).map(Cow::into_owned)
}
