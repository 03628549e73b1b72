//! From a request to its handler, whatever the transport.
//!
//! [`start`] is the entrance. It first finds the [`Target`] of a request, which includes whether
//! the caller may see and use it, and only then runs code that can have an effect. So no transport
//! can forget to check scopes. [`surround`] is for requests that have their outcome already: they
//! only pass through the middleware.

mod completion;
mod starting;
mod target;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::method::{CallTool, GetPrompt, Method, ReadResource};
use bowline_proto::model::{
    CallToolResult, GetPromptParams, PaginatedParams, ReadResourceParams, RequestMeta,
};
use bowline_proto::raw::Raw;
use bowline_proto::revision::Revision;
use bowline_proto::session::Subscription;
use bowline_proto::wire;

use self::starting::{FOR_EVER, Retry, Starting};
use self::target::{Refusal, Target, ToolCall, UriParts};
use super::answer::{Answer, Outcome};
use super::beyond::Beyond;
use super::caller::{Asker, Profile};
use super::context::Context;
use super::core::Core;
use super::extension::{ExtensionMethod, TopicReader};
use super::failure::Failure;
#[cfg(feature = "http")]
use super::failure::FailureKind;
use super::legacy::{SessionChange, SessionParts};
use super::middleware::Around;
use super::nest::Nest;
use super::registry::ListKind;
use super::running::{Handling, Running, panicked};
use super::tasks::{Launch, Plan};
use super::{prompt, resource, tool};
use crate::outbox::Outbox;

/// A request whose caller and era are known.
pub(crate) struct Request<'a> {
    pub(crate) asker: Asker<'a>,
    /// As it came.
    pub(crate) asked: &'a wire::Request<'a>,
    /// What the headers of a modern HTTP request repeat of the arguments.
    #[cfg(feature = "http")]
    pub(crate) headers: Option<&'a http::HeaderMap>,
}

/// What became of a request at once.
pub(crate) enum Started {
    /// It is answered. Boxed, so that the many whose handler runs do not carry room for it around.
    Done(Box<Outcome>),
    /// Its handler runs.
    Running(Running),
    /// Its outcome is known, and middleware runs around it.
    Settled(Running),
    /// It is `subscriptions/listen`: the transport opens a stream of changes.
    Listening(Box<Listening>),
}

/// A request to listen.
pub(crate) struct Listening {
    pub(crate) subscription: Subscription,
    /// The middleware, if there is any, and what reads the topics of extensions. The stream is
    /// opened within it then.
    pub(crate) around: Option<(Around, Option<TopicReader>)>,
}

impl Started {
    fn done(outcome: Outcome) -> Self {
        Self::Done(Box::new(outcome))
    }
}

/// Starts a request. `session` is the legacy session that it belongs to and may change.
///
/// This includes code of the server's author: the part of a handler before its future, the
/// deserialization of its arguments, the rules that say who sees what. A panic in it is caught.
pub(crate) fn start(
    request: &Request<'_>,
    outbox: &Arc<Outbox>,
    session: Option<SessionParts<'_>>,
) -> Started {
    let starting = Starting { request, outbox };
    let started = caught(request, || match Target::find(request)? {
        Target::Tool(call, tool) => start_tool(&starting, &call, tool, session),
        Target::Prompt(params, prompt) => start_prompt(&starting, params, prompt),
        Target::Resource(params, resource, parts) => {
            start_resource(&starting, params, resource, parts)
        }
        Target::Completion(params, source) => completion::start(&starting, params, &source),
        Target::List(params, kind) => Ok(start_list(&starting, &params, kind)?),
        Target::Discover => {
            let discovered = Answer::Discover(Box::new(request.core().discover_result()));
            Ok(Started::done(Ok(discovered)))
        }
        Target::Ping => Ok(Started::done(Ok(Answer::Empty))),
        Target::Extension(method) => Ok(start_extension(&starting, method)),
        Target::Beyond(beyond) => Ok(start_beyond(&starting, beyond)),
        Target::Session(change, nest) => match session {
            Some(session) => Ok(start_change(&starting, session, change, &nest)),
            None => Err(ErrorObject::method_not_found(&request.asked.method).into()),
        },
        Target::Listen(subscription, nest) => Ok(starting.listen(subscription, &nest)),
    });
    match started {
        Ok(Started::Done(outcome)) => starting.surround(outcome, &Nest::default()),
        Ok(started) => started,
        Err(Refusal { failure, nest }) => starting.surround(Box::new(Err(failure)), &nest),
    }
}

/// Runs the middleware around an outcome that the transport already knows.
pub(crate) fn surround(request: &Request<'_>, outbox: &Arc<Outbox>, outcome: Outcome) -> Started {
    Starting { request, outbox }.surround(Box::new(outcome), &Nest::default())
}

/// The refusal of a request whose caller lacks scopes. Runs no handler: for transports that must
/// refuse before they call [`start`], because they serve several requests together or elsewhere.
#[cfg(feature = "http")]
pub(crate) fn missing_scopes(request: &Request<'_>) -> Option<Failure> {
    let found = caught(request, || Target::find(request).map(drop));
    let failure = found.err()?.failure;
    (failure.kind == FailureKind::Forbidden).then_some(failure)
}

