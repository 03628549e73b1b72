//! What a request is about: read, found, visible to its caller, and permitted to it.
//!
//! Finding a target runs no handler and changes nothing. Everything that needs scopes is found
//! here, so nothing that lacks them can start.

use std::sync::Arc;

use bowline_proto::decode::{DecodeError, decode_params};
use bowline_proto::error::ErrorObject;
use bowline_proto::members::RawMembers;
use bowline_proto::method::{
    CallTool, Complete, Discover, GetPrompt, METHODS, Method, Ping, ReadResource, SetLevel,
    Subscribe, SubscriptionsListen, Unsubscribe, find,
};
use bowline_proto::model::{
    CallToolParams, CompleteParams, EmptyParams, GetPromptParams, PaginatedParams,
    ReadResourceParams, Reference, RequestMeta, SubscriptionsListenParams,
};
use bowline_proto::params::PlainCall;
use bowline_proto::raw::Raw;
use bowline_proto::session::{Subscription, Topic};

use super::Request;
use crate::server::beyond::Beyond;
use crate::server::caller::Asker;
use crate::server::error::resource_not_found;
use crate::server::extension::ExtensionMethod;
use crate::server::failure::Failure;
use crate::server::legacy::SessionChange;
use crate::server::nest::Nest;
use crate::server::registry::{IsThere, ListKind, Tables};
use crate::server::scopes::Scopes;
use crate::server::{listen, prompt, resource, tool};
use crate::uri_template::Match;

/// What a request is about.
pub(super) enum Target<'a> {
    Tool(ToolCall<'a>, Arc<tool::Entry>),
    Prompt(GetPromptParams<'a>, Arc<prompt::Entry>),
    Resource(ReadResourceParams<'a>, Arc<resource::Entry>, UriParts),
    Completion(CompleteParams<'a>, Completable),
    List(PaginatedParams<'a>, ListKind),
    Discover,
    Ping,
    Session(SessionChange, Nest),
    Listen(Subscription, Nest),
    Extension(ExtensionMethod),
    /// A method that only the server behind this one may know.
    Beyond(Arc<Beyond>),
}

/// Why a request is not started.
pub(super) struct Refusal {
    pub(super) failure: Failure,
    /// The nested servers that it is for.
    pub(super) nest: Nest,
}

impl Refusal {
    pub(super) fn new(failure: Failure, nest: &Nest) -> Self {
        Self { failure, nest: nest.clone() }
    }
}

/// The parameters of `tools/call`.
pub(super) enum ToolCall<'a> {
    /// As in most requests.
    Plain(PlainCall<'a, 'a>),
    Other(Box<CallToolParams<'a>>),
}

impl<'a> ToolCall<'a> {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Plain(call) => call.name,
            Self::Other(call) => &call.name,
        }
    }

    pub(super) fn arguments(&self) -> Option<Raw<'a>> {
        match self {
            Self::Plain(call) => call.arguments,
            Self::Other(call) => call.arguments,
        }
    }

    pub(super) fn meta(&self) -> &RequestMeta<'a> {
        match self {
            Self::Plain(call) => call.meta,
            Self::Other(call) => &call.meta,
        }
    }

    /// The wish to run it as a task, and for how long to keep that.
    pub(super) fn task(&self) -> Option<Option<u64>> {
        match self {
            Self::Plain(_) => None,
            Self::Other(call) => call.task.as_ref().map(|task| task.ttl),
        }
    }

    /// The answers to questions, and the state that came with these.
    pub(super) fn retry(&self) -> (Option<&RawMembers<'a>>, Option<&str>) {
        match self {
            Self::Plain(_) => (None, None),
            Self::Other(call) => (call.input_responses.as_ref(), call.request_state.as_deref()),
        }
    }
}

/// Whose argument is to be completed.
pub(super) enum Completable {
    Prompt(Arc<prompt::Entry>),
    Template(Arc<resource::Entry>),
}

/// The names and values of the variables in a URI.
pub(super) type UriParts = Vec<(String, String)>;

impl From<ErrorObject> for Refusal {
    fn from(error: ErrorObject) -> Self {
        Self::new(Failure::rejected(error), &Nest::default())
    }
}

impl From<DecodeError> for Refusal {
    fn from(error: DecodeError) -> Self {
        Self::from(ErrorObject::from(error))
    }
}

impl<'a> Target<'a> {
    /// Finds what a request is about.
    pub(super) fn find(request: &Request<'a>) -> Result<Self, Refusal> {
        let Some(row) = find(&request.asked.method, request.caller().revision) else {
            return find_extension(request);
        };
        match row.name {
            CallTool::NAME => find_tool(request),
            GetPrompt::NAME => find_prompt(request),
            ReadResource::NAME => find_read(request),
            Complete::NAME => find_completion(request),
            SubscriptionsListen::NAME => find_listen(request),
            Subscribe::NAME | Unsubscribe::NAME | SetLevel::NAME => find_change(request, row.name),
            Discover::NAME => {
                let _: EmptyParams<'_> = decode_params(Discover::NAME, request.params())?;
                Ok(Self::Discover)
            }
            Ping::NAME => Ok(Self::Ping),
            name => match ListKind::of(name) {
                Some(kind) => Ok(Self::List(decode_params(name, request.params())?, kind)),
                None => find_extension(request),
            },
        }
    }
}

