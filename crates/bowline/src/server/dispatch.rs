//! From a request to its handler, whatever the transport.
//!
//! [`start`] is the only entrance. It first finds the [`Target`] of a request, which includes
//! whether the caller may see and use it, and only then runs code that can have an effect. So no
//! transport can forget to check scopes: the compiler makes it handle [`Started::Forbidden`].

mod completion;
mod target;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::members::RawMembers;
use bowline_proto::method::{CallTool, Discover, GetPrompt, Method, ReadResource};
use bowline_proto::model::{
    CallToolResult, GetPromptParams, PaginatedParams, ReadResourceParams, RequestMeta,
};
use bowline_proto::raw::Raw;
use bowline_proto::revision::Revision;
use bowline_proto::session::Subscription;
use bowline_proto::wire;

use self::target::{Refusal, Target, ToolCall, UriParts};
use super::answer::{Answer, Outcome};
use super::call::{Call, CallParts};
use super::caller::{Asker, Profile};
use super::context::Context;
use super::core::Core;
use super::error::HandlerError;
use super::legacy::SessionParts;
use super::middleware::{Incoming, Next};
use super::nest::Nest;
use super::registry::ListKind;
use super::rounds::{Rounds, Subject};
use super::running::{Handling, Running, panicked};
use super::scopes::Scopes;
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
    /// It is `subscriptions/listen`: the transport opens a stream of changes.
    Listening(Box<Subscription>),
    /// The caller lacks at least one of these scopes. Nothing has run.
    Forbidden(Scopes),
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
    caught(request, || match Target::find(request)? {
        Target::Tool(call, tool) => Ok(start_tool(&starting, call, tool)?),
        Target::Prompt(params, prompt) => Ok(start_prompt(&starting, params, &prompt)?),
        Target::Resource(params, resource, parts) => {
            Ok(start_resource(&starting, params, &resource, parts)?)
        }
        Target::Completion(params, source) => Ok(completion::start(&starting, params, &source)?),
        Target::List(params, kind) => Ok(start_list(&starting, &params, kind)?),
        Target::Discover(params) => {
            let discovered = Answer::Discover(Box::new(request.core().discover_result()));
            Ok(starting.answer(Discover::NAME, &params.meta, Ok(discovered)))
        }
        Target::Ping => Ok(Started::done(Ok(Answer::Empty))),
        Target::Session(change) => match session {
            Some(session) => Ok(Started::done(session.apply(change))),
            None => Err(ErrorObject::method_not_found(&request.asked.method).into()),
        },
        Target::Listen(subscription) => Ok(Started::Listening(Box::new(subscription))),
    })
}

/// The scopes that a request needs, if its caller lacks any of them. Runs no handler: for
/// transports that must refuse before they call [`start`], because they serve several requests
/// together or elsewhere.
#[cfg(feature = "http")]
pub(crate) fn missing_scopes(request: &Request<'_>) -> Option<Scopes> {
    let found = caught(request, || Target::find(request).map(|_| Started::done(Ok(Answer::Empty))));
    match found {
        Started::Forbidden(needed) => Some(needed),
        _ => None,
    }
}

fn caught(request: &Request<'_>, work: impl FnOnce() -> Result<Started, Refusal>) -> Started {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(started)) => started,
        Ok(Err(Refusal::Error(error))) => Started::done(Err(error)),
        Ok(Err(Refusal::Forbidden(needed))) => Started::Forbidden(needed),
        Err(panic) => Started::done(Err(panicked(&request.asked.method, panic.as_ref()))),
    }
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

/// A request that is permitted, and where its messages go.
struct Starting<'a> {
    request: &'a Request<'a>,
    outbox: &'a Arc<Outbox>,
}

impl Starting<'_> {
    /// An answer that needs no handler, through the middleware if there is any.
    fn answer(&self, method: &'static str, meta: &RequestMeta<'_>, answer: Outcome) -> Started {
        if self.request.core().middleware.is_empty() {
            return Started::done(answer);
        }
        let context = self.context(method, meta, self.setting(None, &Nest::default()));
        self.run(context, None, Handling::Other(Box::pin(std::future::ready(answer))))
    }

    /// The setting of a handler that has no timeout of its own.
    fn setting(&self, rounds: Option<Box<Rounds>>, nest: &Nest) -> Setting {
        Setting { rounds, timeout: self.request.core().limits.deadline, nest: nest.clone() }
    }

    fn context(&self, method: &'static str, meta: &RequestMeta<'_>, setting: Setting) -> Context {
        let parts = CallParts {
            caller: self.request.asker.to_caller(),
            id: self.request.asked.id.clone(),
            method,
            outbox: Arc::clone(self.outbox),
            rounds: setting.rounds,
            log_level: meta.log_level,
            progress_token: meta.progress_token.clone(),
            traceparent: meta.traceparent(),
            timeout: setting.timeout,
            nest: setting.nest,
        };
        Context { call: Arc::new(Call::new(parts)) }
    }

    /// The handler, with the middleware around it.
    fn run(&self, context: Context, name: Option<String>, handler: Handling) -> Started {
        let core = self.request.core();
        if core.middleware.is_empty() {
            return Started::Running(Running::new(context.call, handler));
        }
        let call = Arc::clone(&context.call);
        let middleware = Arc::clone(&core.middleware);
        let next = Next { middleware, at: 0, handler: handler.into_future() };
        let incoming = Incoming { method: call.method, name, context };
        Started::Running(Running::new(call, Handling::Other(Box::pin(next.run(incoming)))))
    }

    /// The questions and answers so far, for modern callers that can be asked anything at all.
    fn rounds(
        &self,
        method: &'static str,
        name: &str,
        arguments: Option<Raw<'_>>,
        retry: Retry<'_>,
    ) -> Result<Option<Box<Rounds>>, ErrorObject> {
        let caller = self.request.caller();
        let client = &caller.capabilities;
        let can_be_asked =
            client.elicitation.is_some() || client.sampling.is_some() || client.roots.is_some();
        let is_retry = retry.responses.is_some() || retry.state.is_some();
        if !caller.revision.is_modern() || !(can_be_asked || is_retry) {
            return Ok(None);
        }
        let principal = caller.principal.as_ref().map_or("", |it| it.as_str());
        let subject = Subject {
            principal: principal.to_owned(),
            method,
            name: name.to_owned(),
            arguments: arguments.map(Json::copy_of),
        };
        let core = self.request.core();
        let rounds = Rounds::new(core, subject, retry.responses, retry.state)?;
        Ok(Some(Box::new(rounds)))
    }
}