fn caught<T>(
    request: &Request<'_>,
    work: impl FnOnce() -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(Refusal::new(panicked(&request.asked.method, panic.as_ref()), &Nest::default()))
    })
}

impl<'a> Request<'a> {
    fn params(&self) -> Option<Raw<'a>> {
        self.asked.params.raw()
    }

    fn core(&self) -> &'a Arc<Core> {
        &self.asker.peer.core
    }

    fn caller(&self) -> &'a Profile {
        &self.asker.peer.profile
    }
}

fn start_tool(
    starting: &Starting<'_>,
    call: &ToolCall<'_>,
    tool: Arc<tool::Entry>,
    session: Option<SessionParts<'_>>,
) -> Result<Started, Refusal> {
    let (name, arguments) = (call.name(), call.arguments());
    let refused = |error| Refusal::new(Failure::rejected(error), &tool.nest);
    let plan = starting.plan(call, &tool).map_err(refused)?;
    #[cfg(feature = "http")]
    if let Some(headers) = starting.request.headers {
        let agreed = tool.headers.check(headers, arguments);
        agreed.map_err(|mismatch| refused(mismatch.to_error_object()))?;
    }
    let (responses, state) = call.retry();
    let asks = tool.asks || plan.is_some();
    let retry = Retry { responses, state, asks, passes_on: tool.passes_on };
    let mut rounds = match starting.may_need_rounds(&retry) {
        true => starting.rounds(CallTool::NAME, name, arguments, retry).map_err(refused)?,
        false => None,
    };
    if let Some(rounds) = rounds.as_mut().filter(|_| plan.is_some_and(Plan::is_later)) {
        rounds.offer_task();
    }
    let mut setting = starting.setting(rounds, &tool.nest);
    setting.timeout = tool.timeout.unwrap_or(setting.timeout);
    setting.params = starting.params_for(tool.passes_on);
    let context = starting.context(CallTool::NAME, call.meta(), setting);
    if let Some((plan, tasks)) = plan.zip(starting.request.core().tasks.clone()) {
        let arguments = arguments.map(Json::copy_of);
        let sink = session.map(|session| Arc::clone(session.sink));
        let launch = Launch { tasks, context: context.clone(), tool, arguments, plan, sink };
        let handler = Handling::Chain(Box::pin(launch.run()));
        return Ok(Started::Running(starting.run_call(context, handler)));
    }
    if !starting.has_middleware(&context.call.nest) && !starting.has_wraps() {
        let handler = begin_tool(tool, &context, name, arguments).unwrap_or_else(Handling::ready);
        let running = Running::new(context.call, handler, || Some(name.to_owned()));
        return Ok(Started::Running(running));
    }
    // Nothing of the handler may run before the middleware says so.
    let (name, arguments) = (name.to_owned(), arguments.map(Json::copy_of));
    let own = context.clone();
    let handler = Box::pin(async move {
        let arguments = arguments.as_ref().map(Json::as_raw);
        match begin_tool(tool, &own, &name, arguments) {
            Ok(handler) => handler.into_future().await,
            Err(outcome) => outcome,
        }
    });
    Ok(Started::Running(starting.run_call(context, Handling::Other(handler))))
}

/// Starts the handler of a tool, or says what is wrong with the arguments.
pub(super) fn begin_tool(
    tool: Arc<tool::Entry>,
    context: &Context,
    name: &str,
    arguments: Option<Raw<'_>>,
) -> Result<Handling, Outcome> {
    match tool.start(context, arguments) {
        Ok(future) => Ok(Handling::Tool(tool, future)),
        Err(reason) => Err(bad_arguments(context.caller().revision, name, &reason)),
    }
}

fn bad_arguments(revision: Revision, tool: &str, reason: &str) -> Outcome {
    let message = format!("{tool}: {reason}");
    if revision.reports_bad_arguments_in_result() {
        Ok(Answer::Tool(CallToolResult::failure(message)))
    } else {
        let error = ErrorObject::invalid_params(format!("tools/call: {message}"));
        Err(Failure::rejected(error))
    }
}

fn start_prompt(
    starting: &Starting<'_>,
    params: GetPromptParams<'_>,
    prompt: Arc<prompt::Entry>,
) -> Result<Started, Refusal> {
    let texts: Vec<_> = params.arguments.into_iter().flatten().collect();
    let arguments = Json::new(&texts).ok();
    let arguments = arguments.as_ref().map(Json::as_raw);
    let retry = Retry {
        responses: params.input_responses.as_ref(),
        state: params.request_state.as_deref(),
        asks: prompt.asks,
        passes_on: prompt.passes_on,
    };
    let rounds = starting
        .rounds(GetPrompt::NAME, &params.name, arguments, retry)
        .map_err(|error| Refusal::new(Failure::rejected(error), &prompt.nest))?;
    let mut setting = starting.setting(rounds, &prompt.nest);
    setting.params = starting.params_for(prompt.passes_on);
    let context = starting.context(GetPrompt::NAME, &params.meta, setting);
    let (name, own) = (params.name, context.clone());
    Ok(Started::Running(starting.run(context, async move {
        let started = prompt.get.start(&own, texts).map_err(|reason| {
            let message = format!("prompts/get: {name}: params.arguments.{reason}");
            Failure::rejected(ErrorObject::invalid_params(message))
        });
        match started?.await {
            Ok(mut result) => {
                let description = || prompt.default_description();
                result.description = result.description.or_else(description);
                Ok(Answer::Prompt(result))
            }
            Err(error) => error.into_outcome(),
        }
    })))
}

