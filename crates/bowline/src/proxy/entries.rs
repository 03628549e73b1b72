//! What the upstream server lists, as parts of the front.

use std::collections::HashSet;
use std::sync::Arc;

use bowline_proto::json::Json;
use bowline_proto::method::{CallTool, Complete, GetPrompt, Method, ReadResource};
use bowline_proto::model::{
    self, PromptReference, Reference, ResourceTemplateReference, TaskMetadata, TaskSupport,
    ToolExecution, task_extension,
};

use super::forward::{forward, json, send};
use super::params::spliced;
use super::upstream::Upstream;
use crate::client::{CallError, Change, Peer};
use crate::server::{BoxFuture, CompleteOutcome, CompleteSource, Entries};
use crate::{
    BuildError, Completing, Context, HandlerError, Prompt, Resource, Step, TaskMode, Tool,
    with_causes,
};

/// Which lists to ask for.
#[derive(Clone, Copy)]
pub(super) struct Lists {
    tools: bool,
    prompts: bool,
    resources: bool,
}

impl Lists {
    pub(super) const ALL: Self = Self { tools: true, prompts: true, resources: true };
    pub(super) const NONE: Self = Self { tools: false, prompts: false, resources: false };

    pub(super) fn is_none(self) -> bool {
        !(self.tools || self.prompts || self.resources)
    }

    /// These and others.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
        }
    }

    /// The list that a change is about.
    pub(super) fn of(change: &Change) -> Self {
        match change {
            Change::Tools => Self { tools: true, ..Self::NONE },
            Change::Prompts => Self { prompts: true, ..Self::NONE },
            Change::Resources => Self { resources: true, ..Self::NONE },
            Change::Resource(_) => Self::NONE,
        }
    }
}

/// What the server lists and nobody can be served, and why.
#[derive(Clone, Default)]
pub(super) struct LeftOut {
    tools: Vec<String>,
    prompts: Vec<String>,
    resources: Vec<String>,
}

impl LeftOut {
    pub(super) fn all(&self) -> impl Iterator<Item = &String> {
        self.tools.iter().chain(&self.prompts).chain(&self.resources)
    }
}

/// Asks for lists. Entries whose definitions have not changed stay, and so do other lists.
pub(super) async fn list(
    upstream: &Arc<Upstream>,
    (old, left_out): (&Entries, &mut LeftOut),
    lists: Lists,
) -> Result<Entries, CallError> {
    let client = &upstream.client;
    let peer = client.ready("proxy").await?;
    let offered = &peer.capabilities;
    let (mut new, mut seen) = (old.clone(), HashSet::new());
    if lists.tools {
        new.tools.clear();
        left_out.tools.clear();
        if offered.tools.is_some() {
            for mut definition in client.list_tools().without_cache().await? {
                let Some(name) = upstream.name_of(&definition.name) else { continue };
                let theirs = std::mem::replace(&mut definition.name, name);
                let (mode, execution) = mode(&peer, &definition).unzip();
                definition.execution = execution.or(definition.execution);
                let known = old.tools.iter().find(|it| it.definition == definition).cloned();
                if is_new(&mut seen, "tool", &definition.name) {
                    let theirs = Theirs { name: theirs, mode };
                    let to = (&mut new.tools, &mut left_out.tools);
                    keep(to, known, || tool(upstream, theirs, definition).build());
                }
            }
        }
    }
    if lists.prompts {
        new.prompts.clear();
        left_out.prompts.clear();
        if offered.prompts.is_some() {
            for definition in client.list_prompts().without_cache().await? {
                let known = old.prompts.iter().find(|it| it.definition == definition).cloned();
                if is_new(&mut seen, "prompt", &definition.name) {
                    let to = (&mut new.prompts, &mut left_out.prompts);
                    keep(to, known, || prompt(upstream, definition).build());
                }
            }
        }
    }
    if lists.resources {
        new.resources.clear();
        left_out.resources.clear();
        if offered.resources.is_some() {
            list_resources(upstream, old, (&mut new, left_out)).await?;
        }
    }
    Ok(new)
}

async fn list_resources(
    upstream: &Arc<Upstream>,
    old: &Entries,
    (new, left_out): (&mut Entries, &mut LeftOut),
) -> Result<(), CallError> {
    let (known, mut seen) = (old.resources.as_slice(), HashSet::new());
    for definition in upstream.client.list_resources().without_cache().await? {
        let known = known.iter().find(|it| it.template.is_none() && it.definition == definition);
        if is_new(&mut seen, "resource", &definition.uri) {
            let to = (&mut new.resources, &mut left_out.resources);
            keep(to, known.cloned(), || resource(upstream, definition).build());
        }
    }
    // Servers without templates may not know the method.
    let templates = upstream.client.list_resource_templates().without_cache().await;
    for definition in
        templates.or_else(|error| error.as_refusal().map(|_| Vec::new()).ok_or(error))?
    {
        let mut templates = known.iter().filter(|it| it.template.is_some());
        let known = templates.find(|it| it.template_definition() == definition);
        if is_new(&mut seen, "template", &definition.uri_template) {
            let to = (&mut new.resources, &mut left_out.resources);
            keep(to, known.cloned(), || template(upstream, definition).build());
        }
    }
    Ok(())
}

