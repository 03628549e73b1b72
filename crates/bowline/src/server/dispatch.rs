//! From a request to its handler. Knows no transport: whoever owns one calls [`start`].

mod completion;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bowline_proto::decode::decode_params;
use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::members::RawMembers;
use bowline_proto::method::{
    CallTool, Complete, Discover, GetPrompt, Method, Ping, ReadResource, find,
};
use bowline_proto::model::{
    CallToolParams, CallToolResult, EmptyParams, GetPromptParams, PaginatedParams,
    ReadResourceParams, RequestMeta,
};
use bowline_proto::params::PlainCall;
use bowline_proto::raw::Raw;
use bowline_proto::revision::Revision;

use bowline_proto::wire;

use super::answer::{Answer, Outcome};
use super::call::{Call, CallParts};
use super::caller::Caller;
use super::context::Context;
use super::core::Core;
use super::error::resource_not_found;
use super::middleware::{Incoming, Next};
use super::nest::Nest;
use super::peer::Peer;
use super::registry::{IsThere, ListKind, Tables};
use super::resource;
use super::rounds::{Rounds, Subject};
use super::running::{Handling, Running, panicked};
use crate::outbox::Outbox;
use crate::uri_template::Match;

/// A request whose caller and era are known.
pub(crate) struct Request<'a> {
    pub(crate) peer: &'a Arc<Peer>,
    /// As it came.
    pub(crate) asked: &'a wire::Request<'a>,
    pub(crate) outbox: &'a Arc<Outbox>,
    /// What the headers of a modern HTTP request repeat of the arguments.
    #[cfg(feature = "http")]
    pub(crate) headers: Option<&'a http::HeaderMap>,
}

/// What became of a request at once.
pub(crate) enum Started {
    /// It is answered. In a box: the many whose handler runs do not carry room for it around.
    Done(Box<Outcome>),
    /// Its handler runs.
    Running(Running),
}

impl Started {
    fn done(outcome: Outcome) -> Self {
        Self::Done(Box::new(outcome))
    }
}

/// Starts a request. What an author wrote runs in here as well: the part of a handler before its
/// future, the reading of its arguments, the rules for whom something is there.
pub(crate) fn start(request: &Request<'_>) -> Started {
    let started = catch_unwind(AssertUnwindSafe(|| try_start(request)));
    match started.unwrap_or_else(|panic| Err(panicked(&request.asked.method, panic.as_ref()))) {
        Ok(started) => started,
        Err(error) => Started::done(Err(error)),
    }
}

fn try_start(request: &Request<'_>) -> Result<Started, ErrorObject> {
    let missing = || ErrorObject::method_not_found(&request.asked.method);
    let row = find(&request.asked.method, request.caller().revision).ok_or_else(missing)?;
    match row.name {
        CallTool::NAME => start_tool(request),
        GetPrompt::NAME => start_prompt(request),
        ReadResource::NAME => start_resource(request),
        Complete::NAME => completion::start(request),
        Discover::NAME => {
            let params: EmptyParams<'_> = decode_params(Discover::NAME, request.params())?;
            let discovered = Answer::Discover(Box::new(request.core().discover_result()));
            Ok(request.answer(Discover::NAME, None, &params.meta, Ok(discovered)))
        }
        Ping::NAME => Ok(Started::done(Ok(Answer::Empty))),
        name => match ListKind::of(name) {
            Some(kind) => start_list(request, kind),
            None => Err(missing()),
        },
    }
}