fn start_resource(
    starting: &Starting<'_>,
    params: ReadResourceParams<'_>,
    resource: Arc<resource::Entry>,
    parts: UriParts,
) -> Result<Started, Refusal> {
    let retry = Retry {
        responses: params.input_responses.as_ref(),
        state: params.request_state.as_deref(),
        asks: resource.asks,
        passes_on: resource.passes_on,
    };
    let rounds = starting
        .rounds(ReadResource::NAME, &params.uri, None, retry)
        .map_err(|error| Refusal::new(Failure::rejected(error), &resource.nest))?;
    let mut setting = starting.setting(rounds, &resource.nest);
    setting.params = starting.params_for(resource.passes_on);
    let context = starting.context(ReadResource::NAME, &params.meta, setting);
    let (uri, own) = (params.uri, context.clone());
    Ok(Started::Running(starting.run(context, async move {
        let started = resource.read.start(&own, parts, uri.clone()).map_err(|reason| {
            let message = format!("resources/read: {uri}: {reason}");
            Failure::rejected(ErrorObject::invalid_params(message))
        });
        let mut result = match started?.await {
            Ok(result) => result,
            Err(error) => return error.into_outcome(),
        };
        for contents in &mut result.contents {
            let mime_type = || resource.default_mime_type();
            contents.mime_type = contents.mime_type.take().or_else(mime_type);
        }
        Ok(Answer::Resource(result))
    })))
}

fn start_list(
    starting: &Starting<'_>,
    params: &PaginatedParams<'_>,
    kind: ListKind,
) -> Result<Started, ErrorObject> {
    let tables = starting.request.core().registry.tables();
    let is_offered = match kind {
        ListKind::Tools => tables.offered.tools,
        ListKind::Prompts => tables.offered.prompts,
        ListKind::Resources | ListKind::Templates => tables.offered.resources,
    };
    // A capability that is not advertised is a method that is not there.
    if !is_offered {
        return Err(ErrorObject::method_not_found(kind.method()));
    }
    let page = tables.list(kind, starting.request.asker, params.cursor.as_deref())?;
    Ok(Started::done(Ok(Answer::List(page))))
}

fn start_extension(starting: &Starting<'_>, method: ExtensionMethod) -> Started {
    let params = starting.request.params();
    let meta = RequestMeta::of(params);
    let mut setting = starting.setting(None, &method.nest);
    if method.is_unlimited {
        setting.timeout = FOR_EVER;
    }
    let context = starting.context(method.name, &meta, setting);
    let (own, params) = (context.clone(), params.map(Json::copy_of));
    Started::Running(starting.run(context, async move { method.start(own, params).await }))
}

/// A method that the server behind this one may know.
fn start_beyond(starting: &Starting<'_>, beyond: Arc<Beyond>) -> Started {
    let params = starting.request.params();
    let mut setting = starting.setting(None, &Nest::default());
    setting.params = starting.params_for(true);
    let context = starting.context(starting.method(), &RequestMeta::of(params), setting);
    let (own, method) = (context.clone(), starting.request.asked.method.to_string());
    let handler = async move { (beyond.method)(own, method).await };
    Started::Running(starting.run(context, handler))
}

fn start_change(
    starting: &Starting<'_>,
    parts: SessionParts<'_>,
    change: SessionChange,
    nest: &Nest,
) -> Started {
    let core = starting.request.core();
    if !starting.has_middleware(nest) {
        return Started::done(apply(core, parts, change));
    }
    let (session, sink) = (Arc::clone(parts.session), Arc::clone(parts.sink));
    let core = Arc::clone(core);
    let meta = RequestMeta::of(starting.request.params());
    let context = starting.context(change.method(), &meta, starting.setting(None, nest));
    Started::Running(starting.run(context, async move {
        apply(&core, SessionParts { session: &session, sink: &sink }, change)
    }))
}

/// Changes a session, and tells parts that change by themselves what it subscribes to.
fn apply(core: &Core, parts: SessionParts<'_>, change: SessionChange) -> Outcome {
    let subscribed = change.subscribed().map(str::to_owned);
    let outcome = parts.apply(change).map_err(Failure::rejected);
    if let Some(uri) = subscribed.filter(|_| outcome.is_ok()) {
        core.registry.subscribed(&uri);
    }
    outcome
}
