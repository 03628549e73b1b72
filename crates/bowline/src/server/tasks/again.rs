//! Another run of a task's handler, from the top, without a request.

use std::sync::Arc;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::method::{CallTool, Method};
use bowline_proto::wire::Id;

use super::super::call::{Call, CallParts};
use super::super::caller::{Asker, Profile};
use super::super::context::Context;
use super::super::core::Core;
use super::super::failure::Failure;
use super::super::peer::{Peer, Transport, Via};
use super::super::principal::Principal;
use super::super::rounds::{Rounds, Subject};
use super::super::running::{Handling, guarded};
use super::link::Link;
use super::places::Place;
use super::record::TaskRecord;
use super::run::Run;
use super::shared::Shared;
use crate::outbox::Outbox;
use crate::server::tool;

impl Run {
    /// Prepares another run, with everything that is recorded.
    ///
    /// # Errors
    /// When the server or its tool is gone.
    pub(super) fn again(
        shared: &Arc<Shared>,
        record: &TaskRecord,
        place: Option<Place>,
    ) -> Result<Self, ErrorObject> {
        let gone = |what: &str| {
            let tool = &record.tool;
            ErrorObject::internal(format!("{}: {tool:?}: {what}", CallTool::NAME))
        };
        let core = shared.core().ok_or_else(|| gone("the server has stopped"))?;
        let (found, _) = core.registry.tool(&record.tool);
        let tool = found.ok_or_else(|| gone("the server no longer has this tool"))?;
        let context = context(shared, &core, record, &tool);
        let link = Link::new(shared, record);
        let time = shared.time_for(record, &tool);
        context.call.become_task(Arc::clone(&link), time);
        let (call, arguments) = (Arc::clone(&context.call), record.arguments.clone());
        // What a handler does before it first waits can panic, too.
        let handler = Handling::Other(Box::pin(async move {
            let arguments = arguments.as_ref().map(Json::as_raw);
            let started = tool.start(&context, arguments).map_err(|reason| {
                let name = &tool.definition.name;
                ErrorObject::internal(format!("{}: {name:?}: {reason}", CallTool::NAME))
            });
            tool.finish(started.map_err(Failure::from)?.await)
        }));
        let handler = Box::pin(guarded(Arc::clone(&call), handler));
        Ok(Self { link, call, handler, place })
    }
}

/// The context of a run that no request has started.
fn context(shared: &Shared, core: &Arc<Core>, record: &TaskRecord, tool: &tool::Entry) -> Context {
    let owner = record.owner.clone();
    let profile = Profile {
        revision: record.revision,
        capabilities: record.client.capabilities.clone(),
        info: record.client.info.clone(),
        principal: owner.clone().map(Principal::new),
    };
    let peer = Peer::new(core, profile, Via::stream(Transport::Memory));
    let subject = Subject {
        principal: owner.unwrap_or_default(),
        method: CallTool::NAME,
        name: record.tool.clone(),
        arguments: None,
        passes_on: tool.passes_on,
    };
    let (outbox, progress) = match shared.views.reporting(&record.id) {
        Some((outbox, progress)) => (outbox, Some(progress)),
        None => {
            let outbox = Outbox::new(0);
            outbox.close();
            (Arc::new(outbox), None)
        }
    };
    let parts = CallParts {
        caller: Asker::on_stream(&peer, &Default::default()).to_caller(),
        id: Id::from(record.id.as_str()),
        method: CallTool::NAME,
        outbox,
        rounds: Some(Box::new(Rounds::again(subject, record.past.clone()))),
        log_level: None,
        progress,
        traceparent: record.client.traceparent.clone(),
        params: None,
        timeout: core.limits.deadline,
        nest: tool.nest.clone(),
    };
    Context { call: Arc::new(Call::new(parts)) }
}