impl Request<'_> {
    fn params(&self) -> Option<Raw<'_>> {
        self.asked.params.raw()
    }

    fn core(&self) -> &Arc<Core> {
        &self.peer.core
    }

    fn caller(&self) -> &Caller {
        &self.peer.caller
    }

    fn revision(&self) -> Revision {
        self.caller().revision
    }

    /// An answer that needs no handler, through the middleware if there is any.
    fn answer(
        &self,
        method: &'static str,
        name: Option<String>,
        meta: &RequestMeta<'_>,
        answer: Outcome,
    ) -> Started {
        if self.core().middleware.is_empty() {
            return Started::done(answer);
        }
        let context = self.context(method, meta, self.work(None, &Nest::default()));
        self.run(context, name, Handling::Other(Box::pin(std::future::ready(answer))))
    }

    /// What a handler without a time of its own needs.
    fn work(&self, rounds: Option<Box<Rounds>>, nest: &Nest) -> Work {
        Work { rounds, timeout: self.core().limits.deadline, nest: nest.clone() }
    }

    fn context(&self, method: &'static str, meta: &RequestMeta<'_>, work: Work) -> Context {
        let parts = CallParts {
            peer: Arc::clone(self.peer),
            id: self.asked.id.clone(),
            method,
            outbox: Arc::clone(self.outbox),
            rounds: work.rounds,
            log_level: meta.log_level,
            progress_token: meta.progress_token.clone(),
            traceparent: meta.traceparent(),
            timeout: work.timeout,
            nest: work.nest,
        };
        Context { call: Arc::new(Call::new(parts)) }
    }

    /// The handler, with the middleware around it.
    fn run(&self, context: Context, name: Option<String>, handler: Handling) -> Started {
        if self.core().middleware.is_empty() {
            return Started::Running(Running::new(context.call, handler));
        }
        let call = Arc::clone(&context.call);
        let middleware = Arc::clone(&self.core().middleware);
        let next = Next { middleware, at: 0, handler: handler.into_future() };
        let incoming = Incoming { method: call.method, name, context };
        Started::Running(Running::new(call, Handling::Other(Box::pin(next.run(incoming)))))
    }

    /// The questions and answers so far, for modern callers who can be asked anything at all.
    fn rounds(
        &self,
        method: &'static str,
        name: &str,
        arguments: Option<Raw<'_>>,
        asked: Asked<'_>,
    ) -> Result<Option<Box<Rounds>>, ErrorObject> {
        let client = &self.caller().capabilities;
        let can_be_asked =
            client.elicitation.is_some() || client.sampling.is_some() || client.roots.is_some();
        let is_retry = asked.responses.is_some() || asked.state.is_some();
        if !self.revision().is_modern() || !(can_be_asked || is_retry) {
            return Ok(None);
        }
        let principal = self.caller().principal.as_ref().map_or("", |it| it.as_str());
        let subject = Subject {
            principal: principal.to_owned(),
            method,
            name: name.to_owned(),
            arguments: arguments.map(Json::copy_of),
        };
        let rounds = Rounds::new(self.core(), subject, asked.responses, asked.state)?;
        Ok(Some(Box::new(rounds)))
    }
}

/// What a handler needs besides its request.
struct Work {
    rounds: Option<Box<Rounds>>,
    timeout: Duration,
    nest: Nest,
}

/// What a repeated request brings.
#[derive(Clone, Copy)]
struct Asked<'a> {
    responses: Option<&'a RawMembers<'a>>,
    state: Option<&'a str>,
}

fn start_tool(request: &Request<'_>) -> Result<Started, ErrorObject> {
    let params = &request.asked.params;
    if let Some(PlainCall { name, arguments, meta }) = params.plain_call() {
        let asked = Asked { responses: None, state: None };
        return start_called(request, name, arguments, meta, asked);
    }
    let CallToolParams { name, arguments, meta, input_responses, request_state, .. } =
        params.call_tool()?;
    if arguments.is_some_and(|arguments| !arguments.is_object()) {
        return Err(ErrorObject::invalid_params("tools/call: params.arguments must be an object"));
    }
    let asked = Asked { responses: input_responses.as_ref(), state: request_state.as_deref() };
    start_called(request, &name, arguments, &meta, asked)
}

fn start_called(
    request: &Request<'_>,
    name: &str,
    arguments: Option<Raw<'_>>,
    meta: &RequestMeta<'_>,
    asked: Asked<'_>,
) -> Result<Started, ErrorObject> {
    let (tool, is_offered) = request.core().registry.tool(name);
    if !is_offered {
        return Err(ErrorObject::method_not_found(CallTool::NAME));
    }
    let tool = tool.filter(|tool| tool.is_there_for(request.caller()));
    let tool = tool.ok_or_else(|| unknown_tool(name))?;
    #[cfg(feature = "http")]
    if let Some(headers) = request.headers {
        let agreed = tool.headers.check(headers, arguments);
        agreed.map_err(|mismatch| mismatch.to_error_object())?;
    }
    let rounds = request.rounds(CallTool::NAME, name, arguments, asked)?;
    let timeout = tool.timeout.unwrap_or(request.core().limits.deadline);
    let work = Work { rounds, timeout, nest: tool.nest.clone() };
    let context = request.context(CallTool::NAME, meta, work);
    let handler = match tool.start(&context, arguments) {
        Ok(future) => Handling::Tool(tool, future),
        Err(reason) => {
            let outcome = bad_arguments(request.revision(), name, &reason);
            Handling::Other(Box::pin(std::future::ready(outcome)))
        }
    };
    let name = (!request.core().middleware.is_empty()).then(|| name.to_owned());
    Ok(request.run(context, name, handler))
}

/// An unknown tool is an error of the protocol in every revision.
fn unknown_tool(name: &str) -> ErrorObject {
    ErrorObject::invalid_params(format!("tools/call: no tool is called {name:?}"))
}

fn bad_arguments(revision: Revision, tool: &str, reason: &str) -> Outcome {
    let message = format!("{tool}: {reason}");
    if revision.reports_bad_arguments_in_result() {
        Ok(Answer::Tool(CallToolResult::failure(message)))
    } else {
        Err(ErrorObject::invalid_params(format!("tools/call: {message}")))
    }
}