impl Request<'_> {
    /// An entry, if it exists as far as the caller can tell.
    ///
    /// # Errors
    /// When the caller lacks scopes for it.
    fn usable<E: IsThere>(&self, entry: Option<Arc<E>>) -> Result<Option<Arc<E>>, Refusal> {
        let Some(entry) = entry.filter(|it| it.is_there_for(self.asker)) else {
            return Ok(None);
        };
        if !entry.scopes().is_empty() {
            self.permit(entry.scopes(), entry.nest())?;
        }
        Ok(Some(entry))
    }

    fn permit(&self, needed: &Scopes, nest: &Nest) -> Result<(), Refusal> {
        if needed.are_granted_to(self.asker.peer) {
            return Ok(());
        }
        Err(Refusal::new(Failure::forbidden(needed), nest))
    }
}

fn find_tool<'a>(request: &Request<'a>) -> Result<Target<'a>, Refusal> {
    let call = read_call(request)?;
    let (tool, is_offered) = request.core().registry.tool(call.name());
    if !is_offered {
        return Err(ErrorObject::method_not_found(CallTool::NAME).into());
    }
    // An unknown tool is an error of the protocol in every revision.
    let tool = request.usable(tool)?.ok_or_else(|| {
        ErrorObject::invalid_params(format!("tools/call: no tool is called {:?}", call.name()))
    })?;
    Ok(Target::Tool(call, tool))
}

fn read_call<'a>(request: &Request<'a>) -> Result<ToolCall<'a>, ErrorObject> {
    let params = &request.asked.params;
    if let Some(call) = params.plain_call() {
        return Ok(ToolCall::Plain(call));
    }
    let call = params.call_tool()?;
    if call.arguments.is_some_and(|arguments| !arguments.is_object()) {
        return Err(ErrorObject::invalid_params("tools/call: params.arguments must be an object"));
    }
    Ok(ToolCall::Other(Box::new(call)))
}

fn find_prompt<'a>(request: &Request<'a>) -> Result<Target<'a>, Refusal> {
    let params: GetPromptParams<'_> = decode_params(GetPrompt::NAME, request.params())?;
    let tables = request.core().registry.tables();
    if !tables.offered.prompts {
        return Err(ErrorObject::method_not_found(GetPrompt::NAME).into());
    }
    let prompt = request.usable(tables.prompts.get(&params.name).cloned())?;
    let prompt = prompt.ok_or_else(|| {
        ErrorObject::invalid_params(format!("prompts/get: no prompt is called {:?}", params.name))
    })?;
    Ok(Target::Prompt(params, prompt))
}

fn find_read<'a>(request: &Request<'a>) -> Result<Target<'a>, Refusal> {
    let params: ReadResourceParams<'_> = decode_params(ReadResource::NAME, request.params())?;
    let tables = request.core().registry.tables();
    if !tables.offered.resources {
        return Err(ErrorObject::method_not_found(ReadResource::NAME).into());
    }
    let found = find_resource(&tables, &params.uri, request.asker);
    let found = found.or_else(|error| match &request.core().beyond {
        Some(beyond) if !has_uri(&tables, &params.uri) => {
            Ok((Arc::clone(&beyond.resource), UriParts::new()))
        }
        _ => Err(error),
    });
    let (resource, parts) = found?;
    request.permit(&resource.scopes, &resource.nest)?;
    Ok(Target::Resource(params, resource, parts))
}

/// Whether a resource or a template has this URI, for whomever it is there.
fn has_uri(tables: &Tables, uri: &str) -> bool {
    let mut templates = tables.templates.iter().filter_map(|it| it.template.as_ref());
    tables.resources.get(uri).is_some() || templates.any(|it| it.matches(uri) != Match::Different)
}

/// The resource of a URI, and the variables of the URI if it matches a template.
fn find_resource(
    tables: &Tables,
    uri: &str,
    asker: Asker<'_>,
) -> Result<(Arc<resource::Entry>, UriParts), ErrorObject> {
    if let Some(resource) = tables.resources.get(uri).filter(|it| it.is_there_for(asker)) {
        return Ok((Arc::clone(resource), Vec::new()));
    }
    for entry in tables.templates.iter().filter(|it| it.is_there_for(asker)) {
        let Some(template) = &entry.template else { continue };
        match template.matches(uri) {
            Match::Values(values) => {
                let parts = values.into_iter().map(|(name, value)| (name.to_owned(), value));
                return Ok((Arc::clone(entry), parts.collect()));
            }
            Match::Unsafe { variable } => {
                let message = format!(
                    "resources/read: {variable:?} of the URI has a value that is not allowed"
                );
                return Err(ErrorObject::invalid_params(message));
            }
            Match::Different => {}
        }
    }
    Err(resource_not_found(uri))
}