/// Whether this name comes for the first time. Some servers list things twice.
fn is_new(seen: &mut HashSet<(&'static str, String)>, kind: &'static str, name: &str) -> bool {
    seen.insert((kind, name.to_owned()))
}

/// Adds an entry as it is known, or a new one. What cannot be an entry is left out.
fn keep<E>(
    (entries, left_out): (&mut Vec<E>, &mut Vec<String>),
    known: Option<E>,
    build: impl FnOnce() -> Result<E, BuildError>,
) {
    match known.map_or_else(build, Ok) {
        Ok(entry) => entries.push(entry),
        Err(problem) => {
            tracing::warn!(%problem, "left out of a proxy");
            left_out.push(with_causes(&problem));
        }
    }
}

/// When calls of a tool become tasks at the front, and how its definition says so.
///
/// A legacy server says it of each tool, and its calls become tasks at once. A modern server
/// decides during the call, and the front follows.
fn mode(peer: &Peer, definition: &model::Tool) -> Option<(TaskMode, ToolExecution)> {
    let support = definition.execution.as_ref().and_then(|it| it.task_support);
    let (mode, task_support) = if peer.revision.is_modern() {
        let has_tasks = peer.capabilities.has_extension(task_extension::ID);
        has_tasks.then_some((TaskMode::OnDemand, TaskSupport::Optional))?
    } else {
        let has_tasks = peer.revision.has_requested_tasks() && peer.capabilities.has_tool_tasks();
        match support.filter(|_| has_tasks)? {
            TaskSupport::Required => (TaskMode::Required, TaskSupport::Required),
            TaskSupport::Optional => (TaskMode::Optional, TaskSupport::Optional),
            TaskSupport::Forbidden => return None,
        }
    };
    Some((mode, ToolExecution { task_support: Some(task_support) }))
}

/// A tool as the server has it.
struct Theirs {
    name: String,
    mode: Option<TaskMode>,
}

fn tool(upstream: &Arc<Upstream>, theirs: Theirs, definition: model::Tool) -> Tool {
    let upstream = Arc::clone(upstream);
    let Theirs { name, mode } = theirs;
    let tool = Tool::passing_on(definition, move |context: Context, arguments: Json| {
        let (upstream, name) = (Arc::clone(&upstream), name.clone());
        async move {
            let mut params =
                spliced(&context, [("name", json(&name)?)], [("arguments", arguments)]);
            if mode == Some(TaskMode::Required) {
                params.insert("task", json(&TaskMetadata::default())?);
            }
            forward::<CallTool>(upstream, context, params).await
        }
    });
    match mode {
        Some(mode) => tool.task(mode),
        None => tool,
    }
}

fn prompt(upstream: &Arc<Upstream>, definition: model::Prompt) -> Prompt {
    let reference = PromptReference { name: definition.name.clone(), title: None };
    let completer = completer(upstream, Reference::Prompt(reference));
    let (upstream, name) = (Arc::clone(upstream), definition.name.clone());
    let prompt = Prompt::from_model(definition, move |context: Context, arguments: Json| {
        let (upstream, name) = (Arc::clone(&upstream), name.clone());
        async move {
            let params = spliced(&context, [("name", json(&name)?)], [("arguments", arguments)]);
            forward::<GetPrompt>(upstream, context, params).await
        }
    });
    let prompt = prompt.passing_on();
    match completer {
        Some(completer) => prompt.complete_all(&completer),
        None => prompt,
    }
}

fn resource(upstream: &Arc<Upstream>, definition: model::Resource) -> Resource {
    Resource::from_model(definition, reading(upstream)).passing_on()
}

fn template(upstream: &Arc<Upstream>, definition: model::ResourceTemplate) -> Resource {
    let reference = ResourceTemplateReference { uri: definition.uri_template.clone() };
    let completer = completer(upstream, Reference::ResourceTemplate(reference));
    // The server that reads it decides which values are safe.
    let template = Resource::template_from_model(definition, reading(upstream))
        .allow_unsafe_values()
        .passing_on();
    match completer {
        Some(completer) => template.complete_all(&completer),
        None => template,
    }
}

type Reading = BoxFuture<Result<Step<model::ReadResourceResult>, HandlerError>>;

/// Reads a resource of the server.
pub(super) fn reading(
    upstream: &Arc<Upstream>,
) -> impl Fn(Context, String) -> Reading + Send + Sync + 'static {
    let upstream = Arc::clone(upstream);
    move |context, uri| {
        let upstream = Arc::clone(&upstream);
        Box::pin(async move {
            let params = spliced(&context, [("uri", json(&uri)?)], []);
            forward::<ReadResource>(upstream, context, params).await
        })
    }
}

/// Completes arguments, if the server does.
fn completer(upstream: &Arc<Upstream>, reference: Reference) -> Option<Arc<dyn CompleteSource>> {
    let peer = upstream.client.peer()?;
    peer.capabilities.completions.as_ref()?;
    Some(Arc::new(Completer { upstream: Arc::clone(upstream), reference }))
}

struct Completer {
    upstream: Arc<Upstream>,
    reference: Reference,
}

impl CompleteSource for Completer {
    fn start(&self, completing: Completing) -> BoxFuture<CompleteOutcome> {
        let (upstream, reference) = (Arc::clone(&self.upstream), self.reference.clone());
        Box::pin(async move {
            let Completing { context, .. } = completing;
            let params = spliced(&context, [("ref", json(&reference)?)], []);
            let call = send(&upstream, &context, Complete::NAME, params).await?;
            let result = call.unasked(&context, Complete::NAME).await?;
            let parsed = result.parse();
            parsed.map_err(|error| HandlerError::failed(format!("{:?}: {error}", upstream.name)))
        })
    }
}