fn start_prompt(request: &Request<'_>) -> Result<Started, ErrorObject> {
    let params: GetPromptParams<'_> = decode_params(GetPrompt::NAME, request.params())?;
    let tables = request.core().registry.tables();
    if !tables.offered.prompts {
        return Err(ErrorObject::method_not_found(GetPrompt::NAME));
    }
    let found = tables.prompts.get(&params.name).filter(|it| it.is_there_for(request.caller()));
    let prompt = found.ok_or_else(|| {
        ErrorObject::invalid_params(format!("prompts/get: no prompt is called {:?}", params.name))
    })?;
    let texts: Vec<_> = params.arguments.into_iter().flatten().collect();
    let arguments = Json::new(&texts).ok();
    let asked = Asked {
        responses: params.input_responses.as_ref(),
        state: params.request_state.as_deref(),
    };
    let rounds = request.rounds(
        GetPrompt::NAME,
        &params.name,
        arguments.as_ref().map(Json::as_raw),
        asked,
    )?;
    let work = request.work(rounds, &prompt.nest);
    let context = request.context(GetPrompt::NAME, &params.meta, work);
    let future = prompt.get.start(&context, texts).map_err(|reason| {
        ErrorObject::invalid_params(format!(
            "prompts/get: {}: params.arguments.{reason}",
            params.name
        ))
    })?;
    let description = prompt.definition.description.clone();
    let handler = Box::pin(async move {
        let mut result = future.await.map_err(super::error::HandlerError::into_error_object)?;
        result.description = result.description.or(description);
        Ok(Answer::Prompt(result))
    });
    Ok(request.run(context, Some(params.name), Handling::Other(handler)))
}

fn start_resource(request: &Request<'_>) -> Result<Started, ErrorObject> {
    let params: ReadResourceParams<'_> = decode_params(ReadResource::NAME, request.params())?;
    let tables = request.core().registry.tables();
    if !tables.offered.resources {
        return Err(ErrorObject::method_not_found(ReadResource::NAME));
    }
    let (resource, parts) = find_resource(&tables, &params.uri, request.caller())?;
    let asked = Asked {
        responses: params.input_responses.as_ref(),
        state: params.request_state.as_deref(),
    };
    let rounds = request.rounds(ReadResource::NAME, &params.uri, None, asked)?;
    let work = request.work(rounds, &resource.nest);
    let context = request.context(ReadResource::NAME, &params.meta, work);
    let started = resource.read.start(&context, parts, params.uri.clone());
    let future = started.map_err(|reason| {
        ErrorObject::invalid_params(format!("resources/read: {}: {reason}", params.uri))
    })?;
    let mime_type = resource.definition.mime_type.clone();
    let handler = Box::pin(async move {
        let mut result = future.await.map_err(super::error::HandlerError::into_error_object)?;
        for contents in &mut result.contents {
            contents.mime_type = contents.mime_type.take().or_else(|| mime_type.clone());
        }
        Ok(Answer::Resource(result))
    });
    Ok(request.run(context, Some(params.uri), Handling::Other(handler)))
}

/// The names and values of the parts of a URI.
pub(crate) type UriParts = Vec<(String, String)>;

/// The resource of a URI, and the parts of the URI if it is one of a family.
pub(crate) fn find_resource(
    tables: &Tables,
    uri: &str,
    caller: &Caller,
) -> Result<(Arc<resource::Entry>, UriParts), ErrorObject> {
    if let Some(resource) = tables.resources.get(uri).filter(|it| it.is_there_for(caller)) {
        return Ok((Arc::clone(resource), Vec::new()));
    }
    for entry in tables.templates.iter().filter(|it| it.is_there_for(caller)) {
        let Some(template) = &entry.template else { continue };
        match template.matches(uri) {
            Match::Values(values) => {
                let parts = values.into_iter().map(|(name, value)| (name.to_owned(), value));
                return Ok((Arc::clone(entry), parts.collect()));
            }
            Match::Unsafe { variable } => {
                let message =
                    format!("resources/read: {variable:?} of the URI is not allowed to be that");
                return Err(ErrorObject::invalid_params(message));
            }
            Match::Different => {}
        }
    }
    Err(resource_not_found(uri))
}

fn start_list(request: &Request<'_>, kind: ListKind) -> Result<Started, ErrorObject> {
    let method = kind.method();
    let params: PaginatedParams<'_> = decode_params(method, request.params())?;
    let tables = request.core().registry.tables();
    let is_offered = match kind {
        ListKind::Tools => tables.offered.tools,
        ListKind::Prompts => tables.offered.prompts,
        ListKind::Resources | ListKind::Templates => tables.offered.resources,
    };
    // A capability that is not advertised is a method that is not there.
    if !is_offered {
        return Err(ErrorObject::method_not_found(method));
    }
    let page = tables.list(kind, request.caller(), params.cursor.as_deref())?;
    Ok(request.answer(method, None, &params.meta, Ok(Answer::List(page))))
}