fn find_completion<'a>(request: &Request<'a>) -> Result<Target<'a>, Refusal> {
    let tables = request.core().registry.tables();
    let not_offered = || Refusal::from(ErrorObject::method_not_found(Complete::NAME));
    let params = match decode_params::<CompleteParams<'_>>(Complete::NAME, request.params()) {
        Err(_) if !tables.completes() => return Err(not_offered()),
        params => params?,
    };
    let (found, unknown) = match &params.reference {
        Reference::Prompt(named) => {
            let prompt = request.usable(tables.prompts.get(&named.name).cloned())?;
            let unknown = format!("no prompt is called {:?}", named.name);
            (prompt.map(Completable::Prompt), unknown)
        }
        Reference::ResourceTemplate(named) => {
            let template = request.usable(tables.templates.get(&named.uri).cloned())?;
            let unknown = format!("no resource template {:?}", named.uri);
            (template.map(Completable::Template), unknown)
        }
    };
    if !tables.completes() {
        return Err(not_offered());
    }
    let found = found
        .ok_or_else(|| ErrorObject::invalid_params(format!("{}: {unknown}", Complete::NAME)))?;
    Ok(Target::Completion(params, found))
}

fn find_change<'a>(request: &Request<'a>, method: &str) -> Result<Target<'a>, Refusal> {
    if method != SetLevel::NAME && !request.core().registry.tables().offered.resources {
        return Err(ErrorObject::method_not_found(method).into());
    }
    let change = SessionChange::read(method, request.params())?;
    let nest = match &change {
        SessionChange::Subscribe(uri) if is_hidden(request, uri) => {
            return Err(resource_not_found(uri).into());
        }
        SessionChange::Subscribe(uri) => permit_listening(request, std::slice::from_ref(uri))?,
        _ => Nest::default(),
    };
    Ok(Target::Session(change, nest))
}

fn find_listen<'a>(request: &Request<'a>) -> Result<Target<'a>, Refusal> {
    let params: SubscriptionsListenParams<'_> =
        decode_params(SubscriptionsListen::NAME, request.params())?;
    let uris = params.notifications.resource_subscriptions.as_deref();
    let nest = permit_listening(request, uris.unwrap_or_default())?;
    let (core, filter) = (request.core(), &params.notifications);
    let mut subscription = listen::subscription(core, filter, request.caller())?;
    subscription.revoke(|topic| match topic {
        Topic::Resource(uri) => is_hidden(request, uri),
        _ => false,
    });
    Ok(Target::Listen(subscription, nest))
}

/// A method that the protocol itself does not have.
fn find_extension<'a>(request: &Request<'a>) -> Result<Target<'a>, Refusal> {
    let (name, caller) = (&request.asked.method, request.caller());
    let found = request.core().extensions.method(name, caller.revision);
    if let (None, Some(beyond)) = (found, &request.core().beyond)
        && !METHODS.iter().any(|row| row.name == name)
    {
        return Ok(Target::Beyond(Arc::clone(beyond)));
    }
    let method = found.ok_or_else(|| ErrorObject::method_not_found(name))?;
    match method.check(caller) {
        Ok(()) => Ok(Target::Extension(method.clone())),
        Err(error) => Err(Refusal::new(Failure::rejected(error), &method.nest)),
    }
}

/// Whether a resource exists, and not for the caller: it never hears of its changes.
fn is_hidden(request: &Request<'_>, uri: &str) -> bool {
    let tables = request.core().registry.tables();
    let has_template = |it: &resource::Entry| {
        it.template.as_ref().is_some_and(|it| it.matches(uri) != Match::Different)
    };
    let exists =
        tables.resources.get(uri).is_some() || tables.templates.iter().any(|it| has_template(it));
    exists && find_resource(&tables, uri, request.asker).is_err()
}

/// Returns the nested servers that the resources belong to. Resources that do not exist for the
/// caller need no scopes: it never hears of them.
fn permit_listening(request: &Request<'_>, uris: &[String]) -> Result<Nest, Refusal> {
    let tables = request.core().registry.tables();
    let mut needed = Scopes::default();
    let mut nest = Nest::default();
    for uri in uris {
        if let Ok((resource, _)) = find_resource(&tables, uri, request.asker) {
            needed.extend(resource.scopes.iter());
            nest = nest.and(&resource.nest);
        }
    }
    request.permit(&needed, &nest)?;
    Ok(nest)
}