/// What a handler runs with besides its request.
struct Setting {
    rounds: Option<Box<Rounds>>,
    timeout: Duration,
    nest: Nest,
}

/// What a repeated request adds to the first one.
#[derive(Clone, Copy)]
struct Retry<'a> {
    responses: Option<&'a RawMembers<'a>>,
    state: Option<&'a str>,
}

fn start_tool(
    starting: &Starting<'_>,
    call: ToolCall<'_>,
    tool: Arc<tool::Entry>,
) -> Result<Started, ErrorObject> {
    let request = starting.request;
    let ToolCall { name, arguments, meta, responses, state } = call;
    #[cfg(feature = "http")]
    if let Some(headers) = request.headers {
        let agreed = tool.headers.check(headers, arguments);
        agreed.map_err(|mismatch| mismatch.to_error_object())?;
    }
    let retry = Retry { responses: responses.as_ref(), state: state.as_deref() };
    let rounds = starting.rounds(CallTool::NAME, &name, arguments, retry)?;
    let timeout = tool.timeout.unwrap_or(request.core().limits.deadline);
    let setting = Setting { rounds, timeout, nest: tool.nest.clone() };
    let context = starting.context(CallTool::NAME, &meta, setting);
    let handler = match tool.start(&context, arguments) {
        Ok(future) => Handling::Tool(tool, future),
        Err(reason) => {
            let outcome = bad_arguments(request.caller().revision, &name, &reason);
            Handling::Other(Box::pin(std::future::ready(outcome)))
        }
    };
    let name = (!request.core().middleware.is_empty()).then(|| name.into_owned());
    Ok(starting.run(context, name, handler))
}

fn bad_arguments(revision: Revision, tool: &str, reason: &str) -> Outcome {
    let message = format!("{tool}: {reason}");
    if revision.reports_bad_arguments_in_result() {
        Ok(Answer::Tool(CallToolResult::failure(message)))
    } else {
        Err(ErrorObject::invalid_params(format!("tools/call: {message}")))
    }
}

fn start_prompt(
    starting: &Starting<'_>,
    params: GetPromptParams<'_>,
    prompt: &prompt::Entry,
) -> Result<Started, ErrorObject> {
    let texts: Vec<_> = params.arguments.into_iter().flatten().collect();
    let arguments = Json::new(&texts).ok();
    let arguments = arguments.as_ref().map(Json::as_raw);
    let retry = Retry {
        responses: params.input_responses.as_ref(),
        state: params.request_state.as_deref(),
    };
    let rounds = starting.rounds(GetPrompt::NAME, &params.name, arguments, retry)?;
    let setting = starting.setting(rounds, &prompt.nest);
    let context = starting.context(GetPrompt::NAME, &params.meta, setting);
    let future = prompt.get.start(&context, texts).map_err(|reason| {
        let name = &params.name;
        ErrorObject::invalid_params(format!("prompts/get: {name}: params.arguments.{reason}"))
    })?;
    let description = prompt.definition.description.clone();
    let handler = Box::pin(async move {
        let mut result = future.await.map_err(HandlerError::into_error_object)?;
        result.description = result.description.or(description);
        Ok(Answer::Prompt(result))
    });
    Ok(starting.run(context, Some(params.name), Handling::Other(handler)))
}

fn start_resource(
    starting: &Starting<'_>,
    params: ReadResourceParams<'_>,
    resource: &resource::Entry,
    parts: UriParts,
) -> Result<Started, ErrorObject> {
    let retry = Retry {
        responses: params.input_responses.as_ref(),
        state: params.request_state.as_deref(),
    };
    let rounds = starting.rounds(ReadResource::NAME, &params.uri, None, retry)?;
    let setting = starting.setting(rounds, &resource.nest);
    let context = starting.context(ReadResource::NAME, &params.meta, setting);
    let started = resource.read.start(&context, parts, params.uri.clone());
    let future = started.map_err(|reason| {
        ErrorObject::invalid_params(format!("resources/read: {}: {reason}", params.uri))
    })?;
    let mime_type = resource.definition.mime_type.clone();
    let handler = Box::pin(async move {
        let mut result = future.await.map_err(HandlerError::into_error_object)?;
        for contents in &mut result.contents {
            contents.mime_type = contents.mime_type.take().or_else(|| mime_type.clone());
        }
        Ok(Answer::Resource(result))
    });
    Ok(starting.run(context, Some(params.uri), Handling::Other(handler)))
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
    Ok(starting.answer(kind.method(), &params.meta, Ok(Answer::List(page))))
}
